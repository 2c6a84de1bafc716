package scheduler

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The engine gives back the memory of a burst of requests: nodes with their timers, bodies with their
// coroutines.
func TestABurstIsGivenBack(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	g := builtinGraph(t, "x", source(1), sleepNode("x", "src", ms(1)))
	var all []*pending
	for range freeMax + 500 {
		all = append(all, w.start(w.within(g, ms(100))))
	}
	w.Settle()
	w.Advance(ms(1))
	for _, p := range all {
		require.NotNil(t, p.Result)
		require.NoError(t, p.Err)
	}
	assert.Len(t, w.freeJobs[onLoop].items, freeMax)
	assert.Len(t, w.freeRuns.items, freeMax)
}

// Bodies on the loop have a goroutine each. Those of a burst end when nobody uses them any more, and those that are used stay.
func TestIdleLoopBodiesEnd(t *testing.T) {
	w := newPlacedWorld(t, 0, Placement{})
	g := builtinGraph(t, "x", source(1), sleepNode("x", "src", ms(1)))
	burst := func(n int) {
		var all []*pending
		for range n {
			all = append(all, w.start(w.within(g, ms(100))))
		}
		w.Settle()
		w.Advance(ms(1))
		for _, p := range all {
			require.NoError(t, p.Err)
		}
	}
	before := runtime.NumGoroutine()
	burst(600)
	assert.Len(t, w.freeJobs[onLoop].items, 600)
	for range 4 {
		w.Advance(loopBodiesIdle / 2)
		burst(400)
		w.Advance(loopBodiesIdle / 2)
	}
	assert.Len(t, w.freeJobs[onLoop].items, 400+loopBodiesWarm, "as many as are used, and some")
	for range 4 {
		w.Advance(loopBodiesIdle)
	}
	assert.Len(t, w.freeJobs[onLoop].items, loopBodiesWarm)
	assert.LessOrEqual(t, runtime.NumGoroutine(), before+loopBodiesWarm)
	assert.False(t, w.idle.Active(), "an idle engine does not wake up for it")
	burst(1)
}
