package task

import (
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
)

// A node also asks for the later nodes that read of the same rows (plan.Node.Ahead):
//
//	item:{id} title ─▶ vm ─▶ item:{id} likes ─▶ stats:{id} views     HMGET item:7 title likes   one batch
//	                                                                 HMGET stats:7 views
//
// The later nodes say by their Ask what that is. Their replies wait in the Ahead of the request, as they came, beside
// the commands. A later node finds its reply by its command, so it does not matter which rows get there: of a row that
// was dropped nobody asks, and for one that is new, the node asks by itself. Each node takes its own replies, so its
// errors, counts and rows are its own.

// ahead is what a node reads for later ones. Only the body of the node uses it.
type ahead struct {
	later []*laterRead // the first n are of this body; the others are free
	n     int          // zero once the first read has ended
	done  bool         // they were asked

	asked resp.Batch // the commands of all
	own   int        // of asked: those of the node itself, which come first
	joint resp.Joint
	mine  resp.Gathered // what answers the node itself, of a part
}

// laterRead is what a later node asks. Only the body that asks for it uses it.
type laterRead struct {
	ctx   Ctx // of the later node, but for all that it could change
	reads Reads
	next  int  // the first key that was not asked
	over  bool // nor are the others
	left  *taskrun.ReadAhead
	kept  rowcache.Use // of reads.recall, without meaning

	first, commands int // of asked: its own of the present batch
	base            int // of left: the first of these
	got             int // replies in left
}

// reads reports whether the present read also asks for later nodes.
func (r *Reads) reads() bool { return r.ahead != nil && r.ahead.n > 0 }

// askAhead asks the later nodes what they will read, before the first batch of the node's first read leaves.
func (r *Reads) askAhead(c *Ctx, a *asked) error {
	if len(c.Node.Ahead) == 0 || c.env.Request == nil || r.under > 0 {
		return nil
	}
	if r.ahead == nil {
		r.ahead = new(ahead)
	}
	h := r.ahead
	if h.done {
		return nil
	}
	h.done = true
	if c.large() {
		if err := c.apart(func() error { h.ask(c, r, a.endpoint); return nil }); err != nil {
			return err
		}
	} else {
		h.ask(c, r, a.endpoint)
	}
	for _, l := range h.later[:h.n] {
		if b := &l.reads.asked[0]; b.keeps {
			b.keeps = l.reads.open(&l.ctx, b, &l.kept)
		}
	}
	return nil
}

// ask asks the later nodes of c, and keeps those that read keys of that endpoint.
func (h *ahead) ask(c *Ctx, r *Reads, ep *registry.Endpoint) {
	for _, n := range c.Node.Ahead {
		if h.n == len(h.later) {
			h.later = append(h.later, new(laterRead))
		}
		l := h.later[h.n]
		if !l.ask(c, r, n) || l.reads.asked[0].endpoint != ep || l.reads.asked[0].read.Keys() == 0 {
			l.end()
			continue
		}
		h.n++
		l.left = r.newReadAhead()
		l.left.Endpoint = ep
	}
}

// ask asks a later node. False means that it reads by itself: then it reports, too, what is wrong.
func (l *laterRead) ask(c *Ctx, r *Reads, n *plan.Node) (ok bool) {
	spec := n.Schema.Impl.(*Spec)
	l.ctx = Ctx{Node: n, spec: spec, Inputs: c.Inputs, UserID: c.UserID, RequestID: c.RequestID, Params: c.Params, Registry: c.Registry,
		Memory: c.Memory, env: env{Engine: c.env.Engine}}
	l.next, l.over, l.got, l.reads.beside = 0, false, 0, r
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return spec.Ask != nil && spec.Ask(&l.ctx, &l.reads, 0) == nil && len(l.reads.asked) == 1
}

// end ends the use of l. Its memory waits for the next one.
func (l *laterRead) end() {
	l.ctx = Ctx{}
	l.reads.beside = nil
	l.reads.clear()
}

// fillAhead appends to b the commands for the keys of the batch that are not taken, and those of the later nodes.
func (r *Reads) fillAhead(c *Ctx, b *resp.Batch, a *asked, first int) error {
	h := r.ahead
	h.asked.Reset()
	if err := r.appendTo(c, &h.asked, a, first); err != nil {
		return err
	}
	h.own = h.asked.Len()
	h.joint.Begin(&h.asked)
	for i := range h.later[:h.n] {
		if l := h.later[i]; !l.over {
			l.append(h, r.to, r.to == a.read.Keys())
		} else {
			l.commands = 0
		}
	}
	h.joint.Write(b)
	return nil
}

// append appends the commands for the keys of a later node up to number to, or for all if last. Those that have no room
// beside the others are left to the node.
func (l *laterRead) append(h *ahead, to int, last bool) {
	a := &l.reads.asked[0]
	n := a.read.Keys()
	if to = min(to, n); last {
		to = n
	}
	l.first, l.commands = h.asked.Len(), 0
	if room := PartCommands - l.first; to-l.next > room { // The node takes whole batches from what was read.
		most := l.next + room
		to, l.over = 0, true
		for end := a.read.Batch(0); to < end && end <= most; end = a.read.Batch(to) {
			to = end
		}
	}
	if l.next >= to {
		return
	}
	if !a.keeps {
		a.read.Ask(&h.asked, l.next, to)
	}
	for at := l.next; a.keeps && at < to; {
		end := min(to, at+rowcache.FindMax)
		for i, value := range l.reads.recall.Peek(at, end, a.keys) {
			if value == nil {
				a.read.Ask(&h.asked, at+i, at+i+1)
			}
		}
		at = end
	}
	l.next = to
	end := h.asked.Len()
	h.joint.Join(l.first, end)
	l.commands, l.base = end-l.first, l.left.Commands.Len()
	for i := l.first; i < end; i++ {
		l.left.Commands.Copy(&h.asked, i)
	}
	if a.keeps && l.commands > 0 {
		l.reads.recall.Leave(l.left)
	}
}

// divide gives the later nodes what answers them of a part that begins with the reply to command from, and returns what
// answers the node itself.
func (h *ahead) divide(replies resp.Replies, from int) resp.Replies {
	own, divided := max(0, min(replies.Len(), h.own-from)), false
	for i := range replies.Len() {
		divided = divided || i < own && h.joint.IsDivided(from+i)
		reply := replies.At(i)
		for k := h.joint.First(from + i); k >= 0; k = h.joint.Next(k) {
			if k >= h.own {
				h.leave(k, reply)
			}
		}
	}
	if !divided {
		return replies.Slice(0, own)
	}
	h.mine.Reset()
	for i := range own {
		h.joint.Put(&h.mine, i, own, from+i, replies.At(i))
	}
	return h.mine.Replies()
}

// leave leaves the answer to command k of asked to the later node that asked.
func (h *ahead) leave(k int, reply resp.Reply) {
	for i := range h.later[:h.n] {
		if l := h.later[i]; k >= l.first && k < l.first+l.commands {
			h.joint.Put(&l.left.Replies, l.base+k-l.first, l.left.Commands.Len(), k, reply)
			l.got++
			return
		}
	}
}

// dropAhead has the later nodes read by themselves.
func (r *Reads) dropAhead() {
	for _, l := range r.ahead.later[:r.ahead.n] {
		r.free(l.left)
		l.left = nil
		l.end()
	}
	r.ahead.n = 0
}

// leaveAhead leaves the later nodes what was read for them, once the read has ended.
func (r *Reads) leaveAhead(c *Ctx) {
	for _, l := range r.ahead.later[:r.ahead.n] {
		if l.got > 0 && l.got == l.left.Commands.Len() {
			c.env.Request.Ahead.Put(l.ctx.Node.Index, l.left)
			l.left = nil
		}
	}
	r.dropAhead()
}

// endAhead ends the use of what a body has read for others, and of what others have read for it.
func (r *Reads) endAhead() {
	r.free(r.given)
	if r.given = nil; r.ahead == nil {
		return
	}
	r.dropAhead()
	r.ahead.done = false
	r.ahead.mine.Reset()
	r.ahead.asked.Reset()
}

// spareMax is how many ReadAheads wait for their next use.
const spareMax = 4

// newReadAhead returns an empty one.
func (r *Reads) newReadAhead() *taskrun.ReadAhead {
	n := len(r.spare)
	if n == 0 {
		return new(taskrun.ReadAhead)
	}
	last := r.spare[n-1]
	r.spare = r.spare[:n-1]
	return last
}

// free takes one back; nil: none.
func (r *Reads) free(a *taskrun.ReadAhead) {
	if a != nil && len(r.spare) < spareMax && a.Reset() {
		r.spare = append(r.spare, a)
	}
}
