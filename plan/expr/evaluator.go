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
	valid []uint64  // words of a mask; nil: no nulls. Bits past the end are undefined.
}

// An evaluator evaluates the expressions of one program. It is scratch memory: one
// call uses it at a time, and a pool keeps it for the next.
type evaluator struct {
	program program
	batch   *rowset.Batch
	bound   []binding
	regs    []*register // allocated as they are needed
}

func newEvaluator(p program) *evaluator {
	return &evaluator{program: p, bound: make([]binding, len(p))}
}

// registersKept is how many registers an idle evaluator keeps at most. An
// expression of ordinary shape takes two or three.
const registersKept = 16

func (ev *evaluator) begin(batch *rowset.Batch, params *Params) {
	ev.batch = batch
	bind(ev.program, ev.bound, batch, params)
}

// end drops the batch, so that an idle evaluator keeps none alive.
func (ev *evaluator) end() {
	ev.batch = nil
	clear(ev.bound)
	if len(ev.regs) > registersKept {
		ev.regs = nil
	}
}

// reg returns register i.
func (ev *evaluator) reg(i int) *register {
	for len(ev.regs) <= i {
		ev.regs = append(ev.regs, &register{vals: make([]float64, chunkRows)})
	}
	return ev.regs[i]
}

// eval computes instruction i for the rows of a chunk. The result is in dst or is
// a view of the batch. eval may overwrite registers from free on.
func (ev *evaluator) eval(i int32, c *chunk, dst *register, free int) vector {
	vals := dst.vals[:c.n]
	switch b := &ev.bound[i]; b.kind {
	case bindNull:
		clear(vals)
		clear(dst.valid[:c.words()])
		return vector{vals, dst.valid[:c.words()]}
	case bindScalar:
		fill(vals, b.value)
		return vector{vals: vals}
	case bindIDs:
		if c.rows == nil {
			convertIDs(vals, ev.batch.IDs[c.lo:c.lo+c.n])
		} else {
			gatherIDs(vals, ev.batch.IDs, c.rows)
		}
		return vector{vals: vals}
	case bindColumn:
		return readColumn(b.column, c, dst)
	default:
		i = b.at
	}

	switch in := &ev.program[i]; in.op {
	case opNeg:
		x := ev.eval(in.a, c, dst, free)
		negate(vals, x.vals)
		return vector{vals, x.valid}
	case opCoalesce:
		return ev.coalesce(in, c, dst, free)
	default:
		return ev.arithmetic(in, c, dst, free)
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
func (ev *evaluator) arithmetic(in *instruction, c *chunk, dst *register, free int) vector {
	vals := dst.vals[:c.n]
	if a := &ev.bound[in.a]; a.kind == bindScalar {
		y := ev.eval(in.b, c, dst, free)
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
	if b := &ev.bound[in.b]; b.kind == bindScalar {
		x := ev.eval(in.a, c, dst, free)
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
	// tree of n operations takes at most log2(n) registers, whatever its shape.
	var x, y vector
	if ev.program[in.a].need >= ev.program[in.b].need {
		x = ev.eval(in.a, c, dst, free)
		y = ev.eval(in.b, c, ev.reg(free), free+1)
	} else {
		y = ev.eval(in.b, c, dst, free)
		x = ev.eval(in.a, c, ev.reg(free), free+1)
	}
	switch in.op {
	case opAdd:
		addVector(vals, x.vals, y.vals)
	case opSub:
		subVector(vals, x.vals, y.vals)
	case opMul:
		mulVector(vals, x.vals, y.vals)
	}
	// The validity must move to dst, because the next operation reuses register free.
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

// coalesce computes a. It computes b only if a is null for some row of the chunk.
func (ev *evaluator) coalesce(in *instruction, c *chunk, dst *register, free int) vector {
	x := ev.eval(in.a, c, dst, free)
	if x.valid == nil || countValid(x.valid, c.n) == c.n {
		return vector{vals: x.vals}
	}
	// A scalar b needs no special case: filling a register costs little beside
	// choosing row by row.
	y := ev.eval(in.b, c, ev.reg(free), free+1)
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

// zeroed returns s with n elements, all zero.
func zeroed(s []uint8, n int) []uint8 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
