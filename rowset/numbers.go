package rowset

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// FloatColumn is a column of doubles. Immutable once built; any goroutine.
type FloatColumn struct {
	Key    registry.KeyID
	Values []float64 // one per row of the batch; undefined where invalid
	Valid  Bitmap    // nil: no nulls
}

// Value returns the number of a batch row, or false if it is null.
func (c *FloatColumn) Value(row int) (float64, bool) { return valueAt(c.Values, c.Valid, row) }

// KeyID implements Column.
func (c *FloatColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*FloatColumn) Type() registry.Type { return registry.Float }

// Any implements Column.
func (c *FloatColumn) Any(row int) any { return anyOf(c.Value(row)) }

// AppendJSON implements Column. A double that is not finite, which no task returns, becomes null.
func (c *FloatColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	if !c.Valid.Get(row) {
		return dst, false
	}
	return jsondoc.AppendFloat(dst, c.Values[row]), true
}

func (*FloatColumn) builder(m *Memory, key *registry.Key, rows int) Builder {
	return &FloatBuilder{column: FloatColumn{Key: key.ID, Values: m.Floats(rows)[:0]}}
}

func (c *FloatColumn) rowKeys(m *Memory, rs RowSet) (rowKeys, error) {
	keys := mapInts(m, rs, func(row int32) int64 { return int64(math.Float64bits(c.Values[row] + 0)) }) // -0.0 + 0 is 0.0
	return rowKeys{keys, validAt(rs, c.Valid)}, nil
}

func (c *FloatColumn) check(n int) error { return checkLength(c, len(c.Values), n, c.Valid) }
func (*FloatColumn) checkCodes() error   { return nil }
func (*FloatColumn) validate() error     { return nil }

func (c *FloatColumn) bytes() int { return sizeOf(c.Values) + sizeOf(c.Valid) }

func (c *FloatColumn) shares(with Column) bool {
	o := with.(*FloatColumn)
	return sameSlice(c.Values, o.Values) && sameSlice(c.Valid, o.Valid)
}

func (c *FloatColumn) clone() Column {
	return &FloatColumn{c.Key, slices.Clone(c.Values), slices.Clone(c.Valid)}
}

func (c *FloatColumn) firstChange(was Column, n int) int {
	o := was.(*FloatColumn)
	return firstRow(n, func(row int) bool {
		return math.Float64bits(c.Values[row]) == math.Float64bits(o.Values[row]) && c.Valid.Get(row) == o.Valid.Get(row)
	})
}

// A FloatBuilder builds one FloatColumn row by row. NewFloatBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type FloatBuilder struct{ column FloatColumn }

// NewFloatBuilder returns a builder with room for that many rows; more may be appended.
func NewFloatBuilder(key registry.KeyID, rows int) *FloatBuilder {
	return &FloatBuilder{FloatColumn{Key: key, Values: make([]float64, 0, rows)}}
}

// Append adds a row. A value that is not finite becomes a null: columns have none.
func (b *FloatBuilder) Append(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		b.AppendNull()
		return
	}
	appendNumber(&b.column.Values, &b.column.Valid, value, true)
}

// AppendNull implements Builder.
func (b *FloatBuilder) AppendNull() { appendNumber(&b.column.Values, &b.column.Valid, 0, false) }

// AppendText implements Builder. See ParseFloat.
func (b *FloatBuilder) AppendText(text []byte) bool {
	value, ok := ParseFloat(text)
	if ok {
		b.Append(value)
	}
	return ok
}

// AppendJSON implements Builder. It takes a number within the range of doubles.
func (b *FloatBuilder) AppendJSON(value []byte) bool {
	return isJSON(value, jsontext.KindNumber) && b.AppendText(value)
}

// AppendLast implements Builder.
func (b *FloatBuilder) AppendLast(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(b.column.Values[b.Len()-1]))
}

// AppendBinary implements Builder.
func (b *FloatBuilder) AppendBinary(src []byte) (rest []byte) {
	b.Append(math.Float64frombits(binary.LittleEndian.Uint64(src)))
	return src[8:]
}

// AppendAny implements Builder.
func (b *FloatBuilder) AppendAny(value any) bool {
	switch v := value.(type) {
	case nil:
		b.AppendNull()
	case float64:
		b.Append(v)
	case int:
		b.Append(float64(v))
	default:
		return false
	}
	return true
}

// Len implements Builder.
func (b *FloatBuilder) Len() int { return len(b.column.Values) }

// Column implements Builder. It returns a *FloatColumn.
func (b *FloatBuilder) Column() Column { return &b.column }

// IntColumn is a column of integers. Immutable once built; any goroutine.
type IntColumn struct {
	Key    registry.KeyID
	Values []int64 // one per row of the batch; undefined where invalid
	Valid  Bitmap  // nil: no nulls
}

// Value returns the integer of a batch row, or false if it is null.
func (c *IntColumn) Value(row int) (int64, bool) { return valueAt(c.Values, c.Valid, row) }

// KeyID implements Column.
func (c *IntColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*IntColumn) Type() registry.Type { return registry.Int }

// Any implements Column.
func (c *IntColumn) Any(row int) any { return anyOf(c.Value(row)) }

// AppendJSON implements Column.
func (c *IntColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	if !c.Valid.Get(row) {
		return dst, false
	}
	return strconv.AppendInt(dst, c.Values[row], 10), true
}

func (*IntColumn) builder(m *Memory, key *registry.Key, rows int) Builder {
	return &IntBuilder{IntColumn{Key: key.ID, Values: m.IDs(rows)[:0]}}
}

func (c *IntColumn) rowKeys(m *Memory, rs RowSet) (rowKeys, error) {
	return rowKeys{gatherInts(m, rs, c.Values), validAt(rs, c.Valid)}, nil
}

func (c *IntColumn) check(n int) error { return checkLength(c, len(c.Values), n, c.Valid) }
func (*IntColumn) checkCodes() error   { return nil }
func (*IntColumn) validate() error     { return nil }

func (c *IntColumn) bytes() int { return sizeOf(c.Values) + sizeOf(c.Valid) }

func (c *IntColumn) shares(with Column) bool {
	o := with.(*IntColumn)
	return sameSlice(c.Values, o.Values) && sameSlice(c.Valid, o.Valid)
}

func (c *IntColumn) clone() Column {
	return &IntColumn{c.Key, slices.Clone(c.Values), slices.Clone(c.Valid)}
}

func (c *IntColumn) firstChange(was Column, n int) int {
	o := was.(*IntColumn)
	return firstRow(n, func(row int) bool { return c.Values[row] == o.Values[row] && c.Valid.Get(row) == o.Valid.Get(row) })
}

// An IntBuilder builds one IntColumn row by row. NewIntBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type IntBuilder struct{ column IntColumn }

// NewIntBuilder returns a builder with room for that many rows; more may be appended.
func NewIntBuilder(key registry.KeyID, rows int) *IntBuilder {
	return &IntBuilder{IntColumn{Key: key, Values: make([]int64, 0, rows)}}
}

// Append adds a row.
func (b *IntBuilder) Append(value int64) {
	if c := &b.column; c.Valid == nil {
		c.Values = append(c.Values, value)
		return
	}
	appendNumber(&b.column.Values, &b.column.Valid, value, true)
}

// AppendNull implements Builder.
func (b *IntBuilder) AppendNull() { appendNumber(&b.column.Values, &b.column.Valid, 0, false) }

// AppendText implements Builder. See ParseInt.
func (b *IntBuilder) AppendText(text []byte) bool {
	value, ok := ParseInt(text)
	if ok {
		b.Append(value)
	}
	return ok
}

// AppendJSON implements Builder. It takes an integer of 64 bits. One that is written with a point or an exponent counts if its digits
// make an integer below 2^53.
func (b *IntBuilder) AppendJSON(value []byte) bool {
	v, ok := ParseJSONInt(value)
	if ok {
		b.Append(v)
	}
	return ok
}

// ParseJSONInt returns the integer that a value of a JSON document is. See IntBuilder.AppendJSON.
func ParseJSONInt(value []byte) (_ int64, ok bool) {
	if !isJSON(value, jsontext.KindNumber) {
		return 0, false
	}
	if v, ok := ParseInt(value); ok {
		return v, true
	}
	v, ok := ParseFloat(value)
	return int64(v), ok && jsondoc.Whole(value, v)
}

// AppendLast implements Builder.
func (b *IntBuilder) AppendLast(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(b.column.Values[b.Len()-1]))
}

// AppendBinary implements Builder.
func (b *IntBuilder) AppendBinary(src []byte) (rest []byte) {
	b.Append(int64(binary.LittleEndian.Uint64(src)))
	return src[8:]
}

// AppendAny implements Builder.
func (b *IntBuilder) AppendAny(value any) bool {
	switch v := value.(type) {
	case nil:
		b.AppendNull()
	case int64:
		b.Append(v)
	case int:
		b.Append(int64(v))
	default:
		return false
	}
	return true
}

// Len implements Builder.
func (b *IntBuilder) Len() int { return len(b.column.Values) }

// Column implements Builder. It returns an *IntColumn.
func (b *IntBuilder) Column() Column { return &b.column }

func valueAt[T any](values []T, valid Bitmap, row int) (value T, ok bool) {
	if !valid.Get(row) {
		return value, false
	}
	return values[row], true
}

// anyOf returns a value, or nil for a null.
func anyOf[T any](value T, ok bool) any {
	if !ok {
		return nil
	}
	return value
}

// appendNumber adds a row to a column of numbers.
func appendNumber[T any](values *[]T, valid *Bitmap, value T, ok bool) {
	appendValid(valid, ok, len(*values), cap(*values))
	*values = append(*values, value)
}

// isJSON reports whether a JSON value is of this kind.
func isJSON(value []byte, kind jsontext.Kind) bool { return jsontext.Value(value).Kind() == kind }
