package expr

import "github.com/rankd/rankd/registry"

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

// A node is a parsed expression before program.add compiles it.
type node struct {
	op    opcode
	a, b  *node
	value float64
	key   registry.KeyID
	param registry.ParamID
}

// fold returns a simpler node of the same value if the operands of n are
// constants, otherwise n.
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

// arithmetic applies opAdd, opSub or opMul.
func arithmetic(op opcode, a, b float64) float64 {
	switch op {
	case opAdd:
		return a + b
	case opSub:
		return a - b
	case opMul:
		return a * b
	}
	panic("expr: not an arithmetic operation")
}

// An instruction is one operation of a program. Its operands come before it.
type instruction struct {
	op    opcode
	need  uint8 // most registers that computing it takes, like an Ershov number
	a, b  int32 // operands: indices of instructions
	value float64
	key   registry.KeyID
	param registry.ParamID
}

// A program is one or more expressions in postfix order. Immutable once built; any goroutine.
type program []instruction

// add appends an expression and returns the index of its last instruction.
func (p *program) add(n *node) int32 {
	in := instruction{op: n.op, need: 1, value: n.value, key: n.key, param: n.param}
	if n.a != nil {
		in.a = p.add(n.a)
		in.need = (*p)[in.a].need
	}
	if n.b != nil {
		in.b = p.add(n.b)
		if need := (*p)[in.b].need; need > in.need {
			in.need = need
		} else if need == in.need {
			in.need++ // at most the logarithm of the size: no overflow
		}
	}
	*p = append(*p, in)
	return int32(len(*p) - 1)
}
