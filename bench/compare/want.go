package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Want is an aim for an engine, relative to another one. Immutable.
type Want struct {
	Figure string // "requests" or "commands", both a second; "p50" or "p99"
	Engine string
	Bound  Bound
	// To is the other engine. For commands it may be Yardstick.
	To string
	At []float64 // loads: requests in flight, or arrivals a second; empty means all
}

// Yardstick names redis-benchmark in a want.
const Yardstick = "redis-benchmark"

// figure is what a want is about, and how to read it from a round. Immutable.
type figure struct {
	name string
	of   func(RoundFigures) float64
}

var figures = [...]figure{
	{"requests", func(r RoundFigures) float64 { return r.Throughput }},
	{"commands", func(r RoundFigures) float64 { return r.Commands }},
	{"p50", func(r RoundFigures) float64 { return r.Latency.P50 }},
	{"p99", func(r RoundFigures) float64 { return r.Latency.P99 }},
}

// ParseWant reads a want, such as "p99 reactor <= 1 peer:rueidis at 1,64". Without "at" it is for
// all loads. It leaves the names of engines as they are written.
func ParseWant(text string) (Want, error) {
	fields := strings.Fields(text)
	if len(fields) != 5 && (len(fields) != 7 || fields[5] != "at") {
		return Want{}, fmt.Errorf("%q: a want is written FIGURE ENGINE >=|<= FACTOR ENGINE [at LOAD,…]", text)
	}
	w := Want{Figure: fields[0], Engine: fields[1], Bound: Bound{Op: fields[2]}, To: fields[4]}
	if !slices.ContainsFunc(figures[:], func(f figure) bool { return f.name == w.Figure }) {
		return Want{}, fmt.Errorf("%q: the figure is requests, commands, p50 or p99, not %q", text, w.Figure)
	}
	if w.Bound.Op != ">=" && w.Bound.Op != "<=" {
		return Want{}, fmt.Errorf("%q: the comparison is >= or <=, not %q", text, w.Bound.Op)
	}
	var err error
	if w.Bound.Value, err = positive(fields[3]); err != nil {
		return Want{}, fmt.Errorf("%q: the factor %w", text, err)
	}
	if w.To == Yardstick && w.Figure != "commands" {
		return Want{}, fmt.Errorf("%q: %s tells commands only", text, Yardstick)
	}
	if len(fields) == 5 {
		return w, nil
	}
	for load := range strings.SplitSeq(fields[6], ",") {
		at, err := positive(load)
		if err != nil {
			return Want{}, fmt.Errorf("%q: the load %w", text, err)
		}
		w.At = append(w.At, at)
	}
	return w, nil
}

func positive(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0 && x <= 1e9) {
		return 0, fmt.Errorf("is a positive number, not %q", text)
	}
	return x, nil
}

// Holds reports whether the want is for that load.
func (w *Want) Holds(at Point) bool {
	load := at.Rate
	if load == 0 {
		load = float64(at.Concurrency)
	}
	return len(w.At) == 0 || slices.Contains(w.At, load)
}

// Judge fills in Verdicts: one for each want and load, in that order. A ratio is the median of the
// ratios within each round.
func (c *Comparison) Judge(wants []Want) {
	for i := range wants {
		w := &wants[i]
		for _, cell := range c.Cells {
			if cell.Engine == w.Engine && w.Holds(cell.Point) {
				c.Verdicts = append(c.Verdicts, Verdict{
					Aim: fmt.Sprintf("%s of %s to %s's, %s", w.Figure, w.Engine, w.To, cell.Point), Unit: "×", Bound: w.Bound,
					Estimate: EstimateOf(ratios(c.roundsOf(w.Figure, w.Engine, cell.Point), c.roundsOf(w.Figure, w.To, cell.Point))),
				})
			}
		}
	}
}

// roundsOf returns a figure of each round of an engine, or of the yardstick.
func (c *Comparison) roundsOf(name, engine string, at Point) (values []float64) {
	if engine == Yardstick {
		for _, ceiling := range c.Ceilings {
			if ceiling.Point == at {
				return ceiling.Rounds
			}
		}
		return nil
	}
	of := figures[slices.IndexFunc(figures[:], func(f figure) bool { return f.name == name })].of
	for _, cell := range c.Cells {
		if cell.Engine == engine && cell.Point == at {
			for _, r := range cell.Rounds {
				values = append(values, of(r))
			}
		}
	}
	return values
}
