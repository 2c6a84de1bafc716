package rowset

import "slices"

// Concat returns a dense RowSet of the active rows of all sides: those of the first in their order, then those of the
// second, and so on. It has the columns of every side, even if a side has no rows. A column is null for the rows of a
// side that lacks it. Sides may be the same RowSet, or the zero RowSet. If sides have a key in two types, the type of
// the first side counts, and sides with another type count as without the column. The check of results keeps tasks
// from that. The slices of the result are m's.
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
