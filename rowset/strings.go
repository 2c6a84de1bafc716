package rowset

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// NullCode is the place of a null in a StringColumn, and its code in a SetColumn.
const NullCode int32 = -1

// StringColumn is a column of strings, each a place in a dictionary. Columns that move, join or reorder rows share the
// dictionary, or append the lists: strings themselves are neither copied nor looked at.
// Immutable once built; any goroutine.
type StringColumn struct {
	Key    registry.KeyID
	Places []int32 // one per row of the batch; NullCode or an index into Dict.Values. Rows of different places may have equal strings
	Dict   *Dict
}

// Value returns the string of a batch row, or false if it is null.
func (c *StringColumn) Value(row int) (string, bool) {
	place := c.Places[row]
	if place < 0 {
		return "", false
	}
	return c.Dict.Values[place], true
}

// Codes returns a code for each place that an active row of rs has: two of these rows have equal strings if and only if their codes
// are equal. A code is itself a place of the string. Nil says that each place is its own code. rs has the column's batch.
// The codes of all places stay with the dictionary, for all who have it; those of few rows, in a large dictionary, are made for this
// call, and m's.
func (c *StringColumn) Codes(m *Memory, rs RowSet) []int32 {
	d := c.Dict
	switch {
	case d.distinct:
		return nil
	case fits(len(d.Values), rs.N) || d.codes.Load() != nil:
		return d.all(m)
	}
	codes, index := m.Rows(len(d.Values)), newTextIndex(m, d.Values, rs.N)
	for pos := range rs.N {
		if place := c.Places[rs.Row(pos)]; place >= 0 {
			codes[place] = index.add(place)
		}
	}
	return codes
}

// CodeAt returns the code of a place, as Codes returns them, and NullCode for a null.
func CodeAt(codes []int32, place int32) int32 {
	if codes == nil || place < 0 {
		return place
	}
	return codes[place]
}

// KeyID implements Column.
func (c *StringColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*StringColumn) Type() registry.Type { return registry.String }

// Any implements Column.
func (c *StringColumn) Any(row int) any { return anyOf(c.Value(row)) }

// AppendJSON implements Column.
func (c *StringColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	text, ok := c.Value(row)
	if !ok {
		return dst, false
	}
	return jsondoc.AppendString(dst, text), true
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
	codes := c.Codes(m, rs)
	return c.keys(m, rs, func(place int32) int64 { return int64(CodeAt(codes, place)) }), nil
}

// keys returns what of gives for the places of the active rows.
func (c *StringColumn) keys(m *Memory, rs RowSet, of func(place int32) int64) rowKeys {
	return rowKeys{mapInts(m, rs, func(row int32) int64 { return of(c.Places[row]) }), codeValidity(rs, c.Places)}
}

func (c *StringColumn) check(n int) error {
	if c.Dict == nil && len(c.Places) == n {
		return columnErrorf(c, "has no dictionary")
	}
	return checkLength(c, len(c.Places), n, nil)
}
func (c *StringColumn) checkCodes() error { return checkCodes(c, c.Places, len(c.Dict.Values)) }
func (c *StringColumn) validate() error {
	if !c.Dict.distinct {
		return nil
	}
	return c.Dict.validate(c)
}

func (c *StringColumn) bytes() int { return sizeOf(c.Places) + c.Dict.bytes() }

func (c *StringColumn) shares(with Column) bool {
	o := with.(*StringColumn)
	return sameSlice(c.Places, o.Places) && c.Dict == o.Dict
}

func (c *StringColumn) clone() Column { return &StringColumn{c.Key, slices.Clone(c.Places), c.Dict} }

func (c *StringColumn) firstChange(was Column, n int) int {
	o := was.(*StringColumn)
	return firstRow(n, func(row int) bool { return c.Places[row] == o.Places[row] })
}

// A StringBuilder builds one StringColumn row by row. Equal values have one place as long as values repeat: then nobody has to
// make codes. Once nearly all differ it looks for long values alone, which would take more memory than finding them takes time. A profile of the
// feed from memory had a fifth of its samples in indexes of titles and names, which differ, and of which nobody compared most.
// NewStringBuilder makes one; the zero value is not ready. One goroutine at a time.
type StringBuilder struct {
	column StringColumn
	dict   dictBuilder
}

// longText is from how many bytes on a StringBuilder looks for each value, and lookMin how many values it has before it looks for no
// short one. Of 200 countries in any order 64 are there after some 77 rows.
const longText, lookMin = 128, 64

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
			dict   Dict
			first  [1]string
			places [1]int32
		})
		return one.start(key, one.places[:0], &one.dict, one.first[:0])
	case rows <= 4:
		few := new(struct {
			StringBuilder
			dict   Dict
			first  [4]string
			places [4]int32
		})
		return few.start(key, few.places[:0], &few.dict, few.first[:0])
	}
	many := new(struct {
		StringBuilder
		dict  Dict
		first [4]string
		more  manyValues
	})
	many.more.rows = rows
	b := many.start(key, m.Rows(rows)[:0], &many.dict, many.first[:0])
	b.dict.many = &many.more
	return b
}

// start gives b its memory.
func (b *StringBuilder) start(key registry.KeyID, places []int32, dict *Dict, first []string) *StringBuilder {
	dict.Values, dict.distinct = first, true
	b.column, b.dict = StringColumn{Key: key, Places: places, Dict: dict}, dictBuilder{dict: dict}
	return b
}

// Append adds a row. The caller may reuse value.
func (b *StringBuilder) Append(value []byte) {
	d, rows := b.column.Dict, len(b.column.Places)
	n, place := len(d.Values), int32(0)
	if n < lookMin || 16*n < 15*rows || len(value) >= longText {
		place = b.dict.internBytes(value)
	} else {
		d.distinct = false
		place = b.dict.append(b.dict.copy(value))
	}
	b.column.Places = append(b.column.Places, place)
}

// bytesOf returns the bytes of a string, for reading.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// AppendNull implements Builder.
func (b *StringBuilder) AppendNull() { b.column.Places = append(b.column.Places, NullCode) }

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
	return appendText(dst, b.column.Dict.Values[b.column.Places[b.Len()-1]])
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
		b.Append(bytesOf(v))
	default:
		return false
	}
	return true
}

// Len implements Builder.
func (b *StringBuilder) Len() int { return len(b.column.Places) }

// Column implements Builder. It returns a *StringColumn.
func (b *StringBuilder) Column() Column {
	b.dict = dictBuilder{} // The column keeps b, but must not keep its index.
	return &b.column
}
