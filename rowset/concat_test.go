package rowset_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func TestConcatAgreesWithPlainRows(t *testing.T) {
	forRandom(t, 400, func(t *testing.T, rng *rand.Rand) {
		a, b := rowsettest.RowSet(rng, 400), rowsettest.RowSet(rng, 400)
		switch rng.IntN(4) {
		case 0:
			b = rowsettest.Rows(rng, a.Batch) // as of two branches from one source
		case 1:
			b = a
		}
		out := rowset.Concat(nil, a, b)
		require.NoError(t, out.Validate())
		assert.Nil(t, out.Rows)
		assert.Equal(t, out.Batch.Len(), out.N)
		assert.Equal(t, append(rowsettest.PlainRows(a), rowsettest.PlainRows(b)...), rowsettest.PlainRows(out))

		keys := map[registry.KeyID]bool{}
		for _, key := range append(a.Batch.AppendKeys(nil), b.Batch.AppendKeys(nil)...) {
			keys[key] = true
		}
		assert.Len(t, out.Batch.AppendKeys(nil), len(keys))
		for key := range keys {
			assert.True(t, out.Batch.Has(key))
		}
	})
}

func TestConcatOfNothing(t *testing.T) {
	one := rowset.Dense(rowset.NewBatch([]int64{5}, stringColumn(3001, "DE")))
	for name, c := range map[string]struct {
		a, b rowset.RowSet
		want []rowsettest.Row
	}{
		"left":  {rowset.RowSet{}, one, []rowsettest.Row{{ID: 5, Fields: `3001="DE";`}}},
		"right": {one, rowset.RowSet{}, []rowsettest.Row{{ID: 5, Fields: `3001="DE";`}}},
		"both":  {rowset.RowSet{}, rowset.RowSet{}, []rowsettest.Row{}},
	} {
		t.Run(name, func(t *testing.T) {
			out := rowset.Concat(nil, c.a, c.b)
			require.NoError(t, out.Validate())
			assert.Equal(t, c.want, rowsettest.PlainRows(out))
		})
	}
}

func TestConcatKeepsColumnsOfASideWithoutRows(t *testing.T) {
	columns := rowset.NewBatch([]int64{1}, &rowset.FloatColumn{Key: 1001, Values: []float64{1}}, stringColumn(3001, "DE"))
	out := rowset.Concat(nil, rowset.Take(rowset.Dense(columns), 0), rowset.Dense(rowset.NewBatch([]int64{2})))
	require.NoError(t, out.Validate())
	assert.Equal(t, []registry.KeyID{1001, 3001}, out.Batch.AppendKeys(nil))
	assert.Equal(t, []rowsettest.Row{{ID: 2}}, rowsettest.PlainRows(out))
}

func TestConcatHasNoValidityIfNothingIsNull(t *testing.T) {
	b := rowset.NewBatch([]int64{1, 2}, &rowset.FloatColumn{Key: 1001, Values: []float64{1, 2}})
	assert.Nil(t, rowset.Concat(nil, rowset.Dense(b), rowset.Dense(b)).Batch.Float(1001).Valid)
}

func TestConcatSharesADictionaryThatFits(t *testing.T) {
	a := stringColumn(3001, "DE", "US", "FR")
	for name, b := range map[string]*rowset.StringColumn{
		"the same":         a,
		"one with no news": stringColumn(3001, "FR", "DE"),
	} {
		t.Run(name, func(t *testing.T) {
			out := rowset.Concat(nil,
				rowset.Dense(rowset.NewBatch(make([]int64, 3), a)),
				rowset.Dense(rowset.NewBatch(make([]int64, len(b.Places)), b)))
			assert.Same(t, a.Dict, out.Batch.String(3001).Dict)
		})
	}
}

func TestConcatLeavesUnusedStringsBehind(t *testing.T) {
	values := []string{}
	for i := range 1000 {
		values = append(values, strconv.Itoa(i))
	}
	b := rowset.NewBatch(make([]int64, 1000), stringColumn(3001, values...))
	few := rowset.RowSet{Batch: b, Rows: []int32{900, 17}, N: 2}
	out := rowset.Concat(nil, few, few)
	require.NoError(t, out.Validate())
	assert.Equal(t, []string{"900", "17", "900", "17"}, out.Batch.String(3001).Dict.Values)
	assert.Equal(t, append(rowsettest.PlainRows(few), rowsettest.PlainRows(few)...), rowsettest.PlainRows(out))
}

func BenchmarkConcat(b *testing.B) {
	for _, n := range []int{4, 1000, 100_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		countries := []string{}
		values := make([]float64, n)
		for i := range n {
			countries = append(countries, "C"+strconv.Itoa(rng.IntN(200)))
			values[i] = rng.Float64()
		}
		side := func() rowset.RowSet {
			return rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 2001, Values: values}, stringColumn(3001, countries...)))
		}
		left, right := side(), side()
		b.Run("rows="+strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rowset.Concat(nil, left, right)
			}
		})
	}
}
