package placement

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Answer says in one sentence how adaptive compares with offload_all in each scenario. results
// has the results of each scenario, as Measure returns them.
func Answer(scenarios []Scenario, results [][]Result) string {
	var parts []string
	for i := range results {
		for _, r := range results[i][1:2] {
			s := &scenarios[i]
			part := fmt.Sprintf("%s %s at %s", s.Name, r.Better.Factor(), s.Key)
			if _, missed := s.wanted(&r); missed != "" {
				part += ", which misses " + missed
			}
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	return "Against offload_all, adaptive is better by: " + strings.Join(parts, "; ") + "."
}

// wanted says what is expected of adaptive, and which of it is missed. A ratio misses only if its
// interval lies wholly below.
func (s *Scenario) wanted(r *Result) (all, missed string) {
	var wants, misses []string
	want := func(text string, met bool) {
		wants = append(wants, text)
		if !met {
			misses = append(misses, text)
		}
	}
	if s.MinRatio > 0 {
		best := r.Better.Median
		if r.Better.High != nil {
			best = *r.Better.High
		}
		want(fmt.Sprintf("%g×", s.MinRatio), best >= s.MinRatio)
	}
	if s.Max > 0 {
		want(fmt.Sprintf("%g µs", s.Max), r.P50.Median <= s.Max)
	}
	if s.MaxCallback > 0 {
		want(fmt.Sprintf("callbacks of %v", s.MaxCallback), r.Callback.Median*1000 <= float64(s.MaxCallback))
	}
	return strings.Join(wants, " and "), strings.Join(misses, " and ")
}

// WriteText writes the answer, the settings and a table.
func WriteText(w io.Writer, head string, scenarios []Scenario, results [][]Result) error {
	fmt.Fprintf(w, "%s\n\n%s\n\n", Answer(scenarios, results), head)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tvariant\trequests/s\tp50 µs\tp99 µs\tcheap p99\tbetter by\twanted\tinline\tfused\tqueue p50\thop p50\tcallback p99\tp99.9\t")
	for i := range results {
		for j, r := range results[i] {
			wanted := ""
			if j == 1 {
				var missed string
				if wanted, missed = scenarios[i].wanted(&r); missed != "" {
					wanted += "; misses " + missed
				}
			}
			cheapP99 := ""
			if r.CheapP99.Median > 0 {
				cheapP99 = fmt.Sprintf("%.0f", r.CheapP99.Median)
			}
			fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%.1f\t%s\t%s\t%s\t%.0f %%\t%.0f %%\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.Scenario, r.Variant,
				r.PerSecond.Median, r.P50.Median, r.P99.Median, cheapP99, r.Better.Factor(), wanted, 100*r.InlineRate.Median, 100*r.FusedRate.Median,
				r.QueueDelay.Median, r.RoundTrip.Median, r.CallbackP99.Median, r.Callback.Median)
		}
	}
	return t.Flush()
}
