package taskrun

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrCancelled is task.ErrCancelled.
var ErrCancelled = errors.New("task cancelled")

// Cancellation tells a body that nobody waits for its result any more: its node timed out, or the engine shuts down.
// It does not force the body: a body that never checks runs to its end, and the engine drops its result. The zero
// value is ready.
//
// Cancel, Cancelled, Done and Sleep: any goroutine. Reset: the owner, while no body
// has it. Context, Derive and Release: the goroutine that runs the body.
type Cancellation struct {
	flag  atomic.Bool // written under mu, read without
	mu    sync.Mutex
	cause error         // of the first Cancel; guarded by mu
	done  chan struct{} // made by the first Done, closed by Cancel; guarded by mu
	made  *derived      // for the body that runs, which alone changes it; nil: it has no context; guarded by mu
}

// derived is the context of a body. Immutable; any goroutine.
type derived struct {
	context.Context
	due time.Time // zero: the Context has its own deadline, or none
	end context.CancelCauseFunc
}

// Deadline implements context.Context.
func (d *derived) Deadline() (time.Time, bool) {
	if d.due.IsZero() {
		return d.Context.Deadline()
	}
	return d.due, true
}

// Cancel asks the body to stop, and ends its context with that cause. A second call does nothing.
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
	if c.made != nil {
		c.made.end(cause)
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

// Context returns what Derive has returned to the body that runs, or nil.
func (c *Cancellation) Context() context.Context {
	if c.made == nil {
		return nil
	}
	return c.made
}

// Derive returns a context of the body. It ends with parent, by Cancel, and by Release. due is its deadline, unless that is zero or
// parent's is earlier; something else ends it then.
func (c *Cancellation) Derive(parent context.Context, due time.Time) context.Context {
	ctx, end := context.WithCancelCause(parent)
	if earlier, ok := parent.Deadline(); ok && !due.Before(earlier) {
		due = time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = &derived{ctx, due, end}
	if c.flag.Load() {
		end(c.cause)
	}
	return c.made
}

// Release ends the context of a body that has returned, with this cause unless it has ended before.
func (c *Cancellation) Release(cause error) {
	if c.made == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made.end(cause)
	c.made = nil
}
