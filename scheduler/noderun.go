package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// nodeRun is one node on its way. It is an object of its own, apart from its
// request's run, and carries all that the body uses: context, command batch, timer,
// job. Loop only, but for what work does on a CPU worker between offload and offloaded.
type nodeRun struct {
	run  *run
	node *plan.Node
	spec *task.Spec
	ctx  task.Ctx

	out rowset.RowSet // the body's result
	err error

	co    *coroutine  // on the loop
	call  resp.Call   // the one await of Redis at a time
	timer *loop.Timer // the one sleep at a time; made at the first one
	job   cpupool.Job // on the pool

	bodyOnLoop func() // method values, bound once per object
}

func (e *Reactor) newNodeRun() *nodeRun {
	if last := len(e.freeNodes) - 1; last >= 0 {
		n := e.freeNodes[last]
		e.freeNodes = e.freeNodes[:last]
		return n
	}
	n := new(nodeRun)
	n.bodyOnLoop = n.onLoop
	n.call.Done = func(*resp.Call) { n.wake() }
	n.job.Work, n.job.Done = n.work, n.offloaded
	return n
}

// keepBatchBytes bounds the command buffer that an idle nodeRun keeps: a
// 100-row fan-out encodes to about 4 KB.
const keepBatchBytes = 64 << 10

func (e *Reactor) freeNodeRun(n *nodeRun) {
	clear(n.ctx.Inputs) // a kept slice must not keep rows alive
	clear(n.ctx.Refs)
	n.ctx = task.Ctx{Inputs: n.ctx.Inputs[:0], Refs: n.ctx.Refs[:0]}
	n.run, n.node, n.spec = nil, nil, nil
	n.out, n.err = rowset.RowSet{}, nil
	if n.call.Batch.Size() > keepBatchBytes {
		n.call.Batch = resp.Batch{}
	}
	e.freeNodes = append(e.freeNodes, n)
}

// startCoroutine runs the body on the loop.
func (n *nodeRun) startCoroutine() {
	e := n.run.engine
	if last := len(e.freeCoroutines) - 1; last >= 0 {
		n.co = e.freeCoroutines[last]
		e.freeCoroutines = e.freeCoroutines[:last]
	} else {
		n.co = newCoroutine()
	}
	n.ctx.Waiter = n
	if n.co.start(n.bodyOnLoop) {
		n.ended()
	}
}

func (n *nodeRun) onLoop() { n.out, n.err = task.Invoke(n.spec, n.spec.RunAsync, &n.ctx) }

// wake resumes the body after what it awaited.
func (n *nodeRun) wake() {
	if n.co.resume() {
		n.ended()
	}
}

func (n *nodeRun) ended() {
	e := n.run.engine
	e.freeCoroutines = append(e.freeCoroutines, n.co)
	n.co = nil
	n.settle(n.out, n.err)
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
	client := n.run.engine.clients[ep.Index]
	if client == nil {
		return resp.Replies{}, errNoClient(ep)
	}
	if err := client.Do(&n.call); err != nil {
		return resp.Replies{}, err
	}
	if !n.co.suspend() {
		return resp.Replies{}, ErrShuttingDown
	}
	return n.call.Replies, n.call.Err
}

// errNoClient is a fault of whoever built the engine: plans are checked to name
// Redis endpoints only.
func errNoClient(ep *registry.Endpoint) error {
	return fmt.Errorf("no redis client for endpoint %s (%s)", ep.ID, ep.Name)
}

// Sleep implements task.Waiter. Zero does not suspend.
func (n *nodeRun) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if n.timer == nil {
		n.timer = n.run.engine.loop.NewTimer(n.wake)
	}
	if err := n.timer.Start(d, 0); err != nil {
		return err
	}
	if !n.co.suspend() {
		return ErrShuttingDown
	}
	return nil
}

// offload runs the body on the CPU pool.
func (n *nodeRun) offload() {
	n.ctx.Waiter = noWaiter{}
	if err := n.run.engine.cpu.Submit(&n.job); err != nil {
		n.settle(rowset.RowSet{}, err)
	}
}

// work is the body on a worker: inputs are immutable, and out and err belong
// to it until the hand-back.
func (n *nodeRun) work() { n.out, n.err = task.Invoke(n.spec, n.spec.Run, &n.ctx) }

// offloaded is the hand-back, on the loop.
func (n *nodeRun) offloaded(err error) {
	if err != nil {
		n.settle(rowset.RowSet{}, err)
		return
	}
	n.settle(n.out, n.err)
}

// noWaiter refuses to wait where waiting would hold up a CPU worker.
type noWaiter struct{}

var errNoWaiting = errors.New("a task that waits must set RunAsync: the CPU pool does no I/O")

func (noWaiter) NewBatch() *resp.Batch { return new(resp.Batch) }
func (noWaiter) Do(*registry.Endpoint, *resp.Batch) (resp.Replies, error) {
	return resp.Replies{}, errNoWaiting
}
func (noWaiter) Sleep(time.Duration) error { return errNoWaiting }
