package loop

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/clock"
)

// checkInvariants checks what the fields of the loop's parts promise.
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

// The heap against a sorted slice: random starts, stops, restarts and firings.
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
