package reactor

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// A guest handles an accepted connection. Loop only, except for the channels.
type guest struct {
	conn   transport.Accepted
	stay   bool
	onData func(g *guest, data []byte)
	onEOF  func(g *guest)
	keeps  func(data []byte) int // how many bytes OnData leaves; nil: none
	drains chan struct{}         // one value per OnDrain; nil: nobody counts
	closed chan error
}

func (g *guest) OnConnect(err error) {
	if err != nil {
		g.closed <- err
	}
}

func (g *guest) OnData(data []byte) int {
	if g.onData != nil {
		g.onData(g, data)
	}
	if g.keeps != nil {
		return len(data) - g.keeps(data)
	}
	return len(data)
}

func (g *guest) OnDrain() {
	if g.drains != nil {
		g.drains <- struct{}{}
	}
}

func (g *guest) OnEOF() bool {
	if g.onEOF != nil {
		g.onEOF(g)
	}
	return g.stay
}

func (g *guest) OnClose(reason error) { g.closed <- reason }

// visit connects to a listener and returns the client's end. The reactor takes the listener's
// connections.
func visit(t *testing.T, r *Reactor, network string, opts transport.AcceptOptions, g *guest) net.Conn {
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	defer l.Close()
	g.closed = make(chan error, 10)
	client, err := net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	nc, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, r.Enroll(nc, opts, func(c transport.Accepted) transport.AcceptedHandler {
		g.conn = c
		return g
	}))
	require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
	return client
}

func echo(g *guest, data []byte) { _ = g.conn.Write(data) }

func TestAcceptedConnectionsEcho(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			r := started(t)
			g := &guest{onData: echo}
			client := visit(t, r, network, transport.AcceptOptions{}, g)
			_, err := client.Write([]byte("hello"))
			require.NoError(t, err)
			answer := make([]byte, 5)
			_, err = io.ReadFull(client, answer)
			require.NoError(t, err)
			assert.Equal(t, "hello", string(answer))
			require.NoError(t, client.Close())
			assert.ErrorIs(t, <-g.closed, io.EOF)
		})
	}
}

// TestAnswersAfterEOF has a client send, stop sending, and read its answers. The answers are
// made after that, and are larger than what a socket takes.
func TestAnswersAfterEOF(t *testing.T) {
	r := started(t)
	answer := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	timer := make(chan *loop.Timer, 1)
	g := &guest{stay: true, onData: echo}
	g.onEOF = func(g *guest) {
		later := r.Loop().NewTimer(func() {
			assert.NoError(t, g.conn.Write(answer))
			g.conn.Finish()
			assert.ErrorIs(t, g.conn.Write(answer), transport.ErrClosed)
		})
		assert.NoError(t, later.Start(time.Millisecond, 0))
		timer <- later
	}
	client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
	_, err := client.Write([]byte("question"))
	require.NoError(t, err)
	require.NoError(t, client.(*net.TCPConn).CloseWrite())
	<-timer
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(append([]byte("question"), answer...), all), "%d bytes", len(all))
	assert.ErrorIs(t, <-g.closed, transport.ErrClosed)
}

// TestUnsentBytesSurviveEOF: the connection's buffer has more than the socket takes when the
// client stops sending.
func TestUnsentBytesSurviveEOF(t *testing.T) {
	r := started(t)
	answer := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // 32 MiB
	eof := make(chan struct{})
	g := &guest{stay: true, onData: func(g *guest, _ []byte) { assert.NoError(t, g.conn.Write(answer)) }}
	g.onEOF = func(g *guest) { close(eof); g.conn.Finish() }
	client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
	_, err := client.Write([]byte("?"))
	require.NoError(t, err)
	require.NoError(t, client.(*net.TCPConn).CloseWrite())
	<-eof
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(answer, all), "%d bytes", len(all))
}

func TestFinishSendsEverything(t *testing.T) {
	r := started(t)
	answer := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	g := &guest{onData: func(g *guest, _ []byte) { assert.NoError(t, g.conn.Write(answer)); g.conn.Finish() }}
	client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
	_, err := client.Write([]byte("?"))
	require.NoError(t, err)
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Len(t, all, len(answer))
	assert.ErrorIs(t, <-g.closed, transport.ErrClosed)
}

// TestResume: a handler leaves bytes, and takes them later although no more have come.
func TestResume(t *testing.T) {
	r := started(t)
	var seen []string
	hold := true
	g := &guest{stay: true}
	g.keeps = func(data []byte) int {
		seen = append(seen, string(data))
		if hold {
			return len(data) - 1
		}
		echo(g, data)
		g.conn.Finish()
		return 0
	}
	g.onEOF = func(g *guest) {
		g.conn.Resume() // twice is once
		g.conn.Resume()
		hold = false
		assert.Equal(t, []string{"abc"}, seen, "never inside Resume")
	}
	client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
	_, err := client.Write([]byte("abc"))
	require.NoError(t, err)
	require.NoError(t, client.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, "bc", string(all))
	assert.ErrorIs(t, <-g.closed, transport.ErrClosed)
	assert.Equal(t, []string{"abc", "bc"}, seen)
}

// TestDrain: a client reads late, and a handler asks to hear when nothing is unsent.
func TestDrain(t *testing.T) {
	r := started(t)
	answer := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	unsent := make(chan int, 1)
	g := &guest{drains: make(chan struct{}, 10)}
	g.onData = func(g *guest, data []byte) {
		g.conn.AwaitDrain()
		if data[0] == 'a' {
			assert.NoError(t, g.conn.Write(answer))
		}
		g.conn.AwaitDrain() // twice is once
		assert.Empty(t, g.drains, "never inside AwaitDrain")
		unsent <- g.conn.Unsent()
	}
	client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
	_, err := client.Write([]byte("a"))
	require.NoError(t, err)
	assert.Positive(t, <-unsent, "more than the socket takes")
	_, err = io.ReadFull(client, make([]byte, len(answer)))
	require.NoError(t, err)
	<-g.drains
	_, err = client.Write([]byte("b"))
	require.NoError(t, err)
	assert.Zero(t, <-unsent)
	<-g.drains
	require.NoError(t, client.Close())
	assert.Error(t, <-g.closed)
	assert.Empty(t, g.drains)
}

// TestAClosedPeerIsNoticed: a peer closes for good. Over TCP that looks as if it only stopped
// sending, until the first answer causes a reset. Nothing more is written then.
func TestAClosedPeerIsNoticed(t *testing.T) {
	for network, want := range map[string]string{"tcp": "connection reset by peer", "unix": "EOF"} {
		t.Run(network, func(t *testing.T) {
			r := started(t)
			g := &guest{stay: true, onEOF: func(g *guest) { echo(g, []byte("first answer")) }}
			client := visit(t, r, network, transport.AcceptOptions{}, g)
			require.NoError(t, client.Close())
			assert.ErrorContains(t, <-g.closed, want)
		})
	}
}

// TestAcceptThatPanics: the panic closes the connection, and Enroll returns.
func TestAcceptThatPanics(t *testing.T) {
	r := New(Config{OnPanic: func(any, []byte) {}})
	require.NoError(t, r.Start())
	defer end(r)
	ours, theirs := net.Pipe()
	assert.Error(t, r.Enroll(ours, transport.AcceptOptions{}, func(transport.Accepted) transport.AcceptedHandler { panic("no") }))
	_, err := theirs.Read(make([]byte, 1))
	assert.Error(t, err, "the connection is closed")
}

// TestBuffersOfAcceptedConnectionsAreShared has many connections write, one after another.
func TestBuffersOfAcceptedConnectionsAreShared(t *testing.T) {
	r := started(t)
	answer := make([]byte, 1000)
	for range 20 {
		g := &guest{onData: func(g *guest, _ []byte) { assert.NoError(t, g.conn.Write(answer)) }}
		client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
		_, err := client.Write([]byte("?"))
		require.NoError(t, err)
		_, err = io.ReadFull(client, make([]byte, len(answer)))
		require.NoError(t, err)
	}
	spare := make(chan int)
	require.True(t, r.Loop().Post(func() { spare <- len(r.spare.free) }))
	assert.Equal(t, 1, <-spare)
}

func TestSpareBuffersAreBounded(t *testing.T) {
	var s spareBuffers
	s.put(nil)
	s.put(make([]byte, 10, spareBytesMax+1))
	assert.Nil(t, s.take())
	for range 2 * spareBuffersMax {
		s.put(make([]byte, 10, 20))
	}
	assert.Len(t, s.free, spareBuffersMax)
	assert.Empty(t, s.take())
	assert.Len(t, s.free, spareBuffersMax-1)
}

func TestEndsOfAcceptedConnections(t *testing.T) {
	for name, test := range map[string]struct {
		g    guest
		opts transport.AcceptOptions
		do   func(t *testing.T, r *Reactor, g *guest, client *net.TCPConn)
		want string
	}{
		"the peer leaves, and the handler does not stay": {
			do:   func(t *testing.T, _ *Reactor, _ *guest, client *net.TCPConn) { assert.NoError(t, client.CloseWrite()) },
			want: "EOF",
		},
		"the peer resets": {
			g: guest{stay: true},
			do: func(t *testing.T, _ *Reactor, _ *guest, client *net.TCPConn) {
				assert.NoError(t, client.SetLinger(0))
				assert.NoError(t, client.Close())
			},
			want: "connection reset by peer",
		},
		"the peer resets after it has stopped sending": {
			g: guest{stay: true, onEOF: func(g *guest) { _ = g.conn.Write(make([]byte, 32<<20)) }},
			do: func(t *testing.T, _ *Reactor, _ *guest, client *net.TCPConn) {
				assert.NoError(t, client.CloseWrite())
				_, err := io.ReadFull(client, make([]byte, 10))
				assert.NoError(t, err)
				assert.NoError(t, client.SetLinger(0))
				assert.NoError(t, client.Close())
			},
			want: "connection reset by peer|broken pipe",
		},
		"the peer reads nothing": {
			g: guest{onData: func(g *guest, _ []byte) {
				_ = g.conn.Write(make([]byte, 32<<20))
				_ = g.conn.Write(make([]byte, 32<<20))
			}},
			opts: transport.AcceptOptions{UnsentMaxBytes: 40 << 20},
			do: func(t *testing.T, _ *Reactor, _ *guest, client *net.TCPConn) {
				_, err := client.Write([]byte("?"))
				assert.NoError(t, err)
			},
			want: transport.ErrUnsentLimit.Error(),
		},
		"the loop stops": {
			do:   func(_ *testing.T, r *Reactor, _ *guest, _ *net.TCPConn) { r.Stop() },
			want: loop.ErrStopped.Error(),
		},
		"the loop stops after the peer has": {
			g: guest{stay: true, onEOF: func(g *guest) { _ = g.conn.Write([]byte("last")) }},
			do: func(t *testing.T, r *Reactor, _ *guest, client *net.TCPConn) {
				assert.NoError(t, client.CloseWrite())
				_, err := io.ReadFull(client, make([]byte, 4))
				assert.NoError(t, err)
				r.Stop()
			},
			want: loop.ErrStopped.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := descriptors(t)
			r := New(Config{})
			require.NoError(t, r.Start())
			g := test.g
			client := visit(t, r, "tcp", test.opts, &g)
			test.do(t, r, &g, client.(*net.TCPConn))
			assert.Regexp(t, test.want, <-g.closed)
			end(r)
			_ = client.Close()
			assert.Equal(t, before, descriptors(t))
		})
	}
}

func TestEnrollAfterTheEnd(t *testing.T) {
	r := New(Config{})
	require.NoError(t, r.Start())
	end(r)
	ours, theirs := net.Pipe()
	assert.ErrorIs(t, r.Enroll(ours, transport.AcceptOptions{}, nil), loop.ErrStopped)
	_, err := theirs.Read(make([]byte, 1))
	assert.Error(t, err, "the connection is closed")
}

// A handler that leaves what it gets stops its peer. The connection reads on once the handler
// takes something. The handler hears of the end after the last byte.
func TestAHandlerThatLeavesTooMuchStopsItsPeer(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			const most, total = 100 << 10, 64 << 20
			r := started(t)
			var takes atomic.Bool
			var left, taken atomic.Int64
			sum := crc32.NewIEEE()
			g := &guest{keeps: func(data []byte) int {
				if !takes.Load() {
					left.Store(int64(len(data)))
					return len(data)
				}
				_, _ = sum.Write(data)
				taken.Add(int64(len(data)))
				return 0
			}}
			client := visit(t, r, network, transport.AcceptOptions{UnreadMaxBytes: most}, g)
			all := make([]byte, total)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(all)
			require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Second/2)))
			n, err := client.Write(all)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the kernel has the client wait")
			assert.Less(t, left.Load(), int64(most+2*readIntoBytes+1<<20))
			takes.Store(true)
			require.True(t, r.Loop().Post(func() { g.conn.Resume() }))
			require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Minute)))
			_, err = client.Write(all[n:])
			require.NoError(t, err)
			require.Eventually(t, func() bool { return taken.Load() == total }, time.Minute, time.Millisecond)
			require.True(t, r.Loop().Post(func() { _ = g.conn.Write([]byte("answer")) }))
			answer := make([]byte, 6)
			_, err = io.ReadFull(client, answer)
			require.NoError(t, err)
			require.NoError(t, client.Close())
			assert.ErrorIs(t, <-g.closed, io.EOF)
			assert.Equal(t, crc32.ChecksumIEEE(all), sum.Sum32())
		})
	}
}

// A client that has gone is noticed while nobody reads.
func TestAPausedPeerThatResetsIsNoticed(t *testing.T) {
	r := started(t)
	g := &guest{keeps: func(data []byte) int { return len(data) }}
	client := visit(t, r, "tcp", transport.AcceptOptions{UnreadMaxBytes: 1}, g)
	_, err := client.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, client.(*net.TCPConn).SetLinger(0))
	require.NoError(t, client.Close())
	assert.ErrorIs(t, <-g.closed, syscall.ECONNRESET)
}

// A connection that finishes writing reads on until its peer ends it.
func TestFinishWriting(t *testing.T) {
	r := started(t)
	var read atomic.Int64
	g := &guest{onData: func(g *guest, data []byte) {
		if read.Add(int64(len(data))) == 1 {
			_ = g.conn.Write([]byte("farewell"))
			g.conn.FinishWriting()
		}
	}}
	client := visit(t, r, "tcp", transport.AcceptOptions{}, g)
	_, err := client.Write([]byte("x"))
	require.NoError(t, err)
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, "farewell", string(all))
	_, err = client.Write(make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	assert.ErrorIs(t, <-g.closed, io.EOF)
	assert.EqualValues(t, 101, read.Load())
}

// A server's answer does not wait until all clients that have sent something are served. It
// leaves before that.
func TestAServerAnswersAmongManyClients(t *testing.T) {
	const clients = 200
	r := started(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	served, before := 0, make(chan int, 1)
	server := &guest{closed: make(chan error, 1), onData: func(*guest, []byte) { before <- served }}
	var toServer transport.Conn
	require.True(t, r.Loop().Post(func() {
		toServer = r.Dial(l.Addr().String(), transport.DialOptions{}, dialed{server})
		_ = toServer.Write([]byte("question"))
	}))
	serving, err := l.Accept()
	require.NoError(t, err)
	defer serving.Close()
	_, err = io.ReadFull(serving, make([]byte, len("question")))
	require.NoError(t, err)
	all := make([]net.Conn, clients)
	for i := range all {
		all[i] = visit(t, r, "tcp", transport.AcceptOptions{}, &guest{onData: func(*guest, []byte) { served++ }})
	}
	held, release := make(chan struct{}), make(chan struct{})
	require.True(t, r.Loop().Post(func() {
		close(held)
		<-release
	}))
	<-held
	for _, client := range all {
		_, err := client.Write([]byte("x"))
		require.NoError(t, err)
	}
	_, err = serving.Write([]byte("answer"))
	require.NoError(t, err)
	close(release)
	assert.LessOrEqual(t, <-before, 2*burstMost)
}

// dialed handles a connection that was dialed, in the same way as a guest.
type dialed struct{ *guest }
