package rowset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rankd/rankd/registry"
)

// ScatterFloats returns the active rows of in, over a batch with column added or replaced. The
// column comes with one value per active row, in their order; every other row of the batch
// gets a null. It panics on another number of values. The result takes over the column's
// memory and shares all other columns with in.
func ScatterFloats(in RowSet, column FloatColumn) RowSet {
	checkScatter(in, column.Key, len(column.Values))
	if !in.isDense() {
		n := in.Batch.Len()
		values, valid := make([]float64, n), NewBitmap(n)
		for i := range in.N {
			if column.Valid.Get(i) {
				row := int(in.Row(i))
				values[row] = column.Values[i]
				valid.Set(row)
			}
		}
		if in.N == n && column.Valid == nil {
			valid = nil
		}
		column.Values, column.Valid = values, valid
	}
	in.Batch = WithFloat(in.Batch, column.Key, column.Values, column.Valid)
	return in
}

// ScatterStrings is ScatterFloats for a string column.
func ScatterStrings(in RowSet, column StringColumn) RowSet {
	checkScatter(in, column.Key, len(column.Codes))
	if !in.isDense() {
		codes := slices.Repeat([]int32{NullCode}, in.Batch.Len())
		for i := range in.N {
			codes[in.Row(i)] = column.Codes[i]
		}
		column.Codes = codes
	}
	b := &Batch{IDs: in.Batch.IDs, Floats: in.Batch.Floats}
	at, found := slices.BinarySearchFunc(in.Batch.Strings, column.Key, func(c StringColumn, k registry.KeyID) int {
		return cmp.Compare(c.Key, k)
	})
	rest := in.Batch.Strings[at:]
	if found {
		rest = rest[1:]
	}
	b.Strings = slices.Concat(in.Batch.Strings[:at], []StringColumn{column}, rest)
	in.Batch = b
	return in
}

// isDense reports whether the active rows are all rows of the batch, in its order.
func (r RowSet) isDense() bool { return r.Rows == nil && r.N == r.Batch.Len() }

func checkScatter(in RowSet, key registry.KeyID, values int) {
	if values != in.N {
		panic(fmt.Sprintf("rowset: column %d has %d values for %d active rows", key, values, in.N))
	}
}
