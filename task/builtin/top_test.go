package builtin

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// keyRef is an expression that reads a column.
func keyRef(key registry.KeyID) string { return fmt.Sprintf(`{"op":"key_ref","key_id":%d}`, key) }

// negated is an expression that reverses the order of a column.
func negated(key registry.KeyID) string { return `{"op":"neg","x":` + keyRef(key) + `}` }

func TestTop(t *testing.T) {
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3, 4, 5, 6), keyFloat, 3, 9, nil, 9, 5, 1)
	exprs := map[string]string{"e": keyRef(keyFloat), "again": negated(keyScore), "id": negated(registry.IDKey)}
	for name, c := range map[string]struct {
		params        map[string]any
		ids           []int64
		first, second []any
	}{
		"the best":              {map[string]any{"count": 3}, []int64{2, 4, 5}, []any{9.0, 9.0, 5.0}, nil},
		"more than there are":   {map[string]any{"count": 99}, []int64{2, 4, 5, 1, 6, 3}, []any{9.0, 9.0, 5.0, 3.0, 1.0, nil}, nil},
		"a threshold":           {map[string]any{"count": 99, "threshold": 3}, []int64{2, 4, 5, 1}, []any{9.0, 9.0, 5.0, 3.0}, nil},
		"a threshold above all": {map[string]any{"count": 99, "threshold": 10}, []int64{}, []any{}, nil},
		"a threshold below all": {map[string]any{"count": 99, "threshold": -1e300}, []int64{2, 4, 5, 1, 6}, []any{9.0, 9.0, 5.0, 3.0, 1.0}, nil},
		"a second phase": {map[string]any{"count": 3, "rerank_expr_id": "again", "rerank_count": 4, "rerank_out_key": "second"},
			[]int64{1, 5, 2}, []any{3.0, 5.0, 9.0}, []any{-3.0, -5.0, -9.0}},
		"a second phase for fewer": {map[string]any{"count": 4, "rerank_expr_id": "id", "rerank_count": 2, "rerank_out_key": "second"},
			[]int64{2, 4, 5, 1}, []any{9.0, 9.0, 5.0, 3.0}, []any{-2.0, -4.0, nil, nil}},
		"a second phase with a null": {map[string]any{"count": 6, "rerank_expr_id": "again", "rerank_count": 6, "rerank_out_key": "second"},
			[]int64{6, 1, 5, 2, 4, 3}, []any{1.0, 3.0, 5.0, 9.0, 9.0, nil}, []any{-1.0, -3.0, -5.0, -9.0, -9.0, nil}},
		"a second phase above a threshold": {map[string]any{"count": 6, "rerank_expr_id": "again", "rerank_count": 6, "rerank_out_key": "second", "threshold": 5},
			[]int64{5, 2, 4}, []any{5.0, 9.0, 9.0}, []any{-5.0, -9.0, -9.0}},
	} {
		t.Run(name, func(t *testing.T) {
			c.params["expr_id"], c.params["out_key"] = "e", "score"
			out, err := nodeCase{params: c.params, exprs: exprs}.runner(t, top())(in, 0)
			require.NoError(t, err)
			assert.Equal(t, c.ids, rankdtest.IDs(out))
			assert.Equal(t, c.first, rankdtest.Values(out, keyScore))
			assert.Equal(t, c.second, rankdtest.Values(out, keySecond))
		})
	}
}

// topReference scores and sorts plain rows.
func topReference(rows []plainRow, first, second func(plainRow) (float64, bool), count, rerank int, threshold *float64) []int32 {
	order := func(score func(plainRow) (float64, bool)) func(a, b plainRow) int {
		return func(a, b plainRow) int {
			x, xOK := score(a)
			y, yOK := score(b)
			switch {
			case xOK && yOK:
				return cmp.Compare(y, x)
			case xOK:
				return -1
			case yOK:
				return 1
			}
			return 0
		}
	}
	slices.SortStableFunc(rows, order(first))
	if threshold != nil {
		rows = slices.DeleteFunc(rows, func(r plainRow) bool { v, ok := first(r); return !ok || v < *threshold })
	}
	if second != nil {
		slices.SortStableFunc(rows[:min(rerank, len(rows))], order(second))
	}
	kept := []int32{}
	for _, r := range rows[:min(count, len(rows))] {
		kept = append(kept, r.row)
	}
	return kept
}

func TestTopIsTheReference(t *testing.T) {
	exprs := map[string]string{"float": keyRef(keyFloat), "back": negated(keyScore), "other": keyRef(1002)}
	of := func(key registry.KeyID, sign float64) func(plainRow) (float64, bool) {
		return func(r plainRow) (float64, bool) { v, ok := r.number(key); return v * sign, ok }
	}
	half := 0.5
	for _, count := range []int{1, 3, 50, 1000} {
		for _, threshold := range []*float64{nil, &half} {
			for rerank, second := range map[int]string{0: "", 1: "back", 7: "other", 100: "back"} {
				params := map[string]any{"expr_id": "float", "out_key": "score", "count": count}
				if threshold != nil {
					params["threshold"] = *threshold
				}
				var secondScore func(plainRow) (float64, bool)
				switch second {
				case "back":
					secondScore = of(keyFloat, -1)
				case "other":
					secondScore = of(1002, 1)
				}
				if second != "" {
					params["rerank_expr_id"], params["rerank_count"], params["rerank_out_key"] = second, rerank, "second"
				}
				run := nodeCase{params: params, exprs: exprs}.runner(t, top())
				eachRandom(t, 25, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
					out, err := run(in, 0)
					require.NoError(t, err)
					require.Equal(t, topReference(plainRows(in), of(keyFloat, 1), secondScore, count, rerank, threshold), batchRows(out))
				})
			}
		}
	}
}

func TestTopFails(t *testing.T) {
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2), keyFloat, 1e308, nil)
	for name, c := range map[string]struct {
		expr, key, want string
	}{
		"infinity": {`{"op":"mul","a":` + keyRef(keyFloat) + `,"b":{"op":"const_number","value":10}}`, "score", "the expression is not finite for the row with id 1 (k1001 = 1e+308)"},
		"null":     {keyRef(keyFloat), "strict", "the expression is null for the row with id 2 (k1001 = null); strict is not nullable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nodeCase{params: map[string]any{"expr_id": "e", "out_key": c.key, "count": 1}, exprs: map[string]string{"e": c.expr}}.runner(t, top())(in, 0)
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestTopRefuses(t *testing.T) {
	exprs := map[string]string{"e": keyRef(keyFloat), "own": keyRef(keyScore), "unwritten": keyRef(keySecond)}
	for name, c := range map[string]struct {
		more map[string]any
		want string
	}{
		"half a phase":          {map[string]any{"rerank_count": 3}, "params.rerank_expr_id: is missing: rerank_expr_id, rerank_count and rerank_out_key need each other"},
		"a phase without count": {map[string]any{"rerank_expr_id": "e", "rerank_out_key": "second"}, "params.rerank_count: is missing: rerank_expr_id, rerank_count and rerank_out_key need each other"},
		"one column for both": {map[string]any{"rerank_expr_id": "e", "rerank_count": 3, "rerank_out_key": "score"},
			"params.rerank_out_key: is the key of out_key, which keeps the first score"},
		"rows without a second score": {map[string]any{"rerank_expr_id": "e", "rerank_count": 3, "rerank_out_key": "strict"},
			"params.rerank_count: is below count, and rerank_out_key is not nullable: the rows behind have no second score"},
		"no row":                  {map[string]any{"count": 0}, "params.count: must be 1 to 2147483647, not the integer 0"},
		"its own first score":     {map[string]any{"expr_id": "own"}, `params.expr_id: reads column "score" (6001), which no node before it writes`},
		"what nobody writes":      {map[string]any{"rerank_expr_id": "unwritten", "rerank_count": 9, "rerank_out_key": "second"}, `params.rerank_expr_id: reads column "second" (6002), which no node before it writes`},
		"a threshold":             {map[string]any{"threshold": "high"}, `params.threshold: must be a finite number, not "high"`},
		"a column that is a text": {map[string]any{"out_key": "k3001"}, "params.out_key: must be a key of type float, not key 3001 (k3001) of type string"},
	} {
		t.Run(name, func(t *testing.T) {
			params := map[string]any{"expr_id": "e", "out_key": "score", "count": 5}
			for name, v := range c.more {
				params[name] = v
			}
			nodeCase{params: params, exprs: exprs}.refuses(t, top(), c.want)
		})
	}
}
