package clusterclient

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// An operation is a call on its way. Loop only.
type operation struct {
	client    *Client
	call      *resp.Call
	since     clock.Time // when Do accepted it
	legs      []*leg     // under way
	missing   int        // commands without a reply
	kept      resp.Gathered
	hops      []uint8 // by command: how often it was sent again; empty: none was
	again     []hop   // to be sent again
	mapless   bool    // it waits for the first map
	err       error
	isSettled bool
	hurt      bool // it counts as failed, since a node did not answer
	place     list.Link[operation]
	next      *operation // free
}

// A hop is a command that is to be sent again.
type hop struct {
	command int
	cluster.Verdict
	at clock.Time
}

// A leg is what a call asks of one node at once. Loop only.
type leg struct {
	resp.Call
	op       *operation // nil: nobody waits for it any more
	client   *Client
	node     int
	to       *resp.Client // the node's
	left     bool         // its client has it
	reached  bool         // the node, if that is a replica, may have got commands
	shown    bool         // the call's Watch sees it
	commands []int32      // of the operation: which its commands are; asking: before ASKING
	next     *leg         // free
}

// asking stands for the command ASKING of a leg.
const asking = -1

// take begins an operation for a call.
func (c *Client) take(call *resp.Call) *operation {
	o := c.free
	if o == nil {
		o = &operation{client: c}
	} else {
		c.free, o.next = o.next, nil
	}
	o.call, o.since, o.missing = call, c.loop.Now(), call.Batch.Len()
	c.calls[call] = o
	c.underWay.Push(o, &o.place)
	return o
}

// give takes back an operation that has ended and is in no list.
func (c *Client) give(o *operation) {
	delete(c.calls, o.call)
	o.recycle()
}

// keepBytes bounds the replies whose memory a free operation keeps.
const keepBytes = 64 << 10

// recycle keeps the operation for the next call.
func (o *operation) recycle() {
	if o.kept.Size() > keepBytes {
		o.kept = resp.Gathered{}
	} else {
		o.kept.Reset()
	}
	o.call, o.err, o.isSettled, o.hurt = nil, nil, false, false
	o.hops, o.again, o.legs = o.hops[:0], o.again[:0], o.legs[:0]
	o.next, o.client.free = o.client.free, o
}

// limit returns when a call that waits for the first map fails.
func (o *operation) limit() clock.Time {
	return o.since.Add(o.client.opts.ConnectTimeout).Earlier(o.call.Deadline)
}

// leave gives up the operation's legs and its waits.
func (o *operation) leave() {
	c := o.client
	for _, l := range o.legs {
		if l.op = nil; l.left {
			_ = l.to.Cancel(&l.Call) // The error says that its end is due.
		} else {
			l.recycle()
		}
	}
	o.legs = o.legs[:0]
	if o.mapless {
		o.mapless = false
		c.mapless--
	}
	o.setAgain(o.again[:0])
}

// setAgain sets the commands that wait to be sent again.
func (o *operation) setAgain(again []hop) {
	if len(o.again) > 0 {
		o.client.retrying--
	}
	if o.again = again; len(again) > 0 {
		o.client.retrying++
	}
}

// route sends all commands to their nodes.
func (o *operation) route() {
	c, batch := o.client, &o.call.Batch
	now := c.loop.Now()
	for i := range batch.Len() {
		node, replica := c.state.For(batch.Span(i, i+1), now)
		if replica {
			c.stats.ReplicaReads++
		}
		l := o.legTo(node)
		l.Batch.Copy(batch, i)
		l.commands = append(l.commands, int32(i))
	}
	o.send()
}

// legTo returns the leg to a node that has not left yet.
func (o *operation) legTo(node int) *leg {
	for _, l := range o.legs {
		if l.node == node && !l.left {
			return l
		}
	}
	return o.newLeg(node)
}

// newLeg returns an empty leg to a node.
func (o *operation) newLeg(node int) *leg {
	c := o.client
	l := c.freeLegs
	if l == nil {
		l = &leg{client: c}
		l.Done = l.ended
	} else {
		c.freeLegs, l.next = l.next, nil
	}
	l.op, l.node = o, node
	o.legs = append(o.legs, l)
	return l
}

// send hands each new leg to its node's client. If a client refuses it, the operation fails.
func (o *operation) send() {
	for i := 0; i < len(o.legs); i++ {
		l := o.legs[i]
		if l.left {
			continue
		}
		l.Deadline, l.Flow, l.MaxReplyBytes = o.call.Deadline, o.call.Flow, o.call.MaxReplyBytes
		l.shown = o.call.Watch != nil && len(o.hops) == 0
		if l.shown || o.client.state.IsReplica(l.node) {
			l.Watch = l
		}
		l.to = o.client.node(l.node)
		if err := l.to.Do(&l.Call); err != nil {
			o.client.fail(o, err)
			return
		}
		l.left = true
	}
}

// recycle keeps a leg for the next operation.
func (l *leg) recycle() {
	c := l.client
	l.Batch.Reset()
	l.Flow, l.Watch, l.op, l.to, l.commands = nil, nil, nil, nil, l.commands[:0]
	l.left, l.reached, l.shown = false, false, false
	l.next, c.freeLegs = c.freeLegs, l
}

// Sent implements resp.Watch. The trace of a call shows what its commands did first, not where they were sent again.
func (l *leg) Sent(conn, n, bytes int, at clock.Time) {
	l.reached = true
	if l.op != nil && l.shown {
		l.op.call.Watch.Sent(l.node*l.client.opts.Connections+conn, n, bytes, at)
	}
}

// Replied implements resp.Watch.
func (l *leg) Replied(conn, n, bytes int) {
	if l.op != nil && l.shown {
		l.op.call.Watch.Replied(l.node*l.client.opts.Connections+conn, n, bytes)
	}
}

// ended takes the replies of a leg, or its failure.
func (l *leg) ended(*resp.Call) {
	o, replies, err := l.op, l.Replies, l.Err
	if o != nil {
		i := slices.Index(o.legs, l)
		o.legs = slices.Delete(o.legs, i, i+1)
		switch whole := len(o.hops) == 0 && len(l.commands) == o.call.Batch.Len(); { // Commands that left again may have another order.
		case err != nil:
			o.failed(l)
		case whole && !hasErrors(replies):
			l.recycle()
			o.finish(replies, false)
			return
		default:
			o.deliver(l)
		}
		if !o.isSettled && o.missing == 0 {
			unwatched := err != nil || !l.shown
			l.recycle()
			o.finish(o.kept.Replies(), unwatched)
			return
		}
	}
	l.recycle()
}

func hasErrors(replies resp.Replies) bool {
	for _, r := range replies.All() {
		if r.Kind() == resp.Error {
			return true
		}
	}
	return false
}

// finish ends a call that has its replies.
func (o *operation) finish(replies resp.Replies, unwatched bool) {
	c, call := o.client, o.call
	c.underWay.Remove(&o.place)
	delete(c.calls, call)
	call.Replies, call.Unwatched = replies, unwatched
	call.Done(call)
	call.Replies = resp.Replies{} // An idle call holds no replies.
	o.recycle()
}

// failed notes that a node did not answer.
func (o *operation) failed(l *leg) {
	c, err := o.client, l.Err
	alone := true // The failure is the node's, and other nodes may answer.
	switch {
	case errors.Is(err, resp.ErrConnect), errors.Is(err, resp.ErrConnectionLost):
		c.suspect()
	case errors.Is(err, resp.ErrTimeout) && !errors.Is(err, resp.ErrDeadline):
		c.state.TimedOut(c.loop.Now())
		c.schedule(c.state.Due())
	default:
		alone = false
	}
	if !alone {
		c.fail(o, err)
		return
	}
	if c.state.IsReplica(l.node) {
		c.state.Distrust(l.node)
	}
	for _, k := range l.commands {
		if k == asking {
			continue
		}
		if v := o.missed(l, int(k)); v.Again {
			o.redirect(int(k), v)
			continue
		}
		if !o.hurt {
			o.hurt = true
			c.stats.CountFailure(err)
		}
		o.kept.Fail(int(k), o.call.Batch.Len(), err)
		o.missing--
	}
	o.send()
}

// redirect puts command k on a leg once more, at once.
func (o *operation) redirect(k int, v cluster.Verdict) {
	o.client.stats.Redirected++
	o.hopsOf(k)
	o.hops[k]++
	o.sendAgain(k, v)
}

// hopsOf returns how often command k was sent again.
func (o *operation) hopsOf(k int) int {
	for len(o.hops) < o.call.Batch.Len() {
		o.hops = append(o.hops, 0)
	}
	return int(o.hops[k])
}

// deliver keeps the replies of a leg, and sends the redirected commands again.
func (o *operation) deliver(l *leg) {
	c, n := o.client, o.call.Batch.Len()
	var rest []hop
	for i, reply := range l.Replies.All() {
		k := int(l.commands[i])
		if k == asking {
			continue
		}
		if reply.Kind() == resp.Error {
			if v := o.judge(l, k, reply); v.Again {
				if v.Asking {
					c.tracker.asked(o.call.Batch.Span(k, k+1))
				}
				if v.Pause == 0 {
					o.redirect(k, v)
				} else {
					c.stats.Redirected++
					o.hops[k]++
					rest = append(rest, hop{k, v, c.loop.Now().Add(v.Pause)})
				}
				continue
			}
			if err := c.state.Refusal(l.node, reply); err != nil {
				o.kept.Refuse(k, n, reply, err)
				o.missing--
				continue
			}
		}
		o.kept.Set(k, n, reply)
		o.missing--
	}
	if limit := o.maxReplyBytes(); o.kept.Size() > limit {
		c.fail(o, c.opError(resp.ErrTooLarge, fmt.Errorf("more than %d bytes (max_reply_bytes)", limit)))
		return
	}
	if len(rest) > 0 {
		o.setAgain(append(o.again, rest...))
		for _, h := range rest {
			c.schedule(h.at.Earlier(o.call.Deadline))
		}
	}
	o.send()
}

// judge decides about command k, which a node has answered with an error.
func (o *operation) judge(l *leg, k int, reply resp.Reply) cluster.Verdict {
	c, command := o.client, o.call.Batch.Span(k, k+1)
	v := c.state.Judge(reply.Bytes(), l.node, cluster.Route(command), o.hopsOf(k), resp.ReadOnly(command), c.loop.Now())
	if c.state.Suspects() {
		c.schedule(c.state.Due())
	}
	return v
}

// sendAgain puts command k on a leg. ASKING is valid for one command, so both leave together, on a leg of their own.
func (o *operation) sendAgain(k int, v cluster.Verdict) {
	var l *leg
	if v.Asking {
		l = o.newLeg(v.Node)
		l.Batch.Cmd("ASKING")
		l.commands = append(l.commands, asking)
	} else {
		l = o.legTo(v.Node)
	}
	l.Batch.Copy(&o.call.Batch, k)
	l.commands = append(l.commands, int32(k))
}

// tick sends paused commands that are due, and fails a call that has waited too long.
func (o *operation) tick(now clock.Time) {
	c := o.client
	switch {
	case o.call.Deadline.Passed(now):
		c.fail(o, c.opError(resp.ErrTimeout, resp.ErrDeadline))
		return
	case o.mapless && o.limit().Passed(now):
		c.fail(o, c.opError(resp.ErrConnect, c.state.Err()))
		return
	case o.mapless:
		c.schedule(o.limit())
		return
	}
	rest := o.again[:0:0]
	for _, h := range o.again {
		if h.at.Passed(now) {
			o.sendAgain(h.command, h.Verdict)
		} else {
			rest = append(rest, h)
			c.schedule(h.at.Earlier(o.call.Deadline))
		}
	}
	o.setAgain(rest)
	o.send()
}

// maxReplyBytes returns the bound of the replies.
func (o *operation) maxReplyBytes() int {
	if o.call.MaxReplyBytes > 0 {
		return o.call.MaxReplyBytes
	}
	return o.client.opts.MaxReplyBytes
}
