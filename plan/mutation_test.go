package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/plan"
)

// richPlan uses every op, every kind of tree node and every optional field.
const richPlan = `{
	"schema_version": 1, "plan_name": "rich",
	"capabilities_required": ["cap.rfc.0001.extensions_capabilities.v1"],
	"extensions": {"cap.rfc.0001.extensions_capabilities.v1": {}},
	"nodes": [
		{"node_id": "v", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001", "trace": "V"},
			"extensions": {"cap.rfc.0001.extensions_capabilities.v1": {}}},
		{"node_id": "f", "op": "follow", "inputs": ["v"], "params": {"endpoint": "ep_0001", "fanout": 3}},
		{"node_id": "r", "op": "recommendation", "inputs": ["v"], "params": {"endpoint": "ep_0001", "fanout": 3}},
		{"node_id": "m", "op": "media", "inputs": ["f"], "params": {"endpoint": "ep_0001", "fanout": 3}, "timeout_ms": 5},
		{"node_id": "vm", "op": "vm", "inputs": ["m"], "params": {"out_key": 2001, "expr_id": "e"},
			"scheduling": {"inline": true, "cost_estimate_us": 10}, "source_span": "a:1"},
		{"node_id": "c", "op": "concat", "inputs": ["vm"], "params": {"rhs": "r"}},
		{"node_id": "k", "op": "filter", "inputs": ["c"], "params": {"pred_id": "p"}},
		{"node_id": "s", "op": "sort", "inputs": ["k"], "params": {"by": 2001, "order": "desc"}},
		{"node_id": "t", "op": "take", "inputs": ["s"], "params": {"count": 4}},
		{"node_id": "z", "op": "sleep", "inputs": ["t"], "params": {"duration_ms": 1, "fail_after_sleep": false}},
		{"node_id": "b", "op": "busy_cpu", "inputs": ["z"], "params": {"busy_wait_ms": 1}},
		{"node_id": "x", "op": "fixed_source", "inputs": [], "params": {"row_count": 2}}
	],
	"outputs": ["b", "x"],
	"expr_table": {"e": {"op": "add", "a": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}},
		"b": {"op": "coalesce", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "sub",
			"a": {"op": "neg", "x": {"op": "const_number", "value": 0.5}}, "b": {"op": "const_null"}}}}},
	"pred_table": {"p": {"op": "and", "a": {"op": "or", "a": {"op": "not", "x": {"op": "const_bool", "value": true}},
		"b": {"op": "cmp", "cmp": "<=", "a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 1}}},
		"b": {"op": "and", "a": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1}, "list": [1, 2]},
		"b": {"op": "and", "a": {"op": "is_null", "x": {"op": "const_null"}}, "b": {"op": "and",
			"a": {"op": "regex", "key_id": 3001, "flags": "i", "pattern": {"kind": "literal", "value": "US"}},
			"b": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}}}}}}}
}`

// optionalMembers may be absent from a valid plan.
var optionalMembers = []string{
	"trace", "row_count", "order", "fail_after_sleep", "timeout_ms", "scheduling", "inline", "cost_estimate_us",
	"source_span", "extensions", "flags", "cap.rfc.0001.extensions_capabilities.v1",
}

// TestMutations takes valid plans and breaks one thing in each possible place. Every broken
// plan must be refused. It has a value of another kind, lacks a member, or has a name that
// leads nowhere.
func TestMutations(t *testing.T) {
	plans := map[string][]byte{"rich": []byte(richPlan)}
	for _, name := range exampleNames {
		plans[name] = readPlan(t, name)
	}
	ops, reg := testOps(), testRegistry(t)
	for name, text := range plans {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.UseNumber()
			require.NoError(t, dec.Decode(&doc))
			deleteUnread(doc)

			mutations := 0
			try := func(what string) {
				mutations++
				mutant, err := json.Marshal(doc)
				require.NoError(t, err)
				_, err = plan.Load("mutant", mutant, ops, reg)
				var bad *plan.Error
				require.ErrorAs(t, err, &bad, what)
			}
			original, err := json.Marshal(doc)
			require.NoError(t, err)
			_, err = plan.Load(name, original, ops, reg)
			require.NoError(t, err, "the plan has to be valid to begin with")

			mutate(doc, "", try)
			assert.Greater(t, mutations, 10)

			restored, err := json.Marshal(doc)
			require.NoError(t, err)
			require.Equal(t, string(original), string(restored))
		})
	}
}

// deleteUnread drops the members that Load ignores.
func deleteUnread(doc map[string]any) {
	delete(doc, "built_by")
	for _, n := range doc["nodes"].([]any) {
		delete(n.(map[string]any), "expr_span")
	}
	for _, table := range []string{"expr_table", "pred_table"} {
		entries, _ := doc[table].(map[string]any)
		for _, entry := range entries {
			delete(entry.(map[string]any), "source_span")
		}
	}
}

// mutate breaks everything inside v, one thing at a time, and calls try while that thing is
// broken.
func mutate(v any, path string, try func(what string)) {
	replace := func(where string, old any, set func(any)) {
		for _, broken := range breakages(where, old) {
			set(broken)
			try(fmt.Sprintf("%s: %v instead of %v", where, broken, old))
		}
		set(old)
		mutate(old, where, try)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			old := v[name]
			where := path + "." + name
			replace(where, old, func(broken any) { v[name] = broken })
			if !optional(path, name, v) {
				delete(v, name)
				try(where + " left out")
				v[name] = old
			}
		}
	case []any:
		for i, old := range v {
			replace(fmt.Sprintf("%s[%d]", path, i), old, func(broken any) { v[i] = broken })
		}
	}
}

// breakages returns values that are not allowed in place of old.
func breakages(path string, old any) []any {
	switch old := old.(type) {
	case map[string]any:
		return []any{[]any{}, "text", json.Number("1"), true}
	case []any:
		return []any{map[string]any{}, "text", json.Number("1"), nil}
	case json.Number:
		return []any{"text", true, []any{}}
	case bool:
		return []any{json.Number("1"), "true", []any{}}
	case nil: // only of trace, which may also be a string
		return []any{json.Number("1"), false}
	case string:
		wrong := []any{json.Number("1"), false, []any{}}
		if !hasSuffix(path, ".source_span") {
			wrong = append(wrong, map[string]any{})
		}
		if hasSuffix(path, ".order", ".trace", ".plan_name", ".source_span", ".node_id", "pattern.value") {
			return wrong // any text is allowed, and another node_id is if nothing refers to the node
		}
		if hasSuffix(path, ".flags") {
			return append(wrong, "g") // an empty list of flags is allowed
		}
		return append(wrong, old+"_", "") // leads nowhere, or is not a known word
	}
	panic(fmt.Sprintf("%T", old))
}

func optional(path, name string, siblings map[string]any) bool {
	switch {
	case slices.Contains(optionalMembers, name):
		return true
	case name == "params": // unless some parameter is required
		return !slices.ContainsFunc(requiredParams, func(p string) bool {
			_, has := siblings["params"].(map[string]any)[p]
			return has
		})
	case path == "" && name == "capabilities_required":
		return len(siblings[name].([]any)) == 0
	case path == "" && (name == "expr_table" || name == "pred_table"):
		return len(siblings[name].(map[string]any)) == 0
	}
	return false
}

var requiredParams = []string{
	"endpoint", "fanout", "out_key", "expr_id", "pred_id", "by", "count", "rhs", "duration_ms", "busy_wait_ms",
}

func hasSuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool {
		return len(s) >= len(suffix) && s[len(s)-len(suffix):] == suffix
	})
}

// exampleNames are the plans that come with the binary.
var exampleNames = []string{
	"complex_dag", "concat_plan", "diamond", "mixed_pipeline", "parallel_fanout", "parallel_sleep_plan",
	"reels_plan_a", "regex_plan", "simple_viewer", "viewer_filter",
}

// TestExamplePlans fixes what the ten plans are, so that no typo changes one.
func TestExamplePlans(t *testing.T) {
	library := plan.NewLibrary(demo.Plans(), "the built-in examples", testOps(), testRegistry(t), nil)
	list, err := library.List()
	require.NoError(t, err)
	names := make([]string, len(list))
	for i := range list {
		require.NoError(t, list[i].Err)
		checkInvariants(t, list[i].Graph)
		assert.Equal(t, list[i].Name, list[i].Graph.Name, "file and plan have the same name")
		names[i] = list[i].Name
	}
	assert.Equal(t, exampleNames, names)

	g, err := library.Get("complex_dag")
	require.NoError(t, err)
	var ids, ops []string
	var deps []int
	for _, n := range g.Nodes {
		ids, ops, deps = append(ids, n.ID), append(ops, n.Op), append(deps, n.Deps)
	}
	assert.Equal(t, []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}, ids)
	assert.Equal(t, []int{0, 1, 1, 1, 1, 1, 1, 2, 1, 1}, deps)
	assert.Equal(t, []string{
		"core::viewer", "core::follow", "core::recommendation", "core::media", "core::media",
		"core::vm", "core::vm", "core::concat", "core::sort", "core::take",
	}, ops)
	assert.Equal(t, []int{9}, g.Outputs)
}
