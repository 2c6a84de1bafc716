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
// one node of its job after the other. Loop only.
type loopBody struct {
	engine    *Async
	job       *asyncJob
	journal   *trace.Journal // of the node's request; nil: it is not recorded, or the node has settled
	index     int            // of the node
	co        *coroutine
	batch     resp.Batch       // of the code
	call      *redisCall       // the one await of Redis at a time; nil before the first
	client    Caller           // of the call; nil: not under way
	unasked   bool             // the client gets the call as soon as the code waits for it
	code      func()           // the method run, bound once
	wakeFn    func(*resp.Call) // wake, bound once
	timer     *loop.Timer      // the one sleep at a time; made at the first one
	endpoint  int              // of the call, if it is recorded
	cancelled bool             // nobody waits for the result any more
	remote    *remoteWait      // the one await of a service at a time; nil before the first
	await     *await           // the one await of a function at a time; nil: not under way
}

// redisCall is a call to Redis for a loopBody. A cancelled call is detached from its body, which may make another
// call. The call is reused from its Done on. Loop only.
type redisCall struct {
	resp.Call
	body *loopBody // nil: nobody waits for it
}

func (e *Async) newRedisCall(b *loopBody) *redisCall {
	c := e.freeRedisCalls.take()
	if c == nil {
		c = new(redisCall)
		c.Done = func(*resp.Call) {
			b := c.body
			if b == nil {
				c.clear()
				e.freeRedisCalls.put(c)
				return
			}
			b.client = nil
			if c.Err != nil || c.Unwatched {
				b.journal.Enter() // It continues now, not when the replies to earlier commands came.
			}
			b.wake()
		}
	}
	c.body = b
	return c
}

// clear drops what the call refers to, before it waits for its next use.
func (c *redisCall) clear() { c.Batch, c.Flow, c.Watch, c.Part = resp.Batch{}, nil, nil, nil }

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
	env.Waiter, env.Engine = b, &b.engine.givenOnLoop
	b.journal, b.index = j.run.Journal, j.node.Index
	j.profile.started(j.begun.Sub(j.ready))
	b.journal.Start(b.index, j.started)
	b.engine.noteRunning(j.node)
	ended := b.co.start(b.code)
	if n := &j.profile.nodes[b.index]; n.mayRecall {
		n.recalled(ended && env.Rare().Cached.Values > 0)
	}
	if b.runs(ended) {
		b.ended()
	}
}

// runs gives a new call that the code waits for to its client, and reports whether the code has ended.
//
// The code itself does not do this: a client that writes needs a deep stack, and would grow the stacks of all bodies
// to 8 KB. The garbage collector halves idle stacks, and hundreds of large stacks compete for few cache sets. That
// cost concat_plan throughput at 256 requests in flight.
func (b *loopBody) runs(ended bool) bool {
	for !ended && b.unasked {
		b.unasked = false
		err := b.client.Do(&b.call.Call)
		if err == nil {
			break
		}
		b.call.Err, b.client = err, nil
		ended = b.co.resume()
	}
	return ended
}

func (b *loopBody) run() { b.job.Steps(nil) }

// wake resumes the code after its wait.
func (b *loopBody) wake() {
	e := b.engine
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

// keepBatchBytes bounds the command buffer that a free loopBody keeps. A 100-row fan-out
// encodes to about 4 KB.
const keepBatchBytes = 64 << 10

func (b *loopBody) ended() {
	j := b.job
	took := b.engine.loop.Now().Sub(j.begun) // It may have begun later than the loop's time, by its own reading of the clock.
	j.profile.nodes[b.index].ran.count(1, max(took, 0))
	b.journal, b.cancelled = nil, false
	b.dropCall()
	if b.call != nil {
		b.call.clear()
	}
	b.batch.Shrink(keepBatchBytes)
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
		_ = b.client.Cancel(&b.call.Call) // The error means that its end is due.
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

// NewBatch implements taskrun.Waiter. It drops a call whose parts the code has not all taken.
func (b *loopBody) NewBatch() *resp.Batch {
	b.dropCall()
	b.batch.Reset()
	return &b.batch
}

// Do implements taskrun.Waiter. It suspends the code until the replies are there. The replies are
// views into the connection's bytes and stay valid until the code waits again.
func (b *loopBody) Do(ep *registry.Endpoint, batch *resp.Batch) (resp.Replies, error) {
	if err := b.send(ep, batch, nil); err != nil {
		return resp.Replies{}, err
	}
	_, replies, err := b.Next()
	return replies, err
}

// Begin implements taskrun.Waiter.
func (b *loopBody) Begin(ep *registry.Endpoint, batch *resp.Batch) error {
	return b.send(ep, batch, b.wakeFn)
}

// Next implements taskrun.Waiter. It suspends the code until the next replies are there. Other
// callbacks of the loop run meanwhile.
func (b *loopBody) Next() (from int, part resp.Replies, err error) {
	if b.client == nil {
		return 0, resp.Replies{}, nil
	}
	if b.journal != nil {
		commands := b.call.Batch.Len()
		if b.call.Replies.Len() > 0 {
			commands = 0 // It has waited for all of them when it waited for the first part.
		}
		b.journal.Wait(b.index, trace.ForRedis, commands, 0)
	}
	if !b.co.suspend() {
		return 0, resp.Replies{}, task.ErrCancelled
	}
	if b.client != nil {
		return b.call.From, b.call.Replies, nil
	}
	if b.call.Err != nil && errors.Is(b.call.Err, loop.ErrCancelled) {
		return 0, resp.Replies{}, task.ErrCancelled
	}
	return b.call.From, b.call.Replies, b.call.Err
}

// send prepares a call to the endpoint's client, which gets the call when the code waits. part wakes the code for
// each part of the replies; nil: once, for all replies.
func (b *loopBody) send(ep *registry.Endpoint, batch *resp.Batch, part func(*resp.Call)) error {
	switch {
	case batch != &b.batch:
		return errors.New("batch is not of this task's NewBatch")
	case b.cancelled:
		return task.ErrCancelled
	}
	client := b.engine.endpoints[ep.Index].redis
	if client == nil {
		return NoClientError(ep)
	}
	b.dropCall()
	if b.call == nil {
		b.call = b.engine.newRedisCall(b)
	}
	c := &b.call.Call
	c.Batch, c.Part = b.batch, part
	c.Deadline = b.job.deadline // A command never waits past its request.
	var flow *resp.Flow
	if r := b.job.run; r != nil { // An orphan has turns of its own.
		flow = &r.flow
	}
	c.Flow, c.Watch = flow, nil
	if b.journal != nil {
		b.endpoint, c.Watch = ep.Index, b
	}
	batch.MustBeWhole() // The panic is the code's.
	c.From, c.Replies, c.Err = 0, resp.Replies{}, nil
	b.client, b.unasked = client, true
	return nil
}

// dropCall cancels the call if it is under way, and does not wait for its end.
func (b *loopBody) dropCall() {
	if b.client != nil { // Usually not, and then that is all.
		b.leaveCall()
	}
}

// leaveCall cancels the call. If its client has it, the call is detached until its end.
//
//go:noinline
func (b *loopBody) leaveCall() {
	if b.unasked {
		b.client, b.unasked = nil, false
		return
	}
	_ = b.client.Cancel(&b.call.Call) // The error means that its end is due.
	b.call.body = nil
	b.call, b.client = nil, nil
}

// NoClientError reports a Redis call to an endpoint for which the engine has no client. It is a
// fault of the program that built the engine: plan.Load lets plans name Redis endpoints only.
func NoClientError(ep *registry.Endpoint) error {
	return fmt.Errorf("no redis client for endpoint %s (%s)", ep.ID, ep.Name)
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
