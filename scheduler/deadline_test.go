package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// The tests of this file run on the real engine, in real time: rows of the seeds in which more is to be seen than
// in TestSeedRows, which has them all. What has to be late would take an hour, what has to be in time
// has one: no verdict hangs on how fast the machine is.

const soon = 10 * time.Millisecond

func TestThreeBranchDAGWithConcurrentSleepAndVM(t *testing.T) {
	g := builtinGraph(t, "all", source(3),
		sleepNode("left", "src", 20*time.Millisecond),
		sleepNode("right", "src", 30*time.Millisecond),
		vmNode("score", "src"),
		concatNode("sleepers", "left", "right"),
		concatNode("all", "sleepers", "score"))
	check := func(r *Result) {
		t.Helper()
		requireRows(t, r, idsUpTo(3, 3)...)
		score := r.Outputs[0].Batch.Float(finalScore)
		assert.Equal(t, []float64{0, 0, 0, 0, 0, 0, 2, 4, 6}, score.Values)
		for row := range 9 {
			assert.Equal(t, row >= 6, score.Valid.Get(row), "only the rows of the vm branch have a score")
		}
	}
	t.Run("real time", func(t *testing.T) {
		w := open(t, Config{})
		check(w.run(w.within(g, ample)))
	})
	t.Run("branches side by side", func(t *testing.T) {
		w := newHandWorld(t, 0)
		w.cpu.auto = true
		p := w.start(w.within(g, 0))
		w.Settle()
		assert.Equal(t, 2, w.runs.items[0].state.Inflight(), "both sleeps wait at the same time, vm is done")
		w.Advance(ample)
		require.NotNil(t, p.Result)
		assert.Equal(t, 30*time.Millisecond, p.at, "as long as the longest branch, not their sum")
		check(p.Result)
	})
}

func TestFaultInjectionNoDeadlockOrUAFOnError(t *testing.T) {
	g := builtinGraph(t, "all", source(3),
		node("failing", "sleep", "src", `"duration_ms": 5, "fail_after_sleep": true`, ""),
		sleepNode("slow", "src", 15*time.Millisecond),
		busyNode("busy", "src", soon),
		concatNode("some", "failing", "slow"),
		concatNode("all", "some", "busy"))
	t.Run("real time", func(t *testing.T) {
		w := open(t, Config{})
		for range 3 {
			r := w.run(w.within(g, ample))
			require.ErrorIs(t, r.Err, builtin.ErrInjected)
			requireNode(t, r.Err, "failing")
			assert.Nil(t, r.Outputs)
		}
		requireRows(t, w.run(w.within(builtinGraph(t, "src", source(2)), ample)), 1, 2)
		assert.Equal(t, Counts{Requests: 4, Failed: 3}, w.counted())
	})
	t.Run("fail fast, then drain", func(t *testing.T) {
		w := newHandWorld(t, 0)
		p := w.start(w.within(g, 0))
		w.Advance(soon)
		assert.Nil(t, p.Result, "failed, but two nodes are in flight")
		w.Advance(ample)
		assert.Nil(t, p.Result, "one node is in flight")
		job := w.cpu.take()
		w.Loop.Post(func() { job.Done(nil) })
		w.Settle()
		require.NotNil(t, p.Result)
		require.ErrorIs(t, p.Err, builtin.ErrInjected)
		assert.Empty(t, w.cpu.queued, "nothing starts after the error")
	})
}

func TestFixedSourceOnlyNoCPUOffload(t *testing.T) {
	w := open(t, Config{NodeTimeout: ample})
	requireRows(t, w.run(w.within(builtinGraph(t, "src", source(5)), ample)), 1, 2, 3, 4, 5)
	m := w.Metrics()
	assert.Zero(t, m.CPU.Submitted, "it runs on the loop")
}

func TestLateCompletionIncrementsCounter(t *testing.T) {
	t.Run("of a body on the loop that does not look", func(t *testing.T) {
		time := clock.NewManual() // so that the body is late when it has begun, and not before
		w := open(t, Config{NodeTimeout: soon, Clock: time})
		entered := make(chan struct{}, 1)
		g := graph(t, builtins(t, loopTask("test::deaf", func(c *task.Ctx) (rowset.RowSet, error) {
			entered <- struct{}{}
			_ = c.Sleep(5 * soon)
			return noRows, nil
		})), "x", node("x", "deaf", "", "", ""))
		result := w.start(&Execution{Graph: g, UserID: 1})
		<-entered
		time.Advance(soon)
		w.loop.Post(nil) // look at the clock
		requireTimeout(t, (<-result).Err, ErrNodeTimeout)
		w.Close(Forever)
		assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, LateCompletions: 1}, w.counts)
	})
	t.Run("of CPU work that does not look", func(t *testing.T) {
		time := clock.NewManual() // so that the body is late when it has begun, and not before
		w := open(t, Config{NodeTimeout: soon, Clock: time})
		gate := newGate()
		defer gate.release()
		g := graph(t, builtins(t, gate.spec()), "gate", node("gate", "gate", "", "", ""))
		result := w.start(&Execution{Graph: g, UserID: 1})
		<-gate.entered
		time.Advance(soon)
		w.loop.Post(nil) // look at the clock
		requireTimeout(t, (<-result).Err, ErrNodeTimeout)
		assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, Orphans: 1}, w.counted())
		gate.release()
		w.Close(Forever)
		assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, LateCompletions: 1}, w.counts)
	})
}
