package loop_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

func TestWakesFromAnotherGoroutine(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	ran := make(chan int)
	calls := 0
	for want := 1; want <= 3; want++ {
		require.True(t, h.Post(func() { calls++; ran <- calls }))
		assert.Equal(t, want, <-ran)
	}
	h.end()
	assert.False(t, h.Post(func() { t.Error("ran after the end") }))
	assert.Equal(t, 3, calls)
}

func TestWakesCoalesceAndPostsAreAllDelivered(t *testing.T) {
	const posts = 1000
	v := newVirtual(t)
	v.Hold()
	v.runNoWait()
	delivered, checks, wakes := 0, 0, 0
	check := v.NewCheck(func() { checks++ })
	require.NoError(t, check.Start())
	v.onPoll = func(wait time.Duration) {
		assert.Negative(t, wait)
		before := v.wakes
		for range posts {
			v.Post(func() { delivered++ })
			v.Post(nil)
		}
		wakes = v.wakes - before
	}
	v.runOnce()
	assert.Equal(t, 1, wakes)
	assert.Equal(t, posts, delivered)
	assert.Equal(t, 1, checks)
}

func TestPostToAnAwakeLoopWakesNobody(t *testing.T) {
	v := newVirtual(t)
	ran := 0
	v.Post(func() {
		before := v.wakes
		for range 100 {
			v.Post(func() { ran++ })
		}
		assert.Equal(t, before, v.wakes)
	})
	v.run()
	assert.Equal(t, 100, ran)
}

func TestWakeWithoutWorkCompletesAnIteration(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	checked := make(chan struct{}, 1)
	h.do(t, func() {
		check := h.NewCheck(func() {
			select {
			case checked <- struct{}{}:
			default:
			}
		})
		require.NoError(t, check.Start())
	})
	<-checked // of the iteration that started it
	require.True(t, h.Post(nil))
	<-checked
}

// A post without work that arrives after the iteration has taken its posts causes another
// iteration.
func TestWakeWithoutWorkFromAnyPhaseCompletesAnIteration(t *testing.T) {
	for phase, cause := range causes {
		t.Run(phase, func(t *testing.T) {
			v := newVirtual(t)
			v.Hold() // an iteration may wait forever
			posted := false
			cause(v, func() {
				posted = true
				assert.True(t, v.Post(nil))
				assert.Equal(t, 1, v.Metrics().PostsPending)
			})
			var after []time.Duration
			v.onPoll = func(wait time.Duration) {
				if posted {
					after = append(after, wait)
					v.Stop()
				}
			}
			v.run()
			assert.Equal(t, []time.Duration{0}, after, "the poll that follows does not wait")
		})
	}
}

func TestWakeWithoutWorkKeepsTheLoopAlive(t *testing.T) {
	v := newVirtual(t)
	startTimer(t, v.NewTimer(func() { v.Post(nil) }), ms, 0)
	assert.True(t, v.runOnce())
	assert.False(t, v.runOnce())
}

func TestPostFromAPostRunsInALaterIterationAfterIOAndTimers(t *testing.T) {
	h := looptest.New(t)
	var j journal
	h.OnPoll = j.note("io")
	startTimer(t, h.Loop.NewTimer(j.note("timer")), 0, 0)
	h.Loop.Post(func() {
		j.note("post")()
		h.Loop.Post(j.note("nested"))
	})
	h.Iterate()
	h.Iterate()
	assert.Equal(t, journal{"io", "post", "timer", "io", "nested"}, j)
}

func TestSelfPostingTaskStarvesNeitherIONorTimers(t *testing.T) {
	h := looptest.New(t)
	polls, posts, fired := 0, 0, 0
	h.OnPoll = func() { polls++; h.Clock.Advance(ms) }
	startTimer(t, h.Loop.NewTimer(func() { fired++ }), 10*ms, 10*ms)
	var again func()
	again = func() { posts++; h.Loop.Post(again) }
	h.Loop.Post(again)
	for range 100 {
		h.Iterate()
	}
	assert.Equal(t, 100, polls)
	assert.Equal(t, 100, posts)
	assert.Equal(t, 10, fired)
}

func TestNoWakeAfterTheEnd(t *testing.T) {
	for range 50 {
		h := newThreaded(t, loop.Config{})
		var posters sync.WaitGroup
		for range 4 {
			posters.Go(func() {
				for h.Post(func() {}) {
				}
			})
		}
		h.end()
		posters.Wait()
		assert.False(t, h.lateWake.Load())
	}
}

func TestIdleHookStarvesNoTimer(t *testing.T) {
	v := newVirtual(t)
	idles := 0
	idle := v.NewIdle(func() { idles++ })
	require.NoError(t, idle.Start())
	v.onPoll = func(wait time.Duration) {
		assert.Zero(t, wait, "the poll does not wait while an idle hook is active")
		v.clock.Advance(ms)
	}
	fired := false
	startTimer(t, v.NewTimer(func() { fired = true; idle.Stop() }), 50*ms, 0)
	v.run()
	assert.True(t, fired)
	assert.Equal(t, 50, idles)
}

// As in libuv, an iteration that begins with an idle hook does not wait in RunOnce. In
// RunDefault it depends on the hooks that are left after the idle phase.
func TestIdleHookThatStopsItself(t *testing.T) {
	for name, tc := range map[string]struct {
		mode loop.RunMode
		want time.Duration
	}{
		"once":    {loop.RunOnce, 0},
		"default": {loop.RunDefault, 5 * ms},
		"no wait": {loop.RunNoWait, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(t)
			tm := v.NewTimer(func() {})
			startTimer(t, tm, 5*ms, 0)
			causes["idle"](v, func() {})
			v.in(tc.mode)
			assert.Equal(t, []time.Duration{tc.want}, v.waits)
		})
	}
}

// libuv, too, decides whether the loop is alive before it runs these timers.
func TestDueTimersAloneMakeOneIteration(t *testing.T) {
	v := newVirtual(t)
	fired := 0
	startTimer(t, v.NewTimer(func() { fired++ }), 0, 0)
	assert.False(t, v.run())
	assert.Equal(t, 1, fired)
	assert.Equal(t, []time.Duration{0}, v.waits)
	assert.EqualValues(t, 1, v.Metrics().Iterations)
	v.run()
	assert.EqualValues(t, 1, v.Metrics().Iterations, "nothing is alive now")
}

func TestDeferredWorkRunsOnceAtTheEndBeforeCloseCallbacks(t *testing.T) {
	h := looptest.New(t)
	var j journal
	h.OnPoll = func() {
		if len(j) == 0 {
			j.note("io")()
			h.Loop.NewTimer(nil).Close(j.note("closed"))
			h.Loop.Defer(j.note("deferred 1"))
			h.Loop.Defer(j.note("deferred 2"))
		}
	}
	h.Loop.Post(j.note("post"))
	h.Iterate()
	h.Iterate()
	assert.Equal(t, journal{"io", "post", "deferred 1", "deferred 2", "closed"}, j)
}

func TestCheckHooksRunBeforeDeferredWork(t *testing.T) {
	h := looptest.New(t)
	var j journal
	require.NoError(t, h.Loop.NewCheck(j.note("check 1")).Start())
	require.NoError(t, h.Loop.NewCheck(func() {
		j.note("check 2")()
		h.Loop.Defer(j.note("deferred by a check"))
	}).Start())
	h.OnPoll = func() { h.Loop.Defer(j.note("deferred by io")) }
	h.Loop.Post(func() { h.Loop.Defer(j.note("deferred by a post")) })
	h.Iterate()
	assert.Equal(t, journal{"check 1", "check 2", "deferred by io", "deferred by a post", "deferred by a check"}, j)
}

func TestWhatDeferredWorkDefersWaitsForTheNextIteration(t *testing.T) {
	v := newVirtual(t)
	var j journal
	v.onPoll = func(wait time.Duration) {
		assert.Zero(t, wait, "the poll does not wait while work is deferred")
		j.note("poll")()
	}
	startTimer(t, v.NewTimer(func() {
		v.Defer(func() {
			j.note("first")()
			v.Defer(j.note("second"))
		})
	}), 0, 0)
	v.run()
	assert.Equal(t, journal{"poll", "first", "poll", "second"}, j)
}

func TestCheckRunsBeforeCloseCallbacks(t *testing.T) {
	v := newVirtual(t)
	var j journal
	a, b, c := v.NewTimer(nil), v.NewTimer(nil), v.NewTimer(nil)
	var check *loop.Hook
	check = v.NewCheck(func() {
		j.note("check")()
		b.Close(j.note("b closed"))
		c.Close(j.note("c closed"))
		check.Close(nil)
	})
	startTimer(t, v.NewTimer(func() {
		a.Close(j.note("a closed"))
		require.NoError(t, check.Start())
	}), 0, 0)
	v.run()
	assert.Equal(t, journal{"check", "a closed", "b closed", "c closed"}, j)
}

// kinds are the makers of each kind of hook.
var kinds = map[string]func(*loop.Loop, func()) *loop.Hook{
	"idle": (*loop.Loop).NewIdle, "prepare": (*loop.Loop).NewPrepare, "check": (*loop.Loop).NewCheck,
}

func TestHookStartedByAHookWaitsForTheNextIteration(t *testing.T) {
	for kind, newHook := range kinds {
		t.Run(kind, func(t *testing.T) {
			h := looptest.New(t)
			var j journal
			second := newHook(h.Loop, j.note("second"))
			first := newHook(h.Loop, func() {
				j.note("first")()
				_ = second.Start()
			})
			require.NoError(t, first.Start())
			h.Iterate()
			assert.Equal(t, journal{"first"}, j)
			h.Iterate()
			assert.Equal(t, journal{"first", "first", "second"}, j)
		})
	}
}

func TestHookThatStopsOrClosesItselfOrASibling(t *testing.T) {
	for kind, newHook := range kinds {
		for _, tc := range []struct {
			name string
			act  func(first, second *loop.Hook, onClosed func())
			want journal // of two iterations
		}{
			{"stops itself", func(a, b *loop.Hook, _ func()) { a.Stop() },
				journal{"first", "second", "third", "second", "third"}},
			{"closes itself", func(a, b *loop.Hook, f func()) { a.Close(f); a.Close(f) },
				journal{"first", "second", "third", "closed", "second", "third"}},
			{"stops its sibling", func(a, b *loop.Hook, _ func()) { b.Stop() },
				journal{"first", "third", "first", "third"}},
			{"closes its sibling", func(a, b *loop.Hook, f func()) { b.Close(f); b.Close(f) },
				journal{"first", "third", "closed", "first", "third"}},
			{"restarts itself", func(a, b *loop.Hook, _ func()) { a.Stop(); _ = a.Start() },
				journal{"first", "second", "third", "second", "third", "first"}},
		} {
			t.Run(kind+" "+tc.name, func(t *testing.T) {
				h := looptest.New(t)
				var j journal
				var first, second *loop.Hook
				first = newHook(h.Loop, func() {
					j.note("first")()
					tc.act(first, second, j.note("closed"))
				})
				second = newHook(h.Loop, j.note("second"))
				third := newHook(h.Loop, j.note("third"))
				for _, hook := range []*loop.Hook{first, second, third} {
					require.NoError(t, hook.Start())
				}
				h.Iterate()
				h.Iterate()
				assert.Equal(t, tc.want, j)
			})
		}
	}
}

func TestHookStartRefusals(t *testing.T) {
	h := looptest.New(t)
	hook := h.Loop.NewCheck(func() {})
	assert.ErrorIs(t, h.Loop.NewCheck(nil).Start(), loop.ErrNoCallback)
	require.NoError(t, hook.Start())
	require.NoError(t, hook.Start(), "an active hook stays as it is")
	assert.True(t, hook.Active())
	hook.Close(nil)
	assert.False(t, hook.Active())
	assert.ErrorIs(t, hook.Start(), loop.ErrHandleClosed)
	other := h.Loop.NewCheck(func() {})
	require.NoError(t, other.Start())
	h.Stop()
	assert.False(t, other.Active())
	assert.ErrorIs(t, other.Start(), loop.ErrStopped)
}

func TestNothingIsCalledFromWithinTheCallThatCausedIt(t *testing.T) {
	h := looptest.New(t)
	inside := false
	calls := 0
	callback := func() {
		calls++
		assert.False(t, inside)
	}
	hook := h.Loop.NewCheck(callback)
	h.Loop.Post(func() {
		inside = true
		startTimer(t, h.Loop.NewTimer(callback), 0, 0)
		h.Loop.Post(callback)
		h.Loop.Defer(callback)
		h.Loop.NewTimer(nil).Close(callback)
		require.NoError(t, hook.Start())
		inside = false
	})
	h.Settle()
	hook.Stop()
	assert.GreaterOrEqual(t, calls, 5)
}

func TestLifeOfATimer(t *testing.T) {
	h := looptest.New(t)
	tm := h.Loop.NewTimer(func() { t.Error("fired") })
	closed := 0
	assert.False(t, tm.Active())
	startTimer(t, tm, time.Second, 0)
	assert.True(t, tm.Active())
	tm.Stop()
	assert.False(t, tm.Active())
	startTimer(t, tm, time.Second, 0)
	tm.Close(func() { closed++ })
	assert.False(t, tm.Active())
	assert.Zero(t, closed, "not within the call")
	tm.Close(func() { closed++ })
	h.Advance(time.Minute)
	assert.Equal(t, 1, closed)
}

func TestAlive(t *testing.T) {
	v := newVirtual(t)
	nothing := func() {}
	assert.False(t, v.Alive())
	for name, begin := range map[string]func(){
		"timer":    func() { startTimer(t, v.NewTimer(nothing), ms, 0) },
		"post":     func() { v.Post(nothing) },
		"deferred": func() { v.Defer(nothing) },
		"closing":  func() { v.NewTimer(nil).Close(nil) },
		"request":  func() { v.Hold(); v.Defer(v.Release) },
		"hook": func() {
			var hook *loop.Hook
			hook = v.NewPrepare(func() { hook.Stop() })
			require.NoError(t, hook.Start())
		},
	} {
		begin()
		assert.True(t, v.Alive(), name)
		assert.False(t, v.run(), name)
		assert.False(t, v.Alive(), name)
	}
	assert.Panics(t, v.Release, "nothing is held")
}

func TestCloseIsRefusedWhileBusy(t *testing.T) {
	v := newVirtual(t)
	tm := v.NewTimer(nil)
	assert.ErrorIs(t, v.Close(), loop.ErrBusy, "an open handle, though inactive")
	tm.Close(nil)
	assert.ErrorIs(t, v.Close(), loop.ErrBusy, "its close callback is pending")
	v.run()
	v.Hold()
	assert.ErrorIs(t, v.Close(), loop.ErrBusy, "a request in flight")
	v.Release()
	v.Post(func() { assert.ErrorIs(t, v.Close(), loop.ErrBusy, "within an iteration") })
	assert.ErrorIs(t, v.Close(), loop.ErrBusy, "a pending post")
	v.run()
	assert.NoError(t, v.Close())
	assert.NoError(t, v.Close())
	<-v.Done()
	assert.False(t, v.Post(func() {}))
	assert.ErrorIs(t, v.Start(v), loop.ErrStopped)
}

func TestCloseBeforeStart(t *testing.T) {
	l := loop.New(loop.Config{})
	require.NoError(t, l.Close())
	<-l.Done()
}

func TestIdleTime(t *testing.T) {
	v := newVirtual(t)
	v.runNoWait()
	startTimer(t, v.NewTimer(func() { v.clock.Advance(600 * ms) }), 1000*ms, 0)
	v.onPoll = func(time.Duration) {
		var m loop.Metrics
		var reader sync.WaitGroup
		reader.Go(func() { m = v.Metrics() })
		reader.Wait()
		assert.Equal(t, 1000*ms, m.Idle, "read by another goroutine, in the wait")
	}
	v.run()
	assert.Equal(t, 1000*ms, v.Metrics().Idle, "without the 600 ms of the callback")
}

func TestZeroTimerIsNotIdleTime(t *testing.T) {
	v := newVirtual(t)
	left := 10
	var tm *loop.Timer
	tm = v.NewTimer(func() {
		if left--; left == 0 {
			tm.Stop()
		} else {
			startTimer(t, tm, 0, 0)
		}
	})
	v.Post(func() { startTimer(t, tm, 0, 0) })
	v.run()
	m := v.Metrics()
	assert.Zero(t, m.Idle)
	assert.EqualValues(t, 10, m.Iterations, "the first call came in the iteration that started it")
}

func TestMetrics(t *testing.T) {
	v := newVirtual(t)
	v.Hold()
	for range 7 {
		v.Post(func() {})
	}
	assert.Equal(t, 7, v.Metrics().PostsPending)
	v.Post(func() { v.clock.Advance(30 * ms) })
	v.onPoll = func(time.Duration) {
		for range 3 {
			_, recovered := v.Event(func() {})
			assert.Nil(t, recovered)
		}
	}
	startTimer(t, v.NewTimer(func() {}), 5*ms, 0)
	v.runNoWait()
	v.runNoWait()
	m := v.Metrics()
	assert.Zero(t, m.PostsPending)
	assert.Equal(t, 8, m.PostsPendingMax)
	assert.EqualValues(t, 6, m.Events)
	assert.EqualValues(t, 2, m.Iterations)
	assert.Equal(t, 30*ms, m.LongestCallback)
	assert.EqualValues(t, 1, m.LateTimers, "25 ms late")
}

func TestLateAfter(t *testing.T) {
	c := clock.NewManual()
	v := &virtual{t: t, clock: c, Loop: loop.New(loop.Config{Clock: c, LateAfter: 50 * ms})}
	require.NoError(t, v.Start(v))
	for _, delay := range []time.Duration{100, 101} { // due 51 and 50 ms before the run
		startTimer(t, v.NewTimer(func() {}), delay*ms, 0)
	}
	c.Advance(151 * ms)
	v.run()
	assert.EqualValues(t, 1, v.Metrics().LateTimers, "51 ms is late, 50 is not")
}

// causes are the ways to have the loop call a function once, by phase.
var causes = map[string]func(v *virtual, fn func()){
	"post":     func(v *virtual, fn func()) { v.Post(fn) },
	"deferred": func(v *virtual, fn func()) { v.Defer(fn) },
	"closing":  func(v *virtual, fn func()) { v.NewTimer(nil).Close(fn) },
	"timer":    func(v *virtual, fn func()) { startTimer(v.t, v.NewTimer(fn), 0, 0) },
	"check":    func(v *virtual, fn func()) { startOnce(v, (*loop.Loop).NewCheck, fn) },
	"prepare":  func(v *virtual, fn func()) { startOnce(v, (*loop.Loop).NewPrepare, fn) },
	"idle":     func(v *virtual, fn func()) { startOnce(v, (*loop.Loop).NewIdle, fn) },
}

// startOnce starts a hook that stops itself.
func startOnce(v *virtual, newHook func(*loop.Loop, func()) *loop.Hook, fn func()) {
	var hook *loop.Hook
	hook = newHook(v.Loop, func() { hook.Stop(); fn() })
	require.NoError(v.t, hook.Start())
}

func TestPanicsAreContained(t *testing.T) {
	boom := func() { panic("boom") }
	for phase, cause := range causes {
		t.Run(phase, func(t *testing.T) {
			v := newVirtual(t)
			before, after := 0, 0
			cause(v, func() { before++ })
			cause(v, boom)
			cause(v, func() { after++ })
			cause(v, boom)
			v.runNoWait()
			assert.Equal(t, 1, before)
			assert.Equal(t, 1, after)
			assert.Equal(t, []any{"boom", "boom"}, v.panics)
			assert.EqualValues(t, 2, v.Metrics().Panics)
		})
	}
}

func TestPanicReportCarriesTheStack(t *testing.T) {
	var stack []byte
	h := newThreaded(t, loop.Config{OnPanic: func(_ any, s []byte) { stack = s }})
	h.do(t, func() { h.Post(panicsInHere) })
	h.do(t, func() {})
	assert.Contains(t, string(stack), "panicsInHere")
}

func panicsInHere() { panic("here") }

func TestPanicWithoutAReportIsCounted(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	h.do(t, func() { h.Post(panicsInHere) })
	h.do(t, func() {})
	h.end()
	assert.EqualValues(t, 1, h.Metrics().Panics)
}

func TestPostsKeepTheirOrder(t *testing.T) {
	const producers, posts = 8, 10_000
	h := newThreaded(t, loop.Config{})
	next := make([]int, producers)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range posts {
				h.Post(func() {
					if next[p] == i {
						next[p]++
					}
				})
			}
		})
	}
	all.Wait()
	h.end()
	for p := range producers {
		assert.Equal(t, posts, next[p])
	}
}

// A panic inside a contained call is reported like a callback's panic, and the callback goes
// on.
func TestContainLetsTheRestOfACallbackRun(t *testing.T) {
	var reported []any
	l := loop.New(loop.Config{OnPanic: func(recovered any, stack []byte) {
		assert.NotEmpty(t, stack)
		reported = append(reported, recovered)
	}})
	call := func(fn func()) {
		defer l.Contain()
		fn()
	}
	ran := false
	call(func() { panic("first") })
	call(func() { ran = true })
	assert.True(t, ran)
	assert.Equal(t, []any{"first"}, reported)
}
