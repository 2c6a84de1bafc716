package resp

import "github.com/rankd/rankd/loop/clock"

// A Call is one batch on its way to a server and back. Its owner fills in Batch,
// Deadline and Done, gives it to Client.Do, and may use it again from Done on, even
// inside it; a call that is reused allocates nothing, unless it is sent in parts. The
// zero value is ready. Loop only.
type Call struct {
	// Batch holds the commands. It must not change while the call is under way.
	Batch Batch
	// Deadline is the instant at which the caller loses interest. Zero means none. The
	// call never waits past it, nor past RequestTimeout.
	Deadline clock.Time
	// Done is invoked exactly once for each accepted Do, on the loop, never inside a
	// call to the client; not at all after Cancel.
	Done func(*Call)
	// Watch sees the commands on their way. Nil: nobody looks.
	Watch Watch

	// Replies holds one reply for each command, valid only during Done.
	Replies Replies
	// Err says that the batch failed as a whole; there are no replies then. It is nil
	// if all replies are there, errors of the server among them.
	Err error

	// generation tells the slots of this use of the call from the slots of earlier
	// ones: a slot whose number differs belongs to nobody any more.
	generation uint64
	list       *callList  // the list that the call is in; nil: not under way
	prev, next *Call      // its neighbours there
	conn       *conn      // carries the parts sent so far; nil before the first
	since      clock.Time // when Do accepted it
	by         clock.Time // when it times out
	sent       int        // commands handed to conn; answered <= sent <= Batch.Len()
	answered   int
	kept       *Gathered // the replies to earlier parts; nil if sent in one
}

// A Watch sees the commands of a call on their way. On the goroutine that drives the connection: the loop or, in a
// client that blocks, the caller.
type Watch interface {
	// Sent says that n commands of the call, bytes long, were written to the client's connection of that number.
	Sent(conn, n, bytes int)
	// Replied says that the replies to the oldest n commands on that connection were read. Nobody says so about
	// commands whose call has given up.
	Replied(conn, n, bytes int)
}

// A callList is a FIFO of calls, threaded through them: each is in at most one, and
// can leave from anywhere in it.
type callList struct {
	first, last *Call
	len         int
}

func (l *callList) push(c *Call) {
	c.list, c.prev, c.next = l, l.last, nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
	l.len++
}

// leave takes the call out of its list.
func (c *Call) leave() {
	l := c.list
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	l.len--
	c.list, c.prev, c.next = nil, nil, nil
}
