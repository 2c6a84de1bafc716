package scheduler

import (
	"time"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/trace"
)

// run is one request in flight. Loop only.
type run struct {
	Run
	engine  *Async
	policy  *policy             // the engine's, or that of the request's own mode
	profile *profile            // of its plan
	active  list.List[asyncJob] // its nodes in flight, except those that run inline
	kept    keptNodes
	compute time.Duration  // see Cost
	flow    resp.Flow      // its calls to Redis take turns with other requests'
	link    list.Link[run] // in engine.runs

	orphaned bool // a node has left an orphan, which may still use Shared; otherwise the next request has it
	pumping  bool // pump is on the stack
	broken   bool // a panic has left it in any state
}

// begin starts a request that was admitted.
func (e *Async) begin(x *Execution) {
	r := e.newRun()
	r.Req = x
	defer r.contain(false)
	if r.policy = &e.policy; x.Mode != "" {
		own := e.placement.policy(x.Mode)
		r.policy = &own
	}
	r.profile = e.profileOf(x.Graph)
	r.profile.live++
	if x.counts == nil {
		x.counts = r.profile
		r.profile.counts.Requests++
	}
	r.profile.begun(x.Graph)
	if r.Shared == nil {
		r.Shared = &Shared{Given: taskrun.Request{Rows: tasks.NewRowBudget(e.maxRows)}, Memory: rowset.NewMemory(e.memory)}
	} else {
		r.Shared.failed.Store(false)
		r.Shared.Given.Rows.Refill()
	}
	r.Shared.Memory.SetLending(r.profile.forgets && !x.KeepRows && x.Capture == nil)
	r.Begin(x, e.nodeTimeout, r.policy.mode)
	r.Record(e.journals, trace.Reactor, string(r.policy.mode))
	e.runs.Push(r, &r.link)
	r.pump()
}

func (e *Async) newRun() *run {
	if r := e.freeRuns.take(); r != nil {
		return r
	}
	return &run{engine: e}
}

// pump starts all nodes that are ready, and ends the request when nothing is left. Nodes that wait, or go to the
// pool, start before any node runs inline. A node that settles while pump starts it finds pumping set and leaves the
// rest to the loop below. So a chain of instant nodes does not deepen the stack.
func (r *run) pump() {
	if r.pumping {
		return
	}
	r.pumping = true
	r.engine.loop.CountIn(&r.profile.callbacks)
	r.Journal.Enter()
	r.engine.inliner.ended = 0
	for r.step() {
	}
	r.pumping = false
	if r.State.err != nil && r.policy.skips {
		r.Shared.failed.Store(true)
	}
	if r.State.Finished() {
		r.finish()
	} else {
		r.engine.left = r.Journal.Leave()
	}
}

// step starts what is ready. Then it runs nodes inline, or gives up the optional ones if nothing else is left. It reports whether
// it did either, so that others may be ready now.
func (r *run) step() bool {
	r.startReady()
	if !r.kept.empty() && r.runKept() {
		return true
	}
	return r.State.optional > 0 && r.giveUpOptional()
}

// startReady hands out all nodes that are ready. It keeps those that will run inline.
func (r *run) startReady() {
	for r.State.Ready() {
		node, ok := r.Next(r.engine.loop.Now())
		if !ok {
			return
		}
		if there := r.place(node); there != inline {
			r.start(node, there)
		} else {
			r.kept.add(node)
		}
	}
}

// giveUpOptional gives up the running optional nodes, if the plan waits for nothing else. It reports whether it did.
// Nodes that are kept to run inline end soon.
func (r *run) giveUpOptional() bool {
	if !r.State.OnlyOptional() || !r.kept.empty() {
		return false
	}
	r.Proceed(r.engine.loop.Clock().Now()) // After the deadline of the request, that is the error.
	r.profile.counts.GivenUp += uint64(r.active.Len())
	r.giveUp(ErrGivenUp)
	return true
}

// giveUp settles all nodes that run, without their bodies. The caller pumps the run.
func (r *run) giveUp(err error) {
	for r.active.Len() > 0 {
		j := r.active.First()
		j.advance()
		j.orphan(err)
	}
}

// shutDown settles all nodes that run, because the engine gives up. The caller resumes the run.
func (r *run) shutDown() {
	defer r.contain(false)
	r.State.Abort(-1, ErrShuttingDown)
	r.giveUp(ErrShuttingDown)
}

// finish delivers the result, once, and frees the run.
func (r *run) finish() {
	e := r.engine
	result, x, journal := r.Result(), r.Req, r.Journal
	result.Cost = Cost{x.paid.Commands + uint64(r.flow.Commands), x.paid.ReplyBytes + r.flow.ReplyBytes, x.paid.Compute + r.compute}
	again := x.Fallback != nil && r.FallsBack(result, e.loop.Clock().Now())
	if !r.orphaned {
		var held *rowset.Loans
		if x.Served != nil && result.Err == nil && !x.Served.copied(x.Graph.Log, result.Outputs) {
			held = &x.Served.memory
		}
		if r.Shared.Memory.ReleaseTo(result.Outputs, held); x.Served != nil && x.Served.Copied {
			copy(x.Served.Outputs, result.Outputs)
		}
	}
	if again {
		x.Keep(result)
		x.paid = result.Cost
		x.counts.live++ // until the fallback ends
		x.counts.counts.Fallbacks++
	} else {
		result = x.Settled(result)
		r.count(x, result)
	}
	e.runs.Remove(&r.link)
	if again { // in this iteration, but not on top of this run's stack
		r.free()
		journal.Free()
		e.loop.Defer(func() { e.admit(x) })
		return
	}
	if e.admission.End() {
		e.admitSoon()
	}
	r.free()
	e.deliver(x, result)
	journal.Free()
	e.checkDrained()
}

// count counts the end of the request, whichever plan has ended it.
func (r *run) count(x *Execution, result *Result) {
	if result.Err != nil {
		x.counts.counts.Failed++
	} else if result.Degraded() {
		x.counts.counts.Degraded++
	}
	if x.counts != r.profile {
		r.engine.endLive(x.counts)
	}
}

// contain, deferred directly by each callback that works for a run, ends a panic of the engine itself, and answers the
// request. nested says that a callback below on the stack does so. What a panic leaves of a run may be broken, so
// nobody uses it again; its bodies become orphans.
func (r *run) contain(nested bool) {
	if nested {
		return
	}
	if recovered := recover(); recovered != nil {
		r.engine.loop.Contained(recovered)
		if r.Req != nil { // Otherwise it has been answered.
			r.breakOff()
		}
	}
}

// breakOff answers a request whose run has panicked.
func (r *run) breakOff() {
	e, x, journal, fault := r.engine, r.Req, r.Journal, r.Fault()
	r.Req, r.broken = nil, true
	defer e.checkDrained()
	defer e.contained(journal.Free)
	defer e.deliver(x, fault)
	if e.inliner.run == r {
		e.inliner.abandon()
	}
	for j := r.active.First(); j != nil; j = r.active.First() {
		if j.leave(); j.live {
			e.contained(func() { j.becomeOrphan(ErrFault) })
		} else {
			j.close()
		}
	}
	if r.link.In() {
		e.runs.Remove(&r.link)
	}
	if x.counts != nil {
		r.count(x, fault)
	}
	if r.profile != nil {
		e.endLive(r.profile)
	}
	if e.admission.End() {
		e.admitSoon()
	}
}

// contained runs fn, whose panic must not keep its caller from going on.
func (e *Async) contained(fn func()) {
	defer e.loop.Contain()
	fn()
}

// deliver calls done with the result. A done that panics must not unwind its caller, which has
// other requests to give up, or replies of a connection to deliver.
func (e *Async) deliver(x *Execution, result *Result) {
	defer e.loop.Contain()
	x.done(result)
}

func (r *run) free() {
	r.State.Release()
	r.engine.endLive(r.profile)
	r.Req, r.profile, r.Journal = nil, nil, nil
	r.flow.Renew()
	r.compute = 0
	if r.orphaned {
		r.Shared, r.orphaned = nil, false
	} else {
		r.Shared.Params, r.Shared.notes = expr.Params{}, notes{}
		r.Shared.Given.Ahead.Clear()
	}
	if !r.kept.parked { // otherwise resumeParked still has it
		r.engine.freeRuns.put(r)
	}
}
