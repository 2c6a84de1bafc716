package rowset

import "slices"

// Scatter returns the active rows of in, over a batch with columns added, or replaced as With does. Each
// column comes with one value per active row, in their order; every other row of the batch gets a null.
// It panics on another number of values. The result may take over the columns' memory, and shares all
// other columns with in. Its new slices are m's.
func Scatter(m *Memory, in RowSet, columns ...Column) RowSet {
	for _, c := range columns {
		if err := c.check(in.N); err != nil {
			panic(err)
		}
	}
	if in.Rows != nil || in.N < in.Batch.Len() {
		columns = spread(m, in, columns)
	}
	in.Batch = With(in.Batch, columns...)
	return in
}

// spread returns the columns of in's active rows as columns of all rows of in's batch.
func spread(m *Memory, in RowSet, columns []Column) []Column {
	n := in.Batch.Len()
	at := m.Rows(n) // the position of each row of the batch among the active ones, or -1
	for row := range at {
		at[row] = -1
	}
	for i := range in.N {
		at[in.Row(i)] = int32(i)
	}
	active := NewBatch(nil, columns...)
	a := assembly{sides: []RowSet{{Batch: active, Rows: at, N: n}}, n: n, holes: slices.Contains(at, -1)}
	all := newBatch(len(columns))
	a.columns(m, all, active.columns, nil)
	return all.columns
}
