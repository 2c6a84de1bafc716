package rowset

// With returns a batch with columns added. A new column replaces an old one of the same key, whatever its type. The
// batch shares all other columns with b. Each column has b.Len() rows and a key of its own; they may come in any
// order. They belong to the batch from now on.
func With(b *Batch, columns ...Column) *Batch {
	kept := 0
	for _, c := range b.columns {
		if !hasKey(columns, c) {
			kept++
		}
	}
	out := newBatch(kept + len(columns))
	out.IDs = b.IDs
	for _, c := range b.columns {
		if !hasKey(columns, c) {
			out.columns = append(out.columns, c)
		}
	}
	out.columns = append(out.columns, columns...)
	sortColumns(out.columns)
	return out
}

// hasKey reports whether one of the columns has the key of c.
func hasKey(columns []Column, c Column) bool {
	for _, other := range columns {
		if other.KeyID() == c.KeyID() {
			return true
		}
	}
	return false
}
