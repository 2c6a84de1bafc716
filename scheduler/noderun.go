package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// nodeRun is one node on its way, from its start to the end of its body. It is
// an object of its own, apart from its request's run, and carries all that the
// body uses: context, parameters, command batch, timers, job.
//
// Two things end, in either order: the node is settled, once, by the body's end or by
// its deadline, whichever comes first; and the body ends. A node that is settled
// first is an orphan: its run is gone, it keeps all that its body still uses, and
// it is reused only when the body has ended.
//
// Loop only, but for what work does on a CPU worker between offload and offloaded.
type nodeRun struct {
	engine   *Async
	run      *run // nil once settled
	node     *plan.Node
	spec     *task.Spec
	where    where // the body runs
	ctx      task.Ctx
	params   expr.Params // a copy: the request is its caller's again once it is answered
	cancel   task.Cancellation
	inActive int // place in engine.active

	started  clock.Time // if there is a deadline
	deadline clock.Time // effective; zero: none
	expiry   *loop.Timer
	settled  bool // first-wins guard between the body's end and the deadline

	out rowset.RowSet // the body's result
	err error

	co    *coroutine  // on the loop
	call  resp.Call   // the one await of Redis at a time
	timer *loop.Timer // the one sleep at a time; made at the first one
	job   cpupool.Job // on the pool

	bodyOnLoop func() // method values, bound once per object
}

func (e *Async) newNodeRun() *nodeRun {
	if last := len(e.freeNodes) - 1; last >= 0 {
		n := e.freeNodes[last]
		e.freeNodes = e.freeNodes[:last]
		return n
	}
	n := &nodeRun{engine: e}
	n.bodyOnLoop = n.onLoop
	n.call.Done = func(*resp.Call) { n.wake() }
	n.job.Work, n.job.Done = n.work, n.offloaded
	n.ctx.Params, n.ctx.Cancellation = &n.params, &n.cancel
	return n
}

// keepBatchBytes bounds the command buffer that an idle nodeRun keeps: a
// 100-row fan-out encodes to about 4 KB.
const keepBatchBytes = 64 << 10

func (e *Async) freeNodeRun(n *nodeRun) {
	clear(n.ctx.Inputs) // a kept slice must not keep rows alive
	clear(n.ctx.Refs)
	n.ctx.Node, n.ctx.Registry = nil, nil
	n.params = expr.Params{}
	n.cancel.Reset()
	n.run, n.node, n.spec = nil, nil, nil
	n.deadline, n.settled = 0, false
	n.out, n.err = rowset.RowSet{}, nil
	n.call.Batch.Shrink(keepBatchBytes)
	e.freeNodes = append(e.freeNodes, n)
}

// closeTimers gives an idle nodeRun's timers back to the loop, which may
// outlive the engine.
func (n *nodeRun) closeTimers() {
	for _, timer := range [...]*loop.Timer{n.expiry, n.timer} {
		if timer != nil {
			timer.Close(nil)
		}
	}
}

// armDeadline starts the race between the body and the node's deadline. The
// error says that it is lost already.
func (n *nodeRun) armDeadline() error {
	e, s := n.engine, &n.run.state
	if s.deadline == 0 && e.nodeTimeout == 0 && n.node.Timeout == 0 {
		return nil // the usual case costs nothing, not even reading the clock
	}
	n.started = e.loop.Clock().Now()
	n.deadline = effectiveDeadline(n.started, s.deadline, e.nodeTimeout, n.node)
	if n.deadline.Passed(n.started) {
		return s.late(ErrDeadlineBeforeStart, n.started, n.deadline)
	}
	if n.expiry == nil {
		n.expiry = e.loop.NewTimer(n.expire)
	}
	return n.expiry.StartAt(n.deadline)
}

// expire is the deadline winning the race: the node fails now, and what its
// body still does is dropped.
func (n *nodeRun) expire() {
	r, node, err := n.run, n.node.Index, n.timeoutError()
	n.engine.counts.NodeTimeouts++
	n.orphan()
	r.state.Fail(node, err)
	r.pump()
}

func (n *nodeRun) timeoutError() error {
	return &TimeoutError{
		Kind:    ErrNodeTimeout,
		Elapsed: n.engine.loop.Clock().Now().Sub(n.started),
		Limit:   n.deadline.Sub(n.started),
	}
}

// orphan settles the node without its body, which is asked to stop and waits for
// nothing from now on: a sleep ends in the next iteration, each body in a timer callback
// of its own, however many there are; a Redis call ends at the node's deadline, or when
// the drain closes the client.
func (n *nodeRun) orphan() {
	n.run.rows = nil // the orphan may still count on it
	n.settled, n.run = true, nil
	n.engine.counts.Orphans++
	if n.expiry != nil {
		n.expiry.Stop()
	}
	n.cancel.Cancel()
	if n.timer != nil && n.timer.Active() {
		_ = n.timer.Start(0, 0) // refused only by a stopped loop, which fires no timer anyway
	}
	if n.where == onPool {
		_ = n.engine.cpu.Cancel(&n.job) // busy: it has started, and sees its Cancellation
	}
}

// bodyEnded is the end of the body: it settles the node, unless the deadline
// has done so before.
func (n *nodeRun) bodyEnded() {
	if n.settled {
		n.orphanEnded()
		return
	}
	n.end(n.err)
}

// end settles the node with the body's result, or with err, and starts what
// became ready. The nodeRun is free afterwards.
func (n *nodeRun) end(err error) {
	r, node := n.run, n.node.Index
	n.settled = true
	if n.expiry != nil {
		n.expiry.Stop()
	}
	switch {
	case err == nil:
		if r.deltas != nil {
			r.deltas[node] = schemaDelta(n.node, n.ctx.Inputs, n.ctx.Refs, n.out)
		}
		r.state.Succeed(node, n.out)
	case errors.Is(err, resp.ErrTimeout) && n.deadline.Passed(n.engine.loop.Clock().Now()):
		// The client's timer for the call was ahead of the node's for the same instant.
		n.engine.counts.NodeTimeouts++
		r.state.Fail(node, n.timeoutError())
	default:
		r.state.Fail(node, err)
	}
	n.engine.active.remove(n)
	n.engine.freeNodeRun(n)
	r.pump()
}

// orphanEnded counts how an orphan came to its end and frees it.
func (n *nodeRun) orphanEnded() {
	e := n.engine
	e.counts.Orphans--
	if stoppedEarly(n.err) {
		e.counts.Cancelled++
	} else {
		e.counts.LateCompletions++
	}
	e.active.remove(n)
	e.freeNodeRun(n)
	e.checkDrained()
}

// stoppedEarly reports whether an orphan ended before its own end: it saw that it
// was cancelled, it had not started, or what it awaited was given up.
func stoppedEarly(err error) bool {
	for _, sign := range [...]error{
		task.ErrCancelled, cpupool.ErrCancelled, resp.ErrTimeout, resp.ErrClosed,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// startCoroutine runs the body on the loop.
func (n *nodeRun) startCoroutine() {
	e := n.engine
	if last := len(e.freeCoroutines) - 1; last >= 0 {
		n.co = e.freeCoroutines[last]
		e.freeCoroutines = e.freeCoroutines[:last]
	} else {
		n.co = newCoroutine()
	}
	n.ctx.Waiter = n
	if n.co.start(n.bodyOnLoop) {
		n.coroutineEnded()
	}
}

func (n *nodeRun) onLoop() { n.out, n.err = task.Invoke(n.spec, &n.ctx) }

// wake resumes the body after what it awaited.
func (n *nodeRun) wake() {
	if n.co.resume() {
		n.coroutineEnded()
	}
}

func (n *nodeRun) coroutineEnded() {
	n.engine.freeCoroutines = append(n.engine.freeCoroutines, n.co)
	n.co = nil
	n.bodyEnded()
}

// NewBatch implements task.Waiter.
func (n *nodeRun) NewBatch() *resp.Batch {
	n.call.Batch.Reset()
	return &n.call.Batch
}

// Do implements task.Waiter: it suspends the body until the replies are there.
// They are views into the connection's bytes, good until the body waits again.
func (n *nodeRun) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	if b != &n.call.Batch {
		return resp.Replies{}, errors.New("batch is not of this task's NewBatch")
	}
	client := n.engine.clients[ep.Index]
	if client == nil {
		return resp.Replies{}, errNoClient(ep)
	}
	n.call.Deadline = n.deadline // a command never waits past its request
	if err := client.Do(&n.call); err != nil {
		return resp.Replies{}, err
	}
	if !n.co.suspend() {
		return resp.Replies{}, task.ErrCancelled
	}
	return n.call.Replies, n.call.Err
}

// errNoClient is a fault of whoever built the engine: plans are checked to name
// Redis endpoints only.
func errNoClient(ep *registry.Endpoint) error {
	return fmt.Errorf("no redis client for endpoint %s (%s)", ep.ID, ep.Name)
}

// Sleep implements task.Waiter. Zero does not suspend. An orphan's sleep lasts until the
// next iteration: a body that ignores the error and tries again for ever leaves the loop
// to the others.
func (n *nodeRun) Sleep(d time.Duration) error {
	switch {
	case n.settled:
		d = 0
	case d <= 0:
		return nil
	}
	if n.timer == nil {
		n.timer = n.engine.loop.NewTimer(n.wake)
	}
	if err := n.timer.Start(d, 0); err != nil {
		return err
	}
	if !n.co.suspend() || n.settled {
		return task.ErrCancelled
	}
	return nil
}

// offload runs the body on the CPU pool.
func (n *nodeRun) offload() {
	n.ctx.Waiter = task.NoWaiter{}
	if err := n.engine.cpu.Submit(&n.job); err != nil {
		n.end(err)
	}
}

// work is the body on a worker: inputs are immutable, and out and err belong
// to it until the hand-back.
func (n *nodeRun) work() { n.out, n.err = task.Invoke(n.spec, &n.ctx) }

// offloaded is the hand-back, on the loop.
func (n *nodeRun) offloaded(err error) {
	if err != nil {
		n.err = err
	}
	n.bodyEnded()
}
