package stream

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/reactor/transport"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// patience bounds each wait for what must come.
const patience = time.Minute

// A world is a stream on a loop that the test drives, its handler, and the client's end of its connection.
type world struct {
	t *testing.T
	*looptest.Harness
	*Stream
	client net.Conn
	cancel context.CancelFunc

	takes    func(data []byte) int // nil: the handler takes everything
	got      []byte                // that it took
	most     int                   // bytes that it was shown at once
	drains   int
	closed   bool
	reason   error
	returned chan struct{} // Run has
}

func newWorld(t *testing.T, o Options, wrap func(net.Conn) net.Conn) *world {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.SetDeadline(time.Now().Add(patience)))
	nc, err := l.Accept()
	require.NoError(t, err)
	w := &world{t: t, Harness: looptest.New(t), client: client, returned: make(chan struct{})}
	w.Stream = New(w.Loop, o)
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() {
		defer close(w.returned)
		w.Run(ctx, wrap(nc), func() transport.AcceptedHandler { return w })
	}()
	w.until(func() bool { return w.handler != nil })
	t.Cleanup(func() {
		cancel()
		w.until(func() bool { return w.closed })
		<-w.returned
	})
	return w
}

func asIs(nc net.Conn) net.Conn { return nc }

// until runs iterations until a condition holds.
func (w *world) until(holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !holds(); runtime.Gosched() {
		require.True(w.t, time.Now().Before(end), "it never holds")
		w.Iterate()
	}
}

func (w *world) send(text string) {
	_, err := w.client.Write([]byte(text))
	require.NoError(w.t, err)
}

func (w *world) OnConnect(error) {}
func (w *world) OnEOF() bool     { return false }
func (w *world) OnDrain()        { w.drains++ }
func (w *world) OnClose(reason error) {
	w.closed, w.reason = true, reason
}

func (w *world) OnData(data []byte) int {
	w.most = max(w.most, len(data))
	n := len(data)
	if w.takes != nil {
		n = w.takes(data)
	}
	w.got = append(w.got, data[:n]...)
	return n
}

// usual are options of streams whose bounds do not matter.
var usual = Options{ReadBytes: 10, UnreadMaxBytes: 15, UnsentMaxBytes: 100}

// Whatever ends a stream, its goroutines end, and its handler hears of it. Nothing comes after an end by Close.
func TestEnds(t *testing.T) {
	full := func([]byte) int { return 0 }
	for name, c := range map[string]struct {
		takes  func([]byte) int
		sent   string
		ready  func(w *world) bool // before the end
		end    func(w *world)
		reason error // nil: any
	}{
		"the client":            {end: func(w *world) { _ = w.client.Close() }, reason: io.EOF},
		"Close, while it reads": {end: func(w *world) { w.Close(net.ErrClosed) }, reason: net.ErrClosed},
		"Close, while the handler is full": {takes: full, sent: "twenty bytes, and more", ready: func(w *world) bool { return len(w.unread) > usual.UnreadMaxBytes },
			end: func(w *world) { w.Close(nil) }, reason: transport.ErrClosed},
		"the context":                            {end: func(w *world) { w.cancel() }},
		"the context, while the handler is full": {takes: full, sent: "twenty bytes, and more", ready: func(w *world) bool { return len(w.unread) > usual.UnreadMaxBytes }, end: func(w *world) { w.cancel() }},
		"Finish":                                 {end: func(w *world) { w.Finish() }, reason: transport.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual, asIs)
			w.takes = c.takes
			w.send(c.sent)
			if c.ready != nil {
				w.until(func() bool { return c.ready(w) })
			}
			c.end(w)
			w.until(func() bool { return w.closed })
			<-w.returned
			if c.reason != nil {
				assert.Equal(t, c.reason, w.reason)
			}
			assert.Empty(t, w.got)
			assert.ErrorIs(t, w.Write([]byte("x")), transport.ErrClosed)
		})
	}
}

// Bytes that were read before Close, and that the loop has not seen yet, do not reach the handler.
func TestNoBytesAfterTheEnd(t *testing.T) {
	w := newWorld(t, usual, asIs)
	w.takes = func(data []byte) int {
		w.Close(nil)
		return 1 // The rest is dropped, as are the bytes behind it.
	}
	w.send("some bytes and more of them")
	w.until(func() bool { return w.closed })
	assert.Len(t, w.got, 1)
	for range 2 {
		w.received([]byte("late"))
		<-w.taken // Nobody else waits for it any more.
		assert.Len(t, w.got, 1)
	}
}

// A handler that leaves too much stops its peer, until it takes what there is.
func TestAFullHandlerStopsItsPeer(t *testing.T) {
	w := newWorld(t, usual, asIs)
	w.takes = func([]byte) int { return 0 }
	text := string(make([]byte, 1000))
	w.send(text)
	w.until(func() bool { return w.most > usual.UnreadMaxBytes })
	for range 1000 {
		w.Iterate()
		runtime.Gosched()
	}
	assert.LessOrEqual(t, w.most, usual.UnreadMaxBytes+usual.ReadBytes)
	w.takes = nil
	w.Resume()
	w.until(func() bool { return len(w.got) == len(text) })
}

// stalled is a connection that writes nothing before it is closed.
type stalled struct {
	net.Conn
	begun, over chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	close(s.begun)
	<-s.over
	return 0, net.ErrClosed
}

func (s stalled) SetDeadline(time.Time) error {
	close(s.over)
	return s.Conn.SetDeadline(time.Unix(1, 0))
}

// What the writer is about to write counts as unsent.
func TestBytesUnderWayAreUnsent(t *testing.T) {
	begun := make(chan struct{})
	w := newWorld(t, usual, func(nc net.Conn) net.Conn { return stalled{nc, begun, make(chan struct{})} })
	require.NoError(t, w.Write(make([]byte, 60)))
	w.until(func() bool {
		select {
		case <-begun:
			return true
		default:
			return false
		}
	})
	assert.Equal(t, 60, w.Unsent())
	require.NoError(t, w.Write(make([]byte, 40)))
	assert.Equal(t, 100, w.Unsent())
	require.ErrorIs(t, w.Write([]byte("x")), transport.ErrUnsentLimit)
	w.until(func() bool { return w.closed })
	assert.Equal(t, transport.ErrUnsentLimit, w.reason)
}

// OnDrain comes once for an AwaitDrain, and not while there are bytes that were written since.
func TestDrains(t *testing.T) {
	w := newWorld(t, usual, asIs)
	w.AwaitDrain()
	w.AwaitDrain()
	w.until(func() bool { return w.drains > 0 })
	w.drained()
	assert.Equal(t, 1, w.drains)

	w.mu.Lock()
	w.awaited, w.out = true, []byte("written since")
	w.mu.Unlock()
	w.drained() // The writer has found nothing to write before that.
	assert.Equal(t, 1, w.drains)
	w.flush()
	w.until(func() bool { return w.drains == 2 })
	assert.Zero(t, w.Unsent())
}

// A layer is a connection above another one that has a message for the end of its own.
type layer struct{ net.Conn }

func (l layer) NetConn() net.Conn { return l.Conn }
func (l layer) CloseWrite() error {
	_, err := l.Write([]byte(" and the end"))
	return err
}

// After FinishWriting the peer reads the end, on all layers, and what it still sends arrives.
func TestFinishWriting(t *testing.T) {
	for want, wrap := range map[string]func(net.Conn) net.Conn{
		"farewell": asIs, "farewell and the end": func(nc net.Conn) net.Conn { return layer{nc} },
	} {
		w := newWorld(t, usual, wrap)
		require.NoError(t, w.Write([]byte("farewell")))
		w.FinishWriting()
		assert.ErrorIs(t, w.Write([]byte("x")), transport.ErrClosed)
		read := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(w.client)
			read <- string(text)
		}()
		w.until(func() bool { return len(read) > 0 })
		assert.Equal(t, want, <-read)
		w.send("still")
		w.until(func() bool { return string(w.got) == "still" })
		assert.False(t, w.closed)
		require.NoError(t, w.client.Close())
		w.until(func() bool { return w.closed })
		assert.Equal(t, io.EOF, w.reason)
	}
}
