package rowset

import (
	"cmp"
	"slices"

	"github.com/rankd/rankd/registry"
)

// Columns are columns by type. Each key is in one of them. Immutable once built; any goroutine.
type Columns struct {
	Floats  []FloatColumn
	Strings []StringColumn
	Ints    []IntColumn
	Bools   []BoolColumn
	Sets    []SetColumn
}

// Batch is a set of columns of equal length. Each list of columns ascends by key, and no key is in two of
// them. Immutable once built; any goroutine.
type Batch struct {
	IDs     []int64
	Floats  []FloatColumn
	Strings []StringColumn
	rare    *rareColumns // nil: none
}

// rareColumns are the columns of the types that most batches lack. Every node makes a batch, so lists that
// are mostly empty are behind one pointer: they would take half of a batch. Immutable once built; any goroutine.
type rareColumns struct {
	ints  []IntColumn
	bools []BoolColumn
	sets  []SetColumn
}

// NewBatch returns a batch of these columns, which may come in any order. Each has
// len(ids) rows and a key of its own. The slices belong to the batch from now on.
func NewBatch(ids []int64, columns Columns) *Batch {
	b := &Batch{IDs: ids}
	b.own(columns)
	return b
}

// NewStrings returns a batch with one string column, of len(ids) rows. It is one allocation.
func NewStrings(ids []int64, column StringColumn) *Batch {
	b := newBatch([]field{{column.Key, registry.String}})
	b.IDs, b.Strings[0] = ids, column
	return b
}

// newBatch returns a batch without rows for columns of these fields. A single string column, which is what users have, has
// its place in the same allocation.
func newBatch(fields []field) *Batch {
	if len(fields) != 1 || fields[0].typ != registry.String {
		return new(Batch)
	}
	one := new(struct {
		Batch
		column [1]StringColumn
	})
	one.Strings = one.column[:]
	return &one.Batch
}

// own gives b these columns, and no others.
func (b *Batch) own(columns Columns) {
	sortByKey(columns.Floats)
	sortByKey(columns.Strings)
	b.Floats, b.Strings = columns.Floats, columns.Strings
	if len(columns.Ints)+len(columns.Bools)+len(columns.Sets) > 0 {
		sortByKey(columns.Ints)
		sortByKey(columns.Bools)
		sortByKey(columns.Sets)
		b.rare = &rareColumns{columns.Ints, columns.Bools, columns.Sets}
	}
}

func sortByKey[C column](columns []C) {
	if len(columns) < 2 {
		return
	}
	slices.SortFunc(columns, func(a, b C) int { return cmp.Compare(a.key(), b.key()) })
}

// Len returns the number of rows of the batch, active or not.
func (b *Batch) Len() int { return len(b.IDs) }

// Columns returns the columns of all types, each list ascending by key. The lists are the batch's.
func (b *Batch) Columns() Columns {
	c := Columns{Floats: b.Floats, Strings: b.Strings}
	if b.rare != nil {
		c.Ints, c.Bools, c.Sets = b.rare.ints, b.rare.bools, b.rare.sets
	}
	return c
}

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

// Int returns the int column of that key, or nil.
func (b *Batch) Int(key registry.KeyID) *IntColumn {
	if b.rare == nil {
		return nil
	}
	for i := range b.rare.ints {
		if b.rare.ints[i].Key == key {
			return &b.rare.ints[i]
		}
	}
	return nil
}

// Bool returns the bool column of that key, or nil.
func (b *Batch) Bool(key registry.KeyID) *BoolColumn {
	if b.rare == nil {
		return nil
	}
	for i := range b.rare.bools {
		if b.rare.bools[i].Key == key {
			return &b.rare.bools[i]
		}
	}
	return nil
}

// Set returns the column of string sets of that key, or nil.
func (b *Batch) Set(key registry.KeyID) *SetColumn {
	if b.rare == nil {
		return nil
	}
	for i := range b.rare.sets {
		if b.rare.sets[i].Key == key {
			return &b.rare.sets[i]
		}
	}
	return nil
}

// TypeOf returns the type of the column of that key, or 0 if there is none. The id is not a column.
func (b *Batch) TypeOf(key registry.KeyID) registry.Type {
	switch {
	case b.Float(key) != nil:
		return registry.Float
	case b.String(key) != nil:
		return registry.String
	case b.rare == nil:
		return 0
	case b.Int(key) != nil:
		return registry.Int
	case b.Bool(key) != nil:
		return registry.Bool
	case b.Set(key) != nil:
		return registry.StringSet
	}
	return 0
}

// Has reports whether the rows have a value of that key: it is the id, or the batch has such a column.
func (b *Batch) Has(key registry.KeyID) bool { return key == registry.IDKey || b.TypeOf(key) != 0 }

// Count returns the number of columns.
func (b *Batch) Count() int {
	n := len(b.Floats) + len(b.Strings)
	if b.rare != nil {
		n += len(b.rare.ints) + len(b.rare.bools) + len(b.rare.sets)
	}
	return n
}

// AppendKeys appends the keys of all columns to dst, ascending. The id is not a
// column, so it is not among them.
func (b *Batch) AppendKeys(dst []registry.KeyID) []registry.KeyID {
	var few [fewFields]field
	start := len(dst)
	for _, f := range b.appendFields(few[:0]) {
		dst = append(dst, f.key)
	}
	slices.Sort(dst[start:])
	return dst
}
