package reactor

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/reactor/transport"
)

// readIntoBytes is how much our own reads take at a time: as much as gnet's.
const readIntoBytes = 64 << 10

// control makes an accepted connection stop reading when its handler has left too much, and read on when half of that
// is left.
func (c *conn) control() {
	d := c.direct
	switch {
	case d.polling == polled && len(c.in) > c.unreadMax:
		d.polling = pausing
		c.later(c.pause) // gnet must not lose the connection inside a callback for it.
	case d.polling == paused && len(c.in) <= c.unreadMax/2:
		d.polling = reading
		c.later(c.readOn)
	}
}

// pause stops reading. gnet cannot do that, so pause takes the connection from gnet and keeps a copy of its
// descriptor. The kernel then makes the peer stop.
func (c *conn) pause() {
	d := c.direct
	if d.polling != pausing {
		return
	}
	fd, err := c.gc.Dup()
	if err != nil {
		c.end(transport.ErrUnreadLimit)
		return
	}
	gc := c.gc
	c.gc = nil
	d.fd, d.polling = fd, paused
	_ = c.reactor.poller.Close(gc)
	c.tryLater() // Nothing else notices a peer that has gone.
	c.control()
}

// readOn reads what has come meanwhile. Once nothing is left gnet gets the connection back.
func (c *conn) readOn() {
	d := c.direct
	d.polling = paused
	if c.reactor.readInto == nil {
		c.reactor.readInto = make([]byte, readIntoBytes)
	}
	switch n, err := unix.Read(d.fd, c.reactor.readInto); {
	case n > 0:
		c.received(c.reactor.readInto[:n])
	case errors.Is(err, unix.EINTR):
		c.control()
	case errors.Is(err, unix.EAGAIN):
		c.rejoin()
	case err != nil:
		c.end(os.NewSyscallError("read", err))
	default:
		d.polling = halfClosed
		if !d.handler.OnEOF() {
			c.end(io.EOF)
		}
	}
}

// rejoin makes gnet poll the connection again. Until then, writes go to the copy.
func (c *conn) rejoin() {
	fd, err := unix.FcntlInt(uintptr(c.direct.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		c.end(os.NewSyscallError("fcntl", err))
		return
	}
	file := os.NewFile(uintptr(fd), "connection")
	nc, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		c.end(err)
		return
	}
	c.direct.polling = joining
	c.reactor.dialing++
	go func() { _ = c.reactor.enroll(context.Background(), nc, c) }()
}

// rejoined takes the connection over from gnet again.
func (c *conn) rejoined() {
	d := c.direct
	_ = unix.Close(d.fd)
	d.fd, d.polling = c.gc.Fd(), polled
	c.control()
}
