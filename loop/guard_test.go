package loop_test

import (
	"bytes"
	"iter"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop"
)

// drives are the ways in which a host drives a loop.
var drives = map[string]func(v *virtual){
	"run":     func(v *virtual) { _, _ = v.Run(loop.RunNoWait, v.poll) },
	"iterate": func(v *virtual) { v.Iterate() },
}

// apart runs fn on another goroutine. It returns what fn panicked with, and whether fn
// returned.
func apart(fn func()) (recovered any, returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recovered = recover() }()
		fn()
		returned = true
	}()
	<-done
	return recovered, returned
}

// A callback that ends its goroutine ends the process. Nobody contains that panic.
func TestGoexitInACallbackPanics(t *testing.T) {
	for phase, cause := range causes {
		for name, drive := range drives {
			t.Run(phase+" "+name, func(t *testing.T) {
				v := newVirtual(t)
				cause(v, runtime.Goexit)
				recovered, returned := apart(func() { drive(v) })
				assert.Equal(t, loop.ErrGoexit, recovered)
				assert.False(t, returned)
				assert.Empty(t, v.panics)
			})
		}
	}
}

func TestGoexitInACoroutineOfACallbackPanics(t *testing.T) {
	for name, drive := range drives {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(t)
			v.Post(func() {
				next, stop := iter.Pull(func(func(int) bool) { runtime.Goexit() })
				defer stop()
				defer v.Contain() // contains panics only
				next()
			})
			recovered, _ := apart(func() { drive(v) })
			assert.Equal(t, loop.ErrGoexit, recovered)
		})
	}
}

func TestGoexitInAnIOCallbackPanics(t *testing.T) {
	v := newVirtual(t)
	recovered, returned := apart(func() { v.Event(runtime.Goexit) })
	assert.Equal(t, loop.ErrGoexit, recovered)
	assert.False(t, returned)
}

// The loop contains panics of callbacks. A panic of the host itself passes through.
func TestPanicOfTheHostPassesThrough(t *testing.T) {
	v := newVirtual(t)
	v.drain = func() bool { panic("host") }
	v.Stop()
	for name, drive := range drives {
		assert.PanicsWithValue(t, "host", func() { drive(v) }, name)
	}
}

func TestNestedRunIsRefused(t *testing.T) {
	for phase, cause := range causes {
		t.Run(phase, func(t *testing.T) {
			v := newVirtual(t)
			v.Hold()
			fired := 0
			cause(v, func() {
				_, err := v.Run(loop.RunNoWait, v.poll)
				assert.ErrorIs(t, err, loop.ErrNested)
				assert.PanicsWithValue(t, loop.ErrNested, func() { v.Iterate() })
			})
			for range 3 {
				startTimer(t, v.NewTimer(func() {
					fired++
					_, err := v.Run(loop.RunNoWait, v.poll)
					assert.ErrorIs(t, err, loop.ErrNested)
				}), 0, 0)
			}
			v.runNoWait()
			assert.Equal(t, 3, fired, "each timer once")
			assert.Len(t, v.waits, 1, "one iteration")
		})
	}
}

func TestNestedRunInAnIOCallbackOrThePollIsRefused(t *testing.T) {
	v := newVirtual(t)
	v.Hold()
	calls := 0
	v.Event(func() { // of a push host
		calls++
		_, err := v.Run(loop.RunNoWait, v.poll)
		assert.ErrorIs(t, err, loop.ErrNested)
		assert.PanicsWithValue(t, loop.ErrNested, func() { v.Iterate() })
	})
	v.onPoll = func(_ time.Duration) {
		calls++
		_, err := v.Run(loop.RunNoWait, v.poll)
		assert.ErrorIs(t, err, loop.ErrNested)
		assert.PanicsWithValue(t, loop.ErrNested, func() { v.Iterate() })
	}
	v.runNoWait()
	assert.Equal(t, 2, calls)
}

func TestIterationOutsideOfTheLoopsLifeDoesNothing(t *testing.T) {
	assert.Negative(t, loop.New(loop.Config{}).Iterate(), "before Start")
	v := newVirtual(t)
	require.NoError(t, v.Close())
	assert.Negative(t, v.Iterate(), "after Close")
	v = newVirtual(t)
	v.Stop()
	assert.Negative(t, v.Iterate(), "the last one")
	<-v.Done()
	assert.Negative(t, v.Iterate(), "after the end")
	assert.Zero(t, v.Metrics().Panics)
}

func TestLongestCallback(t *testing.T) {
	contained := func(v *virtual, fn func()) {
		defer v.Contain()
		fn()
	}
	for name, inner := range map[string]func(v *virtual, fn func()){
		"plain":                             func(v *virtual, fn func()) { fn() },
		"contains a call":                   contained,
		"contains a panic":                  func(v *virtual, fn func()) { contained(v, func() { fn(); panic("inner") }) },
		"the host calls back":               func(v *virtual, fn func()) { v.Event(fn) },
		"a callback of the host panics":     func(v *virtual, fn func()) { v.Event(func() { fn(); panic("inner") }) },
		"the host calls back, several":      func(v *virtual, fn func()) { v.Event(func() {}); v.Event(fn); v.Event(func() {}) },
		"the host calls back within a call": func(v *virtual, fn func()) { v.Event(func() { v.Event(fn) }) },
	} {
		for phase, cause := range causes {
			t.Run(name+", "+phase, func(t *testing.T) {
				v := newVirtual(t)
				cause(v, func() {
					v.clock.Advance(10 * ms)
					inner(v, func() { v.clock.Advance(20 * ms) })
					v.clock.Advance(12 * ms)
				})
				v.runNoWait()
				v.runNoWait()
				assert.Equal(t, 42*ms, v.Metrics().LongestCallback)
				assert.Equal(t, 42*ms, v.Metrics().CallbackTime.Max)
			})
		}
	}
}

func TestLongestCallbackOfTheHost(t *testing.T) {
	v := newVirtual(t)
	v.Event(func() { v.clock.Advance(10 * ms) })
	v.Event(func() {
		v.clock.Advance(10 * ms)
		v.Event(func() { v.clock.Advance(20 * ms) })
	})
	v.Iterate()
	assert.Equal(t, 30*ms, v.Metrics().LongestCallback)
}

// A loop without OnPanic logs a panic with the stack. The test is not parallel, because the log
// belongs to the process.
func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	l := loop.New(loop.Config{})
	func() {
		defer l.Contain()
		panic("a bug of a callback")
	}()
	assert.Contains(t, log.String(), "a bug of a callback")
	assert.Contains(t, log.String(), "TestPanicIsLogged", "the stack")
}
