package task

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
)

// Ctx holds the arguments of a body for one run of one node. It belongs to the
// body from its call to its return. An engine makes it, and in tests rankdtest.Run.
type Ctx struct {
	Node      *plan.Node
	Inputs    []rowset.RowSet    // one per input of the node, in order
	Refs      []rowset.RowSet    // one per node_ref parameter, in schema order
	UserID    int64              // the user of the request; zero if a text names the user: see UserIDText
	RequestID string             // as the caller gave it; it need not be unique, and may be empty
	Params    *expr.Params       // the parameters that the request's context brings or that it overrides
	Registry  *registry.Registry // keys, params, endpoints
	// Limit is how many rows of the result will be read, from the first on; zero means all. A body whose Spec is
	// Limited then returns only these, the same rows as without a limit.
	Limit int
	// Memory has the big slices that the request makes. Its methods take a nil Memory, too.
	Memory *rowset.Memory

	env     env
	spec    *Spec // of the task that runs; nil before it
	counted int64 // rows that the body has counted in this run
}

// Outside counts unusable values from outside, over all requests of an engine. Any goroutine.
type Outside struct {
	mu     sync.Mutex
	values map[string]Values // by what they were for; guarded by mu
}

// Values counts the values from outside for one key. A copy; any goroutine.
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

// Int returns an Int parameter of the node in this request, also where the plan leaves its value to requests
// (plan.ParamSchema.PerRequest). An engine has refused requests that give no such value, or one out of bounds.
func (c *Ctx) Int(name string) (int64, error) {
	v, err := c.Node.Params.IntIn(name, c.Params)
	if err != nil {
		return 0, withKind(ErrInvalid, err)
	}
	return v, nil
}

// CountRead notes that n values were looked up for a key of that name. Those that were missing are null, or have the
// key's default. The share of missing values tells a misspelled field from a rare one.
func (c *Ctx) CountRead(key string, n, missing int) {
	if c.env.Outside != nil && n > 0 {
		c.env.Outside.add(key, Values{Read: uint64(n), Missing: uint64(missing)})
	}
}

// CountMalformed notes that n texts from Redis, such as list entries or fields of hashes, were not what the task
// expects, and that the task goes on without them. key says what they were for: the name of a key of the registry, or
// a word of the task's own, such as "id". It is a label of a metric, so it must not come from data.
func (c *Ctx) CountMalformed(key string, n int) {
	if c.env.Outside != nil && n > 0 {
		c.env.Outside.add(key, Values{Malformed: uint64(n)})
	}
}

// Redis returns the body's access to a Redis endpoint. It needs Place Waits or OnLoop.
func (c *Ctx) Redis(ep *registry.Endpoint) Redis {
	return Redis{waiter: c.calls(), endpoint: ep, tape: c.tape()}
}

// tape returns the tape of the node; nil: the request is not recorded.
func (c *Ctx) tape() *taskrun.Tape {
	if c.env.Request == nil || c.env.Request.Tapes == nil {
		return nil
	}
	return &c.env.Request.Tapes[c.Node.Index]
}

// calls returns the Waiter for calls to Redis and to services. A worker of the asynchronous engine has no connections,
// so a body that computes has none on any engine.
func (c *Ctx) calls() taskrun.Waiter {
	if c.spec != nil && c.spec.Place == Computes {
		return taskrun.NoWaiter{}
	}
	return c.waiter()
}

// waiter returns the Waiter of the engine, or one that fails, as in Ask, in Make and in a Read.
func (c *Ctx) waiter() taskrun.Waiter {
	if c.env.Waiter == nil || c.env.Reads != nil && c.env.Reads.running {
		return taskrun.NoWaiter{}
	}
	return c.env.Waiter
}

// mayWait returns an error if the body must not wait, on any engine.
func (c *Ctx) mayWait() error {
	if c.spec != nil && (c.spec.Inline || c.spec.Cheap) {
		return taskrun.ErrMustNotWait
	}
	return nil
}

// Sleep waits for d. A body on the loop is suspended; elsewhere its goroutine, such as a worker of the CPU pool,
// blocks. When nobody waits for the result any more, Sleep ends early with ErrCancelled. The body must return the
// error: every further wait fails at once. A task whose Spec has Inline or Cheap must not sleep.
func (c *Ctx) Sleep(d time.Duration) error {
	if err := c.mayWait(); err != nil {
		return err
	}
	if t := c.tape(); t != nil && t.Plays {
		return nil
	}
	return c.waiter().Sleep(d)
}

// Await runs fn on a goroutine of its own and waits until fn has returned. It is for blocking calls, such as those of
// a database client. A body on the loop is suspended meanwhile; elsewhere its goroutine, such as a worker of the CPU
// pool, blocks. Await returns the error of fn. A panic of fn becomes a panic of the body. If fn calls runtime.Goexit,
// the error is ErrGoexit. If too many functions run already, the error is ErrTooManyAwaits, and fn does not run. A
// task whose Spec has Inline or Cheap must not wait.
//
// fn gets the context of the body. It must not use c, and must not close the engine. It leaves results in variables
// of its own.
//
// When nobody waits for the result any more, Await ends early with ErrCancelled. The context of fn has ended then,
// and fn should return soon. The body must return the error, and must not touch what fn may still write.
func (c *Ctx) Await(fn func(ctx context.Context) error) error {
	if err := c.mayWait(); err != nil {
		return err
	}
	if t := c.tape(); t != nil {
		if t.Outside = true; t.Plays {
			return taskrun.ErrNotOnTape
		}
	}
	ctx := c.Context()
	err := c.waiter().Await(func() error { return fn(ctx) })
	if p, ok := err.(*PanicError); ok {
		panic(p)
	}
	return err
}

// Redis sends commands to one endpoint on behalf of one body. Only that body uses it.
type Redis struct {
	waiter   taskrun.Waiter
	endpoint *registry.Endpoint
	tape     *taskrun.Tape // of the body's node; nil: nobody records what it sends
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
func (r Redis) NewBatch() *resp.Batch {
	if r.tape != nil && r.tape.Plays {
		return new(resp.Batch)
	}
	return r.waiter.NewBatch()
}

// Send sends all commands of b at once and waits for all replies: one round trip.
// Error replies are among the replies; err, of class ErrRedis, means that the batch as a
// whole failed. An empty batch returns at once. The replies are views, valid until the
// next wait.
func (r Redis) Send(b *resp.Batch) (resp.Replies, error) {
	if b.Len() == 0 {
		return resp.Replies{}, nil
	}
	if r.tape != nil && r.tape.Plays {
		return r.play(b)
	}
	r.tape.Call()
	replies, err := r.waiter.Do(r.endpoint, b)
	if err != nil {
		return resp.Replies{}, r.tape.Fail(r.wrap(err))
	}
	if r.tape != nil {
		r.tape.Replied(replies, b.Encoded())
	}
	return replies, nil
}

// play returns what the tape has of the replies to b, and the error that ended them.
func (r Redis) play(b *resp.Batch) (resp.Replies, error) {
	r.tape.Call()
	var all resp.Gathered
	for {
		p := r.tape.Next()
		switch {
		case p.Kind == taskrun.TapeBroken:
			r.tape.Ask(b.Span(0, all.Replies().Len()))
			return all.Replies(), p.Err
		case p.Kind == taskrun.TapeReply && all.Replies().Len() < b.Len():
			all.Add(p.Reply)
			continue
		case p.Kind != 0 || all.Replies().Len() == 0:
			return resp.Replies{}, taskrun.ErrOtherTape
		}
		r.tape.Ask(b.Span(0, all.Replies().Len()))
		return all.Replies(), nil
	}
}
