package session

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// TestFewUnreadBytesAreFree: a client that has sent much does not cost another one its connection.
func TestFewUnreadBytesAreFree(t *testing.T) {
	w := newWorld(t, Options{MaxUnreadBytes: 32 << 10})
	much, few := w.wire(), w.wire()
	w.onLoop(func() {
		much.session.OnData([]byte(strings.Repeat("x", 31<<10)))
		few.session.OnData([]byte(strings.Repeat("x", 4<<10)))
		assert.False(t, few.session.State().Ending)
		assert.False(t, much.session.State().Ending)
		much.session.OnData([]byte(strings.Repeat("x", 32<<10)))
		assert.True(t, much.session.State().Ending)
	})
	w.hangUp(much)
	w.hangUp(few)
}

// TestAnswersThatWaitCount: no further request begins while a long answer waits for its turn.
func TestAnswersThatWaitCount(t *testing.T) {
	w := newWorld(t, Options{MaxUnsentBytes: 1000})
	c := w.wire()
	w.onLoop(func() { c.session.OnData([]byte("?\nmany\n")) })
	require.Eventually(t, func() (there bool) {
		w.onLoop(func() { there = c.session.first.next.state == answered })
		return there
	}, time.Minute, time.Millisecond)
	w.onLoop(func() {
		assert.Zero(t, c.session.OnData([]byte("=x\n")))
		assert.True(t, c.session.State().Held)
	})
	w.hangUp(c)
}

// TestAnEndedSessionHoldsNothing: clients leave while answers wait for their turn, and while one is encoded. What all hold
// together is nothing then, and each slot is free once.
func TestAnEndedSessionHoldsNothing(t *testing.T) {
	w := newWorld(t, Options{})
	waits, encodes := w.wire(), w.wire()
	w.onLoop(func() { waits.session.OnData([]byte("?\nmany\n")) })
	require.Eventually(t, func() (there bool) {
		w.onLoop(func() { there = waits.session.first.next.state == answered })
		return there
	}, time.Minute, time.Millisecond)
	w.onLoop(func() { assert.NotZero(t, w.service.Unsent()) })
	w.hangUp(waits)
	w.onLoop(func() { assert.Zero(t, w.service.Unsent()) })

	w.onLoop(func() { encodes.session.OnData([]byte("many\n")) })
	require.Eventually(t, func() (gone bool) {
		w.onLoop(func() {
			p := encodes.session.first
			if gone = p == nil || p.state == encoding; p == nil {
				return
			}
			if gone {
				free := w.lanes[0].free.n
				encodes.session.OnClose(io.EOF)
				assert.Equal(t, free, w.lanes[0].free.n, "a goroutine has the slot")
			}
		})
		return gone
	}, time.Minute, time.Microsecond)
	require.Eventually(t, func() (over bool) {
		w.onLoop(func() { over = w.lanes[0].free.n == 1 })
		return over
	}, time.Minute, time.Millisecond, "the one that was never answered is not free")
	w.onLoop(func() { assert.Zero(t, w.service.Unsent()) })
}

// TestASessionThatHasAnsweredMayAskAgain: answers that have left no longer count.
func TestASessionThatHasAnsweredMayAskAgain(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.wire()
	for range 3 {
		w.onLoop(func() { c.session.OnData([]byte("many\nthree\nmany\n")) })
		w.rest(t, c)
		w.onLoop(func() {
			assert.Zero(t, c.session.waiting)
			assert.Zero(t, c.session.texts)
			assert.Zero(t, c.session.counted)
			assert.Zero(t, w.service.Unsent())
		})
	}
	assert.Equal(t, 9, strings.Count(c.out.String(), "\n"))
	w.hangUp(c)
	w.onLoop(func() { assert.Zero(t, w.service.Unsent()) })
}

// TestLeaveEndsWithTheNextReply: a server that leaves ends each connection behind its next reply.
func TestLeaveEndsWithTheNextReply(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.wire()
	w.Leave()
	w.onLoop(func() {})
	w.onLoop(func() {
		assert.False(t, c.session.State().Ending)
		c.session.OnData([]byte("three\n"))
	})
	w.rest(t, c)
	w.onLoop(func() { assert.Error(t, c.closed) })
	w.hangUp(c)
}

// TestLimitIsNoMoreThanMaxPipeline: a codec may owe fewer replies, and not more.
func TestLimitIsNoMoreThanMaxPipeline(t *testing.T) {
	w := newWorld(t, Options{MaxPipeline: 4})
	c := w.wire()
	w.onLoop(func() {
		for replies, want := range map[int]int{1: 1, 4: 4, 5: 4, 0: 4} {
			c.session.Limit(replies)
			assert.Equal(t, want, c.session.pipeline)
		}
	})
	w.hangUp(c)
}

// TestAClientTakesWholePieces: one that takes a byte now and then is cut off, one that takes a piece in time is not.
func TestAClientTakesWholePieces(t *testing.T) {
	w := newWorld(t, Options{PieceBytes: 100, WriteTimeout: time.Minute})
	for each, cut := range map[int]bool{1: true, 99: true, 100: false} {
		c := w.wire()
		w.onLoop(func() {
			s := c.session
			s.times.written, c.unsent = 1000, 1000
			now := s.now()
			s.CheckTimes(now)
			for range 2 {
				now = now.Add(40 * time.Second)
				c.unsent -= each
				if each < 100 {
					c.unsent += each - each/2 // over both checks less than a piece
				}
				s.CheckTimes(now)
			}
			assert.Equal(t, cut, c.closed != nil, each)
		})
		w.hangUp(c)
	}
}

// TestALingeringClientHasItsReplyFirst: the wait for a client to end the connection begins once all has left.
func TestALingeringClientHasItsReplyFirst(t *testing.T) {
	w := newWorld(t, Options{WriteTimeout: time.Hour})
	c := w.wire()
	w.onLoop(func() {
		s := c.session
		s.times.lingers = s.now()
		c.unsent = 1
		later := s.now().Add(2 * lingerTimeout)
		s.CheckTimes(later)
		assert.Zero(t, c.closes)
		c.unsent = 0
		s.CheckTimes(later)
		assert.Equal(t, 1, c.closes)
	})
	w.hangUp(c)
}

// TestTheFirstRequestHasItsTime: a client that has never asked is cut off early, one that has asked is not.
func TestTheFirstRequestHasItsTime(t *testing.T) {
	w := newWorld(t, Options{FirstTimeout: time.Second, IdleTimeout: time.Hour})
	mute, asked := w.wire(), w.wire()
	w.onLoop(func() {
		asked.session.OnData([]byte("=x\n"))
		var later clock.Time = mute.session.now().Add(time.Minute)
		mute.session.CheckTimes(later)
		asked.session.CheckTimes(later)
		assert.Equal(t, ErrCutOff, mute.closed)
		assert.NoError(t, asked.closed)
	})
	w.hangUp(mute)
	w.hangUp(asked)
}

// TestAUsedSlotKnowsItsSession: neither the connection nor the note of the session before is left.
func TestAUsedSlotKnowsItsSession(t *testing.T) {
	w := newWorld(t, Options{})
	before := w.wire()
	w.onLoop(func() {
		before.session.OnData([]byte("three\n"))
		before.session.Annotate([]byte("of before"))
	})
	w.rest(t, before)
	w.hangUp(before)
	after := w.wire()
	w.onLoop(func() {
		q := after.session.Request()
		assert.Equal(t, after.session.number, q.Connection)
		assert.NoError(t, q.Context.Err())
		assert.Empty(t, after.session.last.note)
	})
	w.hangUp(after)
}

// noticed is a session that says when all connections together hold too much and it is the slowest.
type noticed struct {
	*Session
	cut chan struct{}
}

// Cut implements serve.Sender.
func (n noticed) Cut() {
	n.Session.Cut()
	n.cut <- struct{}{}
}

// TestAClientThatHasJustReadIsSpared: the slowest client reads while it is being cut off.
func TestAClientThatHasJustReadIsSpared(t *testing.T) {
	for _, reads := range []bool{true, false} {
		w := newWorldOf(t, Options{WriteTimeout: time.Hour}, 64<<10)
		slow, asks := w.wire(), w.wire()
		w.onLoop(func() {
			s, cut := slow.session, make(chan struct{}, 1)
			s.outbox = w.service.NewOutbox(noticed{s, cut})
			slow.unsent = 60 << 10
			s.settle()
			assert.False(t, asks.session.outbox.Encode(60<<10))
			<-cut // What Cut has posted runs after this.
			if reads {
				slow.unsent = 0
			}
		})
		w.onLoop(func() { assert.Equal(t, !reads, slow.closes > 0) })
		w.onLoop(func() { asks.session.outbox.Close() })
		w.hangUp(slow)
		w.hangUp(asks)
	}
}
