package task

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/rowset"
)

// ErrCancelled is what a body returns that stopped early because nobody waits
// for its result any more. A sleep that ends for that reason returns it to the body.
var ErrCancelled = errors.New("task cancelled")

// Cancellation tells a body that nobody waits for its result any more: its node
// timed out, or the engine shuts down. It is a request, not a force: a body that
// never looks runs to its end, and its result is dropped. The zero value is ready.
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

// Reset makes c ready for another body.
func (c *Cancellation) Reset() {
	c.flag.Store(false)
	c.done = nil
}

// A Ctx is the context.Context of its body, for libraries that take one: Done
// closes when nobody waits for the result any more.
var _ context.Context = (*Ctx)(nil)

// Cancelled reports whether nobody waits for the result any more. A body that
// computes for long looks every few thousand rows, and then returns ErrCancelled.
func (c *Ctx) Cancelled() bool { return c.Cancellation != nil && c.Cancellation.Cancelled() }

// A Ctx also is what stops the kernels early.
var _ rowset.Stop = (*Ctx)(nil)

// stopped turns a kernel's word for having been stopped into a body's.
func stopped(err error) error {
	if err == rowset.ErrStopped {
		return ErrCancelled
	}
	return err
}

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

// Deadline implements context.Context. The engine's clock may be a simulated
// one, so no instant is told; Done is what counts.
func (c *Ctx) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context; there are none.
func (c *Ctx) Value(any) any { return nil }
