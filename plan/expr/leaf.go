package expr

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A leaf is a value that is read exactly: an integer, a string, a set, a list or a vector. Or it is a string computed
// from others: see texts.go.
type leaf struct {
	op       opcode // opConst, opText, opKey or opParam; if computed opConcat, opLower, opIf, opCoalesce, or opCompute: the text of a number
	typ      Type
	key      registry.KeyID
	text     bool // opKey: the id, as a text
	param    registry.ParamID
	constant param // opConst, opText

	computed bool
	exact    bool  // opCompute: x is the leaf of an integer
	x, y     int32 // leaves; opCompute: x is an instruction unless it is exact
	test     int32 // opIf
	tests    int   // how many tests its operands may need
}

// leaf appends a leaf of that type and returns its index.
func (c *compiler) leaf(n *node, typ Type) int32 {
	if n.isText() {
		return c.text(n)
	}
	return c.addLeaf(n, leaf{
		op: n.op.code, typ: typ, key: n.key, text: n.textID, param: n.param, constant: param{typ: paramTypes[typ], bits: uint64(n.whole), text: n.text},
	})
}

// addLeaf appends a leaf and returns its index. n is its node; nil: the leaf is a number, which has a part of its
// own.
func (c *compiler) addLeaf(n *node, l leaf) int32 {
	c.leaves = append(c.leaves, l)
	at := int32(len(c.leaves) - 1)
	if c.parts != nil && n != nil {
		c.parts[n] = part{leaf: true, at: at}
	}
	return at
}

// A leafBinding is the value of a leaf for one batch and one request. kind says which field is used.
type leafBinding struct {
	kind    bindKind
	value   *param               // bindScalar
	ints    *rowset.IntColumn    // bindInts
	strings *rowset.StringColumn // bindColumn
	sets    *rowset.SetColumn    // bindColumn
	vectors *rowset.VectorColumn // bindColumn
}

// whole returns the integer of a scalar.
func (b *leafBinding) whole() int64 { return int64(b.value.bits) }

// bindLeaf looks a leaf up. A column of another type than the key's counts as missing.
func bindLeaf(l *leaf, batch *rowset.Batch, params *Params) leafBinding {
	switch l.op {
	case opNull:
		return leafBinding{kind: bindNull}
	case opConst, opText:
		return leafBinding{kind: bindScalar, value: &l.constant}
	case opParam:
		if v := params.get(l.param, paramTypes[l.typ]); v != nil {
			return leafBinding{kind: bindScalar, value: v}
		}
		return leafBinding{kind: bindNull}
	}
	switch l.typ {
	case Int:
		if l.key == registry.IDKey {
			return leafBinding{kind: bindIDs}
		}
		if c := batch.Int(l.key); c != nil {
			return leafBinding{kind: bindInts, ints: c}
		}
	case String:
		if l.text {
			return bindTextIDs(batch, params.IDs())
		}
		if c := batch.String(l.key); c != nil {
			return leafBinding{kind: bindColumn, strings: c}
		}
	case Strings:
		if c := batch.Set(l.key); c != nil {
			return leafBinding{kind: bindColumn, sets: c}
		}
	case Vector:
		if c := batch.Vector(l.key); c != nil {
			return leafBinding{kind: bindColumn, vectors: c}
		}
	}
	return leafBinding{kind: bindNull}
}

// bindTextIDs binds the ids as a column of strings.
func bindTextIDs(batch *rowset.Batch, ids *rowset.IDDict) leafBinding {
	if ids == nil {
		return leafBinding{kind: bindNull}
	}
	return leafBinding{kind: bindColumn, strings: ids.Texts().Column(batch.IDs)}
}

// paramTypes has the types of parameters by the types of leaves.
var paramTypes = [...]registry.Type{Int: registry.Int, String: registry.String, Ints: registry.IntList, Strings: registry.StringList, Predicate: 0, Vector: registry.Vector}

// readInts returns the integers of a leaf for the rows of a chunk, and which of them are not null (nil: all).
// The leaf has a column, or is the id. The slices are views of the batch or lie in that register.
func (ev *evaluator) readInts(b *leafBinding, c *chunk, register int) (vals []int64, valid []uint64) {
	column, nulls := ev.rows.Batch.IDs, rowset.Bitmap(nil)
	if b.kind == bindInts {
		column, nulls = b.ints.Values, b.ints.Valid
	}
	if c.rows == nil {
		vals = column[c.lo : c.lo+c.n]
		if nulls != nil {
			valid = nulls[c.lo/64:][:c.words()]
		}
		return vals, valid
	}
	scratch := ev.intRegister(register)
	vals = scratch.vals[:c.n]
	gather(vals, column, c.rows)
	if nulls != nil {
		valid = scratch.valid[:c.words()]
		gatherBits(valid, nulls, c.rows)
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
	case b.vectors != nil:
		for pos := range c.n {
			out[pos/64] |= bit(!b.vectors.Valid.Get(int(c.row(pos)))) << (uint(pos) % 64)
		}
		return
	case b.strings != nil:
		codes = b.strings.Places
	case b.sets != nil:
		codes = b.sets.Codes
	}
	for pos := range c.n {
		out[pos/64] |= bit(codes[c.row(pos)] < 0) << (uint(pos) % 64)
	}
}
