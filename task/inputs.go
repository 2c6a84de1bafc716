package task

import (
	"slices"

	"github.com/rankd/rankd/rowset"
)

// An inputsCopy holds the inputs and node references of a run as they were before it. One goroutine.
type inputsCopy struct {
	sides  []rowset.RowSet // as they were given; the body may have changed what they refer to
	copies []rowset.RowSet
	inputs int // of sides; the rest are node references
}

// guardedRows is the longest batch that is copied: inputs of tests are shorter, except in benchmarks.
const guardedRows = 100_000

// copyInputs copies what c gives to a body.
func copyInputs(c *Ctx) *inputsCopy {
	k := new(inputsCopy)
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
	return rowset.RowSet{Batch: in.Batch.Clone(), Rows: slices.Clone(in.Rows), N: in.N}
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
		if key, row := is.Batch.FirstChange(was.Batch); row >= 0 {
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
