package scheduler

import (
	"slices"
	"sync"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// CPU is where offloaded work goes: a *cpupool.Pool, or a simulated one.
type CPU interface {
	Submit(j *cpupool.Job) error // loop only
	Cancel(j *cpupool.Job) error // loop only
	WaitIdle()                   // not for the loop
}

// Async is the asynchronous engine: it drives any number of requests on one
// loop. All its state is loop only; Submit, Close and Metrics are for any goroutine.
type Async struct {
	loop        *loop.Loop
	cpu         CPU
	reg         *registry.Registry
	clients     []*resp.Client // by endpoint index; nil where the endpoint is no Redis
	nodeTimeout time.Duration
	maxRows     int // of a request

	runs   bag[*run]     // requests in flight
	active bag[*nodeRun] // nodes whose body has not ended, orphans among them
	counts Counts

	closing  bool
	grace    *loop.Timer
	graceEnd clock.Time    // when grace fires; zero: not armed
	drained  chan struct{} // closed when closing and nothing is left
	ended    bool          // drained is closed
	closed   sync.Once
	release  func() // ends what OpenAsync has started; nil if the owner does

	// Free lists. They need no lock, being loop only, and keep what a request
	// uses (state, batches, coroutines) warm for the next one.
	freeRuns       []*run
	freeNodes      []*nodeRun
	freeCoroutines []*coroutine
}

// Counts are what an Async has seen since it was built.
type Counts struct {
	Requests     uint64 // begun
	Failed       uint64 // of these, ended with an error
	NodeTimeouts uint64 // nodes whose deadline came while they ran
	// A node that timed out leaves work behind, which ends later in one of two
	// ways, and its result is dropped:
	LateCompletions uint64 // it ran on to its own end
	Cancelled       uint64 // it noticed, or had not started, and stopped early
	Orphans         int    // it has not ended yet; now
}

// AsyncConfig is what an Async is built from.
type AsyncConfig struct {
	Loop     *loop.Loop         // required
	CPU      CPU                // required
	Registry *registry.Registry // required
	// Clients are the Redis clients of the loop, by Endpoint.Index; nil where the endpoint
	// is no Redis. The engine closes them.
	Clients []*resp.Client
	// NodeTimeout bounds each node from its start. Zero means no bound.
	NodeTimeout time.Duration
	// MaxRows bounds the rows that the nodes of one request make together: see
	// task.RowBudget. Zero means task.DefaultMaxRows.
	MaxRows int
}

// NewAsync returns an engine on a running loop, which it shares with whoever
// else uses that loop.
func NewAsync(cfg AsyncConfig) *Async {
	return &Async{
		loop: cfg.Loop, cpu: cfg.CPU, reg: cfg.Registry, clients: cfg.Clients, nodeTimeout: cfg.NodeTimeout,
		maxRows: cfg.MaxRows, drained: make(chan struct{}),
	}
}

// Clock returns the clock on which deadlines are instants. Any goroutine.
func (e *Async) Clock() clock.Clock { return e.loop.Clock() }

// Submit implements Engine. done runs on the loop.
func (e *Async) Submit(req *Execution, done func(*Result)) {
	arrived := req.Arrived
	if arrived == 0 {
		arrived = e.loop.Clock().Now()
	}
	if !e.loop.Post(func() { e.begin(req, arrived, done) }) {
		go done(&Result{Err: ErrShuttingDown})
	}
}

// Close implements Engine. Loop and pool given to NewAsync are left to their
// owner, idle.
func (e *Async) Close(grace time.Duration) {
	if e.loop.Post(func() { e.beginClose(grace) }) {
		<-e.drained
	}
	e.closed.Do(func() {
		e.cpu.WaitIdle()
		if e.release != nil {
			e.release()
		}
	})
}

// beginClose starts the drain: intake stops; what is in flight has until the grace ends to end by
// itself. Of several calls the grace that ends first counts.
func (e *Async) beginClose(grace time.Duration) {
	if e.ended {
		return
	}
	e.closing = true
	switch {
	case e.runs.len() == 0 || grace == Forever:
	case grace <= 0:
		e.giveUp()
	default:
		e.armGrace(grace)
	}
	e.checkDrained()
}

func (e *Async) armGrace(grace time.Duration) {
	if e.grace == nil {
		e.grace = e.loop.NewTimer(e.giveUp)
	}
	if end := e.loop.Clock().Now().Add(grace); e.graceEnd == 0 || end < e.graceEnd {
		e.graceEnd = end
		_ = e.grace.StartAt(end) // A stopped loop alone refuses, and it ends all anyway.
	}
}

// giveUp fails what is still in flight.
func (e *Async) giveUp() {
	for _, n := range e.active.items {
		if !n.settled {
			n.orphan()
		}
	}
	for _, r := range slices.Clone(e.runs.items) {
		r.state.Abort(-1, ErrShuttingDown)
		r.finish()
	}
}

// checkDrained ends the drain in three steps, each when the one before is
// done: no request in flight; then no orphan, whose calls the closed clients fail; then all
// is told. Each orphan's end comes here, so that a call costs the same however many there are.
func (e *Async) checkDrained() {
	if !e.closing || e.ended || e.runs.len() > 0 {
		return
	}
	for _, c := range e.clients {
		if c != nil {
			c.Close() // fails the calls of orphans, which ends their bodies
		}
	}
	if e.active.len() > 0 {
		return // CPU work, or a wait whose end is on its way: each checks again at its end
	}
	for _, co := range e.freeCoroutines {
		co.tear()
	}
	for _, n := range e.freeNodes {
		n.closeTimers()
	}
	e.freeCoroutines, e.freeNodes, e.freeRuns = nil, nil, nil
	if e.grace != nil {
		e.grace.Close(nil)
	}
	e.ended = true
	close(e.drained)
}

// run is one request in flight. Loop only.
type run struct {
	engine *Async
	req    *Execution
	done   func(*Result)
	state  State
	deltas []SchemaDelta // if traced
	inRuns int           // place in engine.runs
	// rows is shared with the bodies, workers' among them, and kept for the next request; nil
	// if an orphan may still count on it.
	rows *task.RowBudget

	pumping bool // pump is on the stack
}

func (e *Async) begin(req *Execution, arrived clock.Time, done func(*Result)) {
	if e.closing {
		done(&Result{Err: ErrShuttingDown})
		return
	}
	r := e.newRun()
	r.req, r.done = req, done
	r.deltas = newDeltas(req)
	r.state.Reset(req.Graph, arrived, req.Deadline)
	r.state.abandoned = req.Abandoned
	if r.rows == nil {
		r.rows = task.NewRowBudget(e.maxRows)
	} else {
		r.rows.Refill()
	}
	e.counts.Requests++
	e.runs.add(r)
	r.pump()
}

// pump starts whatever is ready, and ends the request when nothing is left. A
// node that settles while it is being started finds pumping set and leaves
// the rest to the loop below, so that a chain of instant nodes does not deepen the stack.
func (r *run) pump() {
	if r.pumping {
		return
	}
	r.pumping = true
	for node, ok := r.state.Next(r.engine.loop.Now()); ok; node, ok = r.state.Next(r.engine.loop.Now()) {
		r.start(node)
	}
	r.pumping = false
	if r.state.Finished() {
		r.finish()
	}
}

// finish tells the result, once, and frees the run.
func (r *run) finish() {
	e := r.engine
	result, done := r.state.result(r.deltas), r.done
	if result.Err != nil {
		e.counts.Failed++
	}
	e.runs.remove(r)
	e.freeRun(r)
	e.tell(done, result)
	e.checkDrained()
}

// tell hands a result over. A done that panics must not unwind what called it: other
// requests to be given up, or replies of a connection that are still to be delivered.
func (e *Async) tell(done func(*Result), result *Result) {
	defer e.loop.Contain()
	done(result)
}

// start runs one node: the inputs are gathered, then place decides where.
func (r *run) start(node int) {
	e := r.engine
	n := e.newNodeRun()
	n.run, n.node = r, r.req.Graph.Nodes[node]
	n.spec = task.SpecOf(n.node)
	n.params = r.req.Params
	n.ctx.Node, n.ctx.UserID, n.ctx.Registry, n.ctx.Rows = n.node, r.req.UserID, e.reg, r.rows
	n.ctx.Inputs, n.ctx.Refs = r.state.Gather(node, n.ctx.Inputs[:0], n.ctx.Refs[:0])
	e.active.add(n)
	if err := n.armDeadline(); err != nil {
		n.end(err)
		return
	}
	n.where = place(n.spec, n.node)
	switch n.where {
	case onLoop:
		n.startCoroutine()
	case onPool:
		n.offload()
	}
}

// where says on what a node runs.
type where uint8

const (
	onLoop where = iota
	onPool
)

// loopRowsMax is how many rows a node may make on the loop without awaiting anything. So many
// ids take some 10 µs, which is what the way to the pool and back costs: fewer are made sooner
// than handed over, more would hold up the loop for longer. See BenchmarkSourcePlace.
const loopRowsMax = 2048

// place is the one place that decides where a node runs. The author of the task
// decides by Spec.Place; a node that makes too many rows for the loop runs on the pool.
func place(spec *task.Spec, node *plan.Node) where {
	if spec.Place == task.Computes || spec.Cost != nil && spec.Cost(node) > loopRowsMax {
		return onPool
	}
	return onLoop
}

func (e *Async) newRun() *run {
	if last := len(e.freeRuns) - 1; last >= 0 {
		r := e.freeRuns[last]
		e.freeRuns = e.freeRuns[:last]
		return r
	}
	return &run{engine: e}
}

func (e *Async) freeRun(r *run) {
	r.state.Release()
	r.req, r.done, r.deltas = nil, nil, nil
	e.freeRuns = append(e.freeRuns, r)
}
