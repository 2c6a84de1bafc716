package loop

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// inactive is the position of a timer that is neither in the heap nor in the batch that
// is about to fire. A position in the batch is stored as batchPos(i).
const inactive = -1

func batchPos(i int) int { return -2 - i } // its own inverse

// A Timer calls a function once at a due time, or repeatedly. It can be started any
// number of times, and costs no allocation after NewTimer. Loop only.
type Timer struct {
	loop    *Loop
	fn      func()
	due     clock.Time // when it fires; has no meaning while inactive
	repeat  time.Duration
	pos     int // in the heap if >= 0; inactive; else batchPos of its index in Loop.due
	started bool
	closed  bool
}

// NewTimer returns an inactive timer that will call fn on the loop.
func (l *Loop) NewTimer(fn func()) *Timer {
	l.open++
	return &Timer{loop: l, fn: fn, pos: inactive}
}

// Start has the timer fire after delay, and then after every repeat if that is positive.
// The delay counts from the clock's present time, not from the loop's cached time. Start
// restarts an active timer. A negative delay counts as zero. Timers due at the same
// instant fire in the order of their starts. An error (ErrStopped, ErrHandleClosed,
// ErrNoCallback) leaves the timer as it was.
func (t *Timer) Start(delay, repeat time.Duration) error {
	return t.start(t.loop.clock.Now().Add(max(0, delay)), repeat)
}

// StartAt is Start for a deadline: the timer fires once, when the clock has reached due. A
// negative due has passed already. It never fires if due is clock.Never or zero ("none").
func (t *Timer) StartAt(due clock.Time) error {
	if due == 0 {
		due = clock.Never
	}
	return t.start(max(due, clock.First), 0)
}

// StartBy is StartAt for a timer that many deadlines share: one that fires at due or earlier stays as it is. Its function
// starts it again for the deadlines that are left.
func (t *Timer) StartBy(due clock.Time) error {
	if t.Active() && t.due <= due {
		return nil
	}
	return t.StartAt(due)
}

func (t *Timer) start(due clock.Time, repeat time.Duration) error {
	switch {
	case t.closed:
		return ErrHandleClosed
	case t.fn == nil:
		return ErrNoCallback
	case t.loop.phase.Load() >= stopping:
		return ErrStopped
	}
	t.Stop()
	t.started = true
	t.due, t.repeat = due, max(0, repeat)
	t.loop.timerSeq++
	t.loop.timers.push(timerEntry{due, t.loop.timerSeq, t})
	return nil
}

// Stop makes the timer inactive. It does not fire, not even if it is due already and other
// timers fire before it in this iteration.
func (t *Timer) Stop() {
	switch {
	case t.pos >= 0:
		t.loop.timers.remove(t.pos)
	case t.pos != inactive:
		t.loop.due[batchPos(t.pos)] = nil
		t.pos = inactive
	}
}

// Again restarts the timer with its repeat as the delay. It does nothing if the timer
// does not repeat. Errors: ErrNeverStarted, and the errors of Start.
func (t *Timer) Again() error {
	if !t.started {
		return ErrNeverStarted
	}
	if t.repeat == 0 {
		return nil
	}
	return t.Start(t.repeat, t.repeat)
}

// SetRepeat sets the period, 0 for none. It takes effect after the timer has fired next.
// The next time is already set within the timer's own callback.
func (t *Timer) SetRepeat(repeat time.Duration) { t.repeat = max(0, repeat) }

// Repeat returns the period, 0 for none.
func (t *Timer) Repeat() time.Duration { return t.repeat }

// Active reports whether the timer will fire. A timer that does not repeat is inactive
// within its own callback.
func (t *Timer) Active() bool { return t.pos != inactive }

// DueIn returns the time from the loop's cached now until the timer fires. It returns 0 if
// the timer is inactive or overdue, and at most about 292 years.
func (t *Timer) DueIn() time.Duration {
	if !t.Active() {
		return 0
	}
	return max(0, t.due.Sub(t.loop.now))
}

// Due returns when the timer fires or, if it is inactive, when it was to fire last.
func (t *Timer) Due() clock.Time { return t.due }

// Close stops the timer for good. onClosed, which may be nil, is called once,
// later, in the closing phase. A second Close does nothing.
func (t *Timer) Close(onClosed func()) {
	if t.closed {
		return
	}
	t.Stop()
	t.closed = true
	t.loop.closeHandle(onClosed)
}

// runTimers fires the timers that are due at the cached now. It moves them out of the heap
// first, so that a timer started by a callback waits for the next iteration.
func (l *Loop) runTimers() {
	for l.timers.len() > 0 && l.timers.first() <= l.now {
		t := l.timers.pop()
		t.pos = batchPos(len(l.due))
		l.due = append(l.due, t)
	}
	for next := 0; next < len(l.due); {
		next = l.fireFrom(next)
	}
	l.due = reuse(l.due)
}

// fireFrom fires the batch from next on until a callback panics, and returns where to go
// on.
func (l *Loop) fireFrom(next int) (resume int) {
	resume = next
	l.depth++
	defer l.endBatch()
	for fired := false; resume < len(l.due); {
		t := l.due[resume]
		resume++
		if t == nil {
			continue
		}
		if fired {
			l.measure()
		}
		fired = true
		t.fire()
	}
	return resume
}

// fire sets the timer's next time, then calls its function.
func (t *Timer) fire() {
	l := t.loop
	t.pos = inactive
	if l.now.Sub(t.due) > l.lateAfter {
		l.count.LateTimers++
	}
	if t.repeat > 0 {
		// The period counts from now, not from the due time: missed periods collapse into
		// one call. start fails only on a stopping loop, where no timer shall fire.
		_ = t.start(l.now.Add(t.repeat), t.repeat)
	}
	t.fn()
}

// dropTimers makes all timers inactive without firing them.
func (l *Loop) dropTimers() {
	for l.timers.len() > 0 {
		l.timers.last().Stop()
	}
}
