package rowset

import "github.com/rankd/rankd/registry"

// A StringBuilder builds one StringColumn row by row, and its dictionary on
// the fly. A value seen before costs no allocation. The zero value is not
// ready; see NewStringBuilder. One goroutine at a time.
type StringBuilder struct {
	key   registry.KeyID
	codes []int32
	dict  dictBuilder
}

// NewStringBuilder returns a builder with room for that many rows; more may
// be appended.
func NewStringBuilder(key registry.KeyID, rows int) StringBuilder {
	return StringBuilder{key: key, codes: make([]int32, 0, rows), dict: newDictBuilder(nil)}
}

// Append adds a row. value is not kept.
func (b *StringBuilder) Append(value []byte) {
	b.codes = append(b.codes, b.dict.internBytes(value))
}

// AppendNull adds a null row.
func (b *StringBuilder) AppendNull() { b.codes = append(b.codes, NullCode) }

// Len returns the number of rows so far.
func (b *StringBuilder) Len() int { return len(b.codes) }

// Column returns the column. The builder must not be used afterwards.
func (b *StringBuilder) Column() StringColumn {
	return StringColumn{Key: b.key, Codes: b.codes, Dict: b.dict.dict}
}

// dictScanMax is the number of values up to which a dictionary is searched by
// scanning. Scanning so few short strings is no slower than hashing one, and
// the batches of most requests have a handful of values: they need no map.
const dictScanMax = 12

// A dictBuilder grows a Dict and finds the code of a value.
type dictBuilder struct {
	dict  *Dict
	index map[string]int32 // nil while there are at most dictScanMax values
}

// newDictBuilder starts from the given values, which are distinct and shared
// until the first new value.
func newDictBuilder(values []string) dictBuilder {
	if values == nil {
		// One allocation for the dictionary and its first values.
		block := new(struct {
			dict  Dict
			first [4]string
		})
		block.dict.Values = block.first[:0]
		return dictBuilder{dict: &block.dict}
	}
	b := dictBuilder{dict: &Dict{Values: values[:len(values):len(values)]}}
	if len(values) > dictScanMax {
		b.buildIndex()
	}
	return b
}

// internBytes is intern for a view of bytes; it allocates for new values only.
func (b *dictBuilder) internBytes(value []byte) int32 {
	if b.index != nil {
		if code, ok := b.index[string(value)]; ok {
			return code
		}
	} else {
		for code, s := range b.dict.Values {
			if s == string(value) {
				return int32(code)
			}
		}
	}
	return b.add(string(value))
}

// intern returns the code of a value, adding it if it is new.
func (b *dictBuilder) intern(value string) int32 {
	if b.index != nil {
		if code, ok := b.index[value]; ok {
			return code
		}
	} else {
		for code, s := range b.dict.Values {
			if s == value {
				return int32(code)
			}
		}
	}
	return b.add(value)
}

func (b *dictBuilder) add(value string) int32 {
	code := int32(len(b.dict.Values))
	b.dict.Values = append(b.dict.Values, value)
	switch {
	case b.index != nil:
		b.index[value] = code
	case len(b.dict.Values) > dictScanMax:
		b.buildIndex()
	}
	return code
}

func (b *dictBuilder) buildIndex() {
	b.index = make(map[string]int32, 2*len(b.dict.Values))
	for code, s := range b.dict.Values {
		b.index[s] = int32(code)
	}
}
