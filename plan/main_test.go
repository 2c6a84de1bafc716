package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// opTable is the op table of the plan format, apart from package task's own.
type opTable map[string]*plan.OpSchema

func (t opTable) OpSchema(op string) (*plan.OpSchema, bool) {
	schema, ok := t[op]
	return schema, ok
}

func testOps() opTable {
	endpoint := plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint, Required: true}
	fanout := plan.ParamSchema{Name: "fanout", Type: plan.Int, Required: true}
	table := make(opTable)
	add := func(op string, params ...plan.ParamSchema) {
		schema := &plan.OpSchema{Op: op, Params: params, Partial: op == "core::follow"}
		_, bare, _ := strings.Cut(op, "::")
		table[op], table[bare] = schema, schema
	}
	add("core::viewer", endpoint)
	add("core::follow", endpoint, fanout)
	add("core::recommendation", endpoint, fanout)
	add("core::media", endpoint, fanout)
	add("core::vm",
		plan.ParamSchema{Name: "out_key", Type: plan.Int, Required: true, IsKey: true},
		plan.ParamSchema{Name: "expr_id", Type: plan.ExprID, Required: true})
	add("core::filter", plan.ParamSchema{Name: "pred_id", Type: plan.PredID, Required: true})
	add("core::sort",
		plan.ParamSchema{Name: "by", Type: plan.Int, Required: true, IsKey: true},
		plan.ParamSchema{Name: "order", Type: plan.String, StrValue: "asc"})
	add("core::take", plan.ParamSchema{Name: "count", Type: plan.Int, Required: true})
	add("core::concat", plan.ParamSchema{Name: "rhs", Type: plan.NodeRef, Required: true})
	add("test::fixed_source", plan.ParamSchema{Name: "row_count", Type: plan.Int, IntValue: 1})
	add("test::sleep",
		plan.ParamSchema{Name: "duration_ms", Type: plan.Int, Required: true},
		plan.ParamSchema{Name: "fail_after_sleep", Type: plan.Bool})
	add("test::busy_cpu", plan.ParamSchema{Name: "busy_wait_ms", Type: plan.Int, Required: true})
	// No op of rankd has optional references, but the schema allows them.
	add("test::optional",
		plan.ParamSchema{Name: "expr", Type: plan.ExprID},
		plan.ParamSchema{Name: "pred", Type: plan.PredID},
		plan.ParamSchema{Name: "ref", Type: plan.NodeRef},
		plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint})
	return table
}

func testRegistry(t testing.TB) *registry.Registry {
	t.Helper()
	reg, err := registry.Default("test")
	require.NoError(t, err)
	return reg
}

// load loads an artifact that must be valid.
func load(t testing.TB, artifact string) *plan.Graph {
	t.Helper()
	g, err := plan.Load("t.plan.json", []byte(artifact), testOps(), testRegistry(t))
	require.NoError(t, err)
	checkInvariants(t, g)
	return g
}

// refuse loads an artifact that must be refused.
func refuse(t testing.TB, artifact string) *plan.Error {
	t.Helper()
	g, err := plan.Load("t.plan.json", []byte(artifact), testOps(), testRegistry(t))
	require.Nil(t, g)
	var bad *plan.Error
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "t.plan.json", bad.File)
	require.NotEmpty(t, bad.Msg)
	require.NotContains(t, bad.Error(), "\n")
	return bad
}

// checkInvariants checks what every graph promises.
func checkInvariants(t testing.TB, g *plan.Graph) {
	t.Helper()
	require.Len(t, g.Digest, 64)
	var sources []int
	succs := make([][]int, len(g.Nodes))
	outputs := make(map[int]bool)
	for _, index := range g.Outputs {
		outputs[index] = true
	}
	for i, n := range g.Nodes {
		require.Equal(t, i, n.Index)
		require.Equal(t, n.Schema.Op, n.Op)
		require.Equal(t, len(n.Inputs)+len(n.Refs), n.Deps)
		require.Equal(t, outputs[i], n.IsOutput)
		for _, dep := range append(append([]int(nil), n.Inputs...), n.Refs...) {
			succs[dep] = append(succs[dep], i)
		}
		if n.Deps == 0 && !n.OnDemand {
			sources = append(sources, i)
		}
	}
	require.Equal(t, sources, g.Sources)
	for i, n := range g.Nodes {
		require.Equal(t, succs[i], n.Succs)
	}

	// A run on paper, with all that fallbacks might need, reaches every node exactly once.
	waiting := make([]int, len(g.Nodes))
	var ready []int
	for i, n := range g.Nodes {
		if waiting[i] = n.Deps; n.Deps == 0 {
			ready = append(ready, i)
		}
	}
	for done := 0; done < len(ready); done++ {
		for _, succ := range g.Nodes[ready[done]].Succs {
			if waiting[succ]--; waiting[succ] == 0 {
				ready = append(ready, succ)
			}
		}
	}
	require.Len(t, ready, len(g.Nodes))
}
