package remote_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// byHand is a Carrier whose requests end when the test says so, on a loop in virtual time.
type byHand struct {
	h        *looptest.Harness
	inFlight []*request // in the order in which they left
}

type request struct {
	x     *remote.Exchange
	back  func(int, error)
	cause error // of the cancellation
	ended bool
}

func (b *byHand) Carry(x *remote.Exchange, back func(int, error)) func(error) {
	r := &request{x: x, back: back}
	b.inFlight = append(b.inFlight, r)
	return func(cause error) {
		if r.cause == nil {
			r.cause = cause
		}
	}
}

// end ends a request, as its goroutine would, with an answer of that many bytes.
func (b *byHand) end(i int, received int) {
	r := b.inFlight[i]
	if r.ended {
		panic("the request has ended")
	}
	r.ended = true
	err := r.cause
	if err != nil {
		received = 0
	}
	b.h.Loop.Post(func() { r.back(received, err) })
	b.h.Settle()
}

// world is a client on a loop in virtual time.
type world struct {
	t      *testing.T
	h      *looptest.Harness
	hand   *byHand
	client *remote.Client
	log    []string // of the calls that have ended
}

func newWorld(t *testing.T, o remote.Options) *world {
	h := looptest.New(t)
	o.URL = &url.URL{Scheme: "http", Host: "model:8080"}
	w := &world{t: t, h: h, hand: &byHand{h: h}}
	w.client = remote.NewClient(h.Loop, w.hand, o)
	t.Cleanup(func() {
		w.client.Close()
		for i, r := range w.hand.inFlight {
			if !r.ended {
				w.hand.end(i, 0)
			}
		}
		h.Settle()
		s := w.client.Stats()
		assert.Zero(t, s.Inflight+s.Waiting)
	})
	return w
}

// call begins a call with that name.
func (w *world) call(name string, deadline clock.Time) (*remote.Call, error) {
	c := &remote.Call{Exchange: &remote.Exchange{}, Deadline: deadline}
	inside := true
	c.Done = func(c *remote.Call) {
		assert.False(w.t, inside, "%s ended inside Do", name)
		w.log = append(w.log, fmt.Sprintf("%s: %v", name, c.Err))
	}
	err := w.client.Do(c)
	inside = false
	return c, err
}

func (w *world) ended() []string {
	w.h.Settle()
	log := w.log
	w.log = nil
	return log
}

// Calls leave in order. There are never more under way than connections, and the next call
// leaves when one has come back.
func TestCallsLeaveInOrderAndWithinTheBound(t *testing.T) {
	for _, o := range []remote.Options{{Connections: 2, MaxInflight: 9}, {Connections: 9, MaxInflight: 2}} {
		w := newWorld(t, o)
		for i := range 5 {
			_, err := w.call(fmt.Sprint(i), 0)
			require.NoError(t, err)
		}
		require.Len(t, w.hand.inFlight, 2)
		assert.Equal(t, 3, w.client.Stats().Waiting)
		w.hand.end(1, 7)
		require.Len(t, w.hand.inFlight, 3)
		w.hand.end(0, 7)
		w.hand.end(2, 7)
		w.hand.end(4, 7)
		w.hand.end(3, 7)
		assert.Equal(t, []string{"1: <nil>", "0: <nil>", "2: <nil>", "4: <nil>", "3: <nil>"}, w.ended())
		assert.Equal(t, uint64(5), w.client.Stats().Calls)
	}
}

// A call that waits too long ends at once in the queue. A call that is on its way ends when its
// goroutine has come back.
func TestCallsTimeOut(t *testing.T) {
	w := newWorld(t, remote.Options{Connections: 1, RequestTimeout: 20 * time.Millisecond})
	for _, name := range []string{"sent", "in line"} {
		_, err := w.call(name, 0)
		require.NoError(t, err)
	}
	_, err := w.call("short", w.h.Loop.Clock().Now().Add(5*time.Millisecond))
	require.NoError(t, err)
	w.h.Advance(5 * time.Millisecond)
	assert.Equal(t, []string{"short: http model:8080: timeout: the deadline of the call has passed: not sent, 1 requests are on their way"}, w.ended())
	w.h.Advance(15 * time.Millisecond)
	assert.Equal(t, []string{"in line: http model:8080: timeout: not done within 20ms: not sent, 1 requests are on their way"}, w.ended())
	require.ErrorIs(t, w.hand.inFlight[0].cause, remote.ErrTimeout, "its request is cancelled")
	w.hand.end(0, 5)
	assert.Equal(t, []string{"sent: http model:8080: timeout: not done within 20ms"}, w.ended())
	s := w.client.Stats()
	assert.Equal(t, [3]uint64{3, 3, 3}, [3]uint64{s.Calls, s.Failed, s.TimedOut})
}

func TestCallsThatCannotBegin(t *testing.T) {
	w := newWorld(t, remote.Options{Connections: 1, MaxWaiting: 1})
	_, err := w.call("late", w.h.Loop.Clock().Now())
	require.ErrorIs(t, err, remote.ErrTimeout)
	require.ErrorIs(t, err, remote.ErrDeadline)
	for range 2 {
		_, err = w.call("fine", 0)
		require.NoError(t, err)
	}
	_, err = w.call("too many", 0)
	require.ErrorIs(t, err, remote.ErrQueueFull)
	assert.EqualError(t, err, "http model:8080: too many waiting calls")
	w.client.Close()
	w.client.Close()
	_, err = w.call("closed", 0)
	require.ErrorIs(t, err, remote.ErrClosed)
	assert.Equal(t, []string{"fine: http model:8080: client closed"}, w.ended())
	require.ErrorIs(t, w.hand.inFlight[0].cause, remote.ErrClosed)
	w.hand.end(0, 0)
	assert.Equal(t, []string{"fine: http model:8080: client closed"}, w.ended())
}

// The client keeps the contract of loop.ErrCancelled. A call is cancelled once. Its Done comes
// later and says so, even if the answer came meanwhile.
func TestCancel(t *testing.T) {
	w := newWorld(t, remote.Options{Connections: 1})
	first, err := w.call("first", 0)
	require.NoError(t, err)
	second, err := w.call("second", 0)
	require.NoError(t, err)
	assert.NoError(t, w.client.Cancel(second))
	assert.ErrorIs(t, w.client.Cancel(second), loop.ErrBusy)
	assert.Panics(t, func() { _ = w.client.Do(second) }, "it is under way until its Done")
	assert.Equal(t, []string{"second: http model:8080: cancelled"}, w.ended())
	assert.ErrorIs(t, w.client.Cancel(second), loop.ErrBusy)
	assert.NoError(t, w.client.Cancel(first))
	assert.ErrorIs(t, w.hand.inFlight[0].cause, loop.ErrCancelled)
	assert.ErrorIs(t, w.client.Cancel(first), loop.ErrBusy)
	assert.Empty(t, w.ended())
	w.hand.inFlight[0].cause = nil // the answer was faster
	w.hand.end(0, 0)
	assert.Equal(t, []string{"first: http model:8080: cancelled"}, w.ended())
	require.NoError(t, w.client.Do(second), "a call may be used again")
	w.hand.end(1, 3)
	assert.Equal(t, []string{"second: <nil>"}, w.ended())
	assert.Equal(t, uint64(2), w.client.Stats().Cancelled)
}

// A Done that begins another call, or panics, does not harm other calls.
func TestDoneMayBeginACall(t *testing.T) {
	w := newWorld(t, remote.Options{Connections: 1})
	next := &remote.Call{Exchange: &remote.Exchange{}, Done: func(c *remote.Call) { w.log = append(w.log, "next") }}
	c := &remote.Call{Exchange: &remote.Exchange{}}
	c.Done = func(*remote.Call) { require.NoError(t, w.client.Do(next)) }
	require.NoError(t, w.client.Do(c))
	w.hand.end(0, 1)
	w.hand.end(1, 1)
	assert.Equal(t, []string{"next"}, w.ended())
}

// watched notes what a Watch sees.
type watched []string

func (l *watched) Sent(number, requests, bytes int, _ clock.Time) {
	*l = append(*l, fmt.Sprint("sent ", number, requests, bytes))
}
func (l *watched) Replied(number, requests, bytes int) {
	*l = append(*l, fmt.Sprint("replied ", number, requests, bytes))
}

// Requests on their way get the lowest free numbers.
func TestWatch(t *testing.T) {
	w := newWorld(t, remote.Options{Connections: 2})
	var log watched
	for range 3 {
		require.NoError(t, w.client.Do(&remote.Call{Exchange: &remote.Exchange{}, Done: func(*remote.Call) {}, Watch: &log}))
	}
	w.hand.end(0, 10)
	w.hand.inFlight[1].cause = errors.New("lost")
	w.hand.end(1, 20)
	w.hand.end(2, 30)
	assert.Equal(t, watched{"sent 0 1 0", "sent 1 1 0", "replied 0 1 10", "sent 0 1 0", "replied 0 1 30"}, log)
}
