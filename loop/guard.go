package loop

import "runtime/debug"

// groupSize is how many posts (or deferred functions, or close callbacks) share
// one measurement. Reading the clock costs about as much as a post: 26 ns.
const groupSize = 8

// runAll runs fns in order. One that panics does not keep the others from running.
func (l *Loop) runAll(fns []func()) {
	for next := 0; next < len(fns); {
		next = l.runFrom(fns, next)
	}
}

// runFrom runs fns from next on until one panics, and returns where to go on: a
// deferred recover for each batch, not for each function.
func (l *Loop) runFrom(fns []func(), next int) (resume int) {
	resume = next
	defer l.Contain()
	for resume < len(fns) {
		fn := fns[resume]
		resume++
		fn()
		if resume%groupSize == 0 {
			l.measure()
		}
	}
	return resume
}

// Contain, deferred directly, contains a panic as that of a callback: counted, reported, and
// gone. The loop does so around each callback; who calls several functions of others
// in one callback does so around each, so that one does no harm to the next.
func (l *Loop) Contain() {
	if r := recover(); r != nil {
		l.panicked(r)
	}
	l.measure()
}

// panicked counts and reports a panic. Called before its stack is unwound.
func (l *Loop) panicked(recovered any) {
	l.count.Panics++
	if l.onPanic != nil {
		l.onPanic(recovered, debug.Stack())
	}
}

// measure ends the measurement of a callback, and begins that of the next.
func (l *Loop) measure() {
	now := l.clock.Now()
	l.count.LongestCallback = max(l.count.LongestCallback, now.Sub(l.mark))
	l.mark = now
}
