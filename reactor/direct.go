package reactor

import (
	"io"
	"os"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// Pauses before a full socket is tried again. A socket takes a few megabytes at once, so the first pause is enough
// for a peer that reads. The longest keeps the cost of a thousand peers that do not read low.
const (
	retryFirst = time.Millisecond
	retryMost  = 128 * time.Millisecond
)

// directFlushBytes is the number of buffered bytes at which an accepted connection flushes before the end of the
// iteration. Its peer waits for answers, most of which are made near the end of the iteration anyway, and a system call costs
// as much as a request.
const directFlushBytes = 64 << 10

// A polling says who polls an accepted connection, and so whose its descriptor is: gnet's, or a copy of ours. gnet cannot
// stop reading, so a connection that is to stop leaves gnet, and comes back.
//
//	unpolled ─▶ polled            gnet has opened it (opened)
//	polled ─▶ pausing ─▶ paused   the handler has left too much (control, pause)
//	paused ─▶ reading ─▶ paused   half of that is left, and more has come (control, readOn)
//	reading ─▶ joining ─▶ polled  nothing more has come (rejoin, rejoined)
//	polled, pausing ─▶ halfClosed the peer has stopped sending, and the handler goes on writing (halfClose)
//	reading ─▶ halfClosed         the same (readOn)
//
// From each the connection may end.
type polling uint8

const (
	unpolled   polling = iota // gnet has not opened it yet, or has closed it
	polled                    // gnet polls it
	pausing                   // gnet does; pause's call is on its way
	paused                    // nobody does, so that the kernel makes the peer stop
	reading                   // nobody does; readOn's call is on its way
	joining                   // nobody does; gnet is taking it back
	halfClosed                // nobody does: nothing more will come
)

// owns reports whether the descriptor is a copy of gnet's.
func (p polling) owns() bool { return p >= paused }

// A finish says how a connection ends once all bytes have gone.
type finish uint8

const (
	stays           finish = iota // it does not
	finishes                      // it closes
	finishesWriting               // it goes on reading: see FinishWriting
)

// A direct is how an accepted connection writes: to the socket itself. gnet would keep the bytes that a full
// socket does not take, and lose them when the peer stops sending. Loop only.
type direct struct {
	handler  transport.AcceptedHandler
	fd       int // -1: unpolled
	polling  polling
	finish   finish
	blocked  bool // the socket is full; the timer tries again
	resuming bool // Resume's call is on its way
	awaited  bool // OnDrain is due
	retry    *loop.Timer
	pause    time.Duration // before the next try
}

func newDirect(c *conn) *direct {
	return &direct{fd: -1, pause: retryFirst, retry: c.reactor.loop.NewTimer(c.again)}
}

// writeDirect writes until nothing is left or the socket is full.
func (c *conn) writeDirect() {
	d := c.direct
	if d.fd < 0 {
		return
	}
	done := 0
	for done < len(c.out) {
		n, err := unix.Write(d.fd, c.out[done:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			c.out = nil
			c.end(os.NewSyscallError("write", err))
			return
		}
		done += n
	}
	if done > 0 {
		d.pause = retryFirst
	}
	if done < len(c.out) {
		c.out = keep(c.out, done)
		d.blocked = true
		c.tryLater()
		return
	}
	c.reactor.spare.put(c.out)
	c.out = nil
	d.blocked = false
	switch {
	case c.state == ended:
	case d.finish != stays:
		c.written()
	case d.awaited:
		c.drained()
	}
}

// later calls the handler in the check phase, unless the connection has ended by then.
func (c *conn) later(fn func()) {
	c.reactor.loop.Defer(func() {
		if c.state == open {
			c.reactor.contain(c, fn)
		}
	})
}

// tryLater arms the timer that tries again.
func (c *conn) tryLater() {
	d := c.direct
	if c.state != ended {
		_ = d.retry.Start(d.pause, 0) // It fails only on a stopping loop.
		d.pause = min(2*d.pause, retryMost)
	}
}

// again writes what a full socket has left. Once a peer has stopped sending, gnet no longer polls its connection. So
// again also checks whether the peer has gone for good: an answer to a closed socket brings a reset.
func (c *conn) again() {
	d := c.direct
	if d.polling.owns() && hungUp(d.fd) {
		c.end(os.NewSyscallError("poll", unix.ECONNRESET))
		return
	}
	c.writeDirect()
	if d.polling.owns() && !d.retry.Active() {
		c.tryLater()
	}
}

// hungUp reports whether both directions of a connection have ended.
func hungUp(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// halfClose keeps a copy of gnet's descriptor, which gnet is closing, if the handler wants to go on
// writing. It reports whether it does.
func (c *conn) halfClose(gc gnet.Conn) (stays bool) {
	d := c.direct
	if c.state != open || hungUp(gc.Fd()) {
		return false
	}
	fd, err := gc.Dup()
	if err != nil {
		return false
	}
	d.fd, d.polling = fd, halfClosed
	if !d.handler.OnEOF() {
		return false
	}
	d.pause = retryFirst
	c.tryLater()
	return true
}

// release gives the descriptor back.
func (d *direct) release() {
	d.retry.Close(nil)
	if d.polling.owns() {
		_ = unix.Close(d.fd)
	}
	d.fd, d.polling = -1, unpolled
}

// socketError returns the error that the kernel keeps for a socket that hangs up, or io.EOF.
func socketError(gc gnet.Conn) error {
	if errno, err := unix.GetsockoptInt(gc.Fd(), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && errno != 0 {
		return os.NewSyscallError("poll", unix.Errno(errno))
	}
	return io.EOF
}
