// Package rowset holds candidate rows as columns. A Batch is immutable: ids,
// float64 columns with validity, dictionary-coded string columns. A RowSet is
// a batch and the ordered list of its active rows. filter, sort and take make
// a new list over the same batch; vm makes a new batch that shares all
// columns but one. Nothing copies a column to drop or reorder rows.
package rowset

import "github.com/rankd/rankd/registry"

// Bitmap has one bit per row, row i in bit i%64 of word i/64. A nil Bitmap
// means "all rows valid".
type Bitmap []uint64

// FloatColumn is a column of doubles. Immutable once built.
type FloatColumn struct {
	Key    registry.KeyID
	Values []float64 // one per row of the batch; undefined where invalid
	Valid  Bitmap    // nil: no nulls
}

// NullCode is the code of a null in a StringColumn.
const NullCode int32 = -1

// Dict is the list of distinct strings of a column. Immutable once built.
type Dict struct {
	Values []string
}

// StringColumn is a column of strings, each a code into a dictionary.
// Immutable once built.
type StringColumn struct {
	Key   registry.KeyID
	Codes []int32 // one per row of the batch; NullCode or an index into Dict.Values
	Dict  *Dict
}

// Batch is a set of columns of equal length. Immutable once built; any goroutine.
type Batch struct {
	IDs     []int64
	Floats  []FloatColumn  // ascending by key
	Strings []StringColumn // ascending by key
}

// Len returns the number of rows of the batch, active or not.
func (b *Batch) Len() int { return len(b.IDs) }

// Float returns the float column of that key, or nil.
func (b *Batch) Float(key registry.KeyID) *FloatColumn {
	for i := range b.Floats {
		if b.Floats[i].Key == key {
			return &b.Floats[i]
		}
	}
	return nil
}

// String returns the string column of that key, or nil.
func (b *Batch) String(key registry.KeyID) *StringColumn {
	for i := range b.Strings {
		if b.Strings[i].Key == key {
			return &b.Strings[i]
		}
	}
	return nil
}

// RowSet is a batch and its active rows, in order. Immutable once built; any
// goroutine. The zero RowSet has no batch and no rows.
type RowSet struct {
	Batch *Batch
	// Rows lists the active rows in order: ascending it is a selection vector,
	// otherwise a permutation. Nil means the first N rows of the batch as they
	// stand. Invariant: Rows == nil || len(Rows) == N; 0 <= Rows[i] < Batch.Len().
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
