// Package taskrun has what engines give to the run of a task, hidden from authors of tasks: the way to wait, the
// cancellation, and the rows that a request may make. Package task keeps it behind its Ctx, and gives engines access
// through Engine.
package taskrun

import (
	"errors"
	"time"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
)

// Key is the argument of task.Engine. Other modules cannot name it. Immutable.
type Key struct{}

// Waiter is an engine's way to wait. Bodies reach it through Ctx.Redis, Ctx.Remote, Ctx.Sleep and Ctx.Await of package task.
// Only the body of the Ctx calls it.
type Waiter interface {
	// NewBatch returns an empty batch, valid until the next NewBatch or the
	// end of the body.
	NewBatch() *resp.Batch
	// Do sends that batch to a Redis endpoint and waits for all its replies.
	// They stay valid until the next call of this Waiter or the end of the body.
	Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error)
	// Begin sends that batch to a Redis endpoint, at the latest in Next, and Next waits for more of the replies: those to
	// the commands from on, each once and in order. None and no error mean that there are no more.
	// They stay valid until the next call of this Waiter or the end of the body. NewBatch, Begin,
	// Do, Exchange, Sleep and the end of the body give up what is still to come.
	Begin(ep *registry.Endpoint, b *resp.Batch) error
	Next() (from int, part resp.Replies, err error)
	// Exchange posts to the service behind an endpoint of kind http and waits until the call ends. Until then another
	// goroutine may call the functions of x.
	Exchange(ep *registry.Endpoint, x *remote.Exchange) error
	// Sleep waits for d. It ends early, with ErrCancelled, when nobody waits for the body's
	// result any more; a sleep that begins after that ends at once with ErrCancelled.
	Sleep(d time.Duration) error
	// Await runs fn on a goroutine of its own and waits until it has returned. It ends early, with ErrCancelled, as a
	// Sleep does. The error is that of fn, a *task.PanicError, task.ErrGoexit or task.ErrTooManyAwaits.
	Await(fn func() error) error
}

// A Computer is the Waiter of a body on a loop. Only that body calls it.
type Computer interface {
	// Compute runs fn where it holds up nobody, and waits until fn has ended, whatever happens meanwhile. The error says
	// that fn did not run, or not to its end.
	Compute(fn func()) error
}

// NoWaiter is the Waiter of a place where a body must not wait. Every wait fails.
// Immutable; any goroutine.
type NoWaiter struct{}

// The errors of NoWaiter.
var (
	ErrNoIO        = errors.New("a task that asks Redis or a service must have Place Waits or OnLoop: the CPU pool does no I/O")
	ErrMustNotWait = errors.New("a task whose Spec has Inline or Cheap, and Ask and Make of a reader, must not wait: the loop may run them, and would wait with them")
)

// NewBatch implements Waiter.
func (NoWaiter) NewBatch() *resp.Batch { return new(resp.Batch) }

// Do implements Waiter; it fails.
func (NoWaiter) Do(*registry.Endpoint, *resp.Batch) (resp.Replies, error) {
	return resp.Replies{}, ErrNoIO
}

// Begin implements Waiter; it fails.
func (NoWaiter) Begin(*registry.Endpoint, *resp.Batch) error { return ErrNoIO }

// Next implements Waiter; it fails.
func (NoWaiter) Next() (int, resp.Replies, error) { return 0, resp.Replies{}, ErrNoIO }

// Exchange implements Waiter; it fails.
func (NoWaiter) Exchange(*registry.Endpoint, *remote.Exchange) error { return ErrNoIO }

// Sleep implements Waiter; it fails.
func (NoWaiter) Sleep(time.Duration) error { return ErrMustNotWait }

// Await implements Waiter; it fails.
func (NoWaiter) Await(func() error) error { return ErrMustNotWait }
