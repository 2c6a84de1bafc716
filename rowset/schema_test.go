package rowset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func TestSchemaDelta(t *testing.T) {
	type keys = []registry.KeyID
	// of returns a row set with one row and a column for each key: floats below 3000, strings
	// from there on.
	of := func(list ...registry.KeyID) rowset.RowSet {
		var columns []rowset.Column
		for _, key := range list {
			if key < 3000 {
				columns = append(columns, &rowset.FloatColumn{Key: key, Values: make([]float64, 1)})
			} else {
				columns = append(columns, stringColumn(key, "x"))
			}
		}
		return rowset.Dense(rowset.NewBatch([]int64{1}, columns...))
	}
	type sets = []rowset.RowSet
	for _, c := range []struct {
		name         string
		inputs, refs sets
		out          rowset.RowSet
		want         rowset.SchemaDelta
	}{
		{"Source", nil, nil, of(), rowset.SchemaDelta{}},
		{"ColumnAdded", sets{of(2001)}, nil, of(2001, 3001),
			rowset.SchemaDelta{In: keys{2001}, Out: keys{2001, 3001}, New: keys{3001}}},
		{"ColumnRemoved", sets{of(2001, 3001)}, nil, of(3001),
			rowset.SchemaDelta{In: keys{2001, 3001}, Out: keys{3001}, Removed: keys{2001}}},
		{"UnionOfInputsAndRefs", sets{of(3001, 2002), of(2001)}, sets{of(2002, 1001)}, of(2001, 2002),
			rowset.SchemaDelta{In: keys{1001, 2001, 2002, 3001}, Out: keys{2001, 2002}, Removed: keys{1001, 3001}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.NodeID = "n"
			assert.Equal(t, c.want, rowset.NewSchemaDelta("n", c.inputs, c.refs, c.out))
		})
	}
}
