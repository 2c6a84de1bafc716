package resp

import "github.com/rankd/rankd/loop/clock"

// Bounds of what large calls have in flight, so that others never wait for long behind them.
const (
	// wholeBytes: a call whose replies may be longer leaves in several parts. Most replies are far shorter
	// than they may be: few lists have the 10,000 entries that a plan reads at most. Redis needs some 1.4 ms
	// for 512 KiB of LRANGE.
	wholeBytes = 512 << 10
	// shortBytes: a call leaves in parts, but as small calls do, if its replies have no more in all, as far
	// as those so far tell.
	shortBytes = 64 << 10
	// partBytes is how long the replies to one part of a large call shall be. Redis needs some
	// 0.3 ms for 128 KiB of LRANGE, and the loop as much to read them.
	partBytes = 128 << 10
	// bulkBytes bounds the replies that all large calls together wait for, but for one part: two
	// parts that are somewhat longer than they should, one at the server and one on its way.
	bulkBytes = 320 << 10
	// firstPart is the number of commands in the first part of a large call whose replies are of
	// unknown length. No other part leaves before the first has been answered.
	firstPart = 16
	// partGrowth is how many unanswered commands a large call may have for each that was answered: the next
	// replies may be longer than those so far.
	partGrowth = 4
)

// waiting returns the number of calls with commands that are not gathered.
func (c *Client) waiting() int { return c.whole.calls + c.large.calls }

// enqueue takes a call in: it is gathered, or waits for its turn.
func (c *Client) enqueue(call *Call) {
	if c.waiting() == 0 && !c.isLarge(call) && c.sendPart(call, call.Batch.Len(), bulk{}) {
		return
	}
	c.wait(call)
	c.sendWaiting()
}

// wait has a call wait for its turn.
func (c *Client) wait(call *Call) {
	if c.isLarge(call) {
		c.large.push(call)
	} else {
		c.whole.push(call)
	}
}

// isLarge reports whether the call leaves in several parts.
func (c *Client) isLarge(call *Call) bool {
	n := call.Batch.Len()
	return n > 1 && (n > c.opts.wholeCommands() || n*call.Batch.replyBytes > wholeBytes)
}

// sendWaiting gathers waiting calls as long as they fit: a part of a large call and a whole call
// in turns. A whole call that does not fit holds up those behind it, so that it is not overtaken
// for ever.
func (c *Client) sendWaiting() {
	if c.waiting() == 0 || c.ready == 0 {
		return // A connection that comes or goes calls sendWaiting again.
	}
	for large := true; large; {
		large = c.sendLarge()
		for c.sendWhole() && !large {
		}
	}
}

// sendWhole gathers the whole call whose turn it is, and reports whether it has.
func (c *Client) sendWhole() bool {
	if c.whole.first == nil {
		return false
	}
	call := c.whole.first.calls.first
	if !c.sendPart(call, call.Batch.Len(), bulk{}) {
		return false
	}
	c.whole.rotate()
	call.leaveTurn()
	return true
}

// sendLarge gathers a part of the first large call that may send one now, and reports whether
// there was one.
func (c *Client) sendLarge() bool {
	may := c.mayBurst()
	for range c.large.len {
		call := c.large.first.calls.first
		n, b := c.nextPart(call)
		sent := n > 0 && (!call.rests || may && c.hasRoom(b)) && c.sendPart(call, n, b)
		c.large.rotate()
		if int(call.gathered) == call.Batch.Len() {
			call.leaveTurn()
		}
		if sent && call.rests {
			c.rest.sent(c)
		}
		if sent {
			return true
		}
	}
	return false
}

// nextPart returns how many commands the next part of a large call has, and what it takes of the
// room for large calls. None has to wait for replies, which tell how long those to come may be. A call whose
// replies are not known to be long takes no room, as small calls do.
func (c *Client) nextPart(call *Call) (n int, b bulk) {
	unsent := call.Batch.Len() - int(call.gathered)
	if call.answered == 0 {
		switch each := call.Batch.replyBytes; {
		case call.gathered > 0:
			return 0, bulk{}
		case each > 0:
			n = max(1, partBytes/each)
		default:
			n = firstPart
		}
		return min(n, c.opts.partCommands(), unsent), bulk{}
	}
	each, unanswered := call.replyBytes(), int(call.gathered-call.answered)
	n = min(max(1, partBytes/each), c.opts.partCommands(), unsent, partGrowth*int(call.answered)-unanswered)
	switch {
	case n <= 0:
		return 0, bulk{}
	case call.rests:
		return n, bulk{n, n * each}
	}
	return n, bulk{}
}

// replyBytes returns how long a reply to the call is on average, as far as those so far tell.
func (c *Call) replyBytes() int { return c.received/int(c.answered) + 1 }

// sendPart gathers the next n commands of a call, and reports whether there is room for them and
// a connection. b is what they take of the room for large calls.
func (c *Client) sendPart(call *Call, n int, b bulk) bool {
	if n > c.opts.MaxInflight-c.inflight || call.by.Passed(c.loop.Now()) {
		c.launchFull() // It need not wait for equal reads, since no call is gathered now.
		return false
	}
	cn := call.conn
	if cn == nil {
		cn = c.leastLoaded()
	}
	if cn == nil || cn.state != connReady {
		return false
	}
	o, share := &cn.outbox, !c.opts.NoCoalesceReads
	from, to := int(call.gathered), int(call.gathered)+n
	if o.full() && !o.hasAll(call, from, to) {
		if c.launch(cn); cn.state != connReady {
			return false
		}
	}
	before := o.len
	o.add(call, from, to, share)
	added := o.len - before
	c.inflight += added
	b = bulk{min(b.commands, added), b.bytes * added / n} // Shared commands cost nothing.
	o.bulk.add(b)
	c.bulk.add(b)
	call.conn, call.gathered = cn, int32(to)
	if !share && o.full() {
		c.launch(cn) // It waits for equal reads only.
		return true
	}
	if !c.launchDeferred {
		c.launchDeferred = true
		c.loop.BeforeFlush(c.launchFn)
	}
	return true
}

// launchAll launches what was gathered in this iteration.
func (c *Client) launchAll() {
	c.launchDeferred = false
	for _, cn := range c.conns {
		if cn.state == connReady {
			c.launch(cn)
		}
	}
	c.sendWaiting() // if calls have given up their places
}

// launchFull launches outboxes that are full.
func (c *Client) launchFull() {
	for _, cn := range c.conns {
		if cn.outbox.full() && cn.state == connReady {
			c.launch(cn)
		}
	}
}

// launch writes what was gathered for a connection. It is the one place where commands leave.
func (c *Client) launch(cn *conn) {
	o := &cn.outbox
	if o.stale {
		c.inflight -= o.len
		o.gatherAgain(!c.opts.NoCoalesceReads)
		c.inflight += o.len
	}
	if o.len == 0 {
		c.bulk.sub(o.bulk)
		o.reset()
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
	now := c.loop.Now()
	if cn.flights.len == 0 {
		c.schedule(now.Add(c.opts.StallTimeout))
	}
	cn.flights.push(flight{commands: o.len, parts: len(o.parts), sentAt: now, bulk: o.bulk})
	var written clock.Time // one reading for all that leaves in one write, if somebody watches
	for i := range o.parts {
		p := &o.parts[i]
		c.stats.Asked += uint64(p.len())
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
