package rowset

import (
	"cmp"
	"slices"

	"github.com/rankd/rankd/registry"
)

// Columns are columns by type. In a Batch each list ascends by key, and no key is in two of them.
// Immutable once built; any goroutine.
type Columns struct {
	Floats  []FloatColumn
	Strings []StringColumn
	Ints    []IntColumn
	Bools   []BoolColumn
	Sets    []SetColumn
}

// Batch is a set of columns of equal length. Immutable once built; any goroutine.
type Batch struct {
	IDs []int64
	Columns
}

// NewBatch returns a batch of these columns, which may come in any order. Each has
// len(ids) rows and a key of its own. The slices belong to the batch from now on.
func NewBatch(ids []int64, columns Columns) *Batch {
	sortByKey(columns.Floats)
	sortByKey(columns.Strings)
	sortByKey(columns.Ints)
	sortByKey(columns.Bools)
	sortByKey(columns.Sets)
	return &Batch{IDs: ids, Columns: columns}
}

func sortByKey[C column](columns []C) {
	if len(columns) < 2 {
		return
	}
	slices.SortFunc(columns, func(a, b C) int { return cmp.Compare(a.key(), b.key()) })
}

// Len returns the number of rows of the batch, active or not.
func (b *Batch) Len() int { return len(b.IDs) }

// Float returns the float column of that key, or nil.
func (c *Columns) Float(key registry.KeyID) *FloatColumn {
	for i := range c.Floats {
		if c.Floats[i].Key == key {
			return &c.Floats[i]
		}
	}
	return nil
}

// String returns the string column of that key, or nil.
func (c *Columns) String(key registry.KeyID) *StringColumn {
	for i := range c.Strings {
		if c.Strings[i].Key == key {
			return &c.Strings[i]
		}
	}
	return nil
}

// Int returns the int column of that key, or nil.
func (c *Columns) Int(key registry.KeyID) *IntColumn {
	for i := range c.Ints {
		if c.Ints[i].Key == key {
			return &c.Ints[i]
		}
	}
	return nil
}

// Bool returns the bool column of that key, or nil.
func (c *Columns) Bool(key registry.KeyID) *BoolColumn {
	for i := range c.Bools {
		if c.Bools[i].Key == key {
			return &c.Bools[i]
		}
	}
	return nil
}

// Set returns the column of string sets of that key, or nil.
func (c *Columns) Set(key registry.KeyID) *SetColumn {
	for i := range c.Sets {
		if c.Sets[i].Key == key {
			return &c.Sets[i]
		}
	}
	return nil
}

// TypeOf returns the type of the column of that key, or 0 if there is none. The id is not a column.
func (c *Columns) TypeOf(key registry.KeyID) registry.Type {
	switch {
	case c.Float(key) != nil:
		return registry.Float
	case c.String(key) != nil:
		return registry.String
	case c.Int(key) != nil:
		return registry.Int
	case c.Bool(key) != nil:
		return registry.Bool
	case c.Set(key) != nil:
		return registry.StringSet
	}
	return 0
}

// Has reports whether the rows have a value of that key: it is the id, or the batch has such a column.
func (b *Batch) Has(key registry.KeyID) bool { return key == registry.IDKey || b.TypeOf(key) != 0 }

// Count returns the number of columns.
func (c *Columns) Count() int {
	return len(c.Floats) + len(c.Strings) + len(c.Ints) + len(c.Bools) + len(c.Sets)
}

// AppendKeys appends the keys of all columns to dst, ascending. The id is not a
// column, so it is not among them.
func (c *Columns) AppendKeys(dst []registry.KeyID) []registry.KeyID {
	start := len(dst)
	dst = appendKeys(dst, c.Floats)
	dst = appendKeys(dst, c.Strings)
	dst = appendKeys(dst, c.Ints)
	dst = appendKeys(dst, c.Bools)
	dst = appendKeys(dst, c.Sets)
	slices.Sort(dst[start:])
	return dst
}

func appendKeys[C column](dst []registry.KeyID, columns []C) []registry.KeyID {
	for i := range columns {
		dst = append(dst, columns[i].key())
	}
	return dst
}

// With returns a batch with columns added. A column takes the place of one of the same key, whatever the
// type of that was. The batch shares all other columns with b. Each column has b.Len() rows and a key
// of its own; they may come in any order.
func With(b *Batch, columns Columns) *Batch {
	return &Batch{IDs: b.IDs, Columns: Columns{
		Floats:  with(b.Floats, columns.Floats, &columns),
		Strings: with(b.Strings, columns.Strings, &columns),
		Ints:    with(b.Ints, columns.Ints, &columns),
		Bools:   with(b.Bools, columns.Bools, &columns),
		Sets:    with(b.Sets, columns.Sets, &columns),
	}}
}

// with returns the old columns of one type whose keys are not among all that are added, and the added ones of
// that type. It returns old itself if nothing changes.
func with[C column](old, added []C, all *Columns) []C {
	replaced := func(c C) bool { return all.TypeOf(c.key()) != 0 }
	if len(added) == 0 && !slices.ContainsFunc(old, replaced) {
		return old
	}
	columns := make([]C, 0, len(old)+len(added))
	for i := range old {
		if !replaced(old[i]) {
			columns = append(columns, old[i])
		}
	}
	columns = append(columns, added...)
	sortByKey(columns)
	return columns
}
