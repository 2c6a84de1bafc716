package placement

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rankd/rankd/bench/compare"
)

// Answer says in one sentence how adaptive compares with offload_all in each scenario, and with the
// other build if there was one. results has the results of each scenario, as Measure returns them.
func Answer(scenarios []Scenario, results [][]Result) string {
	var parts, base []string
	for i := range results {
		r := &results[i][adaptive]
		parts = append(parts, fmt.Sprintf("%s %s at %s", r.Scenario, r.Better.Factor(), scenarios[i].Key))
		if r.BetterThanBase.Median > 0 {
			base = append(base, fmt.Sprintf("%s %s", r.Scenario, r.BetterThanBase.Factor()))
		}
	}
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	text := "Against offload_all, adaptive is better by: " + strings.Join(parts, "; ") + "."
	if len(base) > 0 {
		text += " Against the other build: " + strings.Join(base, "; ") + "."
	}
	return text
}

// Verdicts says which aims of the scenarios are met.
func Verdicts(scenarios []Scenario, results [][]Result) (verdicts []compare.Verdict) {
	for i := range results {
		s, r := &scenarios[i], &results[i][adaptive]
		for _, aim := range s.Aims {
			v := compare.Verdict{Bound: aim.Bound}
			switch aim.Of {
			case Ratio:
				v.Aim, v.Unit, v.Estimate = fmt.Sprintf("%s: adaptive better than offload_all at %s", s.Name, s.Key), "×", r.Better
			case Median:
				v.Aim, v.Unit, v.Estimate = s.Name+": p50 of adaptive", " µs", r.P50
			case Callback:
				v.Aim, v.Unit, v.Estimate = s.Name+": p99.9 of a loop callback's processor time", " µs", r.CallbackCPU
			}
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// WriteText writes the answer, the settings, a table and the verdicts.
func WriteText(w io.Writer, head string, scenarios []Scenario, results [][]Result) error {
	fmt.Fprintf(w, "%s\n\n%s\n\n", Answer(scenarios, results), head)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tvariant\trequests/s\tp50 µs\tp99 µs\tcheap p99\tCPU µs\tbetter by\tinline\tfused\tqueue p50\tstart mean\tp99\thop p50\tcallback p50\tp99\tp99.9\tmax\tits CPU p99\tp99.9\t")
	for i := range results {
		for j, r := range results[i] {
			fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%.1f\t%s\t%s\t%s\t", r.Scenario, r.Variant, r.PerSecond.Median, r.P50.Median, r.P99.Median,
				known("%.0f", r.CheapP99), known("%.1f", r.CPU), r.Better.Factor())
			if j >= base {
				fmt.Fprintln(t, strings.Repeat("–\t", 12))
				continue
			}
			fmt.Fprintf(t, "%.0f %%\t%.0f %%\t%s\t%s\t%s\t%s\t%.1f\t%.1f\t%.1f\t%.0f\t%s\t%s\t\n", 100*r.InlineRate.Median, 100*r.FusedRate.Median,
				known("%.1f", r.QueueDelay), known("%.1f", r.StartMean), known("%.1f", r.StartP99), known("%.1f", r.RoundTrip), r.CallbackP50.Median, r.CallbackP99.Median, r.CallbackP999.Median,
				r.CallbackMax.Median, known("%.1f", r.CallbackCPU99), known("%.1f", r.CallbackCPU))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if verdicts := Verdicts(scenarios, results); len(verdicts) > 0 {
		fmt.Fprintln(w, "\naims:")
		for _, v := range verdicts {
			fmt.Fprintf(w, "  %s\n", v)
		}
	}
	return nil
}

// known returns the median as text, or a dash if nothing was measured.
func known(format string, e compare.Estimate) string {
	if e.Median == 0 {
		return "–"
	}
	return fmt.Sprintf(format, e.Median)
}
