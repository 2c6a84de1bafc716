package rowset

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// SetColumn is a column of sets of strings, each a code into a dictionary of sets. A row costs four
// bytes however large its set is, and rows of one set share it. An empty set is not a null.
// Immutable once built; any goroutine.
type SetColumn struct {
	Key   registry.KeyID
	Codes []int32 // one per row of the batch; NullCode or the number of a set of Dict
	Dict  *SetDict
}

// Set returns the members of a batch row's set as codes into Dict.Strings, or false if it is null.
func (c *SetColumn) Set(row int) ([]int32, bool) {
	set := c.Codes[row]
	if set < 0 {
		return nil, false
	}
	return c.Dict.Set(int(set)), true
}

// AppendValues appends the members of a batch row's set to dst, ascending by their bytes. False means that
// it is null.
func (c *SetColumn) AppendValues(dst []string, row int) ([]string, bool) {
	set, ok := c.Set(row)
	start := len(dst)
	for _, code := range set {
		dst = append(dst, c.Dict.Strings.Values[code])
	}
	slices.Sort(dst[start:])
	return dst, ok
}

// KeyID implements Column.
func (c *SetColumn) KeyID() registry.KeyID { return c.Key }

// Type implements Column.
func (*SetColumn) Type() registry.Type { return registry.StringSet }

// Any implements Column.
func (c *SetColumn) Any(row int) any { return anyOf(c.AppendValues([]string{}, row)) }

// AppendJSON implements Column.
func (c *SetColumn) AppendJSON(dst []byte, row int) ([]byte, bool) {
	var few [16]string
	members, ok := c.AppendValues(few[:0], row)
	if !ok {
		return dst, false
	}
	return jsondoc.AppendStrings(dst, members), true
}

func (*SetColumn) builder(m *Memory, key *registry.Key, rows int) Builder {
	b := NewSetBuilder(key.ID, 0)
	b.column.Codes, b.sets.Offsets = m.Rows(rows)[:0], append(m.Rows(rows + 1)[:0], 0)
	return b
}

func (c *SetColumn) rowKeys(*Memory, RowSet) (rowKeys, error) {
	return rowKeys{}, &KeyTypeError{Key: c.Key, Type: c.Type()}
}

func (c *SetColumn) check(n int) error {
	if (c.Dict == nil || c.Dict.Strings == nil) && len(c.Codes) == n {
		return columnErrorf(c, "has no dictionary")
	}
	return checkLength(c, len(c.Codes), n, nil)
}

func (c *SetColumn) checkCodes() error {
	if err := checkCodes(c, c.Codes, c.Dict.Len()); err != nil {
		return err
	}
	if !c.Dict.sound() {
		return columnErrorf(c, "has a set outside of its dictionary")
	}
	return nil
}

func (c *SetColumn) validate() error { return c.Dict.validate(c) }

func (c *SetColumn) bytes() int {
	return sizeOf(c.Codes) + sizeOf(c.Dict.Offsets) + sizeOf(c.Dict.Members) + c.Dict.Strings.bytes()
}

func (c *SetColumn) shares(with Column) bool {
	o := with.(*SetColumn)
	return sameSlice(c.Codes, o.Codes) && c.Dict == o.Dict
}

func (c *SetColumn) clone() Column { return &SetColumn{c.Key, slices.Clone(c.Codes), c.Dict} }

func (c *SetColumn) firstChange(was Column, n int) int {
	o := was.(*SetColumn)
	return firstRow(n, func(row int) bool { return c.Codes[row] == o.Codes[row] })
}

// SetDict is the list of sets of a column. Two of them may be equal. Immutable once built; any goroutine.
type SetDict struct {
	// Offsets has one element more than there are sets: set i is Members[Offsets[i]:Offsets[i+1]].
	Offsets []int32
	Members []int32 // codes into Strings, ascending and distinct within a set
	Strings *Dict
}

// Len returns the number of sets.
func (d *SetDict) Len() int { return max(len(d.Offsets)-1, 0) }

// Set returns the members of set i as codes into Strings, ascending.
func (d *SetDict) Set(i int) []int32 { return d.Members[d.Offsets[i]:d.Offsets[i+1]] }

// Has reports whether the string of that code is in set i.
func (d *SetDict) Has(i int, code int32) bool {
	_, found := slices.BinarySearch(d.Set(i), code)
	return found
}

// sound reports whether the sets are parts of the members, and the members codes of strings.
func (d *SetDict) sound() bool {
	last := int32(0)
	for _, offset := range d.Offsets {
		if offset < last || int(offset) > len(d.Members) {
			return false
		}
		last = offset
	}
	outside := func(code int32) bool { return uint32(code) >= uint32(len(d.Strings.Values)) }
	return !slices.ContainsFunc(d.Members, outside)
}

// A SetBuilder builds one SetColumn row by row. NewSetBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type SetBuilder struct {
	column SetColumn
	// sets grow. Invariant: the last offset is at most len(Members); the members after it are the next row's.
	sets    SetDict
	strings dictBuilder
}

// NewSetBuilder returns a builder with room for that many rows. It grows if there are more.
func NewSetBuilder(key registry.KeyID, rows int) *SetBuilder {
	b := &SetBuilder{
		column: SetColumn{Key: key, Codes: make([]int32, 0, rows)}, sets: SetDict{Offsets: append(make([]int32, 0, rows+1), 0)},
		strings: dictBuilder{dict: newDict(), many: &manyValues{rows: rows}},
	}
	b.column.Dict, b.sets.Strings = &b.sets, b.strings.dict
	return b
}

// Add adds a member to the set of the next row. A member that is there already counts once. The caller may
// reuse the bytes.
func (b *SetBuilder) Add(member []byte) {
	b.sets.Members = append(b.sets.Members, b.strings.internBytes(member))
}

// Append adds a row with the set of the members added since the row before.
func (b *SetBuilder) Append() {
	d := &b.sets
	start := d.Offsets[len(d.Offsets)-1]
	slices.Sort(d.Members[start:])
	d.Members = d.Members[:int(start)+len(slices.Compact(d.Members[start:]))]
	b.column.Codes = append(b.column.Codes, int32(d.Len()))
	d.Offsets = append(d.Offsets, int32(len(d.Members)))
}

// AppendNull implements Builder. It gives up the members added since the row before.
func (b *SetBuilder) AppendNull() {
	b.sets.Members = b.sets.Members[:b.sets.Offsets[b.sets.Len()]]
	b.column.Codes = append(b.column.Codes, NullCode)
}

// AppendText adds a row with the set that comes as text from outside: members with commas between them, or a JSON
// array of strings. Blanks around a member between commas do not count, nor do empty members, so an empty text is the
// empty set. If a text begins with "[" but is not such an array, ok is false and nothing is appended.
func (b *SetBuilder) AppendText(text []byte) (ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '[' {
		return b.appendArray(text)
	}
	for member := range bytes.SplitSeq(text, []byte{','}) {
		if member = bytes.TrimSpace(member); len(member) > 0 {
			b.Add(member)
		}
	}
	b.Append()
	return true
}

// AppendJSON implements Builder. It takes an array of strings.
func (b *SetBuilder) AppendJSON(value []byte) bool {
	return isJSON(value, jsontext.KindBeginArray) && b.appendArray(value)
}

func (b *SetBuilder) appendArray(text []byte) bool {
	array, err := jsondoc.Parse(text)
	if err != nil {
		return false
	}
	for i := range array.Items {
		if array.Items[i].Kind != jsondoc.String {
			return false
		}
	}
	for i := range array.Items {
		b.Add([]byte(array.Items[i].Str))
	}
	b.Append()
	return true
}

// AppendLast implements Builder.
func (b *SetBuilder) AppendLast(dst []byte) []byte {
	set, _ := b.column.Set(b.Len() - 1)
	dst = binary.AppendUvarint(dst, uint64(len(set)))
	for _, code := range set {
		dst = appendText(dst, b.sets.Strings.Values[code])
	}
	return dst
}

// AppendBinary implements Builder.
func (b *SetBuilder) AppendBinary(src []byte) (rest []byte) {
	n, at := binary.Uvarint(src)
	rest = src[at:]
	for range n {
		var member []byte
		member, rest = cutText(rest)
		b.Add(member)
	}
	b.Append()
	return rest
}

// AppendAny implements Builder.
func (b *SetBuilder) AppendAny(value any) bool {
	switch v := value.(type) {
	case nil:
		b.AppendNull()
	case []string:
		for _, member := range v {
			b.Add([]byte(member))
		}
		b.Append()
	default:
		return false
	}
	return true
}

// Len implements Builder.
func (b *SetBuilder) Len() int { return len(b.column.Codes) }

// Column implements Builder. It returns a *SetColumn.
func (b *SetBuilder) Column() Column {
	b.strings = dictBuilder{} // The column keeps b, and shall not keep its index.
	return &b.column
}
