package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// faultsOf returns the paths of all faults that Load names.
func faultsOf(t *testing.T, artifact string) (paths []string) {
	t.Helper()
	_, err := plan.Load("p.plan.json", []byte(artifact), testOps(), testRegistry(t))
	if err == nil {
		return nil
	}
	var bad *plan.Error
	require.ErrorAs(t, err, &bad)
	for _, each := range bad.All() {
		assert.Equal(t, "p.plan.json", each.File)
		assert.NotEmpty(t, each.Msg)
		if each != bad {
			assert.Empty(t, each.Others)
		}
		paths = append(paths, each.Field)
	}
	return paths
}

// TestLoadNamesAllFaults has several faults at once. Faults in the shape come before faults in
// what the artifact says.
func TestLoadNamesAllFaults(t *testing.T) {
	for name, c := range map[string]struct {
		artifact string
		want     []string
	}{
		"shape": {
			`{"schema_version": "1", "nodes": [{"op": 1, "inputs": "x", "timeout_ms": 0, "on_error": "never", "source_span": 7}, 5], "outputs": [1],
				"expr_table": {"a": {"op": "what"}, "b": {"op": "const", "value": "x"}}, "pred_table": []}`,
			[]string{"schema_version", "plan_name", "nodes[0].node_id", "nodes[0].op", "nodes[0].inputs", "nodes[0].timeout_ms",
				"nodes[0].on_error", "nodes[0].source_span", "nodes[1]", "outputs[0]", "expr_table.a", "expr_table.b", "pred_table"},
		},
		"what it says": {
			`{"schema_version": 1, "plan_name": "p", "nodes": [
				{"node_id": "a", "op": "core::nothing", "inputs": ["x", "y"]},
				{"node_id": "a", "op": "core::take", "inputs": ["a"], "params": {"count": "ten", "limit": 1, "trace": 5}},
				{"node_id": "b", "op": "core::vm", "inputs": ["z"], "params": {"out_key": 2001, "expr_id": "none"}}
			], "outputs": ["b", "c"]}`,
			[]string{"nodes[1].node_id", "nodes[0].op", "nodes[0].inputs[0]", "nodes[0].inputs[1]", "nodes[1].params.limit",
				"nodes[1].params.trace", "nodes[1].params.count", "nodes[2].inputs[0]", "nodes[2].params.expr_id", "outputs[1]"},
		},
		"both":      {`{"schema_version": 1, "plan_name": 7, "nodes": [{"node_id": "a", "op": "core::nothing", "inputs": []}], "outputs": []}`, []string{"plan_name"}},
		"a version": {`{"schema_version": 2, "plan_name": "p", "nodes": [{"node_id": "a", "op": "core::nothing", "inputs": []}], "outputs": []}`, []string{"schema_version"}},
		"none":      {`{"schema_version": 1, "plan_name": "p", "nodes": [], "outputs": []}`, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, faultsOf(t, c.artifact)) })
	}
}

// TestLoadBoundsTheFaults has more faults than anybody reads.
func TestLoadBoundsTheFaults(t *testing.T) {
	assert.Len(t, faultsOf(t, `{"schema_version": 1, "plan_name": "p", "nodes": [`+strings.Repeat(`1,`, 999)+`1], "outputs": []}`), 100)
}

// TestRandomFaultsAreAllNamed breaks random values of a sound plan. Load names each broken
// value, and nothing else.
func TestRandomFaultsAreAllNamed(t *testing.T) {
	const count = 20
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		nodes, want := []string{`{"node_id": "n0", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}`}, []string(nil)
		for i := 1; i < count; i++ {
			input, take := fmt.Sprintf("n%d", i-1), "1"
			if random.IntN(4) == 0 {
				input = "nobody"
				want = append(want, fmt.Sprintf("nodes[%d].inputs[0]", i))
			}
			if random.IntN(4) == 0 {
				take = `"one"`
				want = append(want, fmt.Sprintf("nodes[%d].params.count", i))
			}
			nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "op": "core::take", "inputs": [%q], "params": {"count": %s}}`, i, input, take))
		}
		artifact := `{"schema_version": 1, "plan_name": "p", "nodes": [` + strings.Join(nodes, ",") + `], "outputs": ["n19"]}`
		require.Equal(t, want, faultsOf(t, artifact), "seed %d", seed)
	}
}
