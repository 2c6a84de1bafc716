package reactor

import (
	"context"
	"errors"
	"io"

	"github.com/panjf2000/gnet/v2"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// keepCap bounds the capacity of the buffer that a connection keeps when it is empty. A
// peer that was slow once must not pin tens of megabytes.
const keepCap = 1 << 20

// flushBytes is the number of buffered bytes at which a connection flushes before the end of the iteration. Waiting
// for the end saves system calls if there is little to send. If one iteration makes hundreds of commands, the server
// idles until it gets them all, and then the loop idles while the server works them off. With pieces of some 50
// commands, loop and server work at the same time. Half or twice as many bytes make little difference.
const flushBytes = 2 << 10

type connState int8

const (
	connecting connState = iota
	open
	ended // closed or failed; the handler has been told or will be
)

// A conn is a connection, from Dial to the call that tells its handler of the end.
// Loop only.
type conn struct {
	reactor   *Reactor
	handler   transport.Handler
	addr      string
	unsentMax int
	unreadMax int

	state     connState
	connected bool         // OnConnect(nil) has been called, or is being called
	gc        gnet.Conn    // nil unless gnet has it open: gnet would write to the descriptor's next owner
	direct    *direct      // of an accepted connection; nil: gnet writes
	out       []byte       // written and not flushed
	dirty     bool         // listed in reactor.dirty
	expecting bool         // bytes have left since the last ones came
	in        []byte       // handed over and not consumed
	reason    error        // why it ended
	prepare   func() error // DialOptions.Prepare
	cancel    context.CancelFunc
	timeout   *loop.Timer // of the connect
}

func newConn(r *Reactor, addr string, opts transport.DialOptions, h transport.Handler) *conn {
	r.loop.Hold()
	return &conn{
		reactor: r, handler: h, addr: addr, prepare: opts.Prepare,
		unsentMax: orDefault(opts.UnsentMaxBytes, defaultMaxBytes),
		unreadMax: orDefault(opts.UnreadMaxBytes, defaultMaxBytes),
	}
}

// Write implements transport.Conn.
func (c *conn) Write(p []byte) error {
	if c.state == ended || c.direct != nil && c.direct.finish != stays {
		return transport.ErrClosed
	}
	if len(p) > c.unsentMax-c.Unsent() {
		c.end(transport.ErrUnsentLimit)
		return transport.ErrUnsentLimit
	}
	if c.out == nil && c.direct != nil {
		c.out = c.reactor.spare.take()
	}
	c.out = append(c.out, p...)
	if c.state == open {
		c.markDirty()
		if len(c.out) >= c.flushAt() {
			c.flush()
		}
	}
	return nil
}

// flushAt returns the number of buffered bytes at which the connection flushes before the end of the iteration.
func (c *conn) flushAt() int {
	if c.direct != nil {
		return directFlushBytes
	}
	return flushBytes
}

// markDirty lists an open connection with buffered bytes for the flush at the end of the
// iteration.
func (c *conn) markDirty() {
	if len(c.out) > 0 && !c.dirty {
		c.dirty = true
		c.reactor.dirty = append(c.reactor.dirty, c)
	}
}

// Unsent implements transport.Conn.
func (c *conn) Unsent() int {
	if c.gc == nil {
		return len(c.out)
	}
	return len(c.out) + c.gc.OutboundBuffered()
}

// Close implements transport.Conn.
func (c *conn) Close(reason error) {
	if reason == nil {
		reason = transport.ErrClosed
	}
	c.end(reason)
}

// end is the only way to the state ended. The rest follows in the closing phase.
func (c *conn) end(reason error) {
	if c.state == ended {
		return
	}
	c.connected = c.state == open
	c.state = ended
	c.reason = reason
	c.stopDial()
	c.reactor.loop.Closing(c.finish)
}

// finish releases the descriptor and tells the handler. It runs once, in the closing
// phase.
func (c *conn) finish() {
	r := c.reactor
	if c.direct != nil {
		c.writeDirect()
		c.direct.release()
	} else if c.gc != nil {
		c.flush()
	}
	if c.gc != nil { // unless the flush has found it broken
		// An error only means that the descriptor is gone already.
		_ = r.poller.Close(c.gc)
		c.gc = nil
	}
	c.out, c.in = nil, nil
	delete(r.conns, c)
	delete(r.servers, c)
	r.loop.Release()
	if c.connected {
		c.handler.OnClose(c.reason)
	} else {
		c.handler.OnConnect(c.reason)
	}
}

// flush hands the buffered bytes to gnet, which makes one system call and keeps the bytes
// that the kernel does not take. An accepted connection writes them itself.
func (c *conn) flush() {
	if c.direct != nil {
		if !c.direct.blocked {
			c.writeDirect()
		}
		return
	}
	out := c.out
	c.out = reuse(out)
	if c.gc != nil && len(out) > 0 {
		// A failed write closes the connection before it returns: see closed.
		c.expecting = true
		_, _ = c.gc.Write(out)
	}
}

// received hands data to the handler, behind the bytes that it has not consumed. Data is
// valid only during the call.
func (c *conn) received(data []byte) {
	c.expecting = false
	if c.state != open {
		return
	}
	if len(c.in) == 0 {
		rest := data[c.handler.OnData(data):]
		c.in = append(c.in, rest...)
	} else {
		c.in = append(c.in, data...)
		consumed := c.handler.OnData(c.in)
		if c.direct == nil {
			c.in = keep(c.in, consumed)
		} else {
			c.in = c.in[consumed:] // A client may have sent megabytes, but a few commands are consumed at a time.
		}
	}
	if len(c.in) == 0 && c.direct != nil {
		c.in = nil // Thousands of connections are idle, and few send half a command.
	}
	switch {
	case c.direct != nil:
		c.control()
	case len(c.in) > c.unreadMax:
		c.end(transport.ErrUnreadLimit)
	}
}

// closed is called when gnet is closing gc.
func (c *conn) closed(gc gnet.Conn, err error) {
	if c.gc != gc {
		return // it opened too late; opened has refused it
	}
	c.gc = nil
	if c.direct != nil {
		c.direct.fd, c.direct.polling = -1, unpolled // gnet closes it
	}
	switch {
	case err == nil:
		err = loop.ErrStopped // gnet itself ends
	case err == io.EOF:
		// A hang-up without data: gnet reports io.EOF, the socket knows the reason.
		err = socketError(gc)
	}
	if errors.Is(err, io.EOF) && c.direct != nil && c.halfClose(gc) {
		return
	}
	c.end(err)
}

// reuse empties buf for the next use. It drops a buffer that has become huge.
func reuse(buf []byte) []byte { return keep(buf, len(buf)) }

// keep drops the first done bytes of buf. It also drops the capacity if that is huge and the
// rest is not.
func keep(buf []byte, done int) []byte {
	rest := buf[done:]
	switch {
	case done == 0:
		return buf
	case cap(buf) > keepCap && len(rest) <= keepCap/2:
		return append([]byte(nil), rest...)
	default:
		return buf[:copy(buf, rest)]
	}
}
