package drift

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd/loop/clock"
)

const (
	// window is how long a score counts in the quantiles: for one window, and then for a part of the next one.
	window = 5 * time.Minute
	// scale makes a score an integer of a histogram: smaller scores count as zero.
	scale = 1e6
	// scoreMax is the greatest score that is told apart from greater ones.
	scoreMax = 1e9
)

// Quantiles are the shares that Scores tells of.
var Quantiles = [...]float64{0.01, 0.1, 0.5, 0.9, 0.99}

// Scores says how the numbers that a plan has written are distributed. A copy; any goroutine.
type Scores struct {
	Count uint64
	Sum   float64
	// At has the scores below which the shares of Quantiles lie, of the last five to ten minutes and within a tenth; NaN: there
	// were none.
	At [len(Quantiles)]float64
}

// scores counts numbers. One goroutine at a time.
type scores struct {
	count           uint64
	sum             float64
	present, former signed
	began           clock.Time // present
}

// signed are numbers of both signs; nil: none.
type signed struct{ below, above *hdrhistogram.Histogram }

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, scoreMax*scale, 1) }

func (s *scores) add(x float64, now clock.Time) {
	s.roll(now)
	s.count++
	s.sum += x
	to := &s.present.above
	if x < 0 {
		to = &s.present.below
	}
	if *to == nil {
		*to = newHistogram()
	}
	_ = (*to).RecordValue(int64(math.Round(min(math.Abs(x), scoreMax) * scale))) // It is in range.
}

// roll begins another window if one is over.
func (s *scores) roll(now clock.Time) {
	switch age := now.Sub(s.began); {
	case s.count == 0, age >= 2*window:
		s.present, s.former, s.began = signed{}, signed{}, now
	case age >= window:
		s.present, s.former, s.began = signed{}, s.present, now
	}
}

func (s *scores) stats(now clock.Time) *Scores {
	s.roll(now)
	below, above := newHistogram(), newHistogram()
	for _, of := range [...]signed{s.present, s.former} {
		if of.below != nil {
			below.Merge(of.below)
		}
		if of.above != nil {
			above.Merge(of.above)
		}
	}
	stats := &Scores{Count: s.count, Sum: s.sum}
	negative, all := below.TotalCount(), below.TotalCount()+above.TotalCount()
	for i, q := range Quantiles {
		rank := max(int64(math.Ceil(q*float64(all))), 1)
		switch {
		case all == 0:
			stats.At[i] = math.NaN()
		case rank <= negative:
			stats.At[i] = -valueAt(below, negative-rank+1)
		default:
			stats.At[i] = valueAt(above, rank-negative)
		}
	}
	return stats
}

// valueAt returns the number of that rank, from 1.
func valueAt(h *hdrhistogram.Histogram, rank int64) float64 {
	return float64(h.ValueAtQuantile(100*float64(rank)/float64(h.TotalCount()))) / scale
}
