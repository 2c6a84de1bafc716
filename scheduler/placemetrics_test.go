package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The figures of each job: how long it waited for a worker, and the way there and back without
// the work itself.
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
	assert.EqualValues(t, 2, all.Offloaded)
	assert.EqualValues(t, 2, all.Fused)
	assert.Equal(t, map[string]PlacementStats{"test": all}, plans)
}

// A program that loads plans for ever does not fill the engine with them, and no count is lost.
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

// Metrics of a running engine, through the interface.
func TestMetricsHaveThePlacement(t *testing.T) {
	w := open(t, Config{})
	for range 3 {
		require.NoError(t, w.run(&Execution{Graph: builtinGraph(t, "x", source(5), vmNode("x", "src"))}).Err)
	}
	m := w.Metrics()
	assert.EqualValues(t, 6, m.Placement.Inline+m.Placement.Offloaded)
	assert.Equal(t, m.Placement, m.Plans["test"])
	assert.NotZero(t, m.Loop.CallbackTime.Count)
	assert.LessOrEqual(t, m.Loop.CallbackTime.P50, m.Loop.CallbackTime.Max)
}
