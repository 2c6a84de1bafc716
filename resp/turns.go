package resp

import "github.com/rankd/rankd/internal/list"

// An Asker is one request as clients see it: calls that have the same Asker share its turns. The
// zero value is ready. Loop only.
type Asker struct {
	turns *turn
	first *queue // of the client that it asked first; nil: none
	large bool   // it has had a large call there
}

// Renew forgets what the request asked for: the Asker becomes another request's. Calls that the request has left behind keep their turn.
func (a *Asker) Renew() { a.first, a.large = nil, false }

// A turn holds the waiting calls of one asker. A call without an asker has one of its own.
type turn struct {
	asker *Asker
	ring  *turns
	next  *turn // of the same asker, in another ring
	calls list.List[Call]
	given bulk            // in this turn
	place list.Link[turn] // in ring.list
}

// turns is the ring of those whose calls wait to be sent. A turn lasts until the asker has sent the quantum (deficit round
// robin), and then goes to the end of the ring: each request gets as much as any other, however much it asks for. Requests that need
// less than a quantum are served first come, first served. Loop only.
type turns struct {
	list    list.List[turn]
	quantum bulk  // zero: one call or part
	calls   int   // in all turns
	free    *turn // linked by next; at most turnsKeep
	freeLen int
}

// turnsKeep bounds the turns kept for reuse.
const turnsKeep = 1024

// push adds a call behind the others of its asker.
func (r *turns) push(c *Call) {
	t := r.of(c.Asker)
	if t == nil {
		t = r.take()
		if t.asker = c.Asker; t.asker != nil {
			t.next, t.asker.turns = t.asker.turns, t
		}
		r.list.Push(t, &t.place)
	}
	c.turn = t
	t.calls.Push(c, &c.queued)
	r.calls++
}

// of returns the asker's turn in this ring, or nil.
func (r *turns) of(a *Asker) *turn {
	if a == nil {
		return nil
	}
	t := a.turns
	for t != nil && t.ring != r {
		t = t.next
	}
	return t
}

// leaveTurn takes a call out of its turn, and an empty turn out of its ring.
func (c *Call) leaveTurn() {
	t := c.turn
	c.turn = nil
	t.calls.Remove(&c.queued)
	r := t.ring
	r.calls--
	if t.calls.Len() > 0 {
		return
	}
	r.list.Remove(&t.place)
	if a := t.asker; a != nil {
		at := &a.turns
		for *at != t {
			at = &(*at).next
		}
		*at = t.next
	}
	*t = turn{}
	if r.freeLen < turnsKeep {
		t.next, r.free = r.free, t
		r.freeLen++
	}
}

// gave notes what an asker sends. At the end of its turn the next asker is ahead of it, and so is its own next call.
func (t *turn) gave(b bulk) {
	r := t.ring
	if t.given.add(b); t.given.commands < r.quantum.commands && t.given.bytes < r.quantum.bytes {
		return
	}
	t.given = bulk{}
	if t.calls.Len() > 1 {
		c := t.calls.First()
		t.calls.Remove(&c.queued)
		t.calls.Push(c, &c.queued)
	}
	if r.list.Len() > 1 {
		r.list.Remove(&t.place)
		r.list.Push(t, &t.place)
	}
}

func (r *turns) take() *turn {
	t := r.free
	if t == nil {
		t = new(turn)
	} else {
		r.free, t.next = t.next, nil
		r.freeLen--
	}
	t.ring = r
	return t
}
