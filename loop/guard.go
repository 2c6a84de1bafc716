package loop

import (
	"log/slog"
	"runtime/debug"
)

// groupSize is the number of posts (or deferred functions, or close callbacks) that share
// one measurement. Reading the clock costs about as much as a post: 26 ns.
const groupSize = 8

// runAll runs fns in order. A panic in one does not keep the others from running.
func (l *Loop) runAll(fns []func()) {
	for next := 0; next < len(fns); {
		next = l.runFrom(fns, next)
	}
}

// runFrom runs fns from next on until one panics, and returns where to go on. It defers
// one recover per batch instead of one per function.
func (l *Loop) runFrom(fns []func(), next int) (resume int) {
	resume = next
	l.depth++
	defer l.endBatch()
	for resume < len(fns) {
		if resume > next && resume%groupSize == 0 {
			l.measure()
		}
		fn := fns[resume]
		resume++
		fn()
	}
	return resume
}

// endBatch, deferred directly, ends a batch of callbacks, and the measurement of the last one. That
// one may have panicked.
func (l *Loop) endBatch() {
	if r := recover(); r != nil {
		l.panicked(r)
	}
	l.depth--
	l.measure()
}

// call runs one callback of the host and returns the value that it panicked with, or
// nil. Callbacks may nest; the time of the inner one counts for the outer one.
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

// Contain, deferred directly, counts, reports and ends a panic, as the loop does
// around each callback. A callback that calls several functions of others defers it
// around each, so that a panic in one does not harm the next. Loop only.
func (l *Loop) Contain() {
	if r := recover(); r != nil {
		l.Contained(r)
	}
}

// Contained counts and reports a panic that a callback has recovered from by itself. Loop only, within the deferred
// function that has recovered: the stack is that of the panic.
func (l *Loop) Contained(recovered any) { l.panicked(recovered) }

// panicked counts and reports a panic. Called before its stack is unwound.
func (l *Loop) panicked(recovered any) {
	l.count.Panics++
	l.onPanic(recovered, debug.Stack())
}

// logPanic is the OnPanic of a loop that was given none, so that no panic is silent.
func logPanic(recovered any, stack []byte) {
	slog.Error("panic in a callback of the loop, contained", "panic", recovered, "stack", string(stack))
}

// checkGoexit, deferred directly, panics if Run or Iterate ends without returning.
// Nothing can keep a goroutine alive that runs Goexit. No other goroutine can take over:
// the callback is half done, and the host's poller ends with the goroutine. So the
// process ends, with the callback's stack, instead of accepting posts that will never
// run. Goexit in a coroutine that a callback resumes arrives here, too: iter.Pull passes it on.
func (l *Loop) checkGoexit() {
	if !l.driven {
		return
	}
	l.driven = false
	if r := recover(); r != nil {
		panic(r) // from the host, or from OnPanic
	}
	panic(ErrGoexit)
}
