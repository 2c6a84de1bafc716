package loop_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// virtual drives a loop by Run. Its clock moves by exactly as long as the loop waits. It is a
// host without I/O, time or goroutines.
type virtual struct {
	*loop.Loop
	t      testing.TB
	clock  *clock.Manual
	start  clock.Time
	onPoll func(wait time.Duration) // the I/O, if set; the clock has moved by then
	drain  func() (pending bool)    // the host's part in the end, if set
	waits  []time.Duration          // of each poll
	wakes  int
	panics []any
}

func newVirtual(t testing.TB) *virtual {
	return newVirtualOn(t, loop.Config{Clock: clock.NewManual()})
}

// newVirtualOn starts a loop of that configuration with a manual clock.
func newVirtualOn(t testing.TB, cfg loop.Config) *virtual {
	c := cfg.Clock.(*clock.Manual)
	v := &virtual{t: t, clock: c, start: c.Now()}
	cfg.OnPanic = func(r any, _ []byte) { v.panics = append(v.panics, r) }
	v.Loop = loop.New(cfg)
	require.NoError(t, v.Start(v))
	return v
}

func (v *virtual) poll(wait time.Duration) {
	v.waits = append(v.waits, wait)
	if wait < 0 && v.onPoll == nil {
		v.t.Fatal("the loop would wait forever")
	}
	if wait > 0 {
		v.clock.Advance(wait)
	}
	if v.onPoll != nil {
		v.onPoll(wait)
	}
}

// elapsed returns the time since the loop was built.
func (v *virtual) elapsed() time.Duration { return v.clock.Now().Sub(v.start) }

func (v *virtual) run() (alive bool)       { return v.in(loop.RunDefault) }
func (v *virtual) runOnce() (alive bool)   { return v.in(loop.RunOnce) }
func (v *virtual) runNoWait() (alive bool) { return v.in(loop.RunNoWait) }

func (v *virtual) in(mode loop.RunMode) (alive bool) {
	v.t.Helper()
	defer looptest.AllowFailNow(v.t)
	alive, err := v.Run(mode, v.poll)
	require.NoError(v.t, err)
	return alive
}

func (v *virtual) Wake()              { v.wakes++ }
func (v *virtual) Flush()             {}
func (v *virtual) Drain() bool        { return v.drain != nil && v.drain() }
func (v *virtual) Finish(done func()) { done() }

// threaded drives a loop on its own goroutine, in real time.
type threaded struct {
	*loop.Loop
	wake     chan struct{}
	wakes    atomic.Int64
	polling  atomic.Bool
	finished atomic.Bool
	lateWake atomic.Bool
}

// newThreaded returns a running loop, which ends with the test.
func newThreaded(t testing.TB, cfg loop.Config) *threaded {
	h := &threaded{Loop: loop.New(cfg), wake: make(chan struct{}, 1)}
	h.Hold() // serve until stopped
	require.NoError(t, h.Start(h))
	go h.Run(loop.RunDefault, h.poll)
	t.Cleanup(h.end)
	return h
}

func (h *threaded) poll(wait time.Duration) {
	var timeout <-chan time.Time
	if wait >= 0 {
		timeout = time.After(wait)
	}
	h.polling.Store(true)
	select {
	case <-h.wake:
	case <-timeout:
	}
	h.polling.Store(false)
}

func (h *threaded) Wake() {
	h.wakes.Add(1)
	if h.finished.Load() {
		h.lateWake.Store(true)
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *threaded) Flush()      {}
func (h *threaded) Drain() bool { return false }
func (h *threaded) Finish(done func()) {
	h.finished.Store(true)
	done()
}

// end stops the loop and waits until it has ended.
func (h *threaded) end() {
	h.Stop()
	<-h.Done()
}

// do runs fn on the loop and waits for it.
func (h *threaded) do(t testing.TB, fn func()) {
	t.Helper()
	done := make(chan struct{})
	require.True(t, h.Post(func() { fn(); close(done) }))
	<-done
}

// journal notes what happened, in order.
type journal []string

func (j *journal) note(s string) func() { return func() { *j = append(*j, s) } }
