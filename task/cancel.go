package task

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/rowset"
)

// ErrCancelled: the body stopped early because nobody waits for its result any more. A
// body that sees c.Cancelled returns it, and Ctx.Sleep returns it to a body.
var ErrCancelled = errors.New("task cancelled")

// ErrReturned is the cause (context.Cause) of a Ctx.Context whose body has returned.
var ErrReturned = errors.New("the body of the node has returned")

// Cancellation tells a body that nobody waits for its result any more: its node
// timed out, or the engine shuts down. It does not force the body: a body that never
// looks runs to its end, and the engine drops its result. The zero value is ready.
//
// Cancel, Cancelled, Done and Sleep: any goroutine. Reset: the owner, while no body
// has it.
type Cancellation struct {
	flag  atomic.Bool // written under mu, read without
	mu    sync.Mutex
	cause error                   // of the first Cancel; guarded by mu
	done  chan struct{}           // made by the first Done, closed by Cancel; guarded by mu
	end   context.CancelCauseFunc // ends the Ctx.Context of the body that runs; nil: it has none; guarded by mu
}

// Cancel asks the body to stop, and ends its Ctx.Context with that cause. A second call does nothing.
func (c *Cancellation) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flag.Swap(true) {
		return
	}
	c.cause = cause
	if c.done != nil {
		close(c.done)
	}
	if c.end != nil {
		c.end(cause)
	}
}

// Cancelled reports whether Cancel was called. It costs one atomic load.
func (c *Cancellation) Cancelled() bool { return c.flag.Load() }

// Done returns a channel that Cancel closes.
func (c *Cancellation) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.flag.Load() {
			close(c.done)
		}
	}
	return c.done
}

// Sleep blocks for d, or until Cancel: it then returns ErrCancelled.
func (c *Cancellation) Sleep(d time.Duration) error {
	switch {
	case c.Cancelled():
		return ErrCancelled
	case d <= 0:
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.Done():
		return ErrCancelled
	}
}

// Reset makes c ready for another body. Owner only, while no body has it.
func (c *Cancellation) Reset() {
	c.flag.Store(false)
	c.done, c.cause = nil, nil
}

// derive returns a context that ends with parent, by Cancel, and by release.
func (c *Cancellation) derive(parent context.Context) context.Context {
	ctx, end := context.WithCancelCause(parent)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
	if c.flag.Load() {
		end(c.cause)
	}
	return ctx
}

// release ends the context of a body that has returned.
func (c *Cancellation) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(ErrReturned)
	c.end = nil
}

// Cancelled reports whether nobody waits for the result any more. A body that
// computes for long asks every few thousand rows, and returns ErrCancelled on true.
func (c *Ctx) Cancelled() bool { return c.Cancellation != nil && c.Cancellation.Cancelled() }

// A Ctx stops kernels early.
var _ rowset.Stop = (*Ctx)(nil)

// Context returns a context for libraries that take one. It has the values of the context that the caller gave
// Rank, and ends with that one, at the node's deadline, when nobody waits for the result any more, and when the body
// returns. context.Cause then says which; ErrReturned is the last of these. Any goroutine may use it, for any time.
//
// All calls in one run of a body return the same context. The first one makes it, and only the body may call. A body
// that never calls pays nothing.
func (c *Ctx) Context() context.Context {
	if c.context != nil {
		return c.context
	}
	if c.Cancellation == nil {
		c.Cancellation = new(Cancellation)
	}
	parent := c.Caller
	if parent == nil {
		parent = context.Background()
	}
	c.context = c.Cancellation.derive(parent)
	if c.Deadline != 0 {
		deadline := time.Now().Add(c.Deadline.Sub(c.Clock.Now()))
		if earlier, ok := parent.Deadline(); !ok || deadline.Before(earlier) {
			c.context = dueContext{c.context, deadline}
		}
	}
	return c.context
}

// dueContext is a context that its owner ends at a deadline.
type dueContext struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (d dueContext) Deadline() (time.Time, bool) { return d.deadline, true }

// endContext ends what Context has returned in this run, if the body has called it.
func (c *Ctx) endContext() {
	if c.context != nil {
		c.context = nil
		c.Cancellation.release()
	}
}
