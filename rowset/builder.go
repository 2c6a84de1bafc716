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
	return StringBuilder{key: key, codes: m.Rows(rows)[:0], dict: dictBuilder{dict: newDict(), memory: m, rows: rows}}
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
