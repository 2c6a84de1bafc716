package scheduler

import (
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
	assert.Len(t, w.freeNodes.items, freeMax)
	assert.Len(t, w.freeLoopBodies.items, freeMax)
	assert.Len(t, w.freeRuns.items, freeMax)
}
