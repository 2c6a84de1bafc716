package rowset

// Where returns the active rows whose bit is set, over the same batch, in their order. keep has one bit per
// position in the active list; bits past the last one count as clear. The list of the result is m's.
func Where(m *Memory, rs RowSet, keep Bitmap) RowSet {
	n := keep.Count(rs.N)
	if n == rs.N {
		return rs
	}
	rows := m.Rows(n)[:0]
	for pos := range rs.N {
		if keep.Get(pos) {
			rows = append(rows, rs.Row(pos))
		}
	}
	return RowSet{Batch: rs.Batch, Rows: rows, N: n}
}
