package rowset

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/registry"
)

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

// KeyID implements Column.
func (c *BoolColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*BoolColumn) Type() registry.Type { return registry.Bool }

// Any implements Column.
func (c *BoolColumn) Any(row int) any { return anyOf(c.Value(row)) }

// AppendJSON implements Column.
func (c *BoolColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	if !c.Valid.Get(row) {
		return dst, false
	}
	return strconv.AppendBool(dst, c.Values.Get(row)), true
}

func (*BoolColumn) builder(_ *Memory, key *registry.Key, rows int) Builder {
	return NewBoolBuilder(key.ID, rows)
}

func (c *BoolColumn) rowKeys(m *Memory, rs RowSet) (rowKeys, error) {
	keys := mapInts(m, rs, func(row int32) int64 {
		if c.Values.Get(int(row)) {
			return 1
		}
		return 0
	})
	return rowKeys{keys, validAt(rs, c.Valid)}, nil
}

func (c *BoolColumn) check(n int) error {
	if len(c.Values) != BitmapWords(n) {
		return columnErrorf(c, "has %d words of values for %d rows", len(c.Values), n)
	}
	return checkLength(c, n, n, c.Valid)
}
func (*BoolColumn) checkCodes() error { return nil }
func (*BoolColumn) validate() error   { return nil }

func (c *BoolColumn) bytes() int { return sizeOf(c.Values) + sizeOf(c.Valid) }

func (c *BoolColumn) shares(with Column) bool {
	o := with.(*BoolColumn)
	return sameSlice(c.Values, o.Values) && sameSlice(c.Valid, o.Valid)
}

func (c *BoolColumn) clone() Column {
	return &BoolColumn{c.Key, slices.Clone(c.Values), slices.Clone(c.Valid)}
}

func (c *BoolColumn) firstChange(was Column, n int) int {
	o := was.(*BoolColumn)
	return firstRow(n, func(row int) bool {
		return c.Values.Get(row) == o.Values.Get(row) && c.Valid.Get(row) == o.Valid.Get(row)
	})
}

// A BoolBuilder builds one BoolColumn row by row. NewBoolBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type BoolBuilder struct {
	column BoolColumn
	rows   int // appended
	room   int // rows that are expected
}

// NewBoolBuilder returns a builder with room for that many rows; more may be appended.
func NewBoolBuilder(key registry.KeyID, rows int) *BoolBuilder {
	return &BoolBuilder{column: BoolColumn{Key: key, Values: make(Bitmap, 0, BitmapWords(rows))}, room: rows}
}

// Append adds a row.
func (b *BoolBuilder) Append(value bool) { b.append(value, true) }

// AppendNull implements Builder.
func (b *BoolBuilder) AppendNull() { b.append(false, false) }

func (b *BoolBuilder) append(value, valid bool) {
	appendValid(&b.column.Valid, valid, b.rows, b.room)
	b.column.Values = b.column.Values.appendBit(b.rows, value)
	b.rows++
}

// AppendText implements Builder. See ParseBool.
func (b *BoolBuilder) AppendText(text []byte) bool {
	value, ok := ParseBool(text)
	if ok {
		b.Append(value)
	}
	return ok
}

// AppendJSON implements Builder.
func (b *BoolBuilder) AppendJSON(value []byte) bool {
	return (isJSON(value, jsontext.KindTrue) || isJSON(value, jsontext.KindFalse)) && b.AppendText(value)
}

// AppendLast implements Builder.
func (b *BoolBuilder) AppendLast(dst []byte) []byte {
	if b.column.Values.Get(b.rows - 1) {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendBinary implements Builder.
func (b *BoolBuilder) AppendBinary(src []byte) (rest []byte) {
	b.Append(src[0] != 0)
	return src[1:]
}

// AppendAny implements Builder.
func (b *BoolBuilder) AppendAny(value any) bool {
	switch v := value.(type) {
	case nil:
		b.AppendNull()
	case bool:
		b.Append(v)
	default:
		return false
	}
	return true
}

// Len implements Builder.
func (b *BoolBuilder) Len() int { return b.rows }

// Column implements Builder. It returns a *BoolColumn.
func (b *BoolBuilder) Column() Column { return &b.column }

// appendValid adds the bit of row n to the validity of a column being built. The validity costs nothing until the first null. room is
// how many rows are expected.
func appendValid(bits *Bitmap, valid bool, n, room int) {
	if *bits == nil {
		if valid {
			return
		}
		*bits = make(Bitmap, BitmapWords(n), BitmapWords(max(n+1, room)))
		bits.SetRange(0, n)
	}
	*bits = bits.appendBit(n, valid)
}

// appendBit returns m with the bit of row n, the first after its last.
func (m Bitmap) appendBit(n int, bit bool) Bitmap {
	if n%64 == 0 {
		m = append(m, 0)
	}
	if bit {
		m.Set(n)
	}
	return m
}
