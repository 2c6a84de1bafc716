package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/latency"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// stepTask passes its input through and runs the test's function for that node.
func stepTask(step func(id string) error) task.Spec {
	return task.Spec{Op: "test::step", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		return c.Inputs[0], step(c.Node.ID)
	}}
}

// steps writes a chain of step nodes a, b, c, ... after a source.
func steps(n int, more ...string) []string {
	nodes, last := []string{source(3)}, "src"
	for i := range n {
		id := string(rune('a' + i))
		nodes = append(nodes, node(id, "step", last, "", strings.Join(more, "")))
		last = id
	}
	return nodes
}

func TestChainIsOneJob(t *testing.T) {
	g := builtinGraph(t, "t", source(100), vmNode("v", "src"), node("f", "filter", "v", `"pred_id": "big"`, ""),
		node("s", "sort", "f", `"by": 2001, "order": "desc"`, ""), node("t", "take", "s", `"count": 3`, ""))
	for _, trace := range []bool{false, true} {
		w := newPlacedWorld(t, 0, Placement{})
		req := w.within(g, 0)
		req.Deltas = trace
		p := w.start(req)
		require.Equal(t, 1, w.finishAll())
		require.NotNil(t, p.Result)
		requireRows(t, p.Result, 100, 99, 98)
		all, _ := w.placementMetrics()
		assert.EqualValues(t, 4, all.Fused)
		assert.EqualValues(t, 4, all.Offloaded)
		assert.EqualValues(t, 1, all.TopK)
		assert.EqualValues(t, 1, all.OffloadRoundTrip.Count)
		if trace {
			hand := newHandWorld(t, 0)
			want := hand.start(req)
			require.Equal(t, 4, hand.finishAll())
			assert.Equal(t, want.Deltas(), p.Deltas())
		}
		again := w.start(w.within(g, 0))
		require.Zero(t, w.finishAll(), "each node took no time")
		requireRows(t, again.Result, 100, 99, 98)
	}
}

func TestChainsSplit(t *testing.T) {
	noop := func(string) error { return nil }
	expensive := stepTask(noop)
	expensive.Op, expensive.Expensive = "test::expensive", true
	tasks := builtins(t, stepTask(noop), expensive)
	step := func(id, input string) string { return node(id, "step", input, "", "") }
	for _, c := range []struct {
		name    string
		nodes   []string
		outputs string
		noChain bool
		want    int // jobs
	}{
		{name: "one chain", nodes: []string{step("a", "src"), step("b", "a"), step("c", "b")}, outputs: `"c"`, want: 1},
		{name: "listed backwards", nodes: []string{step("c", "b"), step("b", "a"), step("a", "src")}, outputs: `"c"`, want: 1},
		{name: "no output", nodes: []string{step("a", "src"), step("b", "a")}, want: 1},
		{name: "an output with a reader", nodes: []string{step("a", "src"), step("b", "a"), step("c", "b")}, outputs: `"b", "c"`, want: 2},
		{name: "two readers", nodes: []string{step("a", "src"), step("b", "a"), step("c", "a")}, outputs: `"b", "c"`, want: 3},
		{name: "a reader of two", nodes: []string{step("a", "src"), step("b", "src"), concatNode("c", "a", "b"), step("d", "c")}, outputs: `"d"`, want: 3},
		{name: "a reader of one twice", nodes: []string{step("a", "src"), concatNode("c", "a", "a")}, outputs: `"c"`, want: 1},
		{name: "waits", nodes: []string{step("a", "src"), sleepNode("b", "a", 0), step("c", "b")}, outputs: `"c"`, want: 2},
		{name: "expensive", nodes: []string{step("a", "src"), node("b", "expensive", "a", "", ""), step("c", "b")}, outputs: `"c"`, want: 3},
		{name: "forbidden inline", nodes: []string{step("a", "src"), node("b", "step", "a", "", `"scheduling": {"inline": false}`), step("c", "b")}, outputs: `"c"`, want: 3},
		{name: "switched off", nodes: []string{step("a", "src"), step("b", "a")}, outputs: `"b"`, noChain: true, want: 2},
		{name: "a large source is its head", nodes: []string{node("big", "fixed_source", "", `"row_count": 5000`, ""), step("a", "big")}, outputs: `"a"`, want: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s, %s], "outputs": [%s]}`,
				source(3), strings.Join(c.nodes, ","), c.outputs)
			g, err := plan.Load("p.plan.json", []byte(text), tasks, testRegistry(t))
			require.NoError(t, err)
			w := newPlacedWorld(t, 0, Placement{NoContinuationChaining: c.noChain})
			p := w.start(w.within(g, 0))
			jobs := 0
			for round := 0; p.Result == nil && round < 20; round++ {
				jobs += w.finishAll()
				w.Advance(ms(1)) // wakes the sleeper
			}
			require.NotNil(t, p.Result)
			require.NoError(t, p.Err)
			assert.Equal(t, c.want, jobs)
		})
	}
}

// The world changes while a node of a chain runs. Each step may move the world: the test is the
// worker, and the loop goes on meanwhile.
func TestChainMeanwhile(t *testing.T) {
	const length = 4 // a, b, c, d
	type setup struct {
		w    *handWorld
		p    *pending
		req  *Execution
		goes context.CancelFunc // the caller goes away
	}
	for _, c := range []struct {
		name     string
		request  time.Duration
		node     time.Duration // the engine's node timeout
		more     string        // of each node
		at       string        // the node during which it happens
		during   func(s *setup)
		err      error // of the step
		ran      string
		wantErr  error
		wantNode string // "": the error names no node
		counts   Counts
	}{
		{name: "nothing", at: "b", during: func(*setup) {}, ran: "abcd"},
		{name: "an error", at: "b", during: func(*setup) {}, err: errSimFails, ran: "ab", wantErr: errSimFails, wantNode: "b",
			counts: Counts{Failed: 1}},
		{name: "the request's deadline, seen by the timer", request: ms(10), at: "c", during: func(s *setup) {
			s.w.Advance(ms(10))
			require.NotNil(s.w.t, s.p.Result)
		}, ran: "abc", wantErr: ErrNodeTimeout, wantNode: "c", counts: Counts{Failed: 1, NodeTimeouts: 1, Cancelled: 1}},
		{name: "the request's deadline, seen by the worker", request: ms(10), at: "c", during: func(s *setup) {
			s.w.Harness.Clock.Advance(ms(10))
		}, ran: "abc", wantErr: ErrNodeTimeout, wantNode: "c", counts: Counts{Failed: 1, NodeTimeouts: 1, LateCompletions: 1}},
		{name: "a late last node", request: ms(10), at: "d", during: func(s *setup) {
			s.w.Harness.Clock.Advance(ms(10))
		}, ran: "abcd", wantErr: ErrNodeTimeout, wantNode: "d", counts: Counts{Failed: 1, NodeTimeouts: 1, LateCompletions: 1}},
		{name: "the engine's node timeout", node: ms(10), at: "b", during: func(s *setup) {
			s.w.Advance(ms(10))
			require.NotNil(s.w.t, s.p.Result)
		}, ran: "ab", wantErr: ErrNodeTimeout, wantNode: "b", counts: Counts{Failed: 1, NodeTimeouts: 1, Cancelled: 1}},
		{name: "the plan's timeout of each", more: `"timeout_ms": 5`, at: "c", during: func(s *setup) {
			s.w.Advance(ms(5))
			require.NotNil(s.w.t, s.p.Result)
		}, ran: "abc", wantErr: ErrNodeTimeout, wantNode: "c", counts: Counts{Failed: 1, NodeTimeouts: 1, Cancelled: 1}},
		{name: "less than a timeout", node: ms(10), more: `"timeout_ms": 5`, at: "c", during: func(s *setup) {
			s.w.Advance(ms(5) - 1)
		}, ran: "abcd"},
		{name: "given up", at: "b", during: func(s *setup) {
			s.w.shut(0)
			s.w.Settle()
		}, ran: "ab", wantErr: ErrShuttingDown, counts: Counts{Failed: 1, Cancelled: 1}},
		{name: "abandoned", at: "b", during: func(s *setup) { s.goes() }, ran: "ab", wantErr: ErrAbandoned,
			counts: Counts{Failed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &setup{w: newPlacedWorld(t, c.node, Placement{})}
			ran := ""
			tasks := builtins(t, stepTask(func(id string) error {
				ran += id
				if id == c.at {
					c.during(s)
					return c.err
				}
				return nil
			}))
			s.req = s.w.within(graph(t, tasks, "d", steps(length, c.more)...), c.request)
			s.req.Context, s.goes = context.WithCancel(t.Context())
			s.p = s.w.start(s.req)
			require.Equal(t, 1, s.w.finishAll())
			require.NotNil(t, s.p.Result)
			assert.Equal(t, c.ran, ran)
			c.counts.Requests = 1
			assert.Equal(t, c.counts, s.w.counted())
			if c.wantErr == nil {
				requireRows(t, s.p.Result, 1, 2, 3)
				return
			}
			require.ErrorIs(t, s.p.Err, c.wantErr)
			if c.wantNode != "" {
				requireNode(t, s.p.Err, c.wantNode)
			}
		})
	}
}

// The time of earlier nodes of a chain does not count for a node's own timeout. The timeout of
// a later node counts from its own start.
func TestChainTimeoutsCountFromEachStart(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	var ran []string
	tasks := builtins(t, stepTask(func(id string) error {
		ran = append(ran, id)
		if id != "c" {
			w.Advance(ms(7))
			return nil
		}
		w.Advance(ms(5))
		return nil
	}))
	p := w.start(w.within(graph(t, tasks, "d", source(1), node("a", "step", "src", "", ""), node("b", "step", "a", "", `"timeout_ms": 10`),
		node("c", "step", "b", "", `"timeout_ms": 5`), node("d", "step", "c", "", "")), 0))
	w.finishAll()
	require.NotNil(t, p.Result)
	late := requireTimeout(t, p.Err, ErrNodeTimeout)
	requireNode(t, p.Err, "c")
	assert.Equal(t, ms(5), late.Elapsed)
	assert.Equal(t, ms(5), late.Limit)
	assert.Equal(t, []string{"a", "b", "c"}, ran)
	assert.Equal(t, ms(19), p.at)
}

// A failure elsewhere in the request stops a chain before its first node or between two nodes.
func TestChainOfAFailedRequest(t *testing.T) {
	for _, started := range []bool{false, true} {
		w := newPlacedWorld(t, 0, Placement{})
		ran := ""
		fails := task.Spec{Op: "test::fails", Inputs: 1, Output: task.PassThrough, Place: task.OnLoop,
			Run: func(c *task.Ctx) (rowset.RowSet, error) {
				_ = c.Sleep(ms(5))
				return rowset.RowSet{}, errSimFails
			}}
		tasks := builtins(t, fails, stepTask(func(id string) error {
			if ran += id; id == "b" {
				w.Advance(ms(5))
			}
			return nil
		}))
		p := w.start(w.within(graph(t, tasks, "d", append(steps(4), node("x", "fails", "src", "", ""))...), 0))
		w.Settle()
		if !started {
			w.Advance(ms(5))
		}
		require.Equal(t, 1, w.finishAll())
		require.NotNil(t, p.Result)
		require.ErrorIs(t, p.Err, errSimFails)
		requireNode(t, p.Err, "x")
		assert.Equal(t, map[bool]string{false: "", true: "ab"}[started], ran)
		assert.Equal(t, Counts{Requests: 1, Failed: 1}, w.counted())
	}
}

// takes writes a source and a chain of that many takes.
func takes(n int) (last string, nodes []string) {
	nodes, last = []string{source(10)}, "src"
	for i := range n {
		id := fmt.Sprintf("t%d", i)
		nodes = append(nodes, node(id, "take", last, `"count": 10`, ""))
		last = id
	}
	return last, nodes
}

// fan writes a source, that many nodes that read it, and one node that reads all of those.
func fan(n int) (last string, nodes []string) {
	nodes = []string{source(1)}
	refs := make([]string, n)
	for i := range n {
		id := fmt.Sprintf("v%d", i)
		nodes = append(nodes, vmNode(id, "src"))
		refs[i] = fmt.Sprintf(`"ref%d": %q`, i, id)
	}
	return "all", append(nodes, node("all", "gather", "src", strings.Join(refs, ", "), ""))
}

// gatherTask appends the rows of the given number of nodes to those of its input.
func gatherTask(n int) task.Spec {
	spec := task.Spec{Op: "test::gather", Inputs: 1, Output: task.Append, Inline: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		out := c.Inputs[0]
		for _, ref := range c.Refs {
			if err := c.MakeRows(int64(ref.Len())); err != nil {
				return rowset.RowSet{}, err
			}
			out = rowset.Concat(nil, out, ref)
		}
		return out, nil
	}}
	for i := range n {
		spec.Params = append(spec.Params, plan.ParamSchema{Name: fmt.Sprintf("ref%d", i), Type: plan.NodeRef, Required: true})
	}
	return spec
}

// mixed writes a random plan of that many nodes: cheap, heavy and waiting ones.
func mixed(seed uint64, n int, heavy time.Duration) (last string, nodes []string) {
	rng := rand.New(rand.NewPCG(seed, 9))
	nodes = []string{source(10)}
	ids := []string{"src"}
	for i := range n - 1 {
		id, input := fmt.Sprintf("n%d", i), ids[max(rng.IntN(len(ids)), rng.IntN(len(ids)))]
		switch rng.IntN(8) {
		case 0:
			nodes = append(nodes, node(id, "take", input, `"count": 5`, ""))
		case 1:
			nodes = append(nodes, node(id, "sort", input, `"by": 1`, ""))
		case 2:
			nodes = append(nodes, sleepNode(id, input, time.Duration(rng.IntN(2))*time.Millisecond))
		case 3:
			nodes = append(nodes, busyNode(id, input, heavy))
		default:
			nodes = append(nodes, vmNode(id, input))
		}
		ids = append(ids, id)
	}
	return ids[len(ids)-1], nodes
}

// Plans of many nodes give the same rows in each mode. The rows are checked against a
// calculation, or against a run with each node on the pool.
func TestManyNodes(t *testing.T) {
	const wide = 1000
	tasks := builtins(t, gatherTask(wide))
	ones := make([]int64, 1+wide)
	for i := range ones {
		ones[i] = 1
	}
	add := func(last string, nodes []string) *plan.Graph { return graph(t, tasks, last, nodes...) }
	plans := []struct {
		name string
		g    *plan.Graph
		want []int64 // nil: as in the mode plan.OffloadAll
	}{
		{"a chain of 4000", add(takes(4000)), idsUpTo(10, 1)},
		{"1000 side by side into one", add(fan(wide)), ones},
		{"500 mixed", add(mixed(1, 500, 0)), nil},
		{"500 mixed, others", add(mixed(2, 500, 0)), nil},
	}
	for _, mode := range []plan.Mode{plan.OffloadAll, plan.Adaptive, plan.InlineAll} {
		w := openWorld(t, Config{Placement: Placement{Mode: mode}})
		for i := range plans {
			p := &plans[i]
			t.Run(p.name+" "+string(mode), func(t *testing.T) {
				for range 4 {
					r := w.run(&Execution{Graph: p.g})
					if p.want == nil {
						require.NoError(t, r.Err)
						for row := range r.Outputs[0].Len() {
							p.want = append(p.want, r.Outputs[0].ID(row))
						}
					}
					requireRows(t, r, p.want...)
				}
			})
		}
	}
}

// The stack does not grow with a chain, wherever its nodes run: none of 4,000 nodes has many
// callers on the stack.
func TestAChainTakesNoStack(t *testing.T) {
	const length, callersMax = 4000, 64
	for _, c := range []struct {
		name      string
		place     task.Place
		placement Placement
	}{
		{"one by one on the pool", task.Computes, Placement{Mode: plan.OffloadAll}},
		{"one job", task.Computes, Placement{NoInlineExecution: true}},
		{"inline", task.Computes, Placement{Mode: plan.InlineAll}},
		{"inline, straight on", task.Computes, Placement{Mode: plan.InlineAll, MaxInlineDepth: 2 * length}},
		{"inline, through the ready queue", task.Computes, Placement{Mode: plan.InlineAll, NoContinuationChaining: true}},
		{"coroutines", task.OnLoop, Placement{Mode: plan.OffloadAll}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran, deep atomic.Int64
			tasks := builtins(t, task.Spec{Op: "test::depth", Inputs: 1, Output: task.PassThrough, Place: c.place, Inline: true,
				Run: func(c *task.Ctx) (rowset.RowSet, error) {
					ran.Add(1)
					var callers [callersMax]uintptr
					if runtime.Callers(0, callers[:]) == callersMax {
						deep.Add(1)
					}
					return c.Inputs[0], nil
				}})
			nodes, last := []string{source(1)}, "src"
			for i := range length {
				id := fmt.Sprintf("n%d", i)
				nodes = append(nodes, node(id, "depth", last, "", ""))
				last = id
			}
			w := openWorld(t, Config{Placement: c.placement})
			require.NoError(t, w.run(&Execution{Graph: graph(t, tasks, last, nodes...)}).Err)
			assert.EqualValues(t, length, ran.Load())
			assert.Zero(t, deep.Load())
		})
	}
}

// BenchmarkPlacement runs in each mode the plans that placement was designed for. As in a
// program, nobody checks what the built-in tasks return.
func BenchmarkPlacement(b *testing.B) {
	catalog := trustingCatalog(b)
	type benchmark struct {
		name string
		g    *plan.Graph
	}
	last, nodes := takes(1000)
	plans := []benchmark{{"five cheap nodes", pipeline(b, catalog, 10, 5)}, {"1000 takes", graph(b, catalog, last, nodes...)}}
	for _, rows := range []int{1000, 10_000, 100_000} {
		plans = append(plans, benchmark{fmt.Sprintf("pipeline of %d rows", rows), pipeline(b, catalog, rows, 10)})
	}
	for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll} {
		w := openWorld(b, Config{Placement: Placement{Mode: mode}})
		for _, p := range plans {
			b.Run(p.name+"/"+string(mode), func(b *testing.B) {
				b.ReportAllocs()
				var took latency.Histogram
				for b.Loop() {
					start := time.Now()
					if r := w.run(&Execution{Graph: p.g}); r.Err != nil {
						b.Fatal(r.Err)
					}
					took.Add(time.Since(start))
				}
				b.ReportMetric(float64(latency.Of(&took).P50), "p50-ns")
			})
		}
	}
}
