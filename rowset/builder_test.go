package rowset_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A column of each type has the rows that its builder was given, whatever capacity the builder
// began with.
func TestBuildersAgreeWithPlainRows(t *testing.T) {
	forRandom(t, 200, func(t *testing.T, rng *rand.Rand) {
		n := rng.IntN(300)
		room := rng.IntN(2 * (n + 1))
		floats, ints := rowset.NewFloatBuilder(2001, room), rowset.NewIntBuilder(5001, room)
		bools, sets := rowset.NewBoolBuilder(5101, room), rowset.NewSetBuilder(5201, room)
		nulls := [...]float64{0, 0.1, 1}[rng.IntN(3)]
		want := []rowsettest.Row{}
		for range n {
			fields := ""
			if rng.Float64() < nulls {
				floats.AppendNull()
				ints.AppendNull()
				bools.AppendNull()
				sets.Add([]byte("given up"))
				sets.AppendNull()
			} else {
				f, i, b := rng.Float64(), int64(rng.Uint64()), rng.IntN(2) == 0
				floats.Append(f)
				ints.Append(i)
				bools.Append(b)
				members := []string{}
				for range rng.IntN(4) {
					member := rowsettest.String(rng)
					sets.Add([]byte(member))
					members = append(members, member)
				}
				sets.Append()
				slices.Sort(members)
				set := ""
				for k, member := range slices.Compact(members) {
					if k > 0 {
						set += ","
					}
					set += strconv.Quote(member)
				}
				fields = "2001=" + strconv.FormatFloat(f, 'g', -1, 64) + ";5001=" + strconv.FormatInt(i, 10) +
					";5101=" + strconv.FormatBool(b) + ";5201={" + set + "};"
			}
			want = append(want, rowsettest.Row{Fields: fields})
		}
		require.Equal(t, [4]int{n, n, n, n}, [4]int{floats.Len(), ints.Len(), bools.Len(), sets.Len()})
		batch := rowset.NewBatch(make([]int64, n),
			floats.Column(),
			ints.Column(),
			bools.Column(),
			sets.Column(),
		)
		require.NoError(t, batch.Validate())
		assert.Equal(t, want, rowsettest.PlainRows(rowset.Dense(batch)))
		if nulls == 0 {
			assert.Nil(t, batch.Float(2001).Valid, "validity only where a row is null")
			assert.Nil(t, batch.Int(5001).Valid)
			assert.Nil(t, batch.Bool(5101).Valid)
		}
	})
}

// A value in binary form is read back unchanged, and what follows it is left.
func TestBinaryValues(t *testing.T) {
	forRandom(t, 100, func(t *testing.T, rng *rand.Rand) {
		batch := rowsettest.RowSet(rng, 100).Batch
		for _, column := range batch.Columns() {
			key := &registry.Key{ID: column.KeyID(), Type: column.Type(), Dims: rowsettest.VectorDims}
			given, b := rowset.NewBuilder(nil, key, 0), rowset.NewBuilder(nil, key, rng.IntN(2*len(batch.IDs)+1))
			for row := range batch.IDs {
				require.True(t, given.AppendAny(column.Any(row)))
				if column.Any(row) == nil {
					b.AppendNull()
					continue
				}
				rest := b.AppendBinary(append(given.AppendLast([]byte("x"))[1:], "rest"...))
				require.Equal(t, "rest", string(rest))
			}
			again := b.Column()
			for row := range batch.IDs {
				require.Equal(t, column.Any(row), again.Any(row))
			}
		}
	})
}

func TestFloatBuilderRefusesNonFiniteValues(t *testing.T) {
	b := rowset.NewFloatBuilder(2001, 4)
	for _, v := range []float64{1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		b.Append(v)
	}
	c := b.Column().(*rowset.FloatColumn)
	assert.Equal(t, 1, c.Valid.Count(4))
	assert.Equal(t, []float64{1, 0, 0, 0}, c.Values)
}

func TestSetColumn(t *testing.T) {
	b := rowset.NewSetBuilder(5201, 3)
	for _, member := range []string{"b", "a", "b", "ä"} {
		b.Add([]byte(member))
	}
	b.Append()
	b.Append()
	b.AppendNull()
	c := b.Column().(*rowset.SetColumn)
	set, ok := c.AppendValues([]string{"before"}, 0)
	assert.True(t, ok)
	assert.Equal(t, []string{"before", "a", "b", "ä"}, set)
	set, ok = c.AppendValues(nil, 1)
	assert.True(t, ok, "an empty set is not a null")
	assert.Empty(t, set)
	_, ok = c.AppendValues(nil, 2)
	assert.False(t, ok)
	codes, ok := c.Set(0)
	assert.True(t, ok)
	assert.IsIncreasing(t, codes)
	a := int32(slices.Index(c.Dict.Strings.Values, "a"))
	assert.True(t, c.Dict.Has(0, a))
	assert.False(t, c.Dict.Has(1, a))
}

func TestBuildersAllocateNothingPerRow(t *testing.T) {
	const rows = 1000
	member := []byte("member")
	assert.Less(t, testing.AllocsPerRun(10, func() {
		ints, bools, sets := rowset.NewIntBuilder(1, rows), rowset.NewBoolBuilder(2, rows), rowset.NewSetBuilder(3, rows)
		for i := range rows {
			if i%3 == 0 {
				ints.AppendNull()
				bools.AppendNull()
				sets.AppendNull()
				continue
			}
			ints.Append(int64(i))
			bools.Append(i%2 == 0)
			sets.Add(member)
			sets.Append()
		}
	}), 30.0)
}
