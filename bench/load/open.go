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
func (r *run) arrive(c *client, n int64, due, now clock.Time) {
	if c == nil {
		r.shed++
		return
	}
	r.lag.Record(now.Sub(due))
	r.live.Add(1)
	c.send(n, due)
}

// arrival returns the due time of the n-th request, counted from 1. It counts from the
// beginning of the load, so that rounding errors do not add up.
func (r *run) arrival(n int64) clock.Time {
	return r.began.Add(time.Duration(float64(n-1) / r.load.Rate * float64(time.Second)))
}

// readyClients is how many clients are there when an open loop begins. Others are made when they are needed:
// tens of thousands that wait for a backlog would only be work for the garbage collector.
const readyClients = 1024

// clientPool holds the clients with no request in flight. The client used last is taken
// first, because its memory is warm. Any goroutine.
type clientPool struct {
	run    *run
	target Target

	mu   sync.Mutex
	made int
	free []*client
}

func newClientPool(r *run, target Target) *clientPool {
	p := &clientPool{run: r, target: target}
	for range min(r.load.Concurrency, readyClients) {
		p.free = append(p.free, p.make())
	}
	return p
}

// make returns a new client. Its caller holds mu, or is alone.
func (p *clientPool) make() *client {
	p.made++
	return p.run.newClient(p.target, p.made, p.put)
}

// take returns a free client, or nil if all have a request in flight.
func (p *clientPool) take() *client {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	switch {
	case last >= 0:
	case p.made < p.run.load.Concurrency:
		return p.make()
	default:
		return nil
	}
	c := p.free[last]
	p.free = p.free[:last]
	return c
}

// put takes a client back whose request was answered.
func (p *clientPool) put(c *client, _ clock.Time) {
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	p.run.live.Done()
}
