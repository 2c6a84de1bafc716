package harness

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/perf/benchmath"
)

// confidence is the confidence level of all intervals, benchstat's default.
const confidence = 0.95

// Estimate is a median over rounds with its confidence interval, or the exact value of a sum. Immutable once built.
type Estimate struct {
	Median float64 `json:"median"`
	// Low and High bound the median. Nil means that there were too few rounds for an interval.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Exact says that no interval belongs to the value: it is a sum, or a percentile of all rounds. In JSON it is a number.
	Exact bool `json:"-"`
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

// exact returns an estimate without an interval.
func exact(v float64) Estimate { return Estimate{Median: v, Exact: true} }

// Spread returns the larger distance from the median to a bound, as "±3%", or "±∞".
func (e Estimate) Spread() string {
	s := benchmath.Summary{Center: e.Median, Lo: math.Inf(-1), Hi: math.Inf(1)}
	if e.Low != nil {
		s.Lo, s.Hi = *e.Low, *e.High
	}
	return "±" + s.PctRangeString()
}

// with returns the median and the interval in a form.
func (e Estimate) with(form func(float64) string, unit string) string {
	if e.Low == nil {
		return form(e.Median) + unit + " (±∞)"
	}
	return fmt.Sprintf("%s%s (%s–%s)", form(e.Median), unit, form(*e.Low), form(*e.High))
}

// Factor returns the median and the interval of a ratio, such as "8.10× (7.92–8.31)".
func (e Estimate) Factor() string { return e.with(digits, "×") }

// Durations returns the median and the interval of times in µs, such as "2ms (1.9ms–2.2ms)".
func (e Estimate) Durations() string {
	return e.with(func(us float64) string { return Micros(us).String() }, "")
}

// Inverse returns the estimate of 1/x. A bound of 0 has no inverse: the interval is then unknown.
func (e Estimate) Inverse() Estimate {
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

// MarshalJSON writes an exact value as a number, and another estimate as an object.
func (e Estimate) MarshalJSON() ([]byte, error) {
	if e.Exact {
		return json.Marshal(e.Median)
	}
	type fields Estimate // without this method
	return json.Marshal(fields(e))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Estimate) UnmarshalJSON(text []byte) error {
	if *e = (Estimate{}); len(text) > 0 && text[0] != '{' {
		e.Exact = true
		return json.Unmarshal(text, &e.Median)
	}
	type fields Estimate
	return json.Unmarshal(text, (*fields)(e))
}

// digits prints a ratio with about three digits.
func digits(v float64) string {
	switch {
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// Micros turns microseconds into a duration that reads well.
func Micros(us float64) time.Duration {
	d := time.Duration(us * float64(time.Microsecond))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(100 * time.Nanosecond)
	}
}

// InMicros turns nanoseconds into microseconds.
func InMicros[T int64 | time.Duration](ns T) float64 { return float64(ns) / float64(time.Microsecond) }
