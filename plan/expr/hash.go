package expr

import (
	"math"

	"github.com/rankd/rankd/rowset"
)

// hashOf is the value of the operator hash: the upper 53 bits of rowset.HashInt as an integer.
func hashOf(h uint64) float64 { return float64(h >> 11) }

// hashed computes an opHash: the operator's draw function of rowset.HashInt. The integers for x and for the seed are
// in registers, as the bits of doubles.
func (ev *evaluator) hashed(in *instruction, c *chunk, dst *register, free int) vector {
	x := ev.hashInput(in.a, c, dst, free)
	seed := ev.hashInput(in.b, c, ev.reg(free), free+1)
	vals := dst.vals[:c.n]
	for i, v := range seed.vals {
		vals[i] = in.of.draw(rowset.HashInt(int64(math.Float64bits(x.vals[i])), int64(math.Float64bits(v))))
	}
	return vector{vals, bothValid(dst, c, x.valid, seed.valid)}
}

// hashInput returns the integers that represent an operand in a hash: for instruction at, or for the leaf -1-at.
func (ev *evaluator) hashInput(at int32, c *chunk, dst *register, free int) vector {
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	if at >= 0 {
		v := ev.eval(at, c, dst, free)
		if !allFinite(v.vals) {
			v.valid = keepFinite(&dst.valid, v.vals, v.valid)
		}
		for i, x := range v.vals {
			vals[i] = hashBits(rowset.NumberBits(x))
		}
		return vector{vals, v.valid}
	}
	l, b := &ev.code.leaves[-1-at], &ev.boundLeaves[-1-at]
	kind := b.kind
	if l.text && ev.params.IDs() == nil {
		kind = bindIDs // The ids of this request are integers.
	}
	switch kind {
	case bindScalar:
		x := b.whole()
		if l.typ == String {
			x = rowset.TextBits(b.value.text)
		}
		fill(vals, hashBits(x))
		return vector{vals: vals}
	case bindIDs, bindInts:
		column := ev.rows.Batch.IDs
		var nulls rowset.Bitmap
		if kind == bindInts {
			column, nulls = b.ints.Values, b.ints.Valid
		}
		for i := range vals {
			vals[i] = hashBits(column[c.row(i)])
		}
		return vector{vals, readValid(nulls, c, dst)}
	case bindColumn:
		clear(valid)
		for i := range vals {
			vals[i] = 0
			if text, ok := b.strings.Value(int(c.row(i))); ok {
				vals[i] = hashBits(rowset.TextBits(text))
				valid[i/64] |= 1 << (uint(i) % 64)
			}
		}
		return vector{vals, valid}
	}
	clear(vals)
	clear(valid)
	return vector{vals, valid}
}

// hashBits puts an integer into a register.
func hashBits(x int64) float64 { return math.Float64frombits(uint64(x)) }

// hashOperand compiles an operand of hash and random: a value that is read exactly becomes a leaf, anything else a
// number.
func (c *compiler) hashOperand(n *node, need *uint8) int32 {
	if n.typ == Int || n.typ == String {
		return -1 - c.leaf(n, n.typ)
	}
	at := c.number(n)
	*need = max(*need, increased(c.program[at].need))
	return at
}
