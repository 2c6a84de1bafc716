package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Each job is measured: how long it waited for a worker, and the way there and back without the
// work itself.
func TestPlacementMetrics(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	work := task.Spec{Op: "test::work", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		w.Harness.Clock.Advance(ms(40))
		return c.Inputs[0], nil
	}}
	p := w.start(w.within(graph(t, builtins(t, work), "b", source(1), node("a", "work", "src", "", ""), node("b", "work", "a", "", "")), 0))
	w.Settle()
	w.Advance(ms(3))
	job := w.cpu.take()
	job.Work()
	w.Advance(ms(2))
	w.Loop.Post(func() { job.Done(nil) })
	w.Settle()
	require.NotNil(t, p.Result)
	require.NoError(t, p.Err)
	all, plans := w.placementMetrics()
	assert.Equal(t, ms(3), all.QueueDelay.Max)
	assert.Equal(t, ms(5), all.OffloadRoundTrip.Max)
	assert.EqualValues(t, 1, all.QueueDelay.Count)
	assert.EqualValues(t, 1, all.InlineTime.Count, "the source")
	assert.EqualValues(t, 3, all.StartDelay.Count, "each node, wherever it ran")
	assert.Equal(t, ms(3), all.StartDelay.Max, "of the first node of the job")
	assert.Zero(t, all.StartDelay.P50, "the source, and the second node of the job, start at once")
	assert.EqualValues(t, 3, all.StartBuckets.Count)
	assert.EqualValues(t, 2, all.StartBuckets.Below[0])
	assert.Equal(t, OpStats{Runs: 2, Time: ms(80)}, w.opMetrics()["test::work"])
	assert.EqualValues(t, 2, all.Offloaded)
	assert.EqualValues(t, 2, all.Fused)
	assert.Equal(t, map[string]PlacementStats{"test": all}, plans)
}

// A callback of the loop counts for the plan that it works for. Such callbacks begin requests,
// resume nodes and hand jobs back.
func TestCallbackTimeOfAPlan(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	wakes := task.Spec{Op: "test::wakes", Inputs: 1, Output: task.PassThrough, Place: task.OnLoop, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		err := c.Sleep(ms(100))
		w.Harness.Clock.Advance(ms(7))
		return c.Inputs[0], errors.Join(err, c.Sleep(ms(100)))
	}}
	short, long := ms(1), ms(3)
	tasks := builtins(t, wakes, timedTask(w, "test::short", &short, func(s *task.Spec) { s.Cheap = true }),
		timedTask(w, "test::long", &long, func(s *task.Spec) { s.Cheap = true }))
	named := func(name, last string, nodes ...string) *plan.Graph {
		g := graph(t, tasks, last, nodes...)
		g.Name = name
		return g
	}
	run := func(g *plan.Graph) {
		p := w.start(w.within(g, 0))
		w.Settle()
		for p.Result == nil {
			w.Advance(ms(100))
			w.finishAll()
		}
		require.NoError(t, p.Err)
	}
	run(named("short", "x", source(1), node("x", "short", "src", "", "")))
	run(named("long", "x", source(1), node("x", "long", "src", "", "")))
	run(named("resumed", "x", source(1), node("x", "wakes", "src", "", "")))
	run(named("handed back", "x", source(1), sleepNode("nap", "src", ms(1)), node("v", "vm", "nap", `"out_key": 2001, "expr_id": "score"`, ""),
		node("x", "long", "v", "", "")))
	_, plans := w.placementMetrics()
	for name, want := range map[string]time.Duration{"short": ms(1), "long": ms(3), "resumed": ms(7)} {
		assert.Equal(t, want, plans[name].CallbackTime.Max, name)
	}
	assert.EqualValues(t, 1, plans["short"].CallbackTime.Count)
	assert.EqualValues(t, 3, plans["resumed"].CallbackTime.Count, "it begins, and goes on after each of its sleeps")
	assert.EqualValues(t, 3, plans["handed back"].CallbackTime.Count, "it begins, goes on after its sleep, and takes its job back")
}

// A program that goes on loading plans does not fill the engine with them, and each count is
// kept.
func TestPlansAreForgotten(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	nap := w.start(w.within(builtinGraph(t, "x", source(1), sleepNode("x", "src", time.Second)), 0))
	w.Settle()
	const plans = 2*profilesMax + 7
	g := builtinGraph(t, "src", source(1))
	for range plans {
		another := new(plan.Graph)
		*another = *g
		p := w.start(w.within(another, 0))
		w.Settle()
		require.NotNil(t, p.Result)
	}
	assert.LessOrEqual(t, len(w.profiles), profilesMax)
	w.Advance(time.Second)
	require.NotNil(t, nap.Result)
	require.NoError(t, nap.Err)
	all, _ := w.placementMetrics()
	assert.EqualValues(t, plans+1, all.Inline)
	assert.EqualValues(t, plans+1, all.InlineTime.Count)
}

// Metrics of a running engine are read through the interface.
func TestMetricsHaveThePlacement(t *testing.T) {
	w := openWorld(t, Config{})
	for range 3 {
		require.NoError(t, w.run(&Execution{Graph: builtinGraph(t, "x", source(5), vmNode("x", "src"))}).Err)
	}
	var m Metrics
	// Metrics reads the histograms while the loop runs: a reading may fall between the two
	// updates of one callback.
	require.Eventually(t, func() bool {
		m = w.Metrics()
		return clock.NewThreadCPU() == nil || m.Loop.CallbackTime.Count == m.Loop.CallbackCPU.Count
	}, 10*time.Second, time.Millisecond)
	assert.EqualValues(t, 6, m.Placement.Inline+m.Placement.Offloaded)
	assert.Equal(t, m.Placement, m.Plans["test"])
	assert.NotZero(t, m.Loop.CallbackTime.Count)
	assert.LessOrEqual(t, m.Loop.CallbackTime.P50, m.Loop.CallbackTime.Max)
	assert.NotZero(t, m.Placement.CallbackTime.Count)
	if clock.NewThreadCPU() != nil {
		assert.Equal(t, m.Placement.CallbackTime.Count, m.Placement.CallbackCPU.Count)
		assert.LessOrEqual(t, m.Loop.CallbackCPU.Max, m.Loop.CallbackTime.Max)
	}
}

// The wait for the loop's budget counts as the start delay of a node. So does the wait for a
// slow node in front of it. A task that waits takes as long as it waits.
func TestStartDelayOnTheLoop(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{InlineBudget: ms(1), NoContinuationChaining: true})
	long := ms(3)
	sleeps := task.Spec{Op: "test::sleeps", Inputs: 1, Output: task.PassThrough, Place: task.OnLoop, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		return c.Inputs[0], c.Sleep(ms(100))
	}}
	tasks := builtins(t, sleeps, timedTask(w, "test::long", &long, func(s *task.Spec) { s.Cheap = true }))
	g := graph(t, tasks, "out", source(1), node("a", "long", "src", "", ""), node("b", "long", "src", "", ""), node("c", "sleeps", "a", "", ""),
		`{"node_id": "out", "op": "core::concat", "inputs": ["c"], "params": {"rhs": "b"}}`)
	p := w.start(w.within(g, 0))
	w.Settle()
	w.Advance(ms(100))
	require.NotNil(t, p.Result)
	require.NoError(t, p.Err)
	all, _ := w.placementMetrics()
	assert.EqualValues(t, 1, all.Deferred)
	assert.EqualValues(t, 5, all.StartDelay.Count)
	assert.Equal(t, ms(3), all.StartDelay.Max, "b, after a")
	assert.Equal(t, OpStats{Runs: 1, Time: ms(100)}, w.opMetrics()["test::sleeps"])
	assert.Equal(t, OpStats{Runs: 2, Time: ms(6)}, w.opMetrics()["test::long"])
}
