package rowset_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// forRandom runs check with many random generators, and names a failing one.
func forRandom(t *testing.T, rounds int, check func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	for seed := range uint64(rounds) {
		if !t.Run("seed="+strconv.FormatUint(seed, 10), func(t *testing.T) {
			check(t, rand.New(rand.NewPCG(seed, 1)))
		}) {
			return
		}
	}
}

// stringColumn builds a column; "-" stands for null.
func stringColumn(key registry.KeyID, values ...string) *rowset.StringColumn {
	b := rowset.NewStringBuilder(key, len(values))
	for _, v := range values {
		if v == "-" {
			b.AppendNull()
		} else {
			b.Append([]byte(v))
		}
	}
	return b.Column().(*rowset.StringColumn)
}

func TestRandomRowSetsKeepTheInvariants(t *testing.T) {
	forRandom(t, 200, func(t *testing.T, rng *rand.Rand) {
		require.NoError(t, rowsettest.RowSet(rng, 3000).Validate())
	})
}

func TestTake(t *testing.T) {
	b := rowset.NewBatch([]int64{10, 11, 12, 13})
	for _, c := range []struct {
		name string
		in   rowset.RowSet
		n    int
		want []int64
	}{
		{"of all rows", rowset.Dense(b), 2, []int64{10, 11}},
		{"of a prefix", rowset.RowSet{Batch: b, N: 3}, 2, []int64{10, 11}},
		{"of a permutation", rowset.RowSet{Batch: b, Rows: []int32{3, 1, 0}, N: 3}, 2, []int64{13, 11}},
		{"as many as there are", rowset.Dense(b), 4, []int64{10, 11, 12, 13}},
		{"more than there are", rowset.RowSet{Batch: b, Rows: []int32{3}, N: 1}, math.MaxInt, []int64{13}},
		{"none", rowset.RowSet{Batch: b, Rows: []int32{3, 2}, N: 2}, 0, []int64{}},
		{"less than none", rowset.Dense(b), -5, []int64{}},
		{"of the zero row set", rowset.RowSet{}, 3, []int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := rowset.Take(c.in, c.n)
			require.NoError(t, out.Validate())
			got := []int64{}
			for i := range out.Len() {
				got = append(got, out.ID(i))
			}
			assert.Equal(t, c.want, got)
			assert.Same(t, c.in.Batch, out.Batch)
		})
	}
}

func TestTakeCannotGrowIntoTheRowsItDropped(t *testing.T) {
	in := rowset.RowSet{Batch: rowset.NewBatch([]int64{1, 2, 3}), Rows: []int32{2, 1, 0}, N: 3}
	out := rowset.Take(in, 1)
	_ = append(out.Rows, 7)
	assert.Equal(t, []int32{2, 1, 0}, in.Rows)
}

func TestNewBatchOrdersColumnsByKey(t *testing.T) {
	b := rowset.NewBatch([]int64{1}, &rowset.FloatColumn{Key: 2001, Values: []float64{1}}, &rowset.FloatColumn{Key: 1001, Values: []float64{2}}, stringColumn(3002, "a"), stringColumn(1500, "b"))
	require.NoError(t, b.Validate())
	assert.Equal(t, []registry.KeyID{1001, 1500, 2001, 3002}, b.AppendKeys(nil))
	assert.Equal(t, []registry.KeyID{9, 1001, 1500, 2001, 3002}, b.AppendKeys([]registry.KeyID{9}))
	assert.Equal(t, 2.0, b.Float(1001).Values[0])
	assert.Nil(t, b.Float(3002))
	assert.Nil(t, b.String(1001))
}

func TestHas(t *testing.T) {
	b := rowset.NewBatch(nil, &rowset.FloatColumn{Key: 1001}, stringColumn(3001))
	for key, want := range map[registry.KeyID]bool{0: false, registry.IDKey: true, 1001: true, 1002: false, 3001: true, 3002: false} {
		assert.Equal(t, want, b.Has(key), "key %d", key)
	}
}

func TestWithFloat(t *testing.T) {
	ids, country := []int64{1, 2}, stringColumn(3001, "DE", "-")
	base := rowset.NewBatch(ids,
		&rowset.FloatColumn{Key: 1001, Values: []float64{1, 2}},
		&rowset.FloatColumn{Key: 2001, Values: []float64{3, 4}},
		country,
	)
	for _, c := range []struct {
		name string
		key  registry.KeyID
		want []registry.KeyID
	}{
		{"first", 5, []registry.KeyID{5, 1001, 2001}},
		{"between", 1002, []registry.KeyID{1001, 1002, 2001}},
		{"last", 2002, []registry.KeyID{1001, 2001, 2002}},
		{"last, of the largest key", 1<<32 - 1, []registry.KeyID{1001, 2001, 1<<32 - 1}},
		{"replaced", 1001, []registry.KeyID{1001, 2001}},
	} {
		t.Run(c.name, func(t *testing.T) {
			values, valid := []float64{7, 8}, rowset.NewBitmapOf(2, 1)
			out := rowset.With(base, &rowset.FloatColumn{Key: c.key, Values: values, Valid: valid})
			require.NoError(t, out.Validate())
			keys := []registry.KeyID{}
			for _, c := range out.Columns() {
				if c.Type() == registry.Float {
					keys = append(keys, c.KeyID())
				}
			}
			assert.Equal(t, c.want, keys)
			assert.Equal(t, rowset.FloatColumn{Key: c.key, Values: values, Valid: valid}, *out.Float(c.key))
			assert.Same(t, &base.IDs[0], &out.IDs[0], "ids are shared")
			assert.Same(t, &base.Float(2001).Values[0], &out.Float(2001).Values[0], "other columns are shared")
			assert.Same(t, base.String(3001).Dict, out.String(3001).Dict, "string columns are shared")
			assert.Equal(t, []float64{1, 2}, base.Float(1001).Values, "the batch itself stays")
			assert.Equal(t, []registry.KeyID{1001, 2001, 3001}, base.AppendKeys(nil))
		})
	}
}

func TestStringBuilder(t *testing.T) {
	many := []string{}
	for i := range 100 {
		many = append(many, "v"+strconv.Itoa(i%37))
	}
	for _, values := range [][]string{{}, {"-"}, {"DE"}, {"DE", "-", "US", "DE", "", "-", ""}, many} {
		c := stringColumn(3001, values...)
		b := rowset.NewBatch(make([]int64, len(values)), c)
		require.NoError(t, b.Validate())
		for i, want := range values {
			got, ok := c.Value(i)
			assert.Equal(t, want != "-", ok)
			if ok {
				assert.Equal(t, want, got)
			}
		}
	}
}

func TestStringBuilderKeepsNoView(t *testing.T) {
	view := []byte("DE")
	b := rowset.NewStringBuilder(3001, 1)
	b.Append(view)
	copy(view, "XX")
	got, _ := b.Column().(*rowset.StringColumn).Value(0)
	assert.Equal(t, "DE", got)
}

func TestStringBuilderAllocatesForNewValuesOnly(t *testing.T) {
	for _, distinct := range []int{3, 100} {
		b := rowset.NewStringBuilder(3001, 1000)
		views := [][]byte{}
		for i := range distinct {
			views = append(views, []byte("value "+strconv.Itoa(i)))
			b.Append(views[i])
		}
		i := 0
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			b.Append(views[i%distinct])
			b.AppendNull()
			i++
		}), "%d distinct values", distinct)
	}
}
