package rowset

import "github.com/rankd/rankd/registry"

// A StringBuilder builds one StringColumn and its dictionary row by row. A repeated
// value costs no allocation. NewStringBuilder makes one; the zero value is not ready.
// One goroutine at a time.
type StringBuilder struct {
	key   registry.KeyID
	codes []int32
	dict  dictBuilder
}

// NewStringBuilder returns a builder with room for that many rows. It grows if there
// are more.
func NewStringBuilder(key registry.KeyID, rows int) StringBuilder {
	return NewStringBuilderIn(nil, key, rows)
}

// NewStringBuilderIn is NewStringBuilder with room that m lends. A column of few rows is one allocation.
func NewStringBuilderIn(m *Memory, key registry.KeyID, rows int) StringBuilder {
	switch {
	case rows == 1:
		one := new(struct {
			dict  Dict
			first [1]string
			codes [1]int32
		})
		one.dict.Values = one.first[:0]
		return StringBuilder{key: key, codes: one.codes[:0], dict: dictBuilder{dict: &one.dict}}
	case rows <= 4:
		few := new(struct {
			dict  Dict
			first [4]string
			codes [4]int32
		})
		few.dict.Values = few.first[:0]
		return StringBuilder{key: key, codes: few.codes[:0], dict: dictBuilder{dict: &few.dict}}
	}
	return StringBuilder{key: key, codes: m.Rows(rows)[:0], dict: dictBuilder{dict: newDict()}}
}

// Append adds a row. The caller may reuse value.
func (b *StringBuilder) Append(value []byte) {
	b.codes = append(b.codes, b.dict.internBytes(value))
}

// AppendNull adds a null row.
func (b *StringBuilder) AppendNull() { b.codes = append(b.codes, NullCode) }

// Len returns the number of rows so far.
func (b *StringBuilder) Len() int { return len(b.codes) }

// Column returns the column. It is the last call on the builder.
func (b *StringBuilder) Column() StringColumn {
	return StringColumn{Key: b.key, Codes: b.codes, Dict: b.dict.dict}
}

// dictScanMax is the largest dictionary that is scanned for a value. Scanning so few
// short strings is as fast as hashing one. Most batches have a handful of values, so
// they need no map.
const dictScanMax = 12

// A dictBuilder grows a Dict and finds the code of a value. One goroutine at a time.
type dictBuilder struct {
	dict  *Dict
	index map[string]int32 // nil while there are at most dictScanMax values
}

// newDict returns an empty dictionary. It is one allocation with its first values.
func newDict() *Dict {
	block := new(struct {
		dict  Dict
		first [4]string
	})
	block.dict.Values = block.first[:0]
	return &block.dict
}

// newDictBuilder starts from values, which are distinct. It shares them until the
// first new value.
func newDictBuilder(values []string) dictBuilder {
	b := dictBuilder{dict: &Dict{Values: values[:len(values):len(values)]}}
	if len(values) > dictScanMax {
		b.buildIndex()
	}
	return b
}

// internBytes is intern for bytes. It allocates only for a new value.
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
