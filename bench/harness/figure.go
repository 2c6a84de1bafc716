package harness

import (
	"fmt"
	"slices"

	"github.com/rankd/rankd/bench/load"
)

// Sample is what one round of one subject measured. Immutable once built.
type Sample struct {
	Failure string // why nothing was measured: the subject takes no further part in the scenario
	// Figures has values by the keys of figures. Unknown values are absent.
	Figures   map[string]float64
	Latencies map[string]load.Histogram // to be merged over the rounds
	Errors    map[string]string         // the first failed request of each kind
}

// Figure is something that the rounds tell of a subject, and the column that shows it. Immutable.
type Figure struct {
	Key    string // in samples and in JSON, with the unit: "p50_us"
	Head   string // of the column; empty: JSON alone has it
	Text   func(Estimate) string
	Spread bool // a column after it says how far the rounds differ
	Fold   Fold // nil: Median
}

// A Fold computes a figure of a subject from the samples of its rounds, and from those of all subjects. ok is false if it is unknown. Immutable.
type Fold func(key string, own []Sample, all [][]Sample) (e Estimate, ok bool)

// values returns the values of the rounds that have one.
func values(key string, rounds []Sample) (v []float64) {
	for _, s := range rounds {
		if x, ok := s.Figures[key]; ok {
			v = append(v, x)
		}
	}
	return v
}

// Median is the median over the rounds.
func Median(key string, own []Sample, _ [][]Sample) (Estimate, bool) {
	v := values(key, own)
	return EstimateOf(v), len(v) > 0
}

// Sum is the sum over the rounds.
func Sum(key string, own []Sample, _ [][]Sample) (Estimate, bool) {
	v, sum := values(key, own), 0.0
	for _, x := range v {
		sum += x
	}
	return exact(sum), len(v) > 0
}

// merged returns the latencies of all rounds; ok is false if there are none.
func merged(latencies string, own []Sample) (all load.Histogram, ok bool) {
	all = load.NewHistogram()
	for _, s := range own {
		if h := s.Latencies[latencies].Histogram; h != nil {
			all.Merge(h)
			ok = true
		}
	}
	return all, ok
}

// Quantile is a percentile of the latencies of all rounds, in µs; 100 is the greatest.
func Quantile(latencies string, percent float64) Fold {
	return func(_ string, own []Sample, _ [][]Sample) (Estimate, bool) {
		all, ok := merged(latencies, own)
		return exact(all.Micros(percent)), ok
	}
}

// Mean is the mean of the latencies of all rounds, in µs.
func Mean(latencies string) Fold {
	return func(_ string, own []Sample, _ [][]Sample) (Estimate, bool) {
		all, ok := merged(latencies, own)
		return exact(all.Mean() / 1000), ok
	}
}

// Versus compares a value of a subject with that of another subject, round by round. It is unknown if the other subject was not measured.
func Versus(other int, key string, compare func(own, other float64) float64) Fold {
	return func(_ string, own []Sample, all [][]Sample) (Estimate, bool) {
		if other >= len(all) {
			return Estimate{}, false
		}
		v := pairwise(own, all[other], key, key, compare)
		return EstimateOf(v), len(v) > 0
	}
}

// pairwise compares values of the same rounds. It skips rounds that lack one, or in which the other one is 0.
func pairwise(a, b []Sample, keyA, keyB string, compare func(a, b float64) float64) (v []float64) {
	for i := range min(len(a), len(b)) {
		x, okX := a[i].Figures[keyA]
		y, okY := b[i].Figures[keyB]
		if okX && okY && y != 0 {
			v = append(v, compare(x, y))
		}
	}
	return v
}

// Ratio returns a divided by b.
func Ratio(a, b float64) float64 { return a / b }

// Difference returns a minus b.
func Difference(a, b float64) float64 { return a - b }

// The forms of a column.
var (
	Whole    = form("%.0f")
	One      = form("%.1f")
	Two      = form("%.2f")
	Three    = form("%.3f")
	Bytes    = form("%.0f B")
	MiB      = form("%.0f MiB")
	Over     = form("%+.1f")
	Percent  = func(e Estimate) string { return fmt.Sprintf("%.0f %%", 100*e.Median) }
	Duration = func(e Estimate) string { return Micros(e.Median).String() }
	Interval = Estimate.Durations
	Factor   = Estimate.Factor
)

func form(format string) func(Estimate) string {
	return func(e Estimate) string { return fmt.Sprintf(format, e.Median) }
}

// TableSpec is a table of figures: a row for each result. Immutable.
type TableSpec struct {
	Title   string
	Figures []Figure
	Missing string // the text of a row that has none of them; empty: dashes
}

// Table returns the table. Its first row has the heads; the first columns are the labels that have heads.
func (t *TableSpec) Table(results []*Result) Table {
	var head []string
	if len(results) > 0 {
		for _, l := range results[0].Labels {
			if l.Head != "" {
				head = append(head, l.Head)
			}
		}
	}
	for _, f := range t.Figures {
		if f.Head != "" {
			head = append(head, f.Head)
		}
		if f.Spread {
			head = append(head, "±")
		}
	}
	table := Table{Title: t.Title, Rows: [][]string{head}}
	for _, r := range results {
		table.Rows = append(table.Rows, t.row(r, len(head)))
	}
	return table
}

const unknown = "–"

// row returns the row of a result, with as many cells as the head has.
func (t *TableSpec) row(r *Result, width int) []string {
	row := t.cells(r)
	return append(row, make([]string, width-len(row))...)
}

func (t *TableSpec) cells(r *Result) (row []string) {
	for _, l := range r.Labels {
		if l.Head != "" {
			row = append(row, l.text())
		}
	}
	if r.Failure != "" {
		return append(row, "failed")
	}
	if t.Missing != "" && !slices.ContainsFunc(t.Figures, func(f Figure) bool { _, ok := r.Figures[f.Key]; return ok }) {
		return append(row, t.Missing)
	}
	for _, f := range t.Figures {
		if f.Head == "" {
			continue
		}
		text, spread := unknown, unknown
		if e, ok := r.Figures[f.Key]; ok {
			text, spread = f.Text(e), e.Spread()
		}
		if row = append(row, text); f.Spread {
			row = append(row, spread)
		}
	}
	return row
}
