package rowset

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/registry"
)

// VectorColumn is a column of vectors of floats, all of one length. Immutable once built; any goroutine.
type VectorColumn struct {
	Key    registry.KeyID
	Dims   int       // numbers of each vector, at least 1
	Values []float32 // Dims per row of the batch, row by row; undefined where invalid
	Valid  Bitmap    // nil: no nulls
}

// Value returns the vector of a batch row, which is the column's, or false if it is null.
func (c *VectorColumn) Value(row int) ([]float32, bool) {
	if !c.Valid.Get(row) {
		return nil, false
	}
	return c.at(row), true
}

func (c *VectorColumn) at(row int) []float32 {
	return c.Values[row*c.Dims : (row+1)*c.Dims : (row+1)*c.Dims]
}

// KeyID implements Column.
func (c *VectorColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*VectorColumn) Type() registry.Type { return registry.Vector }

// Any implements Column.
func (c *VectorColumn) Any(row int) any {
	v, ok := c.Value(row)
	return anyOf(slices.Clone(v), ok)
}

// AppendJSON implements Column. Each number has as many digits as tell it from other floats.
func (c *VectorColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	v, ok := c.Value(row)
	if !ok {
		return dst, false
	}
	dst = append(dst, '[')
	for i, x := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(x), 'g', -1, 32)
	}
	return append(dst, ']'), true
}

func (*VectorColumn) builder(_ *Memory, key *registry.Key, rows int) Builder {
	return NewVectorBuilder(key.ID, key.Dims, rows)
}

func (c *VectorColumn) rowKeys(*Memory, RowSet) (rowKeys, error) {
	return rowKeys{}, &KeyTypeError{Key: c.Key, Type: c.Type()}
}

func (c *VectorColumn) check(n int) error {
	if c.Dims < 1 || len(c.Values)%c.Dims != 0 {
		return columnErrorf(c, "has %d numbers in vectors of %d", len(c.Values), c.Dims)
	}
	return checkLength(c, len(c.Values)/c.Dims, n, c.Valid)
}

func (*VectorColumn) checkCodes() error { return nil }
func (*VectorColumn) validate() error   { return nil }

func (c *VectorColumn) bytes() int { return sizeOf(c.Values) + sizeOf(c.Valid) }

func (c *VectorColumn) shares(with Column) bool {
	o := with.(*VectorColumn)
	return c.Dims == o.Dims && sameSlice(c.Values, o.Values) && sameSlice(c.Valid, o.Valid)
}

func (c *VectorColumn) clone() Column {
	return &VectorColumn{c.Key, c.Dims, slices.Clone(c.Values), slices.Clone(c.Valid)}
}

func (c *VectorColumn) firstChange(was Column, n int) int {
	o := was.(*VectorColumn)
	return firstRow(n, func(row int) bool {
		return c.Valid.Get(row) == o.Valid.Get(row) && slices.EqualFunc(c.at(row), o.at(row), func(x, y float32) bool {
			return math.Float32bits(x) == math.Float32bits(y)
		})
	})
}

// A VectorBuilder builds one VectorColumn row by row. NewVectorBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type VectorBuilder struct {
	column VectorColumn
	rows   int // appended
	room   int // rows that are expected
}

// NewVectorBuilder returns a builder of vectors of dims numbers, with room for that many rows; more may be appended.
func NewVectorBuilder(key registry.KeyID, dims, rows int) *VectorBuilder {
	return &VectorBuilder{column: VectorColumn{Key: key, Dims: dims, Values: make([]float32, 0, dims*rows)}, room: rows}
}

// Append adds a row with a copy of v. False means that nothing was appended: v has another length, or a number that
// is not finite.
func (b *VectorBuilder) Append(v []float32) bool {
	if len(v) != b.column.Dims || slices.ContainsFunc(v, notFinite) {
		return false
	}
	b.column.Values = append(b.column.Values, v...)
	b.added(true)
	return true
}

func notFinite(x float32) bool { return math.IsInf(float64(x), 0) || x != x }

// added accounts for a row whose numbers are at the end of the column.
func (b *VectorBuilder) added(valid bool) {
	appendValid(&b.column.Valid, valid, b.rows, b.room)
	b.rows++
}

// AppendNull implements Builder.
func (b *VectorBuilder) AppendNull() {
	b.column.Values = slices.Grow(b.column.Values, b.column.Dims)[:len(b.column.Values)+b.column.Dims]
	clear(b.column.Values[len(b.column.Values)-b.column.Dims:])
	b.added(false)
}

// AppendText implements Builder. It takes a list of as many numbers as a vector has, separated by commas, with or
// without brackets around them. Or it takes as many floats of 4 bytes each, little-endian.
func (b *VectorBuilder) AppendText(text []byte) bool {
	list := text
	if n := len(list); n >= 2 && list[0] == '[' && list[n-1] == ']' {
		list = list[1 : n-1]
	}
	if b.appendList(list) {
		return true
	}
	if len(text) != 4*b.column.Dims {
		return false
	}
	start := len(b.column.Values)
	for from := text; len(from) > 0; from = from[4:] {
		x := math.Float32frombits(binary.LittleEndian.Uint32(from))
		if notFinite(x) {
			b.column.Values = b.column.Values[:start]
			return false
		}
		b.column.Values = append(b.column.Values, x)
	}
	b.added(true)
	return true
}

// appendList adds a row with the numbers of a list. False means that the list is not a vector of the column's length,
// and that nothing was appended.
func (b *VectorBuilder) appendList(list []byte) bool {
	start := len(b.column.Values)
	for n := b.column.Dims; n > 0; n-- {
		item, rest, more := bytes.Cut(list, []byte(","))
		value, ok := ParseFloat(bytes.TrimSpace(item))
		x := float32(value)
		if !ok || notFinite(x) || more != (n > 1) {
			b.column.Values = b.column.Values[:start]
			return false
		}
		b.column.Values = append(b.column.Values, x)
		list = rest
	}
	b.added(true)
	return true
}

// AppendJSON implements Builder. It takes an array of as many numbers as a vector has.
func (b *VectorBuilder) AppendJSON(value []byte) bool {
	return isJSON(value, jsontext.KindBeginArray) && b.appendList(value[1:len(value)-1])
}

// AppendLast implements Builder.
func (b *VectorBuilder) AppendLast(dst []byte) []byte {
	for _, x := range b.column.at(b.rows - 1) {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// AppendBinary implements Builder.
func (b *VectorBuilder) AppendBinary(src []byte) (rest []byte) {
	for range b.column.Dims {
		b.column.Values = append(b.column.Values, math.Float32frombits(binary.LittleEndian.Uint32(src)))
		src = src[4:]
	}
	b.added(true)
	return src
}

// AppendAny implements Builder. It takes a []float32, and a []float64 whose numbers are rounded.
func (b *VectorBuilder) AppendAny(value any) bool {
	switch v := value.(type) {
	case nil:
		b.AppendNull()
		return true
	case []float32:
		return b.Append(v)
	case []float64:
		rounded := make([]float32, len(v))
		for i, x := range v {
			rounded[i] = float32(x)
		}
		return b.Append(rounded)
	}
	return false
}

// Len implements Builder.
func (b *VectorBuilder) Len() int { return b.rows }

// Column implements Builder. It returns a *VectorColumn.
func (b *VectorBuilder) Column() Column { return &b.column }
