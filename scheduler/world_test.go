package scheduler

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/looptest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Two worlds to run requests in: the real one (a loop hosted by gnet, a real
// pool, real time), and one by hand, whose clock, loop and CPU the test moves.

// ample is longer than any test takes: what has it as its limit is in time, what
// has it as its duration is late.
const ample = time.Hour

// soon is a limit that a test waits for in real time.
const soon = 10 * time.Millisecond

// node writes one node of a plan: its input ("" for none), its parameters in
// JSON, and other members of the node ("" for none).
func node(id, op, input, params, more string) string {
	inputs := ""
	if input != "" {
		inputs = fmt.Sprintf("%q", input)
	}
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}%s}`, id, op, inputs, params, more)
}

func source(rows int) string {
	return node("src", "fixed_source", "", fmt.Sprintf(`"row_count": %d`, rows), "")
}

func sleepNode(id, input string, d time.Duration) string {
	return node(id, "sleep", input, fmt.Sprintf(`"duration_ms": %d`, d.Milliseconds()), "")
}

func busyNode(id, input string, d time.Duration) string {
	return node(id, "busy_cpu", input, fmt.Sprintf(`"busy_wait_ms": %d`, d.Milliseconds()), "")
}

func concatNode(id, left, right string) string {
	return node(id, "concat", left, fmt.Sprintf(`"rhs": %q`, right), "")
}

// vmNode writes final_score = id × weight, which is 2 unless the request sets it.
func vmNode(id, input string) string {
	return node(id, "vm", input, `"out_key": 2001, "expr_id": "score"`, "")
}

const finalScore = 2001

// planJSON puts nodes together; the last one is the output.
func planJSON(output string, nodes ...string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "test", "nodes": [%s], "outputs": [%q],
		"expr_table": {"score": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b":
			{"op": "coalesce", "a": {"op": "param_ref", "param_id": 4}, "b": {"op": "const_number", "value": 2}}}},
		"pred_table": {"big": {"op": "cmp", "cmp": ">=",
			"a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 0}}}}`,
		strings.Join(nodes, ",\n"), output)
}

// tables is one registry for all tests: an engine runs the plans of its own registry only.
var tables = sync.OnceValues(func() (*registry.Registry, error) { return registry.Default("test") })

func testRegistry(t testing.TB) *registry.Registry {
	reg, err := tables()
	require.NoError(t, err)
	return reg
}

// builtins returns the task registry with more tasks in it.
func builtins(t testing.TB, more ...task.Spec) *task.Catalog {
	tasks, err := task.NewCatalog(append(builtin.Specs(), more...)...)
	require.NoError(t, err)
	return tasks
}

// graph loads a plan of nodes, the last of which is the output.
func graph(t testing.TB, tasks *task.Catalog, output string, nodes ...string) *plan.Graph {
	t.Helper()
	return graphFor(t, testRegistry(t), tasks, output, nodes...)
}

// graphFor loads a plan for engines of that registry.
func graphFor(t testing.TB, reg *registry.Registry, tasks *task.Catalog, output string, nodes ...string) *plan.Graph {
	t.Helper()
	g, err := plan.Load("test.plan.json", []byte(planJSON(output, nodes...)), tasks, reg)
	require.NoError(t, err)
	return g
}

// builtinGraph loads a plan of built-in tasks.
func builtinGraph(t testing.TB, output string, nodes ...string) *plan.Graph {
	t.Helper()
	return graph(t, builtin.Catalog(), output, nodes...)
}

// world is an engine in real time.
type world struct {
	*Async
	t testing.TB
}

// open starts an engine, which is closed at the end of the test; nothing may be left of it then.
func open(t testing.TB, cfg Config) *world {
	t.Helper()
	if cfg.Registry == nil {
		cfg.Registry = testRegistry(t)
	}
	cfg.OnPanic = func(recovered any, stack []byte) { t.Errorf("panic on the loop: %v\n%s", recovered, stack) }
	if _, ok := t.(*testing.T); ok && cfg.Memory == nil {
		cfg.Memory = poisonedPool()
	}
	e, err := OpenAsync(cfg)
	require.NoError(t, err)
	w := &world{Async: e, t: t}
	t.Cleanup(func() {
		w.Close(Forever)
		assertNothingLeft(t, e)
	})
	return w
}

// poisonedPool keeps slices of any size and overwrites what comes back: code that still reads it finds
// wrong rows.
func poisonedPool() *rowset.Pool {
	return rowset.NewPool(rowset.PoolConfig{LengthMin: 1, Poison: true})
}

// nodes returns the nodes whose body has not ended, orphans last.
func (e *Async) nodes() (all []*asyncJob) {
	for r := e.runs.First(); r != nil; r = r.link.Next() {
		for j := r.active.First(); j != nil; j = j.link.Next() {
			all = append(all, j)
		}
	}
	for j := e.orphans.First(); j != nil; j = j.link.Next() {
		all = append(all, j)
	}
	return all
}

// assertNothingLeft checks a closed engine: no request, no body, no orphan, no coroutine.
func assertNothingLeft(t testing.TB, e *Async) {
	t.Helper()
	assert.Zero(t, e.runs.Len(), "requests in flight")
	assert.Empty(t, e.nodes(), "bodies that have not ended")
	assert.Empty(t, e.freeLoopBodies.items, "coroutines")
}

// Submit submits a request. A refusal is a result like any other.
func (w *world) Submit(req *Execution, done func(*Result)) {
	if err := w.Async.Submit(req, done); err != nil {
		done(&Result{Err: err})
	}
}

// start submits a request and returns where its result will be, exactly one.
func (w *world) start(req *Execution) <-chan *Result {
	results := make(chan *Result, 2) // a second result would be a bug, and is seen as such
	w.Submit(req, func(r *Result) { results <- r })
	return results
}

// run submits a request and waits for its result.
func (w *world) run(req *Execution) *Result { return <-w.start(req) }

// within returns a request of g that has d from now.
func (w *world) within(g *plan.Graph, d time.Duration) *Execution {
	now := w.Clock().Now()
	return &Execution{Graph: g, UserID: 1, Arrived: now, Deadline: now.Add(d)}
}

// counted returns the engine's counters as they are now.
func (w *world) counted() Counts {
	m := w.Metrics()
	return m.Counts
}

// handWorld is an engine on a manual clock. The test's goroutine is the loop.
type handWorld struct {
	*Async
	*looptest.Harness
	cpu *handCPU
	t   testing.TB
}

// newHandWorld returns a world in which every computing node is a job of its own.
func newHandWorld(t testing.TB, nodeTimeout time.Duration) *handWorld {
	return newPlacedWorld(t, nodeTimeout, Placement{Mode: OffloadAll})
}

// newPlacedWorld returns a world in which nodes run where p says.
func newPlacedWorld(t testing.TB, nodeTimeout time.Duration, p Placement) *handWorld {
	return newWorldOf(t, AsyncConfig{NodeTimeout: nodeTimeout, Placement: p})
}

// newWorldOf returns a world with the rest of that configuration.
func newWorldOf(t testing.TB, cfg AsyncConfig) *handWorld {
	h := looptest.New(t)
	cpu := &handCPU{loop: h.Loop}
	cfg.Loop, cfg.CPU, cfg.Registry = h.Loop, cpu, testRegistry(t)
	w := &handWorld{Async: NewAsync(cfg), Harness: h, cpu: cpu, t: t}
	t.Cleanup(w.end)
	return w
}

// end closes the engine at once. Nothing may be left of it: neither what
// assertNothingLeft looks for, nor a timer, a held request or a post on the loop.
func (w *handWorld) end() {
	w.close(0)
	require.True(w.t, w.ended, "the engine does not drain")
	assertNothingLeft(w.t, w.Async)
	w.Loop.Release() // the harness's own hold
	require.NoError(w.t, w.Loop.Close(), "the loop is busy with something")
}

// close begins to close the engine, as Close does, without waiting for the end.
func (w *handWorld) close(grace time.Duration) {
	w.closed.Do(func() { w.Loop.Post(func() { w.beginClose(grace) }) })
	w.Settle()
}

// pending is a request in the world by hand.
type pending struct {
	*Result
	at time.Duration // when the result came, since the submission
}

// start submits a request; the loop turns only when told.
func (w *handWorld) start(req *Execution) *pending {
	p, began := new(pending), w.Harness.Clock.Now()
	err := w.Submit(req, func(r *Result) {
		assert.Nil(w.t, p.Result, "a second result")
		p.Result, p.at = r, w.Harness.Clock.Now().Sub(began)
	})
	if err != nil {
		p.Result = &Result{Err: err}
	}
	return p
}

// within returns a request of g that has d from now; zero means no deadline.
func (w *handWorld) within(g *plan.Graph, d time.Duration) *Execution {
	req := &Execution{Graph: g, UserID: 1, Arrived: w.Harness.Clock.Now()}
	if d != 0 {
		req.Deadline = req.Arrived.Add(d)
	}
	return req
}

// handCPU is a CPU whose worker is the test: it takes a job with take and ends
// it with finish; or, if auto is set, every job is done as soon as it is submitted.
type handCPU struct {
	loop   *loop.Loop
	queued []*cpupool.Job
	auto   bool
	full   bool // refuses jobs
}

func (c *handCPU) Submit(j *cpupool.Job) error {
	j.Queued = c.loop.Clock().Now()
	switch {
	case c.full:
		return cpupool.ErrQueueFull
	case c.auto:
		j.Started = j.Queued
		c.finish(j)
	default:
		c.queued = append(c.queued, j)
	}
	return nil
}

func (c *handCPU) Cancel(j *cpupool.Job) error {
	i := slices.Index(c.queued, j)
	if i < 0 {
		return loop.ErrBusy
	}
	c.queued = slices.Delete(c.queued, i, i+1)
	c.loop.Post(func() { j.Done(loop.ErrCancelled) })
	return nil
}

func (c *handCPU) WaitIdle() {}

// take makes the worker start the oldest job, which can no longer be cancelled.
func (c *handCPU) take() *cpupool.Job {
	j := c.queued[0]
	c.queued = c.queued[1:]
	j.Started = c.loop.Clock().Now()
	return j
}

// finish runs a job that was taken and posts its hand-back.
func (c *handCPU) finish(j *cpupool.Job) {
	j.Work()
	c.loop.Post(func() { j.Done(nil) })
}

// requireTimeout checks that err is late in that way, and returns how late.
func requireTimeout(t testing.TB, err, kind error) *TimeoutError {
	t.Helper()
	require.ErrorIs(t, err, kind)
	var late *TimeoutError
	require.ErrorAs(t, err, &late)
	assert.GreaterOrEqual(t, late.Elapsed, late.Limit)
	return late
}

// requireLate checks that err says that time ran out, in any of the three ways.
func requireLate(t testing.TB, err error) {
	t.Helper()
	var late *TimeoutError
	require.ErrorAs(t, err, &late)
	assert.GreaterOrEqual(t, late.Elapsed, late.Limit)
	assert.True(t, errors.Is(err, ErrRequestDeadline) || errors.Is(err, ErrNodeTimeout) ||
		errors.Is(err, ErrDeadlineBeforeStart), "%v", err)
}

// requireNode checks which node an error is about.
func requireNode(t testing.TB, err error, id string) {
	t.Helper()
	var n *NodeError
	require.ErrorAs(t, err, &n)
	assert.Equal(t, id, n.Node)
}

// requireRows checks the ids of the only output.
func requireRows(t testing.TB, r *Result, ids ...int64) {
	t.Helper()
	require.NoError(t, r.Err)
	require.Len(t, r.Outputs, 1)
	got := make([]int64, r.Outputs[0].Len())
	for i := range got {
		got[i] = r.Outputs[0].ID(i)
	}
	require.Equal(t, ids, got)
}

// idsUpTo returns 1 … n, and again as often as told.
func idsUpTo(n int64, times int) (ids []int64) {
	for range times {
		for id := range n {
			ids = append(ids, id+1)
		}
	}
	return ids
}

// gate is a task that waits on the CPU until the test opens it, deaf to
// cancellation.
type gate struct {
	entered chan *task.Ctx // unbuffered: the test sees each body come in
	open    chan struct{}
	once    sync.Once
}

func newGate() *gate { return &gate{entered: make(chan *task.Ctx), open: make(chan struct{})} }

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// openFDs returns the number of descriptors that the process has open.
func openFDs(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc to count descriptors in")
	}
	return len(entries) - 1 // the folder itself
}

func (g *gate) spec() task.Spec {
	return task.Spec{
		Op: "test::gate", Output: task.Source,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			g.entered <- c
			<-g.open
			return rowset.Dense(new(rowset.Batch)), nil
		},
	}
}
