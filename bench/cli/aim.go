package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/engines"
)

// want is an aim for an engine, relative to another one. Immutable.
type want struct {
	figure string // a key of wantFigures
	engine string
	bound  harness.Bound
	to     string    // the other engine; for commands it may be yardstick
	at     []float64 // loads: requests in flight, or arrivals a second; empty means all
}

// yardstick names redis-benchmark in a want.
const yardstick = "redis-benchmark"

// wantFigures are the figures of rounds by the words of a want.
var wantFigures = map[string]string{"requests": throughput, "commands": perSecond, "p50": p50, "p99": p99, "cpu": "cpu_us", "redis_cpu": "redis_cpu_us"}

// parseWant reads a want, such as "p99 reactor <= 1 peer:rueidis at 1,64". Without "at" it is for
// all loads. It leaves the names of engines as they are written.
func parseWant(text string) (want, error) {
	fields := strings.Fields(text)
	if len(fields) != 5 && (len(fields) != 7 || fields[5] != "at") {
		return want{}, fmt.Errorf("%q: a want is written FIGURE ENGINE >=|<= FACTOR ENGINE [at LOAD,…]", text)
	}
	w := want{figure: fields[0], engine: fields[1], bound: harness.Bound{Op: fields[2]}, to: fields[4]}
	if wantFigures[w.figure] == "" {
		return want{}, fmt.Errorf("%q: the figure is requests, commands, p50, p99, cpu or redis_cpu, not %q", text, w.figure)
	}
	if w.bound.Op != ">=" && w.bound.Op != "<=" {
		return want{}, fmt.Errorf("%q: the comparison is >= or <=, not %q", text, w.bound.Op)
	}
	var err error
	if w.bound.Value, err = positive(fields[3]); err != nil {
		return want{}, fmt.Errorf("%q: the factor %w", text, err)
	}
	if w.to == yardstick && w.figure != "commands" {
		return want{}, fmt.Errorf("%q: %s tells commands only", text, yardstick)
	}
	if len(fields) == 5 {
		return w, nil
	}
	for load := range strings.SplitSeq(fields[6], ",") {
		at, err := positive(load)
		if err != nil {
			return want{}, fmt.Errorf("%q: the load %w", text, err)
		}
		w.at = append(w.at, at)
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

// holds reports whether the want is for that load.
func (w *want) holds(at point) bool {
	load := at.rate
	if load == 0 {
		load = float64(at.concurrency)
	}
	return len(w.at) == 0 || slices.Contains(w.at, load)
}

// judge returns a verdict for each want and load, in that order. A ratio is the median of the ratios within each round.
func (c *comparison) judge(wants []want) (verdicts []harness.Verdict) {
	names := slices.Clone(c.engines)
	if c.ceiling != "" {
		names = append(names, yardstick)
	}
	for _, w := range wants {
		own, to := slices.Index(names, w.engine), slices.Index(names, w.to)
		for i, at := range c.points {
			if w.holds(at) && own >= 0 && to >= 0 {
				verdicts = append(verdicts, harness.Verdict{
					Aim: fmt.Sprintf("%s of %s to %s's, %s", w.figure, w.engine, w.to, at), Unit: "×", Bound: w.bound,
					Estimate: c.results[i][own].Against(c.results[i][to], wantFigures[w.figure]),
				})
			}
		}
	}
	return verdicts
}

// parseWants reads --want. The error reports all that is wrong: an aim for an engine or a load that is
// not measured could never be met.
func (o *compareOptions) parseWants() error {
	if len(o.specs) == 0 { // --engines is wrong
		return nil
	}
	var problems []error
	for _, text := range o.wantTexts {
		w, err := parseWant(text)
		if err == nil {
			err = o.checkWant(&w)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--want %w", err))
			continue
		}
		o.wants = append(o.wants, w)
	}
	return errors.Join(problems...)
}

// checkWant replaces the engines of w by their full names.
func (o *compareOptions) checkWant(w *want) error {
	for _, name := range []*string{&w.engine, &w.to} {
		if name == &w.to && *name == yardstick {
			if o.redisBenchmark == "" {
				return fmt.Errorf("names %s, which runs with --redis_benchmark only", yardstick)
			}
			continue
		}
		spec, err := engines.ParseSpec(*name)
		if err != nil {
			return err
		}
		if !slices.Contains(o.specs, spec) {
			return fmt.Errorf("names the engine %q; --engines has %s", *name, strings.Join(specNames(o.specs), ", "))
		}
		*name = spec.String()
	}
	for _, at := range w.at {
		one := want{at: []float64{at}}
		if !slices.ContainsFunc(o.points(), one.holds) {
			return fmt.Errorf("names the load %g, which is not measured", at)
		}
	}
	return nil
}
