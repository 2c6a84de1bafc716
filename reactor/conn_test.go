package reactor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// A probe is a handler that tells the test what it is told. All its functions run on the loop.
// A function that is nil does nothing.
type probe struct {
	conn      transport.Conn
	opts      transport.DialOptions
	onConnect func(error)
	onData    func([]byte) int // nil: consume all and send it to data
	onClose   func(error)

	connected chan error
	data      chan string
	closed    chan error
	calls     []string // loop only
}

// probeSecure is the Secure of new probes.
var probeSecure transport.Secure

func newProbe() *probe {
	return &probe{
		opts:      transport.DialOptions{Secure: probeSecure},
		connected: make(chan error, 10), data: make(chan string, 1000), closed: make(chan error, 10),
	}
}

func (p *probe) dial(r *Reactor, addr string) { p.conn = r.Dial(addr, p.opts, p) }

func (p *probe) OnConnect(err error) {
	p.calls = append(p.calls, "connect")
	p.connected <- err
	if p.onConnect != nil {
		p.onConnect(err)
	}
}

func (p *probe) OnData(data []byte) int {
	if p.onData != nil {
		return p.onData(data)
	}
	p.data <- string(data)
	return len(data)
}

func (p *probe) OnClose(reason error) {
	p.calls = append(p.calls, "close")
	p.closed <- reason
	if p.onClose != nil {
		p.onClose(reason)
	}
}

// connect dials addr and waits until the connection is open.
func (p *probe) connect(t testing.TB, r *Reactor, addr string) {
	t.Helper()
	do(t, r, func() { p.dial(r, addr) })
	require.NoError(t, <-p.connected)
}

// settle waits until everything that was caused so far on the loop has run.
func settle(t testing.TB, r *Reactor) {
	t.Helper()
	for range 3 {
		do(t, r, func() {})
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// refusing returns an address at which nobody listens.
func refusing(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	return ln.Addr().String()
}

func TestRefusedConnectFailsLaterAndOnce(t *testing.T) {
	r := started(t)
	p := newProbe()
	addr := refusing(t)
	do(t, r, func() {
		p.dial(r, addr)
		assert.Empty(t, p.calls, "not within Dial")
	})
	err := <-p.connected
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.ErrorContains(t, err, addr)
	settle(t, r)
	do(t, r, func() {
		assert.Equal(t, []string{"connect"}, p.calls, "nothing follows")
		assert.ErrorIs(t, p.conn.Write([]byte("x")), transport.ErrClosed)
		p.conn.Close(nil)
	})
	settle(t, r)
	do(t, r, func() { assert.Equal(t, []string{"connect"}, p.calls) })
}

func TestWritesBeforeARefusedConnectAreDropped(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.onConnect = func(error) { assert.Zero(t, p.conn.Unsent(), "nothing of them will be sent") }
	addr := refusing(t)
	do(t, r, func() {
		p.dial(r, addr)
		for range 3 {
			assert.NoError(t, p.conn.Write([]byte("abc")))
		}
		assert.Equal(t, 9, p.conn.Unsent())
	})
	assert.ErrorIs(t, <-p.connected, syscall.ECONNREFUSED)
}

func TestWritesBeforeTheConnectGoOutInOrder(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.onData = func(data []byte) int {
		if len(data) < 9 {
			return 0
		}
		p.data <- string(data)
		return len(data)
	}
	p.onConnect = func(error) { assert.NoError(t, p.conn.Write([]byte("ghi"))) }
	addr := echoServer(t)
	do(t, r, func() {
		p.dial(r, addr)
		assert.NoError(t, p.conn.Write([]byte("abc")))
		assert.NoError(t, p.conn.Write([]byte("def")))
	})
	assert.Equal(t, "abcdefghi", <-p.data)
}

func TestCloseWhileConnecting(t *testing.T) {
	why := errors.New("changed my mind")
	for name, addr := range map[string]string{"answering": echoServer(t), "unanswering": testworld.Unreachable(t)} {
		t.Run(name, func(t *testing.T) {
			r := started(t)
			p := newProbe()
			do(t, r, func() {
				mine := r.Loop().NewTimer(func() { t.Error("fired") })
				assert.NoError(t, mine.Start(time.Hour, 0))
				p.onConnect = func(error) { mine.Close(nil) }
				p.dial(r, addr)
				p.conn.Close(why)
				p.conn.Close(nil)
				assert.Empty(t, p.calls, "not within Close")
			})
			assert.Equal(t, why, <-p.connected)
			settle(t, r)
			do(t, r, func() { assert.Equal(t, []string{"connect"}, p.calls, "nothing follows a failed connect") })
		})
	}
}

func TestTimerClosesAConnectToAnUnansweringPeer(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.opts.ConnectTimeout = time.Hour
	addr := testworld.Unreachable(t)
	do(t, r, func() {
		p.dial(r, addr)
		assert.NoError(t, r.Loop().NewTimer(func() { p.conn.Close(nil) }).Start(ms(50), 0))
	})
	assert.ErrorIs(t, <-p.connected, transport.ErrClosed)
	end(r)
}

func TestConnectTimeout(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.opts.ConnectTimeout = ms(20)
	addr := testworld.Unreachable(t)
	do(t, r, func() { p.dial(r, addr) })
	err := <-p.connected
	assert.ErrorIs(t, err, transport.ErrConnectTimeout)
	assert.ErrorContains(t, err, addr)
}

func TestConnectNeverBlocksTheLoop(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.opts.ConnectTimeout = time.Hour
	addr := testworld.Unreachable(t)
	do(t, r, func() { p.dial(r, addr) })
	settle(t, r)
	end(r)
	assert.ErrorIs(t, <-p.connected, loop.ErrStopped)
}

func TestDialRefusals(t *testing.T) {
	t.Run("bad address", func(t *testing.T) {
		r := started(t)
		p := newProbe()
		do(t, r, func() { p.dial(r, "no port") })
		assert.ErrorContains(t, <-p.connected, "missing port")
	})
	t.Run("before start", func(t *testing.T) {
		r := New(Config{})
		p := newProbe()
		p.dial(r, "127.0.0.1:1")
		require.NoError(t, r.Start())
		assert.ErrorIs(t, <-p.connected, loop.ErrStopped)
		end(r)
	})
	t.Run("from a handler that the end closes", func(t *testing.T) {
		r := started(t)
		p := newProbe()
		addr := echoServer(t)
		redials := 0
		p.onClose = func(error) {
			p.connected = make(chan error, 1000)
			p.onConnect = func(err error) {
				assert.ErrorIs(t, err, loop.ErrStopped)
				if redials++; redials < 1000 { // nearly forever
					p.dial(r, addr)
				}
			}
			p.dial(r, addr)
		}
		p.connect(t, r, addr)
		end(r)
		assert.ErrorIs(t, <-p.closed, loop.ErrStopped)
		assert.Positive(t, redials)
	})
}

func TestWritesBeforeACloseArriveInOrder(t *testing.T) {
	got := make(chan string, 1)
	addr := server(t, func(c net.Conn) {
		all, _ := io.ReadAll(c)
		got <- string(all)
	})
	r := started(t)
	p := newProbe()
	p.connect(t, r, addr)
	var want strings.Builder
	do(t, r, func() {
		for i := range 32 {
			part := strings.Repeat(string(rune('A'+i)), i+1)
			want.WriteString(part)
			assert.NoError(t, p.conn.Write([]byte(part)))
		}
		p.conn.Close(nil)
		assert.ErrorIs(t, p.conn.Write([]byte("after")), transport.ErrClosed)
		assert.Equal(t, []string{"connect"}, p.calls, "not within Close")
	})
	assert.Equal(t, transport.ErrClosed, <-p.closed)
	assert.Equal(t, want.String(), <-got)
	settle(t, r)
	do(t, r, func() {
		p.conn.Close(nil)
		assert.Zero(t, p.conn.Unsent())
	})
	settle(t, r)
	do(t, r, func() { assert.Equal(t, []string{"connect", "close"}, p.calls) })
}

// mute returns the address of a server that accepts. It does not read until release is closed.
// It then reads up to the end, and sends the number of bytes to total.
func mute(t testing.TB) (addr string, release chan struct{}, total chan []byte) {
	release, total = make(chan struct{}), make(chan []byte, 1)
	addr = server(t, func(c net.Conn) {
		<-release
		all, _ := io.ReadAll(c)
		total <- all
	})
	return addr, release, total
}

func TestTenThousandWritesToAPeerThatNeverReads(t *testing.T) {
	addr, release, _ := mute(t)
	defer close(release)
	r := started(t)
	p := newProbe()
	p.opts.UnsentMaxBytes = 1 << 20
	p.connect(t, r, addr)
	part := make([]byte, 10<<10)
	accepted, refused, limit := 0, 0, 0
	var write func(left int)
	done := make(chan struct{})
	write = func(left int) { // fifty an iteration, so that some leave
		for range min(left, 50) {
			switch err := p.conn.Write(part); {
			case err == nil:
				accepted++
			case errors.Is(err, transport.ErrUnsentLimit):
				limit++
			default:
				assert.ErrorIs(t, err, transport.ErrClosed)
				refused++
			}
			assert.LessOrEqual(t, p.conn.Unsent(), p.opts.UnsentMaxBytes)
		}
		if left -= 50; left > 0 {
			r.Loop().Post(func() { write(left) })
		} else {
			close(done)
		}
	}
	do(t, r, func() { write(10_000) })
	<-done
	assert.Equal(t, 10_000, accepted+limit+refused)
	assert.Equal(t, 1, limit)
	assert.Positive(t, accepted)
	assert.Positive(t, refused)
	assert.Equal(t, transport.ErrUnsentLimit, <-p.closed)
}

func TestWriteThatCannotFinish(t *testing.T) {
	addr, release, total := mute(t)
	r := started(t)
	p := newProbe()
	p.connect(t, r, addr)
	big := bytes.Repeat([]byte("x"), 10<<20)
	do(t, r, func() { assert.NoError(t, p.conn.Write(big)) })
	settle(t, r)
	do(t, r, func() {
		before := p.conn.Unsent()
		assert.Positive(t, before)
		assert.Less(t, before, len(big), "the kernel has taken some")
		assert.NoError(t, p.conn.Write([]byte("y")))
		assert.Equal(t, before+1, p.conn.Unsent())
	})
	close(release)
	// It leaves as the peer reads, without another write.
	gone := make(chan struct{})
	do(t, r, func() {
		var poll *loop.Timer
		poll = r.Loop().NewTimer(func() {
			if p.conn.Unsent() == 0 {
				poll.Stop()
				close(gone)
			}
		})
		assert.NoError(t, poll.Start(0, ms(1)))
	})
	<-gone
	do(t, r, func() { p.conn.Close(nil) })
	all := <-total
	assert.Len(t, all, len(big)+1)
	assert.Equal(t, byte('y'), all[len(all)-1])
}

func TestPeerResets(t *testing.T) {
	addr := server(t, func(c net.Conn) {
		_, _ = c.Write([]byte("last words"))
		buf := make([]byte, 1)
		_, _ = c.Read(buf) // the client has read them
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	r := started(t)
	p := newProbe()
	p.connect(t, r, addr)
	assert.Equal(t, "last words", <-p.data)
	do(t, r, func() { _ = p.conn.Write([]byte("!")) })
	assert.ErrorIs(t, <-p.closed, syscall.ECONNRESET)
	settle(t, r)
	do(t, r, func() {
		assert.ErrorIs(t, p.conn.Write([]byte("x")), transport.ErrClosed)
		assert.Equal(t, []string{"connect", "close"}, p.calls)
	})
}

// A peer that sends and closes its side gets its answer, whatever else the reactor has open.
// The iteration that has the data comes before the end, whether it is run at once or submitted.
func TestAnswerToDataBeforeTheEndIsSent(t *testing.T) {
	for name, answer := range map[string]func(l *loop.Loop, write func()){
		"in OnData": func(_ *loop.Loop, write func()) { write() },
		"deferred":  func(l *loop.Loop, write func()) { l.Defer(write) },
		"posted":    func(l *loop.Loop, write func()) { l.Post(write) },
	} {
		for _, connections := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%s, %d connections", name, connections), func(t *testing.T) {
				speak, spoken, got := make(chan struct{}), make(chan struct{}), make(chan string, 1)
				addr := server(t, func(c net.Conn) {
					<-speak
					_, _ = c.Write([]byte("question"))
					_ = c.(*net.TCPConn).CloseWrite()
					close(spoken)
					all, _ := io.ReadAll(c)
					got <- string(all)
				})
				r := started(t)
				for range connections - 1 {
					newProbe().connect(t, r, echoServer(t))
				}
				p := newProbe()
				p.onData = func(data []byte) int {
					answer(r.Loop(), func() {
						assert.NoError(t, p.conn.Write([]byte("answer to "+string(data))))
						assert.Equal(t, []string{"connect"}, p.calls)
					})
					return len(data)
				}
				p.connect(t, r, addr)
				do(t, r, func() { // both have come before the reactor looks
					close(speak)
					<-spoken
				})
				assert.ErrorIs(t, <-p.closed, io.EOF)
				assert.Equal(t, "answer to question", <-got)
				settle(t, r)
				do(t, r, func() { assert.Equal(t, []string{"connect", "close"}, p.calls) })
			})
		}
	}
}

// The iteration before the end may close the connection itself, or end the loop.
func TestEndAfterDataThatMakesTheHandlerStop(t *testing.T) {
	for name, stop := range map[string]func(r *Reactor, p *probe){
		"the connection": func(_ *Reactor, p *probe) { p.conn.Close(nil) },
		"the loop":       func(r *Reactor, _ *probe) { r.Loop().Stop() },
	} {
		for _, connections := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d connections", name, connections), func(t *testing.T) {
				speak, spoken := make(chan struct{}), make(chan struct{})
				addr := server(t, func(c net.Conn) {
					<-speak
					_, _ = c.Write([]byte("question"))
					_ = c.(*net.TCPConn).CloseWrite()
					close(spoken)
					_, _ = io.ReadAll(c)
				})
				r := started(t)
				for range connections - 1 {
					newProbe().connect(t, r, echoServer(t))
				}
				p := newProbe()
				p.onData = func(data []byte) int { stop(r, p); return len(data) }
				p.connect(t, r, addr)
				do(t, r, func() {
					close(speak)
					<-spoken
				})
				assert.Error(t, <-p.closed)
				r.Loop().Stop()
				<-r.Loop().Done()
				assert.Equal(t, []string{"connect", "close"}, p.calls)
			})
		}
	}
}

// The peer's FIN closes the connection: gnet does not know half-closed connections.
func TestEndOfStreamIsToldOnceAfterTheData(t *testing.T) {
	addr := server(t, func(c net.Conn) { _, _ = c.Write([]byte("bye")) })
	r := started(t)
	p := newProbe()
	p.connect(t, r, addr)
	assert.Equal(t, "bye", <-p.data)
	assert.ErrorIs(t, <-p.closed, io.EOF)
	settle(t, r)
	do(t, r, func() { assert.Equal(t, []string{"connect", "close"}, p.calls) })
}

// A short write leaves at the end of the iteration, a long one at once. In either case the
// handler hears of a broken connection later.
func TestWriteOnADeadDescriptorIsReportedLater(t *testing.T) {
	for name, bytes := range map[string]int{"little": 1, "much": flushBytes} {
		t.Run(name, func(t *testing.T) {
			addr, release, _ := mute(t)
			defer close(release)
			r := started(t)
			p := newProbe()
			p.connect(t, r, addr)
			do(t, r, func() {
				assert.NoError(t, unix.Shutdown(p.conn.(*conn).gc.Fd(), unix.SHUT_WR))
				r.Loop().Defer(func() { p.calls = append(p.calls, "deferred") })
				assert.NoError(t, p.conn.Write(make([]byte, bytes)))
				assert.Equal(t, []string{"connect"}, p.calls, "neither this nor anything else within Write")
				if bytes == flushBytes {
					assert.ErrorIs(t, p.conn.Write([]byte("x")), transport.ErrClosed)
				}
			})
			assert.ErrorIs(t, <-p.closed, syscall.EPIPE)
		})
	}
}

func TestUnreadDataDoesNotMakeTheLoopSpin(t *testing.T) {
	const size = 100_000
	addr, hold := holding(t, make([]byte, size))
	defer close(hold)
	r := started(t)
	p := newProbe()
	arrived := make(chan struct{})
	p.onData = func(data []byte) int {
		if len(data) == size {
			close(arrived)
		}
		return 0
	}
	p.connect(t, r, addr)
	<-arrived
	before := r.Loop().Metrics().Iterations
	waited := make(chan struct{})
	do(t, r, func() {
		assert.NoError(t, r.Loop().NewTimer(func() { close(waited) }).Start(ms(200), 0))
	})
	<-waited
	assert.LessOrEqual(t, r.Loop().Metrics().Iterations-before, uint64(20))
}

// holding returns the address of a server that sends data and then holds the connection until
// hold is closed.
func holding(t testing.TB, data []byte) (addr string, hold chan struct{}) {
	hold = make(chan struct{})
	addr = server(t, func(c net.Conn) {
		_, _ = c.Write(data)
		<-hold
	})
	return addr, hold
}

func TestUnreadLimit(t *testing.T) {
	addr, hold := holding(t, make([]byte, 1<<20))
	defer close(hold)
	r := started(t)
	p := newProbe()
	p.opts.UnreadMaxBytes = 100_000
	most := 0
	p.onData = func(data []byte) int { most = max(most, len(data)); return 0 }
	p.connect(t, r, addr)
	assert.Equal(t, transport.ErrUnreadLimit, <-p.closed)
	do(t, r, func() { assert.LessOrEqual(t, most, 100_000+64<<10, "the limit, and one read") })
}

func TestDataIsHandedOverUncopiedAndLeftoversAgain(t *testing.T) {
	steps := make(chan string)
	addr := server(t, func(c net.Conn) {
		for s := range steps {
			_, _ = c.Write([]byte(s))
		}
	})
	defer close(steps)
	r := started(t)
	p := newProbe()
	var consume int
	var at []*byte
	p.onData = func(data []byte) int {
		at = append(at, unsafe.SliceData(data))
		p.data <- string(data)
		return min(consume, len(data))
	}
	p.connect(t, r, addr)
	for _, step := range []struct {
		send, want string
		consume    int
	}{
		{"one", "one", 3},
		{"two", "two", 3},      // all of it: the next comes in gnet's buffer again
		{"three", "three", 2},  // "ree" is kept
		{"four", "reefour", 0}, // and all of this
		{"five", "reefourfive", 7},
		{"six", "fivesix", 7},
		{"seven", "seven", 5},
	} {
		do(t, r, func() { consume = step.consume })
		steps <- step.send
		assert.Equal(t, step.want, <-p.data)
	}
	do(t, r, func() {
		if !assert.Len(t, at, 7) {
			return
		}
		for _, i := range []int{1, 2, 6} {
			assert.Same(t, at[0], at[i], "step %d is uncopied", i)
		}
		assert.NotSame(t, at[0], at[3])
	})
}

func TestWritesOfAnIterationLeaveTogetherAtItsEnd(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.connect(t, r, echoServer(t))
	do(t, r, func() {
		for range 10 {
			assert.NoError(t, p.conn.Write([]byte("0123456789")))
		}
		assert.NoError(t, p.conn.Write(nil))
		r.Loop().Defer(func() {
			assert.Equal(t, 100, p.conn.Unsent(), "not before deferred work has written, too")
			assert.NoError(t, p.conn.Write([]byte("!")))
		})
	})
	settle(t, r)
	do(t, r, func() { assert.Zero(t, p.conn.Unsent()) })
	got := ""
	for len(got) < 101 {
		got += <-p.data
	}
	assert.Equal(t, strings.Repeat("0123456789", 10)+"!", got)
}

// A connection with much to write writes it as it comes.
func TestMuchLeavesBeforeTheIterationEnds(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.connect(t, r, echoServer(t))
	var want strings.Builder
	write := func(n int) {
		part := strings.Repeat(string(rune('a'+want.Len()%26)), n)
		want.WriteString(part)
		assert.NoError(t, p.conn.Write([]byte(part)))
	}
	do(t, r, func() {
		write(flushBytes - 1)
		assert.Equal(t, flushBytes-1, p.conn.Unsent(), "little waits")
		write(1)
		assert.Zero(t, p.conn.Unsent(), "much leaves at once")
		for range 3 {
			write(flushBytes)
			assert.Zero(t, p.conn.Unsent())
			write(7)
		}
		assert.Equal(t, 7, p.conn.Unsent())
		assert.Len(t, r.dirty, 1, "a connection is listed once, however often it writes")
	})
	settle(t, r)
	do(t, r, func() {
		assert.Zero(t, p.conn.Unsent())
		assert.Empty(t, r.dirty)
		write(1)
		assert.Len(t, r.dirty, 1)
	})
	got := ""
	for len(got) < want.Len() {
		got += <-p.data
	}
	assert.Equal(t, want.String(), got, "in order")
}

// Long writes before the connect wait for it, and no byte is lost.
func TestMuchBeforeTheConnect(t *testing.T) {
	r := started(t)
	p := newProbe()
	addr := echoServer(t)
	part := strings.Repeat("x", flushBytes)
	do(t, r, func() {
		p.dial(r, addr)
		for range 3 {
			assert.NoError(t, p.conn.Write([]byte(part)))
		}
		assert.Equal(t, 3*flushBytes, p.conn.Unsent())
		assert.Empty(t, r.dirty)
	})
	assert.NoError(t, <-p.connected)
	for got := 0; got < 3*flushBytes; {
		got += len(<-p.data)
	}
}

func TestDirtyListShrinksAfterABurst(t *testing.T) {
	r := New(Config{})
	write := func(n int) {
		for range n {
			c := &conn{reactor: r, state: open, unsentMax: 10}
			require.NoError(t, c.Write([]byte("x")))
		}
	}
	write(keepDirty / 2)
	(*host)(r).Flush()
	assert.Empty(t, r.dirty)
	assert.NotZero(t, cap(r.dirty), "kept for the next iteration")
	write(keepDirty + 1)
	(*host)(r).Flush()
	assert.Zero(t, cap(r.dirty))
}

func TestBuffersShrinkAfterABurst(t *testing.T) {
	for _, tc := range []struct {
		name            string
		len, cap, done  int
		wantLen, capMax int
		copied          bool
	}{
		{"nothing consumed", 10, 2 * keepCap, 0, 10, 2 * keepCap, false},
		{"all of little", 10, 100, 10, 0, 100, false},
		{"some of little", 10, 100, 4, 6, 100, false},
		{"all of much", 2 * keepCap, 2 * keepCap, 2 * keepCap, 0, 0, true},
		{"most of much", 2 * keepCap, 2 * keepCap, 2*keepCap - 10, 10, 100, true},
		{"little of much", 2 * keepCap, 2 * keepCap, 10, 2*keepCap - 10, 2 * keepCap, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			buf := make([]byte, tc.len, tc.cap)
			for i := range buf {
				buf[i] = byte(i % 251)
			}
			want := bytes.Clone(buf[tc.done:])
			kept := keep(buf, tc.done)
			assert.True(t, bytes.Equal(want, kept))
			assert.Len(t, kept, tc.wantLen)
			assert.LessOrEqual(t, cap(kept), tc.capMax)
			assert.Equal(t, tc.copied, unsafe.SliceData(kept) != unsafe.SliceData(buf))
		})
	}
}

// The events of a batch share an iteration if there are several connections. A single
// connection need not wait for a batch, and its iterations allocate nothing.
func TestIterationOfTheOnlyConnectionAllocatesNothing(t *testing.T) {
	r := started(t)
	p := newProbe()
	left, done := 0, make(chan struct{}, 1)
	ping := []byte("ping")
	p.onData = func(data []byte) int {
		if left--; left == 0 {
			done <- struct{}{}
		} else {
			_ = p.conn.Write(ping)
		}
		return len(data)
	}
	p.connect(t, r, echoServer(t))
	const trips = 500
	begin := func() { left = trips; _ = p.conn.Write(ping) }
	run := func() { r.Loop().Post(begin); <-done }
	run()
	assert.Less(t, testing.AllocsPerRun(1, run), float64(trips)/2, "submitting costs two")
}

func TestEventsOfSeveralConnectionsShareAnIteration(t *testing.T) {
	r := started(t)
	var iterations []uint64
	probes := make([]*probe, 2)
	for i := range probes {
		probes[i] = newProbe()
		probes[i].onData = func(data []byte) int {
			iterations = append(iterations, r.Loop().Iteration())
			probes[i].data <- string(data)
			return len(data)
		}
	}
	speak, spoken := make(chan struct{}), make(chan struct{})
	addr := server(t, func(c net.Conn) {
		<-speak
		_, _ = c.Write([]byte("x"))
		spoken <- struct{}{}
		_, _ = io.ReadAll(c)
	})
	for _, p := range probes {
		p.connect(t, r, addr)
	}
	do(t, r, func() {
		close(speak)
		<-spoken
		<-spoken
	})
	for _, p := range probes {
		<-p.data
	}
	do(t, r, func() {
		if assert.Len(t, iterations, 2) {
			assert.Equal(t, iterations[0], iterations[1])
		}
	})
}

// A handle whose connection has closed writes to nobody, though its descriptor has a new owner.
func TestStaleHandleCannotReachTheNextOwnerOfItsDescriptor(t *testing.T) {
	r := started(t)
	p := newProbe()
	p.connect(t, r, echoServer(t))
	var fd int
	do(t, r, func() {
		fd = p.conn.(*conn).gc.Fd()
		assert.NoError(t, p.conn.Write([]byte("to be dropped with the connection")))
		assert.NoError(t, unix.Shutdown(fd, unix.SHUT_WR)) // the flush fails, and gnet closes within it
	})
	<-p.closed

	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	owner, err := unix.FcntlInt(uintptr(ends[0]), unix.F_DUPFD_CLOEXEC, fd) // fd, or the next free one
	require.NoError(t, err)
	reader := ends[1]
	if fd == ends[1] {
		reader = ends[0]
	} else if fd != ends[0] {
		require.Equal(t, fd, owner)
	}
	defer func() {
		for _, fd := range []int{ends[0], ends[1], owner} {
			_ = unix.Close(fd)
		}
	}()
	require.NoError(t, unix.SetNonblock(reader, true))
	do(t, r, func() {
		assert.ErrorIs(t, p.conn.Write([]byte("stale")), transport.ErrClosed)
		assert.Zero(t, p.conn.Unsent())
		p.conn.Close(nil)
	})
	settle(t, r)
	_, err = unix.Read(reader, make([]byte, 100))
	assert.ErrorIs(t, err, unix.EAGAIN, "nothing has arrived, and it is still open")
}

func TestNoCallbackOfAConnectionFromWithinACall(t *testing.T) {
	r := started(t)
	addr := echoServer(t)
	p := newProbe()
	p.opts.UnsentMaxBytes = 10
	do(t, r, func() {
		p.dial(r, addr)
		assert.Empty(t, p.calls)
	})
	require.NoError(t, <-p.connected)
	do(t, r, func() {
		assert.ErrorIs(t, p.conn.Write(make([]byte, 11)), transport.ErrUnsentLimit)
		p.conn.Close(nil)
		assert.Equal(t, []string{"connect"}, p.calls)
	})
	assert.Equal(t, transport.ErrUnsentLimit, <-p.closed, "the first reason counts")
}

func TestCloseFromOnData(t *testing.T) {
	addr, hold := holding(t, []byte("hello"))
	defer close(hold)
	r := started(t)
	p := newProbe()
	why := errors.New("protocol error")
	calls := 0
	p.onData = func([]byte) int {
		calls++
		p.conn.Close(why)
		assert.NotContains(t, p.calls, "close")
		return 0
	}
	p.connect(t, r, addr)
	assert.Equal(t, why, <-p.closed)
	do(t, r, func() { assert.Equal(t, 1, calls) })
}

func TestPanicInAHandlerClosesItsConnectionOnly(t *testing.T) {
	addr, hold := holding(t, []byte("hello"))
	defer close(hold)
	for name, arm := range map[string]func(*probe){
		"OnConnect":            func(p *probe) { p.onConnect = func(error) { panic("boom") } },
		"OnData":               func(p *probe) { p.onData = func([]byte) int { panic("boom") } },
		"OnData, bad count":    func(p *probe) { p.onData = func(d []byte) int { return len(d) + 1 } },
		"OnData, bad count -1": func(p *probe) { p.onData = func(d []byte) int { return -1 } },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			panics := 0
			r := New(Config{OnPanic: func(any, []byte) { mu.Lock(); panics++; mu.Unlock() }})
			require.NoError(t, r.Start())
			defer end(r)
			bystander, p := newProbe(), newProbe()
			bystander.connect(t, r, echoServer(t))
			arm(p)
			p.onClose = func(error) { panic("again") }
			do(t, r, func() { p.dial(r, addr) })
			assert.NoError(t, <-p.connected)
			assert.ErrorContains(t, <-p.closed, "panicked")
			do(t, r, func() { _ = bystander.conn.Write([]byte("still here")) })
			assert.Equal(t, "still here", <-bystander.data)
			end(r)
			assert.Equal(t, 2, panics)
			assert.EqualValues(t, 2, r.Loop().Metrics().Panics)
		})
	}
}

func TestStopClosesConnections(t *testing.T) {
	addr := echoServer(t)
	before := descriptors(t)
	r := New(Config{})
	require.NoError(t, r.Start())
	probes := make([]*probe, 20)
	for i := range probes {
		probes[i] = newProbe()
		probes[i].connect(t, r, addr)
	}
	connecting := newProbe()
	do(t, r, func() { connecting.dial(r, addr); r.Stop() })
	<-r.Loop().Done()
	for _, p := range probes {
		assert.Equal(t, loop.ErrStopped, <-p.closed)
	}
	err := <-connecting.connected
	if err == nil { // It was quicker than the end of the iteration.
		err = <-connecting.closed
	}
	assert.Equal(t, loop.ErrStopped, err)
	assert.Eventually(t, func() bool { return descriptors(t) <= before }, 10*time.Second, ms(1),
		"the server closes its ends when it sees ours closed")
}

// Dials that are given up at any stage leave neither descriptors nor goroutines.
func TestAbandonedDialsLeaveNothing(t *testing.T) {
	addr := echoServer(t)
	before := descriptors(t)
	r := New(Config{})
	require.NoError(t, r.Start())
	for i := range 200 {
		p := newProbe()
		do(t, r, func() {
			p.dial(r, addr)
			switch i % 3 {
			case 0:
				p.conn.Close(nil)
			case 1:
				r.Loop().Post(func() { p.conn.Close(nil) })
			case 2:
				_ = r.Loop().NewTimer(func() { p.conn.Close(nil) }).Start(time.Duration(i)*time.Microsecond, 0)
			}
		})
		<-p.connected
	}
	end(r)
	assert.Eventually(t, func() bool { return descriptors(t) <= before }, 10*time.Second, ms(1))
}

// lateDial delays the next dial of r. It connects to addr when release is closed, even if
// nobody waits for it any more.
func lateDial(t testing.TB, r *Reactor) (release chan struct{}) {
	release = make(chan struct{})
	do(t, r, func() {
		dial := r.connectTo
		r.connectTo = func(_ context.Context, network, addr string) (net.Conn, error) {
			<-release
			return dial(context.Background(), network, addr)
		}
	})
	return release
}

// A connection that opens after it was given up is closed, and its handler hears nothing.
func TestConnectionThatOpensTooLateIsClosed(t *testing.T) {
	ended := make(chan struct{})
	addr := server(t, func(c net.Conn) {
		_, _ = io.ReadAll(c)
		close(ended)
	})
	r := started(t)
	release := lateDial(t, r)
	p := newProbe()
	do(t, r, func() { p.dial(r, addr); p.conn.Close(nil) })
	assert.ErrorIs(t, <-p.connected, transport.ErrClosed)
	close(release)
	select {
	case <-ended:
	case err := <-p.connected:
		assert.Fail(t, "told twice", "%v", err)
	}
	settle(t, r)
	do(t, r, func() { assert.Equal(t, []string{"connect"}, p.calls) })
}

// The loop does not end before each connect has reported, because a late one would not find the
// poller any more.
func TestLoopWaitsForConnectsUnderWay(t *testing.T) {
	addr := server(t, func(c net.Conn) { _, _ = io.ReadAll(c) })
	r := started(t)
	release := lateDial(t, r)
	defer func() { <-r.Loop().Done() }()
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	p := newProbe()
	do(t, r, func() { p.dial(r, addr); r.Loop().Stop() })
	assert.ErrorIs(t, <-p.connected, loop.ErrStopped)
	for range 3 { // rounds of the poller
		round := make(chan struct{})
		require.NoError(t, r.poller.Execute(t.Context(), runnable(func() error { close(round); return nil })))
		select {
		case <-round:
		case <-r.Loop().Done():
			require.Fail(t, "the loop has ended")
		}
	}
	free()
	<-r.Loop().Done()
	assert.Equal(t, []string{"connect"}, p.calls)
}

// TestABusyLoopFailsNoConnect: a callback takes longer than ConnectTimeout. A connection that
// is made meanwhile counts.
func TestABusyLoopFailsNoConnect(t *testing.T) {
	r := started(t)
	made := make(chan struct{})
	connect := r.connectTo
	r.connectTo = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := connect(ctx, network, addr)
		close(made)
		return nc, err
	}
	p := newProbe()
	p.opts.ConnectTimeout = ms(20)
	addr := echoServer(t)
	do(t, r, func() {
		p.dial(r, addr)
		<-made
		for since := time.Now(); time.Since(since) < 3*p.opts.ConnectTimeout; {
			runtime.Gosched() // the goroutine that dials hands the connection to the poller
		}
	})
	require.NoError(t, <-p.connected)
}
