package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// FloatColumn is a column of doubles. Immutable once built; any goroutine.
type FloatColumn struct {
	Key    registry.KeyID
	Values []float64 // one per row of the batch; undefined where invalid
	Valid  Bitmap    // nil: no nulls
}

// NullCode is the code of a null in a StringColumn.
const NullCode int32 = -1

// Dict is the list of distinct strings of a column. Immutable once built; any goroutine.
type Dict struct {
	Values []string
}

// StringColumn is a column of strings, each a code into a dictionary.
// Immutable once built; any goroutine.
type StringColumn struct {
	Key   registry.KeyID
	Codes []int32 // one per row of the batch; NullCode or an index into Dict.Values
	Dict  *Dict
}

// Value returns the string of a batch row, or false if it is null.
func (c *StringColumn) Value(row int) (string, bool) {
	code := c.Codes[row]
	if code < 0 {
		return "", false
	}
	return c.Dict.Values[code], true
}

// Batch is a set of columns of equal length. Immutable once built; any goroutine.
type Batch struct {
	IDs     []int64
	Floats  []FloatColumn  // ascending by key
	Strings []StringColumn // ascending by key
}

// NewBatch returns a batch of these columns, which may come in any order. Each has
// len(ids) rows and a key of its own. The slices belong to the batch from now on.
func NewBatch(ids []int64, floats []FloatColumn, strings []StringColumn) *Batch {
	slices.SortFunc(floats, func(a, b FloatColumn) int { return compareKeys(a.Key, b.Key) })
	slices.SortFunc(strings, func(a, b StringColumn) int { return compareKeys(a.Key, b.Key) })
	return &Batch{IDs: ids, Floats: floats, Strings: strings}
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

// Has reports whether rows can be sorted by that key: it is the id, or the batch has
// such a column.
func (b *Batch) Has(key registry.KeyID) bool {
	return key == registry.IDKey || b.Float(key) != nil || b.String(key) != nil
}

// AppendKeys appends the keys of all columns to dst, ascending. The id is not a
// column, so it is not among them.
func (b *Batch) AppendKeys(dst []registry.KeyID) []registry.KeyID {
	start := len(dst)
	for i := range b.Floats {
		dst = append(dst, b.Floats[i].Key)
	}
	for i := range b.Strings {
		dst = append(dst, b.Strings[i].Key)
	}
	slices.Sort(dst[start:])
	return dst
}

// WithFloat returns a batch with the float column key added or replaced. It shares
// all other columns with b. values has b.Len() elements; valid is nil or has one bit
// per row. Both belong to the batch from now on.
func WithFloat(b *Batch, key registry.KeyID, values []float64, valid Bitmap) *Batch {
	column := FloatColumn{Key: key, Values: values, Valid: valid}
	at, found := slices.BinarySearchFunc(b.Floats, key, func(c FloatColumn, k registry.KeyID) int {
		return compareKeys(c.Key, k)
	})
	rest := at
	if found {
		rest++
	}
	floats := make([]FloatColumn, 0, len(b.Floats)+1)
	floats = append(floats, b.Floats[:at]...)
	floats = append(floats, column)
	floats = append(floats, b.Floats[rest:]...)
	return &Batch{IDs: b.IDs, Floats: floats, Strings: b.Strings}
}

func compareKeys(a, b registry.KeyID) int {
	// KeyID is unsigned, so a subtraction in int64 cannot overflow.
	return int(int64(a) - int64(b))
}
