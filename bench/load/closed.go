package load

import "github.com/rankd/rankd/loop/clock"

// closed builds the clients of a closed loop. send starts them; then they send requests until
// the load is over.
func (r *run) closed(target Target) (send func()) {
	clients := make([]*client, r.load.Concurrency)
	for i := range clients {
		clients[i] = r.newClient(target, i, r.next)
	}
	return func() {
		r.live.Add(len(clients))
		for _, c := range clients {
			r.next(c, r.clock.Now())
		}
	}
}

// next has a client send a request, unless the load is over.
func (r *run) next(c *client, now clock.Time) {
	if r.ctx.Err() != nil || r.until.Passed(now) {
		r.live.Done()
		return
	}
	n := r.sent.Add(1)
	if n > r.most {
		r.live.Done()
		return
	}
	c.send(n, now)
}
