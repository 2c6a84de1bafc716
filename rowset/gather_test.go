package rowset_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// lender returns a function that returns a memory whose slices hold garbage, or nil.
func lender(t *testing.T) func(rng *rand.Rand) *rowset.Memory {
	pool := rowset.NewPool(rowset.PoolConfig{LengthMin: 1, Poison: true})
	return func(rng *rand.Rand) *rowset.Memory {
		if rng.IntN(2) == 0 {
			return nil
		}
		m := rowset.NewMemory(pool)
		m.SetLending(true)
		t.Cleanup(func() { m.Release(nil) })
		return m
	}
}

func TestGatherAgreesWithPlainRows(t *testing.T) {
	lend := lender(t)
	forRandom(t, 400, func(t *testing.T, rng *rand.Rand) {
		b := rowsettest.RowSet(rng, 400).Batch
		rows, want := make([]int32, rng.IntN(500)), []rowsettest.Row{}
		plain := rowsettest.PlainRows(rowset.Dense(b))
		holes := rng.Float64() * float64(rng.IntN(2))
		for i := range rows {
			if b.Len() == 0 || rng.Float64() < holes {
				rows[i] = -1
				want = append(want, rowsettest.Row{})
				continue
			}
			rows[i] = int32(rng.IntN(b.Len()))
			want = append(want, plain[rows[i]])
		}
		out := rowset.Gather(lend(rng), b, rows)
		require.NoError(t, out.Validate())
		assert.Equal(t, b.AppendKeys(nil), out.AppendKeys(nil))
		assert.Equal(t, want, rowsettest.PlainRows(rowset.Dense(out)))
	})
}

func TestGatherOfNoRows(t *testing.T) {
	b := rowsettest.Batch(rand.New(rand.NewPCG(1, 1)), 10)
	for _, rows := range [][]int32{nil, {}} {
		out := rowset.Gather(nil, b, rows)
		require.NoError(t, out.Validate())
		assert.Zero(t, out.Len())
		assert.Equal(t, b.AppendKeys(nil), out.AppendKeys(nil))
	}
}

func TestGatherRefusesARowOutsideOfTheBatch(t *testing.T) {
	b := rowset.NewBatch([]int64{1, 2})
	for _, row := range []int32{2, -2, math.MinInt32} {
		assert.Panics(t, func() { rowset.Gather(nil, b, []int32{0, row}) }, "row %d", row)
	}
}

// A column without nulls has no validity.
func TestGatherHasNoValidityIfNothingIsNull(t *testing.T) {
	b := rowset.NewBatch([]int64{1, 2},
		&rowset.IntColumn{Key: 5001, Values: []int64{1, 2}},
		&rowset.BoolColumn{Key: 5101, Values: rowset.NewBitmap(2)},
	)
	out := rowset.Gather(nil, b, []int32{1, 1, 0})
	assert.Nil(t, out.Int(5001).Valid)
	assert.Nil(t, out.Bool(5101).Valid)
	assert.Equal(t, []int64{2, 2, 1}, out.Int(5001).Values)
}

func TestConcatOfManySidesAgreesWithPlainRows(t *testing.T) {
	lend := lender(t)
	forRandom(t, 200, func(t *testing.T, rng *rand.Rand) {
		sides := make([]rowset.RowSet, rng.IntN(7))
		want, keys := []rowsettest.Row{}, []registry.KeyID{}
		for i := range sides {
			switch {
			case rng.IntN(6) == 0: // the zero row set
			case i > 0 && sides[i-1].Batch != nil && rng.IntN(2) == 0:
				sides[i] = rowsettest.Rows(rng, sides[i-1].Batch)
			default:
				sides[i] = rowsettest.RowSet(rng, 200)
			}
			want = append(want, rowsettest.PlainRows(sides[i])...)
			if sides[i].Batch != nil {
				keys = sides[i].Batch.AppendKeys(keys)
			}
		}
		out := rowset.Concat(lend(rng), sides...)
		require.NoError(t, out.Validate())
		slices.Sort(keys)
		assert.Equal(t, slices.Compact(keys), append([]registry.KeyID{}, out.Batch.AppendKeys(nil)...))
		assert.Equal(t, want, rowsettest.PlainRows(out))
	})
}

// A key of two types has that of the first side.
func TestConcatOfTwoTypes(t *testing.T) {
	ints := rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.IntColumn{Key: 9, Values: []int64{7}}))
	floats := rowset.Dense(rowset.NewBatch([]int64{2}, &rowset.FloatColumn{Key: 9, Values: []float64{0.5}}))
	out := rowset.Concat(nil, ints, floats)
	require.NoError(t, out.Validate())
	assert.Equal(t, []rowsettest.Row{{ID: 1, Fields: "9=7;"}, {ID: 2}}, rowsettest.PlainRows(out))
}

func TestConcatSharesASetDictionary(t *testing.T) {
	b := rowset.NewSetBuilder(5201, 2)
	b.Add([]byte("x"))
	b.Append()
	b.AppendNull()
	c := b.Column().(*rowset.SetColumn)
	side := rowset.Dense(rowset.NewBatch([]int64{1, 2}, c))
	assert.Same(t, c.Dict, rowset.Concat(nil, side, side).Batch.Set(5201).Dict)
}

// A few rows of a large dictionary take only their own sets with them.
func TestGatherLeavesUnusedSetsBehind(t *testing.T) {
	b := rowset.NewSetBuilder(5201, 1000)
	for i := range 1000 {
		b.Add(fmt.Append(nil, i))
		b.Add(fmt.Append(nil, i+1))
		b.Append()
	}
	batch := rowset.NewBatch(make([]int64, 1000), b.Column())
	out := rowset.Gather(nil, batch, []int32{900, 17, 900})
	require.NoError(t, out.Validate())
	dict := out.Set(5201).Dict
	assert.Equal(t, 2, dict.Len())
	assert.Equal(t, []string{"900", "901", "17", "18"}, dict.Strings.Values)
}

func TestWithAgreesWithPlainRows(t *testing.T) {
	forRandom(t, 300, func(t *testing.T, rng *rand.Rand) {
		n := rng.IntN(100)
		b, from := rowsettest.Batch(rng, n), rowsettest.Batch(rng, n)
		added := from.Columns()
		if rng.IntN(2) == 0 { // a key that b may have with another type
			added = []rowset.Column{&rowset.IntColumn{Key: rowsettest.FloatKeys[0], Values: make([]int64, n)}}
			from = rowset.NewBatch(from.IDs, added...)
		}
		before := rowsettest.PlainRows(rowset.Dense(b))
		out := rowset.With(b, added...)
		require.NoError(t, out.Validate())
		keys := slices.Compact(slices.Sorted(slices.Values(from.AppendKeys(b.AppendKeys(nil)))))
		require.Equal(t, keys, append([]registry.KeyID(nil), out.AppendKeys(nil)...))
		for _, key := range keys {
			source := b
			if from.TypeOf(key) != 0 {
				source = from
			}
			require.Equal(t, source.TypeOf(key), out.TypeOf(key))
			require.True(t, rowset.SharesColumn(source, out, key), "key %d is shared", key)
		}
		require.Equal(t, b.IDs, out.IDs)
		require.Equal(t, before, rowsettest.PlainRows(rowset.Dense(b)), "the batch itself stays")
	})
}

// No column is lost or duplicated where rows get columns of all types at once.
func TestScatterAgreesWithPlainRows(t *testing.T) {
	lend := lender(t)
	forRandom(t, 150, func(t *testing.T, rng *rand.Rand) {
		in := rowsettest.RowSet(rng, 300)
		values := rowsettest.Batch(rng, in.N)
		out := rowset.Scatter(lend(rng), in, values.Columns()...)
		require.NoError(t, out.Validate())
		require.Equal(t, in.Rows, out.Rows)
		require.Equal(t, in.N, out.N)
		position := map[int]int{}
		for i := range in.N {
			position[int(in.Row(i))] = i
		}
		for _, key := range out.Batch.AppendKeys(nil) {
			for row := range in.Batch.Len() {
				want, ok := rowsettest.Field(in.Batch, key, row)
				if values.TypeOf(key) != 0 {
					want, ok = "", false
					if i, active := position[row]; active {
						want, ok = rowsettest.Field(values, key, i)
					}
				}
				got, gotOK := rowsettest.Field(out.Batch, key, row)
				require.Equal(t, ok, gotOK, "key %d, row %d", key, row)
				if ok {
					require.Equal(t, want, got, "key %d, row %d", key, row)
				}
			}
		}
	})
}

// The number of allocations does not grow with the rows.
func TestGatherAllocatesColumnsOnly(t *testing.T) {
	allocations := func(n int) float64 {
		b := rowset.NewStringBuilder(3001, n)
		for i := range n {
			b.Append(fmt.Append(nil, i%7))
		}
		batch := rowset.NewBatch(make([]int64, n),
			&rowset.FloatColumn{Key: 2001, Values: make([]float64, n), Valid: rowset.NewBitmap(n)},
			&rowset.IntColumn{Key: 5001, Values: make([]int64, n)},
			b.Column(),
		)
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32(i) - int32(i%7/6)*int32(i+1) // some are -1
		}
		return testing.AllocsPerRun(20, func() { rowset.Gather(nil, batch, rows) })
	}
	assert.Equal(t, allocations(1000), allocations(8000))
}

func BenchmarkGather(b *testing.B) {
	const n = 10_000
	rng := rand.New(rand.NewPCG(1, 1))
	country := rowset.NewStringBuilder(3001, n)
	tags := rowset.NewSetBuilder(5201, n)
	for i := range n {
		country.Append(fmt.Append(nil, "C", i%200))
		tags.Add(fmt.Append(nil, "t", i%50))
		tags.Append()
	}
	rows, holes := make([]int32, n), make([]int32, n)
	for i := range rows {
		rows[i] = int32(rng.IntN(n))
		holes[i] = rows[i]
		if rng.IntN(10) == 0 {
			holes[i] = -1
		}
	}
	for name, column := range map[string]rowset.Column{
		"float":  &rowset.FloatColumn{Key: 2001, Values: make([]float64, n)},
		"int":    &rowset.IntColumn{Key: 5001, Values: make([]int64, n)},
		"bool":   &rowset.BoolColumn{Key: 5101, Values: rowset.NewBitmap(n)},
		"string": country.Column(),
		"set":    tags.Column(),
	} {
		batch := rowset.NewBatch(make([]int64, n), column)
		for list, rows := range map[string][]int32{"all": rows, "holes": holes} {
			b.Run(name+"/"+list, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rowset.Gather(nil, batch, rows)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
