package builtin

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func TestNormalize(t *testing.T) {
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3, 4, 5), keyFloat, 10, nil, 20, 20, 50)
	for name, c := range map[string]struct {
		params map[string]any
		want   []any
	}{
		"min_max":         {nil, []any{0.0, nil, 0.25, 0.25, 1.0}},
		"min_max, asc":    {map[string]any{"order": "asc"}, []any{1.0, nil, 0.75, 0.75, 0.0}},
		"z_score":         {map[string]any{"method": "z_score"}, []any{-1.0, nil, -1.0 / 3, -1.0 / 3, 5.0 / 3}},
		"rank":            {map[string]any{"method": "rank"}, []any{4.0, nil, 2.0, 2.0, 1.0}},
		"rank, asc":       {map[string]any{"method": "rank", "order": "asc"}, []any{1.0, nil, 2.0, 2.0, 4.0}},
		"reciprocal_rank": {map[string]any{"method": "reciprocal_rank"}, []any{1.0 / 64, nil, 1.0 / 62, 1.0 / 62, 1.0 / 61}},
		"k":               {map[string]any{"method": "reciprocal_rank", "k": 0}, []any{0.25, nil, 0.5, 0.5, 1.0}},
	} {
		t.Run(name, func(t *testing.T) {
			params := map[string]any{"by": "k1001", "out_key": "score"}
			for name, v := range c.params {
				params[name] = v
			}
			out, err := nodeCase{params: params}.runner(t, normalize())(in, 0)
			require.NoError(t, err)
			got := rankdtest.Values(out, keyScore)
			for i := range c.want {
				if c.want[i] == nil {
					assert.Nil(t, got[i])
				} else {
					assert.InDelta(t, c.want[i], got[i], 1e-9, "%v", got)
				}
			}
		})
	}
}

func TestNormalizeAtTheEdges(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		values []any
		want   []any
	}{
		"one row, min_max":        {"min_max", []any{7}, []any{1.0}},
		"one row, z_score":        {"z_score", []any{7}, []any{0.0}},
		"equal rows, z_score":     {"z_score", []any{0.1, 0.1, 0.1}, []any{0.0, 0.0, 0.0}},
		"equal rows, rank":        {"rank", []any{0.1, 0.1, 0.1}, []any{1.0, 1.0, 1.0}},
		"both zeros, rank":        {"rank", []any{0, math.Copysign(0, -1), -1}, []any{1.0, 1.0, 3.0}},
		"the range of doubles":    {"min_max", []any{-math.MaxFloat64, 0, math.MaxFloat64}, []any{0.0, 0.5, 1.0}},
		"squares beyond it":       {"z_score", []any{-1e308, 1e308}, []any{-1.0, 1.0}},
		"squares below it":        {"z_score", []any{-5e-324, 5e-324}, []any{-1.0, 1.0}},
		"subnormals, min_max":     {"min_max", []any{0, 5e-324, 1e-323}, []any{0.0, 0.5, 1.0}},
		"nulls alone, min_max":    {"min_max", []any{nil, nil}, []any{nil, nil}},
		"nulls alone, z_score":    {"z_score", []any{nil, nil}, []any{nil, nil}},
		"nulls alone, rank":       {"rank", []any{nil, nil}, []any{nil, nil}},
		"no row, reciprocal_rank": {"reciprocal_rank", []any{}, []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			in := rankdtest.WithFloats(rankdtest.Rows(make([]int64, len(c.values))...), keyFloat, c.values...)
			out, err := nodeCase{params: map[string]any{"by": "k1001", "out_key": "score", "method": c.method}}.runner(t, normalize())(in, 0)
			require.NoError(t, err)
			assert.Equal(t, c.want, rankdtest.Values(out, keyScore))
		})
	}
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2), keyFloat, 1, nil)
	_, err := nodeCase{params: map[string]any{"by": "k1001", "out_key": "strict"}}.runner(t, normalize())(in, 0)
	assert.EqualError(t, err, "out_key: the result is null for 1 rows, and strict is not nullable")
	// All results are null if the column is missing. That happens after a node that failed and
	// gave no rows.
	out, err := nodeCase{params: map[string]any{"by": "k1002", "out_key": "score", "method": "rank"}}.runner(t, normalize())(in, 0)
	require.NoError(t, err)
	assert.Equal(t, []any{nil, nil}, rankdtest.Values(out, keyScore))
}

// normalizeReference computes the result of one row from the numbers of all rows. It is exact
// where the method adds or divides.
func normalizeReference(method string, desc bool, k float64, all []float64, v float64) float64 {
	exact := func(v float64) *big.Float { return new(big.Float).SetPrec(4000).SetFloat64(v) }
	least, greatest := exact(all[0]), exact(all[0])
	better := 0
	for _, other := range all {
		if o := exact(other); o.Cmp(least) < 0 {
			least = o
		} else if o.Cmp(greatest) > 0 {
			greatest = o
		}
		if desc && other > v || !desc && other < v {
			better++
		}
	}
	result := new(big.Float).SetPrec(4000)
	switch method {
	case "rank":
		return float64(better + 1)
	case "reciprocal_rank":
		return 1 / (k + float64(better+1))
	case "min_max":
		if least.Cmp(greatest) == 0 {
			return 1
		}
		from := new(big.Float).SetPrec(4000).Sub(exact(v), least)
		if !desc {
			from.Sub(greatest, exact(v))
		}
		result.Quo(from, new(big.Float).SetPrec(4000).Sub(greatest, least))
	case "z_score":
		if least.Cmp(greatest) == 0 {
			return 0
		}
		mean, n := exact(0), exact(float64(len(all)))
		for _, other := range all {
			mean.Add(mean, exact(other))
		}
		mean.Quo(mean, n)
		squares := exact(0)
		for _, other := range all {
			d := new(big.Float).SetPrec(4000).Sub(exact(other), mean)
			squares.Add(squares, d.Mul(d, d))
		}
		deviation := new(big.Float).SetPrec(4000).Sqrt(squares.Quo(squares, n))
		result.Quo(new(big.Float).SetPrec(4000).Sub(exact(v), mean), deviation)
		if !desc {
			result.Neg(result)
		}
	}
	f, _ := result.Float64()
	return f
}

func TestNormalizeIsTheReference(t *testing.T) {
	for _, method := range []string{"min_max", "z_score", "rank", "reciprocal_rank"} {
		for _, order := range []string{"asc", "desc"} {
			for key, name := range map[registry.KeyID]string{keyFloat: "k1001", keyInt: "k5001", registry.IDKey: "id"} {
				run := nodeCase{params: map[string]any{"by": name, "out_key": "score", "method": method, "order": order, "k": 7}}.runner(t, normalize())
				eachRandom(t, 12, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
					in = rowset.Take(in, 25) // the reference takes long
					rows := plainRows(in)
					var all []float64
					for _, row := range rows {
						if v, ok := row.number(key); ok {
							all = append(all, v)
						}
					}
					out, err := run(in, 0)
					require.NoError(t, err)
					for i, row := range plainRows(out) {
						require.Equal(t, rows[i].row, row.row)
						got, ok := row.number(keyScore)
						v, want := rows[i].number(key)
						require.Equal(t, want, ok)
						if !ok {
							continue
						}
						if exact, ok := row.fields[key].(int64); ok && int64(v) != exact {
							continue // Ranks are exact for integers, but the reference only knows doubles.
						}
						expected := normalizeReference(method, order == "desc", 7, all, v)
						if method == "rank" || method == "reciprocal_rank" {
							if key == keyFloat {
								require.Equal(t, expected, got)
							}
							continue
						}
						require.InDelta(t, expected, got, 1e-9*max(1, math.Abs(expected)))
					}
				})
			}
		}
	}
}

// Ranks distinguish integers that are the same double.
func TestRanksOfIntegersAreExact(t *testing.T) {
	in := rankdtest.WithInts(rankdtest.Rows(1, 2, 3), keyInt, int64(1<<53), int64(1<<53+1), int64(1<<53+1))
	out, err := nodeCase{params: map[string]any{"by": "k5001", "out_key": "score", "method": "rank"}}.runner(t, normalize())(in, 0)
	require.NoError(t, err)
	assert.Equal(t, []any{3.0, 1.0, 1.0}, rankdtest.Values(out, keyScore))
}

func TestNormalizeRefuses(t *testing.T) {
	for _, params := range []map[string]any{
		{"by": "k3001", "out_key": "score"}, {"by": "nope", "out_key": "score"}, {"by": "k1001", "out_key": "fixed"},
		{"by": "k1001", "out_key": "k5001"}, {"by": "k1001", "out_key": "score", "method": "softmax"},
		{"by": "k1001", "out_key": "score", "k": -1}, {"by": "k1001"}, {"by": "k1001", "out_key": "score", "order": 1},
	} {
		_, err := nodeCase{params: params}.load(t, normalize())
		t.Log(err)
		assert.ErrorContains(t, err, `p.plan.json: node "it": nodes[0].params.`)
	}
}
