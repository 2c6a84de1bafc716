package builtin

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// On random rows, the task makes one draw after another among the remaining rows.
func TestSampleIsTheReference(t *testing.T) {
	for key, name := range map[registry.KeyID]string{keyFloat: "k1001", keyInt: "k5001", 0: ""} {
		params := map[string]any{"count": 20, "seed": -5, "propensity": "score"}
		if name != "" {
			params["weight"] = name
		}
		run := nodeCase{params: params}.runner(t, sample())
		eachRandom(t, 40, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
			type candidate struct {
				row     int32
				weight  float64
				arrival float64
			}
			var left []candidate
			seen := map[int64]int64{}
			for _, row := range plainRows(in) {
				hash := rowset.HashInt(row.id, -5)
				if seen[row.id] > 0 {
					hash = rowset.HashInt(seen[row.id], int64(hash))
				}
				seen[row.id]++
				weight, ok := 1.0, true
				if key != 0 {
					weight, ok = row.number(key)
				}
				if ok && weight > 0 && !math.IsInf(weight, 0) {
					left = append(left, candidate{row.row, weight, -math.Log(1-rowset.HashUnit(hash)) / weight})
				}
			}
			out, err := run(in, 0)
			require.NoError(t, err)
			require.Equal(t, min(20, len(left)), out.Len())
			for pos := range out.Len() {
				first, sum := 0, new(big.Float).SetPrec(4000)
				for i, c := range left {
					sum.Add(sum, big.NewFloat(c.weight))
					if c.arrival < left[first].arrival {
						first = i
					}
				}
				require.Equal(t, left[first].row, out.Row(pos))
				propensity, ok := out.Batch.Float(keyScore).Value(int(out.Row(pos)))
				require.True(t, ok)
				want, _ := sum.Quo(big.NewFloat(left[first].weight), sum).Float64()
				require.InDelta(t, want, propensity, 1e-9*want)
				left = append(left[:first:first], left[first+1:]...)
			}
		})
	}
}

// Without a seed, the ids of request and node choose the draws. With a seed, only the seed
// does.
func TestSampleIsTheSameForASeed(t *testing.T) {
	ids := make([]int64, 200)
	for i := range ids {
		ids[i] = int64(i)
	}
	drawn := func(params map[string]any, request string) []int64 {
		node, err := nodeCase{params: params}.load(t, sample())
		require.NoError(t, err)
		out, err := invoke(&task.Ctx{Node: node, RequestID: request, Inputs: []rowset.RowSet{rankdtest.Rows(ids...)}, Params: new(expr.Params), Registry: testRegistry()})
		require.NoError(t, err)
		return rankdtest.IDs(out)
	}
	assert.Equal(t, []int64{155, 178, 115, 51, 92}, drawn(map[string]any{"count": 5, "seed": 1}, "a"), "the bits of a draw never change")
	assert.Equal(t, drawn(map[string]any{"count": 5, "seed": 1}, "a"), drawn(map[string]any{"count": 5, "seed": 1}, "b"))
	assert.NotEqual(t, drawn(map[string]any{"count": 5, "seed": 1}, "a"), drawn(map[string]any{"count": 5, "seed": 2}, "a"))
	assert.Equal(t, drawn(map[string]any{"count": 5}, "a"), drawn(map[string]any{"count": 5}, "a"))
	assert.NotEqual(t, drawn(map[string]any{"count": 5}, "a"), drawn(map[string]any{"count": 5}, "b"))
}

func TestSampleRefuses(t *testing.T) {
	for want, params := range map[string]map[string]any{
		"params.weight: is the id, which is not a weight":                                        {"count": 1, "weight": "id"},
		"params.propensity: is the key of weight, which keeps its values":                        {"count": 1, "weight": "score", "propensity": "score"},
		"params.count: must be 1 to 2147483647, not the integer 0":                               {"count": 0},
		"params.weight: must be a key of type int or float, not key 3001 (k3001) of type string": {"count": 1, "weight": "k3001"},
	} {
		nodeCase{params: params}.refuses(t, sample(), want)
	}
}

// Rows of equal weights are drawn in ascending order of their random(seed).
func TestSampleDrawsAsRandomSays(t *testing.T) {
	ids := make([]int64, 300)
	for i := range ids {
		ids[i] = int64(i*i) - 500
	}
	in := rankdtest.Rows(ids...)
	written, err := nodeCase{params: map[string]any{"out_key": 6001, "expr_id": "e"}, exprs: map[string]string{"e": `{"op": "random", "seed": {"op": "const_number", "value": -7}}`}}.
		runner(t, vm())(in, 0)
	require.NoError(t, err)
	want, err := rowset.Sort(nil, nil, written, keyScore, false)
	require.NoError(t, err)
	got, err := nodeCase{params: map[string]any{"count": 300, "seed": -7}}.runner(t, sample())(in, 0)
	require.NoError(t, err)
	assert.Equal(t, rankdtest.IDs(want), rankdtest.IDs(got))
}
