package task

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
)

// Ctx holds the arguments of a body for one run of one node. It belongs to the
// body from its call to its return.
type Ctx struct {
	Node      *plan.Node
	Inputs    []rowset.RowSet // one per input of the node, in order
	Refs      []rowset.RowSet // one per node_ref parameter, in schema order
	UserID    int64
	RequestID string             // as the caller gave it; it need not be unique, and may be empty
	Params    *expr.Params       // the parameters that the request's context brings or that it overrides
	Registry  *registry.Registry // keys, params, endpoints
	Waiter    Waiter             // how this engine waits
	// Limit is how many of the first rows of the result will be read; zero means all. A body
	// whose Spec is Limited then returns only so many, the same as without a limit.
	Limit int
	Rows  *RowBudget // of the request; nil: no bound
	// Memory has the big slices that the request makes. Its methods take a nil Memory, too.
	Memory *rowset.Memory
	// Cancellation is how the engine asks the body to stop; nil if it never does.
	Cancellation *Cancellation
	// Caller is the context that the caller gave Rank: see Context. Nil if there is none.
	Caller context.Context
	// Deadline is the node's, an instant on Clock. Zero means none; Clock may then be nil.
	Deadline clock.Time
	Clock    clock.Clock
	// Required has the indices of the nodes that the request requires: their results must be whole.
	Required []int

	// Outside counts what came from outside and could not be used. Nil counts nothing.
	Outside *Outside

	spec    *Spec           // of the task that runs; nil before Invoke
	counted int64           // rows that the body has counted in this run
	lack    Lack            // what the result of this run lacks, as the body says
	context context.Context // of this run; nil: the body has not asked for it
}

// Outside counts values from outside, of all requests of an engine. Any goroutine.
type Outside struct {
	mu     sync.Mutex
	values map[string]Values // by what they were for; guarded by mu
}

// Values counts values from outside that were for one key. A copy; any goroutine.
type Values struct {
	Read      uint64 // looked up: see Ctx.CountRead
	Missing   uint64 // of these, those that were not there
	Malformed uint64 // texts that did not parse: see Ctx.CountMalformed
}

// Malformed returns how many texts did not parse.
func (o *Outside) Malformed() (sum int64) {
	for _, n := range o.ByKey() {
		sum += int64(n.Malformed)
	}
	return sum
}

// ByKey returns the values by what they were for.
func (o *Outside) ByKey() map[string]Values {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.values)
}

// add adds values for a key.
func (o *Outside) add(key string, v Values) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.values == nil {
		o.values = make(map[string]Values)
	}
	sum := o.values[key]
	o.values[key] = Values{sum.Read + v.Read, sum.Missing + v.Missing, sum.Malformed + v.Malformed}
}

// CountRead notes that n values were looked up for a key of that name, of which some were not there: they are null, or
// have the key's default. The share tells a misspelt field from a rare one.
func (c *Ctx) CountRead(key string, n, missing int) {
	if c.Outside != nil && n > 0 {
		c.Outside.add(key, Values{Read: uint64(n), Missing: uint64(missing)})
	}
}

// CountMalformed notes that n texts from Redis, such as list entries or fields of hashes, did not parse as what the
// task expects, and that it goes on without them. key says what they were for: the name of a key of the registry, or a word of the task's own,
// such as "id". It is a label of a metric, so it must not come from data.
func (c *Ctx) CountMalformed(key string, n int) {
	if c.Outside != nil && n > 0 {
		c.Outside.add(key, Values{Malformed: uint64(n)})
	}
}

// Waiter is an engine's way to wait. Bodies use Ctx.Redis, Ctx.Sleep and Ctx.Await.
// Only the body of the Ctx calls it.
type Waiter interface {
	// NewBatch returns an empty batch, valid until the next NewBatch or the
	// end of the body.
	NewBatch() *resp.Batch
	// Do sends that batch to a Redis endpoint and waits for all its replies.
	// They stay valid until the next call of this Waiter or the end of the body.
	Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error)
	// Begin sends that batch to a Redis endpoint, and Next waits for more of the replies: those to
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
	// Sleep does. The error is that of fn, a *PanicError, ErrGoexit or ErrTooManyAwaits.
	Await(fn func() error) error
}

// Redis returns the body's access to a Redis endpoint. It needs Place Waits or OnLoop.
func (c *Ctx) Redis(ep *registry.Endpoint) Redis { return Redis{waiter: c.calls(), endpoint: ep} }

// calls returns the Waiter for calls to Redis and to services. A worker of the asynchronous engine has no connections,
// so a body that computes has none on any engine.
func (c *Ctx) calls() Waiter {
	if c.spec != nil && c.spec.Place == Computes {
		return NoWaiter{}
	}
	return c.Waiter
}

// mayWait returns an error if the body must not wait, on any engine.
func (c *Ctx) mayWait() error {
	if c.spec != nil && (c.spec.Inline || c.spec.Cheap) {
		return errInline
	}
	return nil
}

var errInline = errors.New("a task whose Spec has Inline or Cheap must not wait: the loop may run it, and would wait with it")

// Sleep waits for d. A body on the loop is suspended; elsewhere its goroutine, such as a worker of the CPU pool,
// blocks. Sleep ends early, with ErrCancelled, when nobody waits for the result any more.
// The body must return the error: every further wait fails at once. A task whose Spec has Inline or Cheap must not
// sleep.
func (c *Ctx) Sleep(d time.Duration) error {
	if err := c.mayWait(); err != nil {
		return err
	}
	return c.Waiter.Sleep(d)
}

// Await runs fn on a goroutine of its own and waits until it has returned. It is for what blocks, such as a client of
// a database. A body on the loop is suspended meanwhile; elsewhere its goroutine, such as a worker of the CPU pool,
// blocks. Await returns the error of fn. A panic of fn is the body's, and the error is ErrGoexit if fn has called
// runtime.Goexit. It is ErrTooManyAwaits if too many functions run, and fn has not run then. A task whose Spec has Inline
// or Cheap must not wait.
//
// fn gets the context of the body. It must not use c, and must not close the engine. It leaves results in variables
// of its own.
//
// Await ends early, with ErrCancelled, when nobody waits for the result any more. The context of fn has ended then, and
// fn should return soon. The body must return the error, and leave alone what fn may still write.
func (c *Ctx) Await(fn func(ctx context.Context) error) error {
	if err := c.mayWait(); err != nil {
		return err
	}
	ctx := c.Context()
	err := c.Waiter.Await(func() error { return fn(ctx) })
	if p, ok := err.(*PanicError); ok {
		panic(p)
	}
	return err
}

// NoWaiter is the Waiter of a place where a body must not wait. Every wait fails.
// Immutable; any goroutine.
type NoWaiter struct{}

var errNoWaiting = errors.New("a task that asks Redis or a service must have Place Waits or OnLoop: the CPU pool does no I/O")

// NewBatch implements Waiter.
func (NoWaiter) NewBatch() *resp.Batch { return new(resp.Batch) }

// Do implements Waiter; it fails.
func (NoWaiter) Do(*registry.Endpoint, *resp.Batch) (resp.Replies, error) {
	return resp.Replies{}, errNoWaiting
}

// Begin implements Waiter; it fails.
func (NoWaiter) Begin(*registry.Endpoint, *resp.Batch) error { return errNoWaiting }

// Next implements Waiter; it fails.
func (NoWaiter) Next() (int, resp.Replies, error) { return 0, resp.Replies{}, errNoWaiting }

// Exchange implements Waiter; it fails.
func (NoWaiter) Exchange(*registry.Endpoint, *remote.Exchange) error { return errNoWaiting }

// Sleep implements Waiter; it fails.
func (NoWaiter) Sleep(time.Duration) error { return errInline }

// Await implements Waiter; it fails.
func (NoWaiter) Await(func() error) error { return errInline }

// Redis sends commands to one endpoint on behalf of one body. Only that body uses it.
type Redis struct {
	waiter   Waiter
	endpoint *registry.Endpoint
}

// Do sends one command and waits for its reply, a view that is valid until the next
// wait. An error reply of the server is returned as an error of class ErrRedis.
func (r Redis) Do(args ...string) (resp.Reply, error) {
	b := r.NewBatch()
	b.Cmd(args...)
	replies, err := r.Send(b)
	if err != nil {
		return resp.Reply{}, err
	}
	reply := replies.At(0)
	if err := reply.Err(); err != nil {
		return resp.Reply{}, r.Errorf("%s: %w", args[0], err)
	}
	return reply, nil
}

// NewBatch returns an empty batch, to fill and send. It belongs to the body until the
// next NewBatch.
func (r Redis) NewBatch() *resp.Batch { return r.waiter.NewBatch() }

// Send sends all commands of b at once and waits for all replies: one round trip.
// Error replies are among the replies; err, of class ErrRedis, means that the batch as a
// whole failed. An empty batch returns at once. The replies are views, valid until the
// next wait.
func (r Redis) Send(b *resp.Batch) (resp.Replies, error) {
	if b.Len() == 0 {
		return resp.Replies{}, nil
	}
	replies, err := r.waiter.Do(r.endpoint, b)
	if err != nil {
		return resp.Replies{}, r.wrap(err)
	}
	return replies, nil
}
