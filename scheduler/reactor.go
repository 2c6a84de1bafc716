package scheduler

import (
	"sync"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// CPU is where offloaded work goes: a *cpupool.Pool, or a simulated one.
type CPU interface {
	Submit(j *cpupool.Job) error // loop only
	WaitIdle()                   // not for the loop
}

// Reactor is the asynchronous engine: it drives any number of requests on one
// loop. All its state is loop only; Submit and Close are for any goroutine.
type Reactor struct {
	loop    *loop.Loop
	cpu     CPU
	reg     *registry.Registry
	clients []*resp.Client // by endpoint index; nil where the endpoint is no Redis

	live    int // requests in flight
	closing bool
	drained chan struct{} // closed when closing and live == 0
	closed  sync.Once
	release func() // ends what OpenReactor has started; nil if the owner does

	// Free lists. They need no lock, being loop only, and keep what a request
	// uses (state, batches, coroutines) warm for the next one.
	freeRuns       []*run
	freeNodes      []*nodeRun
	freeCoroutines []*coroutine
}

// ReactorConfig is what a Reactor is built from. All fields are required.
type ReactorConfig struct {
	Loop     *loop.Loop
	CPU      CPU
	Registry *registry.Registry
	// Clients are the Redis clients of the loop, by Endpoint.Index; nil where the endpoint
	// is no Redis. The engine closes them.
	Clients []*resp.Client
}

// NewReactor returns an engine on a running loop, which it shares with whoever
// else uses that loop.
func NewReactor(cfg ReactorConfig) *Reactor {
	return &Reactor{
		loop: cfg.Loop, cpu: cfg.CPU, reg: cfg.Registry, clients: cfg.Clients,
		drained: make(chan struct{}),
	}
}

// Submit implements Engine. done runs on the loop.
func (e *Reactor) Submit(req *Request, done func(*Result)) {
	if !e.loop.Post(func() { e.begin(req, done) }) {
		go done(&Result{Err: ErrShuttingDown})
	}
}

// Close implements Engine. Loop and pool given to NewReactor are left to their
// owner, idle.
func (e *Reactor) Close() {
	e.closed.Do(func() {
		if e.loop.Post(e.beginClose) {
			<-e.drained
			e.cpu.WaitIdle()
		}
		if e.release != nil {
			e.release()
		}
	})
}

func (e *Reactor) beginClose() {
	e.closing = true
	e.checkDrained()
}

func (e *Reactor) checkDrained() {
	if !e.closing || e.live > 0 {
		return
	}
	for _, c := range e.clients {
		if c != nil {
			c.Close()
		}
	}
	for _, co := range e.freeCoroutines {
		co.tear()
	}
	e.freeCoroutines = nil
	close(e.drained)
}

// run is one request in flight. Loop only.
type run struct {
	engine *Reactor
	req    *Request
	done   func(*Result)
	state  State
	deltas []SchemaDelta // if traced

	pumping bool // pump is on the stack
}

func (e *Reactor) begin(req *Request, done func(*Result)) {
	if e.closing {
		done(&Result{Err: ErrShuttingDown})
		return
	}
	r := e.newRun()
	r.req, r.done = req, done
	r.state.Reset(req.Graph)
	if req.Trace {
		r.deltas = make([]SchemaDelta, len(req.Graph.Nodes))
	}
	e.live++
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
	for node, ok := r.state.Next(); ok; node, ok = r.state.Next() {
		r.start(node)
	}
	r.pumping = false
	if r.state.Finished() {
		r.finish()
	}
}

func (r *run) finish() {
	e := r.engine
	result, done := r.state.outputs(), r.done
	if result.Err == nil {
		result.Deltas = r.deltas
	}
	e.freeRun(r)
	done(result)
	e.live--
	e.checkDrained()
}

// start runs one node: the inputs are gathered, then place decides where.
func (r *run) start(node int) {
	n := r.engine.newNodeRun()
	n.run, n.node = r, r.req.Graph.Nodes[node]
	n.spec = task.SpecOf(n.node)
	n.ctx.Node = n.node
	n.ctx.UserID, n.ctx.Params, n.ctx.Registry = r.req.UserID, &r.req.Params, r.engine.reg
	n.ctx.Inputs, n.ctx.Refs = r.state.Gather(node, n.ctx.Inputs[:0], n.ctx.Refs[:0])
	switch place(n.spec) {
	case onLoop:
		n.startCoroutine()
	case onPool:
		n.offload()
	}
}

// settle takes a node's outcome into the state and starts what became ready.
func (n *nodeRun) settle(out rowset.RowSet, err error) {
	r, node := n.run, n.node.Index
	if err != nil {
		r.state.Fail(node, err)
	} else {
		if r.deltas != nil {
			r.deltas[node] = schemaDelta(n.node, n.ctx.Inputs, n.ctx.Refs, out)
		}
		r.state.Succeed(node, out)
	}
	r.engine.freeNodeRun(n)
	r.pump()
}

// where says on what a node runs.
type where uint8

const (
	onLoop where = iota
	onPool
)

// place is the one place that decides where a node runs. The author of the
// task has the say: a body that can await runs on the loop, any other is CPU work.
func place(spec *task.Spec) where {
	if spec.RunAsync != nil {
		return onLoop
	}
	return onPool
}

func (e *Reactor) newRun() *run {
	if last := len(e.freeRuns) - 1; last >= 0 {
		r := e.freeRuns[last]
		e.freeRuns = e.freeRuns[:last]
		return r
	}
	return &run{engine: e}
}

func (e *Reactor) freeRun(r *run) {
	r.state.Release()
	r.req, r.done, r.deltas = nil, nil, nil
	e.freeRuns = append(e.freeRuns, r)
}
