package resp

import (
	"strconv"

	"github.com/rankd/rankd/loop/clock"
)

// A redirection is CLIENT TRACKING ON REDIRECT: the server's promise to report changes of all keys read on this
// connection to another one. The command is sent again and again, because its answer confirms that the connection and
// the promise still hold. Loop only.
type redirection struct {
	question Call
	asked    int64      // the id that the question names
	to       int64      // the id of the connection that gets the reports; 0: none
	since    clock.Time // when the command was sent to which the server replied last
}

// redirect makes the server report to connection id the changes of all keys read from now on, or asks on each
// connection whether it still does. Zero: no reports are needed.
func (c *Client) redirect(id int64) {
	isNew := id != c.redirectTo
	c.redirectTo = id
	for _, cn := range c.conns {
		if isNew { // A restarted server gives the same ids.
			cn.redirection.to = 0
		}
		cn.redirect()
	}
}

// redirects reports whether the server reports changes of all that any connection reads: each has an answer to a
// question sent at that instant or later.
func (c *Client) redirects(since clock.Time) bool {
	for _, cn := range c.conns {
		if cn.state == connReady && (cn.redirection.to != c.redirectTo || cn.redirection.since < since) {
			return false
		}
	}
	return true
}

// redirect asks on one connection, unless a question is unanswered there. The command leaves at once, since reports
// begin with it.
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
			c.forgotten() // Keys that were read here before may have changed.
		}
	}
}
