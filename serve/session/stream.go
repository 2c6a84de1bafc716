package session

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
)

// streamReadBytes is how much a stream reads at a time. Each stream has a buffer of that size.
const streamReadBytes = 4 << 10

// A stream is a connection whose reads and writes block, as those of crypto/tls: one goroutine reads and one writes. The session sees
// it through transport.Accepted. Its methods are loop only; the two goroutines say so where they touch it.
type stream struct {
	server  *Server
	nc      net.Conn
	handler transport.AcceptedHandler
	wake    chan struct{} // tells the writer to look; has room for one
	taken   chan struct{} // tells the reader that its bytes have been taken; has room for one

	// Loop only.
	unread    []byte
	unreadMax int
	owesTaken bool // the reader waits for taken
	resuming  bool // Resume's call is on its way
	flushing  bool // flush is on its way
	ended     bool
	reason    error

	mu sync.Mutex // guards the rest
	// Bytes that wait for the writer, and the number of those that it writes.
	out       []byte
	writing   int
	finishing bool // the writer ends once nothing is unsent
	over      bool // the writer ends now
	awaited   bool // OnDrain is due
}

// serveStream serves a connection that the reactor cannot take, from its handshake to its end. It is the goroutine that reads.
func (v *Server) serveStream(nc net.Conn, remote string) {
	defer v.streams.Done()
	defer context.AfterFunc(v.closing, func() { unblock(nc) })()
	st := &stream{
		server: v, nc: nc, wake: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		unreadMax: v.options.MaxRequestBytes + len("\r\n"), // the longest request
	}
	if !st.shakeHands() || !v.loop.Post(func() { st.open(remote) }) {
		_ = nc.Close()
		v.connections.Add(-1)
		return
	}
	var writer sync.WaitGroup
	writer.Go(st.write)
	err := st.read()
	if !v.loop.Post(func() { st.readEnded(err) }) {
		st.stopWriter()
	}
	writer.Wait()
	_ = nc.Close()
	v.loop.Post(st.close)
}

// unblock ends reads and writes that are under way.
func unblock(nc net.Conn) { _ = nc.SetDeadline(time.Unix(1, 0)) }

// shakeHands does the handshake of TLS.
func (st *stream) shakeHands() bool {
	secure, ok := st.nc.(interface{ HandshakeContext(context.Context) error })
	if !ok {
		return true
	}
	v := st.server
	ctx, cancel := context.WithTimeout(v.stopping, v.options.ReadTimeout)
	defer cancel()
	if secure.HandshakeContext(ctx) == nil {
		return true
	}
	v.service.ConnCut(v.protocol.Front, serve.CutProtocol)
	return false
}

// open makes the session.
func (st *stream) open(remote string) {
	st.handler = st.server.enter(st, remote)
	st.handler.OnConnect(nil)
}

// read reads until it fails. It goes on when the loop has taken what it has read: a session that is full
// stops its client. Not on the loop.
func (st *stream) read() error {
	buf := make([]byte, streamReadBytes)
	for {
		n, err := st.nc.Read(buf)
		if n > 0 {
			if !st.server.loop.Post(func() { st.received(buf[:n]) }) {
				return loop.ErrStopped
			}
			select {
			case <-st.taken:
			case <-st.server.closing.Done():
			}
		}
		if err != nil {
			return err
		}
	}
}

// received hands bytes to the session.
func (st *stream) received(data []byte) {
	st.owesTaken = true
	if len(st.unread) > 0 {
		st.unread = append(st.unread, data...)
		data = nil
	}
	st.handOver(data)
}

// handOver gives the session the bytes that it has left, or data if it has left none. It lets the reader go on unless too much
// is left. A stream that has ended drops everything.
func (st *stream) handOver(data []byte) {
	switch {
	case st.ended:
		st.unread = nil
	case len(st.unread) > 0:
		st.unread = st.unread[st.handler.OnData(st.unread):]
	case len(data) > 0:
		st.unread = append(st.unread, data[st.handler.OnData(data):]...)
	}
	if len(st.unread) == 0 {
		st.unread = nil
	}
	if st.owesTaken && len(st.unread) <= st.unreadMax {
		st.owesTaken = false
		st.taken <- struct{}{}
	}
}

// readEnded is called once the reader reads no more.
func (st *stream) readEnded(err error) {
	if errors.Is(err, io.EOF) && !st.ended && st.handler.OnEOF() {
		return
	}
	st.Close(err)
}

// close tells the session of the end, after both goroutines have done their work.
func (st *stream) close() { st.handler.OnClose(st.reason) }

// Write implements transport.Conn.
func (st *stream) Write(p []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over || st.finishing {
		return transport.ErrClosed
	}
	if len(p) > unsentMost-len(st.out)-st.writing {
		st.end(transport.ErrUnsentLimit)
		return transport.ErrUnsentLimit
	}
	st.out = append(st.out, p...)
	st.flush()
	return nil
}

// flush wakes the writer at the end of the iteration.
func (st *stream) flush() {
	if !st.flushing {
		st.flushing = true
		st.server.loop.BeforeFlush(func() {
			st.flushing = false
			st.rouse()
		})
	}
}

// rouse has the writer look at what there is to do. Any goroutine.
func (st *stream) rouse() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// Unsent implements transport.Conn.
func (st *stream) Unsent() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.out) + st.writing
}

// Close implements transport.Conn.
func (st *stream) Close(reason error) {
	if reason == nil {
		reason = transport.ErrClosed
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.end(reason)
}

// end stops both goroutines. Called with the lock held.
func (st *stream) end(reason error) {
	if st.ended {
		return
	}
	st.ended, st.over, st.reason = true, true, reason
	unblock(st.nc)
	st.rouse()
	if st.owesTaken {
		st.owesTaken = false
		st.taken <- struct{}{}
	}
}

// stopWriter ends the writer when there is no loop any more to say so. Any goroutine.
func (st *stream) stopWriter() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.over = true
	st.rouse()
}

// Finish implements transport.Accepted.
func (st *stream) Finish() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.finishing = true
	st.flush()
}

// Resume implements transport.Accepted.
func (st *stream) Resume() {
	if !st.resuming {
		st.resuming = true
		st.server.loop.Defer(func() {
			st.resuming = false
			st.handOver(nil)
		})
	}
}

// AwaitDrain implements transport.Accepted.
func (st *stream) AwaitDrain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.awaited = true
	st.flush()
}

// drained calls the session that waits for it, unless it has written again.
func (st *stream) drained() {
	st.mu.Lock()
	due := st.awaited && !st.over && len(st.out)+st.writing == 0
	st.awaited = st.awaited && !due
	st.mu.Unlock()
	if due {
		st.handler.OnDrain()
	}
}

// write writes until the stream ends. Not on the loop.
func (st *stream) write() {
	for range st.wake {
		for {
			buf, over := st.nextBytes()
			if over {
				return
			}
			if len(buf) == 0 {
				break
			}
			if err := st.writePieces(buf); err != nil {
				st.server.loop.Post(func() { st.Close(err) })
				return
			}
		}
	}
}

// streamWriteBytes is how much a stream writes at a time: what a record of TLS takes.
const streamWriteBytes = 16 << 10

// writePieces writes buf so that Unsent falls while a slow client reads. Not on the loop.
func (st *stream) writePieces(buf []byte) error {
	for len(buf) > 0 {
		n, err := st.nc.Write(buf[:min(len(buf), streamWriteBytes)])
		if err != nil {
			return err
		}
		buf = buf[n:]
		st.mu.Lock()
		st.writing = len(buf)
		st.mu.Unlock()
	}
	return nil
}

// nextBytes returns what the writer writes next. If that is nothing, it says so to whoever waits for it. over says that
// the writer ends. Not on the loop.
func (st *stream) nextBytes() (buf []byte, over bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	buf, st.out = st.out, nil
	st.writing = len(buf)
	switch {
	case st.over:
		return nil, true
	case len(buf) > 0:
		return buf, false
	case st.finishing:
		st.server.loop.Post(func() { st.Close(transport.ErrClosed) })
		return nil, true
	case st.awaited:
		st.server.loop.Post(st.drained)
	}
	return nil, false
}
