package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// poolBody runs the code of a task on the CPU pool, or of all nodes of a chain, one after the
// other. It serves one nodeRun after the other.
//
// From the submission to the hand-back the worker owns the node's ctx, out and err. The loop may
// look at position, and at the starts of the steps up to there.
type poolBody struct {
	taskrun.NoWaiter // of a body that asks Redis: there is no connection
	engine           *Async
	node             *nodeRun // nil while free
	job              cpupool.Job

	// The worker reads these facts about the request. They are set at the submission.
	graph       *plan.Graph
	index       int             // of the first node
	deadline    clock.Time      // of the request
	failed      *atomic.Bool    // the request has failed; nil: run regardless
	context     context.Context // Execution.Context; may be nil
	notes       *notes          // nil: the request wants to know nothing of its nodes
	nodeTimeout time.Duration

	ended    clock.Time   // of the work; zero if no node ran
	steps    []chainStep  // of each node of the chain
	position atomic.Int32 // of the step that has begun last, or notBegun
	worked   atomic.Bool  // the last step has ended: ended and its end are there
}

// chainStep is how one node of a job ran.
type chainStep struct {
	start, end clock.Time
	rows       int
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
	e, r := b.engine, n.run
	b.node, tasks.Env(&n.ctx).Waiter = n, b
	b.graph, b.index, b.deadline, b.nodeTimeout = r.req.Graph, n.node.Index, r.state.deadline, e.nodeTimeout
	b.ended = 0
	b.position.Store(notBegun)
	b.worked.Store(false)
	b.context, b.notes = r.req.Context, r.state.notes
	if r.policy.skips {
		b.failed = r.failed
	}
	length := 1
	if n.chained {
		length = int(n.profile.nodes[b.index].length)
	}
	if cap(b.steps) < length {
		b.steps = make([]chainStep, length)
	}
	b.steps = b.steps[:length]
	b.steps[0].rows = n.rows
	if err := e.cpu.Submit(&b.job); err != nil {
		b.free()
		return err
	}
	if r.recorder != nil {
		r.recorder.Submit(b.index, b.job.Queued, length)
	}
	return nil
}

// notBegun is the position of a job that no worker has begun.
const notBegun = -1

// step returns the step that has begun last, and the first one for a job that no worker has begun.
func (b *poolBody) step() int { return max(0, int(b.position.Load())) }

// work runs on a worker. The inputs are immutable.
func (b *poolBody) work() {
	n, clock := b.node, b.engine.loop.Clock()
	c, index := &n.ctx, b.index
	if b.failed != nil && b.failed.Load() {
		return
	}
	now := b.job.Started
	for k := 0; ; k++ {
		p, step := &n.profile.nodes[index], &b.steps[k]
		step.start = now
		b.position.Store(int32(k))
		n.out, n.err = tasks.Invoke(p.spec, c)
		now = clock.Now()
		step.end, b.ended = now, now
		if n.err != nil || k == len(b.steps)-1 || c.Lack().Err != nil || b.stops(n, now) {
			b.worked.Store(true)
			return
		}
		if b.notes != nil {
			b.notes.take(c.Node, c.Inputs, c.Refs, n.out)
		}
		index = int(p.next)
		next := &n.profile.nodes[index]
		b.steps[k+1].rows = n.out.N + next.makes
		clear(c.Inputs)
		clear(c.Refs)
		c.Node, c.Limit = b.graph.Nodes[index], b.notes.limit(next.limit)
		tasks.Env(c).Deadline = effectiveDeadline(now, b.deadline, b.nodeTimeout, c.Node)
		c.Inputs, c.Refs = append(c.Inputs[:0], n.out), c.Refs[:0]
	}
}

// stops reports, after a step, whether the rest of the chain does not run: the node that has ended
// was late, or nobody waits for the result any more.
func (b *poolBody) stops(n *nodeRun, now clock.Time) bool {
	return tasks.Env(&n.ctx).Deadline.Passed(now) || n.cancel.Cancelled() || b.failed.Load() || b.context != nil && b.context.Err() != nil
}

// Sleep implements taskrun.Waiter, on the worker. It blocks.
func (b *poolBody) Sleep(d time.Duration) error { return b.node.cancel.Sleep(d) }

// Await implements taskrun.Waiter, on the worker. It blocks.
func (b *poolBody) Await(fn func() error) error { return b.engine.awaits.Block(fn, &b.node.cancel) }

// done is the hand-back, on the loop.
func (b *poolBody) done(err error) {
	n := b.node
	ran, last := b.ended != 0, b.step()
	switch {
	case err == cpupool.ErrGoexit:
		n.err = task.ErrGoexit
	case err != nil:
		n.err = err
	case !ran, n.settled && last < len(b.steps)-1 && n.err == nil:
		n.err = task.ErrCancelled // The work has stopped before its end.
	}
	if ran {
		b.measured(last)
	}
	switch {
	case n.settled:
	case ran || err != nil:
		n.advance(last)
		if r := n.run; r.recorder != nil {
			n.recordReturn(r.recorder, b)
		}
	default:
		b.free()
		n.skip()
		return
	}
	b.free()
	n.bodyEnded()
}

// measured takes in how long each node took, and the way to the pool and back.
func (b *poolBody) measured(last int) {
	n, p := b.node, b.node.profile
	n.ended = b.ended
	for k, index := 0, b.index; k <= last; k, index = k+1, int(p.nodes[index].next) {
		step, node := &b.steps[k], &p.nodes[index]
		if step.end < step.start {
			break // It has not returned.
		}
		var err error
		if k == last {
			err = n.err
		}
		node.learn(step.rows, step.end.Sub(step.start), err)
		node.ran.count(1, step.end.Sub(step.start))
		if k > 0 && b.notes.limit(node.limit) > 0 {
			p.counts.TopK++
		}
	}
	p.counts.Offloaded += uint64(last + 1)
	if len(b.steps) > 1 {
		p.counts.Fused += uint64(last + 1)
	}
	p.queueDelay.Add(b.job.Started.Sub(b.job.Queued))
	p.started(b.job.Started.Sub(n.ready))
	p.atOnce += uint64(last) // The steps of a chain follow each other.
	p.roundTrip.Add(b.engine.loop.Clock().Now().Sub(b.job.Queued) - b.ended.Sub(b.job.Started))
}

// keepSteps bounds the steps that a free poolBody keeps: 24 KB.
const keepSteps = 1024

func (b *poolBody) free() {
	clear(b.steps)
	if cap(b.steps) > keepSteps {
		b.steps = nil
	}
	b.node, b.graph, b.failed, b.context, b.notes = nil, nil, nil, nil, nil
	b.engine.freePoolBodies.put(b)
}

// cancel implements body. A queued job does not run at all. A started one sees the node's
// Cancellation when it looks.
func (b *poolBody) cancel() {
	_ = b.engine.cpu.Cancel(&b.job) // The error says that the job has started.
}
