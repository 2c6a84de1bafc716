package rowset

// RowSet is a batch and its active rows, in order. Immutable once built; any
// goroutine. The zero RowSet has no batch and no rows.
type RowSet struct {
	Batch *Batch
	// Rows lists the active rows in order. An ascending list is a selection vector,
	// any other a permutation. Nil means the first N rows of the batch, in batch order.
	// Invariant: Rows == nil || len(Rows) == N; 0 <= Rows[i] < Batch.Len(); the rows
	// are distinct.
	Rows []int32
	N    int // number of active rows
}

// Dense returns the RowSet of all rows of b in their own order.
func Dense(b *Batch) RowSet { return RowSet{Batch: b, N: len(b.IDs)} }

// Len returns the number of active rows.
func (r RowSet) Len() int { return r.N }

// Row returns the batch row at position i of the active list.
func (r RowSet) Row(i int) int32 {
	if r.Rows == nil {
		return int32(i)
	}
	return r.Rows[i]
}

// ID returns the id at position i of the active list.
func (r RowSet) ID(i int) int64 { return r.Batch.IDs[r.Row(i)] }

// Skip returns the active rows without the first n, or none if there are no more. A negative n counts as 0. The list of rows is
// m's, if in has none.
func Skip(m *Memory, in RowSet, n int) RowSet {
	n = min(max(n, 0), in.N)
	if n == 0 {
		return in
	}
	out := RowSet{Batch: in.Batch, N: in.N - n}
	if in.Rows != nil {
		out.Rows = in.Rows[n:in.N]
		return out
	}
	out.Rows = m.Rows(out.N)
	for i := range out.Rows {
		out.Rows[i] = int32(n + i)
	}
	return out
}

// Take returns the first n active rows, or all if there are fewer. A negative n counts
// as 0. Take copies nothing.
func Take(rs RowSet, n int) RowSet {
	if n >= rs.N {
		return rs
	}
	n = max(n, 0)
	if rs.Rows != nil {
		rs.Rows = rs.Rows[:n:n]
	}
	rs.N = n
	return rs
}
