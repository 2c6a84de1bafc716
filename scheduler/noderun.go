package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// body runs the code of a task for one node, at one place. Loop only.
type body interface {
	// start begins the code. The body calls n.bodyEnded exactly once, perhaps inside start. With
	// an error nothing runs, and it never calls.
	start(n *nodeRun) error
	// cancel ends what the body waits for, because nobody waits for its result any more.
	cancel()
}

// nodeRun is one node in flight: the race that settles it, and what its body works on. It does
// not know where the body runs.
//
// Two things happen, in either order. The node settles, once: its body ends, its deadline
// comes, or Close or the plan gives it up; or its body could not start. And its body ends. A node that
// settles first leaves an orphan: a nodeRun without a run, which keeps all that its body still
// uses. The nodeRun is used again only when its body has ended.
//
// Loop only, except that a worker may run invoke.
type nodeRun struct {
	engine  *Async
	run     *run // nil once settled
	node    *plan.Node
	spec    *task.Spec
	profile *profile // of its plan
	rows    int      // that it reads and makes, as the cost model counts them
	body    body     // nil before it starts
	index   int      // in run.active, or in engine.orphans

	ctx     task.Ctx
	params  expr.Params // a copy: an answered request is its caller's again
	cancel  taskrun.Cancellation
	out     rowset.RowSet // of the body
	err     error         // of the body
	chained bool          // the body runs the rest of the chain, too
	steps   int           // of the chain that have settled before node
	ended   clock.Time    // of a body on the pool; zero: the body has ended just now

	ready    clock.Time // when it became ready
	begun    clock.Time // when it was handed over, as its State was told
	started  clock.Time // if there is a deadline
	deadline clock.Time // effective; zero: none
	expiry   *loop.Timer
	settled  bool // first-wins guard
}

func (e *Async) newNodeRun() *nodeRun {
	n := e.freeNodes.take()
	if n == nil {
		n = &nodeRun{engine: e}
		n.ctx.Params, n.ctx.Registry = &n.params, e.reg
		env := tasks.Env(&n.ctx)
		env.Cancellation, env.Outside, env.Clock = &n.cancel, &e.outside, e.loop.Clock()
	}
	return n
}

func (n *nodeRun) bagIndex() *int { return &n.index }

// free ends the use of a settled nodeRun whose body has ended.
func (n *nodeRun) free() {
	e := n.engine
	clear(n.ctx.Inputs) // a kept slice must not keep rows alive
	clear(n.ctx.Refs)
	n.ctx.Node = nil
	env := tasks.Env(&n.ctx)
	env.Waiter, env.Required, env.Caller = nil, nil, nil
	n.params = expr.Params{}
	n.cancel.Reset()
	n.node, n.spec, n.profile, n.body = nil, nil, nil, nil
	n.deadline, n.ended, n.settled = 0, 0, false
	n.chained, n.steps = false, 0
	n.out, n.err = rowset.RowSet{}, nil
	if !e.freeNodes.put(n) {
		n.close()
	}
}

// close gives the timer of a nodeRun that is free back to the loop, which may outlive the engine.
func (n *nodeRun) close() {
	if n.expiry != nil {
		n.expiry.Close(nil)
	}
}

// start begins the race between the deadline and the body. With an error the race is lost
// already, and no body runs.
func (n *nodeRun) start(there where) error {
	if err := n.armDeadline(); err != nil {
		return err
	}
	tasks.Env(&n.ctx).Deadline = n.deadline
	n.body = n.engine.newBody(there)
	return n.body.start(n)
}

// armDeadline starts the timer of the node's deadline, if there is one. The error says that the
// deadline has passed.
func (n *nodeRun) armDeadline() error {
	e, s := n.engine, &n.run.state
	if s.deadline == 0 && e.nodeTimeout == 0 && n.node.Timeout == 0 && n.laterTimeout() == 0 {
		return nil // the usual case costs nothing, not even reading the clock
	}
	n.started = e.loop.Clock().Now()
	n.deadline = s.NodeDeadline(n.node, n.started, e.nodeTimeout)
	if err := s.CheckNodeStart(n.node, n.deadline, n.started); err != nil {
		return err
	}
	return n.startTimer(n.started)
}

// startTimer starts the timer of the node's deadline. In a chain it fires as well before any later
// node can time out, to see which one runs.
func (n *nodeRun) startTimer(now clock.Time) error {
	due := n.deadline
	if later := n.laterTimeout(); later > 0 {
		due = due.Earlier(now.Add(later))
	}
	if due == 0 {
		return nil
	}
	if n.expiry == nil {
		n.expiry = n.engine.loop.NewTimer(n.expire)
	}
	return n.expiry.StartAt(due)
}

// laterTimeout returns the least timeout that the plan sets for a node after this one in its
// chain, or zero.
func (n *nodeRun) laterTimeout() time.Duration {
	if !n.chained {
		return 0
	}
	return n.profile.nodes[n.node.Index].timeoutMin
}

// advance settles the nodes of a chain before the step that runs, or was the last to run.
func (n *nodeRun) advance(step int) {
	b, ok := n.body.(*poolBody)
	if !ok || step == n.steps {
		return
	}
	r := n.run
	for ; n.steps < step; n.steps++ {
		if r.recorder != nil {
			n.recordStep(r.recorder, b, n.node.Index, n.steps)
		}
		n.node = r.req.Graph.Nodes[r.state.Advance(n.node.Index)]
	}
	n.started = b.steps[step].start
	n.deadline = effectiveDeadline(n.started, r.state.deadline, n.engine.nodeTimeout, n.node)
}

// skip settles a node whose job found the request failed before it began.
func (n *nodeRun) skip() {
	r := n.leave()
	if r.recorder != nil {
		r.recorder.Unspawn(n.node.Index)
	}
	r.state.Skip(n.node.Index)
	n.free()
	r.pump()
}

// invoke runs the code of the task. The body calls it, on the loop or on a worker.
func (n *nodeRun) invoke() { n.out, n.err = tasks.Invoke(n.spec, &n.ctx) }

// bodyEnded is the end of the body. It wins the race unless the node has settled.
func (n *nodeRun) bodyEnded() {
	if n.settled {
		n.orphanEnded()
		return
	}
	n.end(n.outcome())
}

// outcome returns the error of a body that has ended, or nil. A node whose body ends after the
// deadline has failed, even if the timer has not fired yet.
func (n *nodeRun) outcome() error {
	if n.deadline == 0 {
		return n.err
	}
	if n.ended == 0 {
		n.ended = n.engine.loop.Clock().Now()
	}
	// If the timer decides, the client's timer for the call may have been ahead of it for the same instant, or the body's
	// context was.
	if n.deadline.Passed(n.ended) && (n.run.policy.strict || errors.Is(n.err, resp.ErrTimeout) || errors.Is(n.err, remote.ErrTimeout) ||
		stoppedEarly(n.err) || errors.Is(n.err, context.DeadlineExceeded)) {
		n.countLate(n.err)
		return n.timedOut(n.ended)
	}
	return n.err
}

// countLate counts a body whose result is dropped, by the way in which it ended.
func (n *nodeRun) countLate(err error) {
	if stoppedEarly(err) {
		n.engine.counts.Cancelled++
		n.profile.counts.Cancelled++
	} else {
		n.engine.counts.LateCompletions++
		n.profile.counts.LateCompletions++
	}
}

// end settles a node whose body has ended, or could not start, and starts what became ready.
func (n *nodeRun) end(err error) {
	r := n.settle(err)
	n.free()
	r.pump()
}

// expire is the deadline winning the race. The node fails now, and the later result of its body
// is dropped. In a chain that is the node that runs, if its time is over.
func (n *nodeRun) expire() {
	now := n.engine.loop.Clock().Now()
	if n.chained {
		if b, ok := n.body.(*poolBody); ok {
			n.advance(b.step())
		}
		if !n.deadline.Passed(now) {
			_ = n.startTimer(now) // Only a stopped loop refuses, and it ends all anyway.
			return
		}
	}
	if r := n.run; r.recorder != nil {
		r.recorder.Enter()
		r.recorder.Fired(n.node.Index, false, n.deadline)
	}
	r := n.orphan(n.timedOut(now))
	r.pump()
}

// timedOut counts a node whose deadline came while it ran, as was seen then, and returns its error.
func (n *nodeRun) timedOut(then clock.Time) error {
	n.engine.counts.NodeTimeouts++
	n.profile.counts.NodeTimeouts++
	return n.run.state.NodeLate(ErrNodeTimeout, n.node, n.started, n.deadline, then)
}

// orphan settles the node without its body, and asks the body to stop. An orphan waits for
// nothing from now on. The caller pumps the run.
func (n *nodeRun) orphan(err error) *run {
	r := n.settle(err)
	r.orphaned = true
	n.engine.orphans.add(n)
	n.cancel.Cancel(err)
	n.body.cancel()
	return r
}

// settle is the one way in which a node settles, whatever wins the race. A nil err means the
// body's result. The caller pumps the run.
func (n *nodeRun) settle(err error) *run {
	r := n.leave()
	r.state.Tell(n.engine.loop.Now())
	if err != nil { // A worker may have the result.
		instead, rows := r.req.Fail(&r.state, n.node.Index, err, n.engine.loop.Clock().Now())
		if r.recorder != nil {
			n.recordEnd(r.recorder, trace.Outcome{Err: err, Instead: instead, Rows: rows})
		}
		return r
	}
	lack := r.noteLack(n.node.Index, &n.ctx)
	r.state.Note(n.node.Index, n.ctx.Inputs, n.ctx.Refs, n.out)
	r.state.Succeed(n.node.Index, n.out)
	if r.recorder != nil {
		n.recordEnd(r.recorder, trace.Outcome{Rows: n.out.N, Dropped: lack.Dropped, Lack: lack.Err})
	}
	return r
}

// leave marks the node as settled, and returns its run.
func (n *nodeRun) leave() *run {
	r := n.run
	n.settled, n.run = true, nil
	r.active.remove(n)
	if n.expiry != nil {
		n.expiry.Stop()
	}
	return r
}

// orphanEnded counts how the body of an orphan ended, and frees the orphan.
func (n *nodeRun) orphanEnded() {
	e := n.engine
	e.orphans.remove(n)
	n.countLate(n.err)
	n.free()
	e.checkDrained()
}

// stoppedEarly reports whether the body of an orphan ended before its own end: it saw that it
// was cancelled, it had not started, or the client ended its call.
func stoppedEarly(err error) bool {
	for _, sign := range [...]error{
		task.ErrCancelled, loop.ErrCancelled, resp.ErrTimeout, resp.ErrClosed, remote.ErrTimeout, remote.ErrClosed,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}
