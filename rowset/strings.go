package rowset

import (
	"encoding/binary"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// NullCode is the code of a null in a StringColumn or a SetColumn.
const NullCode int32 = -1

// Dict is the list of distinct strings of a column. Immutable once built; any goroutine.
type Dict struct {
	Values []string
}

// bytes returns about how many bytes the strings take.
func (d *Dict) bytes() int {
	n := sizeOf(d.Values)
	for _, s := range d.Values {
		n += len(s)
	}
	return n
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

// KeyID implements Column.
func (c *StringColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*StringColumn) Type() registry.Type { return registry.String }

// Any implements Column.
func (c *StringColumn) Any(row int) any { return anyOf(c.Value(row)) }

// AppendJSON implements Column.
func (c *StringColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	code := c.Codes[row]
	if code < 0 {
		return dst, false
	}
	return jsondoc.AppendString(dst, c.Dict.Values[code]), true
}

// appendText appends a text behind its length.
func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// cutText returns the text at the start, as appendText has written it, and what follows.
func cutText(src []byte) (text, rest []byte) {
	n, at := uint64(src[0]), 1
	if n >= 0x80 { // Most texts are short.
		n, at = binary.Uvarint(src)
	}
	end := at + int(n)
	return src[at:end], src[end:]
}

func (*StringColumn) builder(m *Memory, key *registry.Key, rows int) Builder {
	return NewStringBuilderIn(m, key.ID, rows)
}

func (c *StringColumn) rowKeys(m *Memory, rs RowSet) (rowKeys, error) {
	return rowKeys{mapInts(m, rs, func(row int32) int64 { return int64(c.Codes[row]) }), codeValidity(rs, c.Codes)}, nil
}

func (c *StringColumn) check(n int) error {
	if c.Dict == nil && len(c.Codes) == n {
		return columnErrorf(c, "has no dictionary")
	}
	return checkLength(c, len(c.Codes), n, nil)
}
func (c *StringColumn) checkCodes() error { return checkCodes(c, c.Codes, len(c.Dict.Values)) }
func (c *StringColumn) validate() error   { return c.Dict.validate(c) }

func (c *StringColumn) bytes() int { return sizeOf(c.Codes) + c.Dict.bytes() }

func (c *StringColumn) shares(with Column) bool {
	o := with.(*StringColumn)
	return sameSlice(c.Codes, o.Codes) && c.Dict == o.Dict
}

func (c *StringColumn) clone() Column { return &StringColumn{c.Key, slices.Clone(c.Codes), c.Dict} }

func (c *StringColumn) firstChange(was Column, n int) int {
	o := was.(*StringColumn)
	return firstRow(n, func(row int) bool { return c.Codes[row] == o.Codes[row] })
}

// A StringBuilder builds one StringColumn and its dictionary row by row. A repeated
// value costs no allocation. NewStringBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type StringBuilder struct {
	column StringColumn
	dict   dictBuilder
}

// NewStringBuilder returns a builder with room for that many rows. It grows if there
// are more.
func NewStringBuilder(key registry.KeyID, rows int) *StringBuilder {
	return NewStringBuilderIn(nil, key, rows)
}

// NewStringBuilderIn is NewStringBuilder with room that m lends. A column of few rows is one allocation.
func NewStringBuilderIn(m *Memory, key registry.KeyID, rows int) *StringBuilder {
	switch {
	case rows == 1:
		one := new(struct {
			StringBuilder
			dict  Dict
			first [1]string
			codes [1]int32
		})
		return one.start(key, one.codes[:0], &one.dict, one.first[:0])
	case rows <= 4:
		few := new(struct {
			StringBuilder
			dict  Dict
			first [4]string
			codes [4]int32
		})
		return few.start(key, few.codes[:0], &few.dict, few.first[:0])
	}
	many := new(struct {
		StringBuilder
		dict  Dict
		first [4]string
		more  manyValues
	})
	b := many.start(key, m.Rows(rows)[:0], &many.dict, many.first[:0])
	many.more = manyValues{memory: m, rows: rows}
	b.dict.many = &many.more
	return b
}

// start gives b its memory.
func (b *StringBuilder) start(key registry.KeyID, codes []int32, dict *Dict, first []string) *StringBuilder {
	dict.Values = first
	b.column, b.dict = StringColumn{Key: key, Codes: codes, Dict: dict}, dictBuilder{dict: dict}
	return b
}

// Append adds a row. The caller may reuse value.
func (b *StringBuilder) Append(value []byte) {
	b.column.Codes = append(b.column.Codes, b.dict.internBytes(value))
}

// AppendNull implements Builder.
func (b *StringBuilder) AppendNull() { b.column.Codes = append(b.column.Codes, NullCode) }

// AppendText implements Builder.
func (b *StringBuilder) AppendText(text []byte) bool {
	b.Append(text)
	return true
}

// AppendJSON implements Builder.
func (b *StringBuilder) AppendJSON(value []byte) bool {
	if !isJSON(value, jsontext.KindString) {
		return false
	}
	var few [64]byte
	text, err := jsontext.AppendUnquote(few[:0], value) // An error: the string is no text in UTF-8.
	if err != nil {
		return false
	}
	b.Append(text)
	return true
}

// AppendLast implements Builder.
func (b *StringBuilder) AppendLast(dst []byte) []byte {
	return appendText(dst, b.column.Dict.Values[b.column.Codes[b.Len()-1]])
}

// AppendBinary implements Builder.
func (b *StringBuilder) AppendBinary(src []byte) (rest []byte) {
	text, rest := cutText(src)
	b.Append(text)
	return rest
}

// AppendAny implements Builder.
func (b *StringBuilder) AppendAny(value any) bool {
	switch v := value.(type) {
	case nil:
		b.AppendNull()
	case string:
		b.column.Codes = append(b.column.Codes, b.dict.intern(v))
	default:
		return false
	}
	return true
}

// Len implements Builder.
func (b *StringBuilder) Len() int { return len(b.column.Codes) }

// Column implements Builder. It returns a *StringColumn.
func (b *StringBuilder) Column() Column {
	if b.dict.many != nil {
		*b.dict.many = manyValues{} // The column keeps b, but must not keep its index.
	}
	return &b.column
}
