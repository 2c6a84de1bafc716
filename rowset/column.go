package rowset

import "github.com/rankd/rankd/registry"

// FloatColumn is a column of doubles. Immutable once built; any goroutine.
type FloatColumn struct {
	Key    registry.KeyID
	Values []float64 // one per row of the batch; undefined where invalid
	Valid  Bitmap    // nil: no nulls
}

// Value returns the number of a batch row, or false if it is null.
func (c *FloatColumn) Value(row int) (float64, bool) { return valueAt(c.Values, c.Valid, row) }

// IntColumn is a column of integers. Immutable once built; any goroutine.
type IntColumn struct {
	Key    registry.KeyID
	Values []int64 // one per row of the batch; undefined where invalid
	Valid  Bitmap  // nil: no nulls
}

// Value returns the integer of a batch row, or false if it is null.
func (c *IntColumn) Value(row int) (int64, bool) { return valueAt(c.Values, c.Valid, row) }

func valueAt[T any](values []T, valid Bitmap, row int) (value T, ok bool) {
	if !valid.Get(row) {
		return value, false
	}
	return values[row], true
}

// BoolColumn is a column of truth values. Immutable once built; any goroutine.
type BoolColumn struct {
	Key    registry.KeyID
	Values Bitmap // one bit per row of the batch, set for true; undefined where invalid. Never nil if there are rows
	Valid  Bitmap // nil: no nulls
}

// Value returns the truth value of a batch row. ok is false if it is null.
func (c *BoolColumn) Value(row int) (value, ok bool) {
	return c.Values.Get(row) && c.Valid.Get(row), c.Valid.Get(row)
}

// NullCode is the code of a null in a StringColumn or a SetColumn.
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

// column is what all types of column have in common.
type column interface{ key() registry.KeyID }

func (c FloatColumn) key() registry.KeyID  { return c.Key }
func (c IntColumn) key() registry.KeyID    { return c.Key }
func (c BoolColumn) key() registry.KeyID   { return c.Key }
func (c StringColumn) key() registry.KeyID { return c.Key }
func (c SetColumn) key() registry.KeyID    { return c.Key }
