package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// modes are all of them.
var modes = [...]plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll}

func TestModes(t *testing.T) {
	for _, mode := range modes {
		assert.NoError(t, mode.Check())
	}
	for _, name := range []plan.Mode{"", "Adaptive", "offload"} {
		assert.ErrorContains(t, name.Check(), "must be adaptive, offload_all or inline_all, not", string(name))
	}
}

// timedTask passes its input through and takes the given time on the world's clock.
func timedTask(w *handWorld, op string, took *time.Duration, more func(*task.Spec)) task.Spec {
	spec := task.Spec{Op: op, Inputs: 1, Output: task.PassThrough, Inline: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		w.Harness.Clock.Advance(*took)
		return c.Inputs[0], nil
	}}
	if more != nil {
		more(&spec)
	}
	return spec
}

// finishAll runs all jobs that wait for a worker, and the jobs that follow from them.
func (w *handWorld) finishAll() (jobs int) {
	for w.Settle(); len(w.cpu.queued) > 0; w.Settle() {
		w.cpu.finish(w.cpu.take())
		jobs++
	}
	return jobs
}

// The table says which nodes run inline the first time, and which once they have been measured.
func TestEligibility(t *testing.T) {
	const cheap, heavy = 2 * time.Microsecond, 20 * time.Microsecond
	everyNode := func(*plan.Node) bool { return true }
	for _, c := range []struct {
		name       string
		spec       func(*task.Spec)
		more       string // of the node
		rows       int
		took       time.Duration
		placement  Placement
		first      bool // inline before it is measured
		afterwards bool // and then
	}{
		{name: "unknown, then cheap", rows: 10, took: cheap, afterwards: true},
		{name: "unknown, then heavy", rows: 10, took: heavy},
		{name: "below another threshold", rows: 10, took: heavy, placement: Placement{InlineThreshold: time.Millisecond}, afterwards: true},
		{name: "cheap by its author", spec: func(s *task.Spec) { s.Cheap = true }, rows: 10, took: cheap, first: true, afterwards: true},
		{name: "cheap by its author, many rows", spec: func(s *task.Spec) { s.Cheap = true }, rows: firstRowsMax + 1, took: cheap, afterwards: true},
		{name: "cheap by its author only", spec: func(s *task.Spec) { s.Cheap = true }, rows: 10, took: heavy, first: true},
		{name: "expensive by its author", spec: func(s *task.Spec) { s.Expensive, s.Inline = true, false }, rows: 10, took: cheap},
		{name: "expensive as this node", spec: func(s *task.Spec) { s.ExpensiveNode, s.Cheap = everyNode, true }, rows: 10, took: cheap},
		{name: "foreign without permission", spec: func(s *task.Spec) { s.Inline = false }, rows: 10, took: cheap},
		{name: "estimate below the threshold", more: `"scheduling": {"cost_estimate_us": 5}`, rows: 10, took: cheap, first: true, afterwards: true},
		{name: "estimate below the threshold, many rows", more: `"scheduling": {"cost_estimate_us": 5}`, rows: firstRowsMax + 1, took: cheap, first: true, afterwards: true},
		{name: "estimate at the threshold", more: `"scheduling": {"cost_estimate_us": 10}`, rows: 10, took: cheap, afterwards: true},
		{name: "estimate beats the author", spec: func(s *task.Spec) { s.Cheap = true }, more: `"scheduling": {"cost_estimate_us": 50}`, rows: 10, took: cheap, afterwards: true},
		{name: "measured beats the estimate", more: `"scheduling": {"cost_estimate_us": 5}`, rows: 10, took: heavy, first: true},
		{name: "the plan forbids", spec: func(s *task.Spec) { s.Cheap = true }, more: `"scheduling": {"inline": false}`, rows: 10, took: cheap},
		{name: "the plan permits and does not force", more: `"scheduling": {"inline": true}`, rows: 10, took: heavy},
		{name: "the plan permits not what the author forbids", spec: func(s *task.Spec) { s.Inline = false }, more: `"scheduling": {"inline": true}`, rows: 10, took: cheap},
		{name: "offload_all", spec: func(s *task.Spec) { s.Cheap = true }, rows: 10, took: cheap, placement: Placement{Mode: plan.OffloadAll}},
		{name: "inline_all", rows: 10_000, took: time.Second, placement: Placement{Mode: plan.InlineAll}, first: true, afterwards: true},
		{name: "inline_all and expensive", spec: func(s *task.Spec) { s.Expensive, s.Inline = true, false }, rows: 10, took: cheap, placement: Placement{Mode: plan.InlineAll}},
		{name: "inline_all and expensive as this node", spec: func(s *task.Spec) { s.ExpensiveNode = everyNode }, rows: 10, took: cheap, placement: Placement{Mode: plan.InlineAll}},
		{name: "inline_all and forbidden", more: `"scheduling": {"inline": false}`, rows: 10, took: cheap, placement: Placement{Mode: plan.InlineAll}},
		{name: "no inline", spec: func(s *task.Spec) { s.Cheap = true }, rows: 10, took: cheap, placement: Placement{NoInlineExecution: true}},
		{name: "no inline in inline_all", rows: 10, took: cheap, placement: Placement{NoInlineExecution: true, Mode: plan.InlineAll}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newPlacedWorld(t, 0, c.placement)
			took := c.took
			// The sleep in front of the node prevents one job of source and node on the pool.
			g := graph(t, builtins(t, timedTask(w, "test::timed", &took, c.spec)), "x", source(c.rows), sleepNode("nap", "src", 0), node("x", "timed", "nap", "", c.more))
			for i, inline := range []bool{c.first, c.afterwards, c.afterwards} {
				before, _ := w.placementMetrics()
				p := w.start(w.within(g, 0))
				w.finishAll()
				require.NotNil(t, p.Result)
				require.NoError(t, p.Err)
				after, _ := w.placementMetrics()
				sources := uint64(1)
				if c.placement.Mode == plan.OffloadAll || c.placement.NoInlineExecution {
					sources = 0 // neither inline nor on the pool
				}
				if c.rows > loopRowsMax {
					sources = 1
				}
				assert.Equal(t, inline, after.Inline-before.Inline == sources+1, "run %d", i)
				assert.Equal(t, sources+1, after.Inline-before.Inline+after.Offloaded-before.Offloaded)
			}
		})
	}
}

// A node that turns expensive is offloaded again after three runs at most, and comes back when
// it is cheap again.
func TestUnlearning(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	took := time.Microsecond
	g := graph(t, builtins(t, timedTask(w, "test::timed", &took, nil)), "x", source(10), node("x", "timed", "src", "", ""))
	jobs := func() int {
		p := w.start(w.within(g, 0))
		n := w.finishAll()
		require.NotNil(t, p.Result)
		require.NoError(t, p.Err)
		return n
	}
	jobs()
	for range 100 {
		require.Zero(t, jobs())
	}
	took = 5 * time.Millisecond
	inline := 0
	for jobs() == 0 {
		inline++
	}
	assert.Less(t, inline, 3)
	for range 20 {
		require.Equal(t, 1, jobs())
	}
	took = time.Microsecond
	runs := 0
	for jobs() == 1 {
		runs++
	}
	assert.LessOrEqual(t, runs, 20)
}

// A request's own mode goes before the engine's.
func TestModeOfARequest(t *testing.T) {
	for _, engine := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
		for _, own := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
			w := newPlacedWorld(t, 0, Placement{Mode: engine})
			req := w.within(builtinGraph(t, "x", source(3), vmNode("x", "src")), 0)
			req.Mode = own
			p := w.start(req)
			jobs := w.finishAll()
			require.NotNil(t, p.Result)
			requireRows(t, p.Result, 1, 2, 3)
			assert.Equal(t, own != plan.InlineAll, jobs == 1, "%v in %v", own, engine)
		}
	}
}

// A node that waits or goes to the pool starts before any node runs inline, wherever the plan lists it.
func TestInlineRunsLast(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	var order []string
	note := func(op string, cheap bool, place task.Place) task.Spec {
		return task.Spec{Op: "test::" + op, Inputs: 1, Output: task.PassThrough, Cheap: cheap, Place: place,
			Run: func(c *task.Ctx) (rowset.RowSet, error) {
				order = append(order, c.Node.ID)
				return c.Inputs[0], nil
			}}
	}
	tasks := builtins(t, note("cheap", true, task.Computes), note("waits", false, task.Waits))
	var nodes []string
	last := "src"
	nodes = append(nodes, source(3))
	for i := range 6 {
		nodes = append(nodes, node(fmt.Sprintf("n%d", i), []string{"cheap", "waits", "vm"}[i%3], "src",
			[]string{"", "", `"out_key": 2001, "expr_id": "score"`}[i%3], ""))
	}
	for i := range 6 {
		nodes = append(nodes, concatNode(fmt.Sprintf("c%d", i), last, fmt.Sprintf("n%d", i)))
		last = fmt.Sprintf("c%d", i)
	}
	p := w.start(w.within(graph(t, tasks, last, nodes...), 0))
	w.Iterate()
	assert.Equal(t, []string{"n1", "n4", "n0", "n3"}, order)
	assert.Len(t, w.cpu.queued, 2)
	w.finishAll()
	require.NotNil(t, p.Result)
	require.NoError(t, p.Err)
}

// Nodes beyond the budget of an iteration wait for the next one, so that other requests are
// served in between. Each of them still runs.
func TestInlineBudget(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{Mode: plan.InlineAll, InlineBudget: 10 * time.Microsecond})
	took := 4 * time.Microsecond
	tasks := builtins(t, timedTask(w, "test::timed", &took, nil))
	nodes := []string{source(1)}
	last := "src"
	for i := range 10 {
		nodes = append(nodes, node(fmt.Sprintf("n%d", i), "timed", last, "", ""))
		last = fmt.Sprintf("n%d", i)
	}
	g := graph(t, tasks, last, nodes...)
	a, b := w.start(w.within(g, 0)), w.start(w.within(g, 0))
	for range 20 {
		before := w.Harness.Clock.Now()
		w.Iterate()
		assert.LessOrEqual(t, w.Harness.Clock.Now().Sub(before), 12*time.Microsecond)
	}
	require.NotNil(t, a.Result)
	require.NoError(t, a.Err)
	require.NotNil(t, b.Result)
	require.NoError(t, b.Err)
	all, plans := w.placementMetrics()
	assert.EqualValues(t, 22, all.Inline)
	assert.NotZero(t, all.Deferred)
	assert.Equal(t, all, plans["test"])
}

// Requests that wait for the budget go before those that come later, even if an answer brings
// the next request. A client that asks again and again does not make the others wait.
func TestParkedRequestsGoFirst(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{Mode: plan.InlineAll, InlineBudget: time.Microsecond})
	took := 2 * time.Microsecond
	g := graph(t, builtins(t, timedTask(w, "test::timed", &took, nil)), "x", source(1), node("x", "timed", "src", "", ""))
	const clients = 4
	var answers [clients]int
	stop := false
	var ask func(client int)
	ask = func(client int) {
		w.Submit(w.within(g, 0), func(r *Result) {
			assert.NoError(t, r.Err)
			if answers[client]++; !stop {
				ask(client)
			}
		})
	}
	for client := range clients {
		ask(client)
	}
	for range 200 {
		w.Iterate()
	}
	stop = true
	w.Settle()
	for client, n := range answers {
		assert.InDelta(t, answers[0], n, 2, "client %d", client)
	}
}

// A request that fails while it waits for the budget of the next iteration does not start
// another node.
func TestAParkedRequestGivenUp(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{Mode: plan.InlineAll, InlineBudget: time.Microsecond})
	took, ran := 2*time.Microsecond, 0
	tasks := builtins(t, timedTask(w, "test::timed", &took, func(s *task.Spec) {
		run := s.Run
		s.Run = func(c *task.Ctx) (rowset.RowSet, error) { ran++; return run(c) }
	}))
	g := graph(t, tasks, "b", source(1), node("a", "timed", "src", "", ""), node("b", "timed", "a", "", ""))
	p := w.start(w.within(g, 0))
	w.Iterate()
	require.Nil(t, p.Result)
	require.Equal(t, 1, ran)
	w.close(0)
	require.NotNil(t, p.Result)
	if ran == 1 {
		assert.ErrorIs(t, p.Err, ErrShuttingDown)
	} else {
		assert.NoError(t, p.Err, "it came first in that iteration")
	}
}

// A node that ends after its deadline has failed, and none of its readers runs.
func TestInlineDeadlines(t *testing.T) {
	for _, c := range []struct {
		name     string
		request  time.Duration
		node     time.Duration
		plan     string
		took     time.Duration
		wantNode string // of the failure; "" for success
	}{
		{"in time", ms(10), ms(10), `"timeout_ms": 10`, ms(10) - 1, ""},
		{"the request's", ms(5), 0, "", ms(5), "x"},
		{"the engine's", 0, ms(5), "", ms(5), "x"},
		{"the plan's", 0, 0, `"timeout_ms": 5`, ms(5), "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newPlacedWorld(t, c.node, Placement{Mode: plan.InlineAll})
			took := c.took
			tasks := builtins(t, timedTask(w, "test::timed", &took, nil))
			p := w.start(w.within(graph(t, tasks, "y", source(2), node("x", "timed", "src", "", c.plan), vmNode("y", "x")), c.request))
			w.Settle()
			require.NotNil(t, p.Result)
			if c.wantNode == "" {
				requireRows(t, p.Result, 1, 2)
				return
			}
			late := requireTimeout(t, p.Err, ErrNodeTimeout)
			requireNode(t, p.Err, c.wantNode)
			assert.Equal(t, c.took, late.Elapsed)
			assert.Equal(t, Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, LateCompletions: 1}, w.counted())
			all, _ := w.placementMetrics()
			assert.EqualValues(t, 2, all.Inline, "the source and the late node")
		})
	}
}

// Nodes that wait to run inline are skipped when the request fails.
func TestKeptNodesAreSkipped(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{Mode: plan.InlineAll})
	ran := 0
	tasks := builtins(t,
		task.Spec{Op: "test::fails", Inputs: 1, Output: task.PassThrough, Inline: true,
			Run: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, errSimFails }},
		task.Spec{Op: "test::runs", Inputs: 1, Output: task.PassThrough, Inline: true,
			Run: func(c *task.Ctx) (rowset.RowSet, error) { ran++; return c.Inputs[0], nil }})
	p := w.start(w.within(graph(t, tasks, "z", source(1), node("a", "runs", "src", "", ""), node("x", "fails", "src", "", ""),
		node("y", "runs", "src", "", ""), node("z", "runs", "src", "", "")), 0))
	w.Settle()
	require.NotNil(t, p.Result)
	require.ErrorIs(t, p.Err, errSimFails)
	requireNode(t, p.Err, "x")
	assert.Equal(t, 1, ran)
}

func TestStateContinues(t *testing.T) {
	g := builtinGraph(t, "d", source(1), vmNode("a", "src"), vmNode("b", "src"), concatNode("c", "a", "b"), vmNode("d", "c"))
	rows := rowset.Dense(&rowset.Batch{IDs: []int64{1}})
	var s State
	s.Reset(g, 0, 0)
	src, _ := s.Next()
	_, ok := s.Follower(src)
	assert.False(t, ok, "two dependents")
	s.Succeed(src, rows)
	a, _ := s.Next()
	b, _ := s.Next()
	_, ok = s.Follower(a)
	assert.False(t, ok, "its dependent waits for another")
	s.Succeed(a, rows)
	c, ok := s.Follower(b)
	require.True(t, ok)
	require.Equal(t, c, s.Continue(b, rows))
	assert.Equal(t, "c", g.Nodes[c].ID)
	assert.Equal(t, 2, s.Rows(c))
	assert.Equal(t, 1, s.Inflight())
	s.Abort(-1, errSimFails)
	_, ok = s.Follower(c)
	assert.False(t, ok, "the request has failed")
	s.Succeed(c, rows)
	assert.True(t, s.Finished())

	s.Reset(g, 0, clock.Time(10))
	src, _ = s.Next()
	s.Skip(src)
	r := Run{Req: &Execution{}, State: s}
	assert.False(t, r.Proceed(10))
	_, err := r.State.Err()
	assert.ErrorIs(t, err, ErrRequestDeadline)
}

// A node beyond the depth passes through the ready queue, after what was ready before it. It
// does not go to the pool for that: whatever the depth, all nodes run inline in one iteration.
func TestInlineDepth(t *testing.T) {
	for _, c := range []struct {
		name      string
		placement Placement
		order     string
	}{
		{"by default", Placement{}, "a0 a1 a2 a3 b0 b1 b2 b3 a4 a5 a6 a7 b4 b5 b6 b7"},
		{"one", Placement{MaxInlineDepth: 1}, "a0 a1 b0 b1 a2 a3 b2 b3 a4 a5 b4 b5 a6 a7 b6 b7"},
		{"more than there are", Placement{MaxInlineDepth: 100}, "a0 a1 a2 a3 a4 a5 a6 a7 b0 b1 b2 b3 b4 b5 b6 b7"},
		{"no chaining", Placement{NoContinuationChaining: true}, "a0 b0 a1 b1 a2 b2 a3 b3 a4 b4 a5 b5 a6 b6 a7 b7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.placement.Mode = plan.InlineAll
			w := newPlacedWorld(t, 0, c.placement)
			var order []string
			tasks := builtins(t, task.Spec{Op: "test::runs", Inputs: 1, Output: task.PassThrough, Inline: true,
				Run: func(c *task.Ctx) (rowset.RowSet, error) {
					order = append(order, c.Node.ID)
					return c.Inputs[0], nil
				}})
			nodes := []string{source(1)}
			for _, chain := range []string{"a", "b"} {
				last := "src"
				for i := range 8 {
					id := fmt.Sprint(chain, i)
					nodes = append(nodes, node(id, "runs", last, "", ""))
					last = id
				}
			}
			p := w.start(w.within(graph(t, tasks, "ab", append(nodes, concatNode("ab", "a7", "b7"))...), 0))
			w.Iterate()
			require.NotNil(t, p.Result)
			require.NoError(t, p.Err)
			assert.Equal(t, c.order, strings.Join(order, " "))
			all, _ := w.placementMetrics()
			assert.Zero(t, all.Offloaded)
		})
	}
}
