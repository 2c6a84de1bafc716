package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// columnOps returns ops that read and write columns in each way. Only the ops new:: are strict.
func columnOps() opTable {
	key := func(names ...string) plan.ColumnsOf {
		return func(n *plan.Node, _ *registry.Registry) (keys []registry.KeyID) {
			for _, name := range names {
				if key := n.Params.Key(name); key != nil {
					keys = append(keys, key.ID)
				}
			}
			return keys
		}
	}
	expressions := func(n *plan.Node, _ *registry.Registry) (keys []registry.KeyID) {
		for _, e := range n.Exprs {
			keys = append(keys, e.Keys()...)
		}
		return keys
	}
	table := make(opTable)
	add := func(schema plan.OpSchema) {
		schema.Strict = plan.IsStrict(schema.Strict, schema.Params)
		table[schema.Op] = &schema
	}
	to := plan.ParamSchema{Name: "to", Type: plan.Key, Source: plan.SourceRule{Writes: true}}
	by := plan.ParamSchema{Name: "by", Type: plan.Key}
	ref := plan.ParamSchema{Name: "ref", Type: plan.NodeRef}
	add(plan.OpSchema{Op: "new::source", Params: []plan.ParamSchema{to}, Writes: key("to")})
	add(plan.OpSchema{Op: "new::step", Params: []plan.ParamSchema{to, by}, InputsMin: 1, InputsMax: 1, Reads: key("by"), Writes: key("to"),
		Inherits: plan.InheritsInputs})
	add(plan.OpSchema{Op: "new::expand", Params: []plan.ParamSchema{to, by}, InputsMin: 1, InputsMax: 1, Reads: key("by"), Writes: key("to")})
	add(plan.OpSchema{Op: "new::join", Params: []plan.ParamSchema{by, ref}, InputsMin: 1, InputsMax: 1, RefReads: key("by"),
		Inherits: plan.InheritsInputs})
	add(plan.OpSchema{Op: "new::union", Params: []plan.ParamSchema{by, ref}, Strict: true, InputsMin: 1, InputsMax: 9, Reads: key("by"),
		Inherits: plan.InheritsAll})
	add(plan.OpSchema{Op: "old::vm", Params: []plan.ParamSchema{{Name: "expr_id", Type: plan.ExprID}}, Reads: expressions, Inherits: plan.InheritsInputs})
	add(plan.OpSchema{Op: "old::source"})
	return table
}

func columnPlan(nodes string) string {
	return `{"schema_version": 1, "plan_name": "p", "nodes": [` + nodes + `], "outputs": [],
		"expr_table": {"id": {"op": "key_ref", "key_id": 1}, "score": {"op": "key_ref", "key_id": 2002}, "unknown": {"op": "key_ref", "key_id": 9999}}}`
}

// step writes one node from its id, op, inputs and params.
func step(id, op, inputs, params string) string {
	return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}}`, id, op, inputs, params)
}

func TestColumnsReadAreWritten(t *testing.T) {
	source := step("s", "new::source", ``, `"to": "score"`)
	other := step("o", "new::source", ``, `"to": "country"`)
	for name, test := range map[string]struct{ nodes, field, text string }{
		"from the source":     {source + "," + step("x", "new::step", `"s"`, `"by": "score"`), "", ""},
		"id is no column":     {source + "," + step("x", "new::step", `"s"`, `"by": "id"`), "", ""},
		"nobody writes it":    {source + "," + step("x", "new::step", `"s"`, `"by": "country"`), "nodes[1].params.by", `reads column "country" (3001), which no node before it writes`},
		"its own writing":     {source + "," + step("x", "new::step", `"s"`, `"by": "title", "to": "title"`), "nodes[1].params.by", `"title"`},
		"a node later writes": {source + "," + step("x", "new::step", `"s"`, `"by": "title"`) + "," + step("y", "new::step", `"x"`, `"to": "title"`), "nodes[1].params.by", `"title"`},
		"a step writes":       {source + "," + step("x", "new::step", `"s"`, `"to": "title"`) + "," + step("y", "new::step", `"x"`, `"by": "title"`), "", ""},
		"another branch":      {source + "," + other + "," + step("x", "new::step", `"s"`, `"by": "country"`), "nodes[2].params.by", `"country"`},
		"expand forgets":      {source + "," + step("x", "new::expand", `"s"`, `"to": "title"`) + "," + step("y", "new::step", `"x"`, `"by": "score"`), "nodes[2].params.by", `"score"`},
		"expand reads":        {source + "," + step("x", "new::expand", `"s"`, `"to": "title", "by": "score"`), "", ""},
		"join reads the ref":  {source + "," + other + "," + step("x", "new::join", `"s"`, `"by": "country", "ref": "o"`), "", ""},
		"join, wrong side":    {source + "," + other + "," + step("x", "new::join", `"s"`, `"by": "score", "ref": "o"`), "nodes[2].params.by", `"score"`},
		"join keeps the left": {source + "," + other + "," + step("x", "new::join", `"s"`, `"ref": "o"`) + "," + step("y", "new::step", `"x"`, `"by": "country"`), "nodes[3].params.by", `"country"`},
		"union of inputs":     {source + "," + other + "," + step("x", "new::union", `"s", "o"`, ``) + "," + step("y", "new::step", `"x"`, `"by": "country"`), "", ""},
		"union of refs":       {source + "," + other + "," + step("x", "new::union", `"s"`, `"ref": "o"`) + "," + step("y", "new::step", `"x"`, `"by": "country"`), "", ""},
		"one of its inputs":   {source + "," + other + "," + step("x", "new::union", `"s", "o"`, `"by": "country"`), "", ""},
		"of no input":         {source + "," + other + "," + step("x", "new::union", `"s", "o"`, `"by": "title"`), "nodes[2].params.by", `"title"`},
		"an expression":       {source + "," + step("x", "old::vm", `"s"`, `"expr_id": "score"`), "", ""},
		"an expression of id": {source + "," + step("x", "old::vm", `"s"`, `"expr_id": "id"`), "", ""},
		"in an expression":    {other + "," + step("x", "old::vm", `"o"`, `"expr_id": "score"`), "nodes[1].params.expr_id", `"score" (2002)`},
		"no key at all":       {other + "," + step("x", "old::vm", `"o"`, `"expr_id": "unknown"`), "nodes[1].params.expr_id", `column 9999`},
		"before its source":   {step("x", "new::step", `"s"`, `"by": "score"`) + "," + source, "", ""},
		"the first in the plan": {step("x", "new::step", `"y"`, `"by": "country"`) + "," + step("y", "new::step", `"s"`, `"by": "title"`) + "," + source,
			"nodes[0].params.by", `"country"`},
		"older plans load": {step("s", "old::source", ``, ``) + "," + step("x", "old::vm", `"s"`, `"expr_id": "score"`), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := plan.Load("t.plan.json", []byte(columnPlan(test.nodes)), columnOps(), testRegistry(t))
			if test.field == "" {
				require.NoError(t, err)
				checkInvariants(t, g)
				return
			}
			var bad *plan.Error
			require.ErrorAs(t, err, &bad)
			assert.Equal(t, test.field, bad.Field)
			assert.NotEmpty(t, bad.Node)
			assert.Contains(t, bad.Msg, test.text)
		})
	}
}

// CheckColumns finds in an older plan what Load accepts.
func TestCheckColumnsOfOlderPlans(t *testing.T) {
	text := columnPlan(step("s", "old::source", ``, ``) + "," + step("x", "old::vm", `"s"`, `"expr_id": "score"`))
	g, err := plan.Load("t.plan.json", []byte(text), columnOps(), testRegistry(t))
	require.NoError(t, err)
	assert.EqualError(t, g.CheckColumns("old.plan.json"),
		`old.plan.json: node "x": nodes[1].params.expr_id: reads column "score" (2002), which no node before it writes`)
	g, err = plan.Load("t.plan.json", []byte(columnPlan(step("s", "old::source", ``, ``))), columnOps(), testRegistry(t))
	require.NoError(t, err)
	assert.NoError(t, g.CheckColumns("t"))
}

// On random plans, the check agrees with a walk over all paths to each node.
func TestCheckColumnsOnRandomPlans(t *testing.T) {
	keys := []string{"model_score_1", "score", "country", "title"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text, nodes := "", []string{}
		type made struct {
			op, to, by  string
			inputs, ref []int
		}
		var all []made
		for i := range 1 + r.IntN(8) {
			m := made{op: "new::source", to: keys[r.IntN(len(keys))]}
			if i > 0 {
				m.op = []string{"new::source", "new::step", "new::expand", "new::join", "new::union"}[r.IntN(5)]
			}
			if m.op != "new::source" {
				m.inputs = []int{r.IntN(i)}
				m.by = keys[r.IntN(len(keys))]
			}
			params := ""
			switch m.op {
			case "new::source":
				params = fmt.Sprintf(`"to": %q`, m.to)
			case "new::step", "new::expand":
				params = fmt.Sprintf(`"to": %q, "by": %q`, m.to, m.by)
			case "new::join", "new::union":
				m.ref, m.to = []int{r.IntN(i)}, ""
				params = fmt.Sprintf(`"by": %q, "ref": "n%d"`, m.by, m.ref[0])
				if m.op == "new::union" && r.IntN(2) == 0 {
					m.inputs = append(m.inputs, r.IntN(i))
				}
			}
			inputs := ""
			for k, input := range m.inputs {
				inputs += fmt.Sprintf(`%.*s"n%d"`, min(k, 1), ",", input)
			}
			all = append(all, m)
			nodes = append(nodes, step(fmt.Sprintf("n%d", i), m.op, inputs, params))
		}
		for i, node := range nodes {
			if i > 0 {
				text += ","
			}
			text += node
		}
		var has func(i int, key string) bool
		any := func(list []int, key string) bool {
			for _, i := range list {
				if has(i, key) {
					return true
				}
			}
			return false
		}
		has = func(i int, key string) bool {
			m := all[i]
			switch m.op {
			case "new::step":
				return m.to == key || any(m.inputs, key)
			case "new::join":
				return any(m.inputs, key)
			case "new::union":
				return any(m.inputs, key) || any(m.ref, key)
			default:
				return m.to == key
			}
		}
		want := ""
		for i, m := range all {
			from := m.inputs
			if m.op == "new::join" {
				from = m.ref
			}
			if m.by != "" && !any(from, m.by) {
				want = fmt.Sprintf("n%d", i)
				break
			}
		}
		_, err := plan.Load("t", []byte(columnPlan(text)), columnOps(), testRegistry(t))
		var bad *plan.Error
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorAs(t, err, &bad, text)
		require.Equal(t, want, bad.Node, text)
	}
}
