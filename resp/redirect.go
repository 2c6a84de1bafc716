package resp

import (
	"strconv"

	"github.com/rankd/rankd/loop/clock"
)

// A redirection is what a connection knows of its server's promise to tell another connection of changes of all that is read
// here: CLIENT TRACKING ON REDIRECT. The command is asked again and again, since its answer says that this connection, and the promise, still
// stand. Loop only.
type redirection struct {
	question Call
	asked    int64      // the id that the question names
	to       int64      // the id of the connection that is told; 0: none is
	since    clock.Time // when the question was sent that the server answered last
}

// redirect has the server tell connection id what changes of all that is read from now on, or asks on each connection whether it still
// does. Zero: nobody wants to know.
func (c *Client) redirect(id int64) {
	isNew := id != c.redirectTo
	c.redirectTo = id
	for _, cn := range c.conns {
		if isNew { // A server that has started again gives the same ids.
			cn.redirection.to = 0
		}
		cn.redirect()
	}
}

// redirects reports whether the server tells of changes of all that any connection reads, as far as questions sent at an instant or later were answered.
func (c *Client) redirects(since clock.Time) bool {
	for _, cn := range c.conns {
		if cn.state == connReady && (cn.redirection.to != c.redirectTo || cn.redirection.since < since) {
			return false
		}
	}
	return true
}

// redirect asks on one connection, unless a question is unanswered there. It leaves at once, since what it asks for counts from then on.
func (cn *conn) redirect() {
	c, r := cn.client, &cn.redirection
	call := &r.question
	if c.redirectTo == 0 || call.state != callIdle || cn.state != connReady {
		return
	}
	if c.launch(cn); cn.state != connReady {
		return
	}
	r.asked = c.redirectTo
	call.Batch.Reset()
	call.Batch.Cmd("CLIENT", "TRACKING", "ON", "REDIRECT", strconv.FormatInt(r.asked, 10))
	call.Done = cn.redirected
	call.Replies, call.Err, call.From, call.answered, call.received = Replies{}, nil, 0, 0, 0
	call.since, call.conn, call.state = c.loop.Now(), cn, callUnderWay
	c.underWay.Push(call, &call.place)
	c.gather(span{call: call, n: 1})
	if c.launch(cn); cn.state != connReady {
		c.forget(call) // It belongs on no other connection.
	}
}

// redirected takes the answer.
func (cn *conn) redirected(call *Call) {
	c, r := cn.client, &cn.redirection
	switch {
	case call.Err != nil: // The owner asks again.
	case r.asked != c.redirectTo:
		cn.redirect()
	case call.Replies.At(0).Err() != nil:
		r.to = 0 // That connection has ended, and its tracker will see it.
	default:
		r.since = call.since
		if r.to != r.asked {
			r.to = r.asked
			c.forgotten() // What was read here before may have changed.
		}
	}
}
