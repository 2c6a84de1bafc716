package expr

import (
	"slices"

	"github.com/rankd/rankd/rowset"
)

// A register holds one intermediate result of a chunk.
type register struct {
	vals  []float64 // at least as many as the chunk has rows
	valid mask
}

// A vector is the value of an expression for a chunk, position by position.
type vector struct {
	vals  []float64 // undefined where invalid
	valid []uint64  // a mask's words; nil: no nulls. Bits past the end are undefined.
}

// A machine evaluates the expressions of one code. It is scratch memory, used
// by one call at a time and then kept for another.
type machine struct {
	code  code
	batch *rowset.Batch
	bound []binding
	regs  []*register // made as they are needed
}

func newMachine(c code) *machine { return &machine{code: c, bound: make([]binding, len(c))} }

// registersKept is how many registers a machine may have and still be kept for
// the next call. An expression of ordinary shape takes two or three.
const registersKept = 16

func (m *machine) begin(batch *rowset.Batch, params *Params) {
	m.batch = batch
	bind(m.code, m.bound, batch, params)
}

// end lets go of the batch, so that an idle machine keeps none alive.
func (m *machine) end() {
	m.batch = nil
	clear(m.bound)
	if len(m.regs) > registersKept {
		m.regs = nil
	}
}

// reg returns register i.
func (m *machine) reg(i int) *register {
	for len(m.regs) <= i {
		m.regs = append(m.regs, &register{vals: make([]float64, chunkRows)})
	}
	return m.regs[i]
}

// eval computes instruction i for the rows of a chunk. The result is in dst,
// or is a view of the batch. Registers from free on may be overwritten.
func (m *machine) eval(i int32, c *chunk, dst *register, free int) vector {
	vals := dst.vals[:c.n]
	switch b := &m.bound[i]; b.kind {
	case bindNull:
		clear(vals)
		clear(dst.valid[:c.words()])
		return vector{vals, dst.valid[:c.words()]}
	case bindScalar:
		fill(vals, b.value)
		return vector{vals: vals}
	case bindIDs:
		if c.rows == nil {
			convertIDs(vals, m.batch.IDs[c.lo:c.lo+c.n])
		} else {
			gatherIDs(vals, m.batch.IDs, c.rows)
		}
		return vector{vals: vals}
	case bindColumn:
		return readColumn(b.column, c, dst)
	default:
		i = b.at
	}

	switch in := &m.code[i]; in.op {
	case opNeg:
		x := m.eval(in.a, c, dst, free)
		negate(vals, x.vals)
		return vector{vals, x.valid}
	case opCoalesce:
		return m.coalesce(in, c, dst, free)
	default:
		return m.arithmetic(in, c, dst, free)
	}
}

func readColumn(column *rowset.FloatColumn, c *chunk, dst *register) vector {
	if c.rows == nil {
		v := vector{vals: column.Values[c.lo : c.lo+c.n]}
		if column.Valid != nil {
			v.valid = column.Valid[c.lo/64:][:c.words()]
		}
		return v
	}
	v := vector{vals: dst.vals[:c.n]}
	gatherValues(v.vals, column.Values, c.rows)
	if column.Valid != nil {
		v.valid = dst.valid[:c.words()]
		gatherBits(v.valid, column.Valid, c.rows)
	}
	return v
}

// arithmetic computes an addition, subtraction or multiplication. Neither side
// is bound to null, and not both are scalars.
func (m *machine) arithmetic(in *instr, c *chunk, dst *register, free int) vector {
	vals := dst.vals[:c.n]
	if a := &m.bound[in.a]; a.kind == bindScalar {
		y := m.eval(in.b, c, dst, free)
		switch in.op {
		case opAdd:
			addScalar(vals, y.vals, a.value)
		case opSub:
			subScalar(vals, a.value, y.vals)
		case opMul:
			mulScalar(vals, y.vals, a.value)
		}
		return vector{vals, y.valid}
	}
	if b := &m.bound[in.b]; b.kind == bindScalar {
		x := m.eval(in.a, c, dst, free)
		switch in.op {
		case opAdd:
			addScalar(vals, x.vals, b.value)
		case opSub:
			addScalar(vals, x.vals, -b.value)
		case opMul:
			mulScalar(vals, x.vals, b.value)
		}
		return vector{vals, x.valid}
	}

	// The side that takes more registers goes first, while all are free. So a
	// tree of n operations takes at most log2(n) registers, however lopsided.
	var x, y vector
	if m.code[in.a].need >= m.code[in.b].need {
		x = m.eval(in.a, c, dst, free)
		y = m.eval(in.b, c, m.reg(free), free+1)
	} else {
		y = m.eval(in.b, c, dst, free)
		x = m.eval(in.a, c, m.reg(free), free+1)
	}
	switch in.op {
	case opAdd:
		addVector(vals, x.vals, y.vals)
	case opSub:
		subVector(vals, x.vals, y.vals)
	case opMul:
		mulVector(vals, x.vals, y.vals)
	}
	// The validity must move to dst: the register free is about to be reused.
	valid := dst.valid[:c.words()]
	switch {
	case x.valid == nil && y.valid == nil:
		return vector{vals: vals}
	case y.valid == nil:
		copy(valid, x.valid)
	case x.valid == nil:
		copy(valid, y.valid)
	default:
		for k := range valid {
			valid[k] = x.valid[k] & y.valid[k]
		}
	}
	return vector{vals, valid}
}

// coalesce computes a, and b only if some row of the chunk has no a.
func (m *machine) coalesce(in *instr, c *chunk, dst *register, free int) vector {
	x := m.eval(in.a, c, dst, free)
	if x.valid == nil || countValid(x.valid, c.n) == c.n {
		return vector{vals: x.vals}
	}
	// A scalar b is no special case: to fill a register costs little beside the
	// choice row by row.
	y := m.eval(in.b, c, m.reg(free), free+1)
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	for k := range valid {
		lo, hi := k*64, min(k*64+64, c.n)
		has, a, b, out := x.valid[k], x.vals[lo:hi], y.vals[lo:hi], vals[lo:hi]
		switch has {
		case ^uint64(0):
			copy(out, a)
		case 0:
			copy(out, b)
		default:
			choose(out, has, a, b)
		}
		if y.valid != nil {
			valid[k] = has | y.valid[k]
		}
	}
	if y.valid == nil {
		return vector{vals: vals}
	}
	return vector{vals, valid}
}

// countValid counts the ones among the first n bits.
func countValid(valid []uint64, n int) int { return rowset.Bitmap(valid).Count(n) }

// grown returns s with n elements, all zero.
func grown(s []uint8, n int) []uint8 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
