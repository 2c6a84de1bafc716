package respfront

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/servetest"
)

// TestEachCommandHasItsTime has half a command, its end with half of the next one, and more of that.
func TestEachCommandHasItsTime(t *testing.T) {
	var s times
	s.received(10, false, true)
	s.received(15, false, true)
	assert.EqualValues(t, 10, s.incomplete)
	s.received(20, true, true)
	assert.EqualValues(t, 20, s.incomplete, "the next command begins")
	s.received(30, false, true)
	assert.EqualValues(t, 20, s.incomplete)
	s.received(40, true, false)
	assert.Zero(t, s.incomplete)
}

// TestAClientThatTakesSomethingIsNotStuck looks at one that takes a byte at a time, and then none.
func TestAClientThatTakesSomethingIsNotStuck(t *testing.T) {
	const looks = 30
	w := newWorld(t, everybody(t), Options{WriteTimeout: 10 * time.Second}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.session.times.sent(c.session.now(), looks)
		now := c.session.now()
		for c.unsent = looks; c.unsent > 1; c.unsent-- {
			now = now.Add(9 * time.Second)
			c.session.checkTimes(now)
			assert.NoError(t, c.closed, "%d bytes are left", c.unsent)
		}
		c.session.checkTimes(now.Add(9 * time.Second))
		c.session.checkTimes(now.Add(18 * time.Second))
		assert.NoError(t, c.closed)
		c.session.checkTimes(now.Add(20 * time.Second))
		assert.Equal(t, errCutOff, c.closed)
	})
	w.hangUp(c)
}

// TestAClosedSessionLeavesNothingUnread has a client hang up within a command.
func TestAClosedSessionLeavesNothingUnread(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive(append([]byte("*2\r\n$4\r\nECHO\r\n$40000\r\n"), make([]byte, 30_000)...))
		assert.Greater(t, w.unread, 30_000)
	})
	w.hangUp(c)
	w.onLoop(func() { assert.Zero(t, w.unread) })
}

// TestAConnectionThatCannotBeTakenDoesNotCount has connections come that have ended, or whose reactor has.
func TestAConnectionThatCannotBeTakenDoesNotCount(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
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
	eventually(t, func() bool { return w.connections.Load() == 0 }, "the connection is gone")
	require.NoError(t, w.engine.Close())
	w.admit(connect())
	assert.Zero(t, w.connections.Load())
}

// TestAConnectionIsCutOnce has a session end for two reasons.
func TestAConnectionIsCutOnce(t *testing.T) {
	metrics := prometheus.NewRegistry()
	w := newServiceWorld(t, everybody(t), Options{}, serve.Options{Registerer: metrics}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive([]byte("*1\r\n:1\r\n"))
		c.session.cutOff(serve.CutSlowWrite)
	})
	w.hangUp(c)
	assert.EqualValues(t, 1, cutBy(t, metrics, serve.CutProtocol))
	assert.Zero(t, cutBy(t, metrics, serve.CutSlowWrite))
}

// TestAGreedyReaderIsRefusedAndNotCut has a client ask for more long answers than there is room for, behind a slow one, and another client
// come. Each command has its reply in its place.
func TestAGreedyReaderIsRefusedAndNotCut(t *testing.T) {
	const asked = 12
	metrics := prometheus.NewRegistry()
	w := newServiceWorld(t, everybody(t), Options{MaxUnsentBytes: 1 << 30}, serve.Options{MaxUnsentBytes: 2 << 20, Registerer: metrics}, nil)
	greedy, polite := w.wire(), w.wire()
	w.onLoop(func() {
		greedy.receive(commands("RANK gated 1"))
		for range asked {
			greedy.receive(commands("RANK many 1"))
		}
		greedy.receive(commands("RANK.MANY three 1 2"))
	})
	eventually(t, func() (only bool) {
		w.onLoop(func() { only = greedy.session.owed == 1+asked+3 })
		return only && w.engine.Metrics().Live == 1
	}, "all other requests have run")
	w.onLoop(func() { polite.receive(commands("RANK many 2")) })
	w.rest(t, polite)
	assert.Equal(t, "$", polite.out.String()[:1])
	w.gate.passAll()
	w.rest(t, greedy)
	assert.NoError(t, greedy.closed)
	answered, refused := 0, 0
	read := bufio.NewReader(strings.NewReader(greedy.out.String()))
	_, err := servetest.ReadReply(read) // of the slow one
	require.NoError(t, err)
	for range asked {
		reply, err := servetest.ReadReply(read)
		require.NoError(t, err)
		if strings.HasPrefix(reply, "-OVERLOADED ") {
			refused++
		} else if assert.Contains(t, reply, `"candidates"`) {
			answered++
		}
	}
	assert.Equal(t, []int{4, asked - 4}, []int{answered, refused}, "half of the room")
	many, err := servetest.ReadReply(read)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(many, `"candidates"`), "short answers need no room")
	assert.Zero(t, cutBy(t, metrics, serve.CutUnsent))
	w.hangUp(greedy)
	w.hangUp(polite)
}

// TestAFreeSlotKeepsNoAnswer has long answers and short ones leave their slots.
func TestAFreeSlotKeepsNoAnswer(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := w.wire()
	w.onLoop(func() { c.receive(commands("RANK many 1", "RANK three 1", "RANK nothing 1", "RANK many 1")) })
	w.rest(t, c)
	w.hangUp(c)
	w.onLoop(func() {
		require.Equal(t, 4, w.free.n)
		for p := w.free.first; p != nil; p = p.next {
			assert.Zero(t, p.query.Reply)
			assert.Empty(t, p.text)
		}
	})
}

// TestAWaitingClientIsNotIdle has one client wait for a reply for longer than another one may be idle.
func TestAWaitingClientIsNotIdle(t *testing.T) {
	w := newWorld(t, everybody(t), Options{IdleTimeout: time.Minute, WriteTimeout: time.Hour}, nil)
	idle, waiting, behind, reading := w.wire(), w.wire(), w.wire(), w.wire()
	w.onLoop(func() {
		waiting.receive(commands("RANK gated 1"))
		behind.session.held = true
		reading.unsent = 1
		later := idle.session.now().Add(time.Minute + 1)
		for _, c := range []*wire{idle, waiting, behind, reading} {
			c.session.checkTimes(later)
		}
		assert.Equal(t, errCutOff, idle.closed)
		assert.NoError(t, waiting.closed)
		assert.NoError(t, behind.closed)
		assert.NoError(t, reading.closed)
		behind.session.held = false
	})
	w.gate.passAll()
	w.rest(t, waiting)
	assert.Contains(t, waiting.out.String(), `"candidates":[{"id":1}]`)
	for _, c := range []*wire{idle, waiting, behind, reading} {
		w.hangUp(c)
	}
}
