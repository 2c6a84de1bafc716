package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// The tests of this file show what happens at the very instant of a deadline, on a clock that the
// test moves. TestSpecificationRows has the rows of the original specification on all engines.

// TestTheEarliestLimitEndsTheNode has a node meet the same three limits: it fails at the earliest, and names it.
func TestTheEarliestLimitEndsTheNode(t *testing.T) {
	for _, c := range []struct{ request, engine, node, want int }{
		{30, 0, 0, 30},
		{0, 20, 0, 20},
		{0, 0, 10, 10},
		{30, 20, 10, 10},
		{30, 10, 20, 10},
		{10, 20, 30, 10},
		{20, 20, 20, 20},
	} {
		for place, x := range map[string]string{
			"loop": `"node_id": "x", "op": "sleep", "params": {"duration_ms": 60000}`,
			"pool": `"node_id": "x", "op": "busy_cpu", "params": {"busy_wait_ms": 60000}`,
		} {
			t.Run(fmt.Sprintf("%s, request %d engine %d node %d", place, c.request, c.engine, c.node), func(t *testing.T) {
				w := newHandWorld(t, ms(c.engine))
				if c.node > 0 {
					x += fmt.Sprintf(`, "timeout_ms": %d`, c.node)
				}
				g := builtinGraph(t, "x", source(1), "{"+x+`, "inputs": ["src"]}`)
				p := w.start(w.within(g, ms(c.request)))
				w.Advance(ms(c.want) - 1)
				require.Nil(t, p.Result, "1 ns too early")
				w.Advance(1)
				require.NotNil(t, p.Result)
				requireNode(t, p.Err, "x")
				late := requireTimeout(t, p.Err, ErrNodeTimeout)
				assert.Equal(t, ms(c.want), late.Limit)
				assert.Equal(t, ms(c.want), late.Elapsed)
				text := fmt.Sprintf("node execution timeout: %v elapsed, limit %v", ms(c.want), ms(c.want))
				if c.request == c.want {
					text = fmt.Sprintf("the request's deadline of %v passed while x (%s) ran", ms(c.want), g.Nodes[g.Outputs[0]].Op)
				}
				assert.Equal(t, text, late.Error())
				assert.Equal(t, c.request == c.want, late.OfRequest())
			})
		}
	}
}

func TestDeadlineBeforeSpawn(t *testing.T) {
	for name, c := range map[string]struct {
		arrived, deadline time.Duration // before and after the submission
		in                bool
	}{
		"equal to now":     {0, 0, false},
		"1 ns to go":       {0, 1, true},
		"1 ns ago":         {ms(5), -1, false},
		"none":             {ms(5), -1 << 62, true},
		"all of it waited": {ms(5), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHandWorld(t, 0)
			now := w.Harness.Clock.Now()
			req := &Execution{Graph: builtinGraph(t, "src", source(1)), Arrived: now.Add(-c.arrived)}
			if c.deadline > -1<<62 {
				req.Deadline = now.Add(c.deadline)
			}
			p := w.start(req)
			w.Settle()
			require.NotNil(t, p.Result)
			if c.in {
				requireRows(t, p.Result, 1)
				return
			}
			late := requireTimeout(t, p.Err, ErrRequestDeadline)
			assert.Equal(t, c.arrived, late.Elapsed, "since it arrived")
			assert.Equal(t, c.arrived+c.deadline, late.Limit)
			var n *NodeError
			assert.False(t, errors.As(p.Err, &n), "the error names no node")
		})
	}
}

// burn is a task on the loop that advances the manual clock by d. What comes later in the same
// iteration finds that time gone.
func burn(w **handWorld, d time.Duration) task.Spec {
	return task.Spec{Op: "test::burn", Output: task.Source, Place: task.OnLoop, Run: func(*task.Ctx) (rowset.RowSet, error) {
		(*w).Harness.Clock.Advance(d)
		return rowset.Dense(new(rowset.Batch)), nil
	}}
}

func TestDeadlineAtNodeStart(t *testing.T) {
	var w *handWorld
	tasks := builtins(t, burn(&w, ms(10)))
	// Both nodes are ready at once. The loop does not read the clock while the first one runs,
	// so it spawns the second. The second reads the clock at its start.
	g := graph(t, tasks, "second", node("first", "burn", "", "", ""), node("second", "burn", "", "", ""))
	t.Run("too late by then", func(t *testing.T) {
		w = newHandWorld(t, 0)
		p := w.start(w.within(g, ms(10)))
		w.Settle()
		require.NotNil(t, p.Result)
		requireNode(t, p.Err, "second")
		late := requireTimeout(t, p.Err, ErrDeadlineBeforeStart)
		assert.Equal(t, TimeoutError{Kind: ErrDeadlineBeforeStart, Elapsed: ms(10), Limit: ms(10), Node: "second", Op: "test::burn"}, *late)
		assert.Equal(t, ms(10), p.at, "the second did not run")
	})
	t.Run("in time", func(t *testing.T) {
		w = newHandWorld(t, 0)
		p := w.start(w.within(g, ms(10)+1))
		w.Settle()
		require.NotNil(t, p.Result)
		require.NoError(t, p.Err, "a body that ends late has ended before its timer fired")
		assert.Equal(t, ms(20), p.at)
	})
}

func TestDeadlineBetweenNodes(t *testing.T) {
	// The nap ends in the iteration in which the clock has passed the deadline. The nap's own
	// timer was due first and fires first. So the nap succeeds, and its successor is not
	// spawned.
	w := newHandWorld(t, 0)
	g := builtinGraph(t, "second", source(1), sleepNode("first", "src", ms(10)), sleepNode("second", "first", 0))
	p := w.start(w.within(g, ms(12)))
	w.Settle()
	w.Harness.Clock.Advance(ms(15)) // in one step, past both instants
	w.Settle()
	require.NotNil(t, p.Result)
	late := requireTimeout(t, p.Err, ErrRequestDeadline)
	assert.Equal(t, TimeoutError{Kind: ErrRequestDeadline, Elapsed: ms(15), Limit: ms(12)}, *late)
	assert.Zero(t, w.counted().NodeTimeouts)
}

// TestFirstWins has the end of a body and the deadline of its node fall into one iteration.
func TestFirstWins(t *testing.T) {
	busy := builtinGraph(t, "busy", source(1), busyNode("busy", "src", 0))
	t.Run("posts run before timers, so the completion does", func(t *testing.T) {
		w := newHandWorld(t, ms(10))
		p := w.start(w.within(busy, 0))
		w.Settle()
		job := w.cpu.take()
		w.Harness.Clock.Advance(ms(10)) // due now,
		w.cpu.finish(job)               // and posted in the same iteration
		w.Settle()
		require.NotNil(t, p.Result)
		requireRows(t, p.Result, 1)
		assert.Equal(t, Counts{Requests: 1}, w.counted())
	})
	t.Run("the deadline, if the completion comes an iteration later", func(t *testing.T) {
		w := newHandWorld(t, ms(10))
		p := w.start(w.within(busy, 0))
		w.Settle()
		job := w.cpu.take()
		w.Harness.Clock.Advance(ms(10))
		w.Iterate()
		require.NotNil(t, p.Result)
		requireTimeout(t, p.Err, ErrNodeTimeout)
		assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1}, w.counted())
		assert.Equal(t, 1, w.orphans.Len())
		job.Work() // busy_cpu of 0 ms does not look for cancellation
		w.Loop.Post(func() { job.Done(nil) })
		w.Settle()
		assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, LateCompletions: 1}, w.counted())
	})
	t.Run("the deadline, over a sleep that ends at the same instant", func(t *testing.T) {
		w := newHandWorld(t, ms(10))
		p := w.start(w.within(builtinGraph(t, "nap", source(1), sleepNode("nap", "src", ms(10))), 0))
		w.Advance(ms(10))
		require.NotNil(t, p.Result)
		requireTimeout(t, p.Err, ErrNodeTimeout)
		assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, Cancelled: 1}, w.counted())
	})
	t.Run("the sleep, if it ends any sooner", func(t *testing.T) {
		w := newHandWorld(t, ms(10)+1)
		p := w.start(w.within(builtinGraph(t, "nap", source(1), sleepNode("nap", "src", ms(10))), 0))
		w.Advance(ms(10))
		require.NotNil(t, p.Result)
		requireRows(t, p.Result, 1)
		w.Advance(ms(10))
		assert.Equal(t, Counts{Requests: 1}, w.counted())
	})
	t.Run("the body's own error, as much as its result", func(t *testing.T) {
		w := newHandWorld(t, ms(10)+1)
		p := w.start(w.within(builtinGraph(t, "nap", source(1),
			node("nap", "sleep", "src", `"duration_ms": 10, "fail_after_sleep": true`, "")), 0))
		w.Advance(ms(20))
		require.NotNil(t, p.Result)
		assert.ErrorIs(t, p.Err, builtin.ErrInjected)
	})
}

// TestAbandonedWork checks the counters for each way in which abandoned work ends.
func TestAbandonedWork(t *testing.T) {
	timedOut := Counts{Requests: 1, Failed: 1, NodeTimeouts: 1}
	for name, c := range map[string]struct {
		node string
		end  func(w *handWorld) // after the timeout
		want Counts
	}{
		"a sleep ends": {
			sleepNode("x", "src", ms(50)), func(*handWorld) {},
			Counts{Cancelled: 1},
		},
		"a sleep that was to fail ends": {
			node("x", "sleep", "src", `"duration_ms": 50, "fail_after_sleep": true`, ""), func(*handWorld) {},
			Counts{Cancelled: 1},
		},
		"CPU work that had not started never does": {
			busyNode("x", "src", ample), func(w *handWorld) { w.Settle() },
			Counts{Cancelled: 1},
		},
		"CPU work that looks stops": {
			busyNode("x", "src", ample),
			nil, // taken before the timeout
			Counts{Cancelled: 1},
		},
		"so does an expression": {vmNode("x", "src"), nil, Counts{Cancelled: 1}},
		"so does a filter":      {node("x", "filter", "src", `"pred_id": "big"`, ""), nil, Counts{Cancelled: 1}},
		"so does a sort":        {node("x", "sort", "src", `"by": 1, "order": "desc"`, ""), nil, Counts{Cancelled: 1}},
		"a concat does not look": {
			concatNode("x", "src", "src"), nil, Counts{LateCompletions: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHandWorld(t, 0)
			p := w.start(w.within(builtinGraph(t, "x", source(3), c.node), ms(10)))
			w.Settle()
			var job *cpupool.Job
			if c.end == nil {
				job = w.cpu.take()
			}
			w.Advance(ms(10))
			require.NotNil(t, p.Result)
			if job != nil {
				assert.Equal(t, 1, w.orphans.Len())
				w.cpu.finish(job)
				w.Settle()
			} else {
				c.end(w)
			}
			want := timedOut
			want.LateCompletions, want.Cancelled = c.want.LateCompletions, c.want.Cancelled
			assert.Equal(t, want, w.counted())
		})
	}
}

// A node's timeout ends the request, but only after the nodes that run at the same time have
// settled.
func TestOneNodeLateTheOtherDrains(t *testing.T) {
	w := newHandWorld(t, 0)
	g := builtinGraph(t, "both", source(1),
		node("left", "sleep", "src", `"duration_ms": 50`, `"timeout_ms": 10`),
		sleepNode("right", "src", ms(30)), concatNode("both", "left", "right"))
	p := w.start(w.within(g, ms(100)))
	w.Advance(ms(29))
	assert.Nil(t, p.Result)
	w.Advance(ms(1))
	require.NotNil(t, p.Result)
	requireNode(t, p.Err, "left")
	assert.Equal(t, TimeoutError{Kind: ErrNodeTimeout, Elapsed: ms(10), Limit: ms(10)},
		*requireTimeout(t, p.Err, ErrNodeTimeout))
}

func TestAFullPoolFailsTheNode(t *testing.T) {
	w := newHandWorld(t, ms(10))
	w.cpu.full = true
	p := w.start(w.within(builtinGraph(t, "x", source(1), busyNode("x", "src", 0)), ms(10)))
	w.Advance(ms(50)) // no timer of the node is left to fire
	require.NotNil(t, p.Result)
	require.ErrorIs(t, p.Err, cpupool.ErrQueueFull)
	requireNode(t, p.Err, "x")
	assert.Equal(t, Counts{Requests: 1, Failed: 1}, w.counted())
}
