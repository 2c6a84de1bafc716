package rowset

import "slices"

// Scatter returns the active rows of in, over a batch with columns added, or replaced as With does. Each column comes
// with one value per active row, in their order; every other row of the batch gets a null. Scatter panics if a column
// has another number of values. The result may use the columns' memory, and shares all other columns with in. Its new
// slices are m's.
func Scatter(m *Memory, in RowSet, columns ...Column) RowSet {
	checkLengths(columns, in.N)
	if in.Rows != nil || in.N < in.Batch.Len() {
		columns = spread(m, in, nil, columns)
	}
	in.Batch = With(in.Batch, columns...)
	return in
}

// ScatterGroups is Scatter for columns with one value for each of n groups: each active row gets that of its group, which of has by
// position, as Groups returns it.
func ScatterGroups(m *Memory, in RowSet, of []int32, n int, columns ...Column) RowSet {
	checkLengths(columns, n)
	in.Batch = With(in.Batch, spread(m, in, of, columns)...)
	return in
}

// checkLengths panics if a column has another number of values.
func checkLengths(columns []Column, values int) {
	for _, c := range columns {
		if err := c.check(values); err != nil {
			panic(err)
		}
	}
}

// spread returns columns of all rows of in's batch. The active row at position i has value of[i] of the columns, or value i if of is nil.
func spread(m *Memory, in RowSet, of []int32, columns []Column) []Column {
	n := in.Batch.Len()
	at := m.Rows(n) // the value of each row of the batch, or -1
	for row := range at {
		at[row] = -1
	}
	for i := range in.N {
		if of != nil {
			at[in.Row(i)] = of[i]
		} else {
			at[in.Row(i)] = int32(i)
		}
	}
	values := NewBatch(nil, columns...)
	a := assembly{sides: []RowSet{{Batch: values, Rows: at, N: n}}, n: n, holes: slices.Contains(at, -1)}
	all := newBatch(len(columns))
	a.columns(m, all, values.columns, nil)
	return all.columns
}
