package compare

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is the confidence level of all intervals, benchstat's default.
const confidence = 0.95

// Estimate is a median over rounds with its confidence interval. Immutable once built.
type Estimate struct {
	Median float64 `json:"median"`
	// Low and High bound the median. Nil means that there were too few rounds for an interval.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// EstimateOf summarizes one value per round.
func EstimateOf(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), confidence)
	e := Estimate{Median: s.Center}
	if !math.IsInf(s.Lo, 0) && !math.IsInf(s.Hi, 0) {
		e.Low, e.High = &s.Lo, &s.Hi
	}
	return e
}

// Spread returns the larger distance from the median to a bound, as "±3%", or "±∞".
func (e Estimate) Spread() string {
	if e.Low == nil || e.Median == 0 {
		return "±∞"
	}
	return fmt.Sprintf("±%.0f%%", 100*max(*e.High/e.Median-1, 1-*e.Low/e.Median))
}

// Factor returns the median and the interval of a ratio, such as "8.10× (7.92–8.31)".
func (e Estimate) Factor() string { return e.in("×") }

// in returns the median with a unit, and the interval.
func (e Estimate) in(unit string) string {
	if e.Low == nil {
		return factor(e.Median) + unit + " (±∞)"
	}
	return fmt.Sprintf("%s%s (%s–%s)", factor(e.Median), unit, factor(*e.Low), factor(*e.High))
}

// inverse returns the estimate of 1/x. A bound of 0 has no inverse: the interval is then unknown.
func (e Estimate) inverse() Estimate {
	if e.Median == 0 {
		return Estimate{}
	}
	inverted := Estimate{Median: 1 / e.Median}
	if e.Low != nil && *e.Low > 0 {
		low, high := 1 / *e.High, 1 / *e.Low
		inverted.Low, inverted.High = &low, &high
	}
	return inverted
}

// factor prints a ratio with about three digits.
func factor(v float64) string {
	switch {
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// median returns the median of values, 0 if there are none.
func median(values []float64) float64 { return EstimateOf(values).Median }
