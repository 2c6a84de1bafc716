package compare

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Answer says in one sentence who is ahead, by how much, and where the lead stops.
// Every report opens with it.
//
// It compares each engine with the first one: by throughput in a closed loop, and by
// the 99th percentile in an open loop, where the arrival rate sets the throughput.
// It names the highest load under the first conditions, then the nearest loads at which
// the outcome differs, failures, and the knees.
func (c *Comparison) Answer() string {
	engines := c.Engines()
	if len(engines) == 0 {
		return "Nothing was measured."
	}
	first := engines[0]
	var parts []string
	for _, other := range engines[1:] {
		parts = append(parts, c.answerPair(first, other))
	}
	if len(engines) == 1 || !c.measured(first) {
		parts = c.answerAlone(engines)
	}
	for _, k := range c.Knees {
		if k.Conditions == c.Knees[0].Conditions {
			parts = append(parts, k.short())
		}
	}
	return strings.Join(parts, "; ") + "."
}

// MarshalJSON adds the answer as the first field.
func (c *Comparison) MarshalJSON() ([]byte, error) {
	type fields Comparison // without this method
	return json.Marshal(struct {
		Answer string `json:"answer"`
		*fields
	}{c.Answer(), (*fields)(c)})
}

// answerAlone says what each engine reached without comparing it.
func (c *Comparison) answerAlone(engines []string) (parts []string) {
	for _, engine := range engines {
		parts = append(parts, c.answerOne(engine))
	}
	return parts
}

func (c *Comparison) answerOne(engine string) string {
	cells := c.byDescendingLoad(engine)
	for _, cell := range cells {
		if cell.measured() {
			return fmt.Sprintf("%s answers %.0f requests/s (%s) at %s, with a p99 of %v%s", engine,
				cell.Throughput.Median, cell.Throughput.Spread(), cell.load(), duration(cell.Latency.P99), failures(cells))
		}
	}
	return strings.TrimPrefix(failures(cells), "; ")
}

// answerPair compares the first engine with another one.
func (c *Comparison) answerPair(first, other string) string {
	standings := c.standings(first, other)
	failed := failures(c.byDescendingLoad(first)) + failures(c.byDescendingLoad(other))
	if len(standings) == 0 {
		return fmt.Sprintf("%s and %s cannot be compared%s", first, other, failed)
	}
	top, rest := standings[0], standings[1:]
	return top.sentence() + top.whereItStops(rest) + failed
}

// standing is how the first engine and another one compare at one point.
type standing struct {
	Point
	first, other string
	lead         Estimate // how many times better the first engine is; below 1 it is worse
}

// standings returns the points at which both engines were measured: the highest load at
// the first conditions comes first.
func (c *Comparison) standings(first, other string) (found []standing) {
	for _, cell := range c.byDescendingLoad(other) {
		lead := cell.ThroughputRatio.inverse()
		if cell.Rate > 0 {
			lead = cell.P99Ratio
		}
		if cell.measured() && lead.Median > 0 {
			found = append(found, standing{cell.Point, first, other, lead})
		}
	}
	return found
}

type verdict uint8

const (
	unknown verdict = iota // too few rounds for an interval
	level                  // the interval contains 1
	ahead                  // the first engine is better
	behind                 // the other engine is better
)

// verdict reads the interval at the two decimals that Factor prints, so that
// no engine leads by "1.00×".
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
func (s standing) ranked() (better, worse string, by Estimate) {
	if s.lead.Median < 1 {
		return s.other, s.first, s.lead.inverse()
	}
	return s.first, s.other, s.lead
}

func (s standing) sentence() string {
	better, worse, by := s.ranked()
	factor := by.Factor()
	switch s.verdict() {
	case level:
		return fmt.Sprintf("%s and %s are level%s at %s", s.first, s.other, s.figure(), s.load())
	case unknown:
		factor = strings.TrimSuffix(factor, " (±∞)")
		return s.claim(better, worse, factor) + ", with an unknown interval"
	default:
		return s.claim(better, worse, factor)
	}
}

func (s standing) claim(better, worse, factor string) string {
	if s.Rate > 0 {
		return fmt.Sprintf("the p99 of %s is %s the p99 of %s at %s", worse, factor, better, s.load())
	}
	return fmt.Sprintf("%s answers %s the requests of %s at %s", better, factor, worse, s.load())
}

func (s standing) figure() string {
	if s.Rate > 0 {
		return " in p99"
	}
	return ""
}

// whereItStops names the nearest point with another verdict, and the nearest one at which
// the order is reversed. Rest is in the order of standings.
func (s standing) whereItStops(rest []standing) (text string) {
	now := s.verdict()
	if now == unknown || len(rest) == 0 {
		return ""
	}
	said := make(map[verdict]bool)
	for _, r := range rest {
		v := r.verdict()
		if v == now || v == unknown || said[v] {
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
	return fmt.Sprintf(", and likewise at %s", plural(len(rest), "other point"))
}

// failures names the highest load at which an engine was not measured. Cells are of one engine.
func failures(cells []Cell) string {
	var failed []Cell
	for _, cell := range cells {
		if !cell.measured() {
			failed = append(failed, cell)
		}
	}
	if len(failed) == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s %s at %s", failed[0].Engine, failed[0].failing(), failed[0].load())
	if more := len(failed) - 1; more > 0 {
		text += " and at " + plural(more, "other point")
	}
	return text
}

func (c Cell) failing() string {
	if c.Failure != "" {
		return "failed"
	}
	return "answered no request"
}

// measured reports whether the cell has a throughput.
func (c Cell) measured() bool { return c.Failure == "" && c.Throughput.Median > 0 }

// measured reports whether the engine was measured at any point.
func (c *Comparison) measured(engine string) bool {
	for _, cell := range c.Cells {
		if cell.Engine == engine && cell.measured() {
			return true
		}
	}
	return false
}

// byDescendingLoad returns the cells of an engine, conditions in the order given and
// the highest load of each first.
func (c *Comparison) byDescendingLoad(engine string) (cells []Cell) {
	for _, under := range c.Conditions() {
		series := c.Series(engine, under)
		for i := len(series) - 1; i >= 0; i-- {
			cells = append(cells, series[i])
		}
	}
	return cells
}

// load returns "64 in flight", "20000/s (Redis +5ms)" and the like.
func (p Point) load() string {
	text := fmt.Sprintf("%d in flight", p.Concurrency)
	if p.Rate > 0 {
		text = fmt.Sprintf("%g/s", p.Rate)
	}
	if special := p.Conditions.String(); special != "" {
		text += " (" + special + ")"
	}
	return text
}

// short says where the throughput flattens, as a part of a sentence.
func (k Knee) short() string {
	if k.Found {
		return fmt.Sprintf("the throughput of %s flattens at %d in flight", k.Engine, k.At)
	}
	return fmt.Sprintf("the throughput of %s still rises at %d in flight", k.Engine, k.Last)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
