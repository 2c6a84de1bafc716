package resp

import (
	"net"
	"syscall"
)

// A syncConn is a blocking client's connection. The owner of the client's token may
// use it; any goroutine may close it.
type syncConn struct {
	net.Conn
	raw   syscall.RawConn // nil: the system cannot look ahead
	look  func(fd uintptr) bool
	first [1]byte // what look has seen
	found error   // what look has found
}

func newSyncConn(nc net.Conn) *syncConn {
	c := &syncConn{Conn: nc}
	if tcp, ok := nc.(*net.TCPConn); ok && canLookAhead {
		// A connection that is closed already says so in the first read.
		c.raw, _ = tcp.SyscallConn()
	}
	c.look = func(fd uintptr) bool {
		c.found = lookAhead(fd, c.first[:])
		return true
	}
	return c
}

// spoilt returns why the connection cannot take the next batch, or nil. While nothing is
// asked, nothing may be there to be read: bytes that nobody asked for would be taken for
// the answer to the next batch, and the end of the connection would make that fail.
func (c *syncConn) spoilt() error {
	if c.raw == nil {
		return nil
	}
	if err := c.raw.Read(c.look); err != nil {
		return err
	}
	return c.found
}
