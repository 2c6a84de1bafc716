package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

// A sort with a take after it gives the same rows on each engine and in each mode. The engine
// may sort all rows, or select some.
func TestTopK(t *testing.T) {
	const rows, count = 1000, 7
	g := graph(t, builtin.Catalog(), "t", source(rows), vmNode("v", "src"), node("s", "sort", "v", `"by": 2001, "order": "desc"`, ""),
		node("t", "take", "s", `"count": 7`, ""))
	want := make([]int64, count)
	for i := range want {
		want[i] = rows - int64(i)
	}
	for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
		cfg := scheduler.Config{Registry: testRegistry(t), Placement: scheduler.Placement{Mode: mode}}
		async := openAsync(t, cfg)
		for name, e := range map[string]scheduler.Engine{
			"async": async, "pool": blocking.OpenTwoPools(cfg), "sequential": blocking.OpenSequential(cfg),
		} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				defer e.Close(scheduler.Forever)
				results := make(chan *scheduler.Result, 1)
				for _, own := range []plan.Mode{"", plan.Adaptive} {
					e.Submit(&scheduler.Execution{Graph: g, Mode: own}, func(r *scheduler.Result) { results <- r })
					requireRows(t, <-results, want...)
				}
			})
		}
		counted := map[plan.Mode]uint64{plan.Adaptive: 2, plan.OffloadAll: 1, plan.InlineAll: 2} // one has a mode of its own
		assert.Equal(t, counted[mode], async.Metrics().Placement.TopK, mode)
	}
}
