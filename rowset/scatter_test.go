package rowset_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A builder's column has its rows, and its scattered column has them at the active rows.
func TestBuildersAndScatterAgreeWithPlainRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		n := random.IntN(200)
		batch := rowset.NewBatch(make([]int64, n), nil, nil)
		for _, key := range []registry.KeyID{1001, 4001} { // on both sides of the new one
			batch = rowset.WithFloat(batch, key, make([]float64, n), nil)
		}
		in := rowset.Dense(batch)
		switch round % 3 {
		case 1:
			in = rowset.Take(in, random.IntN(n+1))
		case 2:
			rows := make([]int32, 0, n)
			for _, row := range random.Perm(n)[:random.IntN(n+1)] {
				rows = append(rows, int32(row))
			}
			in = rowset.RowSet{Batch: batch, Rows: rows, N: len(rows)}
		}
		floats, strings := rowset.NewFloatBuilder(2500, in.N), rowset.NewStringBuilder(3001, in.N)
		wantFloats, wantStrings := map[int]float64{}, map[int]string{}
		for i := range in.N {
			if random.IntN(8) == 0 {
				floats.AppendNull()
				strings.AppendNull()
				continue
			}
			v, s := random.Float64(), fmt.Sprint(random.IntN(20))
			floats.Append(v)
			strings.Append([]byte(s))
			wantFloats[int(in.Row(i))], wantStrings[int(in.Row(i))] = v, s
		}
		require.Equal(t, in.N, floats.Len())
		f, s := floats.Column(), strings.Column()
		assert.Equal(t, len(wantFloats) == in.N, f.Valid == nil, "validity only where a row is null")
		for range 2 { // added, then replaced
			out := rowset.ScatterStrings(rowset.ScatterFloats(in, f), s)
			require.NoError(t, out.Validate())
			require.Equal(t, in.Rows, out.Rows)
			require.Equal(t, in.N, out.N)
			require.Len(t, out.Batch.Floats, len(batch.Floats)+1)
			require.Len(t, out.Batch.Strings, 1)
			gotFloats, gotStrings := map[int]float64{}, map[int]string{}
			for row := range n {
				if c := out.Batch.Float(2500); c.Valid.Get(row) {
					gotFloats[row] = c.Values[row]
				}
				if v, ok := out.Batch.String(3001).Value(row); ok {
					gotStrings[row] = v
				}
			}
			require.Equal(t, wantFloats, gotFloats)
			require.Equal(t, wantStrings, gotStrings)
			in.Batch = out.Batch
		}
	}
}

func TestScatterRefusesAnotherNumberOfValues(t *testing.T) {
	in := rowset.Take(rowset.Dense(&rowset.Batch{IDs: []int64{1, 2, 3}}), 2)
	assert.PanicsWithValue(t, "rowset: column 2001 has 3 values for 2 active rows", func() {
		rowset.ScatterFloats(in, rowset.FloatColumn{Key: 2001, Values: make([]float64, 3)})
	})
	assert.PanicsWithValue(t, "rowset: column 3001 has 1 values for 2 active rows", func() {
		rowset.ScatterStrings(in, rowset.StringColumn{Key: 3001, Codes: make([]int32, 1)})
	})
}

// The first two rows are active, in reverse order. The third gets no value.
func ExampleScatterFloats() {
	in := rowset.RowSet{Batch: &rowset.Batch{IDs: []int64{10, 20, 30}}, Rows: []int32{1, 0}, N: 2}
	scores := rowset.NewFloatBuilder(2001, in.Len())
	for i := range in.Len() {
		scores.Append(float64(in.ID(i)) / 100)
	}
	out := rowset.ScatterFloats(in, scores.Column())
	column := out.Batch.Float(2001)
	fmt.Println(column.Values[:2], column.Valid.Get(2))
	// Output: [0.1 0.2] false
}
