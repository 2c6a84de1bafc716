package builtin_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// A sort selects only if its one reader is a take of the first rows.
func TestLimit(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	const source = `{"node_id": "src", "op": "fixed_source", "inputs": [], "params": {"row_count": 5}}`
	const sort = `{"node_id": "sort", "op": "sort", "inputs": ["src"], "params": {"by": 1}}`
	take := func(id string, count int64) string {
		return fmt.Sprintf(`{"node_id": %q, "op": "take", "inputs": ["sort"], "params": {"count": %d}}`, id, count)
	}
	for _, c := range []struct {
		name    string
		nodes   string
		outputs string
		want    int
	}{
		{"a take", take("t", 3), `"t"`, 3},
		{"a page", `{"node_id": "t", "op": "take", "inputs": ["sort"], "params": {"count": 3, "offset": 4}}`, `"t"`, 7},
		{"a take of more than there are rows", take("t", 1<<40), `"t"`, task.MaxRowsLimit},
		{"a take that will fail", take("t", 0), `"t"`, 0},
		{"a take whose result nobody reads", take("t", 3), ``, 3},
		{"an output", take("t", 3), `"t", "sort"`, 0},
		{"no reader", take("t", 3), `"sort"`, 0},
		{"two takes", take("t", 3) + "," + take("u", 2), `"t", "u"`, 0},
		{"another reader", `{"node_id": "t", "op": "sort", "inputs": ["sort"], "params": {"by": 1}}`, `"t"`, 0},
		{"a take of two inputs, which will fail", `{"node_id": "t", "op": "take", "inputs": ["sort", "src"], "params": {"count": 3}}`, `"t"`, 0},
		{"a reference", `{"node_id": "t", "op": "concat", "inputs": ["src"], "params": {"rhs": "sort"}}`, `"t"`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := plan.Load("p.plan.json", []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s, %s, %s], "outputs": [%s]}`,
				source, sort, c.nodes, c.outputs)), builtin.Catalog(), reg)
			require.NoError(t, err)
			assert.Equal(t, c.want, tasks.Limit(g, g.Nodes[1]))
			assert.Zero(t, tasks.Limit(g, g.Nodes[0]), "the source honours no limit")
		})
	}
}

// A take gives what slicing would give, of rows in their order and of a list of rows.
func TestTakeIsASlice(t *testing.T) {
	ids := []int64{7, 3, 9, 3, 5, 8, 2, 6, 4, 1}
	dense := rowset.Dense(rowset.NewBatch(ids))
	list := rowset.RowSet{Batch: dense.Batch, Rows: []int32{9, 0, 4, 4 + 1, 2}, N: 5}
	for _, in := range []rowset.RowSet{dense, list, rowset.Take(dense, 6), {Batch: dense.Batch}} {
		var all []int64
		for i := range in.N {
			all = append(all, in.ID(i))
		}
		for offset := range 12 {
			for _, count := range []int{1, 3, 20} {
				out, err := rankdtest.Run(specOf(t, "take"), rankdtest.Case{Inputs: []rowset.RowSet{in}, Params: map[string]any{"offset": offset, "count": count}})
				require.NoError(t, err)
				var got []int64
				for i := range out.N {
					got = append(got, out.ID(i))
				}
				from := min(offset, len(all))
				want := all[from:min(from+count, len(all))]
				assert.True(t, slices.Equal(want, got), "offset %d, count %d: want %v, got %v", offset, count, want, got)
			}
		}
	}
}
