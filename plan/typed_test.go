package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/plan/expr"
)

// exprPlan is a plan with one expression and one predicate, used or not.
func exprPlan(capabilities, e, p string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": ["s"], "capabilities_required": [%s],
		"expr_table": {"e 0": %s}, "pred_table": {"p0": %s}}`, source, capabilities, e, p)
}

const (
	typedExprs = `"` + expr.Capability + `"`
	constant   = `{"op": "const_number", "value": 1}`
	always     = `{"op": "const_bool", "value": true}`
	half       = `{"op": "neg", "x": {"op": "div", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}}}`
	sameText   = `{"op": "not", "x": {"op": "cmp", "cmp": "==", "a": {"op": "key_ref", "key_id": 3001}, "b": {"op": "const_string", "value": "a"}}}`
)

func TestLoadTypedExpressions(t *testing.T) {
	assert.True(t, load(t, exprPlan(typedExprs, half, sameText)).Typed)
	assert.False(t, load(t, exprPlan("", constant, always)).Typed)
	both := typedExprs + `, "cap.rfc.0001.extensions_capabilities.v1"`
	assert.True(t, load(t, exprPlan(both, half, sameText)).Typed)
	withExtension := exprPlan(typedExprs, half, always)
	assert.True(t, load(t, withExtension[:len(withExtension)-1]+`, "extensions": {`+typedExprs+`: {}}}`).Typed)

	for _, c := range []struct{ name, artifact, want string }{
		{"operator without the capability", exprPlan("", half, always),
			`t.plan.json: expr_table["e 0"].x: op "div" needs "cap.rankd.expressions.v1" in capabilities_required`},
		{"operator of a predicate without it", exprPlan("", constant, sameText),
			`t.plan.json: pred_table.p0.x.b: op "const_string" needs "cap.rankd.expressions.v1" in capabilities_required`},
		{"another capability", exprPlan(`"cap.rfc.0001.extensions_capabilities.v1"`, half, always),
			`t.plan.json: expr_table["e 0"].x: op "div" needs "cap.rankd.expressions.v1" in capabilities_required`},
		{"a type error", exprPlan(typedExprs, `{"op": "neg", "x": {"op": "key_ref", "key_id": 3001}}`, always),
			`t.plan.json: expr_table["e 0"].x: want a number, have key country of type string`},
		{"an unknown key", exprPlan(typedExprs, constant, `{"op": "is_null", "x": {"op": "key_ref", "key_id": 7}}`),
			`t.plan.json: pred_table.p0.x: key_id: 7 is not a registered key`},
		{"a payload", withExtension[:len(withExtension)-1] + `, "extensions": {` + typedExprs + `: {"a": 1}}}`,
			`t.plan.json: extensions["cap.rankd.expressions.v1"]: must be empty, but has a field "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.EqualError(t, refuse(t, c.artifact), c.want)
		})
	}
}
