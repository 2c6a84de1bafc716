package scheduler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func TestPlace(t *testing.T) {
	const redis = `"endpoint": "ep_0001"`
	for _, c := range []struct {
		op, input, params string
		want              where
	}{
		{"fixed_source", "", `"row_count": -1`, onLoop},
		{"fixed_source", "", ``, onLoop},
		{"fixed_source", "", `"row_count": 2048`, onLoop},
		{"fixed_source", "", `"row_count": 2049`, onPool},
		{"fixed_source", "", `"row_count": 100000000`, onPool},
		{"viewer", "", redis, onLoop},
		{"follow", "src", redis + `, "fanout": 10000000`, onLoop},
		{"recommendation", "src", redis + `, "fanout": 1`, onLoop},
		{"media", "src", redis + `, "fanout": 1`, onLoop},
		{"sleep", "src", `"duration_ms": 1`, onLoop},
		{"vm", "src", `"out_key": 2001, "expr_id": "score"`, onPool},
		{"filter", "src", `"pred_id": "big"`, onPool},
		{"sort", "src", `"by": 1`, onPool},
		{"take", "src", `"count": 1`, onPool},
		{"concat", "src", `"rhs": "src"`, onPool},
		{"busy_cpu", "src", `"busy_wait_ms": 0`, onPool},
	} {
		g := builtinGraph(t, "x", source(1), node("x", c.op, c.input, c.params, ""))
		assert.Equal(t, c.want, newProfile(g).nodes[1].there, "%s {%s}", c.op, c.params)
	}
}

// A source of few rows is computed on the loop, a larger one on the pool.
func TestALargeSourceRunsOnThePool(t *testing.T) {
	w := newHandWorld(t, 0)
	small := w.start(w.within(builtinGraph(t, "src", source(loopRowsMax)), 0))
	large := w.start(w.within(builtinGraph(t, "src", source(loopRowsMax+1)), 0))
	w.Settle()
	require.NotNil(t, small.Result)
	require.NoError(t, small.Err)
	assert.Equal(t, loopRowsMax, small.Outputs[0].Len())
	require.Nil(t, large.Result, "it waits for a worker")
	require.Len(t, w.cpu.queued, 1)
	w.cpu.finish(w.cpu.take())
	w.Settle()
	require.NotNil(t, large.Result)
	requireRows(t, large.Result, idsUpTo(loopRowsMax+1, 1)...)
}

// A large source that times out is given up like any work on the pool.
func TestALargeSourceTimesOut(t *testing.T) {
	for _, started := range []bool{false, true} {
		t.Run(fmt.Sprintf("started %v", started), func(t *testing.T) {
			w := newHandWorld(t, 0)
			p := w.start(w.within(builtinGraph(t, "src", source(loopRowsMax+1)), ms(10)))
			w.Settle()
			var job *cpupool.Job
			if started {
				job = w.cpu.take()
			}
			w.Advance(ms(10))
			require.NotNil(t, p.Result)
			requireTimeout(t, p.Err, ErrNodeTimeout)
			if started {
				w.cpu.finish(job)
				w.Settle()
			}
			assert.Empty(t, w.cpu.queued)
			assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, Cancelled: 1}, w.counted())
		})
	}
}

// The rows of an orphan count for its own request, and not for the next request that uses the
// same memory.
func TestAnOrphanCountsForItsOwnRequest(t *testing.T) {
	w := newHandWorld(t, 0)
	w.maxRows = 10
	var late error
	tasks := builtins(t, task.Spec{Op: "test::late", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		late = c.MakeRows(8)
		return rowset.Dense(new(rowset.Batch)), late
	}})
	first := w.start(w.within(graph(t, tasks, "late", node("late", "late", "", "", "")), ms(10)))
	w.Settle()
	place := w.runs.First()
	job := w.cpu.take()
	w.Advance(ms(10))
	require.NotNil(t, first.Result)
	requireTimeout(t, first.Err, ErrNodeTimeout)

	w.cpu.auto = true
	second := w.start(w.within(builtinGraph(t, "x", source(3), sleepNode("nap", "src", ms(10)), concatNode("x", "nap", "nap")), 0))
	w.Settle()
	require.Same(t, place, w.runs.First())
	w.cpu.finish(job)
	w.Advance(ms(10))
	require.NoError(t, late, "8 of 10")
	require.NotNil(t, second.Result)
	requireRows(t, second.Result, idsUpTo(3, 2)...) // 3 and 6 of 10
}

// A request has the whole bound, however many rows the last user of its memory has made.
func TestEachRequestHasTheWholeBound(t *testing.T) {
	w := newHandWorld(t, 0)
	w.maxRows = 10
	for _, rows := range []int{10, 11, 10, 9, 11, 10} {
		p := w.start(w.within(builtinGraph(t, "src", source(rows)), 0))
		w.Settle()
		require.NotNil(t, p.Result)
		if rows > 10 {
			require.ErrorIs(t, p.Err, task.ErrTooManyRows)
			assert.EqualError(t, p.Err, "node src (test::fixed_source): cannot make 11 rows: "+
				"10 are left of the 10 that the nodes of a request may make together (max_rows)")
			continue
		}
		require.NoError(t, p.Err)
	}
	require.Len(t, w.freeRuns.items, 1, "all in one place")
}

// BenchmarkSourcePlace shows from which size on the pool pays off: the time of a request of one
// source, by rows and place.
func BenchmarkSourcePlace(b *testing.B) {
	var here, there task.Spec
	for _, spec := range builtin.Specs() {
		if spec.Op == "test::fixed_source" {
			here, there = spec, spec
			here.Op, here.Cost = "bench::loop", nil
			there.Op, there.Place, there.Cost = "bench::pool", task.Computes, nil
		}
	}
	tasks := builtins(b, here, there)
	w := openWorld(b, Config{})
	for _, rows := range []int{1, 1024, 2048, 4096, 16384, 65536, 1 << 20} {
		for _, op := range []string{here.Op, there.Op} {
			g := graph(b, tasks, "src", node("src", op, "", fmt.Sprintf(`"row_count": %d`, rows), ""))
			b.Run(fmt.Sprintf("%s/%d", op, rows), func(b *testing.B) {
				for b.Loop() {
					w.run(&Execution{Graph: g})
				}
			})
		}
	}
}
