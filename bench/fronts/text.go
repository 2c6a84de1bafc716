package fronts

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the verdicts and a table. head describes the machine and the settings.
func WriteText(w io.Writer, head string, callers []Caller, results []Result) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, head)
	fmt.Fprintln(&out)
	for _, v := range Verdicts(callers, results) {
		fmt.Fprintln(&out, v)
	}
	fmt.Fprintln(&out)
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "caller\t%d in flight: requests/s\t\tp99\tCPU each, µs\t\tover %s\t%d in flight: p50\t\tover %s\t\n", Many, InProcess, One, InProcess)
	for i := range results {
		r := &results[i]
		p99, cpuOver, p50Over := "–", "–", "–"
		if r.P99.Median > 0 {
			p99 = duration(r.P99.Median).String()
		}
		if i > 0 {
			cpuOver, p50Over = fmt.Sprintf("%+.1f", r.CPUOver.Median), fmt.Sprintf("%+.0f µs", r.P50Over.Median)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%s\t%.1f\t%s\t%s\t%v\t%s\t%s\t\n", r.Caller, r.PerSecond.Median, r.PerSecond.Spread(), p99,
			r.CPU.Median, r.CPU.Spread(), cpuOver, duration(r.P50.Median), r.P50.Spread(), p50Over)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}
