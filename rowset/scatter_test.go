package rowset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/rowset"
)

func TestScatterRefusesAnotherNumberOfValues(t *testing.T) {
	in := rowset.Take(rowset.Dense(&rowset.Batch{IDs: []int64{1, 2, 3}}), 2)
	assert.PanicsWithError(t, "rowset: float column 2001 has 3 values for 2 rows", func() {
		rowset.Scatter(nil, in, &rowset.FloatColumn{Key: 2001, Values: make([]float64, 3)})
	})
	assert.PanicsWithError(t, "rowset: string column 3001 has 1 values for 2 rows", func() {
		rowset.Scatter(nil, in, &rowset.StringColumn{Key: 3001, Places: make([]int32, 1), Dict: new(rowset.Dict)})
	})
}

// The first two rows are active, in reverse order. The third gets no value.
func ExampleScatter() {
	in := rowset.RowSet{Batch: &rowset.Batch{IDs: []int64{10, 20, 30}}, Rows: []int32{1, 0}, N: 2}
	scores := rowset.NewFloatBuilder(2001, in.Len())
	for i := range in.Len() {
		scores.Append(float64(in.ID(i)) / 100)
	}
	out := rowset.Scatter(nil, in, scores.Column())
	column := out.Batch.Float(2001)
	fmt.Println(column.Values[:2], column.Valid.Get(2))
	// Output: [0.1 0.2] false
}
