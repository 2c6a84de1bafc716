package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/internal/errtext"
)

// answer says in one sentence who is ahead, by how much, and where the lead stops.
//
// It compares each engine with the first one: by throughput in a closed loop, and by the 99th percentile in an open loop, where the
// arrival rate sets the throughput. It names the highest load under the first conditions, then the nearest loads at which the outcome
// differs, and failures.
func (c *comparison) answer() string {
	if len(c.points) == 0 || len(c.engines) == 0 {
		return "Nothing was measured."
	}
	first := c.engines[0]
	var parts []string
	if len(c.engines) > 1 && slices.ContainsFunc(c.descending(first), cell.measured) {
		for _, other := range c.engines[1:] {
			parts = append(parts, c.answerPair(first, other))
		}
	} else {
		for _, engine := range c.engines {
			parts = append(parts, c.answerOne(engine))
		}
	}
	return strings.Join(parts, "; ") + "."
}

// answerOne says what an engine reached without comparing it.
func (c *comparison) answerOne(engine string) string {
	cells := c.descending(engine)
	failed := failures(cells)
	for _, cell := range cells {
		if cell.measured() {
			x := cell.Figures[throughput]
			return fmt.Sprintf("%s answers %.0f requests/s (%s) at %s, with a p99 of %v%s", engine,
				x.Median, x.Spread(), cell.load(), harness.Micros(cell.Value(p99)), failed)
		}
	}
	return strings.TrimPrefix(failed, "; ")
}

// answerPair compares the first engine with another one.
func (c *comparison) answerPair(first, other string) string {
	var found []standing // the highest load at the first conditions comes first
	cells := c.descending(other)
	for _, cell := range cells {
		lead := cell.Figures["throughput_ratio"].Inverse()
		if cell.rate > 0 {
			lead = cell.Figures["p99_ratio"]
		}
		if cell.measured() && lead.Median > 0 {
			found = append(found, standing{cell.point, first, other, lead})
		}
	}
	failed := failures(c.descending(first)) + failures(cells)
	if len(found) == 0 {
		return fmt.Sprintf("%s and %s cannot be compared%s", first, other, failed)
	}
	return found[0].sentence() + found[0].whereItStops(found[1:]) + failed
}

// standing is how the first engine and another one compare at one point.
type standing struct {
	point
	first, other string
	lead         harness.Estimate // how many times better the first engine is; below 1 it is worse
}

type verdict uint8

const (
	unknown verdict = iota // too few rounds for an interval
	level                  // the interval contains 1
	ahead                  // the first engine is better
	behind                 // the other engine is better
)

// verdict reads the interval at the two decimals that Factor prints, so that no engine leads by "1.00×".
func (s standing) verdict() verdict {
	const half = 0.005
	switch low, high := s.lead.Low, s.lead.High; {
	case low == nil || high == nil:
		return unknown
	case *low >= 1+half:
		return ahead
	case *high <= 1-half:
		return behind
	default:
		return level
	}
}

// ranked returns the better engine, the other one, and the factor between them.
func (s standing) ranked() (better, worse string, by harness.Estimate) {
	if s.lead.Median < 1 {
		return s.other, s.first, s.lead.Inverse()
	}
	return s.first, s.other, s.lead
}

func (s standing) sentence() string {
	better, worse, by := s.ranked()
	factor, doubt, figure := by.Factor(), "", ""
	if s.verdict() == unknown {
		factor, doubt = strings.TrimSuffix(factor, " (±∞)"), ", with an unknown interval"
	}
	text := fmt.Sprintf("%s answers %s the requests of %s at %s", better, factor, worse, s.load())
	if s.rate > 0 {
		figure, text = " in p99", fmt.Sprintf("the p99 of %s is %s the p99 of %s at %s", worse, factor, better, s.load())
	}
	if s.verdict() == level {
		return fmt.Sprintf("%s and %s are level%s at %s", s.first, s.other, figure, s.load())
	}
	return text + doubt
}

// whereItStops names the nearest point with another verdict, and the nearest one at which the order is reversed.
func (s standing) whereItStops(rest []standing) (text string) {
	now := s.verdict()
	if now == unknown || len(rest) == 0 {
		return ""
	}
	said := map[verdict]bool{now: true, unknown: true}
	for _, r := range rest {
		v := r.verdict()
		if said[v] {
			continue
		}
		said[v] = true
		if v == level {
			text += fmt.Sprintf("; at %s they are level", r.load())
			continue
		}
		better, _, by := r.ranked()
		text += fmt.Sprintf("; at %s %s is ahead by %s", r.load(), better, by.Factor())
	}
	if text != "" {
		return text
	}
	return fmt.Sprintf(", and likewise at %s", errtext.Count(len(rest), "other point"))
}

// failures names the highest load at which an engine was not measured. Cells are of one engine.
func failures(cells []cell) string {
	failed := slices.DeleteFunc(slices.Clone(cells), cell.measured)
	if len(failed) == 0 {
		return ""
	}
	what := "answered no request"
	if failed[0].Failure != "" {
		what = "failed"
	}
	text := fmt.Sprintf("; %s %s at %s", failed[0].engine, what, failed[0].load())
	if more := len(failed) - 1; more > 0 {
		text += " and at " + errtext.Count(more, "other point")
	}
	return text
}

// descending returns the cells of an engine, conditions in the order given and the highest load of each first.
func (c *comparison) descending(engine string) (cells []cell) {
	for _, under := range c.conditions() {
		series := c.series(engine, under)
		slices.Reverse(series)
		cells = append(cells, series...)
	}
	return cells
}
