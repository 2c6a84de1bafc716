package rowset

// Distinct returns the distinct values of a list, in the order in which they first occur. For each position of the
// list, at has the index of its value. at is nil if all values differ: position i then has index i. The slices are
// m's.
func Distinct(m *Memory, values []int64) (distinct []int64, at []int32) {
	distinct, at = m.IDs(len(values)), m.Rows(len(values))
	table := newKeyTable(m, distinct, len(values))
	n := 0
	for i, value := range values {
		index, slot := table.find(value)
		if index < 0 {
			index = int32(n)
			distinct[n] = value
			table.put(slot, index)
			n++
		}
		at[i] = index
	}
	if n == len(values) {
		return distinct, nil
	}
	return distinct[:n], at
}
