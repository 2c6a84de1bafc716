package scheduler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Requests that end at once are let in over several iterations, so that neither the stack nor an iteration grows with the queue.
func TestAQueueOfInstantRequestsTakesTurnsWithIO(t *testing.T) {
	const inflight, n = 3, 100
	w := newWorldOf(t, AsyncConfig{MaxInflight: inflight, MaxQueue: n})
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
	assert.Equal(t, n, w.admission.Queued())
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

// A refusal costs no goroutine, no post and next to no memory.
func TestARefusalIsCheap(t *testing.T) {
	w := newWorldOf(t, AsyncConfig{MaxInflight: 1})
	held := w.start(w.within(builtinGraph(t, "s", source(1), sleepNode("s", "src", ms(5))), 0))
	x := w.within(builtinGraph(t, "src", source(1)), 0)
	never := func(*Result) { t.Error("answered") }
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := w.Submit(x, never); err != ErrOverloaded {
			t.Error(err)
		}
	}))
	assert.Equal(t, 1, w.Loop.Metrics().PostsPending, "the request that is held")
	w.Advance(ms(5))
	require.NotNil(t, held.Result)
	require.NoError(t, held.Err)
}
