package task

import (
	"math"
	"slices"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// An inputsCopy is what the inputs and node references of a run were before it. One goroutine.
type inputsCopy struct {
	sides  []rowset.RowSet // as they were given; the body may have changed what they refer to
	copies []rowset.RowSet
	inputs int // of sides; the rest are node references
}

// guardedRows is the longest batch that is copied: inputs of tests are shorter, but for those that measure.
const guardedRows = 100_000

// copyInputs copies what c gives to a body.
func copyInputs(c *Ctx) (k inputsCopy) {
	if len(c.Inputs)+len(c.Refs) == 0 {
		return k
	}
	k.sides, k.inputs = slices.Concat(c.Inputs, c.Refs), len(c.Inputs)
	for i, side := range k.sides {
		if side.Batch == nil || side.Batch.Len() > guardedRows || side.Len() > guardedRows {
			k.sides[i].Batch = nil // is not compared
		}
		k.copies = append(k.copies, copyRows(k.sides[i]))
	}
	return k
}

func copyRows(in rowset.RowSet) rowset.RowSet {
	if in.Batch == nil {
		return in
	}
	had := in.Batch.Columns()
	columns := rowset.Columns{
		Floats: slices.Clone(had.Floats), Strings: slices.Clone(had.Strings), Ints: slices.Clone(had.Ints),
		Bools: slices.Clone(had.Bools), Sets: slices.Clone(had.Sets),
	}
	for i := range columns.Floats {
		col := &columns.Floats[i]
		col.Values, col.Valid = slices.Clone(col.Values), slices.Clone(col.Valid)
	}
	for i := range columns.Ints {
		col := &columns.Ints[i]
		col.Values, col.Valid = slices.Clone(col.Values), slices.Clone(col.Valid)
	}
	for i := range columns.Bools {
		col := &columns.Bools[i]
		col.Values, col.Valid = slices.Clone(col.Values), slices.Clone(col.Valid)
	}
	for i := range columns.Strings {
		columns.Strings[i].Codes = slices.Clone(columns.Strings[i].Codes)
	}
	for i := range columns.Sets {
		columns.Sets[i].Codes = slices.Clone(columns.Sets[i].Codes)
	}
	return rowset.RowSet{Batch: rowset.NewBatch(slices.Clone(in.Batch.IDs), columns), Rows: slices.Clone(in.Rows), N: in.N}
}

// check returns an error of class ErrContract if the body has written into an input. Texts of dictionaries are not
// compared: Go's strings do not change.
func (k *inputsCopy) check(c *Ctx) error {
	for i, is := range k.sides {
		if is.Batch == nil {
			continue
		}
		side, number := "input", i
		if i >= k.inputs {
			side, number = "node reference", i-k.inputs
		}
		was := k.copies[i]
		if row := firstChange(was.Rows, is.Rows); row >= 0 {
			return contractf("the body of %s has written into %s %d: active row %d is row %d of the batch, and was %d",
				c.Node.ID, side, number, row, is.Rows[row], was.Rows[row])
		}
		if row := firstChange(was.Batch.IDs, is.Batch.IDs); row >= 0 {
			return contractf("the body of %s has written into %s %d: row %d has the id %d, and had %d",
				c.Node.ID, side, number, row, is.Batch.IDs[row], was.Batch.IDs[row])
		}
		if key, row := changedColumn(was.Batch, is.Batch); row >= 0 {
			name := ""
			if k, ok := c.Registry.Key(key); ok {
				name = " (" + k.Name + ")"
			}
			return contractf("the body of %s has written into %s %d: column %d%s, row %d", c.Node.ID, side, number, key, name, row)
		}
	}
	return nil
}

// firstChange returns the first index at which two lists of one length differ, or -1.
func firstChange[T comparable](was, is []T) int {
	if slices.Equal(was, is) {
		return -1
	}
	for i := range was {
		if was[i] != is[i] {
			return i
		}
	}
	return -1
}

// changedColumn returns the first column that differs, and its first row that does; row -1: none.
func changedColumn(a, b *rowset.Batch) (key registry.KeyID, row int) {
	was, is := a.Columns(), b.Columns()
	for i := range min(len(was.Floats), len(is.Floats)) {
		x, y := &was.Floats[i], &is.Floats[i]
		row := firstRow(len(x.Values), func(r int) bool {
			return math.Float64bits(x.Values[r]) == math.Float64bits(y.Values[r]) && x.Valid.Get(r) == y.Valid.Get(r)
		})
		if row >= 0 {
			return x.Key, row
		}
	}
	for i := range min(len(was.Ints), len(is.Ints)) {
		x, y := &was.Ints[i], &is.Ints[i]
		row := firstRow(len(x.Values), func(r int) bool { return x.Values[r] == y.Values[r] && x.Valid.Get(r) == y.Valid.Get(r) })
		if row >= 0 {
			return x.Key, row
		}
	}
	for i := range min(len(was.Bools), len(is.Bools)) {
		x, y := &was.Bools[i], &is.Bools[i]
		row := firstRow(a.Len(), func(r int) bool {
			return x.Values.Get(r) == y.Values.Get(r) && x.Valid.Get(r) == y.Valid.Get(r)
		})
		if row >= 0 {
			return x.Key, row
		}
	}
	for i := range min(len(was.Strings), len(is.Strings)) {
		if row := firstChange(was.Strings[i].Codes, is.Strings[i].Codes); row >= 0 {
			return was.Strings[i].Key, row
		}
	}
	for i := range min(len(was.Sets), len(is.Sets)) {
		if row := firstChange(was.Sets[i].Codes, is.Sets[i].Codes); row >= 0 {
			return was.Sets[i].Key, row
		}
	}
	return 0, -1
}

// firstRow returns the first of n rows that is not the same, or -1.
func firstRow(n int, same func(row int) bool) int {
	for row := range n {
		if !same(row) {
			return row
		}
	}
	return -1
}
