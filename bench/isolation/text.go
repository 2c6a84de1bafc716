package isolation

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rankd/rankd/bench/compare"
)

// Verdict says whether the small requests of the engine keep the scenario's promise.
func (s *Scenario) Verdict(r *Result) string {
	switch {
	case r.Failure != "":
		return fmt.Sprintf("NOT MEASURED %s, %s: %s", s.Name, r.Engine, r.Failure)
	case r.SmallFail:
		return fmt.Sprintf("MISSED %s, %s: %d small requests failed and %d were turned away%s; none should", s.Name, r.Engine, r.Small.Errors, r.Shed, among(r))
	case r.Slow:
		return fmt.Sprintf("MISSED %s, %s: the p99 of the small requests is %v, and should be below %v", s.Name, r.Engine, duration(r.P99.Median), s.MaxP99)
	default:
		return fmt.Sprintf("KEPT %s, %s: no small request fails, and their p99 is %v, below %v", s.Name, r.Engine, duration(r.P99.Median), s.MaxP99)
	}
}

// among says that an older build counts large requests among the small ones.
func among(r *Result) string {
	if r.Large == nil {
		return " (the large ones among them)"
	}
	return ""
}

// WriteText writes, for each scenario, the verdicts and a table. head describes the machine and the settings.
func WriteText(w io.Writer, head string, scenarios []Scenario, results [][]Result) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, head)
	for i, s := range scenarios {
		fmt.Fprintf(&out, "\n%s: %s\n", s.Name, s.Doc)
		for j := range results[i] {
			fmt.Fprintln(&out, s.Verdict(&results[i][j]))
		}
		fmt.Fprintln(&out)
		t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "engine\tcapacity/s\tarrivals/s\tsmall\tfailed\tturned away\tp50\tp99 of all\tp99 by round\talone, by round\tmax\tsent late, p99\tlarge\tfailed\tp50\tmax\t")
		for j := range results[i] {
			fmt.Fprintln(t, row(&results[i][j]))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, r := range results[i] {
			if r.Small.FirstError != "" {
				fmt.Fprintf(&out, "%s: the first small request that failed%s: %s\n", r.Engine, among(&r), r.Small.FirstError)
			}
			if r.Large != nil && r.Large.FirstError != "" {
				fmt.Fprintf(&out, "%s: the first large request that failed: %s\n", r.Engine, r.Large.FirstError)
			}
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

func row(r *Result) string {
	if r.Failure != "" {
		return r.Engine + "\tnot measured\t"
	}
	cells := []string{
		r.Engine, capacity(r), fmt.Sprintf("%.0f", r.Rate), fmt.Sprint(r.Small.Answered), fmt.Sprint(r.Small.Errors),
		fmt.Sprint(r.Shed), duration(r.Small.P50).String(), duration(r.Small.P99).String(), byRound(r.P99), byRound(r.AloneP99), duration(r.Small.Max).String(), duration(r.Lag).String(),
	}
	if r.Large == nil {
		cells = append(cells, "–", "–", "–", "–")
	} else {
		cells = append(cells, fmt.Sprint(r.Large.Answered), fmt.Sprint(r.Large.Errors), duration(r.Large.P50).String(), duration(r.Large.Max).String())
	}
	return strings.Join(cells, "\t") + "\t"
}

// capacity returns the capacity, or a dash if the rate was given.
func capacity(r *Result) string {
	if r.Capacity == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", r.Capacity)
}

// byRound returns the median of the rounds, and its interval if there were enough of them.
func byRound(p99 compare.Estimate) string {
	if p99.Low == nil {
		return fmt.Sprintf("%v (±∞)", duration(p99.Median))
	}
	return fmt.Sprintf("%v (%v–%v)", duration(p99.Median), duration(*p99.Low), duration(*p99.High))
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
