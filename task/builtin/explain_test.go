package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// reasons runs a node and returns by id what it says of each row of its input, whether the row
// is in the result or gone.
func reasons(t *testing.T, n nodeCase, spec task.Spec, in rowset.RowSet) []string {
	node, err := n.load(t, spec)
	require.NoError(t, err)
	c := &task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Params: new(expr.Params), Registry: testRegistry()}
	out, err := invoke(c)
	require.NoError(t, err)
	account := spec.Explain(c, out)
	var all []string
	for i := range in.Len() {
		at := task.RowAt{Side: 0, Pos: i}
		if pos := positionIn(out, in.Row(i)); pos >= 0 {
			at = task.RowAt{Side: task.InResult, Pos: pos}
		}
		all = append(all, show(account.Reason(at)))
	}
	return all
}

// show writes a reason as one line.
func show(r task.Reason) string {
	parts := []string{r.Kind}
	if r.Text != "" {
		parts = append(parts, r.Text)
	}
	if r.Tree != nil {
		parts = append(parts, fmt.Sprint("tree=", r.Tree.Value))
	}
	if r.Rank > 0 {
		parts = append(parts, fmt.Sprintf("rank %d of %d, %d kept", r.Rank, r.Of, r.Limit))
	}
	if r.Score != nil {
		parts = append(parts, fmt.Sprint("score ", *r.Score))
	}
	if r.Lacks != nil {
		parts = append(parts, fmt.Sprint("lacks ", *r.Lacks))
	}
	for _, f := range r.Fired {
		parts = append(parts, fmt.Sprint("rule ", f.Rule, "=", f.Tree.Value))
	}
	for _, v := range r.Values {
		part := fmt.Sprint(v.Name, "=", v.Value)
		if v.Adds != nil {
			part += fmt.Sprint(" adds ", *v.Adds)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func TestScoresSayWhy(t *testing.T) {
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3, 4), keyFloat, 1, 2, 8, nil)
	in = rankdtest.WithStrings(in, keyText, "a", "a", "b", "a")
	in = rankdtest.WithInts(in, keyInt, 5, nil, -5, 5)
	exprs := map[string]string{"e": keyRef(keyFloat), "again": negated(keyScore)}
	for id, text := range boostExprs {
		exprs[id] = text
	}
	named := rule("old > 0", "double")
	named["name"] = "twice"
	for name, c := range map[string]struct {
		spec   task.Spec
		params map[string]any
		want   []string
	}{
		"top": {top(), map[string]any{"expr_id": "e", "out_key": "score", "count": 1}, []string{
			"cut; tree=1; rank 3 of 4, 1 kept; score 1; lacks 7", "cut; tree=2; rank 2 of 4, 1 kept; score 2; lacks 6",
			"sorted; tree=8", "cut; tree=<nil>; rank 4 of 4, 1 kept"}},
		"top, threshold": {top(), map[string]any{"expr_id": "e", "out_key": "score", "count": 9, "threshold": 1.5}, []string{
			"cut; its score is below the threshold; tree=1; rank 3 of 4, 2 kept; score 1; lacks 0.5", "sorted; tree=2", "sorted; tree=8",
			"cut; its score is below the threshold; tree=<nil>; rank 4 of 4, 2 kept"}},
		"top, second phase": {top(), map[string]any{"expr_id": "e", "out_key": "score", "count": 1, "rerank_expr_id": "again", "rerank_count": 2, "rerank_out_key": "second"}, []string{
			"cut; tree=1; rank 3 of 4, 1 kept; score 1; lacks 7", "sorted; a second score ordered it among the best 2; tree=-2",
			"cut; tree=-8; rank 2 of 2, 1 kept; score -8; lacks 6", "cut; tree=<nil>; rank 4 of 4, 1 kept"}},
		"boost": {boost(), map[string]any{"score": "k1001", "out_key": "score", "mode": "all", "rules": []any{named, rule("new > 3", "plus")}}, []string{
			"boosted; rule twice=2; k1001=1", "boosted; rule twice=4; rule 2=4.5; k1001=2", "boosted; rule twice=16; rule 2=16.5; k1001=8", "passed"}},
		"boost, first": {boost(), map[string]any{"score": "k1001", "out_key": "score", "rules": []any{named, rule("new > 3", "plus")}}, []string{
			"boosted; rule twice=2; k1001=1", "boosted; rule twice=4; k1001=2", "boosted; rule twice=16; k1001=8", "passed"}},
		"normalize": {normalize(), map[string]any{"by": "k1001", "out_key": "score"}, []string{
			"normalized; min_max of k1001 among 4 rows; k1001=1; least=1; greatest=8", "normalized; min_max of k1001 among 4 rows; k1001=2; least=1; greatest=8",
			"normalized; min_max of k1001 among 4 rows; k1001=8; least=1; greatest=8", "normalized; k1001 is null"}},
		"ranks": {normalize(), map[string]any{"by": "k1001", "out_key": "score", "method": "rank"}, []string{
			"normalized; rank of k1001 among 4 rows; rank 3 of 4, 0 kept; k1001=1", "normalized; rank of k1001 among 4 rows; rank 2 of 4, 0 kept; k1001=2",
			"normalized; rank of k1001 among 4 rows; rank 1 of 4, 0 kept; k1001=8", "normalized; k1001 is null"}},
		"model": {model(testModels(t)), map[string]any{"model": "unused", "out_key": "score"}, []string{
			`computed; model "unused" (reg:squarederror), 1 trees; k5001=5; margin=2`, `computed; model "unused" (reg:squarederror), 1 trees; k5001=<nil>; margin=1`,
			`computed; model "unused" (reg:squarederror), 1 trees; k5001=-5; margin=1`, `computed; model "unused" (reg:squarederror), 1 trees; k5001=5; margin=2`}},
		"a model that tells of its nodes": {model(testModels(t)), map[string]any{"model": "told", "out_key": "score"}, []string{
			`computed; model "told" (reg:squarederror), 2 trees; k5001=5 adds 5; k1001=1 adds -0.75; base=16.75; margin=21`,
			`computed; model "told" (reg:squarederror), 2 trees; k5001=<nil> adds 5; k1001=2 adds 0.25; base=16.75; margin=22`,
			`computed; model "told" (reg:squarederror), 2 trees; k5001=-5 adds -5; k1001=8 adds 0.25; base=16.75; margin=12`,
			`computed; model "told" (reg:squarederror), 2 trees; k5001=5 adds 5; k1001=<nil> adds -0.75; base=16.75; margin=21`}},
		"aggregate": {aggregate(), map[string]any{"by": []string{"k3001"}, "values": []any{
			map[string]any{"method": "count", "out_key": "k5002"}, map[string]any{"method": "max", "column": "k1001", "out_key": "score"}}}, []string{
			"computed; over 3 rows of the same k3001; k5002=3; score=2", "computed; over 3 rows of the same k3001; k5002=3; score=2",
			"computed; over 1 rows of the same k3001; k5002=1; score=8", "computed; over 3 rows of the same k3001; k5002=3; score=2"}},
		"aggregate, first": {aggregate(), map[string]any{"keep": "first", "values": []any{map[string]any{"method": "sum", "column": "k5001", "out_key": "k5001"}}}, []string{
			"computed; over all 4 rows; k5001=5", "deduplicated; the first row of its group stays", "deduplicated; the first row of its group stays",
			"deduplicated; the first row of its group stays"}},
		"sample": {sample(), map[string]any{"count": 2, "weight": "k1001", "seed": 4, "propensity": "score"}, []string{
			"cut; it was not drawn; k1001=1", "sorted; draw 2 took it; rank 2 of 4, 2 kept; propensity=0.6666666666666666; k1001=2",
			"sorted; draw 1 took it; rank 1 of 4, 2 kept; propensity=0.7272727272727273; k1001=8", "cut; it was not drawn; k1001=<nil>"}},
		"cap": {capRows(), map[string]any{"by": "k3001", "max": 2}, []string{"", "", "", "capped; at most 2 rows of the same k3001 stay"}},
		"diversify": {diversify(), map[string]any{"by": "k3001", "max": 1, "window": 2}, []string{
			"passed", "moved; it waited: each 2 neighbours has at most 1 rows of the same k3001", "moved; rows before it had to wait", "passed"}},
		"decay": {diversify(), map[string]any{"by": "k3001", "method": "decay", "score": "k1001", "out_key": "score"}, []string{
			"computed; its score falls with each row of the same k3001 that ranks before it; k1001=1; score=0.5",
			"computed; its score falls with each row of the same k3001 that ranks before it; k1001=2; score=2",
			"computed; its score falls with each row of the same k3001 that ranks before it; k1001=8; score=8",
			"computed; its score falls with each row of the same k3001 that ranks before it"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, reasons(t, nodeCase{params: c.params, exprs: exprs, preds: boostPreds}, c.spec, in))
		})
	}
}

// The id tells rows apart unless a node says otherwise, though the id is not a column.
func TestSourcesSayWhyByID(t *testing.T) {
	in := rankdtest.Rows(7, 8, 7)
	run := func(prepared any, refs ...rowset.RowSet) *task.Ctx {
		return &task.Ctx{Node: &plan.Node{Prepared: prepared}, Inputs: []rowset.RowSet{in}, Refs: refs, Params: new(expr.Params), Registry: testRegistry()}
	}
	kept, last := rowset.Take(in, 2), task.RowAt{Pos: 2}

	dedupe := run(&rowset.Distinction{By: registry.IDKey, Sets: 5201})
	account := explainDedupe(dedupe, kept)
	assert.Equal(t, task.Reason{Kind: task.Deduplicated, Instead: []int64{7}, By: registry.IDKey}, account.Reason(last))
	assert.Equal(t, []task.RowAt{{Pos: 0}, {Pos: 2}}, account.From(0))

	params := new(expr.Params)
	params.SetIntList(9, []int64{7})
	exclude := run(&excludeNode{by: registry.IDKey, context: &registry.Param{ID: 9, Name: "seen", Type: registry.IntList}})
	exclude.Params = params
	why := explainExclude(exclude, kept).Reason(last)
	assert.Equal(t, task.Reason{Kind: task.Excluded, Text: "it is in seen of the request's context", By: registry.IDKey}, why)

	node, err := nodeCase{params: map[string]any{"endpoint": "ep_0001", "key": "seen:{user}:{id}", "max": 3}}.load(t, frequencyCap())
	require.NoError(t, err)
	counted := run(nil)
	counted.Node, counted.UserID = node, 5
	why = explainFrequencyCap(counted, kept).Reason(task.RowAt{Pos: 1})
	assert.Equal(t, task.Reason{Kind: task.Capped, Text: "its counter seen:5:8 in Redis was at 3 or more"}, why)

	join := run(&joinNode{how: "anti", on: registry.IDKey, rightOn: registry.IDKey}, rankdtest.Rows(7))
	why = explainJoin(join, kept).Reason(last)
	assert.Equal(t, task.Reason{Kind: task.Unmatched, Text: "the right side has it", By: registry.IDKey}, why)
}
