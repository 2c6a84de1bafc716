package builtin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The keys that the tests of tasks write, in addition to those of random batches.
const (
	keyFloat  registry.KeyID = 1001
	keyText   registry.KeyID = 3001
	keyInt    registry.KeyID = 5001
	keyBool   registry.KeyID = 5101
	keyScore  registry.KeyID = 6001 // nullable
	keySecond registry.KeyID = 6002 // nullable
	keyStrict registry.KeyID = 6003 // not nullable
	keyFixed  registry.KeyID = 6004 // read-only
)

// testRegistry returns a registry with the keys of random batches. Column k1001 has the id 1001.
var testRegistry = sync.OnceValue(func() *registry.Registry {
	tables := registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis,
		Params: registrytest.Param(1, "weight", "float") + registrytest.Param(2, "pattern", "string", registrytest.Nullable)}
	for typ, ids := range map[string][]int{"float": {1001, 1002, 2001}, "string": {3001, 3002}, "int": {5001, 5002}, "bool": {5101}, "string_set": {5201, 5202}, "vector(5)": {5251, 5252}} {
		for _, id := range ids {
			tables.Keys += registrytest.Key(id, fmt.Sprintf("k%d", id), typ, registrytest.Nullable, registrytest.Writable)
		}
	}
	tables.Keys += registrytest.Key(6001, "score", "float", registrytest.Nullable, registrytest.Writable) +
		registrytest.Key(6002, "second", "float", registrytest.Nullable, registrytest.Writable) +
		registrytest.Key(6003, "strict", "float", registrytest.Writable) + registrytest.Key(6004, "fixed", "float", registrytest.Nullable)
	return tables.Load()
})

// nodeCase is the node of a plan with one input, which has all columns of random batches.
type nodeCase struct {
	params       map[string]any
	exprs, preds map[string]string
}

// load returns the node, the first of its plan.
func (n nodeCase) load(t testing.TB, spec task.Spec) (*plan.Node, error) {
	source := task.Spec{Op: "test::all", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil },
		Writes: task.Columns(1001, 1002, 2001, 3001, 3002, 5001, 5002, 5101, 5201, 5202, 5251, 5252)}
	catalog, err := task.NewCatalog(spec, source)
	require.NoError(t, err)
	table := func(texts map[string]string) map[string]json.RawMessage {
		raw := make(map[string]json.RawMessage)
		for id, text := range texts {
			raw[id] = json.RawMessage(text)
		}
		return raw
	}
	artifact, err := json.Marshal(map[string]any{
		"schema_version": 1, "plan_name": "p", "expr_table": table(n.exprs), "pred_table": table(n.preds), "outputs": []string{"it"},
		"capabilities_required": []string{"cap.rankd.expressions.v1"},
		"nodes": []any{
			map[string]any{"node_id": "it", "op": spec.Op, "inputs": []string{"in"}, "params": n.params},
			map[string]any{"node_id": "in", "op": "test::all", "inputs": []string{}},
		},
	})
	require.NoError(t, err)
	g, err := plan.Load("p.plan.json", artifact, catalog, testRegistry())
	if err != nil {
		return nil, err
	}
	return g.Nodes[0], nil
}

// runner returns how the node runs. Its results are checked against the shape of the task.
func (n nodeCase) runner(t testing.TB, spec task.Spec) func(in rowset.RowSet, limit int) (rowset.RowSet, error) {
	node, err := n.load(t, spec)
	require.NoError(t, err)
	reg := testRegistry()
	return func(in rowset.RowSet, limit int) (rowset.RowSet, error) {
		return invoke(&task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Limit: limit, Params: new(expr.Params), Registry: reg})
	}
}

// invoke runs the node of c, as an engine does.
func invoke(c *task.Ctx) (rowset.RowSet, error) { return tasks.Invoke(tasks.SpecOf(c.Node), c) }

// cancel tells c that nobody waits for its result.
func cancel(c *task.Ctx) {
	env := tasks.Env(c)
	env.Cancellation = new(taskrun.Cancellation)
	env.Cancellation.Cancel(task.ErrCancelled)
}

// plainRow is an active row as the references of the tasks see it: columns by key, without nulls.
type plainRow struct {
	row    int32 // of the batch
	id     int64
	fields map[registry.KeyID]any
}

func plainRows(in rowset.RowSet) []plainRow {
	rows := make([]plainRow, in.Len())
	for i := range rows {
		row := int(in.Row(i))
		rows[i] = plainRow{in.Row(i), in.ID(i), map[registry.KeyID]any{registry.IDKey: in.ID(i)}}
		for _, key := range in.Batch.AppendKeys(nil) {
			var v any
			ok := false
			switch in.Batch.TypeOf(key) {
			case registry.Float:
				v, ok = in.Batch.Float(key).Value(row)
			case registry.Int:
				v, ok = in.Batch.Int(key).Value(row)
			case registry.Bool:
				v, ok = in.Batch.Bool(key).Value(row)
			case registry.String:
				v, ok = in.Batch.String(key).Value(row)
			}
			if ok {
				rows[i].fields[key] = v
			}
		}
	}
	return rows
}

// number returns the number in the column of a key; false means null.
func (r plainRow) number(key registry.KeyID) (float64, bool) {
	switch v := r.fields[key].(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// batchRows returns the batch rows of the active rows.
func batchRows(rs rowset.RowSet) []int32 {
	rows := make([]int32, rs.Len())
	for i := range rows {
		rows[i] = rs.Row(i)
	}
	return rows
}

// eachRandom calls check for many random row sets.
func eachRandom(t *testing.T, count uint64, check func(t *testing.T, rng *rand.Rand, in rowset.RowSet)) {
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 1414))
		check(t, rng, rowsettest.RowSet(rng, 400))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// refuses checks that a plan with the node does not load. It also checks the error's text after
// the file and the node.
func (n nodeCase) refuses(t *testing.T, spec task.Spec, want string) {
	t.Helper()
	_, err := n.load(t, spec)
	require.Error(t, err)
	require.Equal(t, `p.plan.json: node "it": nodes[0].`+want, err.Error())
}
