package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/plan"
)

// nodesPlan wraps nodes and outputs, both in JSON, into an artifact.
func nodesPlan(nodes, outputs string) string {
	return `{"schema_version": 1, "plan_name": "p", "nodes": [` + nodes + `], "outputs": [` + outputs + `],
		"expr_table": {"e": {"op": "const_number", "value": 1}, "": {"op": "const_null"}},
		"pred_table": {"p": {"op": "const_bool", "value": true}, "": {"op": "const_bool", "value": false}}}`
}

// source is a node without dependencies, for the tests of other nodes.
const source = `{"node_id": "s", "op": "test::fixed_source", "inputs": []}`

// withNode returns an artifact of source and one node x that reads it.
func withNode(op, params string) string {
	return nodesPlan(source+`, {"node_id": "x", "op": "`+op+`", "inputs": ["s"], "params": `+params+`}`, `"x"`)
}

func TestLoadBuildsGraph(t *testing.T) {
	// The plan lists its nodes against the direction of the edges. One reader reads a node
	// twice, a ref equals an input, and an output repeats.
	artifact := nodesPlan(`
		{"node_id": "join", "op": "concat", "inputs": ["a"], "params": {"rhs": "b", "trace": "T"}},
		{"node_id": "a", "op": "core::take", "inputs": ["s"], "params": {"count": 2}},
		{"node_id": "b", "op": "core::vm", "inputs": ["s"], "params": {"out_key": 2001, "expr_id": "e"}},
		{"node_id": "s", "op": "fixed_source", "inputs": []},
		{"node_id": "self", "op": "core::concat", "inputs": ["s", "s"], "params": {"rhs": "s"}},
		{"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "f", "op": "core::filter", "inputs": ["v"], "params": {"pred_id": "p", "trace": null}}`,
		`"join", "self", "join"`)
	g := load(t, artifact)

	digest := sha256.Sum256([]byte(artifact))
	assert.Equal(t, "p", g.Name)
	assert.Equal(t, hex.EncodeToString(digest[:]), g.Digest)
	assert.Equal(t, []int{0, 4, 0}, g.Outputs)
	assert.Equal(t, []int{3, 5}, g.Sources)

	join, b, s, self, v, f := g.Nodes[0], g.Nodes[2], g.Nodes[3], g.Nodes[4], g.Nodes[5], g.Nodes[6]
	assert.Equal(t, "core::concat", join.Op, "a bare name is an alias")
	assert.Equal(t, []int{1}, join.Inputs)
	assert.Equal(t, []int{2}, join.Refs)
	assert.Equal(t, 2, join.Deps)
	assert.Equal(t, "T", join.Trace)
	assert.Equal(t, "b", join.Params.String("rhs"))
	assert.True(t, join.IsOutput)
	assert.False(t, s.IsOutput)
	assert.Equal(t, []int{1, 2, 4, 4, 4}, s.Succs, "one entry per edge, in order of record")
	assert.Equal(t, []int{3, 3}, self.Inputs)
	assert.Equal(t, 3, self.Deps)
	assert.NotNil(t, b.Expr)
	assert.Nil(t, b.Pred)
	assert.NotNil(t, f.Pred)
	assert.Empty(t, f.Trace)
	require.NotNil(t, v.Endpoint)
	assert.Equal(t, "ep_0001", v.Endpoint.ID)
	assert.Panics(t, func() { join.Params.Int("count") })
}

func TestLoadAcceptsEmptyPlan(t *testing.T) {
	g := load(t, "\ufeff"+`{"schema_version": 1, "plan_name": "", "nodes": [], "outputs": []}`)
	assert.Empty(t, g.Nodes)
	assert.Empty(t, g.Outputs)
	assert.Empty(t, g.Sources)
}

func TestLoadIntForms(t *testing.T) {
	tests := []struct {
		literal string
		want    int64
	}{
		{"4", 4},
		{"4.0", 4},
		{"0.3E1", 3},
		{"-0.0", 0},
		{"-7", -7},
		{"-7e0", -7},
		{"9223372036854775807", math.MaxInt64},
		{"-9223372036854775808", math.MinInt64},
		{"-9.223372036854775808e18", math.MinInt64},
		{"9223372036854775808", math.MinInt64}, // unsigned literals wrap around
		{"18446744073709551615", -1},
	}
	for _, test := range tests {
		t.Run(test.literal, func(t *testing.T) {
			g := load(t, withNode("core::take", `{"count": `+test.literal+`}`))
			assert.Equal(t, test.want, g.Nodes[1].Params.Int("count"))
		})
	}
	for _, literal := range []string{
		"1.5", "true", `"4"`, "[4]", "{}", "9.223372036854775808e18", "-9.3e18", "18446744073709551616", "1e300",
	} {
		t.Run(literal, func(t *testing.T) {
			bad := refuse(t, withNode("core::take", `{"count": `+literal+`}`))
			assert.Equal(t, "x", bad.Node)
			assert.Equal(t, "nodes[1].params.count", bad.Field)
		})
	}
}

func TestLoadDefaults(t *testing.T) {
	for _, params := range []string{"null", "{}", `{"row_count": null, "trace": null}`} {
		g := load(t, nodesPlan(`{"node_id": "s", "op": "test::fixed_source", "inputs": [], "params": `+params+`}`, ``))
		assert.Equal(t, int64(1), g.Nodes[0].Params.Int("row_count"), params)
	}
	g := load(t, withNode("core::sort", `{"by": 1, "order": null}`))
	assert.Equal(t, "asc", g.Nodes[1].Params.String("order"))
	g = load(t, withNode("core::sort", `{"by": 1, "order": "sideways"}`))
	assert.Equal(t, "sideways", g.Nodes[1].Params.String("order"), "words are checked when the node runs")
	g = load(t, withNode("test::sleep", `{"duration_ms": 1}`))
	assert.False(t, g.Nodes[1].Params.Bool("fail_after_sleep"))
	g = load(t, withNode("test::sleep", `{"duration_ms": 1, "fail_after_sleep": true}`))
	assert.True(t, g.Nodes[1].Params.Bool("fail_after_sleep"))
}

// A plan loads if it uses the empty id and its table has an expression or predicate with that
// id. But the id names nothing, so the node fails when it runs.
func TestLoadEmptyTableID(t *testing.T) {
	g := load(t, withNode("core::vm", `{"out_key": 2001, "expr_id": ""}`))
	assert.Nil(t, g.Nodes[1].Expr)
	g = load(t, withNode("core::filter", `{"pred_id": ""}`))
	assert.Nil(t, g.Nodes[1].Pred)

	bad := refuse(t, `{"schema_version": 1, "plan_name": "p", "nodes": [
		{"node_id": "x", "op": "core::vm", "inputs": [], "params": {"out_key": 2001, "expr_id": ""}}], "outputs": []}`)
	assert.Equal(t, "nodes[0].params.expr_id", bad.Field)
}

func TestLoadOptionalReferences(t *testing.T) {
	emptyID := `{"node_id": "", "op": "test::fixed_source", "inputs": []}, `
	g := load(t, nodesPlan(emptyID+`{"node_id": "x", "op": "test::optional", "inputs": []}`, ``))
	assert.Zero(t, g.Nodes[1].Deps, "a reference that is not given does not name the node with the empty id")
	assert.Nil(t, g.Nodes[1].Endpoint)

	g = load(t, nodesPlan(emptyID+`{"node_id": "x", "op": "optional", "inputs": [],
		"params": {"expr": "e", "pred": "p", "ref": "", "endpoint": "ep_0001"}}`, ``))
	assert.Equal(t, []int{0}, g.Nodes[1].Refs)
	assert.NotNil(t, g.Nodes[1].Expr)
	assert.NotNil(t, g.Nodes[1].Pred)
	assert.NotNil(t, g.Nodes[1].Endpoint)
}

func TestLoadKeyIDsAreNeverCut(t *testing.T) {
	for _, literal := range []string{"4294967296", "4294967297", "4294969297", "9223372036854775807", "1e10"} {
		bad := refuse(t, withNode("core::sort", `{"by": `+literal+`}`))
		assert.Equal(t, "nodes[1].params.by", bad.Field, literal)
		bad = refuse(t, withNode("core::vm", `{"expr_id": "e", "out_key": `+literal+`}`))
		assert.Equal(t, "nodes[1].params.out_key", bad.Field, literal)
	}
	// Keys that are missing or not registered are found when the node runs.
	for _, literal := range []string{"4294967295", "0", "-1", "18446744073709551615"} {
		load(t, withNode("core::sort", `{"by": `+literal+`}`))
	}
}

func TestLoadNodeHints(t *testing.T) {
	node := func(fields string) string {
		return nodesPlan(`{"node_id": "s", "op": "test::fixed_source", "inputs": [], `+fields+`}`, ``)
	}
	n := load(t, node(`"timeout_ms": 250, "scheduling": {"inline": false, "cost_estimate_us": 1500},
		"source_span": {"file": "a.ts", "line": 3}, "unknown": [1]`)).Nodes[0]
	assert.Equal(t, 250*time.Millisecond, n.Timeout)
	assert.Equal(t, 1500*time.Microsecond, n.CostHint)
	require.NotNil(t, n.Inline)
	assert.False(t, *n.Inline)

	n = load(t, node(`"timeout_ms": 5.0, "scheduling": {}, "source_span": "a.ts:3:1"`)).Nodes[0]
	assert.Equal(t, 5*time.Millisecond, n.Timeout)
	assert.Nil(t, n.Inline)
	assert.Zero(t, n.CostHint)

	n = load(t, node(`"timeout_ms": 9223372036854`)).Nodes[0]
	assert.Positive(t, n.Timeout, "the longest timeout that a duration holds")

	for fields, field := range map[string]string{
		`"timeout_ms": 0`:                             "timeout_ms",
		`"timeout_ms": -1`:                            "timeout_ms",
		`"timeout_ms": 1.5`:                           "timeout_ms",
		`"timeout_ms": null`:                          "timeout_ms",
		`"timeout_ms": "5"`:                           "timeout_ms",
		`"timeout_ms": 9223372036855`:                 "timeout_ms",
		`"timeout_ms": 18446744073709551615`:          "timeout_ms",
		`"scheduling": null`:                          "scheduling",
		`"scheduling": []`:                            "scheduling",
		`"scheduling": {"inline": 1}`:                 "scheduling.inline",
		`"scheduling": {"inline": null}`:              "scheduling.inline",
		`"scheduling": {"cost_estimate_us": -1}`:      "scheduling.cost_estimate_us",
		`"scheduling": {"cost_estimate_us": "1"}`:     "scheduling.cost_estimate_us",
		`"scheduling": {"cost_estimate_ms": 1}`:       "scheduling.cost_estimate_ms",
		`"scheduling": {"cost_estimate_us": 1e16}`:    "scheduling.cost_estimate_us",
		`"source_span": 3`:                            "source_span",
		`"source_span": null`:                         "source_span",
		`"timeout_ms": 5, "scheduling": {"inline":0}`: "scheduling.inline",
	} {
		bad := refuse(t, node(fields))
		assert.Equal(t, "nodes[0]."+field, bad.Field, fields)
		assert.Equal(t, "s", bad.Node, fields)
	}
}

func TestLoadErrors(t *testing.T) {
	const caps = "cap.rfc.0001.extensions_capabilities.v1"
	plain := func(member string) string {
		return `{"schema_version": 1, "plan_name": "p", "nodes": [` + source + `], "outputs": ["s"], ` + member + `}`
	}
	tests := []struct{ name, artifact, want string }{
		{"not JSON", `{"schema_version": 1,}`, `t.plan.json: invalid JSON: unexpected ',' at byte 20, line 1`},
		{"not JSON, further down", "{\n\"nodes\": [],\n}", `t.plan.json: invalid JSON: unexpected ',' at byte 13, line 2`},
		{"cut off", "{\n\n", `t.plan.json: invalid JSON: document ends too early at byte 3, line 3`},
		{"two documents", `{} {}`, `t.plan.json: invalid JSON: unexpected data after the document at byte 3, line 1`},
		{"root", `[]`, `t.plan.json: must be an object, not an array`},
		{"schema version", `{"schema_version": "1"}`,
			`t.plan.json: schema_version: must be an integer literal, not "1"`},
		{"nodes", `{"schema_version": 1, "plan_name": "p"}`, `t.plan.json: nodes: is missing, must be an array`},
		{"outputs", `{"schema_version": 1, "plan_name": "p", "nodes": []}`,
			`t.plan.json: outputs: is missing, must be an array of strings`},
		{"expression", plain(`"expr_table": {"e 1": {"op": "neg", "x": {"op": "const_number", "value": "1"}}}`),
			`t.plan.json: expr_table["e 1"].x: value: want a number, have "1"`},
		{"predicate", plain(`"pred_table": {"p": 3}`),
			`t.plan.json: pred_table.p: want an object, the predicate; have the integer 3`},
		{"capability twice", plain(`"capabilities_required": ["` + caps + `", "` + caps + `"]`),
			`t.plan.json: capabilities_required[1]: "` + caps + `" is listed twice`},
		{"capability unknown", plain(`"capabilities_required": ["cap.x"]`),
			`t.plan.json: capabilities_required[0]: capability "cap.x" is not supported`},
		{"extension", plain(`"extensions": {"` + caps + `": {}}`),
			`t.plan.json: extensions["` + caps + `"]: is not among the plan's capabilities_required`},
		{"node id twice", nodesPlan(source+", "+source, ``),
			`t.plan.json: node "s": nodes[1].node_id: "s" is taken by nodes[0]`},
		{"op", withNode("core::shuffle", "{}"), `t.plan.json: node "x": nodes[1].op: unknown op "core::shuffle"`},
		{"op in capitals", withNode("core::Take", "{}"), `t.plan.json: node "x": nodes[1].op: unknown op "core::Take"`},
		{"input", nodesPlan(`{"node_id": "x", "op": "take", "inputs": ["no"], "params": {"count": 1}}`, ``),
			`t.plan.json: node "x": nodes[0].inputs[0]: there is no node "no"`},
		{"params", withNode("core::take", "[]"), `t.plan.json: node "x": nodes[1].params: must be an object, not an array`},
		{"unknown param", withNode("core::take", `{"count": 1, "a b": 2}`),
			`t.plan.json: node "x": nodes[1].params["a b"]: core::take has no such parameter`},
		{"missing param", withNode("core::take", "null"),
			`t.plan.json: node "x": nodes[1].params.count: is missing, must be an integer of 64 bits`},
		{"fraction", withNode("core::take", `{"count": 1.5}`),
			`t.plan.json: node "x": nodes[1].params.count: must be an integer of 64 bits, not the number 1.5`},
		{"trace", withNode("core::take", `{"count": 1, "trace": 1}`),
			`t.plan.json: node "x": nodes[1].params.trace: must be a string or null, not the integer 1`},
		{"rhs", withNode("core::concat", `{"rhs": "no"}`),
			`t.plan.json: node "x": nodes[1].params.rhs: there is no node "no"`},
		{"endpoint kind", withNode("core::viewer", `{"endpoint": "ep_0002"}`),
			`t.plan.json: node "x": nodes[1].params.endpoint: must be an endpoint of kind redis, not endpoint ep_0002 of kind http`},
		{"output", nodesPlan(source, `"s", "no"`), `t.plan.json: outputs[1]: there is no node "no"`},
		{"line breaks", nodesPlan(`{"node_id": "a\nb", "op": "x\ry", "inputs": []}`, ``),
			`t.plan.json: node "a\nb": nodes[0].op: unknown op "x\ry"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.EqualError(t, refuse(t, test.artifact), test.want)
		})
	}
}

// Load reports faults that it finds while reading before those that later checks find. Within
// each phase the order is also fixed.
func TestLoadOrderOfFaults(t *testing.T) {
	// Each plan has the faults of all steps at first. The test repairs one after another.
	parts := []struct{ field, broken, fixed string }{
		{"plan_name", `1`, `"p"`},
		{"nodes[0].inputs", `"nodes": [{"node_id": "a", "op": "bad", "inputs": 1}]`,
			`"nodes": [{"node_id": "a", "op": "bad", "inputs": ["no"], "extensions": []}]`},
		{"outputs", `{}`, `["no"]`},
		{"expr_table", `null`, `{}`},
		{"pred_table.p", `{"p": 1}`, `{}`},
		{"capabilities_required[0]", `[1]`, `["cap.unknown"]`},
		{"extensions.cap", `{"cap": 1}`, `{"cap.unknown": 1}`},
	}
	member := []string{"plan_name", "", "outputs", "expr_table", "pred_table", "capabilities_required", "extensions"}
	artifact := func(fixed int) string {
		text := `{"schema_version": 2`
		for i, part := range parts {
			value := part.broken
			if i < fixed {
				value = part.fixed
			}
			if member[i] != "" {
				value = `"` + member[i] + `": ` + value
			}
			text += ", " + value
		}
		return text + "}"
	}
	for i, part := range parts {
		assert.Equal(t, part.field, refuse(t, artifact(i)).Field)
	}
	// The only fault of reading that is left is in the node's own extensions. Then checking
	// begins.
	text := artifact(len(parts))
	for _, step := range []struct{ field, repair, with string }{
		{"nodes[0].extensions", `"extensions": []`, `"extensions": {}`},
		{"schema_version", `"schema_version": 2`, `"schema_version": 1`},
		{"capabilities_required[0]", `["cap.unknown"]`, `[]`},
	} {
		assert.Equal(t, step.field, refuse(t, text).Field)
		text = strings.Replace(text, step.repair, step.with, 1)
	}
	text = strings.Replace(text, `"extensions": {"cap.unknown": 1}`, `"extensions": {}`, 1)
	node := `{"node_id": "b", "op": "core::vm", "inputs": ["a"], "params": {"out_key": 1, "expr_id": "no", "x": 1}}`
	text = strings.Replace(text, `"nodes": [`, `"nodes": [`+node+`, `+strings.Replace(node, `"b"`, `"a"`, 1)+`, `, 1)
	for _, step := range []struct{ field, repair, with string }{
		{"nodes[2].node_id", `{"node_id": "a", "op": "bad"`, `{"node_id": "c", "op": "bad"`},
		{"nodes[0].params.x", `"expr_id": "no", "x": 1`, `"expr_id": "no"`},
		{"nodes[0].params.expr_id", `"expr_id": "no"`, `"expr_id": "e"`},
	} {
		assert.Equal(t, step.field, refuse(t, text).Field)
		text = strings.Replace(text, step.repair, step.with, 1)
	}
}

func TestLoadDuplicateMembersLastCounts(t *testing.T) {
	g := load(t, `{"schema_version": 2, "schema_version": 1, "plan_name": "p", "outputs": [],
		"expr_table": {"e": {"op": "broken"}, "e": {"op": "const_null"}},
		"nodes": [{"node_id": "x", "op": "no", "op": "core::take", "inputs": [], "params": {"count": "?", "count": 3}}]}`)
	assert.Equal(t, int64(3), g.Nodes[0].Params.Int("count"))

	bad := refuse(t, `{"schema_version": 1, "schema_version": 2, "plan_name": "p", "nodes": [], "outputs": []}`)
	assert.Equal(t, "schema_version", bad.Field)
}

func TestLoadNamesTheCycle(t *testing.T) {
	take := func(id, input string) string {
		return fmt.Sprintf(`{"node_id": %q, "op": "take", "inputs": [%q], "params": {"count": 1}}`, id, input)
	}
	chain := func(n int) string { // n0 <- n1 <- ... and n0 reads the last
		nodes := []string{take("n0", fmt.Sprintf("n%d", n-1))}
		for i := 1; i < n; i++ {
			nodes = append(nodes, take(fmt.Sprintf("n%d", i), fmt.Sprintf("n%d", i-1)))
		}
		return strings.Join(nodes, ",")
	}
	tests := []struct{ name, nodes, node, cycle string }{
		{"self", take("a", "a"), "a", `"a" → "a"`},
		{"two, behind a tail", take("t", "a") + "," + take("a", "b") + "," + take("b", "a"), "b", `"b" → "a" → "b"`},
		{"through rhs", source + `, {"node_id": "c", "op": "concat", "inputs": ["s"], "params": {"rhs": "d"}},` +
			take("d", "c"), "d", `"d" → "c" → "d"`},
		{"beside a good part", source + "," + take("x", "s") + "," + take("a", "a"), "a", `"a" → "a"`},
		{"long", chain(50_000), "n1", `"n1" → "n2" → "n3" → "n4" → "n5" → "n6" → "n7" → "n8" → … → "n1"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := refuse(t, nodesPlan(test.nodes, ``))
			assert.Equal(t, test.node, bad.Node)
			assert.Equal(t, "depends on itself: "+test.cycle, bad.Msg)
		})
	}
}

func TestLoadHostileArtifacts(t *testing.T) {
	const many = 2 << 20
	tests := []struct{ name, artifact, msg string }{
		{"deep", strings.Repeat("[", 50<<20), "nested deeper than 8192 levels"},
		{"too large", strings.Repeat(" ", plan.MaxArtifactBytes+1), "larger than 67108864 bytes"},
		{"long name", `{"schema_version": 1, "plan_name": "p", "outputs": [], "nodes": [{"node_id": "` +
			strings.Repeat("n", many) + `", "op": "x", "inputs": []}]}`, "unknown op"},
		{"long op in a tree", `{"schema_version": 1, "plan_name": "p", "outputs": [], "nodes": [],
			"expr_table": {"e": {"op": "` + strings.Repeat("é", many/2) + `"}}}`, "unknown op"},
		{"deep tree", `{"schema_version": 1, "plan_name": "p", "outputs": [], "nodes": [], "expr_table": {"e": ` +
			strings.Repeat(`{"op": "neg", "x": `, 5000) + "1" + strings.Repeat("}", 5000) + `}}`, "nested"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := refuse(t, test.artifact)
			assert.Contains(t, bad.Error(), test.msg)
			assert.Less(t, len(bad.Error()), 4096)
		})
	}
}

func TestLoadManyEdgesAndNodes(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString(source)
	const chain = 20_000
	for i := range chain {
		previous := "s"
		if i > 0 {
			previous = fmt.Sprintf("n%d", i-1)
		}
		fmt.Fprintf(&nodes, `,{"node_id": "n%d", "op": "take", "inputs": [%q], "params": {"count": 1}}`, i, previous)
	}
	g := load(t, nodesPlan(nodes.String(), `"n19999"`))
	assert.Len(t, g.Nodes, chain+1)

	g = load(t, nodesPlan(source+`, {"node_id": "x", "op": "take", "inputs": ["s"`+
		strings.Repeat(`,"s"`, 99_999)+`], "params": {"count": 1}}`, ``))
	assert.Equal(t, 100_000, g.Nodes[1].Deps)
}

func FuzzLoad(f *testing.F) {
	for _, c := range conformanceCases(f) {
		f.Add(c.artifact(f))
	}
	ops, reg := testOps(), testRegistry(f)
	f.Fuzz(func(t *testing.T, artifact []byte) {
		g, err := plan.Load("f", artifact, ops, reg)
		if err == nil {
			checkInvariants(t, g)
			return
		}
		require.Nil(t, g)
		var bad *plan.Error
		require.ErrorAs(t, err, &bad)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, len(err.Error()), 4096)
	})
}

func BenchmarkLoadComplexDAG(b *testing.B) {
	artifact := readPlan(b, "complex_dag")
	ops, reg := testOps(), testRegistry(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plan.Load("complex_dag", artifact, ops, reg); err != nil {
			b.Fatal(err)
		}
	}
}

func readPlan(t testing.TB, name string) []byte {
	t.Helper()
	text, err := fs.ReadFile(demo.Plans(), name+".plan.json")
	require.NoError(t, err)
	return text
}
