package rankd_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// spannedPlan has a place for the op of a node and one for its parameters.
const spannedPlan = `{"schema_version": 1, "plan_name": "p", "outputs": ["out"], "nodes": [
	{"node_id": "me", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
	{"node_id": "out", "op": %s, "inputs": ["me"], "params": %s, "source_span": "p.plan.ts:4:6", "expr_span": "p.plan.ts:4:20"}],
	"expr_table": {"e": {"op": "param_ref", "param_id": 4, "source_span": "q.plan.ts:1:1"}},
	"pred_table": {
		"pattern": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}},
		"list": {"op": "or", "a": {"op": "in", "lhs": {"op": "key_ref", "key_id": 3001}, "list": ["XX"]},
			"b": {"op": "in", "lhs": {"op": "const_number", "value": 1}, "list": ["a"]}}}}`

// TestErrorsNameThePlaceInTheSource: the failure of a node names the expression that failed, else the node.
func TestErrorsNameThePlaceInTheSource(t *testing.T) {
	for _, c := range []struct{ name, op, params, span string }{
		{"a node", `"core::sort"`, `{"by": 2002}`, "p.plan.ts:4:6"},
		{"a node, not its expression", `"core::vm"`, `{"out_key": 1, "expr_id": "e"}`, "p.plan.ts:4:6"},
		{"an expression", `"core::vm"`, `{"out_key": 2002, "expr_id": "e"}`, "p.plan.ts:4:20"},
		{"a predicate", `"core::filter"`, `{"pred_id": "pattern"}`, "p.plan.ts:4:20"},
		{"a part of a predicate", `"core::filter"`, `{"pred_id": "list"}`, "p.plan.ts:4:20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			artifact := fmt.Sprintf(spannedPlan, c.op, c.params)
			bare := strings.NewReplacer("source_span", "unknown", "expr_span", "unknown").Replace(artifact)
			options := rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(artifact)}}}
			forModels(t, options, func(t *testing.T, e *rankd.Engine) {
				failed := fails(t, e)
				assert.Equal(t, c.span, failed.SourceSpan)
				assert.Contains(t, failed.Error(), ": "+c.span+": "+failed.Detail)
				line := string(failed.AppendJSON(nil))
				assert.Contains(t, line, `,"source_span":"`+c.span+`"}`)

				without := fails(t, open(t, rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(bare)}}}))
				assert.Empty(t, without.SourceSpan)
				assert.Equal(t, strings.Replace(line, `,"source_span":"`+c.span+`"`, "", 1), string(without.AppendJSON(nil)),
					"an artifact without spans gets the answer that it always got")
			})
		})
	}
}

func fails(t *testing.T, e *rankd.Engine) *rankd.Error {
	t.Helper()
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, ID: "r"})
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	return failed
}

// A pattern of the caller that is missing or malformed is the caller's fault. The error names the parameter.
func TestAPatternOfTheCaller(t *testing.T) {
	artifact := fmt.Sprintf(spannedPlan, `"core::filter"`, `{"pred_id": "pattern"}`)
	forModels(t, rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(artifact)}}}, func(t *testing.T, e *rankd.Engine) {
		missing := fails(t, e)
		assert.ErrorIs(t, missing, rankd.ErrInvalidRequest)
		assert.Equal(t, `the pattern in param "blocklist_regex" is missing: it is null, unset or not a string`, missing.Detail)
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Params: map[string]any{"blocklist_regex": "("}})
		require.ErrorIs(t, err, rankd.ErrInvalidRequest)
		assert.Equal(t, `bad pattern in param "blocklist_regex": missing closing ): "("`, err.(*rankd.Error).Detail)
		assert.Equal(t, "Node execution failed", err.(*rankd.Error).Text)
	})
}

func TestPlanInfoShowsTheSource(t *testing.T) {
	artifact := fmt.Sprintf(spannedPlan, `"core::sort"`, `{"by": 1}`)
	e := open(t, rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(artifact)}}})
	info, err := e.PlanInfo("p")
	require.NoError(t, err)
	assert.Equal(t, "p.plan.ts:4:6", info.Nodes[1].SourceSpan)
	assert.Empty(t, info.Nodes[0].SourceSpan)
}
