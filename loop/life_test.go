package loop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
)

func TestStopOnTheLoopRunsWhatWasAccepted(t *testing.T) {
	v := newVirtual(t)
	var j journal
	startTimer(t, v.NewTimer(j.note("timer")), ms, 0)
	v.Post(func() {
		v.Post(j.note("posted before"))
		v.Stop()
		assert.False(t, v.Post(j.note("posted after")))
		v.Defer(j.note("deferred"))
		v.NewTimer(nil).Close(j.note("closed"))
	})
	assert.False(t, v.run())
	<-v.Done()
	assert.Equal(t, journal{"deferred", "closed", "posted before"}, j)
}

func TestPostInTheFinalDrainIsRefused(t *testing.T) {
	v := newVirtual(t)
	refused := false
	v.Post(func() { refused = !v.Post(func() { t.Error("ran") }) })
	v.Stop()
	v.run()
	assert.True(t, refused)
}

// The iteration in which Stop is called finishes. Hooks run until the accepted posts have run.
// No timers phase begins any more.
func TestStopLetsThePresentIterationFinish(t *testing.T) {
	for where, want := range map[string]journal{
		"timer":   {"timer", "due, too", "idle", "prepare", "post", "check"},
		"idle":    {"timer", "due, too", "idle", "prepare", "post", "check"},
		"prepare": {"timer", "due, too", "idle", "prepare", "post", "check"},
		"check":   {"timer", "due, too", "idle", "prepare", "check", "idle", "prepare", "post", "check"},
	} {
		t.Run(where, func(t *testing.T) {
			v := newVirtual(t)
			var j journal
			note := func(name string) func() {
				return func() {
					j = append(j, name)
					if name == where {
						v.Post(j.note("post"))
						v.Stop()
					}
				}
			}
			startTimer(t, v.NewTimer(func() {
				require.NoError(t, v.NewIdle(note("idle")).Start())
				require.NoError(t, v.NewPrepare(note("prepare")).Start())
				require.NoError(t, v.NewCheck(note("check")).Start())
				note("timer")()
			}), ms, 0)
			startTimer(t, v.NewTimer(note("due, too")), ms, 0)
			startTimer(t, v.NewTimer(note("later")), 2*ms, 0)
			assert.False(t, v.run())
			<-v.Done()
			assert.Equal(t, want, j)
		})
	}
}

// What a post of the last batch defers and closes still runs. So does what that work defers.
func TestWindDownRunsDeferredWorkAndCloseCallbacks(t *testing.T) {
	v := newVirtual(t)
	var j journal
	v.Post(func() {
		tm := v.NewTimer(nil)
		v.Defer(func() {
			j.note("deferred")()
			v.Defer(j.note("deferred again"))
			tm.Close(func() {
				j.note("closed")()
				v.Defer(j.note("deferred by close"))
			})
		})
	})
	v.Stop()
	v.run()
	assert.Equal(t, journal{"deferred", "closed", "deferred again", "deferred by close"}, j)
}

func TestWorkThatDefersItselfForeverDoesNotKeepTheLoopFromEnding(t *testing.T) {
	v := newVirtual(t)
	runs := 0
	var again func()
	again = func() { runs++; v.Defer(again) }
	v.Defer(again)
	v.Stop()
	assert.False(t, v.run())
	<-v.Done()
	assert.Positive(t, runs)
}

func TestHooksEndWithTheLoop(t *testing.T) {
	v := newVirtual(t)
	checks := 0
	require.NoError(t, v.NewCheck(func() { checks++ }).Start())
	require.NoError(t, v.NewPrepare(func() {}).Start())
	require.NoError(t, v.NewIdle(func() {}).Start())
	v.runNoWait()
	v.Stop()
	assert.False(t, v.run())
	assert.Equal(t, 2, checks, "in the last iteration still")
}

func ended(l *loop.Loop) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

func TestStopWaitsForTheHostToDrain(t *testing.T) {
	h := looptest.New(t)
	drained := false
	h.OnDrain = func() bool { return !drained }
	h.Loop.Stop()
	for range 100 {
		h.Iterate()
	}
	assert.False(t, ended(h.Loop), "the host had something on its way")
	assert.True(t, h.Loop.Alive())
	drained = true
	h.Iterate()
	<-h.Loop.Done()
}

// The loop sleeps while the host drains, until the host wakes it.
func TestStoppingLoopSleepsWhileTheHostDrains(t *testing.T) {
	v := newVirtual(t)
	pending := true
	v.drain = func() bool { return pending }
	v.Stop()
	assert.Negative(t, v.Iterate())
	assert.Negative(t, v.Iterate())
	pending = false
	v.Iterate()
	<-v.Done()
}

// Stop is called in a phase after the place at which the iteration winds down, alone or beside other work. The next
// poll does not wait until the end has come.
func TestStopFromAnyPhaseEndsTheLoop(t *testing.T) {
	works := map[string]func(*loop.Loop){
		"alone":            func(*loop.Loop) {},
		"deferred work":    func(l *loop.Loop) { l.Defer(func() {}) },
		"close callback":   func(l *loop.Loop) { l.Closing(func() {}) },
		"work for a flush": func(l *loop.Loop) { l.BeforeFlush(func() {}) },
	}
	for phase, cause := range causes {
		for name, work := range works {
			t.Run(phase+", "+name, func(t *testing.T) {
				v := newVirtual(t)
				v.Hold() // an iteration may wait forever
				v.runNoWait()
				cause(v, func() { v.Stop(); work(v.Loop) })
				for !ended(v.Loop) {
					wait := v.Iterate()
					require.True(t, ended(v.Loop) || wait == 0, "the loop would wait forever")
				}
			})
		}
	}
}

func TestStopNeverWaits(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	busy, release := make(chan struct{}), make(chan struct{})
	ran := false
	h.Post(func() { close(busy); <-release })
	h.Post(func() { ran = true })
	<-busy
	for range 3 {
		h.Stop() // would wait forever for release
	}
	assert.False(t, h.finished.Load())
	close(release)
	<-h.Done()
	assert.True(t, ran)
	assert.True(t, h.finished.Load())
	h.Stop()
}

func TestStopBeforeStartChangesNothing(t *testing.T) {
	l := loop.New(loop.Config{})
	l.Stop()
	assert.False(t, ended(l), "without having begun")
	h := &threaded{Loop: l, wake: make(chan struct{}, 1)}
	h.Hold()
	require.NoError(t, h.Start(h))
	go h.Run(loop.RunDefault, h.poll)
	h.do(t, func() {})
	h.end()
}

func TestStartTwiceAndStartAfterStop(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	require.NoError(t, h.Start(nil), "does nothing")
	h.do(t, func() {})
	h.end()
	assert.ErrorIs(t, h.Start(h), loop.ErrStopped)
	assert.False(t, h.Post(func() { t.Error("ran") }))
}

func TestRunBeforeStartDoesNothing(t *testing.T) {
	l := loop.New(loop.Config{})
	require.NoError(t, l.NewTimer(func() { t.Error("fired") }).Start(0, 0))
	alive, err := l.Run(loop.RunDefault, nil)
	assert.NoError(t, err)
	assert.False(t, alive)
	assert.False(t, l.Alive())
}

// Stop never waits, so the goroutine that is about to drive the loop may call it.
func TestStartStopRunOnOneGoroutine(t *testing.T) {
	l := loop.New(loop.Config{})
	h := &threaded{Loop: l, wake: make(chan struct{}, 1)}
	require.NoError(t, l.Start(h))
	ran := false
	require.True(t, l.Post(func() { ran = true }))
	l.Stop()
	alive, err := l.Run(loop.RunDefault, h.poll)
	assert.NoError(t, err)
	assert.False(t, alive)
	<-l.Done()
	assert.True(t, ran)
}
