package loop

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// inactive is the position of a timer that is neither in the heap nor in the
// batch that is about to fire. A position in the batch is stored as batchPos(i).
const inactive = -1

func batchPos(i int) int { return -2 - i } // its own inverse

// A Timer calls a function once at a due time, or again and again. It can be
// started any number of times and costs no allocation after NewTimer. Loop only.
type Timer struct {
	loop    *Loop
	fn      func()
	due     clock.Time // when it fires; meaningless while inactive
	repeat  time.Duration
	pos     int // >= 0: in the heap; inactive; else batchPos of its place in the due batch
	started bool
	closed  bool
}

// NewTimer returns an inactive timer that will call fn on the loop.
func (l *Loop) NewTimer(fn func()) *Timer {
	l.open++
	return &Timer{loop: l, fn: fn, pos: inactive}
}

// Start has the timer fire after delay, counted from the clock's present time
// (not the loop's cached one), and from then on every repeat if that is positive.
// A started timer is started anew. A negative delay counts as zero. Timers due at
// the same instant fire in the order of their starts. Errors: ErrStopped,
// ErrHandleClosed, ErrNoCallback; the timer is then as it was.
func (t *Timer) Start(delay, repeat time.Duration) error {
	return t.start(t.loop.clock.Now().Add(max(0, delay)), repeat)
}

// StartAt is Start for a deadline: the timer fires once, when the clock has
// reached due. A negative due has passed. clock.Never and zero ("none") never fire.
func (t *Timer) StartAt(due clock.Time) error {
	if due == 0 {
		due = clock.Never
	}
	return t.start(max(due, clock.First), 0)
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

// Stop makes the timer inactive: it does not fire, not even if it is due already
// and waits for its turn among the timers that fire now.
func (t *Timer) Stop() {
	switch {
	case t.pos >= 0:
		t.loop.timers.remove(t.pos)
	case t.pos != inactive:
		t.loop.due[batchPos(t.pos)] = nil
		t.pos = inactive
	}
}

// Again starts the timer anew with its repeat as the delay. It does nothing if the
// timer does not repeat. Errors: ErrNeverStarted, and those of Start.
func (t *Timer) Again() error {
	if !t.started {
		return ErrNeverStarted
	}
	if t.repeat == 0 {
		return nil
	}
	return t.Start(t.repeat, t.repeat)
}

// SetRepeat sets the period, 0 for none, from the next time on that the timer
// fires. Within the timer's own callback that time is already set.
func (t *Timer) SetRepeat(repeat time.Duration) { t.repeat = max(0, repeat) }

// Repeat returns the period, 0 for none.
func (t *Timer) Repeat() time.Duration { return t.repeat }

// Active reports whether the timer is going to fire. A timer that does not repeat
// is inactive within its own callback.
func (t *Timer) Active() bool { return t.pos != inactive }

// DueIn returns the time from the loop's cached now until the timer fires: 0 if
// it is inactive or overdue, about 292 years if its delay was more than that.
func (t *Timer) DueIn() time.Duration {
	if !t.Active() {
		return 0
	}
	return max(0, t.due.Sub(t.loop.now))
}

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

// runTimers fires what is due at the cached now. All of it is moved out of the
// heap first, so that a timer started by a callback waits for the next iteration.
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

// fireFrom fires the batch from next on until a callback panics, and returns
// where to go on.
func (l *Loop) fireFrom(next int) (resume int) {
	resume = next
	l.depth++
	defer l.endBatch()
	for resume < len(l.due) {
		t := l.due[resume]
		resume++
		if t != nil {
			t.fire()
			l.measure()
		}
	}
	return resume
}

// fire calls the timer's function, after having set its next time.
func (t *Timer) fire() {
	l := t.loop
	t.pos = inactive
	if l.now.Sub(t.due) > l.lateAfter {
		l.count.LateTimers++
	}
	if t.repeat > 0 {
		// From now, not from when it was due: periods that were missed collapse into
		// one call. A loop that was stopped meanwhile refuses, and that is fine.
		_ = t.start(l.now.Add(t.repeat), t.repeat)
	}
	t.fn()
}

// dropTimers makes all timers inactive, unfired.
func (l *Loop) dropTimers() {
	for l.timers.len() > 0 {
		l.timers.last().Stop()
	}
}
