package respfront

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/session"
)

// TestAClientThatTakesSomethingIsNotStuck has a client that takes a byte at a time, and then
// nothing.
func TestAClientThatTakesSomethingIsNotStuck(t *testing.T) {
	const looks = 30
	w := newWorld(t, everybody(t), Options{Options: session.Options{WriteTimeout: 10 * time.Second}}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive(commands("ECHO " + strings.Repeat("x", looks)))
		now := w.Loop().Now()
		for c.unsent = looks; c.unsent > 1; c.unsent-- {
			now = now.Add(9 * time.Second)
			c.session.CheckTimes(now)
			assert.NoError(t, c.closed, "%d bytes are left", c.unsent)
		}
		c.session.CheckTimes(now.Add(9 * time.Second))
		c.session.CheckTimes(now.Add(18 * time.Second))
		assert.NoError(t, c.closed)
		c.session.CheckTimes(now.Add(20 * time.Second))
		assert.Equal(t, session.ErrCutOff, c.closed)
	})
	w.hangUp(c)
}

// TestAClosedSessionLeavesNothingUnread has a client hang up within a command.
func TestAClosedSessionLeavesNothingUnread(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive(append([]byte("*2\r\n$4\r\nECHO\r\n$40000\r\n"), make([]byte, 30_000)...))
		assert.Greater(t, w.Unread(), 30_000)
	})
	w.hangUp(c)
	w.onLoop(func() { assert.Zero(t, w.Unread()) })
}

// TestAConnectionIsCutOnce has a session end for two reasons.
func TestAConnectionIsCutOnce(t *testing.T) {
	metrics := prometheus.NewRegistry()
	w := newServiceWorld(t, everybody(t), Options{}, serve.Options{Registerer: metrics}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive([]byte("*1\r\n:1\r\n"))
		c.session.CutOff(serve.CutSlowWrite)
	})
	w.hangUp(c)
	assert.EqualValues(t, 1, cutBy(t, metrics, serve.CutProtocol))
	assert.Zero(t, cutBy(t, metrics, serve.CutSlowWrite))
}

// TestAGreedyReaderIsRefusedAndNotCut has a slow client and a client that asks for more long
// answers than there is room for. Then another client comes. Each command has its reply in its
// place.
func TestAGreedyReaderIsRefusedAndNotCut(t *testing.T) {
	const asked = 12
	metrics := prometheus.NewRegistry()
	w := newServiceWorld(t, everybody(t), Options{Options: session.Options{MaxUnsentBytes: 1 << 30}}, serve.Options{MaxUnsentBytes: 2 << 20, Registerer: metrics}, nil)
	greedy, polite := w.wire(), w.wire()
	w.onLoop(func() {
		greedy.receive(commands("RANK gated 1"))
		for range asked {
			greedy.receive(commands("RANK many 1"))
		}
		greedy.receive(commands("RANK.MANY three 1 2"))
	})
	eventually(t, func() (only bool) {
		w.onLoop(func() { only = greedy.session.State().Owed == 1+asked+3 })
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
