package overload

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/rankd/rankd/bench/compare"
)

// Verdicts judges how soon refusals came.
func (s *Scenario) Verdicts(results []Result) (verdicts []compare.Verdict) {
	for i := range results {
		r := &results[i]
		for _, aim := range []struct {
			name  string
			bound time.Duration
			found compare.Estimate
		}{{"p50", s.RefusalP50, r.RefusalP50}, {"p99", s.RefusalP99, r.RefusalP99}} {
			if aim.bound > 0 {
				verdicts = append(verdicts, compare.Verdict{
					Aim:  fmt.Sprintf("%s of a refusal, %s, %s", aim.name, s.Name, r.Front),
					Unit: " µs", Estimate: aim.found, Bound: compare.AtMost(micros(int64(aim.bound))),
				})
			}
		}
	}
	return verdicts
}

// InTime says whether each request that was admitted answered within its deadline.
func (s *Scenario) InTime(r *Result) string {
	if missed := r.Late + r.Errors; missed > 0 {
		return fmt.Sprintf("MISSED %s, %s: %d of %d requests that were admitted did not answer within %v", s.Name, r.Front, missed, r.Answered+r.Errors, s.Deadline)
	}
	return fmt.Sprintf("KEPT %s, %s: each of %d requests that were admitted answered within %v", s.Name, r.Front, r.Answered, s.Deadline)
}

// WriteText writes, for each scenario, the verdicts and a table. head describes the machine and the settings.
func WriteText(w io.Writer, head string, scenarios []Scenario, results [][]Result) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, head)
	for i, s := range scenarios {
		fmt.Fprintf(&out, "\n%s: %s; %d run, %d wait, deadline %v\n", s.Name, s.Doc, s.MaxInflight, s.MaxQueue, s.Deadline)
		for j := range results[i] {
			r := &results[i][j]
			fmt.Fprintf(&out, "%s: goodput %.0f/s at %.0f arrivals/s, %.0f%% of the capacity of %.0f/s; a refusal takes %.1f µs of CPU time, an answer %.1f µs\n",
				r.Front, r.Goodput.Median, r.Rate.Median, 100*r.Share.Median, r.Capacity.Median, r.CPURefusal.Median, r.CPUAnswer.Median)
		}
		for _, v := range s.Verdicts(results[i]) {
			fmt.Fprintln(&out, v)
		}
		for j := range results[i] {
			fmt.Fprintln(&out, s.InTime(&results[i][j]))
		}
		fmt.Fprintln(&out)
		t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "front\tcapacity/s\tarrivals/s\tgoodput/s\trefused\trefusal p50\tp99\tanswered\tlate\tfailed\tp50\tp99\tmax\tcores\tsent late, p99\tnot sent\t")
		for j := range results[i] {
			r := &results[i][j]
			fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%d\t%v\t%v\t%d\t%d\t%d\t%v\t%v\t%v\t%.2f\t%v\t%d\t\n",
				r.Front, r.Capacity.Median, r.Rate.Median, r.Goodput.Median, r.Refused, duration(r.RefusalP50.Median), duration(r.RefusalP99.Median),
				r.Answered, r.Late, r.Errors, duration(r.AnswerP50.Median), duration(r.AnswerP99.Median), duration(r.AnswerMax),
				r.CPUBusy.Median, duration(r.Lag.Median), r.Unsent)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for j := range results[i] {
			if r := &results[i][j]; r.FirstError != "" {
				fmt.Fprintf(&out, "%s: the first request that failed: %s\n", r.Front, r.FirstError)
			}
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// duration returns µs as a duration of some three digits.
func duration(us float64) time.Duration {
	d := time.Duration(us * float64(time.Microsecond))
	switch {
	case d >= 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(time.Microsecond)
	}
}
