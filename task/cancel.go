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

// Cancellation tells a body that nobody waits for its result any more: its node
// timed out, or the engine shuts down. It does not force the body: a body that never
// looks runs to its end, and the engine drops its result. The zero value is ready.
//
// Cancel, Cancelled and Done: any goroutine. Reset: the owner, while no body
// has it.
type Cancellation struct {
	flag atomic.Bool // written under mu, read without
	mu   sync.Mutex
	done chan struct{} // made by the first Done, closed by Cancel; guarded by mu
}

// Cancel asks the body to stop. A second call does nothing.
func (c *Cancellation) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.flag.Swap(true) && c.done != nil {
		close(c.done)
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

// Reset makes c ready for another body. Owner only, while no body has it.
func (c *Cancellation) Reset() {
	c.flag.Store(false)
	c.done = nil
}

// A Ctx is a context.Context, for libraries that take one: Done closes when nobody
// waits for the result any more.
var _ context.Context = (*Ctx)(nil)

// Cancelled reports whether nobody waits for the result any more. A body that
// computes for long asks every few thousand rows, and returns ErrCancelled on true.
func (c *Ctx) Cancelled() bool { return c.Cancellation != nil && c.Cancellation.Cancelled() }

// A Ctx stops kernels early.
var _ rowset.Stop = (*Ctx)(nil)

// Done implements context.Context.
func (c *Ctx) Done() <-chan struct{} {
	if c.Cancellation == nil {
		return nil
	}
	return c.Cancellation.Done()
}

// Err implements context.Context.
func (c *Ctx) Err() error {
	if c.Cancelled() {
		return context.Canceled
	}
	return nil
}

// Deadline implements context.Context. It never has an instant, since the engine's clock
// may be simulated; Done closes at the deadline.
func (c *Ctx) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context; it returns nil for every key.
func (c *Ctx) Value(any) any { return nil }
