package builtin_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

const (
	keyInt registry.KeyID = 5001 + iota
	keyBool
	keySet
)

// tables returns the built-in tables, with a key of each type that they do not have.
func tables() *registry.Registry {
	tables := registrytest.BuiltIn()
	for i, typ := range []string{"int", "bool", "string_set"} {
		tables.Keys += registrytest.Key(keyInt+registry.KeyID(i), fmt.Sprintf("k%d", i), typ, registrytest.Nullable)
	}
	return tables.Load()
}

// typedRows returns four rows with a column of each type.
func typedRows() rowset.RowSet {
	const big = int64(1) << 53
	rows := rankdtest.Rows(10, 20, 30, 40)
	rows = rankdtest.WithInts(rows, keyInt, big+1, nil, big, 7)
	rows = rankdtest.WithBools(rows, keyBool, true, false, nil, false)
	return rankdtest.WithSets(rows, keySet, []string{"b", "a"}, nil, []string{}, []string{"a"})
}

func spec(t *testing.T, op string) task.Spec {
	t.Helper()
	for _, s := range builtin.Specs() {
		if s.Op == op {
			return s
		}
	}
	t.Fatalf("no task %s", op)
	return task.Spec{}
}

func TestSortByEachType(t *testing.T) {
	for _, c := range []struct {
		by    registry.KeyID
		order string
		want  []int64
	}{
		{keyInt, "asc", []int64{40, 30, 10, 20}}, {keyInt, "desc", []int64{10, 30, 40, 20}},
		{keyBool, "asc", []int64{20, 40, 10, 30}}, {keyBool, "desc", []int64{10, 20, 40, 30}},
	} {
		out, err := rankdtest.Run(spec(t, "core::sort"), rankdtest.Case{
			Inputs: rankdtest.Inputs(typedRows()), Registry: tables(), Params: map[string]any{"by": c.by, "order": c.order}})
		require.NoError(t, err)
		assert.Equal(t, c.want, rankdtest.IDs(out), "by %d %s", c.by, c.order)
	}
	for by, want := range map[registry.KeyID]string{
		keySet: "cannot sort by 5003 (k2): sets have no order",
		2002:   "cannot sort by 2002 (score): the input has no such column",
	} {
		for _, rows := range []rowset.RowSet{typedRows(), rowset.Take(typedRows(), 0)} { // even without rows
			_, err := rankdtest.Run(spec(t, "core::sort"), rankdtest.Case{
				Inputs: rankdtest.Inputs(rows), Registry: tables(), Params: map[string]any{"by": by}})
			require.ErrorIs(t, err, task.ErrInvalid)
			assert.EqualError(t, err, want)
		}
	}
}

func TestTasksPassColumnsOfAllTypesOn(t *testing.T) {
	in := typedRows()
	out, err := rankdtest.Run(spec(t, "core::concat"), rankdtest.Case{
		Inputs: rankdtest.Inputs(rankdtest.Select(in, 2, 0)), Refs: map[string]rowset.RowSet{"rhs": rankdtest.Rows(50)}, Registry: tables()})
	require.NoError(t, err)
	assert.Equal(t, []any{int64(1) << 53, int64(1)<<53 + 1, nil}, rankdtest.Values(out, keyInt))
	assert.Equal(t, []any{nil, true, nil}, rankdtest.Values(out, keyBool))
	assert.Equal(t, []any{[]string{}, []string{"a", "b"}, nil}, rankdtest.Values(out, keySet))

	for op, params := range map[string]map[string]any{
		"core::take": {"count": 3}, "core::filter": {"pred_id": "p"}, "core::vm": {"out_key": 2002, "expr_id": "e"}, "test::sleep": {"duration_ms": 0},
	} {
		out, err := rankdtest.Run(spec(t, op), rankdtest.Case{
			Inputs: rankdtest.Inputs(in), Params: params, Registry: tables(),
			Exprs: map[string]string{"e": `{"op": "key_ref", "key_id": 1}`},
			Preds: map[string]string{"p": `{"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 35}}`}})
		require.NoError(t, err, op)
		for _, key := range []registry.KeyID{keyInt, keyBool, keySet} {
			assert.Equal(t, rankdtest.Values(in, key)[:out.Len()], rankdtest.Values(out, key), "%s, key %d", op, key)
		}
	}
}
