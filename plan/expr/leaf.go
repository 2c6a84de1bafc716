package expr

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A leaf is a value that tests read as it stands, and exactly: an integer, a string, a set or a list.
type leaf struct {
	op    opcode // opConst, opText, opKey or opParam
	typ   Type
	key   registry.KeyID
	param registry.ParamID
	whole int64
	text  string
}

// leaf appends a leaf and returns its index.
func (c *compiler) leaf(n *node) int32 {
	c.leaves = append(c.leaves, leaf{op: n.op.code, typ: n.typ, key: n.key, param: n.param, whole: n.whole, text: n.text})
	return int32(len(c.leaves) - 1)
}

// A leafBinding is the value of a leaf for one batch and one request. kind says which fields count.
type leafBinding struct {
	kind  bindKind
	whole int64    // bindScalar
	text  string   // bindScalar
	ints  []int64  // bindScalar: a list; bindInts: by batch row
	texts []string // bindScalar: a list

	valid   rowset.Bitmap        // bindInts; nil: no nulls
	strings *rowset.StringColumn // bindColumn
	sets    *rowset.SetColumn    // bindColumn
}

// bindLeaf looks a leaf up. A column of another type than the key's is as good as none.
func bindLeaf(l *leaf, batch *rowset.Batch, params *Params) leafBinding {
	switch l.op {
	case opConst, opText:
		return leafBinding{kind: bindScalar, whole: l.whole, text: l.text}
	case opParam:
		b, ok := leafBinding{kind: bindScalar}, false
		switch l.typ {
		case Int:
			b.whole, ok = params.Int(l.param)
		case String:
			b.text, ok = params.String(l.param)
		case Ints:
			b.ints, ok = params.IntList(l.param)
		case Strings:
			b.texts, ok = params.StringList(l.param)
		}
		if ok {
			return b
		}
		return leafBinding{kind: bindNull}
	}
	switch l.typ {
	case Int:
		if l.key == registry.IDKey {
			return leafBinding{kind: bindInts, ints: batch.IDs}
		}
		if c := batch.Int(l.key); c != nil {
			return leafBinding{kind: bindInts, ints: c.Values, valid: c.Valid}
		}
	case String:
		if c := batch.String(l.key); c != nil {
			return leafBinding{kind: bindColumn, strings: c}
		}
	case Strings:
		if c := batch.Set(l.key); c != nil {
			return leafBinding{kind: bindColumn, sets: c}
		}
	}
	return leafBinding{kind: bindNull}
}

// readInts returns the integers of a leaf for the rows of a chunk, and which of them are not null (nil: all).
// The leaf has a column, or is the id. The slices are views of the batch or lie in scratch.
func (b *leafBinding) readInts(c *chunk, scratch *intRegister) (vals []int64, valid []uint64) {
	if c.rows == nil {
		vals = b.ints[c.lo : c.lo+c.n]
		if b.valid != nil {
			valid = b.valid[c.lo/64:][:c.words()]
		}
		return vals, valid
	}
	vals = scratch.vals[:c.n]
	gather(vals, b.ints, c.rows)
	if b.valid != nil {
		valid = scratch.valid[:c.words()]
		gatherBits(valid, b.valid, c.rows)
	}
	return vals, valid
}

// An intRegister holds the integers of a chunk.
type intRegister struct {
	vals  [chunkRows]int64
	valid mask
}

// nullBits sets bit i of out if the leaf is null in row i of the chunk. The leaf has a column.
func (b *leafBinding) nullBits(c *chunk, out *mask) {
	var codes []int32
	switch {
	case b.strings != nil:
		codes = b.strings.Codes
	case b.sets != nil:
		codes = b.sets.Codes
	}
	for pos := range c.n {
		out[pos/64] |= bit(codes[c.row(pos)] < 0) << (uint(pos) % 64)
	}
}
