package scheduler

import (
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// run is one request in flight. Loop only.
type run struct {
	engine  *Async
	req     *Execution
	done    func(*Result)
	delay   time.Duration // until it was let in
	state   State
	policy  policy
	profile *profile      // of its plan
	active  bag[*nodeRun] // its nodes in flight, but for those that run inline
	kept    keptNodes
	asker   resp.Asker // its calls to Redis take turns with other requests'
	index   int        // in engine.runs
	// rows is shared with the bodies, workers' among them, and kept for the next request, unless an orphan may still
	// count on it.
	rows *taskrun.RowBudget
	// failed tells workers that the request has failed. It is shared and kept as rows is.
	failed *atomic.Bool
	// memory lends slices to the bodies. It is shared and kept as rows is.
	memory *rowset.Memory
	// orphaned says that a node has left an orphan, which may still use rows, failed and memory.
	orphaned bool

	recorder *trace.Recorder // nil: nobody records the request
	pumping  bool            // pump is on the stack
}

func (r *run) bagIndex() *int { return &r.index }

// begin starts a request that was let in after it had waited for delay.
func (e *Async) begin(req *Execution, arrived clock.Time, delay time.Duration, done func(*Result)) {
	r := e.newRun()
	r.req, r.done, r.delay = req, done, delay
	mode := e.placement.Mode
	if req.Mode != nil {
		mode = *req.Mode
	}
	r.policy = e.placement.policy(mode)
	r.profile = e.profileOf(req.Graph)
	r.profile.live++
	r.state.Begin(req, arrived)
	if r.rows == nil {
		r.rows = tasks.NewRowBudget(e.maxRows)
	} else {
		r.rows.Refill()
	}
	if r.failed == nil {
		r.failed = new(atomic.Bool)
	} else {
		r.failed.Store(false)
	}
	if r.memory == nil {
		r.memory = rowset.NewMemory(e.memory)
	}
	r.memory.SetLending(r.profile.forgets && !req.KeepRows)
	if req.Record != trace.Off {
		r.record(arrived)
	}
	e.counts.Requests++
	e.runs.add(r)
	r.pump()
}

func (e *Async) newRun() *run {
	if r := e.freeRuns.take(); r != nil {
		return r
	}
	return &run{engine: e}
}

// pump starts all nodes that are ready, and ends the request when nothing is left. What waits, or
// goes to the pool, starts before anything runs inline. A node that settles while pump starts it
// finds pumping set and leaves the rest to the loop below, so that a chain of instant nodes does
// not deepen the stack.
func (r *run) pump() {
	if r.pumping {
		return
	}
	r.pumping = true
	r.engine.loop.CountIn(&r.profile.callbacks)
	if r.recorder != nil {
		r.recorder.Enter()
	}
	for r.startReady(); r.runKept() || r.state.optional > 0 && r.giveUpOptional(); r.startReady() {
	}
	r.pumping = false
	if r.state.err != nil {
		r.failed.Store(true)
	}
	if r.state.Finished() {
		r.finish()
	} else if r.recorder != nil {
		r.engine.left = r.recorder.Leave()
	}
}

// startReady hands out all nodes that are ready. It keeps those that will run inline.
func (r *run) startReady() {
	now := r.engine.loop.Now
	for node, ok := r.req.Next(&r.state, now()); ok; node, ok = r.req.Next(&r.state, now()) {
		if there := r.place(node); there != inline {
			r.start(node, there)
		} else {
			r.kept.add(node)
		}
	}
}

// start begins one node with the results of its inputs, at another place than inline.
func (r *run) start(node int, there where) {
	e := r.engine
	n := e.newNodeRun()
	n.run, n.node = r, r.req.Graph.Nodes[node]
	n.profile = r.profile
	n.chained = there == onPool && r.policy.chains && r.profile.nodes[node].length > 1
	n.spec = r.profile.nodes[node].spec
	n.params = r.req.Params
	n.ready, n.begun = r.readyAt(node), r.state.now
	rows := r.state.Rows(node)
	n.rows = rows + r.profile.nodes[node].makes
	if r.recorder != nil {
		r.recorder.Spawn(node, places[there], rows)
	}
	n.ctx.Node, n.ctx.UserID, n.ctx.RequestID = n.node, r.req.UserID, r.req.RequestID
	n.ctx.Limit, n.ctx.Memory = r.limitOf(node), r.memory
	env := tasks.Env(&n.ctx)
	env.Rows, env.Required, env.Caller = r.rows, r.req.Required, r.req.Context
	n.ctx.Inputs, n.ctx.Refs = r.state.Gather(node, n.ctx.Inputs[:0], n.ctx.Refs[:0])
	r.active.add(n)
	if err := n.start(there); err != nil {
		n.end(err)
	}
}

// readyAt returns when a node became ready that was handed out. The first nodes are not ready before the request is let in.
func (r *run) readyAt(node int) clock.Time {
	return max(r.state.ReadyAt(node), r.state.arrived.Add(r.delay))
}

// giveUpOptional gives up on the optional nodes that run, if the plan waits for nothing else. It reports whether it did. Nodes that
// are kept to run inline end soon.
func (r *run) giveUpOptional() bool {
	if !r.state.OnlyOptional() || !r.kept.empty() {
		return false
	}
	r.req.Proceed(&r.state, r.now()) // Past the deadline of the request that is the error.
	r.engine.counts.GivenUp += uint64(r.active.len())
	r.giveUp(ErrGivenUp)
	return true
}

// giveUp settles all nodes that run, without their bodies. The caller pumps the run.
func (r *run) giveUp(err error) {
	for r.active.len() > 0 {
		r.active.items[0].orphan(err)
	}
}

// noteLack notes what the result of a node lacks, as its body says, and returns it.
func (r *run) noteLack(node int, c *task.Ctx) task.Lack {
	lack := c.Lack()
	if lack.Err != nil {
		r.state.ReportLack(node, lack)
	}
	return lack
}

// finish delivers the result, once, and frees the run.
func (r *run) finish() {
	e := r.engine
	result, done := r.state.Result(), r.done
	result.QueueDelay = r.delay
	recorder := r.recorder
	if recorder != nil {
		result.Recording = recorder.Finish(result.Err)
	}
	if result.Err != nil {
		e.counts.Failed++
	} else if result.Degraded() {
		r.profile.counts.Degraded++
	}
	e.runs.remove(r)
	if e.admission.End() {
		e.letInSoon()
	}
	if !r.orphaned {
		r.memory.Release(result.Outputs)
	}
	r.free()
	e.deliver(result, done)
	e.freeRecorder(recorder)
	e.checkDrained()
}

// deliver calls done with the result. A done that panics must not unwind its caller, which has
// other requests to give up, or replies of a connection to deliver.
func (e *Async) deliver(result *Result, done func(*Result)) {
	defer e.loop.Contain()
	done(result)
}

func (r *run) free() {
	r.state.Release()
	r.profile.live--
	r.req, r.done, r.profile, r.recorder = nil, nil, nil, nil
	if r.orphaned {
		r.rows, r.failed, r.memory, r.orphaned = nil, nil, nil, false
	}
	if !r.kept.parked { // otherwise resumeParked still has it
		r.engine.freeRuns.put(r)
	}
}
