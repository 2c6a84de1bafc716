package httpfront

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rankd/rankd/serve"
)

// phase says what a connection waits for when it reads.
type phase int

const (
	fresh   phase = iota // the first byte of its first request
	idle                 // the first byte of its next request
	busy                 // the rest of a request
	between              // the next line of a batch
)

// pieceBytes is what WriteTimeout counts for: a client that takes less in that time is cut off.
const pieceBytes = 64 << 10

// lingerTimeout bounds the wait for a client to read an answer that came before its request had ended.
const lingerTimeout = time.Second

// conn is a connection with its deadlines. fasthttp sets none: each phase has one deadline, which counts from the first read
// in it. Most reads and writes find a deadline that serves, and arm none.
//
// The goroutine of the connection owns it. cut, interrupt, Room and Cut are for any goroutine.
type conn struct {
	net.Conn          // with TLS: a tls.Conn
	tcp      net.Conn // the connection below TLS; the same without
	front    *Front
	number   uint64 // among all connections of the service

	context   context.Context    // of its requests; ends with abandon
	abandon   context.CancelFunc // says that nobody waits for the answers any more
	lingering bool               // the client may still be sending when the answer has left

	outbox *serve.Outbox
	owed   int           // bytes of answers that have not left
	room   chan struct{} // a value when outbox has room

	name  string // the header Host of a request that was let in
	named bool   // name is set

	ended   bool      // the client sends nothing any more
	late    bool      // what should have come has not come in time
	started bool      // the deadline of this phase counts
	writeBy time.Time // the write deadline that is armed

	mu      sync.Mutex
	phase   phase
	leaving bool      // it ends instead of waiting for a request or a line
	deaf    bool      // it reads nothing any more
	readBy  time.Time // the read deadline that is armed; zero if unknown
}

func newConn(f *Front, nc net.Conn) *conn {
	c := &conn{Conn: nc, tcp: nc, front: f, room: make(chan struct{}, 1)}
	c.outbox = f.service.NewOutbox(c)
	c.context, c.abandon = context.WithCancel(context.Background())
	if secure, ok := nc.(*tls.Conn); ok {
		c.tcp = secure.NetConn()
	}
	return c
}

// enter begins a phase.
func (c *conn) enter(p phase) {
	c.mu.Lock()
	c.phase = p
	c.mu.Unlock()
	c.started = false
}

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// slack is by how much an armed deadline may be earlier than the exact one, so that few are armed.
func slack(timeout time.Duration) time.Duration { return min(timeout/8, time.Second) }

// startReading arms the deadline of the phase, unless an armed one serves.
func (c *conn) startReading() error {
	c.started = true
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := c.front.options.ReadTimeout
	if c.phase == idle || c.phase == between {
		timeout = c.front.options.IdleTimeout
	}
	by := now.Add(timeout)
	switch {
	case c.deaf, c.leaving && c.phase != busy:
		by = longAgo
	case !c.readBy.Before(by.Add(-slack(timeout))) && !c.readBy.After(by):
		return nil
	}
	c.readBy = by
	return c.Conn.SetReadDeadline(by)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if !c.started {
		if err := c.startReading(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	c.ended = err == io.EOF
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.late = true
		c.tooSlow()
	}
	return n, err
}

// tooSlow counts a connection that ends since nothing came in time.
func (c *conn) tooSlow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leaving, c.deaf: // the front ends it
	case c.phase == busy:
		c.front.service.ConnCut(serve.HTTP, serve.CutSlowRead)
	default:
		c.front.service.ConnCut(serve.HTTP, serve.CutIdle)
	}
}

// Write implements net.Conn. Each piece has a deadline of its own.
func (c *conn) Write(p []byte) (written int, err error) {
	for {
		timeout := c.front.options.WriteTimeout
		if now := time.Now(); c.writeBy.Sub(now) < timeout-slack(timeout) {
			c.writeBy = now.Add(timeout)
			if err := c.Conn.SetWriteDeadline(c.writeBy); err != nil {
				return written, err
			}
		}
		n, err := c.Conn.Write(p[written:min(len(p), written+pieceBytes)])
		written += n
		c.owe(-n)
		if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			c.front.service.ConnCut(serve.HTTP, serve.CutSlowWrite)
		}
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// interrupt has the connection end instead of waiting for a request or a line, now or later.
func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	if c.phase != busy {
		c.readBy = time.Time{} // a request that has just come begins with a deadline of its own
		_ = c.Conn.SetReadDeadline(longAgo)
	}
}

// leaves reports whether interrupt was called.
func (c *conn) leaves() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// stopReading ends the read that waits, and all that follow.
func (c *conn) stopReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = true
	_ = c.Conn.SetReadDeadline(longAgo)
}

// makeRoom waits until all connections together have room for an answer of so many bytes. It reports false if nobody waits for the
// answer any more.
func (c *conn) makeRoom(bytes int) bool {
	if c.context.Err() == nil && !c.outbox.Encode(bytes) {
		select {
		case <-c.room:
		case <-c.context.Done():
		}
	}
	return c.context.Err() == nil
}

// owe counts bytes of answers, or those that have left with what stands around them.
func (c *conn) owe(bytes int) {
	c.owed = max(c.owed+bytes, 0)
	c.outbox.Settle(c.owed)
}

// Room implements serve.Sender.
func (c *conn) Room() { c.room <- struct{}{} }

// Cut implements serve.Sender.
func (c *conn) Cut() {
	c.front.service.ConnCut(serve.HTTP, serve.CutUnsent)
	c.cut()
}

// cut ends the connection, and what the engine has of it.
func (c *conn) cut() {
	_ = c.tcp.Close()
	c.abandon()
}

// Close implements net.Conn. It lingers for a client that may still be sending: the system would otherwise answer the
// bytes that nobody reads by a reset, at which the client may lose the answer.
func (c *conn) Close() error {
	if c.lingering {
		c.lingering = false
		c.linger()
	}
	return c.Conn.Close()
}

func (c *conn) linger() {
	for _, layer := range [...]net.Conn{c.Conn, c.tcp} {
		if half, ok := layer.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	if c.tcp.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		_, _ = io.Copy(io.Discard, c.tcp)
	}
}
