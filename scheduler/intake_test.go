package scheduler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// The engine spreads the admission of requests that end at once over several iterations. So
// neither the stack nor an iteration grows with the queue.
func TestAQueueOfInstantRequestsTakesTurnsWithIO(t *testing.T) {
	const inflight, n = 3, 100
	w := newWorldOf(t, Config{MaxInflight: inflight, MaxQueue: n})
	g := builtinGraph(t, "src", source(1))
	answers := map[uint64]int{} // by iteration
	blocker := w.start(w.within(builtinGraph(t, "s", source(1), sleepNode("s", "src", ms(5))), 0))
	for range inflight - 1 {
		w.start(w.within(builtinGraph(t, "s", source(1), sleepNode("s", "src", ms(5))), 0))
	}
	for range n {
		require.NoError(t, w.Submit(w.within(g, 0), func(r *Result) {
			assert.NoError(t, r.Err)
			answers[w.Loop.Iteration()]++
		}))
	}
	w.Settle()
	require.Nil(t, blocker.Result)
	assert.Equal(t, n, w.admission.Stats().Waiting)
	w.Advance(ms(5))
	w.Settle()
	require.NotNil(t, blocker.Result)
	total := 0
	for iteration, k := range answers {
		assert.LessOrEqual(t, k, inflight, iteration)
		total += k
	}
	assert.Equal(t, n, total)
}

// A refusal costs next to no memory, no goroutine and no post. This is true for a flow with
// nothing in the queue and for a flow with its full share.
func TestARefusalIsCheap(t *testing.T) {
	for _, queue := range []int{0, 1} {
		w := newWorldOf(t, Config{MaxInflight: 1, MaxQueue: queue})
		sleep := builtinGraph(t, "s", source(1), sleepNode("s", "src", ms(5)))
		held := w.start(w.within(sleep, 0))
		for range queue {
			w.start(w.within(sleep, 0))
		}
		never := func(*Result) { t.Error("answered") }
		for _, flow := range []Flow{{}, {Caller: 1, Connection: 1}} {
			x := w.within(builtinGraph(t, "src", source(1)), 0)
			x.Flow = flow
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				if err := w.Submit(x, never); err != ErrOverloaded {
					t.Error(err)
				}
			}))
		}
		assert.Equal(t, 1+queue, w.Loop.Metrics().PostsPending, "the requests that were taken")
		w.Advance(ms(5))
		require.NotNil(t, held.Result)
		require.NoError(t, held.Err)
		w.Advance(ms(5))
	}
}

// Flows come and go without allocations: the queue keeps the memory of flows that have gone for
// others.
func TestFlowsAllocateNothing(t *testing.T) {
	var a Admission
	a.Bound(1, 2)
	clock := clock.NewManual()
	enter := func(x *Execution) (waits bool) {
		waits, loser, err := a.Enter(x, clock)
		require.NoError(t, err)
		require.Nil(t, loser)
		return waits
	}
	require.False(t, enter(new(Execution)))
	n := uint64(0)
	var one, two Execution
	turn := func() {
		for _, x := range []*Execution{&one, &two} {
			n++
			x.Flow = Flow{Caller: n % 512, Connection: n}
			require.True(t, enter(x))
		}
		for range 2 {
			a.End()
			x, err := a.Next(0)
			require.NoError(t, err)
			require.NotNil(t, x)
		}
	}
	for range 1000 {
		turn()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, turn))
	assert.Empty(t, a.shares)
	assert.Empty(t, a.callers)
}
