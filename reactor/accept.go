package reactor

import (
	"context"
	"net"

	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// Enroll gives the loop a connection that a peer has opened, TCP or unix, and waits until the loop has it. accept
// runs on the loop and returns the handler, whose OnConnect follows. nc belongs to the reactor from now on, even
// after an error: loop.ErrStopped, or too few descriptors. Any goroutine except the loop's.
func (r *Reactor) Enroll(nc net.Conn, opts transport.AcceptOptions, accept func(transport.Accepted) transport.AcceptedHandler) error {
	made := make(chan *conn, 1)
	posted := r.loop.Post(func() {
		var c *conn
		defer func() { made <- c }() // also if accept panics
		c = r.accept(opts, accept)
	})
	var c *conn
	if posted {
		c = <-made
	}
	if c == nil {
		_ = nc.Close()
		return loop.ErrStopped
	}
	return r.enroll(context.Background(), nc, c)
}

// accept makes the connection, or returns nil if the loop is stopping.
func (r *Reactor) accept(opts transport.AcceptOptions, accept func(transport.Accepted) transport.AcceptedHandler) *conn {
	if r.draining || r.poller == nil {
		return nil
	}
	c := &conn{
		reactor:   r,
		unsentMax: orDefault(opts.UnsentMaxBytes, defaultMaxBytes),
		unreadMax: orDefault(opts.UnreadMaxBytes, defaultMaxBytes),
	}
	c.direct = newDirect(c)
	h := accept(c)
	c.handler, c.direct.handler = h, h
	r.loop.Hold()
	r.conns[c] = struct{}{}
	r.dialing++
	return c
}

// Finish implements transport.Accepted.
func (c *conn) Finish() { c.finishWith(finishes) }

// FinishWriting implements transport.Accepted.
func (c *conn) FinishWriting() { c.finishWith(finishesWriting) }

func (c *conn) finishWith(how finish) {
	c.direct.finish = how
	if len(c.out) == 0 {
		c.written()
	}
}

// written is called when a finishing connection has sent all bytes.
func (c *conn) written() {
	d := c.direct
	if d.finish == finishes || d.polling == halfClosed || d.polling == unpolled {
		c.end(transport.ErrClosed)
		return
	}
	_ = unix.Shutdown(d.fd, unix.SHUT_WR) // An error means that the peer has gone; reads will report that, too.
}

// Resume implements transport.Accepted.
func (c *conn) Resume() {
	if c.direct.resuming {
		return
	}
	c.direct.resuming = true
	c.later(func() {
		c.direct.resuming = false
		if len(c.in) > 0 {
			c.received(nil)
		}
	})
}

// AwaitDrain implements transport.Accepted.
func (c *conn) AwaitDrain() {
	c.direct.awaited = true
	if len(c.out) == 0 {
		c.drained()
	}
}

// drained calls the handler that waits for it, unless the handler writes again before.
func (c *conn) drained() {
	c.later(func() {
		if c.direct.awaited && len(c.out) == 0 {
			c.direct.awaited = false
			c.direct.handler.OnDrain()
		}
	})
}
