package harness

import (
	"encoding/json"
	"fmt"
)

// Bound is what a figure is meant to reach. Immutable.
type Bound struct {
	Op    string  `json:"op"` // ">=" or "<="
	Value float64 `json:"value"`
}

// AtLeast returns the bound ">= value".
func AtLeast(value float64) Bound { return Bound{">=", value} }

// AtMost returns the bound "<= value".
func AtMost(value float64) Bound { return Bound{"<=", value} }

// Outcome says whether a figure reaches its bound.
type Outcome string

// The outcomes.
const (
	Met       Outcome = "met"         // the whole interval does
	NotMet    Outcome = "not met"     // nothing of the interval does
	Undecided Outcome = "not decided" // the interval contains the bound, or is unknown
)

// Judge returns whether the estimate reaches the bound.
func (b Bound) Judge(e Estimate) Outcome {
	low, high := e.Median, e.Median
	switch {
	case e.Exact:
	case e.Low == nil || e.High == nil:
		return Undecided
	default:
		low, high = *e.Low, *e.High
	}
	if b.Op == "<=" {
		low, high = -high, -low
		b.Value = -b.Value
	}
	switch {
	case low >= b.Value:
		return Met
	case high < b.Value:
		return NotMet
	default:
		return Undecided
	}
}

// Verdict is a figure beside what it was meant to reach. Immutable.
type Verdict struct {
	Aim      string   `json:"aim"`  // such as "p50 of reactor to pool's, 64 in flight"
	Unit     string   `json:"unit"` // of the figure: "×" or " µs"
	Estimate Estimate `json:"estimate"`
	Bound    Bound    `json:"bound"`
}

// Outcome says whether the bound is reached.
func (v Verdict) Outcome() Outcome { return v.Bound.Judge(v.Estimate) }

// String returns the verdict as a line: the outcome, then what it rests on.
func (v Verdict) String() string {
	figure := "not measured"
	switch {
	case v.Estimate.Exact:
		figure = fmt.Sprintf("%g%s", v.Estimate.Median, v.Unit)
	case v.Estimate.Median != 0:
		figure = v.Estimate.with(digits, v.Unit)
	}
	return fmt.Sprintf("%-11s  %s: %s, wanted %s %g%s", v.Outcome(), v.Aim, figure, v.Bound.Op, v.Bound.Value, v.Unit)
}

// MarshalJSON adds the outcome as the first field.
func (v Verdict) MarshalJSON() ([]byte, error) {
	type fields Verdict // without this method
	return json.Marshal(struct {
		Outcome Outcome `json:"outcome"`
		fields
	}{v.Outcome(), fields(v)})
}
