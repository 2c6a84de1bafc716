package rowset

import (
	"math"

	"github.com/rankd/rankd/registry"
)

// A FloatBuilder builds one FloatColumn row by row. The zero value is not ready; see
// NewFloatBuilder. One goroutine at a time.
type FloatBuilder struct {
	key    registry.KeyID
	values []float64
	valid  validity
}

// NewFloatBuilder returns a builder with room for that many rows; more may be appended.
func NewFloatBuilder(key registry.KeyID, rows int) FloatBuilder {
	return FloatBuilder{key: key, values: make([]float64, 0, rows)}
}

// Append adds a row. A value that is not finite becomes a null: columns have none.
func (b *FloatBuilder) Append(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		b.AppendNull()
		return
	}
	b.valid.append(true, len(b.values), cap(b.values))
	b.values = append(b.values, value)
}

// AppendNull adds a null row.
func (b *FloatBuilder) AppendNull() {
	b.valid.append(false, len(b.values), cap(b.values))
	b.values = append(b.values, 0)
}

// Len returns the number of rows so far.
func (b *FloatBuilder) Len() int { return len(b.values) }

// Column returns the column. The builder must not be used afterwards.
func (b *FloatBuilder) Column() FloatColumn {
	return FloatColumn{Key: b.key, Values: b.values, Valid: b.valid.bits}
}

// An IntBuilder builds one IntColumn row by row. The zero value is not ready; see
// NewIntBuilder. One goroutine at a time.
type IntBuilder struct {
	key    registry.KeyID
	values []int64
	valid  validity
}

// NewIntBuilder returns a builder with room for that many rows; more may be appended.
func NewIntBuilder(key registry.KeyID, rows int) IntBuilder {
	return IntBuilder{key: key, values: make([]int64, 0, rows)}
}

// Append adds a row.
func (b *IntBuilder) Append(value int64) {
	b.valid.append(true, len(b.values), cap(b.values))
	b.values = append(b.values, value)
}

// AppendNull adds a null row.
func (b *IntBuilder) AppendNull() {
	b.valid.append(false, len(b.values), cap(b.values))
	b.values = append(b.values, 0)
}

// Len returns the number of rows so far.
func (b *IntBuilder) Len() int { return len(b.values) }

// Column returns the column. The builder must not be used afterwards.
func (b *IntBuilder) Column() IntColumn {
	return IntColumn{Key: b.key, Values: b.values, Valid: b.valid.bits}
}

// A BoolBuilder builds one BoolColumn row by row. The zero value is not ready; see
// NewBoolBuilder. One goroutine at a time.
type BoolBuilder struct {
	key    registry.KeyID
	rows   int // appended
	room   int // rows that are expected
	values Bitmap
	valid  validity
}

// NewBoolBuilder returns a builder with room for that many rows; more may be appended.
func NewBoolBuilder(key registry.KeyID, rows int) BoolBuilder {
	return BoolBuilder{key: key, room: rows, values: make(Bitmap, 0, BitmapWords(rows))}
}

// Append adds a row.
func (b *BoolBuilder) Append(value bool) {
	b.valid.append(true, b.rows, b.room)
	b.values = b.values.appendBit(b.rows, value)
	b.rows++
}

// AppendNull adds a null row.
func (b *BoolBuilder) AppendNull() {
	b.valid.append(false, b.rows, b.room)
	b.values = b.values.appendBit(b.rows, false)
	b.rows++
}

// Len returns the number of rows so far.
func (b *BoolBuilder) Len() int { return b.rows }

// Column returns the column. The builder must not be used afterwards.
func (b *BoolBuilder) Column() BoolColumn {
	return BoolColumn{Key: b.key, Values: b.values, Valid: b.valid.bits}
}

// A validity is the Bitmap of a column being built. It costs nothing until the first null. One goroutine at a time.
type validity struct {
	bits Bitmap // nil: no row is null so far
}

// append adds the bit of row n. room is how many rows are expected.
func (v *validity) append(valid bool, n, room int) {
	if v.bits == nil {
		if valid {
			return
		}
		v.bits = make(Bitmap, BitmapWords(n), BitmapWords(max(n+1, room)))
		v.bits.SetRange(0, n)
	}
	v.bits = v.bits.appendBit(n, valid)
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
