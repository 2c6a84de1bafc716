package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The tests of this file run on the real engine, in real time. What has to be
// late would take an hour, what has to be in time has one: no verdict hangs on
// how fast the machine is.

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
			require.ErrorIs(t, r.Err, task.ErrInjected)
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
		require.ErrorIs(t, p.Err, task.ErrInjected)
		assert.Empty(t, w.cpu.queued, "nothing starts after the error")
	})
}

func TestRequestDeadlineExceeded(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "end", source(3), busyNode("busy", "src", ample), sleepNode("end", "busy", 0))
	r := w.run(w.within(g, soon))
	requireLate(t, r.Err)
	assert.Nil(t, r.Outputs)
}

func TestNodeTimeoutOnCPUWork(t *testing.T) {
	for name, c := range map[string]struct {
		engine time.Duration
		node   string
	}{
		"of the engine": {engine: soon},
		"of the plan":   {node: `"timeout_ms": 10`},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, Config{NodeTimeout: c.engine})
			g := builtinGraph(t, "busy", source(3),
				node("busy", "busy_cpu", "src", `"busy_wait_ms": 3600000`, c.node))
			r := w.run(&Request{Graph: g, UserID: 1})
			late := requireTimeout(t, r.Err, ErrNodeTimeout)
			assert.Equal(t, soon, late.Limit)
			requireNode(t, r.Err, "busy")
			assert.Equal(t, uint64(1), w.counted().NodeTimeouts)
		})
	}
}

func TestDeadlineAlreadyExpired(t *testing.T) {
	w := open(t, Config{})
	ran := 0 // loop only
	probe := task.Spec{
		Op: "test::probe", Output: task.Source,
		Run: func(*task.Ctx) (rowset.RowSet, error) {
			ran++
			return rowset.Dense(new(rowset.Batch)), nil
		},
	}
	probe.RunAsync = probe.Run
	g := graph(t, builtins(t, probe), "p", node("p", "probe", "", "", ""))
	now := w.Clock().Now()
	r := w.run(&Request{Graph: g, UserID: 1, Arrived: now.Add(-20 * time.Millisecond), Deadline: now.Add(-5 * time.Millisecond)})
	late := requireTimeout(t, r.Err, ErrRequestDeadline)
	assert.Equal(t, 15*time.Millisecond, late.Limit)
	assert.GreaterOrEqual(t, late.Elapsed, 20*time.Millisecond)
	require.NoError(t, w.run(&Request{Graph: g, UserID: 1}).Err)
	assert.Equal(t, 1, ran, "only the request without deadline runs")
}

func TestVeryShortDeadline1ms(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "busy", source(3), busyNode("busy", "src", ample))
	r := w.run(w.within(g, time.Millisecond))
	requireLate(t, r.Err)
}

func TestGenerousDeadlineSucceeds(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "score", source(3), busyNode("busy", "src", soon), vmNode("score", "busy"))
	r := w.run(w.within(g, ample))
	requireRows(t, r, 1, 2, 3)
	assert.Equal(t, []float64{2, 4, 6}, r.Outputs[0].Batch.Float(finalScore).Values)
}

func TestVeryShortNodeTimeout1ms(t *testing.T) {
	w := open(t, Config{NodeTimeout: time.Millisecond})
	// The source is subject to the timeout as well, and a busy machine may take more than a
	// millisecond for anything: so either node may be the late one.
	g := builtinGraph(t, "busy", source(3), busyNode("busy", "src", ample))
	late := requireTimeout(t, w.run(&Request{Graph: g, UserID: 1}).Err, ErrNodeTimeout)
	assert.Equal(t, time.Millisecond, late.Limit)
}

func TestGenerousNodeTimeoutSucceeds(t *testing.T) {
	w := open(t, Config{NodeTimeout: ample})
	g := builtinGraph(t, "score", source(3), busyNode("busy", "src", soon), vmNode("score", "busy"))
	requireRows(t, w.run(&Request{Graph: g, UserID: 1}), 1, 2, 3)
}

func TestBothDeadlineAndNodeTimeoutSet(t *testing.T) {
	w := open(t, Config{NodeTimeout: soon})
	g := builtinGraph(t, "busy", source(3), busyNode("busy", "src", ample))
	r := w.run(w.within(g, ample))
	late := requireTimeout(t, r.Err, ErrNodeTimeout)
	assert.Equal(t, soon, late.Limit, "the node timeout fires first")
}

func TestMultiStagePipelineTimeout(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "second", source(3),
		busyNode("first", "src", time.Millisecond), busyNode("second", "first", ample))
	requireLate(t, w.run(w.within(g, 5*soon)).Err)
}

func TestMultiStagePipelineSucceeds(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "second", source(3),
		busyNode("first", "src", time.Millisecond), busyNode("second", "first", time.Millisecond))
	requireRows(t, w.run(w.within(g, ample)), 1, 2, 3)
}

func TestFixedSourceOnlyNoCPUOffload(t *testing.T) {
	w := open(t, Config{NodeTimeout: ample})
	requireRows(t, w.run(w.within(builtinGraph(t, "src", source(5)), ample)), 1, 2, 3, 4, 5)
	m, ok := w.Metrics()
	require.True(t, ok)
	assert.Zero(t, m.CPU.Submitted, "it runs on the loop")
}

func TestRepeatedTimeoutOperations(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "busy", source(3), busyNode("busy", "src", ample))
	for range 5 {
		requireLate(t, w.run(w.within(g, time.Millisecond)).Err)
	}
	w.Close(Forever)
	c := w.counts
	assert.Equal(t, uint64(5), c.Failed)
	assert.Equal(t, c.NodeTimeouts, c.Cancelled+c.LateCompletions, "each abandoned body has ended")
	assert.Zero(t, c.Orphans)
}

func TestRepeatedSuccessOperations(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "score", source(3), busyNode("busy", "src", time.Millisecond), vmNode("score", "busy"))
	for range 10 {
		requireRows(t, w.run(w.within(g, ample)), 1, 2, 3)
	}
	assert.Equal(t, Counts{Requests: 10}, w.counted())
}

func TestAlternatingSuccessAndTimeout(t *testing.T) {
	w := open(t, Config{})
	late := builtinGraph(t, "busy", source(3), busyNode("busy", "src", ample))
	quick := builtinGraph(t, "score", source(3), vmNode("score", "src"))
	for i := range 6 {
		if i%2 == 0 {
			requireRows(t, w.run(w.within(quick, ample)), 1, 2, 3)
		} else {
			requireLate(t, w.run(w.within(late, 5*time.Millisecond)).Err)
		}
	}
	c := w.counted()
	assert.Equal(t, uint64(6), c.Requests)
	assert.Equal(t, uint64(3), c.Failed)
}

func TestSleepRespectsRequestDeadline(t *testing.T) {
	w := open(t, Config{})
	requireLate(t, w.run(w.within(builtinGraph(t, "nap", source(3), sleepNode("nap", "src", ample)), soon)).Err)
}

func TestSleepRespectsNodeTimeout(t *testing.T) {
	w := open(t, Config{NodeTimeout: soon})
	r := w.run(&Request{Graph: builtinGraph(t, "nap", source(3), sleepNode("nap", "src", ample)), UserID: 1})
	late := requireTimeout(t, r.Err, ErrNodeTimeout)
	assert.Equal(t, soon, late.Limit)
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
		result := w.start(&Request{Graph: g, UserID: 1})
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
		result := w.start(&Request{Graph: g, UserID: 1})
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

// mixed is a pipeline that waits, then computes.
func mixed(t *testing.T, nap, busy time.Duration) *Request {
	return &Request{UserID: 1, Graph: builtinGraph(t, "score", source(3),
		sleepNode("nap", "src", nap), busyNode("busy", "nap", busy), vmNode("score", "busy"))}
}

func TestMixedAsyncAndCPUPipelineTimeoutInAsync(t *testing.T) {
	w := open(t, Config{NodeTimeout: 5 * soon})
	r := w.run(mixed(t, ample, time.Millisecond))
	requireTimeout(t, r.Err, ErrNodeTimeout)
	requireNode(t, r.Err, "nap")
}

func TestMixedAsyncAndCPUPipelineTimeoutInCPU(t *testing.T) {
	w := open(t, Config{NodeTimeout: 5 * soon})
	r := w.run(mixed(t, time.Millisecond, ample))
	requireTimeout(t, r.Err, ErrNodeTimeout)
	requireNode(t, r.Err, "busy")
}

func TestMixedAsyncAndCPUPipelineSucceeds(t *testing.T) {
	w := open(t, Config{NodeTimeout: ample})
	req := mixed(t, time.Millisecond, time.Millisecond)
	req.Deadline = w.Clock().Now().Add(ample)
	requireRows(t, w.run(req), 1, 2, 3)
}

func TestParallelAsyncTasksBothRespectDeadline(t *testing.T) {
	w := open(t, Config{})
	g := builtinGraph(t, "both", source(3),
		sleepNode("left", "src", ample), sleepNode("right", "src", ample), concatNode("both", "left", "right"))
	r := w.run(w.within(g, 5*soon))
	requireLate(t, r.Err)
	w.Close(Forever)
	c := w.counts
	assert.Equal(t, c.NodeTimeouts, c.Cancelled, "both sleeps end with their nodes")
	if c.NodeTimeouts > 0 { // unless the machine was so slow that they did not begin
		assert.Equal(t, uint64(2), c.NodeTimeouts)
	}
}
