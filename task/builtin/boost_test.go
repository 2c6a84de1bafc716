package builtin

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func rule(pred, expr string) map[string]any { return map[string]any{"pred_id": pred, "expr_id": expr} }

func operation(op, a, b string) string { return `{"op":"` + op + `","a":` + a + `,"b":` + b + `}` }

func greater(key registry.KeyID, than string) string {
	return `{"op":"cmp","cmp":">","a":` + keyRef(key) + `,"b":{"op":"const_number","value":` + than + `}}`
}

// boostTables are rules over the column k1001 and the result, score.
var boostExprs = map[string]string{
	"double": operation("mul", keyRef(keyScore), `{"op":"const_number","value":2}`),
	"plus":   operation("add", keyRef(keyScore), `{"op":"const_number","value":0.5}`),
	"null":   `{"op":"const_null"}`,
	"old":    keyRef(keyFloat),
	"huge":   operation("mul", keyRef(keyFloat), `{"op":"const_number","value":1e308}`),
}

var boostPreds = map[string]string{
	"old > 0": greater(keyFloat, "0"), "new > 3": greater(keyScore, "3"), "all": `{"op":"const_bool","value":true}`, "none": `{"op":"const_bool","value":false}`,
	"null":    `{"op":"is_null","x":` + keyRef(keyFloat) + `}`,
	"pattern": `{"op":"regex","key_id":3001,"pattern":{"kind":"param","param_id":2},"flags":""}`,
}

func TestBoost(t *testing.T) {
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3, 4), keyFloat, 1, 2, -1, nil)
	for name, c := range map[string]struct {
		mode  string
		rules []any
		want  []any
	}{
		"no row of a rule":          {"first", []any{rule("none", "double")}, []any{1.0, 2.0, -1.0, nil}},
		"first":                     {"first", []any{rule("old > 0", "double"), rule("all", "plus")}, []any{2.0, 4.0, -0.5, nil}},
		"all":                       {"all", []any{rule("old > 0", "double"), rule("all", "plus")}, []any{2.5, 4.5, -0.5, nil}},
		"all, a rule sees the last": {"all", []any{rule("old > 0", "double"), rule("new > 3", "double")}, []any{2.0, 8.0, -1.0, nil}},
		"first, rules see the old":  {"first", []any{rule("new > 3", "double"), rule("old > 0", "plus")}, []any{1.5, 2.5, -1.0, nil}},
		"a null gets a value":       {"first", []any{rule("null", "id"), rule("old > 0", "null")}, []any{nil, nil, -1.0, -4.0}},
		"the old stays readable":    {"all", []any{rule("all", "double"), rule("old > 0", "old")}, []any{1.0, 2.0, -2.0, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			exprs := map[string]string{"id": negated(registry.IDKey)}
			for id, text := range boostExprs {
				exprs[id] = text
			}
			out, err := nodeCase{params: map[string]any{"score": "k1001", "out_key": "score", "mode": c.mode, "rules": c.rules}, exprs: exprs, preds: boostPreds}.
				runner(t, boost())(in, 0)
			require.NoError(t, err)
			assert.Equal(t, c.want, rankdtest.Values(out, keyScore))
			assert.Equal(t, []any{1.0, 2.0, -1.0, nil}, rankdtest.Values(out, keyFloat))
		})
	}
}

// boostReference applies the rules to one row.
func boostReference(row plainRow, names []string, first bool) (float64, bool) {
	old, ok := row.number(keyFloat)
	v, has := old, ok
	for i := 0; i < len(names); i += 2 {
		hit := false
		switch names[i] {
		case "old > 0":
			hit = ok && old > 0
		case "new > 3":
			hit = has && v > 3
		case "all":
			hit = true
		case "null":
			hit = !ok
		}
		if !hit {
			continue
		}
		switch names[i+1] {
		case "double":
			v *= 2
		case "plus":
			v += 0.5
		case "null":
			has = false
		case "old":
			v, has = old, ok
		}
		if first {
			break
		}
	}
	return v, has
}

func TestBoostIsTheReference(t *testing.T) {
	preds, exprs := []string{"old > 0", "new > 3", "all", "none", "null"}, []string{"double", "plus", "null", "old"}
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var rules []any
		var names []string
		for range 1 + rng.IntN(6) {
			pred, expr := preds[rng.IntN(len(preds))], exprs[rng.IntN(len(exprs))]
			rules, names = append(rules, rule(pred, expr)), append(names, pred, expr)
		}
		mode := []string{"first", "all"}[rng.IntN(2)]
		run := nodeCase{params: map[string]any{"score": "k1001", "out_key": "score", "mode": mode, "rules": rules}, exprs: boostExprs, preds: boostPreds}.runner(t, boost())
		eachRandom(t, 8, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
			rows := plainRows(in)
			for _, row := range rows {
				if v, ok := boostReference(row, names, mode == "first"); ok && math.IsInf(v, 0) {
					return // the node fails
				}
				if v, ok := row.number(keyFloat); ok && math.Abs(v) > 1e307 {
					return // some intermediate value might be infinite
				}
			}
			out, err := run(in, 0)
			require.NoError(t, err)
			for i, row := range plainRows(out) {
				require.Equal(t, rows[i].row, row.row)
				want, ok := boostReference(rows[i], names, mode == "first")
				got, gotOK := row.number(keyScore)
				require.Equal(t, ok, gotOK, names)
				if ok {
					require.Equal(t, want, got, names)
				}
			}
		})
	}
}

func TestBoostFails(t *testing.T) {
	in := rankdtest.WithStrings(rankdtest.WithFloats(rankdtest.Rows(1, 2), keyFloat, 10, nil), keyText, "a", "b")
	for name, c := range map[string]struct {
		key   string
		rules []any
		want  string
	}{
		"infinity":  {"score", []any{rule("none", "huge"), rule("all", "huge")}, "rules[1]: the expression is not finite for the row with id 1 (k1001 = 10)"},
		"null":      {"strict", []any{rule("none", "old")}, "out_key: the result is null for 1 rows, and strict is not nullable"},
		"a pattern": {"score", []any{rule("pattern", "old")}, "rules[0]: pattern parameter is null, unset or no string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nodeCase{params: map[string]any{"score": "k1001", "out_key": c.key, "rules": c.rules}, exprs: boostExprs, preds: boostPreds}.runner(t, boost())(in, 0)
			assert.EqualError(t, err, c.want)
		})
	}
	node, err := nodeCase{params: map[string]any{"score": "k1001", "out_key": "score", "rules": []any{rule("all", "old")}}, exprs: boostExprs, preds: boostPreds}.load(t, boost())
	require.NoError(t, err)
	ctx := &task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Registry: testRegistry()}
	cancel(ctx)
	_, err = invoke(ctx)
	assert.ErrorIs(t, err, task.ErrCancelled)
}

func TestBoostRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		more map[string]any
		want string
	}{
		"in place":             {map[string]any{"out_key": "k1001"}, "params.out_key: is the key of score, which keeps its values"},
		"no rule":              {map[string]any{"rules": []any{}}, ""},
		"no list":              {map[string]any{"rules": rule("all", "old")}, ""},
		"too many rules":       {map[string]any{"rules": make([]any, 257)}, ""},
		"an unknown predicate": {map[string]any{"rules": []any{rule("all", "old"), rule("nope", "old")}}, `params.rules[1].pred_id: pred_table has no entry "nope"`},
		"an unknown field":     {map[string]any{"rules": []any{map[string]any{"pred_id": "all", "expr_id": "old", "weight": 2}}}, ""},
		"a mode":               {map[string]any{"mode": "some"}, ""},
		"an unwritten column":  {map[string]any{"rules": []any{rule("all", "second")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			params := map[string]any{"score": "k1001", "out_key": "score", "rules": []any{rule("all", "old")}}
			for name, v := range c.more {
				params[name] = v
			}
			exprs := map[string]string{"old": boostExprs["old"], "second": keyRef(keySecond)}
			node := nodeCase{params: params, exprs: exprs, preds: boostPreds}
			if c.want != "" {
				node.refuses(t, boost(), c.want)
				return
			}
			_, err := node.load(t, boost())
			t.Log(err)
			assert.ErrorContains(t, err, `p.plan.json: node "it": nodes[0].params.`)
		})
	}
}
