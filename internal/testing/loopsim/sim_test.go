package loopsim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/loop/clock"
)

func newSim(t *testing.T, seed uint64) *loopsim.Sim {
	return loopsim.New(rand.New(rand.NewPCG(seed, 0)), func(recovered any, stack []byte) {
		t.Errorf("panic: %v\n%s", recovered, stack)
	})
}

// play goes from instant to instant until nothing is left.
func play(t *testing.T, s *loopsim.Sim) {
	for {
		require.NoError(t, s.Settle())
		at, ok := s.Next()
		if !ok {
			return
		}
		s.MoveTo(at)
	}
}

func TestEventsAndTimersHappenAtTheirInstants(t *testing.T) {
	s := newSim(t, 1)
	start := s.Now()
	var log []string
	note := func(what string) func() {
		return func() { log = append(log, what+" "+s.Now().Sub(start).String()) }
	}
	s.After(3*time.Millisecond, note("event"))
	timer := s.Loop.NewTimer(note("timer"))
	require.NoError(t, timer.Start(2*time.Millisecond, 0))
	s.After(time.Millisecond, func() { s.Loop.Post(note("post")) })
	s.After(4*time.Millisecond, func() { s.After(0, note("event of an event")) })
	play(t, s)
	assert.Equal(t, []string{"post 1ms", "timer 2ms", "event 3ms", "event of an event 4ms"}, log)
}

func TestTiesAreBrokenBySeed(t *testing.T) {
	order := func(seed uint64) (log []int) {
		s := newSim(t, seed)
		for i := range 8 {
			s.After(time.Millisecond, func() { log = append(log, i) })
		}
		play(t, s)
		return log
	}
	assert.Equal(t, order(1), order(1))
	assert.NotEqual(t, order(1), order(2))
	assert.ElementsMatch(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, order(3))
}

// The test compares the heap with sorting. Events come in the order of their instants, whatever
// the order of At.
func TestEventsComeInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 50 {
		s := newSim(t, rng.Uint64())
		due := 0
		last := clock.Time(0)
		for range 200 {
			at := s.Now().Add(time.Duration(rng.IntN(50)) * time.Millisecond)
			s.At(at, func() {
				assert.Equal(t, at, s.Now())
				assert.GreaterOrEqual(t, at, last)
				last = at
				due++
			})
		}
		play(t, s)
		assert.Equal(t, 200, due)
	}
}

func TestSettleReportsALoopThatNeverRests(t *testing.T) {
	s := newSim(t, 1)
	var again func()
	again = func() { s.Loop.Post(again) }
	again()
	assert.ErrorContains(t, s.Settle(), "busy")
}

func TestPanicsAreContainedAndReported(t *testing.T) {
	var panics []any
	s := loopsim.New(rand.New(rand.NewPCG(1, 1)), func(recovered any, _ []byte) { panics = append(panics, recovered) })
	after := false
	s.After(0, func() { panic("event") })
	s.Loop.Post(func() { panic("post") })
	s.After(time.Millisecond, func() { after = true })
	play(t, s)
	require.NoError(t, s.Stop())
	s.After(0, func() { panic("late event") })
	play(t, s)
	assert.ElementsMatch(t, []any{"event", "post", "late event"}, panics)
	assert.True(t, after)
}

func TestStopEndsTheLoopAndEventsGoOn(t *testing.T) {
	s := newSim(t, 1)
	ran := 0
	require.True(t, s.Loop.Post(func() { ran++ }))
	s.After(time.Millisecond, func() {
		ran++
		assert.False(t, s.Loop.Post(func() { ran += 100 }))
	})
	assert.False(t, s.Ended())
	require.NoError(t, s.Stop())
	assert.True(t, s.Ended())
	assert.Equal(t, 1, ran)
	play(t, s)
	assert.Equal(t, 2, ran)
}

func TestUnholdShowsWhatKeepsTheLoopAlive(t *testing.T) {
	s := newSim(t, 1)
	require.NoError(t, s.Settle())
	assert.True(t, s.Loop.Alive())
	timer := s.Loop.NewTimer(func() {})
	require.NoError(t, timer.Start(time.Hour, 0))
	s.Unhold()
	s.Unhold()
	assert.True(t, s.Loop.Alive())
	timer.Close(nil)
	require.NoError(t, s.Settle())
	assert.False(t, s.Loop.Alive())
	require.NoError(t, s.Stop())
}

func TestEachIterationFlushesAndTheEndDrains(t *testing.T) {
	s := newSim(t, 1)
	flushed, drained := 0, 0
	s.OnFlush = func() { flushed++ }
	s.OnDrain = func() bool {
		drained++
		return drained < 3
	}
	s.Iterate()
	assert.Positive(t, flushed)
	require.NoError(t, s.Stop())
	assert.Equal(t, 3, drained)
}
