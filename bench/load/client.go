package load

import "github.com/rankd/rankd/loop/clock"

// client has one request in flight at most. One goroutine at a time.
type client struct {
	run   *run
	shard *shard
	conn  Client
	user  int64      // of the request in flight
	since clock.Time // from when its latency counts
	then  func(c *client, now clock.Time)
}

// newClient returns the i-th client, which calls then after each answer.
func (r *run) newClient(target Target, i int, then func(c *client, now clock.Time)) *client {
	c := &client{run: r, shard: &r.shards[i%len(r.shards)], then: then}
	c.conn = target.NewClient(c.answered)
	return c
}

// send sends the n-th request.
func (c *client) send(n int64, since clock.Time) {
	c.user, c.since = c.run.user(n), since
	c.conn.Send(c.user)
}

func (c *client) answered(err error) {
	now := c.run.clock.Now()
	c.run.record(c.user, c.shard, now.Sub(c.since), err)
	c.then(c, now)
}
