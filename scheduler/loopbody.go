package scheduler

import (
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// loopBody runs the code of a task on the loop, as a coroutine, and is its Waiter. It serves
// one node of its job after the other. Loop only.
type loopBody struct {
	engine    *Async
	job       *asyncJob
	journal   *trace.Journal // of the node's request; nil: it is not recorded, or the node has settled
	index     int            // of the node
	co        *coroutine
	batch     resp.Batch       // of the code
	call      *resp.Call       // the one await of Redis at a time; nil before the first
	client    Caller           // of the call; nil: not under way
	unasked   bool             // the client gets the call as soon as the code waits for it
	cancelled bool             // nobody waits for the result any more
	code      func()           // the method run, bound once
	wakeFn    func(*resp.Call) // wake, bound once
	timer     *loop.Timer      // the one sleep at a time; made at the first one
	endpoint  int              // of the call, if it is recorded
	remote    *remoteWait      // the one await of a service at a time; nil before the first
	await     *await           // the one await of a function at a time; nil: not under way
	computing *cpupool.Job     // the one computation at a time; nil: not under way
}

func newLoopBody(j *asyncJob) *loopBody {
	b := &loopBody{engine: j.engine, job: j, co: newCoroutine()}
	b.code = b.run
	b.wakeFn = func(*resp.Call) { b.wake() }
	return b
}

// start begins the code. When the code ends, perhaps inside start, the loopBody calls job.bodyEnded.
func (b *loopBody) start() {
	j := b.job
	env := tasks.Env(&j.Ctx)
	env.Waiter = b
	b.journal, b.index = j.run.Journal, j.node.Index
	j.profile.started(j.begun.Sub(j.ready))
	b.journal.Start(b.index, j.started)
	b.engine.noteRunning(j.node)
	ended := b.co.start(b.code)
	if n := &j.profile.nodes[b.index]; n.reads {
		n.recalled(ended && tasks.Cached(&j.Ctx).Values > 0)
	}
	if b.runs(ended) {
		b.ended()
	}
}

func (b *loopBody) run() { b.job.Steps(nil) }

// wake resumes the code after its wait.
func (b *loopBody) wake() {
	e := b.engine
	if !b.job.settled {
		defer b.job.run.contain(b.job.run.pumping)
	}
	e.left = 0
	e.loop.CountIn(&b.job.profile.callbacks)
	b.journal.Resume(b.index)
	e.noteRunning(b.job.node)
	if b.runs(b.co.resume()) {
		b.ended()
	} else {
		e.left = b.journal.Leave()
	}
}

// slept is the end of a sleep.
func (b *loopBody) slept() {
	b.journal.Fired(b.index, trace.ForTimer, b.timer.Due())
	b.wake()
}

func (b *loopBody) ended() {
	j := b.job
	j.live = false
	took := b.engine.loop.Now().Sub(j.begun) // It may have begun later than the loop's time, by its own reading of the clock.
	j.profile.countRun(&j.profile.nodes[b.index], max(took, 0), j.Ctx.Limit)
	b.journal, b.cancelled = nil, false
	b.endCalls()
	j.bodyEnded()
}

// Each free job on the loop has a goroutine. Jobs left over from a burst end after a while without use, a few at a
// time.
const (
	loopBodiesWarm   = 32
	loopBodiesIdle   = time.Second
	loopBodiesEndMax = 256
)

// watchIdle starts the timer that ends unused free jobs, if there are many.
func (e *Async) watchIdle() {
	if len(e.freeJobs[onLoop].items) <= loopBodiesWarm || e.idle != nil && e.idle.Active() {
		return
	}
	if e.idle == nil {
		e.idle = e.loop.NewTimer(e.endIdleLoopBodies)
	}
	_ = e.idle.Start(loopBodiesIdle, 0) // Only a stopped loop refuses, and then the engine ends all bodies.
}

// endIdleLoopBodies ends free jobs on the loop that were not used since its last run.
func (e *Async) endIdleLoopBodies() {
	for _, j := range e.freeJobs[onLoop].dropIdle(loopBodiesWarm, loopBodiesEndMax) {
		j.close()
	}
	e.watchIdle()
}

// cancel makes the code end, because nobody waits for its result any more. If it waits for a call, it continues when
// the call has ended; at the call's deadline its client ends it. A sleep, or a wait for a function, ends in the next
// iteration. Each has a timer callback of its own, however many bodies there are.
func (b *loopBody) cancel() {
	b.cancelled, b.journal = true, nil
	b.remote.cancel()
	if b.client != nil && !b.call.Deadline.Passed(b.engine.loop.Clock().Now()) {
		_ = b.client.Cancel(b.call) // The error means that its end is due.
	}
	if b.computing != nil {
		_ = b.engine.cpu.Cancel(b.computing) // An error means that it has started.
	}
	if b.dropAwait() || b.timer != nil && b.timer.Active() {
		_ = b.wakeAfter(0) // Only a stopped loop refuses, and then no timer fires anyway.
	}
}

// wakeAfter makes the timer wake the code after d.
func (b *loopBody) wakeAfter(d time.Duration) error {
	if b.timer == nil {
		b.timer = b.engine.loop.NewTimer(b.slept)
	}
	return b.timer.Start(d, 0)
}

// close ends the body of a free job. It gives the timer back to the loop, which may outlive the engine.
func (b *loopBody) close() {
	b.co.stop()
	if b.timer != nil {
		b.timer.Close(nil)
	}
}

// Sleep implements taskrun.Waiter. A sleep of zero does not suspend. The sleep of a cancelled body lasts until the
// next iteration, so code that ignores the error and retries forever does not block the loop.
func (b *loopBody) Sleep(d time.Duration) error {
	switch {
	case b.cancelled:
		d = 0
	case d <= 0:
		return nil
	}
	b.dropCall() // Its next part would end the sleep.
	if err := b.wakeAfter(d); err != nil {
		return err
	}
	b.journal.Wait(b.index, trace.ForTimer, 0, b.timer.Due())
	if !b.co.suspend() || b.cancelled {
		return task.ErrCancelled
	}
	return nil
}
