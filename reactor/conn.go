package reactor

import (
	"context"
	"io"
	"os"
	"syscall"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// keepCap bounds the buffer that a connection keeps once it is empty: a peer that
// was slow once must not pin tens of megabytes.
const keepCap = 1 << 20

// flushBytes is how much an iteration writes to a connection before it leaves ahead of
// the iteration's end. Waiting for the end saves system calls as long as there is
// little; but when one turn makes hundreds of commands, a server that gets them all at the end idles
// until then, and the loop idles while the server works them off: the two take turns. With
// 64 requests in flight that cost a fifth of the throughput; in pieces of some 50
// commands, they overlap. Half or twice as much makes little difference.
const flushBytes = 2 << 10

type connState int8

const (
	connecting connState = iota
	open
	ended // closed or failed; the handler has been told or is about to be
)

// A conn is a connection from Dial to the call that tells its handler of its end.
// Loop only.
type conn struct {
	reactor   *Reactor
	handler   transport.Handler
	addr      string
	unsentMax int
	unreadMax int

	state     connState
	connected bool      // OnConnect(nil) has been called, or is being called
	gc        gnet.Conn // nil unless gnet has it open: gnet would write to whoever owns the descriptor now
	out       []byte    // written, and to be flushed at the end of the iteration
	dirty     bool      // listed in reactor.dirty
	in        []byte    // handed over and not consumed
	reason    error     // why it ended
	cancel    context.CancelFunc
	timeout   *loop.Timer // of the connect
}

func newConn(r *Reactor, addr string, opts transport.DialOptions, h transport.Handler) *conn {
	r.loop.Hold()
	return &conn{
		reactor: r, handler: h, addr: addr,
		unsentMax: orDefault(opts.UnsentMaxBytes, defaultMaxBytes),
		unreadMax: orDefault(opts.UnreadMaxBytes, defaultMaxBytes),
	}
}

// Write implements transport.Conn.
func (c *conn) Write(p []byte) error {
	if c.state == ended {
		return transport.ErrClosed
	}
	if len(p) > c.unsentMax-c.Unsent() {
		c.end(transport.ErrUnsentLimit)
		return transport.ErrUnsentLimit
	}
	c.out = append(c.out, p...)
	if c.state == open {
		c.markDirty()
		if len(c.out) >= flushBytes {
			c.flush()
		}
	}
	return nil
}

// markDirty has what was written to an open connection leave at the end of the iteration.
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

// end is the one way to the state of that name. The rest follows in the closing phase.
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

// finish releases the descriptor and tells the handler. It runs once, in the
// closing phase.
func (c *conn) finish() {
	r := c.reactor
	if c.gc != nil {
		c.flush()
	}
	if c.gc != nil { // still: the flush may have found it broken
		// An error is about a descriptor that is gone already.
		_ = r.poller.Close(c.gc)
		c.gc = nil
	}
	c.out, c.in = nil, nil
	delete(r.conns, c)
	r.loop.Release()
	if c.connected {
		c.handler.OnClose(c.reason)
	} else {
		c.handler.OnConnect(c.reason)
	}
}

// flush gives what was written to gnet, which makes one system call and keeps
// what the kernel does not take.
func (c *conn) flush() {
	out := c.out
	c.out = reuse(out)
	if c.gc != nil && len(out) > 0 {
		// A failed write closes the connection before it returns: see closed.
		_, _ = c.gc.Write(out)
	}
}

// received hands over data, which is valid only during the call, behind what the
// handler has left over.
func (c *conn) received(data []byte) {
	if c.state != open {
		return
	}
	if len(c.in) == 0 {
		rest := data[c.handler.OnData(data):]
		c.in = append(c.in, rest...)
	} else {
		c.in = append(c.in, data...)
		consumed := c.handler.OnData(c.in)
		c.in = keep(c.in, consumed)
	}
	if len(c.in) > c.unreadMax {
		c.end(transport.ErrUnreadLimit)
	}
}

// closed learns that gnet is closing gc.
func (c *conn) closed(gc gnet.Conn, err error) {
	if c.gc != gc {
		return // it opened too late, and was never ours
	}
	c.gc = nil
	switch {
	case err == nil:
		err = loop.ErrStopped // gnet itself ends
	case err == io.EOF:
		// Hang-up without data: gnet does not ask for the reason, the socket knows.
		if errno, e := unix.GetsockoptInt(gc.Fd(), unix.SOL_SOCKET, unix.SO_ERROR); e == nil && errno != 0 {
			err = os.NewSyscallError("poll", syscall.Errno(errno))
		}
	}
	c.end(err)
}

// reuse empties buf for the next use, or drops it if it has become huge.
func reuse(buf []byte) []byte { return keep(buf, len(buf)) }

// keep drops the first done bytes of buf, and with them its capacity if that has become huge
// and what is left is not.
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
