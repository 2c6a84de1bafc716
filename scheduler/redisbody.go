package scheduler

import (
	"errors"
	"fmt"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// This file has how a body on the loop waits for Redis.

// Caller runs calls against the servers of one endpoint: a *resp.Client, or a *clusterclient.Client for several
// servers. Each method says who may call it.
type Caller interface {
	// Do starts a call, which ends by its Done unless Do returns an error. Loop only.
	Do(c *resp.Call) error
	// Cancel ends a call early, by the contract of loop.ErrCancelled. Loop only.
	Cancel(c *resp.Call) error
	// Close fails the calls under way and refuses later ones. Loop only.
	Close()
	// Stats returns the counters as they are now. Loop only.
	Stats() resp.Stats
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
		return NoClientError(registry.Redis, ep)
	}
	b.dropCall()
	if b.call == nil {
		b.call = b.newCall()
	}
	c := b.call
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

// newCall returns a call that resumes the code at its end, unless the body has dropped the call.
func (b *loopBody) newCall() *resp.Call {
	c := new(resp.Call)
	c.Done = func(*resp.Call) {
		if b.call != c {
			return
		}
		b.client = nil
		if c.Err != nil || c.Unwatched {
			b.journal.Enter() // It continues now, not when the replies to earlier commands came.
		}
		b.wake()
	}
	return c
}

// dropCall cancels the call if it is under way, and does not wait for its end.
func (b *loopBody) dropCall() {
	if b.client != nil { // Usually not, and then that is all.
		b.leaveCall()
	}
}

// leaveCall cancels the call. If its client has it, the next call is another one.
//
//go:noinline
func (b *loopBody) leaveCall() {
	if b.unasked {
		b.client, b.unasked = nil, false
		return
	}
	_ = b.client.Cancel(b.call) // The error means that its end is due.
	b.call, b.client = nil, nil
}

// runs gives a new call that the code waits for to its client, and reports whether the code has ended.
//
// The code itself does not do this: a client that writes needs a deep stack, and would grow the stacks of all bodies
// to 8 KB. The garbage collector halves idle stacks, and hundreds of large stacks compete for few cache sets. That
// cost concat_plan throughput at 256 requests in flight.
func (b *loopBody) runs(ended bool) bool {
	for !ended && b.unasked {
		b.unasked = false
		err := b.client.Do(b.call)
		if err == nil {
			break
		}
		b.call.Err, b.client = err, nil
		ended = b.co.resume()
	}
	return ended
}

// keepBatchBytes bounds the command buffer that a free loopBody keeps. A 100-row fan-out
// encodes to about 4 KB.
const keepBatchBytes = 64 << 10

// endCalls ends the use of the call and of the batch by code that has ended.
func (b *loopBody) endCalls() {
	b.dropCall()
	if c := b.call; c != nil {
		c.Batch, c.Flow, c.Watch, c.Part = resp.Batch{}, nil, nil, nil
	}
	b.batch.Shrink(keepBatchBytes)
}

// NoClientError reports a call to an endpoint for which the engine has no client of that kind. It is a fault of the
// program that built the engine: plan.Load checks the kinds of endpoints.
func NoClientError(kind registry.EndpointKind, ep *registry.Endpoint) error {
	return fmt.Errorf("no %s client for endpoint %s (%s)", kind, ep.ID, ep.Name)
}
