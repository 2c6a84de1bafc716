package rowset

import "github.com/rankd/rankd/registry"

// A FloatBuilder builds one FloatColumn row by row. The zero value is not ready; see
// NewFloatBuilder. One goroutine at a time.
type FloatBuilder struct {
	key    registry.KeyID
	values []float64
	nulls  []int // rows, ascending
}

// NewFloatBuilder returns a builder with room for that many rows; more may be appended.
func NewFloatBuilder(key registry.KeyID, rows int) FloatBuilder {
	return FloatBuilder{key: key, values: make([]float64, 0, rows)}
}

// Append adds a row.
func (b *FloatBuilder) Append(value float64) { b.values = append(b.values, value) }

// AppendNull adds a null row.
func (b *FloatBuilder) AppendNull() {
	b.nulls = append(b.nulls, len(b.values))
	b.values = append(b.values, 0)
}

// Len returns the number of rows so far.
func (b *FloatBuilder) Len() int { return len(b.values) }

// Column returns the column. The builder must not be used afterwards.
func (b *FloatBuilder) Column() FloatColumn {
	c := FloatColumn{Key: b.key, Values: b.values}
	if len(b.nulls) > 0 {
		c.Valid = NewBitmapOf(len(b.values), len(b.values))
		for _, row := range b.nulls {
			c.Valid.Clear(row)
		}
	}
	return c
}
