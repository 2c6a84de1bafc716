// Package transport, which is not covered by the compatibility promise, defines a byte-stream connection on a
// loop. The reactor's sockets, a simulated network and tests implement it, and the Redis client uses it; none
// of them knows the others.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Reasons for a close, besides the operating system's own errors and io.EOF.
var (
	// ErrClosed: the user has closed the connection, before or by this operation.
	ErrClosed = errors.New("connection closed")
	// ErrUnsentLimit: the peer does not read, and more bytes wait to be sent than the
	// dial options allow.
	ErrUnsentLimit = errors.New("too many unsent bytes")
	// ErrUnreadLimit: the handler does not consume, and more bytes wait for it than the
	// dial options allow.
	ErrUnreadLimit = errors.New("too many unread bytes")
	// ErrConnectTimeout: the peer did not accept within the connect timeout.
	ErrConnectTimeout = errors.New("connect timeout")
	// ErrNoHandshake: the peer accepted, but did not answer to TLS in time. It matches ErrConnectTimeout.
	ErrNoHandshake = fmt.Errorf("%w: the server accepts connections and does not answer to TLS, which it may not speak on this port", ErrConnectTimeout)
)

// SplitAddr returns the network and the address by which package net dials addr: "tcp" for
// "host:port", and "unix" for "unix:/path". Any goroutine.
func SplitAddr(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", path
	}
	return "tcp", addr
}

// DialOptions bound one connection. A zero field means its default. Immutable once given to Dial.
type DialOptions struct {
	ConnectTimeout time.Duration // zero means 1 s
	UnsentMaxBytes int           // zero means 64 MiB
	UnreadMaxBytes int           // zero means 64 MiB
	// Prepare is called on a goroutine of the attempt before it connects. Its error fails the attempt. Nil: there is
	// nothing to prepare.
	Prepare func() error
	// Secure adds TLS to a new connection, within ctx, and returns the result; after an error the caller closes nc.
	// It is called on a goroutine of the attempt. addr is the one that was dialed. Nil leaves the connection as it
	// is.
	Secure Secure
}

// Secure is the type of DialOptions.Secure. Any goroutine.
type Secure func(ctx context.Context, nc net.Conn, addr string) (net.Conn, error)

// A Dialer opens connections. Loop only.
type Dialer interface {
	// Dial starts to connect to addr ("host:port", or "unix:/path" for a unix socket) and returns at
	// once. It resolves a host name anew each time. It calls h.OnConnect with the outcome later,
	// exactly once, never inside Dial. Writes made before that are queued and go out once the
	// connection is open.
	Dial(addr string, opts DialOptions, h Handler) Conn
}

// A Conn is a handle to one connection. Its methods stay safe to call after the
// connection has closed: they never reach the descriptor's next owner. Loop only.
type Conn interface {
	// Write queues a copy of p. The bytes queued in one iteration leave in one system
	// call at its end, or in several if the data is large. An error (ErrClosed,
	// ErrUnsentLimit) means that nothing of p will be sent; after ErrUnsentLimit the
	// connection closes with that reason.
	Write(p []byte) error
	// Unsent returns the number of bytes queued and not yet handed to the kernel.
	Unsent() int
	// Close closes the connection; OnClose follows later, once, with this reason
	// (ErrClosed if nil). A second call does nothing. Bytes written before Close are
	// sent if the kernel takes them at once.
	Close(reason error)
}

// AcceptOptions bound one connection that a peer has opened. A zero field means its default. Immutable once given to
// Enroll.
type AcceptOptions struct {
	UnsentMaxBytes int // zero means 64 MiB
	// UnreadMaxBytes is how much the handler may leave unconsumed before the connection stops reading. It reads on
	// once half of that is left. Zero means 64 MiB.
	UnreadMaxBytes int
}

// An Accepted is a handle to a connection that the peer has opened. Loop only.
type Accepted interface {
	Conn
	// Finish closes the connection once all that was written has gone to the kernel, for the reason
	// ErrClosed. Later writes fail.
	Finish()
	// FinishWriting is Finish that goes on reading: it tells the peer that no more comes, as TCP does. Close or the
	// peer then ends the connection. So a peer that still sends can read what was written before it gets a reset.
	FinishWriting()
	// Resume makes OnData be called again with the bytes that it has left, if there are any: later, never inside
	// Resume.
	Resume()
	// AwaitDrain makes OnDrain be called once nothing is unsent: later, never inside AwaitDrain. Several calls before
	// that count as one.
	AwaitDrain()
}

// An AcceptedHandler handles a connection that the peer has opened. Loop only.
type AcceptedHandler interface {
	Handler
	// OnEOF says that the peer sends no more; bytes that OnData has left are still there. If it returns true, the
	// connection stays open for writes until Close, or until the peer turns out to have gone. Otherwise
	// OnClose(io.EOF) follows.
	OnEOF() (stay bool)
	// OnDrain answers AwaitDrain.
	OnDrain()
}

// A Handler receives the events of one connection. Its methods are called on the loop,
// never inside a call that the handler itself makes. OnConnect comes first, once. If
// its err is nil, OnData follows any number of times, then OnClose once; otherwise nothing
// follows. Loop only.
type Handler interface {
	OnConnect(err error)
	// OnData receives all unconsumed bytes, old and new, as they arrived. It returns how
	// many it has consumed. The connection keeps the rest and hands it over again when
	// more arrives. data is valid only during the call.
	OnData(data []byte) (consumed int)
	OnClose(reason error)
}
