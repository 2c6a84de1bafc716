package load

import "github.com/rankd/rankd/loop/clock"

// closed builds the clients of a closed loop. send starts them; then they send requests until
// the load is over.
func (r *run) closed(target Target) (send func()) {
	clients := make([]closedClient, r.load.Concurrency)
	for i := range clients {
		c := &clients[i]
		c.run, c.shard = r, &r.shards[i%len(r.shards)]
		c.conn = target.NewClient(c.answered)
	}
	return func() {
		r.live.Add(len(clients))
		for i := range clients {
			clients[i].next(r.clock.Now())
		}
	}
}

// closedClient has one request in flight at a time.
type closedClient struct {
	run   *run
	shard *shard
	conn  Client
	user  int64 // of the request in flight
	sent  clock.Time
}

// next sends a request, unless the load is over.
func (c *closedClient) next(now clock.Time) {
	r := c.run
	if r.ctx.Err() != nil || r.until.Passed(now) {
		r.live.Done()
		return
	}
	n := r.sent.Add(1)
	if n > r.most {
		r.live.Done()
		return
	}
	c.user, c.sent = r.user(n), now
	c.conn.Send(c.user)
}

func (c *closedClient) answered(err error) {
	now := c.run.clock.Now()
	c.run.record(c.user, c.shard, now.Sub(c.sent), err)
	c.next(now)
}
