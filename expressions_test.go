package rankd_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// decayPlan computes each row's score by an if, and keeps the rows with a typed comparison.
const decayPlan = `{"schema_version": 1, "plan_name": "p", "outputs": ["out"], "capabilities_required": ["cap.rankd.expressions.v1"],
	"nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 5}},
		{"node_id": "kept", "op": "core::filter", "inputs": ["rows"], "params": {"pred_id": "p"}},
		{"node_id": "out", "op": "core::vm", "inputs": ["kept"], "params": {"out_key": 2002, "expr_id": "e"}}],
	"expr_table": {"e": {"op": "if",
		"cond": {"op": "cmp", "cmp": "==", "a": {"op": "mod", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}},
			"b": {"op": "const_number", "value": 0}},
		"then": {"op": "now"},
		"else": {"op": "decay", "x": {"op": "key_ref", "key_id": 1}, "half_life": {"op": "const_number", "value": 1}}}},
	"pred_table": {"p": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 4}}}}`

// TestTypedExpressions runs a plan with typed expressions on each model, in each scheduling mode. now() is when the
// request arrived.
func TestTypedExpressions(t *testing.T) {
	for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll} {
		t.Run(string(mode), func(t *testing.T) {
			options := rankd.Options{
				Plans: fstest.MapFS{"p.plan.json": {Data: []byte(decayPlan)}}, Scheduling: rankd.Scheduling{Mode: mode},
			}
			forModels(t, options, func(t *testing.T, e *rankd.Engine) {
				// The engine dates a request by a reading of the calendar that is at most a second old.
				before := time.Now()
				answer, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
				after := time.Now()
				require.NoError(t, err)
				scores := map[int64]float64{}
				for c := range answer.Output(0).Candidates() {
					score, ok := c.Float("score")
					require.True(t, ok)
					scores[c.ID()] = score
				}
				require.Len(t, scores, 3)
				assert.Equal(t, 0.5, scores[1])
				assert.Equal(t, 0.125, scores[3])
				assert.InDelta(t, float64(before.UnixMicro()+after.UnixMicro())/2e6, scores[2], after.Sub(before).Seconds()/2+0.01)
			})
		})
	}
}
