package reactor

import (
	"net"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/reactor/transport"
)

// TestBusyPollEndsAtOnce gives the loop a minute to poll. What it waits for must come long
// before that minute is over.
func TestBusyPollEndsAtOnce(t *testing.T) {
	for name, until := range map[string]func(r *Reactor, done func()){
		"a post":  func(r *Reactor, done func()) { go r.Loop().Post(done) },
		"a timer": func(r *Reactor, done func()) { assert.NoError(t, r.Loop().NewTimer(done).Start(time.Millisecond, 0)) },
		"a stop":  func(r *Reactor, done func()) { go r.Stop(); go func() { <-r.Loop().Done(); done() }() },
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Config{BusyPoll: time.Minute})
			require.NoError(t, r.Start())
			defer end(r)
			done := make(chan struct{})
			silent := silentServer(t)
			r.Loop().Post(func() {
				asker := new(asker)
				asker.connected = func() {
					assert.NoError(t, asker.conn.Write([]byte("a question without an answer")))
					until(r, func() { close(done) })
				}
				asker.conn = r.Dial(silent, transport.DialOptions{}, asker)
			})
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				assert.Fail(t, "the loop polled on")
			}
		})
	}
}

// TestBusyPollSeesAnswers: an echo answers while the loop polls.
func TestBusyPollSeesAnswers(t *testing.T) {
	r := New(Config{BusyPoll: time.Minute})
	require.NoError(t, r.Start())
	defer end(r)
	done := make(chan struct{})
	addr := echoServer(t)
	r.Loop().Post(func() {
		asker := new(asker)
		asker.connected = func() { assert.NoError(t, asker.conn.Write([]byte("question"))) }
		asker.answered = func() { close(done) }
		asker.conn = r.Dial(addr, transport.DialOptions{}, asker)
	})
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		assert.Fail(t, "the loop polled on")
	}
}

// An asker is a handler that calls two functions. Loop only.
type asker struct {
	conn                transport.Conn
	connected, answered func()
}

func (a *asker) OnConnect(err error) {
	if err == nil {
		a.connected()
	}
}
func (a *asker) OnData(data []byte) int { a.answered(); return len(data) }
func (a *asker) OnClose(error)          {}

// openConn is the descriptor 0, which nobody reads.
type openConn struct{ gnet.Conn }

func (openConn) Fd() int { return 0 }

// silentServer returns the address of a server that accepts and never answers.
func silentServer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l.Addr().String()
}

// TestBusyPollsAreWorthTheirTime counts the polls of one wait after another.
func TestBusyPollsAreWorthTheirTime(t *testing.T) {
	for name, test := range map[string]struct {
		conns  int
		silent bool          // no connection waits for an answer
		turn   time.Duration // of the loop before each wait
		ready  func(wait int) bool
		want   []int // polls of each wait
	}{
		"answers that come":           {conns: 1, ready: func(int) bool { return true }, want: []int{1, 1, 1, 1}},
		"answers of few connections":  {conns: busyPollConns, ready: func(int) bool { return true }, want: []int{1, 1, 1}},
		"too many connections":        {conns: busyPollConns + 1, ready: func(int) bool { return true }, want: []int{0, 0}},
		"nothing to wait for":         {conns: 1, silent: true, ready: func(int) bool { return true }, want: []int{0, 0}},
		"after a long turn":           {conns: 1, turn: time.Millisecond, ready: func(int) bool { return true }, want: []int{0, 0}},
		"answers that come too late":  {conns: 1, ready: func(int) bool { return false }, want: []int{10, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10}},
		"an answer after one in vain": {conns: 1, ready: func(wait int) bool { return wait > 0 }, want: []int{10, 0, 0, 0, 1, 0, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			conns := map[*conn]struct{}{}
			for range test.conns {
				conns[&conn{gc: openConn{}, expecting: !test.silent}] = struct{}{}
			}
			p := newBusyPoll(10 * time.Microsecond)
			var now time.Time
			p.now = func() time.Time { return now }
			now = now.Add(time.Hour)
			for wait, want := range test.want {
				polls := 0
				p.ready = func(fds []unix.PollFd) bool {
					assert.Len(t, fds, test.conns)
					polls++
					now = now.Add(time.Microsecond)
					return test.ready(wait)
				}
				p.begin()
				now = now.Add(test.turn)
				p.wait(conns)
				assert.Equal(t, want, polls, "wait %d", wait)
			}
		})
	}
}

// TestBusyPollSkipsAreBounded: an answer comes again after a long silence.
func TestBusyPollSkipsAreBounded(t *testing.T) {
	p := newBusyPoll(time.Microsecond)
	var now time.Time
	p.now = func() time.Time { now = now.Add(100 * time.Nanosecond); return now }
	polled := 0
	p.ready = func([]unix.PollFd) bool { polled++; return false }
	conns := map[*conn]struct{}{{gc: openConn{}, expecting: true}: {}}
	longest, last := 0, 0
	for wait := range 100_000 {
		before := polled
		p.begin()
		p.wait(conns)
		if polled > before {
			longest, last = max(longest, wait-last), wait
		}
	}
	assert.Equal(t, 1<<busyPollDoubt, longest)
}

// TestBusyPollsThatPostsInterruptBecomeRare interrupts every second poll.
func TestBusyPollsThatPostsInterruptBecomeRare(t *testing.T) {
	p := newBusyPoll(time.Minute)
	polled := 0
	p.ready = func([]unix.PollFd) bool { polled++; return polled%2 == 0 }
	p.yield = p.wake
	conns := map[*conn]struct{}{{gc: openConn{}, expecting: true}: {}}
	for range 100_000 {
		p.begin()
		p.wait(conns)
	}
	assert.Less(t, polled, 1000)
}
