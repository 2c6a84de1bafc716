package looptest

import (
	"testing"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// settleMax bounds the iterations of one Settle. A callback that posts itself for ever is a
// bug of the test; Settle reports it instead of waiting.
const settleMax = 100_000

// A Harness is a started loop on a manual clock. The test's goroutine is the loop
// goroutine, so it may call loop-only methods. A callback that panics fails the test.
// Loop only.
type Harness struct {
	Loop  *loop.Loop
	Clock *clock.Manual
	// OnPoll, if set, stands for the I/O of each iteration. The functions that it calls
	// count as I/O callbacks; they must not wait.
	OnPoll func()
	// OnFlush, if set, is called at the end of each iteration, where a host sends the bytes
	// that its connections have buffered.
	OnFlush func()
	// OnDrain, if set, is the host's Drain: see loop.Host.
	OnDrain func() (pending bool)

	tb testing.TB
}

// New returns a harness whose clock stands still. It stops the loop when the test ends.
func New(tb testing.TB) *Harness {
	tb.Helper()
	h := &Harness{Clock: clock.NewManual(), tb: tb}
	h.Loop = loop.New(loop.Config{
		Clock: h.Clock,
		OnPanic: func(recovered any, stack []byte) {
			tb.Errorf("a callback panicked: %v\n%s", recovered, stack)
		},
	})
	if err := h.Loop.Start((*host)(h)); err != nil {
		tb.Fatalf("start: %v", err)
	}
	h.Loop.Hold() // the harness's I/O: Iterate runs an iteration even if nothing else is alive
	h.Iterate()   // the iteration for which Start has woken the host
	tb.Cleanup(h.Stop)
	return h
}

// Iterate runs one iteration, which does not wait. It fails the test within a callback.
func (h *Harness) Iterate() {
	h.tb.Helper()
	defer AllowFailNow(h.tb)
	_, err := h.Loop.Run(loop.RunNoWait, func(time.Duration) {
		if h.OnPoll != nil {
			h.OnPoll()
		}
	})
	if err != nil {
		h.tb.Fatalf("iterate: %v", err)
	}
}

// AllowFailNow, deferred directly around a call of Loop.Run, lets callbacks use FailNow
// and package require. FailNow calls runtime.Goexit, at which the loop ends the process.
// With AllowFailNow only the failed test ends.
func AllowFailNow(tb testing.TB) {
	if r := recover(); r != nil && !(r == any(loop.ErrGoexit) && (tb.Failed() || tb.Skipped())) {
		panic(r)
	}
}

// Settle runs iterations until no post, deferred work, close callback or due timer is
// pending. The clock stands still.
func (h *Harness) Settle() {
	h.tb.Helper()
	for range settleMax {
		h.Iterate()
		if !h.pending() {
			return
		}
	}
	h.tb.Fatalf("the loop does not settle: still busy after %d iterations", settleMax)
}

func (h *Harness) pending() bool {
	return h.Loop.Pending() || h.Loop.Due().Passed(h.Clock.Now())
}

// Advance settles, then moves the clock by d. It stops and settles at each instant at
// which a timer is due.
func (h *Harness) Advance(d time.Duration) {
	h.tb.Helper()
	end := h.Clock.Now().Add(d)
	h.Settle()
	for {
		step := end.Earlier(h.Loop.Due())
		h.Clock.Advance(step.Sub(h.Clock.Now()))
		h.Settle()
		if step == end {
			return
		}
	}
}

// Stop stops the loop and runs it to its end. A second Stop does nothing.
func (h *Harness) Stop() {
	h.tb.Helper()
	h.Loop.Stop()
	for range settleMax {
		select {
		case <-h.Loop.Done():
			return
		default:
			h.Iterate()
		}
	}
	h.tb.Fatalf("the loop does not end: still busy after %d iterations", settleMax)
}

// host is the harness as the loop sees it.
type host Harness

func (*host) Wake() {}

func (h *host) Flush() {
	if h.OnFlush != nil {
		h.OnFlush()
	}
}

func (h *host) Drain() (pending bool) {
	return h.OnDrain != nil && h.OnDrain()
}

func (*host) Finish(done func()) { done() }
