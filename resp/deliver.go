package resp

import "fmt"

// shedBytes is how much of an incomplete flight a connection keeps before it checks whether a call wants it: the
// largest piece that it reads at once. Tests set a client's lower.
const shedBytes = 64 << 10

// load returns the number of parts that the connection has to serve.
func (cn *conn) load() int { return cn.parts.len + len(cn.outbox.parts) }

// deliver hands the replies that are complete to the calls that asked for them, part by part.
func (cn *conn) deliver() {
	c := cn.client
	complete := cn.shed + cn.decoder.complete()
	f := cn.flights.front()
	if complete > f.answered {
		c.queue.answered(complete - f.answered)
		f.answered = complete
	}
	// A callback may push flights, so that f moves, or fail them all.
	for cn.state == connReady && cn.flights.front().parts > 0 && int(cn.parts.front().end) <= complete {
		cn.flights.front().parts--
		cn.backoff.Answered()
		cn.delivering = true
		c.answer(cn, cn.parts.pop())
		cn.delivering = false
	}
}

// flightAnswered takes out the oldest flight, which is fully delivered.
func (cn *conn) flightAnswered() {
	f, c := cn.flights.pop(), cn.client
	cn.decoding = false
	if c.queue.release(f.bulk) {
		now := c.loop.Clock().Now() // Reading the replies has taken time, too.
		c.queue.pause(now, now.Sub(f.sentAt))
	}
}

// answer hands the replies to one part to its call. It is the one place where replies reach a call.
func (c *Client) answer(cn *conn, p part) {
	call, n := p.call, p.len()
	if !p.wanted() {
		c.stats.Dropped += uint64(n)
		return
	}
	whole, large := n == call.Batch.Len(), c.queue.isLarge(call)
	if large || !whole || p.at == scattered || len(cn.decoder.data) > c.maxReplyBytes(call)-call.received {
		if call.received += cn.sizeOf(&p); call.received > c.maxReplyBytes(call) {
			c.failLater(call, c.tooLarge(call))
			return
		}
	}
	if call.Watch != nil {
		call.Watch.Replied(cn.number, n, cn.sizeOf(&p))
	}
	if f := call.Flow; f != nil {
		f.Commands += uint32(n)
		f.ReplyBytes += uint64(cn.sizeOf(&p))
	}
	replies := cn.repliesTo(&p)
	call.answered += int32(n)
	if large {
		c.queue.learn(call)
	}
	switch last := int(call.answered) == call.Batch.Len(); {
	case whole || last && call.Part != nil:
		c.finish(call, int(p.from), replies)
	case call.Part != nil:
		call.From, call.Replies = int(p.from), replies
		call.Part(call)
		call.Replies = Replies{}
	default:
		for i, r := range replies.All() {
			if k := int(p.from) + i; !call.has(k) {
				call.keep(k, r)
			}
		}
		if last {
			c.finish(call, 0, call.pieces.kept.Replies())
		}
	}
	if call.pieces != nil {
		clear(call.pieces.view.list)
	}
}

// finish ends a call that has its replies, or the last of them.
func (c *Client) finish(call *Call, from int, replies Replies) {
	call.From, call.Replies = from, replies
	c.forget(call)
	call.Done(call)
	call.Replies = Replies{} // An idle call holds no replies.
}

// repliesTo returns a view of the replies to a part.
func (cn *conn) repliesTo(p *part) Replies {
	d := cn.decoder
	if p.at != scattered && int(p.at) >= cn.shed {
		return Replies{t: &d.tape, first: uint32(int(p.at) - cn.shed), n: uint32(p.len())}
	}
	call, in := p.call, p.call.inPieces()
	list := in.view.list[:0]
	for k := int(p.from); k < int(p.to); k++ {
		if call.has(k) {
			list = append(list, in.kept.all.list[k])
		} else {
			list = append(list, Reply{&d.tape, d.roots[p.place(k)-cn.shed]})
		}
	}
	in.view.list = list
	return Replies{t: &in.view, n: uint32(len(list))}
}

// sizeOf returns the bytes of the replies to a part that were not counted when they were kept.
func (cn *conn) sizeOf(p *part) (size int) {
	d := cn.decoder
	if first := int(p.at) - cn.shed; p.at != scattered && first >= 0 && first+p.len() <= d.complete() { // They lie one behind the other.
		from, to := d.span(d.roots[first], d.after(d.roots[first+p.len()-1]))
		return int(to - from)
	}
	for k := int(p.from); k < int(p.to); k++ {
		if place := p.place(k) - cn.shed; place >= 0 && place < d.complete() {
			first, last := d.span(d.roots[place], d.after(d.roots[place]))
			size += int(last - first)
		}
	}
	return size
}

// keep copies the reply to command k, for a call whose replies come in several pieces.
func (call *Call) keep(k int, r Reply) {
	in := call.inPieces()
	if in.kept == nil {
		in.kept = new(Gathered)
	}
	in.kept.Set(k, call.Batch.Len(), r)
}

// has reports whether a copy of the reply to command k is kept.
func (call *Call) has(k int) bool { return call.pieces != nil && call.pieces.kept.has(k) }

// shedReplies frees the bytes of a flight that is large or mispredicted, and incomplete: calls keep copies of the
// complete replies that they want. It returns how many bytes are no longer needed. unread is the number of bytes that
// are there or have been announced. A call for which the rest is too large fails; a reply that nobody wants is
// skipped from now on.
func (cn *conn) shedReplies(unread int) (consumed int) {
	d := cn.decoder
	if d.skipping {
		return 0
	}
	complete := d.complete()
	if complete > 0 {
		for i := range cn.flights.front().parts {
			if p := cn.parts.at(i); p.wanted() {
				cn.keepFor(p, complete)
			}
		}
		consumed = d.boundary()
	}
	cn.shed += complete
	wanted := cn.nextIsWanted(unread - consumed)
	if complete > 0 || !wanted {
		d.Reset(cn.flights.front().commands - cn.shed)
	}
	if !wanted {
		d.skipNext()
	}
	return consumed
}

// keepFor copies the replies to a part that are among the complete ones.
func (cn *conn) keepFor(p *part, complete int) {
	call, d, size := p.call, cn.decoder, cn.sizeOf(p)
	if call.received += size; call.Flow != nil {
		call.Flow.ReplyBytes += uint64(size)
	}
	if call.received > cn.client.maxReplyBytes(call) {
		cn.client.failLater(call, cn.client.tooLarge(call))
		return
	}
	for k := int(p.from); k < int(p.to); k++ {
		if place := p.place(k) - cn.shed; place >= 0 && place < complete {
			call.keep(k, Reply{&d.tape, d.roots[place]})
		}
	}
}

// nextIsWanted reports whether some call wants the reply that has at least so many bytes. It fails the calls for
// which the reply is already too large.
func (cn *conn) nextIsWanted(bytes int) (wanted bool) {
	c := cn.client
	for i := range cn.flights.front().parts {
		p := cn.parts.at(i)
		switch {
		case !p.wanted() || !p.holds(cn.shed):
		case bytes > c.maxReplyBytes(p.call)-p.call.received:
			c.failLater(p.call, c.tooLarge(p.call))
		default:
			wanted = true
		}
	}
	return wanted
}

// maxReplyBytes returns the bound of a call's replies.
func (c *Client) maxReplyBytes(call *Call) int {
	if call.MaxReplyBytes > 0 {
		return min(call.MaxReplyBytes, MaxReplyBytesLimit)
	}
	return c.opts.MaxReplyBytes
}

// tooLarge returns the error of a call whose replies exceed its bound.
func (c *Client) tooLarge(call *Call) error {
	return c.opError(ErrTooLarge, fmt.Errorf("more than %d bytes (max_reply_bytes)", c.maxReplyBytes(call)))
}
