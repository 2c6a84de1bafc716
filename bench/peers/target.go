package peers

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/rankd/rankd/bench/load"
)

// Target puts a plan under the load of package load. Any goroutine.
type Target struct {
	plan    Plan
	store   Store
	context Context
}

var (
	_ load.Counting  = (*Target)(nil)
	_ load.Versioned = (*Target)(nil)
)

// NewTarget returns a target that answers requests by plan. All requests have the same context. It owns the store,
// and closes it.
func NewTarget(plan Plan, store Store, c Context) *Target {
	return &Target{plan: plan, store: store, context: c}
}

// NewClient implements load.Target.
func (t *Target) NewClient(answered func(error)) load.Client {
	c := &client{plan: t.plan, context: t.context, answered: answered, users: make(chan int64, 1)}
	c.idle.Store(true)
	return c
}

// Traffic implements load.Counting.
func (t *Target) Traffic() load.Traffic { return t.store.Traffic() }

// Close implements load.Target. Nothing is in flight when it is called.
func (t *Target) Close() { t.store.Close() }

const versionPrefix = "bench_versions:"

var firstEntry = []string{"0", "0"}

// VersionKey implements load.Versioned.
func (t *Target) VersionKey(user int64) string { return versionPrefix + strconv.FormatInt(user, 10) }

// ReadVersion implements load.Versioned.
func (t *Target) ReadVersion(user int64, done func(version int64, err error)) {
	go func() {
		var b Batch
		b.add("LRANGE", versionPrefix, user, firstEntry...)
		version, ok := int64(0), false
		err := read(context.Background(), t.store, &b, func(_ int, reply []Text) {
			if len(reply) == 1 {
				version, ok = whole(reply[0])
			}
		})
		if err == nil && !ok {
			err = errNoVersion
		}
		done(version, err)
	}()
}

var errNoVersion = errors.New("a version has no value")

// client runs each request on a goroutine. The same goroutine runs the next request if that
// follows an answer at once, as in a closed loop. A new goroutine would have to grow its stack
// again.
type client struct {
	plan     Plan
	context  Context
	answered func(error)
	users    chan int64 // holds at most the one request in flight
	idle     atomic.Bool
}

// Send implements load.Client.
func (c *client) Send(user int64) {
	c.users <- user // has room, since requests come one at a time
	if c.idle.CompareAndSwap(true, false) {
		go c.run()
	}
}

func (c *client) run() {
	for {
		select {
		case user := <-c.users:
			_, err := c.plan(context.Background(), Request{UserID: user, Context: c.context})
			c.answered(err)
		default:
			c.idle.Store(true)
			// A Send before idle was set has not started a goroutine. So run looks for its
			// request once more.
			if len(c.users) == 0 || !c.idle.CompareAndSwap(true, false) {
				return
			}
		}
	}
}
