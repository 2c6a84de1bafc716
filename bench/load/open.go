package load

import (
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// open builds the clients of an open loop. send sends requests as they arrive,
// until the load is over.
func (r *run) open(target Target, sleep func(time.Duration)) (send func()) {
	pool := newClientPool(r, target)
	r.lag = NewHistogram()
	return func() {
		for n := int64(1); n <= r.most && r.ctx.Err() == nil; n++ {
			due := r.arrival(n)
			if r.until.Passed(due) {
				return
			}
			now := r.clock.Now()
			for now < due {
				sleep(due.Sub(now))
				now = r.clock.Now()
			}
			r.arrive(pool.take(), n, due, now)
		}
	}
}

// arrive sends the n-th request if a client is free. After too long a sleep, several requests
// are sent at once, each with the instant at which it was due.
func (r *run) arrive(c *openClient, n int64, due, now clock.Time) {
	if c == nil {
		r.shed++
		return
	}
	record(r.lag, now.Sub(due))
	r.live.Add(1)
	c.user, c.due = r.user(n), due
	c.conn.Send(c.user)
}

// arrival returns the due time of the n-th request, counted from 1. It counts from the
// beginning of the load, so that rounding errors do not add up.
func (r *run) arrival(n int64) clock.Time {
	return r.began.Add(time.Duration(float64(n-1) / r.load.Rate * float64(time.Second)))
}

// clientPool holds the clients with no request in flight. The client used last is taken
// first, because its memory is warm. Any goroutine.
type clientPool struct {
	mu   sync.Mutex
	free []*openClient
}

func newClientPool(r *run, target Target) *clientPool {
	p := new(clientPool)
	for i := range r.load.Concurrency {
		c := &openClient{run: r, pool: p, shard: &r.shards[i%len(r.shards)]}
		c.conn = target.NewClient(c.answered)
		p.free = append(p.free, c)
	}
	return p
}

// take returns a free client, or nil if all have a request in flight.
func (p *clientPool) take() *openClient {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return nil
	}
	c := p.free[last]
	p.free = p.free[:last]
	return c
}

func (p *clientPool) put(c *openClient) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, c)
}

// openClient has at most one request in flight.
type openClient struct {
	run   *run
	pool  *clientPool
	shard *shard
	conn  Client
	user  int64      // of the request in flight
	due   clock.Time // when the request in flight was to arrive
}

func (c *openClient) answered(err error) {
	r := c.run
	r.record(c.user, c.shard, r.clock.Now().Sub(c.due), err)
	c.pool.put(c)
	r.live.Done()
}
