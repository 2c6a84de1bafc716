package task

import (
	"context"
	"errors"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/rowset"
)

// ErrCancelled: the body stopped early because nobody waits for its result any more. Ctx.Sleep returns it to a body,
// and a body that sees c.Cancelled returns it.
var ErrCancelled = taskrun.ErrCancelled

// ErrReturned is the cause (context.Cause) of a Ctx.Context whose body has returned.
var ErrReturned = errors.New("the body of the node has returned")

// Cancelled reports whether nobody waits for the result any more. A body that
// computes for long asks every few thousand rows, and returns ErrCancelled on true.
func (c *Ctx) Cancelled() bool { return c.env.Cancellation != nil && c.env.Cancellation.Cancelled() }

// A Ctx stops kernels early.
var _ rowset.Stop = (*Ctx)(nil)

// Context returns a context for libraries that take one. It has the values of the context that the caller gave Rank.
// It ends with that context, at the node's deadline, when nobody waits for the result any more, or when the body
// returns. context.Cause then says why; ErrReturned stands for the return. Any goroutine may use it, for any time.
//
// All calls in one run of a body return the same context. The first one makes it, and only the body may call. A body
// that never calls pays nothing.
func (c *Ctx) Context() context.Context {
	env := &c.env
	if env.Cancellation == nil {
		env.Cancellation = new(taskrun.Cancellation)
	}
	if made := env.Cancellation.Context(); made != nil {
		return made
	}
	parent, due := context.Background(), time.Time{}
	if r := env.Request; r != nil && r.Caller != nil {
		parent = r.Caller
	}
	if env.Deadline != 0 {
		due = time.Now().Add(env.Deadline.Sub(env.Engine.Clock.Now()))
	}
	return env.Cancellation.Derive(parent, due)
}
