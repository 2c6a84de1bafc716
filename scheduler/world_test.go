package scheduler

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Tests run requests in two worlds. One is real: a loop hosted by gnet, a real pool, real time.
// In the other one, the test moves the clock, the loop and the CPU.

// The tests use the plans and tasks of schedulertest by shorter names.
var (
	node         = schedulertest.Node
	source       = schedulertest.Source
	sleepNode    = schedulertest.SleepNode
	busyNode     = schedulertest.BusyNode
	concatNode   = schedulertest.ConcatNode
	vmNode       = schedulertest.VMNode
	viewerNode   = schedulertest.ViewerNode
	graph        = schedulertest.Graph
	graphFor     = schedulertest.GraphFor
	builtins     = schedulertest.Catalog
	testRegistry = schedulertest.Registry
	silentRedis  = schedulertest.SilentRedis
	loopTask     = schedulertest.LoopTask
	idsUpTo      = schedulertest.IDsUpTo
	ms           = schedulertest.MS
	noRows       = schedulertest.NoRows
)

const (
	ample      = schedulertest.Ample
	soon       = schedulertest.Soon
	finalScore = schedulertest.FinalScore
)

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

// openWorld starts an engine. It is closed at the end of the test, and nothing of it may be left
// then.
func openWorld(t testing.TB, cfg Config) *world {
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

// poisonedPool keeps slices of any size and overwrites those that come back. Code that still
// reads one finds wrong rows.
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

// counted returns the counts so far.
func (e *Async) counted() Counts {
	all, _ := e.placementMetrics()
	return all.Counts
}

// assertNothingLeft checks a closed engine: no requests, bodies, orphans or coroutines are
// left.
func assertNothingLeft(t testing.TB, e *Async) {
	t.Helper()
	assert.Zero(t, e.runs.Len(), "requests in flight")
	assert.Empty(t, e.nodes(), "bodies that have not ended")
	assert.Empty(t, e.freeJobs[onLoop].items, "coroutines")
}

// Submit submits a request. A refusal is a result like any other.
func (w *world) Submit(req *Execution, done func(*Result)) {
	if err := w.Async.Submit(req, done); err != nil {
		done(&Result{Err: err})
	}
}

// start submits a request and returns the channel on which its one result comes.
func (w *world) start(req *Execution) <-chan *Result {
	results := make(chan *Result, 2) // a second result would be a bug, and the test would see it
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
	assert.Equal(w.t, m.Counts, m.Placement.Counts)
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
	return newPlacedWorld(t, nodeTimeout, Placement{Mode: plan.OffloadAll})
}

// newPlacedWorld returns a world in which nodes run where p says.
func newPlacedWorld(t testing.TB, nodeTimeout time.Duration, p Placement) *handWorld {
	return newWorldOf(t, Config{NodeTimeout: nodeTimeout, Placement: p})
}

// newWorldOf returns a world with that configuration, apart from what the world itself sets.
func newWorldOf(t testing.TB, cfg Config) *handWorld {
	h := looptest.New(t)
	cpu := &handCPU{loop: h.Loop}
	cfg.Registry = testRegistry(t)
	w := &handWorld{Async: NewAsync(AsyncConfig{Config: cfg, Loop: h.Loop, CPU: cpu}), Harness: h, cpu: cpu, t: t}
	t.Cleanup(w.end)
	return w
}

// end closes the engine at once. It then checks what assertNothingLeft checks, and that no
// timer, held request or post is left on the loop.
func (w *handWorld) end() {
	w.close(0)
	require.True(w.t, w.ended, "the engine does not drain")
	assertNothingLeft(w.t, w.Async)
	w.Loop.Release() // the harness's own hold
	require.NoError(w.t, w.Loop.Close(), "the loop is busy with something")
}

// close begins to close the engine, as Close does, but does not wait for the end.
func (w *handWorld) close(grace time.Duration) {
	w.closed.Do(func() { w.shut(grace) })
	w.Settle()
}

// pending is a request in the world by hand.
type pending struct {
	*Result
	at time.Duration // when the result came, since the submission
}

// start submits a request. The loop runs only when the test says so.
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

// handCPU is a CPU whose worker is the test. The test takes a job with take and ends it with
// finish. Each job is done when it is submitted, if auto is set.
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

// requireTimeout checks that err is a timeout of that kind, and returns it.
func requireTimeout(t testing.TB, err, kind error) *TimeoutError {
	t.Helper()
	require.ErrorIs(t, err, kind)
	var late *TimeoutError
	require.ErrorAs(t, err, &late)
	assert.GreaterOrEqual(t, late.Elapsed, late.Limit)
	return late
}

// requireLate checks that err says in one of the three ways that time ran out.
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

// gate is a task that waits on the CPU until the test opens it, and ignores cancellation.
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
