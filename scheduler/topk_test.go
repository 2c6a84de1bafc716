package scheduler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTopKIsCounted(t *testing.T) {
	g := builtinGraph(t, "t", source(10), node("s", "sort", "src", `"by": 1`, ""), node("t", "take", "s", `"count": 7`, ""))
	for mode, want := range map[Mode]uint64{Adaptive: 1, OffloadAll: 0, InlineAll: 1} {
		w := newPlacedWorld(t, 0, Placement{Mode: mode})
		p := w.start(w.within(g, 0))
		w.finishAll()
		require.NotNil(t, p.Result)
		requireRows(t, p.Result, idsUpTo(7, 1)...)
		all, _ := w.placementMetrics()
		assert.Equal(t, want, all.TopK, mode)
	}
}
