// Package transport names what a byte-stream connection on a loop is, so that
// the Redis client can be driven by the reactor's sockets, by a simulated
// network, or by a test, and none of them knows the others.
package transport

import (
	"errors"
	"time"
)

// Reasons for a close, besides the operating system's own errors and io.EOF.
var (
	// ErrClosed: the connection was closed by its user, or the operation came
	// after a close.
	ErrClosed = errors.New("connection closed")
	// ErrUnsentLimit: the peer does not read; more bytes are waiting to be sent
	// than the dial options allow.
	ErrUnsentLimit = errors.New("too many unsent bytes")
	// ErrUnreadLimit: the handler does not consume; more bytes are waiting to be
	// read than the dial options allow.
	ErrUnreadLimit = errors.New("too many unread bytes")
	// ErrConnectTimeout: the peer did not accept within the connect timeout.
	ErrConnectTimeout = errors.New("connect timeout")
)

// DialOptions bound one connection. A zero field means its default.
type DialOptions struct {
	ConnectTimeout time.Duration // zero means 1 s
	UnsentMaxBytes int           // zero means 64 MiB
	UnreadMaxBytes int           // zero means 64 MiB
}

// A Dialer opens connections. Loop only.
type Dialer interface {
	// Dial starts to connect to addr ("host:port") and returns at once. The
	// outcome reaches h.OnConnect later, exactly once, never inside Dial.
	// Writes made before that are queued and go out once connected.
	Dial(addr string, opts DialOptions, h Handler) Conn
}

// A Conn is a handle to one connection. Loop only. A handle whose connection
// has closed stays safe to call: nothing it does can reach the descriptor's
// next owner.
type Conn interface {
	// Write queues a copy of p; what an iteration queues leaves in one system
	// call at its end, or in several as it comes if it is much. An error (ErrClosed, ErrUnsentLimit) means that
	// nothing of p will be sent; after ErrUnsentLimit the connection closes with
	// that reason.
	Write(p []byte) error
	// Unsent returns the number of bytes queued and not yet handed to the kernel.
	Unsent() int
	// Close closes the connection; OnClose follows later, once, with this
	// reason (ErrClosed if nil). A second call does nothing. Bytes written before
	// it are given to the kernel if it takes them at once.
	Close(reason error)
}

// A Handler is told what happens on a connection, on the loop, never inside
// a call that it made itself. Order: OnConnect once; if its err is nil, then OnData
// any number of times, then OnClose once. After a failed OnConnect nothing
// follows.
type Handler interface {
	OnConnect(err error)
	// OnData hands over all unconsumed bytes, old and new, as they arrived. It
	// returns how many it has consumed; the rest is kept and handed over
	// again, with what follows it, when more arrives. data is valid only
	// during the call.
	OnData(data []byte) (consumed int)
	OnClose(reason error)
}
