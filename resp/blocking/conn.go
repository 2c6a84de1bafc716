package blocking

import (
	"net"
	"syscall"
)

// A conn is a client's connection. The owner of the client's token may use it; any goroutine
// may close it.
type conn struct {
	net.Conn
	raw   syscall.RawConn // nil: the system cannot look ahead
	look  func(fd uintptr) bool
	first [1]byte // the byte that look has seen
	found error   // the result of look
}

func newConn(nc net.Conn) *conn {
	c := &conn{Conn: nc}
	if socket, ok := nc.(syscall.Conn); ok && canLookAhead {
		c.raw, _ = socket.SyscallConn() // A closed connection says so in the first read.
	}
	c.look = func(fd uintptr) bool {
		c.found = lookAhead(fd, c.first[:])
		return true
	}
	return c
}

// checkIdle returns the reason why the connection cannot take the next batch, or nil. While no
// command is unanswered, nothing may be there to be read. The client would take bytes that nobody
// asked for as the answer to the next batch, and that batch would fail if the connection has ended.
func (c *conn) checkIdle() error {
	if c.raw == nil {
		return nil
	}
	if err := c.raw.Read(c.look); err != nil {
		return err
	}
	return c.found
}
