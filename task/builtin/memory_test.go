package builtin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/rowset/rowsettest"
)

// contentsOf returns all that a row set has, active or not, NaNs as their bits.
func contentsOf(rs rowset.RowSet) []any {
	all := []any{rs.N, rs.Rows, rs.Batch.IDs, rs.Batch.Strings}
	for _, c := range rs.Batch.Floats {
		all = append(all, c.Key, c.Valid)
		for _, v := range c.Values {
			all = append(all, math.Float64bits(v))
		}
	}
	return all
}

// Bodies give the same results with slices of other requests, full of other values, as with fresh ones.
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
			pool := rowset.NewPool(rowset.PoolConfig{LengthMin: 1, Poison: true})
			m := rowset.NewMemory(pool)
			m.SetLending(true)
			c := ctxOf(t, n.op, n.params)
			c.Limit = n.limit
			for range 50 {
				in, ref := rowsettest.RowSet(rng, 1100), rowsettest.RowSet(rng, 1100)
				if in.Batch.Float(1001) == nil {
					in.Batch = rowset.WithFloat(in.Batch, 1001, make([]float64, in.Batch.Len()), nil)
				}
				if n.op != "fixed_source" {
					c.Inputs = []rowset.RowSet{in}
				}
				if n.op == "concat" {
					c.Refs = []rowset.RowSet{ref}
				}
				c.Memory = nil
				want, err := invoke(c)
				require.NoError(t, err)
				c.Memory = m
				got, err := invoke(c)
				require.NoError(t, err)
				require.Equal(t, contentsOf(want), contentsOf(got))
				require.NoError(t, got.Validate())
				m.Release(nil)
			}
			assert.Equal(t, n.op != "take", pool.Bytes() > 0, "the pool was used")
		})
	}
}
