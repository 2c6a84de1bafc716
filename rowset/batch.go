package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// Batch is a set of columns of equal length, no two of one key. Immutable once built; any goroutine.
type Batch struct {
	IDs     []int64
	columns []Column // in the order of kinds, those of one kind ascending by key
}

// NewBatch returns a batch of these columns, which may come in any order. Each has
// len(ids) rows and a key of its own. They belong to the batch from now on.
func NewBatch(ids []int64, columns ...Column) *Batch {
	b := newBatch(len(columns))
	b.IDs, b.columns = ids, append(b.columns, columns...)
	sortColumns(b.columns)
	return b
}

// newBatch returns a batch without rows and columns, but with room for them. It takes one allocation, unless there
// are many columns.
func newBatch(columns int) *Batch {
	switch {
	case columns == 0:
		return new(Batch)
	case columns <= 2:
		few := new(struct {
			Batch
			list [2]Column
		})
		few.columns = few.list[:0]
		return &few.Batch
	case columns <= 8:
		some := new(struct {
			Batch
			list [8]Column
		})
		some.columns = some.list[:0]
		return &some.Batch
	}
	return &Batch{columns: make([]Column, 0, columns)}
}

// Len returns the number of rows of the batch, active or not.
func (b *Batch) Len() int { return len(b.IDs) }

// Bytes returns about how many bytes the ids and the columns take. Dictionaries that columns share count for each.
func (b *Batch) Bytes() int {
	n := sizeOf(b.IDs)
	for _, c := range b.columns {
		n += c.bytes()
	}
	return n
}

// Columns returns all columns: floats, strings, ints, bools, sets and vectors, those of one type ascending by key. The list is the
// batch's.
func (b *Batch) Columns() []Column { return b.columns }

// Column returns the column of that key, or nil. The id is not a column.
func (b *Batch) Column(key registry.KeyID) Column {
	for _, c := range b.columns {
		if c.KeyID() == key {
			return c
		}
	}
	return nil
}

// Float returns the float column of that key, or nil.
func (b *Batch) Float(key registry.KeyID) *FloatColumn {
	for _, c := range b.columns {
		if c, ok := c.(*FloatColumn); ok && c.Key == key {
			return c
		}
	}
	return nil
}

// String returns the string column of that key, or nil.
func (b *Batch) String(key registry.KeyID) *StringColumn {
	for _, c := range b.columns {
		if c, ok := c.(*StringColumn); ok && c.Key == key {
			return c
		}
	}
	return nil
}

// Int returns the int column of that key, or nil.
func (b *Batch) Int(key registry.KeyID) *IntColumn {
	for _, c := range b.columns {
		if c, ok := c.(*IntColumn); ok && c.Key == key {
			return c
		}
	}
	return nil
}

// Bool returns the bool column of that key, or nil.
func (b *Batch) Bool(key registry.KeyID) *BoolColumn {
	for _, c := range b.columns {
		if c, ok := c.(*BoolColumn); ok && c.Key == key {
			return c
		}
	}
	return nil
}

// Set returns the column of string sets of that key, or nil.
func (b *Batch) Set(key registry.KeyID) *SetColumn {
	for _, c := range b.columns {
		if c, ok := c.(*SetColumn); ok && c.Key == key {
			return c
		}
	}
	return nil
}

// Vector returns the column of vectors of that key, or nil.
func (b *Batch) Vector(key registry.KeyID) *VectorColumn {
	for _, c := range b.columns {
		if c, ok := c.(*VectorColumn); ok && c.Key == key {
			return c
		}
	}
	return nil
}

// TypeOf returns the type of the column of that key, or 0 if there is none. The id is not a column.
func (b *Batch) TypeOf(key registry.KeyID) registry.Type {
	if c := b.Column(key); c != nil {
		return c.Type()
	}
	return 0
}

// Has reports whether the rows have a value of that key: it is the id, or the batch has such a column.
func (b *Batch) Has(key registry.KeyID) bool { return key == registry.IDKey || b.Column(key) != nil }

// Count returns the number of columns.
func (b *Batch) Count() int { return len(b.columns) }

// AppendKeys appends the keys of all columns to dst, ascending. The id is not a
// column, so it is not among them.
func (b *Batch) AppendKeys(dst []registry.KeyID) []registry.KeyID {
	start := len(dst)
	for _, c := range b.columns {
		dst = append(dst, c.KeyID())
	}
	slices.Sort(dst[start:])
	return dst
}

// sameFields reports whether both batches have columns of the same keys and types.
func (b *Batch) sameFields(o *Batch) bool { return slices.EqualFunc(b.columns, o.columns, sameField) }

// Clone returns a copy of b with its own ids and columns. Dictionaries are shared: they do not change.
func (b *Batch) Clone() *Batch {
	columns := make([]Column, len(b.columns))
	for i, c := range b.columns {
		columns[i] = c.clone()
	}
	return NewBatch(slices.Clone(b.IDs), columns...)
}

// FirstChange returns the first column of which a row differs from the one of was, and that row. Row -1 means that no
// column does. was is an earlier Clone of b. The comparison includes the memory under nulls.
func (b *Batch) FirstChange(was *Batch) (key registry.KeyID, row int) {
	for _, c := range b.columns {
		before := was.Column(c.KeyID())
		if before == nil || before.Type() != c.Type() {
			continue
		}
		if row := c.firstChange(before, len(was.IDs)); row >= 0 {
			return c.KeyID(), row
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

// Project returns a batch of b's ids and only the columns of these keys, which it shares. If nulls is set, a column
// that b lacks, or has in another type than its key, is null in all rows. Feature bundles and the id have no column.
// The projection of nil is nil.
func Project(b *Batch, keys []*registry.Key, nulls bool) *Batch {
	if b == nil {
		return nil
	}
	out := newBatch(len(keys))
	out.IDs = b.IDs
	for _, key := range keys {
		c := b.Column(key.ID)
		if nulls && (c == nil || c.Type() != key.Type) {
			c = nullColumn(key, b.Len())
		}
		if c != nil {
			out.columns = append(out.columns, c)
		}
	}
	sortColumns(out.columns)
	return out
}

// WithIDs returns the rows of b with other ids, as many as it has. It shares the columns.
func WithIDs(b *Batch, ids []int64) *Batch {
	out := *b
	out.IDs = ids
	return &out
}

// nullColumn returns a column of n nulls, or nil if no column has the key's type.
func nullColumn(key *registry.Key, n int) Column {
	b := NewBuilder(nil, key, n)
	if b == nil {
		return nil
	}
	for range n {
		b.AppendNull()
	}
	return b.Column()
}
