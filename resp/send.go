package resp

import "github.com/rankd/rankd/loop/clock"

// pumpLater makes pump run at the end of this iteration.
func (c *Client) pumpLater() {
	if !c.pumpDeferred {
		c.pumpDeferred = true
		c.loop.BeforeFlush(c.pumpFn)
	}
}

// pump moves what may leave from the queue through the outboxes to the connections. It runs once an iteration, after
// the timers, so that late calls have failed by then. Whatever frees room, adds a call or adds a connection requests
// it with pumpLater. If no call waits, Do gathers a small call at once, so that loop and server work at the same
// time.
func (c *Client) pump() {
	defer func() { c.pumpDeferred = false }() // Requests for it meanwhile are already served.
	for _, cn := range c.conns {
		c.dropStale(cn)
	}
	if c.ready > 0 && c.queue.waiting() > 0 { // Otherwise a connection that comes or goes pumps again.
		till := c.queue.begin(c.loop.Now(), c.underWay.Len(), c.stats.Batches)
		if t := c.restTimer; till > 0 && !(t.Active() && t.Due() == till) {
			_ = t.StartAt(till) // A stopping loop refuses. By then the owner has closed the client.
		}
		for s, ok := c.queue.next(); ok && c.gather(s); {
			s, ok = c.queue.next()
		}
	}
	for _, cn := range c.conns {
		if cn.state == connReady {
			c.launch(cn)
		}
	}
}

// connFor returns the connection that takes the next commands of a call, nil if there is none now.
func (c *Client) connFor(call *Call) *conn {
	cn := call.conn
	if cn == nil {
		cn = c.leastLoaded()
	}
	if cn == nil || cn.state != connReady {
		return nil
	}
	return cn
}

// gather puts a span of a call into the outbox of its connection, and reports whether the connection works. A full
// outbox is sent first, unless it has all these reads already.
func (c *Client) gather(s span) bool {
	call, cn, share := s.call, c.connFor(s.call), !c.opts.NoCoalesceReads
	if cn == nil {
		return false
	}
	o := &cn.outbox
	from, to := int(call.gathered), int(call.gathered)+s.n
	if o.full() && !o.hasAll(call, from, to) {
		if c.launch(cn); cn.state != connReady {
			return false
		}
	}
	before := o.len
	o.add(call, from, to, share)
	o.bulk.add(c.queue.took(s, o.len-before))
	call.conn = cn
	if !share && o.full() {
		c.launch(cn) // It waits for equal reads only.
		return true
	}
	c.pumpLater()
	return true
}

// dropStale removes from an outbox the commands that only calls that gave up had asked for.
func (c *Client) dropStale(cn *conn) {
	o := &cn.outbox
	if !o.stale {
		return
	}
	before := o.len
	o.gatherAgain(!c.opts.NoCoalesceReads)
	c.queue.answered(before - o.len)
	if o.len == 0 {
		c.queue.release(o.bulk)
		o.reset()
	}
}

// launch writes what was gathered for a connection. It is the one place where commands leave.
func (c *Client) launch(cn *conn) {
	o := &cn.outbox
	if c.dropStale(cn); o.len == 0 {
		return
	}
	if err := cn.tr.Write(o.buf); err != nil {
		cn.shut(err) // Nothing was sent. The calls wait for the end of the connection.
		return
	}
	if now := c.loop.Iteration(); cn.sentIn != now {
		cn.sentIn = now
		c.stats.RoundTrips++
	}
	c.stats.Commands += uint64(o.len)
	c.stats.BytesSent += uint64(len(o.buf))
	now := c.loop.Clock().Now() // A callback may have run for long: that time does not count against the server.
	c.schedule(now.Add(min(c.opts.RequestTimeout, c.opts.StallTimeout)))
	cn.flights.push(flight{commands: o.len, parts: len(o.parts), sentAt: now, bulk: o.bulk})
	var written clock.Time // one reading for everything in one write, if somebody watches
	for i := range o.parts {
		p := &o.parts[i]
		c.stats.Asked += uint64(p.len())
		if p.call.launched == p.call.answered {
			p.call.sentAt = now
		}
		p.call.launched += p.to - p.from
		if p.call.Watch != nil {
			if written == 0 {
				written = c.loop.Clock().Now()
			}
			p.call.Watch.Sent(cn.number, p.len(), len(p.call.Batch.Span(int(p.from), int(p.to))), written)
		}
		cn.parts.push(*p)
	}
	o.reset()
}
