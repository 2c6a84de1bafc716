package loopsim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// settleMax bounds the iterations at one instant. A loop that is still busy then will
// never settle.
const settleMax = 10_000

// A Sim is a started loop in virtual time, with the world around it. The goroutine that
// builds it is the loop goroutine. Loop only.
type Sim struct {
	Loop  *loop.Loop
	Clock *clock.Manual
	// OnFlush, if set, is called at the end of each iteration, where a host sends the bytes
	// that its connections have buffered.
	OnFlush func()
	// OnDrain, if set, is the host's Drain: see loop.Host.
	OnDrain func() (pending bool)

	rand    *rand.Rand
	onPanic func(recovered any, stack []byte)
	events  eventHeap
	seq     uint64
	batch   []event // of the present poll
	held    bool    // keeps the loop alive between events
}

// New returns a simulation that draws from rng. Its loop has started and run one
// iteration. onPanic receives each panic in a callback or event; the panic is contained.
func New(rng *rand.Rand, onPanic func(recovered any, stack []byte)) *Sim {
	s := &Sim{Clock: clock.NewManual(), rand: rng, onPanic: onPanic}
	s.Loop = loop.New(loop.Config{Clock: s.Clock, OnPanic: onPanic})
	if err := s.Loop.Start((*host)(s)); err != nil {
		panic(err) // a new loop starts
	}
	s.Loop.Hold()
	s.held = true
	s.Iterate()
	return s
}

// Now returns the present instant.
func (s *Sim) Now() clock.Time { return s.Clock.Now() }

// At makes fn run once as an I/O callback, in the first poll at or after t. Events of one instant run in random
// order. Once the loop has ended, events run outside it, as other goroutines would go on without it.
func (s *Sim) At(t clock.Time, fn func()) {
	s.seq++
	s.events.push(event{at: t, tie: s.rand.Uint32(), seq: s.seq, fn: fn})
}

// After is At for a delay from now.
func (s *Sim) After(d time.Duration, fn func()) { s.At(s.Now().Add(d), fn) }

// Iterate runs one iteration, which does not wait.
func (s *Sim) Iterate() {
	if s.Ended() {
		s.poll(s.runAlone)
		return
	}
	_, err := s.Loop.Run(loop.RunNoWait, func(time.Duration) { s.poll(s.runOnLoop) })
	if err != nil {
		panic(err) // a callback has called Iterate
	}
	if !s.Ended() {
		// The loop flushes right before it polls, which is at the next instant already.
		(*host)(s).Flush()
	}
}

// Settle runs iterations until nothing is left to do at this instant. It returns an error
// if the loop stays busy.
func (s *Sim) Settle() error {
	for range settleMax {
		s.Iterate()
		if !s.busy() {
			return nil
		}
	}
	return fmt.Errorf("the loop is still busy after %d iterations at one instant", settleMax)
}

// Next returns the due time of the next event or timer, and whether there is one.
func (s *Sim) Next() (at clock.Time, ok bool) {
	if len(s.events) > 0 {
		at = s.events[0].at
	}
	if due := s.Loop.Due(); due != clock.Never {
		at = at.Earlier(due)
	}
	return at, at != 0
}

// MoveTo moves the clock to an instant that is not in the past.
func (s *Sim) MoveTo(t clock.Time) {
	if d := t.Sub(s.Now()); d > 0 {
		s.Clock.Advance(d)
	}
}

// Stop stops the loop and runs it to its end. It returns an error if the loop does not end.
func (s *Sim) Stop() error {
	s.Loop.Stop()
	for range settleMax {
		if s.Ended() {
			return nil
		}
		s.Iterate()
	}
	return fmt.Errorf("the loop does not end within %d iterations", settleMax)
}

// Unhold ends the Hold by which events keep the loop alive. Loop.Alive then tells whether
// anything else does.
func (s *Sim) Unhold() {
	if s.held {
		s.held = false
		s.Loop.Release()
	}
}

// Ended reports whether the loop has ended.
func (s *Sim) Ended() bool {
	select {
	case <-s.Loop.Done():
		return true
	default:
		return false
	}
}

func (s *Sim) busy() bool {
	now := s.Now()
	return len(s.events) > 0 && s.events[0].at <= now ||
		!s.Ended() && (s.Loop.Pending() || s.Loop.Due().Passed(now))
}

// poll runs the events that are due when it begins.
func (s *Sim) poll(run func(fn func())) {
	now := s.Now()
	for len(s.events) > 0 && s.events[0].at <= now {
		s.batch = append(s.batch, s.events.pop())
	}
	for i := range s.batch {
		run(s.batch[i].fn)
	}
	clear(s.batch)
	s.batch = s.batch[:0]
}

func (s *Sim) runOnLoop(fn func()) { s.Loop.Event(fn) }

func (s *Sim) runAlone(fn func()) {
	defer func() {
		if r := recover(); r != nil {
			s.onPanic(r, debug.Stack())
		}
	}()
	fn()
}

// host is the simulation as the loop sees it.
type host Sim

// Wake implements loop.Host. It does nothing, because no poll waits.
func (*host) Wake() {}

// Flush implements loop.Host.
func (h *host) Flush() {
	if h.OnFlush != nil {
		h.OnFlush()
	}
}

// Drain implements loop.Host.
func (h *host) Drain() (pending bool) { return h.OnDrain != nil && h.OnDrain() }

// Finish implements loop.Host.
func (*host) Finish(done func()) { done() }
