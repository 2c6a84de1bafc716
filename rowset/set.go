package rowset

import (
	"slices"

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

// A SetBuilder builds one SetColumn row by row. NewSetBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type SetBuilder struct {
	key     registry.KeyID
	codes   []int32
	offsets []int32 // Invariant: its last element is at most len(members); the members after it are the next row's
	members []int32
	strings dictBuilder
}

// NewSetBuilder returns a builder with room for that many rows. It grows if there are more.
func NewSetBuilder(key registry.KeyID, rows int) SetBuilder {
	return SetBuilder{
		key: key, codes: make([]int32, 0, rows), offsets: append(make([]int32, 0, rows+1), 0), strings: dictBuilder{dict: newDict(), rows: rows},
	}
}

// Add adds a member to the set of the next row. A member that is there already counts once. The caller may
// reuse the bytes.
func (b *SetBuilder) Add(member []byte) {
	b.members = append(b.members, b.strings.internBytes(member))
}

// Append adds a row with the set of the members added since the row before.
func (b *SetBuilder) Append() {
	start := b.offsets[len(b.offsets)-1]
	slices.Sort(b.members[start:])
	b.members = b.members[:int(start)+len(slices.Compact(b.members[start:]))]
	b.codes = append(b.codes, int32(len(b.offsets)-1))
	b.offsets = append(b.offsets, int32(len(b.members)))
}

// AppendNull adds a null row. It gives up the members added since the row before.
func (b *SetBuilder) AppendNull() {
	b.members = b.members[:b.offsets[len(b.offsets)-1]]
	b.codes = append(b.codes, NullCode)
}

// Len returns the number of rows so far.
func (b *SetBuilder) Len() int { return len(b.codes) }

// Column returns the column. It is the last call on the builder.
func (b *SetBuilder) Column() SetColumn {
	return SetColumn{Key: b.key, Codes: b.codes, Dict: &SetDict{Offsets: b.offsets, Members: b.members, Strings: b.strings.dict}}
}
