package expr

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// opcode is an operation of an expression.
type opcode uint8

const (
	opConst    opcode = iota // value
	opNull                   // null
	opKey                    // the column key, or the id
	opParam                  // the parameter param
	opNeg                    // -a
	opAdd                    // a + b
	opSub                    // a - b
	opMul                    // a * b
	opCoalesce               // a, or b where a is null
)

// A node is an expression as parsed, until it is added to a code.
type node struct {
	op    opcode
	a, b  *node
	value float64
	key   registry.KeyID
	param registry.ParamID
}

// fold returns a simpler node of the same value if the operands of n are
// constants.
func fold(n *node) *node {
	a, b := n.a, n.b
	switch {
	case n.op == opCoalesce:
		switch a.op {
		case opNull:
			return b
		case opConst:
			return a
		}
		if b.op == opNull {
			return a
		}
	case a.op == opNull || b != nil && b.op == opNull:
		return &node{op: opNull}
	case n.op == opNeg && a.op == opConst:
		return &node{op: opConst, value: -a.value}
	case b != nil && a.op == opConst && b.op == opConst:
		return &node{op: opConst, value: arithmetic(n.op, a.value, b.value)}
	}
	return n
}

// arithmetic is the meaning of opAdd, opSub and opMul.
func arithmetic(op opcode, a, b float64) float64 {
	switch op {
	case opAdd:
		return a + b
	case opSub:
		return a - b
	case opMul:
		return a * b
	}
	panic("expr: no arithmetic operation")
}

// An instr is one operation of a code. Its operands come before it.
type instr struct {
	op    opcode
	need  uint8 // registers that computing it takes at most, like an Ershov number
	a, b  int32 // instructions
	value float64
	key   registry.KeyID
	param registry.ParamID
}

// A code is one or more expressions in postfix order. Immutable once built.
type code []instr

// add appends an expression and returns the index of its last instruction.
func (c *code) add(n *node) int32 {
	in := instr{op: n.op, need: 1, value: n.value, key: n.key, param: n.param}
	if n.a != nil {
		in.a = c.add(n.a)
		in.need = (*c)[in.a].need
	}
	if n.b != nil {
		in.b = c.add(n.b)
		if need := (*c)[in.b].need; need > in.need {
			in.need = need
		} else if need == in.need {
			in.need++ // at most the logarithm of the size: no overflow
		}
	}
	*c = append(*c, in)
	return int32(len(*c) - 1)
}

// bindKind says what an instruction is for one batch and one request.
type bindKind uint8

const (
	bindNull    bindKind = iota // null for all rows
	bindScalar                  // the same value for all rows
	bindIDs                     // the ids
	bindColumn                  // a column as it stands
	bindCompute                 // to be computed row by row
)

// A binding is the value of an instruction for one batch and one request.
type binding struct {
	kind   bindKind
	at     int32   // bindCompute: the instruction that computes it
	value  float64 // bindScalar
	column *rowset.FloatColumn
}

// neverNull reports whether no row can be null.
func (b *binding) neverNull() bool {
	switch b.kind {
	case bindScalar, bindIDs:
		return true
	case bindColumn:
		return b.column.Valid == nil
	}
	return false
}

// bind works out every instruction as far as it goes without looking at rows.
func bind(c code, bound []binding, batch *rowset.Batch, params *Params) {
	for i := range c {
		in := &c[i]
		out := &bound[i]
		switch in.op {
		case opConst:
			*out = binding{kind: bindScalar, value: in.value}
		case opNull:
			*out = binding{kind: bindNull}
		case opKey:
			*out = bindKey(in.key, batch)
		case opParam:
			if v, ok := params.Float(in.param); ok {
				*out = binding{kind: bindScalar, value: v}
			} else {
				*out = binding{kind: bindNull}
			}
		case opNeg:
			*out = binding{kind: bindCompute, at: int32(i)}
			switch a := &bound[in.a]; a.kind {
			case bindNull:
				*out = *a
			case bindScalar:
				*out = binding{kind: bindScalar, value: -a.value}
			}
		case opCoalesce:
			a, b := &bound[in.a], &bound[in.b]
			switch {
			case a.neverNull() || b.kind == bindNull:
				*out = *a
			case a.kind == bindNull:
				*out = *b
			default:
				*out = binding{kind: bindCompute, at: int32(i)}
			}
		default:
			a, b := &bound[in.a], &bound[in.b]
			switch {
			case a.kind == bindNull || b.kind == bindNull:
				*out = binding{kind: bindNull}
			case a.kind == bindScalar && b.kind == bindScalar:
				*out = binding{kind: bindScalar, value: arithmetic(in.op, a.value, b.value)}
			default:
				*out = binding{kind: bindCompute, at: int32(i)}
			}
		}
	}
}

func bindKey(key registry.KeyID, batch *rowset.Batch) binding {
	if key == registry.IDKey {
		return binding{kind: bindIDs}
	}
	if c := batch.Float(key); c != nil {
		return binding{kind: bindColumn, column: c}
	}
	return binding{kind: bindNull}
}
