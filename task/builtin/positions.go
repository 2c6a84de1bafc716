package builtin

import "github.com/rankd/rankd/rowset"

// byBatchRow turns a list by position into one by batch row. Rows that are not active get −1.
func byBatchRow(m *rowset.Memory, in rowset.RowSet, list []int32) []int32 {
	if in.Rows == nil && in.Len() == in.Batch.Len() {
		return list
	}
	byRow := m.Rows(in.Batch.Len())
	fill(byRow, -1)
	for pos, value := range list {
		byRow[in.Row(pos)] = value
	}
	return byRow
}

// positionIn returns the position of a batch row among the active rows, or -1.
func positionIn(rows rowset.RowSet, row int32) int {
	for i := range rows.Len() {
		if rows.Row(i) == row {
			return i
		}
	}
	return -1
}
