package respfront

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/session"
)

// eventually waits for a condition that a loop or a kernel brings about soon.
func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond, what)
}

// await waits for a condition that is checked on the loop.
func (w *world) await(t *testing.T, condition func() bool, what string) {
	t.Helper()
	eventually(t, func() (met bool) {
		w.onLoop(func() { met = condition() })
		return met
	}, what)
}

// TestRankOverSockets compares the reply with what rankd prints on stdout for the same request.
func TestRankOverSockets(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	request, err := w.engine.ParseRequest([]byte(`{"user_id": 1, "plan": "three", "request_id": "r"}`))
	require.NoError(t, err)
	answer, err := w.engine.Rank(t.Context(), request)
	require.NoError(t, err)
	want := string(bytes.TrimSuffix(answer.AppendJSON(nil, rankd.FormatFlat), []byte("\n")))
	for _, addr := range []net.Addr{w.listenTCP(t), w.listen(t, l)} {
		c := dial(t, addr)
		_, err = c.Write([]byte("RANK three 1 '{\"request_id\": \"r\"}'\r\n"))
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("$%d %s", len(want), readable(want)), c.receive())
		c.send("RANK three 1", "PING")
		assert.Equal(t, answerOfThree, c.receive())
		assert.Equal(t, "+PONG", c.receive())
	}
}

// TestEngineModels has clients of each model. Their requests end out of order, are long, and
// lose their client. Engines without a loop use the front's own loop. So does a front that does
// not use the engine's loop.
func TestEngineModels(t *testing.T) {
	for name, test := range map[string]struct {
		model rankd.Model
		own   bool
	}{
		"reactor": {model: rankd.Reactor}, "reactor, own loop": {rankd.Reactor, true}, "pool": {rankd.Pool, true}, "sequential": {rankd.Sequential, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everybody(t), Options{}, func(o *rankd.Options) { o.Model = test.model })
			if test.own && test.model == rankd.Reactor {
				require.NoError(t, w.Close())
				front, err := New(w.service, w.store, nil, w.options)
				require.NoError(t, err)
				w.Front = front
			}
			if r := w.engine.Intake().Reactor(); test.own {
				assert.True(t, r == nil || r.Loop() != w.Loop())
			} else {
				assert.Same(t, r.Loop(), w.Loop())
			}
			addr := w.listenTCP(t)
			c := dial(t, addr)
			c.send("RANK gated 1", "RANK three 1", "RANK many 1", "RANK nothing 1", "PING", "RANK.MANY three 1 2")
			<-w.gate.entered
			w.await(t, func() bool { return w.Sessions()[0].State().Owed == 8 }, "all have come")
			w.gate.pass(1)
			assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
			assert.Equal(t, answerOfThree, c.receive())
			assert.Greater(t, c.receiveLong(), 100_000)
			assert.Contains(t, c.receive(), "-NOPERM ")
			assert.Equal(t, "+PONG", c.receive())
			assert.Equal(t, "*2 "+answerOfThree+" "+answerOfThree, c.receive())

			c.send("RANK gated 2")
			<-w.gate.entered
			require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
			require.NoError(t, c.Close())
			eventually(t, func() bool { return w.engine.Metrics().Live == 0 }, "its request is cancelled")
			assert.EqualValues(t, 1, w.gate.passed.Load(), "only the first client's has passed")

			_, dialTLS := w.listenTLS(t)
			for user, c := range []*client{dial(t, addr), dialTLS()} {
				c.send("RANK three 1", fmt.Sprint("RANK gated ", 3+user))
				assert.Equal(t, answerOfThree, c.receive())
				<-w.gate.entered // This request is under way when the world ends.
			}
		})
	}
}

// TestLongAnswersAreEncodedOffTheLoop has a long answer, and a short one after it.
func TestLongAnswersAreEncodedOffTheLoop(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("RANK many 1", "RANK three 1", "RANK many 1")
	for _, rows := range []int{20000, 3, 20000} {
		reply, err := servetest.ReadReply(c.r)
		require.NoError(t, err)
		_, body, _ := strings.Cut(reply, "\r\n")
		var answer struct{ Candidates []struct{ ID int } }
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		require.Len(t, answer.Candidates, rows)
		assert.Equal(t, rows, answer.Candidates[rows-1].ID)
	}
}

// TestRepliesKeepTheirOrder has the first request end last.
func TestRepliesKeepTheirOrder(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("RANK gated 1", "PING", "RANK three 1", "RANK gated 2", "RANK nothing 1", "ECHO last")
	<-w.gate.entered
	<-w.gate.entered
	w.gate.pass(2)
	eventually(t, func() bool { return w.gate.passed.Load() == 1 }, "the second request ends")
	w.gate.pass(1)
	assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	assert.Equal(t, "+PONG", c.receive())
	assert.Equal(t, answerOfThree, c.receive())
	assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	assert.Contains(t, c.receive(), "-NOPERM ")
	assert.Equal(t, "$4 last", c.receive())
}

// TestRankMany has more users than the session may have requests.
func TestRankMany(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 3}}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("RANK.MANY three 1 0 2 3 4 5", "PING", "RANK.MANY nothing 1 2", "RANK.MANY gated 1 2 3 4 5 6 7")
	three := " " + answerOfThree
	assert.Equal(t, "*6"+three+" -BADREQ Invalid request: user_id as a string must be decimal digits for an integer from 1 to 4294967295, got \"0\""+strings.Repeat(three, 4), c.receive())
	assert.Equal(t, "+PONG", c.receive())
	assert.Equal(t, 2, strings.Count(c.receive(), "-NOPERM "))
	for range 3 {
		<-w.gate.entered
	}
	w.onLoop(func() {
		for s := range sessionsOf(w) {
			assert.Equal(t, 3, s.State().Owed)
		}
	})
	assert.Empty(t, w.gate.entered)
	w.gate.passAll()
	assert.Equal(t, 7, strings.Count(c.receive(), `"candidates":[{"id":1}]`))
}

// sessionsOf yields the sessions. Loop only.
func sessionsOf(w *world) func(func(*session.Session) bool) {
	return func(yield func(*session.Session) bool) {
		for _, s := range w.Sessions() {
			if !yield(s) {
				return
			}
		}
	}
}

// TestPipelineIsBounded sends more requests than may run.
func TestPipelineIsBounded(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 4}}, nil)
	c := dial(t, w.listenTCP(t))
	for user := range 10 {
		c.send(fmt.Sprintf("RANK gated %d", user+1))
	}
	for range 4 {
		<-w.gate.entered
	}
	w.await(t, func() bool { return w.Sessions()[0].State().Held }, "the others have come")
	w.onLoop(func() { assert.Equal(t, 4, w.Sessions()[0].State().Owed) })
	assert.Empty(t, w.gate.entered)
	w.gate.passAll()
	for range 10 {
		assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	}
}

// TestBacklogIsBounded has a client send far more requests than may run. It gets the replies
// that are due, and then the reason why it is cut off.
func TestBacklogIsBounded(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 1, MaxRequestBytes: 100, MaxBacklogBytes: 1000}}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("RANK gated 1")
	<-w.gate.entered
	_, err := c.Write(bytes.Repeat(commands("RANK three 1"), 1000))
	require.NoError(t, err)
	w.await(t, func() bool { return w.Sessions()[0].State().Ending }, "the bytes have come")
	w.gate.pass(1)
	assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	assert.Equal(t, "-TOOLARGE Request too large: 1100 bytes may wait unread", c.receive())
	c.ended()
}

// TestUnreadBytesOfAllAreBounded has two clients that stop within a command.
func TestUnreadBytesOfAllAreBounded(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxUnreadBytes: 50_000}}, nil)
	addr := w.listenTCP(t)
	half := append([]byte("*2\r\n$4\r\nECHO\r\n$40000\r\n"), make([]byte, 30_000)...)
	first, second, third := dial(t, addr), dial(t, addr), dial(t, addr)
	_, err := first.Write(half)
	require.NoError(t, err)
	w.await(t, func() bool { return w.Unread() == len(half) }, "the first half has come")
	_, err = second.Write(half)
	require.NoError(t, err)
	assert.Equal(t, "-OVERLOADED Overloaded: all connections together have too many bytes unread", second.receive())
	third.send("PING")
	assert.Equal(t, "+PONG", third.receive())
	_, err = first.Write(append(make([]byte, 10_000), "\r\n"...))
	require.NoError(t, err)
	assert.Equal(t, 40_000+len("$40000\r\n\r\n"), first.receiveLong())
	w.onLoop(func() { assert.Zero(t, w.Unread()) })
}

// TestHalfCloseWithABacklog has a client send far more requests than may run, and then close
// its side. Some of the requests are refused at once.
func TestHalfCloseWithABacklog(t *testing.T) {
	for _, pipeline := range []int{1, 2, 4, 128} {
		w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: pipeline, MaxUnsentBytes: 1000}}, nil)
		addr := w.listenTCP(t)
		for range 5 {
			c := dial(t, addr)
			const n = 200
			_, err := c.Write(bytes.Repeat(commands("RANK three 1", "RANK nothing 1", "PING"), n))
			require.NoError(t, err)
			require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
			all, err := io.ReadAll(c.r)
			require.NoError(t, err)
			assert.Equal(t, n, strings.Count(string(all), `"candidates"`))
			assert.Equal(t, n, strings.Count(string(all), "-NOPERM"))
			assert.Equal(t, n, strings.Count(string(all), "+PONG"))
		}
	}
}

// TestHalfClose has a client close its side after its requests. Requests that wait unread get
// their replies, too.
func TestHalfClose(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 2}}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("RANK gated 1", "RANK three 1", "RANK three 1", "RANK.MANY three 1 2 3", "ECHO last")
	_, err := c.Write([]byte("*1\r\n$4\r\nPI"))
	require.NoError(t, err)
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	<-w.gate.entered
	w.await(t, func() bool { return w.Sessions()[0].State().EOF }, "the end has come")
	w.gate.pass(1)
	assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	assert.Equal(t, answerOfThree, c.receive())
	assert.Equal(t, answerOfThree, c.receive())
	assert.Equal(t, 3, strings.Count(c.receive(), answerOfThree))
	assert.Equal(t, "$4 last", c.receive())
	c.ended()
}

// TestRequestsOfClientsThatHaveGoneAreCancelled has a client leave in several ways while two of
// its requests run. Their plan does not go on after the gate.
func TestRequestsOfClientsThatHaveGoneAreCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		leave   func(t *testing.T, w *world, c *client)
	}{
		"reset": {leave: func(t *testing.T, _ *world, c *client) {
			require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
			require.NoError(t, c.Close())
		}},
		"closed, and taken for gone": {options: Options{Options: session.Options{CancelAtEOF: true}}, leave: func(t *testing.T, _ *world, c *client) {
			require.NoError(t, c.Close())
		}},
		"closed, which the first reply tells": {leave: func(t *testing.T, w *world, c *client) {
			c.send("RANK gated 3")
			<-w.gate.entered
			require.NoError(t, c.Close())
			w.await(t, func() bool { return w.Sessions()[0].State().EOF }, "the end has come")
			w.gate.pass(1)
			eventually(t, func() bool { return w.gate.passed.Swap(0) == 1 }, "the first request ends")
		}},
		"cut off by the front": {leave: func(t *testing.T, w *world, _ *client) { require.NoError(t, w.Close()) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everybody(t), test.options, nil)
			c := dial(t, w.listenTCP(t))
			c.send("RANK gated 1", "RANK gated 2", "ECHO x")
			<-w.gate.entered
			<-w.gate.entered
			test.leave(t, w, c)
			w.await(t, func() bool { return len(w.Sessions()) == 0 }, "the session ends")
			w.gate.passAll()
			eventually(t, func() bool { return w.engine.Metrics().Live == 0 }, "the requests end")
			assert.Zero(t, w.gate.passed.Load())
		})
	}
}

// TestStrangersAreCutOff has clients that keep the front waiting.
func TestStrangersAreCutOff(t *testing.T) {
	many := strings.Repeat("RANK many 1\n", 100)
	for name, test := range map[string]struct {
		options Options
		send    string
	}{
		"idle":                    {Options{Options: session.Options{IdleTimeout: 20 * time.Millisecond}}, ""},
		"half a command":          {Options{Options: session.Options{ReadTimeout: 20 * time.Millisecond}}, "*2\r\n$4\r\nPING\r\n"},
		"reads nothing":           {Options{Options: session.Options{WriteTimeout: 20 * time.Millisecond, MaxUnsentBytes: 1 << 20}}, many},
		"a browser":               {Options{}, "POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n"},
		"a browser's second line": {Options{}, "Host: x\r\nPING\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everybody(t), test.options, nil)
			c := dial(t, w.listenTCP(t))
			_, err := io.WriteString(c, test.send)
			require.NoError(t, err)
			w.await(t, func() bool { return w.Entered() == 1 && len(w.Sessions()) == 0 }, "the session ends")
		})
	}
}

// TestASlowReaderGetsAll reads, after a while, more than the front keeps for it.
func TestASlowReaderGetsAll(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 4, MaxUnsentBytes: 256 << 10}}, nil)
	c := dial(t, w.listenTCP(t))
	const n = 60
	_, err := c.Write(bytes.Repeat(commands("RANK many 1"), n))
	require.NoError(t, err)
	w.await(t, func() bool { return w.Sessions()[0].State().Unsent >= 256<<10 }, "the client's replies pile up")
	for range n {
		assert.Greater(t, c.receiveLong(), 100_000)
	}
}

func TestTooManyConnections(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxConnections: 2}}, nil)
	addr := w.listenTCP(t)
	first, second := dial(t, addr), dial(t, addr)
	for _, c := range []*client{first, second} {
		c.send("PING")
		assert.Equal(t, "+PONG", c.receive())
	}
	third := dial(t, addr)
	assert.Equal(t, "-ERR max number of clients reached", third.receive())
	third.ended()
	require.NoError(t, first.Close())
	eventually(t, func() bool { return w.Connections() == 1 }, "there is room again")
	fourth := dial(t, addr)
	fourth.send("PING")
	assert.Equal(t, "+PONG", fourth.receive())
}

// TestDrain has clients that wait, and one that is idle.
func TestDrain(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	addr := w.listenTCP(t)
	idle, waiting := dial(t, addr), dial(t, addr)
	idle.send("PING")
	assert.Equal(t, "+PONG", idle.receive())
	waiting.send("RANK gated 1")
	<-w.gate.entered

	soon, cancel := context.WithCancelCause(t.Context())
	impatient := errors.New("impatient")
	cancel(impatient)
	assert.ErrorIs(t, w.Drain(soon), impatient)
	idle.ended()
	_, err := net.Dial(addr.Network(), addr.String())
	assert.Error(t, err)
	waiting.send("RANK three 1", "PING")
	w.await(t, func() bool { return w.Sessions()[0].State().Owed == 3 }, "the commands have come")

	drained := make(chan error, 1)
	go func() { drained <- w.Drain(t.Context()) }()
	w.gate.pass(1)
	assert.Contains(t, waiting.receive(), `"candidates":[{"id":1}]`)
	assert.Equal(t, "-CLOSING Shutting down: the server closes this connection", waiting.receive())
	assert.Contains(t, waiting.receive(), "-CLOSING ")
	waiting.ended()
	assert.NoError(t, <-drained)
	assert.NoError(t, w.Drain(t.Context()), "once more")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	assert.NoError(t, w.Serve(l), "Serve after Drain closes the listener")
	_, err = l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

// TestCloseAfterTheEngine has connections open when the loop ends.
func TestCloseAfterTheEngine(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("PING")
	assert.Equal(t, "+PONG", c.receive())
	require.NoError(t, w.engine.Close())
	assert.NoError(t, w.Drain(t.Context()))
	assert.NoError(t, w.Close())
	c.ended()
}

// faultyListener fails a few times before it accepts.
type faultyListener struct {
	net.Listener
	errs []error
}

func (l *faultyListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

// Without descriptors the front pauses, and it accepts again when there are some.
func TestALackOfDescriptorsIsWaitedOut(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := dial(t, w.listen(t, &faultyListener{l, []error{syscall.EMFILE, syscall.ECONNABORTED, syscall.ENFILE}}))
	c.send("PING")
	assert.Equal(t, "+PONG", c.receive())
}

func TestOtherErrorsOfAListenerEndServe(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	assert.ErrorIs(t, w.Serve(&faultyListener{l, []error{syscall.EBADF}}), syscall.EBADF)
}

// TestGoroutinesStayConstant compares the number of goroutines with one request in flight and
// with 256, over one connection and over several. All but one request wait for admission.
func TestGoroutinesStayConstant(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 256}}, func(o *rankd.Options) { o.MaxInflight, o.MaxQueue = 1, 300 })
	addr := w.listenTCP(t)
	clients := make([]*client, 8)
	for i := range clients {
		clients[i] = dial(t, addr)
		clients[i].send("PING")
		assert.Equal(t, "+PONG", clients[i].receive())
	}
	clients[0].send("RANK gated 1")
	<-w.gate.entered
	one := runtime.NumGoroutine()
	for _, c := range clients {
		_, err := c.Write(bytes.Repeat(commands("RANK gated 1"), 32))
		require.NoError(t, err)
	}
	eventually(t, func() (all bool) {
		owed := 0
		w.onLoop(func() {
			for s := range sessionsOf(w) {
				owed += s.State().Owed
			}
		})
		return owed == 257
	}, "all requests have come")
	assert.LessOrEqual(t, runtime.NumGoroutine(), one)
	w.gate.passAll()
	for i, c := range clients {
		n := 32
		if i == 0 {
			n++
		}
		for range n {
			assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
		}
	}
}
