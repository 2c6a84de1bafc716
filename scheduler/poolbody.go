package scheduler

import (
	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/task"
)

// poolBody runs the code of a task on the CPU pool. It serves one node after the other. Loop
// only, except that work runs on a worker.
type poolBody struct {
	engine *Async
	node   *nodeRun // nil while free
	job    cpupool.Job
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
	err := b.engine.cpu.Submit(&b.job)
	if err != nil {
		b.free()
	}
	return err
}

// work runs on a worker. The inputs are immutable, and the node's out and err belong to the
// worker until done.
func (b *poolBody) work() { b.node.invoke() }

// done is the hand-back, on the loop.
func (b *poolBody) done(err error) {
	n := b.node
	b.free()
	if err != nil {
		n.err = err
	}
	n.bodyEnded()
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
