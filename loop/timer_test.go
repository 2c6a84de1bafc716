package loop_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

func startTimer(t testing.TB, tm *loop.Timer, delay, repeat time.Duration) {
	t.Helper()
	assert.NoError(t, tm.Start(delay, repeat))
}

func TestTenOneShotsAndARepeatThatClosesItself(t *testing.T) {
	v := newVirtual(t)
	fired := make([]int, 10)
	for i := range fired {
		startTimer(t, v.NewTimer(func() { fired[i]++ }), time.Duration(i)*50*ms, 0)
	}
	repeats, closed := 0, 0
	var repeat *loop.Timer
	repeat = v.NewTimer(func() {
		if repeats++; repeats == 5 {
			repeat.Close(func() { closed++ })
		}
	})
	startTimer(t, repeat, 100*ms, 100*ms)
	assert.False(t, v.run(), "run ends when nothing is alive")
	assert.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, fired)
	assert.Equal(t, 5, repeats)
	assert.Equal(t, 1, closed)
	assert.Equal(t, 500*ms, v.elapsed())
}

func TestStoppedRepeatNeverFires(t *testing.T) {
	h := looptest.New(t)
	tm := h.Loop.NewTimer(func() { t.Error("fired") })
	startTimer(t, tm, 10*ms, 10*ms)
	tm.Stop()
	h.Advance(time.Second)
	assert.False(t, tm.Active())
}

func TestStartTwiceReplacesTheSchedule(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	tm := h.Loop.NewTimer(func() { fired++ })
	startTimer(t, tm, 24*time.Hour, 0)
	startTimer(t, tm, 10*ms, 0)
	h.Advance(10 * ms)
	assert.Equal(t, 1, fired)
	h.Advance(48 * time.Hour)
	assert.Equal(t, 1, fired)
}

func TestFreshTimer(t *testing.T) {
	tm := newVirtual(t).NewTimer(func() {})
	assert.Zero(t, tm.Repeat())
	assert.Zero(t, tm.DueIn())
	assert.False(t, tm.Active())
}

func TestSameDueTimeFiresInStartOrder(t *testing.T) {
	for name, order := range map[string][]int{"A then B": {0, 1}, "B then A": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			h := looptest.New(t)
			var fired []int
			var timers [2]*loop.Timer
			for i := range timers {
				timers[i] = h.Loop.NewTimer(func() { fired = append(fired, i) })
			}
			for _, i := range order {
				startTimer(t, timers[i], 10*ms, 0)
			}
			h.Advance(10 * ms)
			assert.Equal(t, order, fired)
		})
	}
}

func TestZeroTimerThatRestartsItselfFiresOncePerIteration(t *testing.T) {
	v := newVirtual(t)
	fired := 0
	var tm *loop.Timer
	tm = v.NewTimer(func() { fired++; startTimer(t, tm, 0, 0) })
	startTimer(t, tm, 0, 0)
	for want := 1; want <= 5; want++ {
		v.runOnce()
		assert.Equal(t, want, fired)
	}
}

func TestHugeDelays(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	count := func() { fired++ }
	small, huge, largest := h.Loop.NewTimer(count), h.Loop.NewTimer(count), h.Loop.NewTimer(count)
	startTimer(t, small, ms, 0)
	startTimer(t, huge, 1<<48, 0)
	startTimer(t, largest, math.MaxInt64, 0)
	assert.Equal(t, ms, small.DueIn())
	assert.Equal(t, time.Duration(1<<48), huge.DueIn())
	assert.Equal(t, clock.Never.Sub(h.Loop.Now()), largest.DueIn())
	h.Advance(10 * ms)
	assert.Equal(t, 1, fired)
	closed := 0
	huge.Close(func() { closed++ })
	largest.Close(func() { closed++ })
	h.Settle()
	assert.Equal(t, 2, closed)
	assert.Equal(t, 1, fired)
}

func TestRunOnceWaitsForTheTimerAndFiresIt(t *testing.T) {
	v := newVirtual(t)
	fired := false
	startTimer(t, v.NewTimer(func() { fired = true }), ms, 0)
	assert.False(t, v.runOnce())
	assert.True(t, fired)
	assert.Equal(t, []time.Duration{ms}, v.waits)
}

func TestClosingTimerAndNilCallbackAreRefused(t *testing.T) {
	h := looptest.New(t)
	tm := h.Loop.NewTimer(func() { t.Error("fired") })
	tm.Close(nil)
	assert.ErrorIs(t, tm.Start(0, 0), loop.ErrHandleClosed)
	h.Settle()
	assert.ErrorIs(t, tm.Start(0, 0), loop.ErrHandleClosed)
	assert.ErrorIs(t, h.Loop.NewTimer(nil).Start(0, 0), loop.ErrNoCallback)
	h.Advance(time.Second)
}

func TestNeverEarlyByTheRealClock(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	for _, delay := range []time.Duration{0, 100 * time.Microsecond, 1 * ms, 10 * ms} {
		fired := make(chan time.Duration, 1)
		h.do(t, func() {
			for began := time.Now(); time.Since(began) < 2*ms; { // the cached time is stale now
			}
			began := time.Now()
			startTimer(t, h.NewTimer(func() { fired <- time.Since(began) }), delay, 0)
		})
		assert.GreaterOrEqual(t, <-fired, delay)
	}
}

func TestStaleCachedTimeMakesNoTimerEarly(t *testing.T) {
	h := looptest.New(t)
	var fired clock.Time
	h.Loop.Post(func() {
		h.Clock.Advance(35 * ms) // a callback that takes long
		startTimer(t, h.Loop.NewTimer(func() { fired = h.Clock.Now() }), 10*ms, 0)
	})
	began := h.Clock.Now()
	h.Advance(time.Second)
	assert.Equal(t, 45*ms, fired.Sub(began))
}

func TestMissedPeriodsCollapse(t *testing.T) {
	for name, mode := range map[string]loop.RunMode{"once": loop.RunOnce, "no wait": loop.RunNoWait} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(t)
			fired := 0
			tm := v.NewTimer(func() { fired++ })
			startTimer(t, tm, 10*ms, 10*ms)
			v.clock.Advance(20 * ms)
			v.in(mode)
			assert.Equal(t, 1, fired)
			assert.Equal(t, 10*ms, tm.DueIn(), "counted from now: no catching up")
		})
	}
}

func TestAgainAndSetRepeat(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	tm := h.Loop.NewTimer(func() { fired++ })
	assert.ErrorIs(t, tm.Again(), loop.ErrNeverStarted)
	startTimer(t, tm, 10*ms, 0)
	require.NoError(t, tm.Again())
	assert.Equal(t, 10*ms, tm.DueIn(), "again does nothing without a repeat")
	tm.SetRepeat(20 * ms)
	h.Advance(50 * ms)
	assert.Equal(t, 3, fired, "at 10, 30 and 50 ms")
	tm.Close(nil)
	assert.ErrorIs(t, tm.Again(), loop.ErrHandleClosed)
}

func TestAgainPutsARepeatOff(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	var tm *loop.Timer
	tm = h.Loop.NewTimer(func() {
		if fired++; fired == 1 {
			assert.Equal(t, 100*ms, tm.DueIn(), "armed before its callback")
		}
		tm.SetRepeat(0)
	})
	startTimer(t, tm, 100*ms, 100*ms)
	for range 10 {
		h.Advance(50 * ms)
		require.NoError(t, tm.Again())
	}
	assert.Zero(t, fired)
	h.Advance(100 * ms)
	assert.Equal(t, 1, fired)
	h.Advance(time.Second)
	assert.Equal(t, 2, fired, "the shot that was armed when the repeat was set to 0 still comes")
}

func TestTimerRestartedInCheckFiresAfterPrepare(t *testing.T) {
	v := newVirtual(t)
	var j journal
	tm := v.NewTimer(j.note("timer"))
	startTimer(t, tm, 50*ms, 0)
	prepare := v.NewPrepare(nil)
	var check *loop.Hook
	prepare = v.NewPrepare(func() { j.note("prepare")(); prepare.Stop() })
	check = v.NewCheck(func() {
		j.note("check")()
		check.Stop()
		tm.Stop()
		startTimer(t, tm, 50*ms, 0)
		require.NoError(t, prepare.Start())
	})
	require.NoError(t, check.Start())
	v.runNoWait()
	v.run()
	assert.Equal(t, journal{"check", "prepare", "timer"}, j)
}

func TestFirstOfABatchStopsOrClosesTheSecond(t *testing.T) {
	for name, act := range map[string]func(*loop.Timer){
		"stop":  (*loop.Timer).Stop,
		"close": func(tm *loop.Timer) { tm.Close(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			h := looptest.New(t)
			var second *loop.Timer
			first := h.Loop.NewTimer(func() {
				assert.True(t, second.Active(), "due, and about to fire")
				act(second)
			})
			second = h.Loop.NewTimer(func() { t.Error("fired") })
			third := 0
			startTimer(t, first, 10*ms, 0)
			startTimer(t, second, 10*ms, 0)
			startTimer(t, h.Loop.NewTimer(func() { third++ }), 10*ms, 0)
			h.Clock.Advance(10 * ms)
			h.Iterate()
			assert.False(t, second.Active())
			assert.Equal(t, 1, third)
			h.Advance(time.Second)
		})
	}
}

func TestFirstOfABatchRestartsTheSecond(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	second := h.Loop.NewTimer(func() { fired++ })
	startTimer(t, h.Loop.NewTimer(func() { startTimer(t, second, 5*ms, 0) }), 10*ms, 0)
	startTimer(t, second, 10*ms, 0)
	h.Advance(10 * ms)
	assert.Zero(t, fired)
	h.Advance(5 * ms)
	assert.Equal(t, 1, fired)
}

func TestZeroTimerStartedInATimerWaitsForThePoll(t *testing.T) {
	h := looptest.New(t)
	var j journal
	h.OnPoll = j.note("poll")
	startTimer(t, h.Loop.NewTimer(func() {
		j.note("first")()
		startTimer(t, h.Loop.NewTimer(j.note("second")), 0, 0)
	}), 0, 0)
	h.Iterate()
	h.Iterate()
	assert.Equal(t, journal{"poll", "first", "poll", "second"}, j)
}

func TestNowAdvancesWithNothingAlive(t *testing.T) {
	v := newVirtual(t)
	before := v.Now()
	v.clock.Advance(time.Second)
	assert.Equal(t, before, v.Now(), "cached")
	assert.False(t, v.runNoWait())
	assert.Equal(t, time.Second, v.Now().Sub(before))
}

func TestNowIsCachedWithinACallback(t *testing.T) {
	h := looptest.New(t)
	h.Loop.Post(func() {
		before := h.Loop.Now()
		h.Clock.Advance(time.Second)
		assert.Equal(t, before, h.Loop.Now())
		h.Loop.UpdateNow()
		assert.Equal(t, time.Second, h.Loop.Now().Sub(before))
	})
	h.Settle()
}

// A callback takes 35 ms, with a repeat of 10 ms. It does not prolong the wait after it.
func TestWaitIsComputedFromAFreshClock(t *testing.T) {
	v := newVirtual(t)
	var fired []time.Duration
	var tm *loop.Timer
	tm = v.NewTimer(func() {
		switch fired = append(fired, v.elapsed()); len(fired) {
		case 1:
			v.clock.Advance(35 * ms)
		case 4:
			tm.Stop()
		}
	})
	startTimer(t, tm, 10*ms, 10*ms)
	v.run()
	assert.Equal(t, []time.Duration{10 * ms, 45 * ms, 55 * ms, 65 * ms}, fired)
}

func TestOneShotIsInactiveInItsOwnCallback(t *testing.T) {
	h := looptest.New(t)
	var tm *loop.Timer
	tm = h.Loop.NewTimer(func() { assert.False(t, tm.Active()) })
	startTimer(t, tm, 0, 0)
	h.Settle()
}

func TestStartAt(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	tm := h.Loop.NewTimer(func() { fired++ })
	require.NoError(t, tm.StartAt(h.Loop.Now().Add(10*ms)))
	h.Advance(9 * ms)
	assert.Zero(t, fired)
	h.Advance(ms)
	assert.Equal(t, 1, fired)

	require.NoError(t, tm.StartAt(h.Loop.Now()-1))
	assert.Zero(t, tm.DueIn(), "overdue")
	h.Settle()
	assert.Equal(t, 2, fired)

	for _, none := range []clock.Time{0, clock.Never} {
		require.NoError(t, tm.StartAt(none))
		h.Advance(1000 * time.Hour)
		assert.Equal(t, 2, fired)
	}
}

func TestStartByKeepsTheEarliestOfManyDeadlines(t *testing.T) {
	h := looptest.New(t)
	var fired []time.Duration
	began := h.Loop.Now()
	tm := h.Loop.NewTimer(func() { fired = append(fired, h.Loop.Now().Sub(began)) })
	for _, after := range []time.Duration{30 * ms, 10 * ms, 20 * ms, 10 * ms} {
		require.NoError(t, tm.StartBy(began.Add(after)))
	}
	h.Advance(100 * ms)
	assert.Equal(t, []time.Duration{10 * ms}, fired, "once, at the earliest")
	require.NoError(t, tm.StartBy(began.Add(120*ms)), "a deadline after the last that fired")
	h.Advance(100 * ms)
	assert.Equal(t, []time.Duration{10 * ms, 120 * ms}, fired)
	tm.Close(nil)
	assert.ErrorIs(t, tm.StartBy(began.Add(300*ms)), loop.ErrHandleClosed)
}

// A deadline that has passed fires in the next iteration, however long ago it was.
func TestStartAtInThePast(t *testing.T) {
	for name, before := range map[string]func(now clock.Time) clock.Time{
		"a nanosecond ago":            func(now clock.Time) clock.Time { return now - 1 },
		"the first instant":           func(clock.Time) clock.Time { return clock.First },
		"back to the clock's origin":  func(now clock.Time) clock.Time { return now.Add(-now.Sub(0)) },
		"back beyond the origin":      func(now clock.Time) clock.Time { return now.Add(-time.Hour) },
		"negative":                    func(clock.Time) clock.Time { return -1 },
		"the least value of its type": func(clock.Time) clock.Time { return math.MinInt64 },
	} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(t)
			fired := 0
			tm := v.NewTimer(func() { fired++ })
			require.NoError(t, tm.StartAt(before(v.clock.Now())))
			assert.Zero(t, tm.DueIn())
			assert.True(t, v.Due().Passed(v.clock.Now()))
			v.runOnce()
			assert.Equal(t, 1, fired)
			assert.Equal(t, []time.Duration{0}, v.waits)
			assert.Zero(t, v.elapsed())
		})
	}
}

func TestNegativeDelayAndRepeatCountAsZero(t *testing.T) {
	h := looptest.New(t)
	fired := 0
	tm := h.Loop.NewTimer(func() { fired++ })
	startTimer(t, tm, -time.Second, -time.Second)
	assert.Zero(t, tm.Repeat())
	h.Advance(time.Second)
	assert.Equal(t, 1, fired)
	tm.SetRepeat(-1)
	assert.Zero(t, tm.Repeat())
}

// The tests from here on check what the original engine promises of coroutines that sleep. Each
// sleep is a timer.

func TestSleepLastsItsTime(t *testing.T) {
	h := looptest.New(t)
	var after time.Duration
	began := h.Clock.Now()
	startTimer(t, h.Loop.NewTimer(func() { after = h.Clock.Now().Sub(began) }), 50*ms, 0)
	h.Advance(time.Second)
	assert.Equal(t, 50*ms, after)
}

func TestTwoSleepsRunInParallel(t *testing.T) {
	v := newVirtual(t)
	fired := 0
	for range 2 {
		startTimer(t, v.NewTimer(func() { fired++ }), 50*ms, 0)
	}
	v.run()
	assert.Equal(t, 2, fired)
	assert.Equal(t, 50*ms, v.elapsed())
}

func TestPanicAfterASleepIsReported(t *testing.T) {
	v := newVirtual(t)
	startTimer(t, v.NewTimer(func() { panic("after the sleep") }), 10*ms, 0)
	v.run()
	assert.Equal(t, []any{"after the sleep"}, v.panics)
}

func TestZeroSleepTakesNoTime(t *testing.T) {
	v := newVirtual(t)
	fired := false
	startTimer(t, v.NewTimer(func() { fired = true }), 0, 0)
	v.run()
	assert.True(t, fired)
	assert.Zero(t, v.elapsed())
}

func TestSleepsInARowAddUp(t *testing.T) {
	v := newVirtual(t)
	left := 3
	var tm *loop.Timer
	tm = v.NewTimer(func() {
		if left--; left > 0 {
			startTimer(t, tm, 20*ms, 0)
		}
	})
	startTimer(t, tm, 20*ms, 0)
	v.run()
	assert.Zero(t, left)
	assert.Equal(t, 60*ms, v.elapsed())
}

func TestFiftySleepsAtOnce(t *testing.T) {
	v := newVirtual(t)
	fired := 0
	for range 50 {
		startTimer(t, v.NewTimer(func() { fired++ }), 20*ms, 0)
	}
	v.run()
	assert.Equal(t, 50, fired)
	assert.Equal(t, 20*ms, v.elapsed())
}

func TestStopLeavesPendingSleepsUnfired(t *testing.T) {
	h := looptest.New(t)
	timers := make([]*loop.Timer, 10)
	for i := range timers {
		timers[i] = h.Loop.NewTimer(func() { t.Error("fired") })
		startTimer(t, timers[i], 5*time.Second, time.Second)
	}
	began := h.Clock.Now()
	h.Stop()
	assert.Equal(t, began, h.Clock.Now(), "without waiting for them")
	for _, tm := range timers {
		assert.False(t, tm.Active())
		assert.ErrorIs(t, tm.Start(0, 0), loop.ErrStopped, "a sleep on a stopped loop is an error")
		assert.ErrorIs(t, tm.Again(), loop.ErrStopped)
		assert.ErrorIs(t, tm.StartAt(clock.Never), loop.ErrStopped)
	}
}

func TestFiveHundredShortTimers(t *testing.T) {
	h := newThreaded(t, loop.Config{})
	fired := make(chan struct{})
	left := 500
	h.do(t, func() {
		for range left {
			startTimer(t, h.NewTimer(func() {
				if left--; left == 0 {
					close(fired)
				}
			}), ms, 0)
		}
	})
	<-fired
}

func TestSleepsEndInOrderOfDuration(t *testing.T) {
	v := newVirtual(t)
	var ended []int
	for i, delay := range []time.Duration{50, 10, 30, 20, 40} {
		startTimer(t, v.NewTimer(func() { ended = append(ended, i+1) }), delay*ms, 0)
	}
	v.run()
	assert.Equal(t, []int{2, 4, 3, 5, 1}, ended)
}

func TestTwoHundredTimersInOneIteration(t *testing.T) {
	v := newVirtual(t)
	fired := 0
	for range 200 {
		startTimer(t, v.NewTimer(func() { fired++ }), 2*ms, 0)
	}
	v.run()
	assert.Equal(t, 200, fired)
	assert.Len(t, v.waits, 1)
}
