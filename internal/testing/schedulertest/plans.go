package schedulertest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// FinalScore is the key that VMNode writes.
const FinalScore = 2001

// Node returns one node of a plan in JSON. Each of its input, its parameters in JSON, and other
// members of the node may be "".
func Node(id, op, input, params, more string) string {
	inputs := ""
	if input != "" {
		inputs = fmt.Sprintf("%q", input)
	}
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}%s}`, id, op, inputs, params, more)
}

// Source returns the node "src", which makes that many rows with the ids 1, 2 and so on.
func Source(rows int) string {
	return Node("src", "fixed_source", "", fmt.Sprintf(`"row_count": %d`, rows), "")
}

// SleepNode returns a node that waits that long on the loop, in milliseconds.
func SleepNode(id, input string, d time.Duration) string {
	return Node(id, "sleep", input, fmt.Sprintf(`"duration_ms": %d`, d.Milliseconds()), "")
}

// BusyNode returns a node that computes that long, in milliseconds.
func BusyNode(id, input string, d time.Duration) string {
	return Node(id, "busy_cpu", input, fmt.Sprintf(`"busy_wait_ms": %d`, d.Milliseconds()), "")
}

// ConcatNode returns a node that concatenates the rows of two nodes.
func ConcatNode(id, left, right string) string {
	return Node(id, "concat", left, fmt.Sprintf(`"rhs": %q`, right), "")
}

// VMNode returns a node that writes FinalScore = id × weight. The weight is 2 unless the
// request sets it.
func VMNode(id, input string) string {
	return Node(id, "vm", input, fmt.Sprintf(`"out_key": %d, "expr_id": "score"`, FinalScore), "")
}

// ViewerNode returns a node that asks Redis for the user.
func ViewerNode(id string) string { return Node(id, "viewer", "", `"endpoint": "ep_0001"`, "") }

// PlanJSON returns the artifact of a plan of these nodes and one output.
func PlanJSON(output string, nodes ...string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "test", "nodes": [%s], "outputs": [%q],
		"expr_table": {"score": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b":
			{"op": "coalesce", "a": {"op": "param_ref", "param_id": 4}, "b": {"op": "const_number", "value": 2}}}},
		"pred_table": {"big": {"op": "cmp", "cmp": ">=",
			"a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 0}}}}`,
		strings.Join(nodes, ",\n"), output)
}

var tables = sync.OnceValues(func() (*registry.Registry, error) { return registry.Default("test") })

// Registry returns the built-in registry, the same one for all tests: an engine runs only plans
// of its own registry.
func Registry(t testing.TB) *registry.Registry {
	t.Helper()
	reg, err := tables()
	require.NoError(t, err)
	return reg
}

// Catalog returns the built-in tasks and these tasks.
func Catalog(t testing.TB, more ...task.Spec) *task.Catalog {
	t.Helper()
	tasks, err := task.NewCatalog(append(builtin.Specs(), more...)...)
	require.NoError(t, err)
	return tasks
}

// Graph loads the plan of PlanJSON for engines of Registry.
func Graph(t testing.TB, tasks *task.Catalog, output string, nodes ...string) *plan.Graph {
	t.Helper()
	return GraphFor(t, Registry(t), tasks, output, nodes...)
}

// GraphFor loads the plan of PlanJSON for engines of that registry.
func GraphFor(t testing.TB, reg *registry.Registry, tasks *task.Catalog, output string, nodes ...string) *plan.Graph {
	t.Helper()
	g, err := plan.Load("test.plan.json", []byte(PlanJSON(output, nodes...)), tasks, reg)
	require.NoError(t, err)
	return g
}
