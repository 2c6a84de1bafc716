package rowset

import "slices"

// Concat returns a dense RowSet of the active rows of all sides: those of the first in their order, then
// those of the second, and so on. It has the columns of every side, even if a side has no rows. A column
// is null for the rows of a side that lacks it. Sides may be the same RowSet, or the zero RowSet. Where
// sides have a key of two types, the type of the first counts, and the others lack it; the check of results
// keeps tasks from that. The slices of the result are m's.
func Concat(m *Memory, sides ...RowSet) RowSet {
	if slices.ContainsFunc(sides, RowSet.isZero) {
		sides = slices.DeleteFunc(slices.Clone(sides), RowSet.isZero)
	}
	a := assembly{sides: sides}
	for i := range sides {
		a.n += sides[i].N
	}
	return Dense(a.batch(m))
}

func (r RowSet) isZero() bool { return r.Batch == nil }
