package loop

import (
	"log/slog"
	"runtime/debug"
)

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
	l.depth++
	defer l.endBatch()
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

// endBatch, deferred directly, ends a batch of callbacks, of which the last may have panicked.
func (l *Loop) endBatch() {
	if r := recover(); r != nil {
		l.panicked(r)
	}
	l.depth--
	l.measure()
}

// call runs one callback of the host. It returns what the callback panicked with, if
// it did. The callback may be called within another one, of whose time its own is part.
func (l *Loop) call(fn func()) (recovered any) {
	returned := false
	l.depth++
	defer func() {
		if recovered = recover(); recovered != nil {
			l.panicked(recovered)
		}
		if l.depth--; l.depth == 0 {
			l.measure()
		}
		if !returned && recovered == nil {
			panic(ErrGoexit)
		}
	}()
	fn()
	returned = true
	return nil
}

// Contain, deferred directly, contains a panic as that of a callback: counted, reported, and
// gone. The loop does so around each callback; who calls several functions of others
// in one callback does so around each, so that one does no harm to the next.
func (l *Loop) Contain() {
	if r := recover(); r != nil {
		l.panicked(r)
	}
}

// panicked counts and reports a panic. Called before its stack is unwound.
func (l *Loop) panicked(recovered any) {
	l.count.Panics++
	l.onPanic(recovered, debug.Stack())
}

// logPanic is the OnPanic of a loop that was given none, so that no panic is silent.
func logPanic(recovered any, stack []byte) {
	slog.Error("panic in a callback of the loop, contained", "panic", recovered, "stack", string(stack))
}

// checkGoexit, deferred directly, panics if the Run or Turn that ends has not returned.
// Nothing can keep a goroutine alive that runs Goexit, and no other can take over: what
// the callback was doing is half done, and the host's poller ends with the goroutine. So
// the process ends, with the callback's stack, rather than accept posts that will never
// run. Goexit in a coroutine that a callback resumes arrives here, too: iter.Pull passes it on.
func (l *Loop) checkGoexit() {
	if !l.driven {
		return
	}
	l.driven = false
	if r := recover(); r != nil {
		panic(r) // of the host, or of OnPanic
	}
	panic(ErrGoexit)
}

// measure ends the measurement of a callback, and begins that of the next.
func (l *Loop) measure() {
	now := l.clock.Now()
	l.count.LongestCallback = max(l.count.LongestCallback, now.Sub(l.mark))
	l.mark = now
}
