package expr

import (
	"math"
	"time"

	"github.com/rankd/rankd/registry"
)

// opcode is an operation of an expression or a predicate.
type opcode uint8

const (
	opCompute opcode = iota // what the row function and the kernel of the operator compute
	opConst                 // value
	opNull                  // null
	opText                  // a constant string; only an operand of tests
	opKey                   // the column key, or the id
	opParam                 // the parameter param
	opNow                   // the request's arrival
	opAge
	opClock    // what the function clock of the operator says of the time a in zone
	opHash     // what the function draw of the operator says of a and b
	opVectors  // what the function vectors of the operator says of the leaves a and b
	opCoalesce // a, or b where a is null
	opTable    // what entries have for the leaf a
	opLength   // the length of the leaf a
	opConcat   // a string of two; a leaf
	opLower    // a string in lower case; a leaf
	opIf       // a where test is true, else b
	opProbe    // a, which is noted for the part test: see explain.go

	// Of predicates.
	opTruth
	opCmp
	opIsNull
	opNotNull
	opIn
	opMember
	opRegex
	opTexts // what the function texts of the operator says
	opAnd
	opOr
	opNot
)

// An instruction is one operation of a program. Its operands come before it.
type instruction struct {
	op      opcode
	need    uint8 // about how many registers it needs, like an Ershov number
	checked bool  // a result that is not finite is null
	a, b, c int32 // operands: indices of instructions
	d       int32
	test    int32 // opIf: index of the condition; opProbe: of the part
	value   float64
	key     registry.KeyID
	param   registry.ParamID
	zone    *time.Location
	entries *entries
	of      *Operator // of an operation with operands: its row and kernel
}

// code is one or more expressions in postfix order and the tests on them. Immutable once built; any goroutine.
type code struct {
	program []instruction
	tests   []test // operands come before their and, or
	leaves  []leaf // of the tests
}

// A compiler turns parsed trees into code.
type compiler struct {
	code
	parts map[*node]part // of the tree, for Explain: each has a probe, or is a leaf, and nothing is folded. Nil: no probes
}

// number appends an expression that is not an operand of another one, and returns the index of its last instruction.
func (c *compiler) number(n *node) int32 {
	if c.parts == nil {
		n = simplified(n)
	}
	return c.expr(n)
}

// simplified returns an expression of the same value, with constants folded.
func simplified(n *node) *node {
	if n.isText() {
		return n // a leaf
	}
	switch n.op.code {
	case opIf:
		then, other := simplified(n.args[1]), simplified(n.args[2])
		if cond := n.args[0]; cond.op.code == opTruth {
			if cond.truth {
				return then
			}
			return other
		}
		return &node{op: n.op, args: []*node{n.args[0], then, other}}
	case opCoalesce:
		a, b := simplified(n.args[0]), simplified(n.args[1])
		switch {
		case a.op.code == opConst || b.op.code == opNull:
			return a
		case a.op.code == opNull:
			return b
		}
		return &node{op: n.op, args: []*node{a, b}}
	}
	if len(n.args) == 0 {
		return n
	}
	switch n.op.code {
	case opTable, opLength:
		return n // Its operand is a leaf.
	case opHash:
		return n // hashOperand simplifies its operands after it has found those that are plain integers.
	}
	args, values, constant := make([]*node, len(n.args)), [4]float64{}, n.op.row != nil || n.op.four != nil
	for i, arg := range n.args {
		args[i] = simplified(arg)
		switch args[i].op.code {
		case opNull:
			return args[i]
		case opConst:
			values[i] = args[i].number
		default:
			constant = false
		}
	}
	if !constant {
		return &node{op: n.op, args: args}
	}
	value, ok := n.op.apply(values)
	if !ok {
		return &node{op: operatorNamed("const_null")}
	}
	return &node{op: operatorNamed("const_number"), number: value}
}

// apply returns the value for one row, or false for null. The operands are not null.
func (o *Operator) apply(x [4]float64) (float64, bool) {
	var value float64
	if o.four != nil {
		value = o.four(x[0], x[1], x[2], x[3])
	} else {
		value = o.row(x[0], x[1], x[2])
	}
	return value, !o.Typed || isFinite(value)
}

// expr appends an expression and returns the index of its last instruction.
func (c *compiler) expr(n *node) int32 {
	in := instruction{op: n.op.code, need: 1, value: n.number, key: n.key, param: n.param, of: n.op}
	args := n.args
	switch in.op {
	case opIf:
		in.test = c.pred(args[0], false)
		args = args[1:]
	case opAge:
		// The age of x is now - x, checked.
		in.op, in.of = opCompute, operatorNamed("sub")
		in.checked = true
		args = []*node{{op: operatorNamed("now")}, args[0]}
	case opClock:
		in.checked, in.zone = true, args[1].zone
		args = args[:1]
	case opTable:
		in.a, in.entries = c.leaf(args[0], args[0].typ), n.entries
		args = nil
	case opLength:
		in.a = c.leaf(args[0], String)
		args = nil
	case opVectors:
		in.checked, in.a = true, c.leaf(args[0], Vector)
		if len(args) > 1 {
			in.b = c.leaf(args[1], Vector)
		}
		args = nil
	case opHash:
		in.a, in.b = c.hashOperand(args[0], &in.need), c.hashOperand(args[1], &in.need)
		args = nil
	default:
		in.checked = n.op.Typed && len(args) > 0
	}
	for i, arg := range args {
		at := c.expr(arg)
		switch need := c.program[at].need; {
		case i == 0:
			in.a, in.need = at, need
		case i == 1:
			in.b = at
			if need > in.need {
				in.need = need
			} else if need == in.need {
				in.need = increased(need)
			}
		case i == 2:
			in.c = at
			in.need = max(in.need, increased(increased(need))) // the first two have their registers
		default:
			in.d = at
			in.need = max(in.need, increased(increased(increased(need))))
		}
	}
	at := c.instruction(in)
	if c.parts != nil {
		at = c.instruction(instruction{op: opProbe, need: in.need, a: at, test: c.part(n, at)})
	}
	return at
}

func (c *compiler) instruction(in instruction) int32 {
	c.program = append(c.program, in)
	return int32(len(c.program) - 1)
}

// increased returns need + 1, or the most that fits. A tree of operations with two operands needs the logarithm of
// its size; with three operands it needs twice its depth.
func increased(need uint8) uint8 { return need + uint8(bit(need < math.MaxUint8)) }
