package scheduler

import (
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// CPU runs jobs beside the loop: a *cpupool.Pool, or a simulated one. Each method says who may
// call it.
type CPU interface {
	Submit(j *cpupool.Job) error // loop only
	Cancel(j *cpupool.Job) error // loop only
	WaitIdle()                   // any goroutine except the loop
}

// offload is what an asyncJob needs on the CPU pool, where it runs the nodes of a chain, or one node.
//
// From the submission to the hand-back the worker owns the Job. The loop may read position, and the starts of the
// steps up to it.
type offload struct {
	waiter  poolWaiter
	job     cpupool.Job
	next    func() bool // the method nextStep, bound once
	settled int         // steps whose nodes have settled

	// The worker reads these facts about the request. They are set at the submission.
	graph  *plan.Graph
	head   int // the first node
	bounds bounds
	shared *Shared
	notes  *notes // nil: the request does not want notes about its nodes

	steps    []jobStep    // of each node of the chain
	position atomic.Int32 // of the latest step that has begun, or notBegun
	worked   atomic.Bool  // the last step has ended: Job.Ended and its end are set
}

// jobStep is how one node of a job ran.
type jobStep struct {
	start, end clock.Time
	rows       int // of the node's inputs
}

// notBegun is the position of a job that no worker has begun.
const notBegun = -1

func newOffload(j *asyncJob) *offload {
	return &offload{waiter: poolWaiter{job: j}, next: j.nextStep, job: cpupool.Job{Work: j.work, Done: j.handedBack}}
}

// load sets the facts about the node of j, which reads so many rows, and how many follow it in its chain.
func (o *offload) load(j *asyncJob, rows int) {
	r := j.run
	o.graph, o.head, o.bounds, o.shared, o.notes = r.Req.Graph, j.node.Index, r.State.bounds, r.Shared, r.State.notes
	length := 1
	if r.policy.chains {
		length = int(j.profile.nodes[o.head].length)
	}
	if cap(o.steps) < length {
		o.steps = make([]jobStep, length)
	}
	o.steps = o.steps[:length]
	o.steps[0].rows = rows
	o.position.Store(notBegun)
	o.worked.Store(false)
}

// keepSteps bounds the steps that a free asyncJob keeps: 24 KB.
const keepSteps = 1024

func (o *offload) clear() {
	clear(o.steps)
	if o.steps = o.steps[:0]; cap(o.steps) > keepSteps {
		o.steps = nil
	}
	o.graph, o.shared, o.notes, o.settled = nil, nil, nil, 0
}

// chained reports whether the job runs several nodes.
func (j *asyncJob) chained() bool { return j.offload != nil && len(j.offload.steps) > 1 }

// submit hands the job to the pool. The error is the pool's refusal.
func (j *asyncJob) submit() error {
	o := j.offload
	tasks.Env(&j.Ctx).Waiter = &o.waiter
	o.job.Due = j.run.due(o.head)
	if err := j.engine.cpu.Submit(&o.job); err != nil {
		return err
	}
	j.live = true
	j.run.Journal.Submit(o.head, o.job.Queued, len(o.steps))
	return nil
}

// work runs on a worker. The inputs are immutable.
func (j *asyncJob) work() {
	o := j.offload
	if o.shared.failed.Load() {
		return
	}
	o.steps[0].start = o.job.Started
	o.position.Store(0)
	j.Steps(o.next)
}

// nextStep ends a step on the worker, and begins the next one unless the job stops.
func (j *asyncJob) nextStep() bool {
	o, c := j.offload, &j.Ctx
	k := int(o.position.Load())
	o.steps[k].end = j.Ended
	if k == len(o.steps)-1 || j.stops() {
		o.worked.Store(true)
		return false
	}
	if o.notes != nil {
		o.notes.take(c.Node, c.Inputs, c.Refs, j.Out, rowcache.Use{}) // a worker reads nothing
	}
	index := j.profile.nodes[c.Node.Index].next
	next := &j.profile.nodes[index]
	o.steps[k+1] = jobStep{start: j.Ended, rows: j.Out.N}
	j.follow(o.graph.Nodes[index], next.spec, o.shared.limit(next.limit), &o.bounds)
	o.position.Store(int32(k + 1))
	return true
}

// stops reports, after a step, whether the rest of the chain must not run: the node has failed, has a shortfall or
// was late, or nobody waits for the result any more.
func (j *asyncJob) stops() bool {
	s := j.offload.shared
	return j.Err != nil || j.Ctx.Shortfall() != (task.Shortfall{}) || j.Late(true) || j.cancel.Cancelled() || s.failed.Load() ||
		s.Given.Caller != nil && s.Given.Caller.Err() != nil
}

// poolWaiter is the taskrun.Waiter of a body on the pool. It has no connection to Redis. Only the worker uses it.
type poolWaiter struct {
	taskrun.NoWaiter
	job *asyncJob
}

// Sleep implements taskrun.Waiter. It blocks.
func (w *poolWaiter) Sleep(d time.Duration) error { return w.job.cancel.Sleep(d) }

// Await implements taskrun.Waiter. It blocks.
func (w *poolWaiter) Await(fn func() error) error {
	return w.job.engine.awaits.Block(fn, &w.job.cancel)
}

// advance settles the nodes of a chain before the step that runs, or that ran last.
func (j *asyncJob) advance() {
	o, r := j.offload, j.run
	if !j.chained() {
		return
	}
	for last := int(o.position.Load()); o.settled < last; o.settled++ {
		j.noteStep(o.settled)
		j.node = o.graph.Nodes[r.State.Advance(j.node.Index)]
		j.started = o.steps[o.settled+1].start
		j.deadline = o.bounds.nodeDeadline(j.node, j.started)
	}
}

// handedBack is the end of the job, on the loop.
func (j *asyncJob) handedBack(err error) {
	j.live = false
	if !j.settled {
		defer j.run.contain(false)
	}
	o := j.offload
	ran, last := j.Ended != 0, int(o.position.Load())
	switch {
	case err == cpupool.ErrGoexit:
		j.Err = task.ErrGoexit
	case err != nil:
		j.Err = err
	case !ran, j.settled && last < len(o.steps)-1 && j.Err == nil:
		j.Err = task.ErrCancelled // The work has stopped before its end.
	}
	if ran {
		j.measure(last)
	}
	if !j.settled {
		if !ran && err == nil {
			j.skip()
			return
		}
		j.advance()
		j.noteReturn()
	}
	j.bodyEnded()
}

// measure records how long each node took, and how long the way to the pool and back took.
func (j *asyncJob) measure(last int) {
	o, p := j.offload, j.profile
	for k, index := 0, o.head; k <= last; k, index = k+1, int(p.nodes[index].next) {
		step, node := &o.steps[k], &p.nodes[index]
		if step.end < step.start {
			break // It has not returned.
		}
		var err error
		if k == last {
			err = j.Err
		}
		node.learn(step.rows, step.end.Sub(step.start), err)
		if j.run != nil { // Otherwise the request has its result.
			j.run.compute += step.end.Sub(step.start)
		}
		p.countRun(node, step.end.Sub(step.start), o.shared.limit(node.limit))
	}
	p.counts.Offloaded += uint64(last + 1)
	if j.chained() {
		p.counts.Fused += uint64(last + 1)
	}
	job := &o.job
	p.queueDelay.Add(job.Started.Sub(job.Queued))
	p.started(job.Started.Sub(j.ready))
	p.atOnce += uint64(last) // The steps of a chain follow each other.
	p.roundTrip.Add(j.engine.loop.Clock().Now().Sub(job.Queued) - j.Ended.Sub(job.Started))
}
