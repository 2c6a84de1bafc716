package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// loopBody runs the code of a task on the loop, as a coroutine, and is its Waiter. It serves
// one node after the other. Loop only.
type loopBody struct {
	engine    *Async
	job       *asyncJob      // nil while free
	journal   *trace.Journal // of the node's request; nil: nobody records it, or the node has settled
	index     int            // of the node
	co        *coroutine
	client    Caller           // has the call; nil: not under way
	code      func()           // the method run, bound once
	wakeFn    func(*resp.Call) // wake, bound once
	timer     *loop.Timer      // the one sleep at a time; made at the first one
	endpoint  int              // of the call, if it is recorded
	cancelled bool             // nobody waits for the result any more
	remote    *remoteWait      // the one await of a service at a time; nil before the first
	await     *await           // the one await of a function at a time; nil: not under way
	call      resp.Call        // the one await of Redis at a time
}

func (e *Async) newLoopBody() *loopBody {
	b := e.freeLoopBodies.take()
	if b == nil {
		b = &loopBody{engine: e, co: newCoroutine()}
		b.code = b.run
		b.wakeFn = func(*resp.Call) { b.wake() }
		b.call.Done = func(*resp.Call) { b.callEnded() }
	}
	return b
}

// start begins the code. At its end, perhaps inside start, the body calls j.bodyEnded.
func (b *loopBody) start(j *asyncJob) {
	b.job, j.body, j.Ctx.Waiter = j, b, b
	b.journal, b.index = j.run.Journal, j.node.Index
	j.profile.started(j.begun.Sub(j.ready))
	b.journal.Start(b.index, j.started)
	b.engine.noteRunning(j.node)
	if b.co.start(b.code) {
		b.ended()
	}
}

func (b *loopBody) run() { b.job.Steps(nil) }

// callEnded resumes the code with the last replies, or because the call has failed.
func (b *loopBody) callEnded() {
	b.client = nil
	if b.call.Err != nil {
		b.journal.Enter() // It goes on now, and not since the replies to earlier commands came.
	}
	b.wake()
}

// wake resumes the code after its wait.
func (b *loopBody) wake() {
	e := b.engine
	e.left = 0
	e.loop.CountIn(&b.job.profile.callbacks)
	b.journal.Resume(b.index)
	e.noteRunning(b.job.node)
	if b.co.resume() {
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

// keepBatchBytes bounds the command buffer that a free loopBody keeps. A 100-row fan-out
// encodes to about 4 KB.
const keepBatchBytes = 64 << 10

func (b *loopBody) ended() {
	j := b.job
	j.profile.nodes[b.index].ran.count(1, b.engine.loop.Now().Sub(j.begun))
	b.job, b.journal, b.cancelled = nil, nil, false
	b.giveUpCall()
	b.call.Batch.Shrink(keepBatchBytes)
	b.engine.freeLoopBody(b)
	j.bodyEnded()
}

// Each free loopBody has a goroutine. Those that a burst has left end when nobody has used them for a while, some at a time.
const (
	loopBodiesWarm   = 32
	loopBodiesIdle   = time.Second
	loopBodiesEndMax = 256
)

// freeLoopBody keeps a body for the next node.
func (e *Async) freeLoopBody(b *loopBody) {
	if !e.freeLoopBodies.put(b) {
		b.close()
	} else if len(e.freeLoopBodies.items) > loopBodiesWarm && (e.idle == nil || !e.idle.Active()) {
		if e.idle == nil {
			e.idle = e.loop.NewTimer(e.endIdleLoopBodies)
		}
		_ = e.idle.Start(loopBodiesIdle, 0) // Only a stopped loop refuses, and its engine ends all bodies.
	}
}

// endIdleLoopBodies ends free bodies that nobody has used since the last time.
func (e *Async) endIdleLoopBodies() {
	for _, b := range e.freeLoopBodies.dropIdle(loopBodiesWarm, loopBodiesEndMax) {
		b.close()
	}
	if len(e.freeLoopBodies.items) > loopBodiesWarm {
		_ = e.idle.Start(loopBodiesIdle, 0)
	}
}

// cancel ends what the body waits for, because nobody waits for its result any more. A sleep or a Redis call ends in the next iteration, in a timer callback of its own,
// however many bodies there are. A Redis call whose deadline has come is the client's to end. A call to a service
// is cancelled at once.
func (b *loopBody) cancel() {
	b.cancelled, b.journal = true, nil
	b.remote.giveUp()
	waits := b.dropAwait() || b.timer != nil && b.timer.Active()
	if b.client != nil && !b.call.Deadline.Passed(b.engine.loop.Clock().Now()) {
		b.giveUpCall()
		b.call.Err = task.ErrCancelled
		waits = true
	}
	if waits {
		_ = b.wakeAfter(0) // Only a stopped loop refuses, and it fires no timer anyway.
	}
}

// wakeAfter has the timer wake the code after d.
func (b *loopBody) wakeAfter(d time.Duration) error {
	if b.timer == nil {
		b.timer = b.engine.loop.NewTimer(b.slept)
	}
	return b.timer.Start(d, 0)
}

// close ends a free loopBody. It gives the timer back to the loop, which may outlive the engine.
func (b *loopBody) close() {
	b.co.stop()
	if b.timer != nil {
		b.timer.Close(nil)
	}
}

// NewBatch implements task.Waiter. It gives up the call of which the code has not taken all parts.
func (b *loopBody) NewBatch() *resp.Batch {
	b.giveUpCall()
	b.call.Batch.Reset()
	return &b.call.Batch
}

// Do implements task.Waiter. It suspends the code until the replies are there. The replies are
// views into the connection's bytes and stay valid until the code waits again.
func (b *loopBody) Do(ep *registry.Endpoint, batch *resp.Batch) (resp.Replies, error) {
	b.call.Part = nil
	if err := b.send(ep, batch); err != nil {
		return resp.Replies{}, err
	}
	_, replies, err := b.Next()
	return replies, err
}

// Begin implements task.Waiter.
func (b *loopBody) Begin(ep *registry.Endpoint, batch *resp.Batch) error {
	b.call.Part = b.wakeFn
	return b.send(ep, batch)
}

// Next implements task.Waiter. It suspends the code until the next replies are there. Other
// callbacks of the loop run meanwhile.
func (b *loopBody) Next() (from int, part resp.Replies, err error) {
	if b.client == nil {
		return 0, resp.Replies{}, nil
	}
	commands := b.call.Batch.Len()
	if b.call.Replies.Len() > 0 {
		commands = 0 // It has waited for all of them when it waited for the first part.
	}
	b.journal.Wait(b.index, trace.ForRedis, commands, 0)
	if !b.co.suspend() {
		return 0, resp.Replies{}, task.ErrCancelled
	}
	if b.client != nil {
		return b.call.From, b.call.Replies, nil
	}
	return b.call.From, b.call.Replies, b.call.Err
}

// send gives the call to the endpoint's client.
func (b *loopBody) send(ep *registry.Endpoint, batch *resp.Batch) error {
	switch {
	case batch != &b.call.Batch:
		return errors.New("batch is not of this task's NewBatch")
	case b.cancelled:
		return task.ErrCancelled
	}
	client := b.engine.clients[ep.Index]
	if client == nil {
		return NoClientError(ep)
	}
	b.giveUpCall()
	b.call.Deadline = b.job.deadline // A command never waits past its request.
	b.call.Asker, b.call.Watch = nil, nil
	if r := b.job.run; r != nil { // An orphan asks for itself.
		b.call.Asker = &r.asker
	}
	if b.journal != nil {
		b.endpoint, b.call.Watch = ep.Index, b
	}
	if err := client.Do(&b.call); err != nil {
		return err
	}
	b.client = client
	return nil
}

// giveUpCall cancels the call if it is under way.
func (b *loopBody) giveUpCall() {
	if b.client != nil {
		b.client.Cancel(&b.call)
		b.client = nil
	}
}

// NoClientError reports a Redis call to an endpoint for which the engine has no client. It is a
// fault of the program that built the engine: plan.Load lets plans name Redis endpoints only.
func NoClientError(ep *registry.Endpoint) error {
	return fmt.Errorf("no redis client for endpoint %s (%s)", ep.ID, ep.Name)
}

// Sleep implements task.Waiter. A sleep of zero does not suspend. The sleep of a cancelled body
// lasts until the next iteration, so code that ignores the error and tries again for ever
// leaves the loop to the others.
func (b *loopBody) Sleep(d time.Duration) error {
	switch {
	case b.cancelled:
		d = 0
	case d <= 0:
		return nil
	}
	b.giveUpCall() // Its next part would end the sleep.
	if err := b.wakeAfter(d); err != nil {
		return err
	}
	b.journal.Wait(b.index, trace.ForTimer, 0, b.timer.Due())
	if !b.co.suspend() || b.cancelled {
		return task.ErrCancelled
	}
	return nil
}
