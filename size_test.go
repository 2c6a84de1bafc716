package rankd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// TestSizeIsAboutThatOfTheJSON holds the estimate on each model, for plans of one node and of ten: traces and explanations count at least
// half of what their JSON takes, and traces at most three times as much.
func TestSizeIsAboutThatOfTheJSON(t *testing.T) {
	forModels(t, rankd.Options{AllowRequestTrace: true, AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
		plans, err := e.Plans()
		require.NoError(t, err)
		for _, p := range plans {
			plain := rankd.Request{Plan: p.Name, UserID: 7}
			traced, explained := plain, plain
			traced.Trace, explained.Explain.All = true, true
			var first [2]int // of the plain answer: its size, and that of its JSON
			for i, r := range []rankd.Request{plain, traced, explained} {
				a, err := e.Rank(context.Background(), r)
				require.NoError(t, err)
				size, json := a.Size(), len(a.AppendJSON(nil, rankd.FormatFlat))
				if i == 0 {
					first = [2]int{size, json}
				}
				assert.GreaterOrEqual(t, 2*(size-first[0]), json-first[1], "%s, request %d", p.Name, i)
				if r.Trace {
					assert.LessOrEqual(t, size-first[0], 3*(json-first[1]), "%s, request %d", p.Name, i)
				}
			}
		}
	})
}

// TestSizeOfAnErrorHasItsTrace does the same for a request that fails.
func TestSizeOfAnErrorHasItsTrace(t *testing.T) {
	e := open(t, rankd.Options{AllowRequestTrace: true, Plans: plans(map[string]string{
		"late": `{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
			{"node_id": "out", "op": "test::sleep", "inputs": ["src"], "params": {"duration_ms": 60000}}`,
	})})
	for _, traced := range []bool{false, true} {
		_, err := e.Rank(context.Background(), rankd.Request{Plan: "late", UserID: 7, Trace: traced, Timeout: 10 * time.Millisecond})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		assert.InEpsilon(t, len(failed.AppendJSON(nil)), failed.Size(), 0.8)
		assert.Equal(t, traced, failed.Size() > 500)
	}
}
