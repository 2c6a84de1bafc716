package rowset_test

import (
	"cmp"
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

// sortedRows spells out the rule: it returns the batch rows in order.
func sortedRows(rs rowset.RowSet, key registry.KeyID, desc bool) []int32 {
	rows := []int32{}
	for i := range rs.N {
		rows = append(rows, rs.Row(i))
	}
	isNull := func(int32) bool { return false }
	compare := func(a, b int32) int { return cmp.Compare(rs.Batch.IDs[a], rs.Batch.IDs[b]) }
	if c := rs.Batch.Float(key); c != nil {
		isNull = func(r int32) bool { return !c.Valid.Get(int(r)) }
		compare = func(a, b int32) int { return cmp.Compare(c.Values[a], c.Values[b]) }
	} else if c := rs.Batch.String(key); c != nil {
		isNull = func(r int32) bool { return c.Places[r] == rowset.NullCode }
		compare = func(a, b int32) int { return cmp.Compare(c.Dict.Values[c.Places[a]], c.Dict.Values[c.Places[b]]) }
	} else if c := rs.Batch.Int(key); c != nil {
		isNull = func(r int32) bool { return !c.Valid.Get(int(r)) }
		compare = func(a, b int32) int { return cmp.Compare(c.Values[a], c.Values[b]) }
	} else if c := rs.Batch.Bool(key); c != nil {
		isNull = func(r int32) bool { return !c.Valid.Get(int(r)) }
		compare = func(a, b int32) int {
			return cmp.Compare(strconv.FormatBool(c.Values.Get(int(a))), strconv.FormatBool(c.Values.Get(int(b))))
		}
	}
	slices.SortStableFunc(rows, func(a, b int32) int {
		switch {
		case isNull(a) && isNull(b):
			return 0
		case isNull(a):
			return 1
		case isNull(b):
			return -1
		case desc:
			return compare(b, a)
		}
		return compare(a, b)
	})
	return rows
}

// sorted returns rows from a sort that nothing stops.
func sorted(rs rowset.RowSet, key registry.KeyID, desc bool) rowset.RowSet {
	out, err := rowset.Sort(nil, nil, rs, key, desc)
	if err != nil {
		panic(err)
	}
	return out
}

// sortable returns the keys that rows can be sorted by.
func sortable(rs rowset.RowSet) []registry.KeyID {
	return slices.DeleteFunc(append(rs.Batch.AppendKeys(nil), registry.IDKey), func(key registry.KeyID) bool { return rs.Batch.Set(key) != nil || rs.Batch.Vector(key) != nil })
}

func rowsOf(rs rowset.RowSet) []int32 {
	rows := []int32{}
	for i := range rs.N {
		rows = append(rows, rs.Row(i))
	}
	return rows
}

func TestSortAgreesWithTheRule(t *testing.T) {
	forRandom(t, 600, func(t *testing.T, rng *rand.Rand) {
		in := rowsettest.RowSet(rng, 3000)
		before := slices.Clone(in.Rows)
		keys := sortable(in)
		key, desc := keys[rng.IntN(len(keys))], rng.IntN(2) == 0
		out := sorted(in, key, desc)
		require.NoError(t, out.Validate())
		require.Equal(t, sortedRows(in, key, desc), rowsOf(out), "by %d, desc %v", key, desc)
		assert.Same(t, in.Batch, out.Batch)
		assert.Equal(t, before, in.Rows, "the input stays")
	})
}

func TestSortOrder(t *testing.T) {
	nan, inf, null := math.NaN(), math.Inf(1), math.MinInt8+0.25
	floats := func(values ...float64) *rowset.Batch {
		c := rowset.FloatColumn{Key: 2001, Values: values, Valid: rowset.NewBitmap(len(values))}
		for i, v := range values {
			if v != null {
				c.Valid.Set(i)
			}
		}
		return rowset.NewBatch(make([]int64, len(values)), &c)
	}
	strings := func(values ...string) *rowset.Batch {
		return rowset.NewBatch(make([]int64, len(values)), stringColumn(3001, values...))
	}
	const big = int64(1) << 53
	for _, c := range []struct {
		name      string
		batch     *rowset.Batch
		key       registry.KeyID
		asc, desc []int32
	}{
		{"floats", floats(2, -1, inf, -inf, 0.5), 2001, []int32{3, 1, 4, 0, 2}, []int32{2, 0, 4, 1, 3}},
		{"equal floats keep their order", floats(1, 0, 1, 0), 2001, []int32{1, 3, 0, 2}, []int32{0, 2, 1, 3}},
		{"negative zero equals zero", floats(0, math.Copysign(0, -1), -1, 0), 2001, []int32{2, 0, 1, 3}, []int32{0, 1, 3, 2}},
		{"nulls last both ways", floats(null, 1, null, 2), 2001, []int32{1, 3, 0, 2}, []int32{3, 1, 0, 2}},
		{"nulls only", floats(null, null), 2001, []int32{0, 1}, []int32{0, 1}},
		{"not a number is greatest", floats(nan, inf, -nan, 1), 2001, []int32{3, 1, 0, 2}, []int32{0, 2, 1, 3}},
		{"strings by bytes", strings("b", "B", "ä", "a", "", "aa"), 3001, []int32{4, 1, 3, 5, 0, 2}, []int32{2, 0, 5, 3, 1, 4}},
		{"null strings last", strings("-", "b", "-", "a"), 3001, []int32{3, 1, 0, 2}, []int32{1, 3, 0, 2}},
		{
			"ids as integers", rowset.NewBatch([]int64{big + 1, big, math.MinInt64, math.MaxInt64, -1}),
			registry.IDKey, []int32{2, 4, 1, 0, 3}, []int32{3, 0, 1, 4, 2},
		},
		{
			"ints exactly", rowset.NewBatch(make([]int64, 5), &rowset.IntColumn{Key: 5001, Values: []int64{big + 1, 0, big, math.MinInt64, math.MaxInt64}, Valid: rowset.Bitmap{0b11101}}),
			5001, []int32{3, 2, 0, 4, 1}, []int32{4, 0, 2, 3, 1},
		},
		{
			"false before true", rowset.NewBatch(make([]int64, 4), &rowset.BoolColumn{Key: 5101, Values: rowset.Bitmap{0b0111}, Valid: rowset.Bitmap{0b1101}}),
			5101, []int32{3, 0, 2, 1}, []int32{0, 2, 3, 1},
		},
		{"no such column", floats(2, 1), 1001, []int32{0, 1}, []int32{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.asc, rowsOf(sorted(rowset.Dense(c.batch), c.key, false)), "ascending")
			assert.Equal(t, c.desc, rowsOf(sorted(rowset.Dense(c.batch), c.key, true)), "descending")
		})
	}
}

func TestSetsHaveNoOrder(t *testing.T) {
	for _, n := range []int{2, 1000} {
		b := rowset.NewSetBuilder(5201, n)
		for range n {
			b.Append()
		}
		in := rowset.Dense(rowset.NewBatch(make([]int64, n), b.Column()))
		_, err := rowset.Sort(nil, nil, in, 5201, false)
		assert.ErrorIs(t, err, rowset.ErrNoOrder)
		_, err = rowset.TopUntil(nil, nil, in, 5201, false, 1)
		assert.ErrorIs(t, err, rowset.ErrNoOrder)
	}
}

func TestSortOfSortedRowsCopiesNothing(t *testing.T) {
	b := rowset.NewBatch([]int64{4, 3, 2, 1})
	in := rowset.RowSet{Batch: b, Rows: []int32{3, 2, 1, 0}, N: 4}
	out := sorted(in, registry.IDKey, false)
	assert.Same(t, &in.Rows[0], &out.Rows[0])
	assert.Nil(t, sorted(rowset.Dense(b), registry.IDKey, true).Rows)
}

// BenchmarkSort compares with slices.Sort on the bare floats, in the same run.
func BenchmarkSort(b *testing.B) {
	for _, n := range []int{8, 100, 1000, 1_000_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		values, names := make([]float64, n), make([]string, n)
		for i := range values {
			values[i], names[i] = rng.Float64(), "C"+strconv.Itoa(rng.IntN(200))
		}
		in := rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 2001, Values: values}, stringColumn(3001, names...)))
		at := "rows=" + strconv.Itoa(n)
		b.Run(at+"/slices.Sort", func(b *testing.B) {
			b.ReportAllocs()
			bare := make([]float64, n)
			for b.Loop() {
				copy(bare, values)
				slices.Sort(bare)
			}
		})
		b.Run(at+"/float", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = rowset.Sort(nil, nil, in, 2001, false)
			}
		})
		b.Run(at+"/string", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = rowset.Sort(nil, nil, in, 3001, true)
			}
		})
	}
}

// BenchmarkSortSmall finds the sizes at which one method should hand over to the next.
func BenchmarkSortSmall(b *testing.B) {
	for _, n := range []int{16, 24, 32, 48, 128, 256, 320, 400, 512} {
		rng := rand.New(rand.NewPCG(1, 1))
		values := make([]float64, n)
		for i := range values {
			values[i] = rng.Float64()
		}
		in := rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 2001, Values: values}))
		b.Run("rows="+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				_, _ = rowset.Sort(nil, nil, in, 2001, false)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
		})
	}
}

func TestSortOfAwkwardKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const n = 5000
	for name, id := range map[string]func(i int) int64{
		"all equal":                   func(int) int64 { return 7 },
		"two values":                  func(i int) int64 { return int64(i * 7919 % 2) },
		"descending":                  func(i int) int64 { return -int64(i) },
		"one outlier":                 func(i int) int64 { return int64(i*7919%n) + int64(1/(i+1))<<62 },
		"one bit further every time":  func(i int) int64 { return 1 << (i * 7919 % 63) },
		"a bit in every digit":        func(i int) int64 { return rng.Int64() & 0x1111_1111_1111_1111 },
		"close together, far apart":   func(i int) int64 { return int64(i%2)<<62 + rng.Int64N(40) },
		"evenly spread over all bits": func(i int) int64 { return int64(rng.Uint64()) },
	} {
		t.Run(name, func(t *testing.T) {
			ids := make([]int64, n)
			for i := range ids {
				ids[i] = id(i)
			}
			in := rowset.Dense(rowset.NewBatch(ids))
			for _, desc := range []bool{false, true} {
				assert.Equal(t, sortedRows(in, registry.IDKey, desc), rowsOf(sorted(in, registry.IDKey, desc)))
			}
		})
	}
}
