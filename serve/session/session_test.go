package session

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// A world is an engine with a server of lines. The plan "three" has three rows, and "many" has
// many.
type world struct {
	*Server
	engine *rankd.Engine
	caller *access.Caller
}

// newWorld starts a world, which ends with the test.
func newWorld(t *testing.T, o Options) *world { return newWorldOf(t, o, serve.DefaultMaxUnsentBytes) }

// newWorldOf starts a world whose clients together may leave so many bytes of answers.
func newWorldOf(t *testing.T, o Options, unsent int) *world {
	t.Helper()
	caller, err := access.NewCaller(access.Rules{Name: "anyone", Plans: []string{"three", "many"}})
	require.NoError(t, err)
	logger := slog.New(slog.DiscardHandler)
	engine, err := rankd.Open(rankd.Options{
		Redis: "127.0.0.1:1" /* not used */, Logger: logger, Plans: fstest.MapFS{
			"three.plan.json": servetest.Artifact("three", `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}`),
			"many.plan.json":  servetest.Artifact("many", `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 20000}}`),
		},
	})
	require.NoError(t, err)
	service, err := serve.New(engine, serve.Options{Logger: logger, MaxUnsentBytes: unsent})
	require.NoError(t, err)
	w := &world{engine: engine, caller: caller}
	w.Server, err = New(service, engine.Intake().Reactor(), Protocol{
		Front: serve.RESP, NewCodecs: func() func(*Session) Codec {
			return func(s *Session) Codec { return &lines{Session: s, caller: caller} }
		},
	}, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, w.Close())
		assert.NoError(t, engine.Close())
		assert.Zero(t, w.Connections())
	})
	return w
}

// lines is a protocol in which each line is a request. The answer to "=text" is text, and "?"
// waits forever. Any other line is the name of a plan.
type lines struct {
	*Session
	caller *access.Caller
}

// Begin implements Codec.
func (l *lines) Begin(data []byte) (consumed int) {
	line, _, whole := bytes.Cut(data, []byte("\n"))
	switch {
	case !whole:
		return 0
	case line[0] == '=':
		l.Reply(append(bytes.Clone(line[1:]), '\n'))
	case line[0] == '?':
		l.Request()
	default:
		q := l.Request()
		q.Caller, q.Plan, q.User = l.caller, line, []byte("1")
		l.Ask()
	}
	return len(line) + 1
}

// Proceed implements Codec.
func (l *lines) Proceed() { panic("nothing is pending") }

// Stop implements Codec.
func (l *lines) Stop(Stop) {}

// Fail implements Codec.
func (l *lines) Fail(refused *serve.Reply) {
	reply, _ := l.Encode(nil, refused, nil, true)
	l.EndWith(reply)
}

// Encode implements Codec.
func (l *lines) Encode(buf []byte, r *serve.Reply, _ []byte, _ bool) (reply, memory []byte) {
	buf = append(r.AppendBody(buf[:0]), '\n')
	return buf, buf
}

// onLoop runs fn on the loop and waits for it.
func (w *world) onLoop(fn func()) {
	done := make(chan struct{})
	if !w.Loop().Post(func() { defer close(done); fn() }) {
		panic("the loop has stopped")
	}
	<-done
}

// A wire is a connection without a socket. Loop only.
type wire struct {
	session *Session
	out     bytes.Buffer
	unsent  int // as the session is told
	closed  error
	closes  int
}

func (c *wire) Write(p []byte) error {
	c.out.Write(p)
	return nil
}

func (c *wire) Unsent() int        { return c.unsent }
func (c *wire) Resume()            {}
func (c *wire) AwaitDrain()        {}
func (c *wire) FinishWriting()     { c.Finish() }
func (c *wire) Finish()            { c.closed = transport.ErrClosed }
func (c *wire) Close(reason error) { c.closed, c.closes = reason, c.closes+1 }

// wire opens a session without a socket.
func (w *world) wire() *wire {
	c := new(wire)
	w.onLoop(func() {
		c.session = w.Enter(c, "nowhere")
		c.session.OnConnect(nil)
	})
	return c
}

// hangUp ends a session.
func (w *world) hangUp(c *wire) { w.onLoop(func() { c.session.OnClose(io.EOF) }) }

// rest waits until the session has answered everything.
func (w *world) rest(t *testing.T, c *wire) {
	require.Eventually(t, func() (over bool) {
		w.onLoop(func() { over = c.session.State().Owed == 0 })
		return over
	}, time.Minute, time.Millisecond)
}

// TestEachRequestHasItsTime receives half a request, then its other half with half of the next
// request, and then more of that.
func TestEachRequestHasItsTime(t *testing.T) {
	var s times
	s.received(10, false, true)
	s.received(15, false, true)
	assert.EqualValues(t, 10, s.incomplete)
	s.received(20, true, true)
	assert.EqualValues(t, 20, s.incomplete, "the next request begins")
	s.received(30, false, true)
	assert.EqualValues(t, 20, s.incomplete)
	s.received(40, true, false)
	assert.Zero(t, s.incomplete)
}

// TestAConnectionThatCannotBeTakenDoesNotCount: a connection comes that has ended, and one
// whose reactor has ended.
func TestAConnectionThatCannotBeTakenDoesNotCount(t *testing.T) {
	w := newWorld(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	connect := func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		return nc
	}
	ended := connect()
	require.NoError(t, ended.Close())
	w.admit(ended)
	require.Eventually(t, func() bool { return w.Connections() == 0 }, time.Minute, time.Millisecond, "the connection is gone")
	require.NoError(t, w.engine.Close())
	w.admit(connect())
	assert.Zero(t, w.Connections())
}

// TestAFreeSlotKeepsNoAnswer has long answers and short ones leave their slots.
func TestAFreeSlotKeepsNoAnswer(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.wire()
	w.onLoop(func() { c.session.OnData([]byte("many\nthree\nnothing\nmany\n")) })
	w.rest(t, c)
	w.hangUp(c)
	w.onLoop(func() {
		require.Equal(t, 4, w.lanes[0].free.n)
		for p := w.lanes[0].free.first; p != nil; p = p.next {
			assert.Zero(t, p.query.Reply)
			assert.Empty(t, p.text)
		}
	})
}

// TestAWaitingClientIsNotIdle has one client wait for a reply for longer than another one may
// be idle.
func TestAWaitingClientIsNotIdle(t *testing.T) {
	w := newWorld(t, Options{IdleTimeout: time.Minute, WriteTimeout: time.Hour})
	idle, waiting, behind, reading := w.wire(), w.wire(), w.wire(), w.wire()
	w.onLoop(func() {
		waiting.session.OnData([]byte("?\n"))
		behind.session.backlog = true
		reading.unsent = 1
		later := idle.session.now().Add(time.Minute + 1)
		for _, c := range []*wire{idle, waiting, behind, reading} {
			c.session.CheckTimes(later)
		}
		assert.Equal(t, ErrCutOff, idle.closed)
		assert.NoError(t, waiting.closed)
		assert.NoError(t, behind.closed)
		assert.NoError(t, reading.closed)
		behind.session.backlog = false
	})
	for _, c := range []*wire{idle, waiting, behind, reading} {
		w.hangUp(c)
	}
}

// TestSlotsAreUsedAgain has one client after the other.
func TestSlotsAreUsedAgain(t *testing.T) {
	w := newWorld(t, Options{})
	for range 3 {
		c := w.wire()
		w.onLoop(func() { c.session.OnData([]byte("three\n=x\nthree\nthree\n")) })
		w.rest(t, c)
		assert.Regexp(t, `^\{.*"candidates":\[.*\]\}\nx\n\{.*\}\n\{.*\}\n$`, c.out.String())
		w.hangUp(c)
		w.onLoop(func() { assert.Equal(t, 4, w.lanes[0].free.n) })
	}
}

// TestSlotsKeepNothingLarge: slots keep no large texts. A burst leaves only a bounded number of
// slots.
func TestSlotsKeepNothingLarge(t *testing.T) {
	var l slots
	large := &slot{text: make([]byte, 0, keepTextBytes+1)}
	l.put(large)
	assert.Nil(t, large.text)
	for range 2 * keepSlots {
		l.put(new(slot))
	}
	assert.Equal(t, keepSlots, l.n)
	for range keepSlots {
		require.NotNil(t, l.take())
	}
	assert.Nil(t, l.take())
}

// A sweep may check a session before its connection is open. The session is not idle then.
func TestASessionThatIsNotConnectedIsNotIdle(t *testing.T) {
	w := newWorld(t, Options{IdleTimeout: time.Nanosecond})
	c := new(wire)
	w.onLoop(func() {
		c.session = w.Enter(c, "nowhere")
		c.session.CheckTimes(w.Loop().Now())
		assert.NoError(t, c.closed)
		c.session.OnConnect(nil)
		c.session.OnClose(io.EOF)
	})
}
