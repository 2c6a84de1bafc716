package builtin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// requireSame compares all rows of two row sets, active or not, and compares NaNs by their
// bits.
func requireSame(t *testing.T, want, got rowset.RowSet) {
	t.Helper()
	require.Equal(t, want.N, got.N)
	require.True(t, slices.Equal(want.Rows, got.Rows), "rows")
	require.True(t, slices.Equal(want.Batch.IDs, got.Batch.IDs), "ids")
	require.Equal(t, want.Batch.AppendKeys(nil), got.Batch.AppendKeys(nil))
	for _, column := range want.Batch.Columns() {
		switch w := column.(type) {
		case *rowset.FloatColumn:
			g := got.Batch.Float(w.Key)
			require.NotNil(t, g)
			require.True(t, slices.Equal(w.Valid, g.Valid), "validity of %d", w.Key)
			require.True(t, slices.EqualFunc(w.Values, g.Values, func(a, b float64) bool {
				return math.Float64bits(a) == math.Float64bits(b)
			}), "values of %d", w.Key)
		case *rowset.StringColumn:
			g := got.Batch.String(w.Key)
			require.NotNil(t, g)
			require.True(t, slices.Equal(w.Places, g.Places), "places of %d", w.Key)
			require.Equal(t, w.Dict, g.Dict)
		}
	}
	require.True(t, rowsettest.Equal(rowset.Dense(want.Batch), rowset.Dense(got.Batch)), "columns of the other types")
}

// Bodies give the same results in slices of other requests, full of other values, as in fresh
// ones.
func TestUsedMemoryChangesNoResult(t *testing.T) {
	nodes := []struct {
		op, params string
		limit      int
	}{
		{"vm", `"out_key": 2001, "expr_id": "e"`, 0},
		{"filter", `"pred_id": "p"`, 0},
		{"sort", `"by": 1001, "order": "desc"`, 0},
		{"sort", `"by": 1001`, 40},
		{"sort", `"by": 1`, 3},
		{"take", `"count": 7`, 0},
		{"concat", `"rhs": "in"`, 0},
		{"fixed_source", `"row_count": 700`, 0},
	}
	for _, n := range nodes {
		t.Run(fmt.Sprintf("%s %s limit %d", n.op, n.params, n.limit), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(9, 9))
			pool, both := usedMemory(t)
			c := ctxOf(t, n.op, n.params)
			c.Limit = n.limit
			for range 50 {
				in, ref := rowsettest.RowSet(rng, 1100), rowsettest.RowSet(rng, 1100)
				if in.Batch.Float(1001) == nil {
					in.Batch = rowset.With(in.Batch, &rowset.FloatColumn{Key: 1001, Values: make([]float64, in.Batch.Len())})
				}
				if n.op != "fixed_source" {
					c.Inputs = []rowset.RowSet{in}
				}
				if n.op == "concat" {
					c.Refs = []rowset.RowSet{ref}
				}
				both(c, func(want, got rowset.RowSet) { requireSame(t, want, got) })
			}
			assert.Equal(t, n.op != "take", pool.Bytes() > 0, "the pool was used")
		})
	}
}

// usedMemory returns a function and a pool. The function invokes a body in fresh memory, and in
// memory of the pool that earlier bodies have filled with other values.
func usedMemory(t *testing.T) (*rowset.Pool, func(c *task.Ctx, compare func(want, got rowset.RowSet))) {
	pool := rowset.NewPool(rowset.PoolConfig{LengthMin: 1, Poison: true})
	m := rowset.NewMemory(pool)
	m.SetLending(true)
	return pool, func(c *task.Ctx, compare func(want, got rowset.RowSet)) {
		c.Memory = nil
		want, err := invoke(c)
		require.NoError(t, err)
		c.Memory = m
		got, err := invoke(c)
		require.NoError(t, err)
		require.NoError(t, got.Validate())
		compare(want, got)
		m.Release(nil)
	}
}
