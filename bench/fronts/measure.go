package fronts

import (
	"context"
	"fmt"
	"time"

	"github.com/rankd/rankd/bench/compare"
)

// InProcess is the name of the caller that the others are compared with: the engine asks itself.
const InProcess = "in process"

// The requests in flight of the two measurements of a round.
const (
	Many = 64
	One  = 1
)

// Caller is one way to ask the engine. Immutable.
type Caller struct {
	Name string
	// CPU and P50 bound the CPU a request, with Many in flight, and the median latency, with One, over those of
	// InProcess, in µs. Zero bounds nothing.
	CPU, P50 float64
}

// Sample is the measurement of one round with so many requests in flight. Times are µs. Immutable.
type Sample struct {
	PerSecond float64 `json:"requests_per_second"`
	CPU       float64 `json:"cpu_us"` // a request, of the serving process
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"` // 0 if the caller does not tell
}

// Result describes one caller: medians over rounds. Times are µs. Immutable once built.
type Result struct {
	Caller string `json:"caller"`

	PerSecond compare.Estimate `json:"requests_per_second"` // with Many in flight
	CPU       compare.Estimate `json:"cpu_us"`              // a request, likewise
	P99       compare.Estimate `json:"p99_us"`              // likewise; 0 if the caller does not tell
	P50       compare.Estimate `json:"p50_at_one_us"`       // with One in flight

	// CPUOver and P50Over are medians of the differences to InProcess within each round.
	CPUOver compare.Estimate `json:"cpu_over_us"`
	P50Over compare.Estimate `json:"p50_over_us"`

	Many []Sample `json:"rounds_many"` // by round
	One  []Sample `json:"rounds_one"`
}

// Run has a caller put load on the engine, with so many requests in flight. One goroutine at a time.
type Run func(ctx context.Context, caller, inFlight int) (Sample, error)

// Measure runs rounds in which the callers take turns. The first caller is InProcess. The error names the caller.
func Measure(ctx context.Context, callers []Caller, rounds int, run Run, progress func(string)) ([]Result, error) {
	results := make([]Result, len(callers))
	for round := range rounds {
		for i := range callers {
			i = (i + round) % len(callers) // nobody is always the first
			r := &results[i]
			for _, m := range []struct {
				inFlight int
				into     *[]Sample
			}{{Many, &r.Many}, {One, &r.One}} {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				sample, err := run(ctx, i, m.inFlight)
				if err != nil {
					return nil, fmt.Errorf("%s, %d in flight: %w", callers[i].Name, m.inFlight, err)
				}
				*m.into = append(*m.into, sample)
				progress(fmt.Sprintf("round %d of %d: %s, %d in flight: %.0f requests/s, %.1f µs CPU each, p50 %v",
					round+1, rounds, callers[i].Name, m.inFlight, sample.PerSecond, sample.CPU, duration(sample.P50)))
			}
		}
	}
	for i := range results {
		results[i].Caller = callers[i].Name
		results[i].fill(&results[0])
	}
	return results, nil
}

// fill computes the medians.
func (r *Result) fill(base *Result) {
	perSecond := func(s Sample) float64 { return s.PerSecond }
	cpu := func(s Sample) float64 { return s.CPU }
	p50 := func(s Sample) float64 { return s.P50 }
	r.PerSecond = compare.EstimateOf(values(r.Many, perSecond))
	r.CPU = compare.EstimateOf(values(r.Many, cpu))
	r.P99 = compare.EstimateOf(values(r.Many, func(s Sample) float64 { return s.P99 }))
	r.P50 = compare.EstimateOf(values(r.One, p50))
	r.CPUOver = compare.EstimateOf(differences(values(r.Many, cpu), values(base.Many, cpu)))
	r.P50Over = compare.EstimateOf(differences(values(r.One, p50), values(base.One, p50)))
}

func values(samples []Sample, figure func(Sample) float64) (all []float64) {
	for _, s := range samples {
		all = append(all, figure(s))
	}
	return all
}

func differences(a, b []float64) (all []float64) {
	for i := range a {
		all = append(all, a[i]-b[i])
	}
	return all
}

// Verdicts judges the callers that have bounds.
func Verdicts(callers []Caller, results []Result) (verdicts []compare.Verdict) {
	for i, c := range callers {
		if c.CPU > 0 {
			verdicts = append(verdicts, compare.Verdict{
				Aim: fmt.Sprintf("CPU a request of %s over %s, %d in flight", c.Name, InProcess, Many), Unit: " µs",
				Estimate: results[i].CPUOver, Bound: compare.AtMost(c.CPU),
			})
		}
		if c.P50 > 0 {
			verdicts = append(verdicts, compare.Verdict{
				Aim: fmt.Sprintf("p50 of %s over %s, %d in flight", c.Name, InProcess, One), Unit: " µs",
				Estimate: results[i].P50Over, Bound: compare.AtMost(c.P50),
			})
		}
	}
	return verdicts
}

// duration returns µs as a duration of some three digits.
func duration(us float64) time.Duration {
	d := time.Duration(us * float64(time.Microsecond))
	if d >= time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}
