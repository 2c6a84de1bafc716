package latency

import "time"

// The bounds of Buckets are the powers of two from some microsecond to some second: 2^10 to 2^30 ns.
const (
	firstBound = 10
	lastBound  = 30
)

// Buckets say how durations are distributed, for programs that subtract one reading from another. Immutable.
type Buckets struct {
	Below [lastBound - firstBound + 1]uint64 // Below[i] durations are shorter than Bound(i)
	Count uint64
	Sum   time.Duration // estimated: within a sixteenth
}

// Bound returns a bound of Buckets.
func Bound(i int) time.Duration { return 1 << (firstBound + i) }

// Buckets returns the distribution of what h has counted.
func (h *Histogram) Buckets() Buckets {
	var b Buckets
	next := 0
	for i := range h.counts {
		for next < len(b.Below) && i == bucket(Bound(next)) {
			b.Below[next] = b.Count
			next++
		}
		n := uint64(h.counts[i].Load())
		b.Count += n
		b.Sum += time.Duration(n) * (lower(i) + upper(i)) / 2
	}
	return b
}

// lower returns the smallest duration of a bucket.
func lower(i int) time.Duration {
	if i == 0 {
		return 0
	}
	return upper(i-1) + 1
}
