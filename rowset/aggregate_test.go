package rowset_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

var methods = []rowset.Aggregation{rowset.Count, rowset.Sum, rowset.Mean, rowset.Min, rowset.Max}

// plainAggregate computes Aggregate in the plainest way, over the values of one group, which
// include nils.
func plainAggregate(a rowset.Aggregation, values []any, out registry.Type) any {
	var some []any
	for _, v := range values {
		if v != nil {
			some = append(some, v)
		}
	}
	if a == rowset.Count {
		if out == registry.Float {
			return float64(len(some))
		}
		return int64(len(some))
	}
	if len(some) == 0 {
		return nil
	}
	if out == registry.Int {
		least, greatest, sum := some[0].(int64), some[0].(int64), new(big.Int)
		for _, v := range some {
			least, greatest = min(least, v.(int64)), max(greatest, v.(int64))
			sum.Add(sum, big.NewInt(v.(int64)))
		}
		switch {
		case a == rowset.Min:
			return least
		case a == rowset.Max:
			return greatest
		case sum.IsInt64():
			return sum.Int64()
		}
		return nil
	}
	number := func(v any) float64 {
		if n, ok := v.(int64); ok {
			return float64(n)
		}
		return v.(float64)
	}
	least, greatest, sum := number(some[0]), number(some[0]), 0.0
	for _, v := range some {
		if number(v) < least {
			least = number(v)
		}
		if number(v) > greatest {
			greatest = number(v)
		}
		sum += number(v)
	}
	result := map[rowset.Aggregation]float64{rowset.Sum: sum, rowset.Mean: sum / float64(len(some)), rowset.Min: least, rowset.Max: greatest}[a]
	if math.IsInf(result, 0) || math.IsNaN(result) {
		return nil
	}
	return result
}

// hugeNumbers gives some rows zeros of both signs, and numbers whose sums leave the range of
// their type.
func hugeNumbers(rng *rand.Rand, in rowset.RowSet) rowset.RowSet {
	ints, floats := rowset.NewIntBuilder(5001, 0), rowset.NewFloatBuilder(1001, 0)
	for range in.Batch.IDs {
		switch rng.IntN(6) {
		case 0:
			ints.AppendNull()
			floats.AppendNull()
		case 1:
			ints.Append(math.MaxInt64)
			floats.Append(math.MaxFloat64)
		case 2:
			ints.Append(math.MinInt64)
			floats.Append(-math.MaxFloat64)
		case 3:
			ints.Append(0)
			floats.Append(math.Copysign(0, -1))
		default:
			ints.Append(rng.Int64N(9) - 4)
			floats.Append(rng.NormFloat64())
		}
	}
	in.Batch = rowset.With(in.Batch, ints.Column(), floats.Column())
	return in
}

// Each aggregation of each type equals a plain loop over the rows of the group, to the bit.
func TestAggregateAsPlainLoops(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 26))
		in := rowsettest.RowSet(rng, 300)
		if seed%2 == 0 {
			in = hugeNumbers(rng, in)
		}
		by := [][]registry.KeyID{nil, {5101}, {3001}, {3001, 5101}, {registry.IDKey}, {3001, 9}, {5101, 5001, 3001}}[rng.IntN(7)]
		of, n, err := rowset.Groups(nil, nil, in, by...)
		require.NoError(t, err)
		for _, column := range []registry.KeyID{0, registry.IDKey, 1001, 1002, 5001, 3001, 5101, 9} {
			values := make([][]any, n) // by group
			for pos := range in.Len() {
				v := any(in.ID(pos))
				if c := in.Batch.Column(column); c != nil {
					v = c.Any(int(in.Row(pos)))
				} else if column > registry.IDKey {
					v = nil
				}
				values[of[pos]] = append(values[of[pos]], v)
			}
			for _, a := range methods {
				for _, out := range []*registry.Key{{ID: 7, Type: registry.Float}, {ID: 7, Type: registry.Int}} {
					numbers := column == registry.IDKey || column == 5001 || column == 9
					if a != rowset.Count && (out.Type == registry.Int && (a == rowset.Mean || !numbers) || !numbers && column != 1001 && column != 1002) {
						continue
					}
					c, nulls, err := rowset.Aggregate(nil, nil, in, of, n, a, column, out)
					require.NoError(t, err)
					require.Equal(t, out.Type, c.Type())
					none := 0
					for group := range values {
						want, got := plainAggregate(a, values[group], out.Type), c.Any(group)
						if want == nil {
							none++
						}
						if f, ok := want.(float64); ok && got != nil {
							require.Equal(t, math.Float64bits(f), math.Float64bits(got.(float64)), "seed %d method %d column %d", seed, a, column)
							continue
						}
						require.Equal(t, want, got, "seed %d method %d column %d group %d", seed, a, column, group)
					}
					require.Equal(t, none, nulls)
				}
			}
		}
	}
}

// Rows are in one group if and only if they have the same values in all columns, none of them null.
func TestGroupsBySeveralColumns(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 27))
		in := rowsettest.RowSet(rng, 200)
		by := []registry.KeyID{3001, 5101, 5001}[:2+rng.IntN(2)]
		of, n, err := rowset.Groups(nil, nil, in, by...)
		require.NoError(t, err)
		known := map[string]int32{}
		next := int32(0)
		for pos := range in.Len() {
			text := ""
			for _, key := range by {
				if c := in.Batch.Column(key); c != nil && c.Any(int(in.Row(pos))) != nil {
					text += fmt.Sprintf("%q ", fmt.Sprint(c.Any(int(in.Row(pos)))))
				} else {
					text = fmt.Sprintf("null at %d", pos)
					break
				}
			}
			want, seen := known[text]
			if !seen {
				want = next
				known[text] = want
				next++
			}
			require.Equal(t, want, of[pos], "seed %d position %d", seed, pos)
		}
		require.Equal(t, int(next), n)
	}
	of, n, err := rowset.Groups(nil, nil, rowset.RowSet{Batch: new(rowset.Batch)})
	require.NoError(t, err)
	assert.Empty(t, of)
	assert.Zero(t, n, "a group needs rows")
}

// Each active row gets the value of its group. Every other row gets a null.
func TestScatterGroups(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 28))
		in := rowsettest.RowSet(rng, 200)
		of, n, err := rowset.Groups(nil, nil, in, 3001)
		require.NoError(t, err)
		values := rowsettest.Batch(rng, n)
		out := rowset.ScatterGroups(nil, in, of, n, values.Columns()...)
		require.NoError(t, out.Validate())
		active := rowset.NewBitmap(in.Batch.Len())
		for pos := range in.Len() {
			active.Set(int(in.Row(pos)))
			for _, c := range values.Columns() {
				require.Equal(t, c.Any(int(of[pos])), out.Batch.Column(c.KeyID()).Any(int(in.Row(pos))))
			}
		}
		for row := range in.Batch.Len() {
			for _, c := range values.Columns() {
				require.True(t, active.Get(row) || out.Batch.Column(c.KeyID()).Any(row) == nil)
			}
		}
	}
	assert.Panics(t, func() {
		rowset.ScatterGroups(nil, rowset.Dense(rowset.NewBatch([]int64{1, 2})), []int32{0, 0}, 1, &rowset.FloatColumn{Key: 1001, Values: make([]float64, 2)})
	})
}

// BenchmarkAggregate adds up 10,000 and a million doubles of a hundred groups. It compares with
// a plain loop over the same slices.
func BenchmarkAggregate(b *testing.B) {
	for _, rows := range []int{10_000, 1_000_000} {
		rng := rand.New(rand.NewPCG(1, 2))
		of, values := make([]int32, rows), make([]float64, rows)
		for i := range of {
			of[i], values[i] = int32(rng.IntN(100)), rng.NormFloat64()
		}
		in := rowset.Dense(rowset.NewBatch(make([]int64, rows), &rowset.FloatColumn{Key: 1001, Values: values}))
		for name, run := range map[string]func(){
			"plain loop": func() {
				sums, counts := make([]float64, 100), make([]int64, 100)
				for i, group := range of {
					sums[group] += values[i]
					counts[group]++
				}
			},
			"sum": func() {
				_, _, _ = rowset.Aggregate(nil, nil, in, of, 100, rowset.Sum, 1001, &registry.Key{ID: 7, Type: registry.Float})
			},
			"max": func() {
				_, _, _ = rowset.Aggregate(nil, nil, in, of, 100, rowset.Max, 1001, &registry.Key{ID: 7, Type: registry.Float})
			},
		} {
			b.Run(fmt.Sprintf("%s/rows=%d", name, rows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			})
		}
	}
}
