package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// lenientPlan wraps nodes into an artifact that requires the capability of on_error.
func lenientPlan(outputs string, nodes ...string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": [%s], "capabilities_required": ["cap.rankd.on_error.v1"]}`,
		strings.Join(nodes, ",\n"), outputs)
}

// lenientNode is a node of one of the ops that need no table. more has further members.
func lenientNode(id, op, input, more string) string {
	params := map[string]string{"take": `"count": 1`, "viewer": `"endpoint": "ep_0001"`, "follow": `"endpoint": "ep_0001", "fanout": 1`}[op]
	if rhs, ok := strings.CutPrefix(op, "concat "); ok {
		op, params = "concat", fmt.Sprintf(`"rhs": %q`, rhs)
	}
	if input != "" {
		input = fmt.Sprintf("%q", input)
	}
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}%s}`, id, op, input, params, more)
}

func TestOnErrorIsLoaded(t *testing.T) {
	g := load(t, lenientPlan(`"both"`,
		lenientNode("v", "viewer", "", ""),
		lenientNode("a", "follow", "v", `"on_error": {"fallback": "backup"}`),
		lenientNode("b", "follow", "v", `"on_error": "partial", "optional": true`),
		lenientNode("seed", "fixed_source", "", ""),
		lenientNode("few", "take", "seed", ""),
		lenientNode("backup", "concat v", "few", `"on_error": "skip"`),
		lenientNode("c", "take", "b", `"on_error": "empty", "optional": false`),
		lenientNode("d", "take", "c", `"optional": true`),
		lenientNode("e", "take", "d", `"on_error": "fail"`),
		lenientNode("both", "concat e", "a", "")))
	at := func(id string) *plan.Node {
		for _, n := range g.Nodes {
			if n.ID == id {
				return n
			}
		}
		require.Fail(t, "no node "+id)
		return nil
	}
	assert.True(t, g.Lenient)
	for id, want := range map[string]plan.OnError{
		"v": plan.OnErrorFail, "a": plan.OnErrorFallback, "b": plan.OnErrorPartial, "backup": plan.OnErrorSkip,
		"c": plan.OnErrorEmpty, "d": plan.OnErrorEmpty, "e": plan.OnErrorFail,
	} {
		assert.Equal(t, want, at(id).OnError, id)
		assert.Equal(t, want != plan.OnErrorFail, at(id).Lenient(), id)
	}
	assert.Same(t, at("backup"), at("a").Fallback)
	assert.Same(t, at("a"), at("backup").StandsFor)
	for id, want := range map[string]bool{"v": false, "a": false, "seed": true, "few": true, "backup": true} {
		assert.Equal(t, want, at(id).OnDemand, id)
	}
	for id, want := range map[string]bool{"b": true, "c": false, "d": true} {
		assert.Equal(t, want, at(id).Optional, id)
	}
	assert.Equal(t, []int{at("v").Index}, g.Sources, "seed is on demand")
	assert.Equal(t, []int{at("few").Index, at("v").Index, at("a").Index}, g.Before(at("backup")))
	assert.Equal(t, []int{at("a").Index, at("backup").Index, at("e").Index}, g.Before(at("both")))

	info := g.Info()
	a, b, e := info.Nodes[at("a").Index], info.Nodes[at("b").Index], info.Nodes[at("e").Index]
	assert.Equal(t, [3]any{"fallback", "backup", false}, [3]any{a.OnError, a.Fallback, a.Optional})
	assert.Equal(t, [3]any{"partial", "", true}, [3]any{b.OnError, b.Fallback, b.Optional})
	assert.Equal(t, [3]any{"", "", false}, [3]any{e.OnError, e.Fallback, e.Optional})
}

func TestOnErrorIsRefused(t *testing.T) {
	v := lenientNode("v", "viewer", "", "")
	chain := []string{v}
	for i := range 10 {
		chain = append(chain, lenientNode(fmt.Sprintf("f%d", i), "fixed_source", "", fmt.Sprintf(`"on_error": {"fallback": "f%d"}`, i+1)))
	}
	chain = append(chain, lenientNode("f10", "fixed_source", "", ""))
	var crowd []string
	for i := range 257 {
		crowd = append(crowd, lenientNode(fmt.Sprintf("o%d", i), "fixed_source", "", `"optional": true`))
	}
	for _, c := range []struct {
		name, artifact, field, want string
	}{
		{"a word that does not exist", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": "ignore"`)), "nodes[0].on_error",
			`must be "fail", "empty", "skip", "partial", "null" or {"fallback": node id}, not "ignore"`},
		{"fallback is no word", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": "fallback"`)), "nodes[0].on_error", `not "fallback"`},
		{"a number", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": 1`)), "nodes[0].on_error", "not the integer 1"},
		{"null", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": null`)), "nodes[0].on_error", "not null"},
		{"an object without the node", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": {}`)), "nodes[0].on_error.fallback", "is missing"},
		{"an object with more", lenientPlan("", v, lenientNode("w", "viewer", "", `"on_error": {"fallback": "v", "after_ms": 5}`)),
			"nodes[1].on_error.after_ms", "unknown field"},
		{"optional is no number", lenientPlan("", lenientNode("v", "viewer", "", `"optional": 1`)), "nodes[0].optional", "must be true or false"},
		{"without the capability", nodesPlan(lenientNode("v", "viewer", "", `"on_error": "fail"`), ""), "nodes[0].on_error",
			`needs "cap.rankd.on_error.v1" in capabilities_required`},
		{"optional without the capability", nodesPlan(lenientNode("v", "viewer", "", `"optional": false`), ""), "nodes[0].optional",
			`needs "cap.rankd.on_error.v1" in capabilities_required`},
		{"a payload", strings.Replace(lenientPlan("", v), `"outputs"`, `"extensions": {"cap.rankd.on_error.v1": {"a": 1}}, "outputs"`, 1),
			`extensions["cap.rankd.on_error.v1"]`, "must be empty"},
		{"an optional node that fails the request", lenientPlan("", v, lenientNode("w", "viewer", "", `"on_error": "fail", "optional": true`)),
			"nodes[1].on_error", "the node is optional"},
		{"no input to pass on", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": "skip"`)), "nodes[0].on_error", "no input to pass on"},
		{"no columns that could be null", lenientPlan("", v, lenientNode("t", "take", "v", `"on_error": "null"`)), "nodes[1].on_error",
			"core::take does not add columns to the rows of its input"},
		{"no rows that could have them", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": "null"`)), "nodes[0].on_error", "does not add columns"},
		{"no keys that fail one by one", lenientPlan("", v, lenientNode("t", "take", "v", `"on_error": "partial"`)), "nodes[1].on_error",
			"core::take asks for no keys"},
		{"an unknown fallback", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": {"fallback": "w"}`)), "nodes[0].on_error.fallback",
			`there is no node "w"`},
		{"itself", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": {"fallback": "v"}`)), "nodes[0].on_error.fallback", "must be another node"},
		{"an output", lenientPlan(`"v"`, v, lenientNode("w", "viewer", "", `"on_error": {"fallback": "v"}`)), "nodes[1].on_error.fallback",
			`"v" is an output`},
		{"read by another node", lenientPlan("", v, lenientNode("t", "take", "v", ""), lenientNode("w", "viewer", "", `"on_error": {"fallback": "v"}`)),
			"nodes[2].on_error.fallback", `"v" is read by "t"`},
		{"of two nodes", lenientPlan("", v, lenientNode("a", "viewer", "", `"on_error": {"fallback": "v"}`), lenientNode("b", "viewer", "", `"on_error": {"fallback": "v"}`)),
			"nodes[2].on_error.fallback", `"v" is the fallback of "a" already`},
		{"a fallback that reads the node", lenientPlan("", lenientNode("a", "viewer", "", `"on_error": {"fallback": "f"}`), lenientNode("f", "take", "a", "")),
			"nodes[1]", "depends on itself"},
		{"a fallback that reads a reader of the node", lenientPlan("", lenientNode("a", "viewer", "", `"on_error": {"fallback": "f"}`),
			lenientNode("b", "take", "a", ""), lenientNode("f", "take", "b", "")), "nodes[2]", "depends on itself"},
		{"the fallback of a fallback that reads the first node", lenientPlan("", lenientNode("a", "viewer", "", `"on_error": {"fallback": "f"}`),
			lenientNode("f", "viewer", "", `"on_error": {"fallback": "g"}`), lenientNode("g", "take", "a", "")), "", "depends on itself"},
		{"two that stand in for each other", lenientPlan("", lenientNode("a", "viewer", "", `"on_error": {"fallback": "b"}`),
			lenientNode("b", "viewer", "", `"on_error": {"fallback": "a"}`)), "", "depends on itself"},
		{"too many in a row", lenientPlan("", chain...), "nodes[1].on_error.fallback", "more than 8 fallbacks"},
		{"nothing required beside it", lenientPlan(`"t"`, v, lenientNode("f", "follow", "v", `"optional": true`), lenientNode("t", "take", "f", "")),
			"nodes[1].optional", "would never wait for it"},
		{"only optional nodes beside it", lenientPlan("", v, lenientNode("a", "follow", "v", `"optional": true`), lenientNode("b", "follow", "v", `"optional": true`)),
			"nodes[1].optional", "would never wait for it"},
		{"only a node on demand beside it", lenientPlan("", lenientNode("v", "viewer", "", `"on_error": {"fallback": "f"}`), lenientNode("f", "fixed_source", "", ""),
			lenientNode("a", "follow", "v", `"optional": true`)), "nodes[2].optional", "would never wait for it"},
		{"too many optional nodes", lenientPlan("", append(crowd, v)...), "nodes[256].optional", "more than 256 nodes are optional"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := refuse(t, c.artifact)
			assert.Contains(t, bad.Msg, c.want)
			if c.field != "" {
				assert.Equal(t, c.field, bad.Field)
			}
			assert.NotContains(t, bad.Error(), "\n")
		})
	}
}

// A plan that mentions neither member with an effect is strict.
func TestAPlanWithoutOnErrorIsStrict(t *testing.T) {
	g := load(t, lenientPlan(`"v"`, lenientNode("v", "viewer", "", `"on_error": "fail", "optional": false`)))
	assert.False(t, g.Lenient)
	assert.Nil(t, g.Nodes[0].Fallback)
	assert.False(t, g.Nodes[0].OnDemand)
}
