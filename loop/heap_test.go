package loop

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// checkInvariants checks the promises of the fields of the loop's parts.
func checkInvariants(t testing.TB, l *Loop) {
	t.Helper()
	for i, e := range l.timers.entries {
		require.Equal(t, i, e.timer.pos)
		require.Equal(t, e.due, e.timer.due)
		if i > 0 {
			parent := l.timers.entries[(i-1)/arity]
			require.False(t, e.before(&parent), "entry %d is before its parent", i)
		}
	}
	for _, s := range []*hookList{&l.idle, &l.prepare, &l.check} {
		active := 0
		for i, h := range s.hooks {
			if h != nil {
				require.Equal(t, i, h.pos)
				active++
			}
		}
		require.Equal(t, active, s.active)
	}
	require.GreaterOrEqual(t, l.held, 0)
	require.GreaterOrEqual(t, l.open, 0)
}

// The test compares the heap with a sorted slice, over random starts, stops, restarts and
// firings.
func TestTimersAgainstASortedSlice(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := clock.NewManual()
		l := New(Config{Clock: c})
		type scheduled struct {
			due clock.Time
			seq int
			id  int
		}
		var model []scheduled
		var fired, want []int
		seq := 0
		timers := make([]*Timer, 40)
		for id := range timers {
			timers[id] = l.NewTimer(func() { fired = append(fired, id) })
		}
		drop := func(id int) {
			model = slices.DeleteFunc(model, func(s scheduled) bool { return s.id == id })
		}
		for range 400 {
			id := rng.IntN(len(timers))
			switch rng.IntN(4) {
			case 0, 1:
				delay := time.Duration(rng.IntN(50))
				require.NoError(t, timers[id].Start(delay, 0))
				drop(id)
				seq++
				model = append(model, scheduled{c.Now().Add(delay), seq, id})
			case 2:
				timers[id].Stop()
				drop(id)
			case 3:
				c.Advance(time.Duration(rng.IntN(20)))
				l.UpdateNow()
				l.runTimers()
				slices.SortFunc(model, func(a, b scheduled) int {
					if a.due != b.due {
						return int(a.due - b.due)
					}
					return a.seq - b.seq
				})
				for len(model) > 0 && model[0].due <= c.Now() {
					want = append(want, model[0].id)
					model = model[1:]
				}
			}
			checkInvariants(t, l)
			for id, tm := range timers {
				active := slices.ContainsFunc(model, func(s scheduled) bool { return s.id == id })
				require.Equal(t, active, tm.Active(), "seed %d", seed)
			}
			if len(model) > 0 {
				first := slices.MinFunc(model, func(a, b scheduled) int { return int(a.due - b.due) })
				require.Equal(t, first.due, l.Due(), "seed %d", seed)
			} else {
				require.Zero(t, l.Due())
			}
		}
		require.Equal(t, want, fired, "seed %d", seed)
	}
}

func TestHugeBurstsAreNotKept(t *testing.T) {
	assert.Nil(t, reuse(make([]func(), 0, 2*keepCap)))
	small := make([]func(), 3, 8)
	small[0] = func() {}
	kept := reuse(small)
	assert.Equal(t, 8, cap(kept))
	assert.Empty(t, kept)
	assert.Nil(t, small[0], "a function that has run must be free to be collected")
}

func TestShrinkKeepsTheElementsAndRoomToGrow(t *testing.T) {
	for name, tc := range map[string]struct{ len, cap, want int }{
		"small, though empty":  {0, keepCap, keepCap},
		"huge and in use":      {keepCap/2 + 1, 2 * keepCap, 2 * keepCap},
		"huge and hardly used": {keepCap / 2, 2 * keepCap, keepCap},
		"huge and empty":       {0, 2 * keepCap, keepCap},
	} {
		list := make([]byte, tc.len, tc.cap)
		for i := range list {
			list[i] = byte(i)
		}
		got := shrink(list)
		assert.Equal(t, tc.want, cap(got), name)
		assert.True(t, slices.Equal(list, got), name)
	}
}

// The loop gives back the memory to which a burst has grown its lists.
func TestListsShrinkAfterABurst(t *testing.T) {
	const burst = keepCap + 1
	nothing := func() {}
	c := clock.NewManual()
	l := New(Config{Clock: c})
	within := func(capacity int, list string) {
		t.Helper()
		assert.LessOrEqual(t, capacity, keepCap, list)
	}
	t.Run("timers", func(t *testing.T) {
		timers := make([]Timer, burst)
		fired := 0
		for i := range timers {
			timers[i] = Timer{loop: l, fn: func() { fired++ }, pos: inactive}
			_ = timers[i].Start(time.Duration(i), 0)
		}
		require.Greater(t, cap(l.timers.entries), keepCap)
		c.Advance(burst / 8)
		l.UpdateNow()
		l.runTimers()
		for i := burst / 4; i < burst-100; i++ {
			timers[i].Stop()
		}
		checkInvariants(t, l)
		c.Advance(burst)
		l.UpdateNow()
		l.runTimers()
		assert.Equal(t, burst/4+100, fired)
		within(cap(l.timers.entries), "heap")
	})
	t.Run("due timers", func(t *testing.T) {
		l.due = make([]*Timer, 0, burst) // as a burst of timers leaves it that are due together
		l.runTimers()
		within(cap(l.due), "due")
	})
	t.Run("hooks", func(t *testing.T) {
		hooks := make([]Hook, burst)
		for i := range hooks {
			hooks[i] = Hook{loop: l, list: &l.check, fn: nothing, pos: inactive}
			_ = hooks[i].Start()
		}
		require.Greater(t, cap(l.check.hooks), keepCap)
		for i := range hooks {
			hooks[i].Stop()
		}
		l.runCheck()
		within(cap(l.check.hooks), "check hooks")
	})
	t.Run("deferred and closing", func(t *testing.T) {
		for range burst {
			l.Defer(nothing)
			l.Closing(nothing)
		}
		for range 2 { // of two arrays that are used alternately
			l.runCheck()
			l.runClosing()
		}
		for _, q := range []*queue{&l.deferred, &l.closing} {
			within(cap(q.next), "next")
			within(cap(q.batch), "batch")
		}
	})
	t.Run("posts", func(t *testing.T) {
		l.phase.Store(running)
		for range burst {
			l.Post(nothing)
		}
		for range 2 {
			l.runInbox()
		}
		within(cap(l.mu.inbox), "inbox")
		within(cap(l.spare), "spare")
	})
}
