package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/rankd/rankd/bench/load"
)

// Comparison is the outcome of one run of a benchmark. --json prints it, and the HTML report
// shows it. Immutable once built.
type Comparison struct {
	Title    string   `json:"title"`
	Facts    Facts    `json:"facts"`
	Settings Settings `json:"settings"`
	Cells    []Cell   `json:"cells"`
	// Knees has one knee per engine and conditions, if a closed loop ran at several
	// concurrencies. The knees of the first conditions come first.
	Knees []Knee `json:"knees,omitempty"`
	// Ceilings has one ceiling for each load, if redis-benchmark ran.
	Ceilings []Ceiling `json:"ceilings,omitempty"`
	// Verdicts say which aims are met: see Judge.
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Settings are common to all rounds. Immutable.
type Settings struct {
	Scenario string     `json:"scenario,omitempty"` // that brought plan, data and users; empty means that flags did
	Plan     string     `json:"plan"`
	Fanout   int        `json:"fanout,omitempty"` // 0 means the plan's own
	Users    load.Users `json:"users"`
	// Unshared says that no engine of this build shares equal reads unless its name says so: one user
	// makes all reads equal.
	Unshared bool          `json:"reads_unshared,omitempty"`
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"duration_ns"`       // of a round
	Warmup   time.Duration `json:"warmup_ns"`         // before each round
	Ceiling  string        `json:"ceiling,omitempty"` // the command line of redis-benchmark, with its version
}

// Series returns the cells of one engine under the same conditions, by ascending rate and
// concurrency.
func (c *Comparison) Series(engine string, under Conditions) []Cell {
	var series []Cell
	for _, cell := range c.Cells {
		if cell.Engine == engine && cell.Conditions == under {
			series = append(series, cell)
		}
	}
	slices.SortStableFunc(series, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Concurrency, b.Concurrency))
	})
	return series
}

// Engines returns the engines in the order in which they were given.
func (c *Comparison) Engines() []string {
	return distinct(c.Cells, func(cell Cell) string { return cell.Engine })
}

// Conditions returns the conditions in the order in which they were given.
func (c *Comparison) Conditions() []Conditions {
	return distinct(c.Cells, func(cell Cell) Conditions { return cell.Conditions })
}

// FindKnees fills in Knees.
func (c *Comparison) FindKnees() {
	for _, under := range c.Conditions() {
		for _, engine := range c.Engines() {
			series := c.Series(engine, under)
			if len(series) < 2 || series[0].Rate > 0 {
				continue
			}
			if k, ok := FindKnee(series); ok {
				k.Conditions = under
				c.Knees = append(c.Knees, k)
			}
		}
	}
}

// distinct returns each value of the cells once, in the order of first occurrence.
func distinct[T comparable](cells []Cell, of func(Cell) T) (values []T) {
	for _, c := range cells {
		if v := of(c); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}
