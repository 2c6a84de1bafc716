package rowset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Results are immutable: a union of sets does not change the dictionary of its input, which
// other results share. Sets of few members and of many take different paths.
func TestUnionsOfSetsShareNothingThatTheyChange(t *testing.T) {
	const sets, first, second = registry.KeyID(5201), registry.KeyID(5001), registry.KeyID(5002)
	for _, members := range []int{4, 200} {
		const rows = 6
		b := rowset.NewSetBuilder(sets, rows)
		evens, thirds := rowset.NewIntBuilder(first, rows), rowset.NewIntBuilder(second, rows)
		for i := range rows {
			for m := i; m < members; m += rows {
				b.Add(fmt.Appendf(nil, "m%d", m))
			}
			b.Append()
			evens.Append(int64(i % 2))
			thirds.Append(int64(i % 3))
		}
		column := b.Column().(*rowset.SetColumn)
		// Its slices have spare capacity, as those of a builder may have.
		column.Dict.Members = append(make([]int32, 0, 4*members), column.Dict.Members...)
		column.Dict.Offsets = append(make([]int32, 0, 100), column.Dict.Offsets...)
		in := rowset.Dense(rowset.NewBatch([]int64{1, 2, 3, 4, 5, 6},
			column,
			evens.Column(),
			thirds.Column(),
		))
		values := func(rs rowset.RowSet) (all [][]string) {
			for i := range rs.Len() {
				set, ok := rs.Batch.Set(sets).AppendValues(nil, int(rs.Row(i)))
				require.True(t, ok)
				all = append(all, set)
			}
			return all
		}
		given := values(in)
		one, err := rowset.Dedupe(nil, nil, in, rowset.Distinction{By: first, Sets: sets})
		require.NoError(t, err)
		before := values(one)
		other, err := rowset.Dedupe(nil, nil, in, rowset.Distinction{By: second, Sets: sets})
		require.NoError(t, err)
		require.Len(t, values(other), 3)
		assert.Equal(t, before, values(one), "%d members: the second union changed the first", members)
		assert.Equal(t, given, values(in), "%d members", members)
	}
}
