// Package stream, which is not covered by the compatibility promise, runs a connection whose reads and writes
// block, such as one of crypto/tls, beside a loop: one goroutine reads, one writes, and the loop sees a
// transport.Accepted. The fronts serve clients with TLS so, and the reactor reaches servers with TLS.
package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// Options bound a stream. Immutable once given to New.
type Options struct {
	ReadBytes      int // how much it reads at a time, in a buffer of its own
	UnreadMaxBytes int // it reads no further while the handler has left more
	UnsentMaxBytes int // a Write that would leave more unsent fails with transport.ErrUnsentLimit
}

// A Stream is a connection whose reads and writes block, as those of crypto/tls. Its methods are loop only, except Run; the two goroutines say so where
// they touch it.
type Stream struct {
	loop    *loop.Loop
	options Options
	done    <-chan struct{} // of Run's context
	handler transport.AcceptedHandler
	wake    chan struct{} // tells the writer to look; has room for one
	taken   chan struct{} // tells the reader that its bytes have been taken; has room for one

	// Loop only.
	unread    []byte
	owesTaken bool // the reader waits for taken
	resuming  bool // Resume's call is on its way
	flushing  bool // flush is on its way
	ended     bool
	reason    error

	mu sync.Mutex // guards the rest
	nc net.Conn   // nil before Run
	// Bytes that wait for the writer, and the number of those that it writes.
	out       []byte
	writing   int
	finishing bool // the writer ends once nothing is unsent
	reads     bool // the reader then goes on: see FinishWriting
	over      bool // the writer ends now
	awaited   bool // OnDrain is due
}

var _ transport.Accepted = (*Stream)(nil)

// New returns a stream without a connection: what is written leaves once it has one. Any goroutine.
func New(l *loop.Loop, o Options) *Stream {
	return &Stream{loop: l, options: o, wake: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// Run serves nc until it ends, and closes it. It is the goroutine that reads. open returns the handler, on the loop, and is not called if the stream was closed before.
// When ctx ends, so does the stream, also without a loop. Run reports false if open was never called.
func (st *Stream) Run(ctx context.Context, nc net.Conn, open func() transport.AcceptedHandler) (opened bool) {
	st.mu.Lock()
	st.nc, st.done = nc, ctx.Done()
	over := st.over
	st.mu.Unlock()
	defer context.AfterFunc(ctx, func() { unblock(nc) })()
	began := make(chan bool, 1)
	posted := !over && st.loop.Post(func() {
		opened := false // unless the handler returns from OnConnect
		defer func() { began <- opened }()
		opened = st.open(open)
	})
	if !posted || !st.await(began) {
		_ = nc.Close()
		return false
	}
	var writer sync.WaitGroup
	writer.Go(st.write)
	err := st.read()
	if !st.loop.Post(func() { st.readEnded(err) }) {
		st.stopWriter()
	}
	writer.Wait()
	_ = nc.Close()
	st.loop.Post(st.close)
	return true
}

// await returns whether open was called. A loop that stops may not say so. Not on the loop.
func (st *Stream) await(began <-chan bool) bool {
	select {
	case opened := <-began:
		return opened
	case <-st.loop.Done():
		select {
		case opened := <-began:
			return opened
		default:
			return false
		}
	}
}

// unblock ends reads and writes that are under way.
func unblock(nc net.Conn) { _ = nc.SetDeadline(time.Unix(1, 0)) }

// open gets the handler, unless the stream was closed meanwhile.
func (st *Stream) open(handler func() transport.AcceptedHandler) bool {
	if st.ended {
		return false
	}
	st.handler = handler()
	st.handler.OnConnect(nil)
	return true
}

// read reads until it fails. It goes on when the loop has taken what it has read: a handler that is full
// stops its peer. Not on the loop.
func (st *Stream) read() error {
	buf := make([]byte, st.options.ReadBytes)
	for {
		n, err := st.nc.Read(buf)
		if n > 0 {
			if !st.loop.Post(func() { st.received(buf[:n]) }) {
				return loop.ErrStopped
			}
			select {
			case <-st.taken:
			case <-st.done:
			}
		}
		if err != nil {
			return err
		}
	}
}

// received hands bytes to the handler.
func (st *Stream) received(data []byte) {
	st.owesTaken = true
	if len(st.unread) > 0 {
		st.unread = append(st.unread, data...)
		data = nil
	}
	st.handOver(data)
}

// handOver gives the handler the bytes that it has left, or data if it has left none. It lets the reader go on unless too much
// is left. A stream that has ended drops everything.
func (st *Stream) handOver(data []byte) {
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
	if st.owesTaken && len(st.unread) <= st.options.UnreadMaxBytes {
		st.owesTaken = false
		st.taken <- struct{}{}
	}
}

// readEnded is called once the reader reads no more.
func (st *Stream) readEnded(err error) {
	if errors.Is(err, io.EOF) && !st.ended && st.handler.OnEOF() {
		return
	}
	st.Close(err)
}

// close tells the handler of the end, after both goroutines have done their work.
func (st *Stream) close() { st.handler.OnClose(st.reason) }

// Write implements transport.Conn.
func (st *Stream) Write(p []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over || st.finishing {
		return transport.ErrClosed
	}
	if len(p) > st.options.UnsentMaxBytes-len(st.out)-st.writing {
		st.end(transport.ErrUnsentLimit)
		return transport.ErrUnsentLimit
	}
	st.out = append(st.out, p...)
	st.flush()
	return nil
}

// flush wakes the writer at the end of the iteration.
func (st *Stream) flush() {
	if !st.flushing {
		st.flushing = true
		st.loop.BeforeFlush(func() {
			st.flushing = false
			st.rouse()
		})
	}
}

// rouse has the writer look at what there is to do. Any goroutine.
func (st *Stream) rouse() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// Unsent implements transport.Conn.
func (st *Stream) Unsent() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.out) + st.writing
}

// Close implements transport.Conn.
func (st *Stream) Close(reason error) {
	if reason == nil {
		reason = transport.ErrClosed
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.end(reason)
}

// end stops both goroutines. Called with the lock held.
func (st *Stream) end(reason error) {
	if st.ended {
		return
	}
	st.ended, st.over, st.reason = true, true, reason
	if st.nc != nil {
		unblock(st.nc)
	}
	st.rouse()
	if st.owesTaken {
		st.owesTaken = false
		st.taken <- struct{}{}
	}
}

// stopWriter ends the writer when there is no loop any more to say so. Any goroutine.
func (st *Stream) stopWriter() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.over = true
	st.rouse()
}

// Finish implements transport.Accepted.
func (st *Stream) Finish() { st.finishWith(false) }

func (st *Stream) finishWith(reads bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.finishing, st.reads = true, reads
	st.flush()
}

// FinishWriting implements transport.Accepted.
func (st *Stream) FinishWriting() { st.finishWith(true) }

// tellEnd tells the peer that no more comes, on each layer that can say so, if the stream goes on reading. Not on the loop.
func (st *Stream) tellEnd() {
	st.mu.Lock()
	nc, due := st.nc, st.reads && !st.over
	st.mu.Unlock()
	for due {
		if half, ok := nc.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		layered, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		nc = layered.NetConn()
	}
}

// Resume implements transport.Accepted.
func (st *Stream) Resume() {
	if !st.resuming {
		st.resuming = true
		st.loop.Defer(func() {
			st.resuming = false
			st.handOver(nil)
		})
	}
}

// AwaitDrain implements transport.Accepted.
func (st *Stream) AwaitDrain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.awaited = true
	st.flush()
}

// drained calls the handler that waits for it, unless it has written again.
func (st *Stream) drained() {
	st.mu.Lock()
	due := st.awaited && !st.over && len(st.out)+st.writing == 0
	st.awaited = st.awaited && !due
	st.mu.Unlock()
	if due {
		st.handler.OnDrain()
	}
}

// write writes until the stream ends. Not on the loop.
func (st *Stream) write() {
	for range st.wake {
		for {
			buf, over := st.nextBytes()
			if over {
				st.tellEnd()
				return
			}
			if len(buf) == 0 {
				break
			}
			if err := st.writePieces(buf); err != nil {
				st.loop.Post(func() { st.Close(err) })
				return
			}
		}
	}
}

// writeBytes is how much a stream writes at a time: what a record of TLS takes.
const writeBytes = 16 << 10

// writePieces writes buf so that Unsent falls while a slow peer reads. Not on the loop.
func (st *Stream) writePieces(buf []byte) error {
	for len(buf) > 0 {
		n, err := st.nc.Write(buf[:min(len(buf), writeBytes)])
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
func (st *Stream) nextBytes() (buf []byte, over bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	buf, st.out = st.out, nil
	st.writing = len(buf)
	switch {
	case st.over:
		return nil, true
	case len(buf) > 0:
		return buf, false
	case st.finishing && st.reads:
		return nil, true
	case st.finishing:
		st.loop.Post(func() { st.Close(transport.ErrClosed) })
		return nil, true
	case st.awaited:
		st.loop.Post(st.drained)
	}
	return nil, false
}
