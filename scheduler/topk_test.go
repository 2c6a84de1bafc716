package scheduler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sort that a take follows gives the same rows selected as sorted, on each engine and in each mode.
func TestTopK(t *testing.T) {
	const rows, count = 1000, 7
	g := builtinGraph(t, "t", source(rows), vmNode("v", "src"), node("s", "sort", "v", `"by": 2001, "order": "desc"`, ""),
		node("t", "take", "s", `"count": 7`, ""))
	want := make([]int64, count)
	for i := range want {
		want[i] = rows - int64(i)
	}
	for _, mode := range []Mode{Adaptive, OffloadAll, InlineAll} {
		cfg := Config{Registry: testRegistry(t), Placement: Placement{Mode: mode}}
		async := open(t, cfg)
		for name, e := range map[string]Engine{"async": async, "pool": OpenPool(cfg), "sequential": OpenSequential(cfg)} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				defer e.Close(Forever)
				results := make(chan *Result, 1)
				for _, own := range []*Mode{nil, new(Mode)} {
					e.Submit(&Execution{Graph: g, Mode: own}, func(r *Result) { results <- r })
					requireRows(t, <-results, want...)
				}
			})
		}
	}
}

func TestTopKIsCounted(t *testing.T) {
	g := builtinGraph(t, "t", source(10), node("s", "sort", "src", `"by": 1`, ""), node("t", "take", "s", `"count": 7`, ""))
	for mode, want := range map[Mode]uint64{Adaptive: 1, OffloadAll: 0, InlineAll: 1} {
		w := newPlacedWorld(t, 0, Placement{Mode: mode})
		p := w.start(w.within(g, 0))
		w.finishAll()
		require.NotNil(t, p.Result)
		requireRows(t, p.Result, idsUpTo(7, 1)...)
		all, _ := w.placementMetrics()
		assert.Equal(t, want, all.TopK, mode)
	}
}
