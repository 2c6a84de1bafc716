package scheduler

import (
	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/task"
)

// poolBody runs the code of a task on the CPU pool. It serves one node after the other. Loop
// only, except that work runs on a worker.
type poolBody struct {
	engine *Async
	node   *nodeRun // nil while free
	job    cpupool.Job

	submitted      clock.Time
	started, ended clock.Time // of the work; zero: it did not run
}

func (e *Async) newPoolBody() *poolBody {
	b := e.freePoolBodies.take()
	if b == nil {
		b = &poolBody{engine: e}
		b.job.Work, b.job.Done = b.work, b.done
	}
	return b
}

// start implements body. The error is the pool's refusal of the job.
func (b *poolBody) start(n *nodeRun) error {
	b.node, n.ctx.Waiter = n, task.NoWaiter{}
	b.submitted, b.started, b.ended = b.engine.loop.Clock().Now(), 0, 0
	err := b.engine.cpu.Submit(&b.job)
	if err != nil {
		b.free()
	}
	return err
}

// work runs on a worker. The inputs are immutable, and the node's out and err belong to the
// worker until done.
func (b *poolBody) work() {
	clock := b.engine.loop.Clock()
	b.started = clock.Now()
	b.node.invoke()
	b.ended = clock.Now()
}

// done is the hand-back, on the loop.
func (b *poolBody) done(err error) {
	n := b.node
	if err != nil {
		n.err = err
	}
	if b.ended != 0 {
		b.measured()
	}
	b.free()
	n.bodyEnded()
}

// measured takes in how long the work took, and the way to it and back.
func (b *poolBody) measured() {
	n, took := b.node, b.ended.Sub(b.started)
	n.ended = b.ended
	p := n.profile
	p.nodes[n.node.Index].learn(n.rows, took, n.err)
	p.counts.Offloaded++
	p.queueDelay.Add(b.started.Sub(b.submitted))
	p.roundTrip.Add(b.engine.loop.Clock().Now().Sub(b.submitted) - took)
}

func (b *poolBody) free() {
	b.node = nil
	b.engine.freePoolBodies.put(b)
}

// cancel implements body. A queued job does not run at all. A started one sees the node's
// Cancellation when it looks.
func (b *poolBody) cancel() {
	_ = b.engine.cpu.Cancel(&b.job) // The error says that the job has started.
}
