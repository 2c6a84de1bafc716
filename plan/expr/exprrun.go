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

// An evaluator runs one code. It is scratch memory: one call uses it at a time, and a pool keeps it for
// the next.
type evaluator struct {
	code   code
	stop   rowset.Stop // nil: never
	rows   rowset.RowSet
	params *Params
	bound  []binding
	regs   []*register // allocated as they are needed

	boundTests  []testBinding
	testsBound  int // of boundTests: the first ones
	boundLeaves []leafBinding
	ints        [2]*intRegister        // allocated as they are needed
	compacted   [compactLevels][]int32 // rows of compacted chunks, by level
	failed      error                  // of the condition of an if; rowset.ErrStopped or nil
	notes       []note                 // by part; only for Explain
}

func newEvaluator(c code) evaluator {
	return evaluator{
		code: c, bound: make([]binding, len(c.program)),
		boundTests: make([]testBinding, len(c.tests)), boundLeaves: make([]leafBinding, len(c.leaves)),
	}
}

// registersKept is how many registers an idle evaluator keeps at most. An
// expression of ordinary shape takes two or three.
const registersKept = 16

// begin binds the code for the active rows of in. It may leave failed behind.
func (ev *evaluator) begin(stop rowset.Stop, in rowset.RowSet, params *Params) {
	ev.stop, ev.rows, ev.params, ev.testsBound = stop, in, params, 0
	bind(ev.code.program, ev.bound, in.Batch, params)
	computed := false
	for i := range ev.code.leaves {
		l := &ev.code.leaves[i]
		ev.boundLeaves[i] = leafBinding{}
		if !l.computed {
			ev.boundLeaves[i] = bindLeaf(l, in.Batch, params)
		}
		computed = computed || l.computed
	}
	if computed {
		ev.bindTexts(in)
	}
	ev.bindTests(len(ev.code.tests))
}

// bindTests binds the first n tests.
func (ev *evaluator) bindTests(n int) {
	for ; ev.testsBound < n; ev.testsBound++ {
		ev.bindTest(&ev.code.tests[ev.testsBound], &ev.boundTests[ev.testsBound])
	}
}

// end drops the batch and the request, so that an idle evaluator keeps none alive.
func (ev *evaluator) end() {
	ev.stop, ev.rows, ev.params, ev.failed = nil, rowset.RowSet{}, nil, nil
	clear(ev.bound)
	clear(ev.boundLeaves)
	for i := range ev.boundTests {
		ev.boundTests[i].end()
	}
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
			convertInts(vals, ev.rows.Batch.IDs[c.lo:c.lo+c.n])
		} else {
			gatherInts(vals, ev.rows.Batch.IDs, c.rows)
		}
		return vector{vals: vals}
	case bindColumn:
		return readColumn(b.column, c, dst)
	case bindInts:
		column := ev.rows.Batch.Int(ev.code.program[b.at].key)
		if c.rows == nil {
			convertInts(vals, column.Values[c.lo:c.lo+c.n])
		} else {
			gatherInts(vals, column.Values, c.rows)
		}
		return vector{vals, readValid(column.Valid, c, dst)}
	case bindBools:
		column := ev.rows.Batch.Bool(ev.code.program[b.at].key)
		for i := range vals {
			vals[i] = float64(bit(column.Values.Get(int(c.row(i)))))
		}
		return vector{vals, readValid(column.Valid, c, dst)}
	default:
		i = b.at
	}

	in := &ev.code.program[i]
	var v vector
	switch in.op {
	case opCoalesce:
		return ev.coalesce(in, c, dst, free)
	case opIf:
		return ev.choose(in, c, dst, free)
	case opHash:
		return ev.hashed(in, c, dst, free)
	case opTable:
		return ev.looked(in, c, dst)
	case opLength:
		return ev.lengths(in, c, dst)
	case opVectors:
		v = ev.ofVectors(in, c, dst)
	case opClock:
		v = ev.eval(in.a, c, dst, free)
		for i, x := range v.vals {
			vals[i] = in.of.at(x, in.zone)
		}
		v.vals = vals
	case opProbe:
		v = ev.eval(in.a, c, dst, free)
		ev.notes[in.test] = note{reached: true, null: v.valid != nil && v.valid[0]&1 == 0, number: v.vals[0]}
		return v
	default:
		switch k := &in.of.kernel; {
		case k.two != nil:
			v = ev.ofTwo(in, c, dst, free)
		case k.one != nil:
			v = ev.eval(in.a, c, dst, free)
			k.one(vals, v.vals)
			v.vals = vals
		case k.four != nil:
			v = ev.ofFour(in, c, dst, free)
		default:
			v = ev.ofThree(in, c, dst, free)
		}
	}
	if in.checked && !allFinite(v.vals) {
		v.valid = keepFinite(&dst.valid, v.vals, v.valid)
	}
	return v
}

func readColumn(column *rowset.FloatColumn, c *chunk, dst *register) vector {
	v := vector{valid: readValid(column.Valid, c, dst)}
	if c.rows == nil {
		v.vals = column.Values[c.lo : c.lo+c.n]
	} else {
		v.vals = dst.vals[:c.n]
		gather(v.vals, column.Values, c.rows)
	}
	return v
}

// readValid returns the validity of a column for a chunk, as a view or in dst. valid has a bit per batch row.
func readValid(valid rowset.Bitmap, c *chunk, dst *register) []uint64 {
	switch {
	case valid == nil:
		return nil
	case c.rows == nil:
		return valid[c.lo/64:][:c.words()]
	}
	gatherBits(dst.valid[:c.words()], valid, c.rows)
	return dst.valid[:c.words()]
}

// ofTwo computes an operation of two operands. Neither is bound to null, and not both are scalars.
func (ev *evaluator) ofTwo(in *instruction, c *chunk, dst *register, free int) vector {
	vals, k := dst.vals[:c.n], &in.of.kernel
	if a := &ev.bound[in.a]; a.kind == bindScalar && k.before != nil {
		y := ev.eval(in.b, c, dst, free)
		k.before(vals, a.value, y.vals)
		return vector{vals, y.valid}
	}
	if b := &ev.bound[in.b]; b.kind == bindScalar && k.scalar != nil {
		x := ev.eval(in.a, c, dst, free)
		k.scalar(vals, x.vals, b.value)
		return vector{vals, x.valid}
	}

	// The side that needs more registers goes first, while all are free. So a tree of n such operations needs at most
	// log2(n) registers, whatever its shape.
	var x, y vector
	if ev.code.program[in.a].need >= ev.code.program[in.b].need {
		x = ev.eval(in.a, c, dst, free)
		y = ev.eval(in.b, c, ev.reg(free), free+1)
	} else {
		y = ev.eval(in.b, c, dst, free)
		x = ev.eval(in.a, c, ev.reg(free), free+1)
	}
	k.two(vals, x.vals, y.vals)
	return vector{vals, bothValid(dst, c, x.valid, y.valid)}
}

// bothValid returns the rows that are valid in both. The validity must move to dst, because the next
// operation reuses other registers.
func bothValid(dst *register, c *chunk, a, b []uint64) []uint64 {
	valid := dst.valid[:c.words()]
	switch {
	case a == nil && b == nil:
		return nil
	case b == nil:
		copy(valid, a)
	case a == nil:
		copy(valid, b)
	default:
		for k := range valid {
			valid[k] = a[k] & b[k]
		}
	}
	return valid
}

// ofThree computes an operation of three operands. None is bound to null, and not all are scalars.
func (ev *evaluator) ofThree(in *instruction, c *chunk, dst *register, free int) vector {
	vals, k := dst.vals[:c.n], &in.of.kernel
	x := ev.eval(in.a, c, dst, free)
	if b, c := &ev.bound[in.b], &ev.bound[in.c]; b.kind == bindScalar && c.kind == bindScalar && k.scalars != nil {
		k.scalars(vals, x.vals, b.value, c.value)
		return vector{vals, x.valid}
	}
	y := ev.eval(in.b, c, ev.reg(free), free+1)
	z := ev.eval(in.c, c, ev.reg(free+1), free+2)
	k.three(vals, x.vals, y.vals, z.vals)
	valid := bothValid(dst, c, x.valid, y.valid)
	return vector{vals, bothValid(dst, c, valid, z.valid)}
}

// ofFour computes an operation of four operands. None is bound to null, and not all are scalars.
func (ev *evaluator) ofFour(in *instruction, c *chunk, dst *register, free int) vector {
	x := ev.eval(in.a, c, dst, free)
	y := ev.eval(in.b, c, ev.reg(free), free+1)
	z := ev.eval(in.c, c, ev.reg(free+1), free+2)
	w := ev.eval(in.d, c, ev.reg(free+2), free+3)
	vals := dst.vals[:c.n]
	in.of.kernel.four(vals, x.vals, y.vals, z.vals, w.vals)
	valid := bothValid(dst, c, x.valid, y.valid)
	valid = bothValid(dst, c, valid, z.valid)
	return vector{vals, bothValid(dst, c, valid, w.valid)}
}

// choose computes an opIf. It computes an operand only if some row of the chunk chooses it.
func (ev *evaluator) choose(in *instruction, c *chunk, dst *register, free int) vector {
	var cond mask
	all := fullMask(c.n)
	if err := ev.test(in.test, c, &all, &cond, free); err != nil {
		ev.failed = err // nobody looks at the values now
	}
	switch countOnes(cond[:c.words()]) {
	case c.n:
		return ev.eval(in.a, c, dst, free)
	case 0:
		return ev.eval(in.b, c, dst, free)
	}
	x := ev.eval(in.a, c, dst, free)
	y := ev.eval(in.b, c, ev.reg(free), free+1)
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	for k := range valid {
		lo, hi := k*64, min(k*64+64, c.n)
		choose(vals[lo:hi], cond[k], x.vals[lo:hi], y.vals[lo:hi])
	}
	if x.valid == nil && y.valid == nil {
		return vector{vals: vals}
	}
	for k := range valid {
		left, right := ^uint64(0), ^uint64(0)
		if x.valid != nil {
			left = x.valid[k]
		}
		if y.valid != nil {
			right = y.valid[k]
		}
		valid[k] = cond[k]&left | ^cond[k]&right
	}
	return vector{vals, valid}
}

// coalesce computes a. It computes b only if a is null for some row of the chunk.
func (ev *evaluator) coalesce(in *instruction, c *chunk, dst *register, free int) vector {
	x := ev.eval(in.a, c, dst, free)
	if x.valid == nil || countValid(x.valid, c.n) == c.n {
		return vector{vals: x.vals}
	}
	// A scalar b needs no special case: filling a register costs little compared with choosing row by row.
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
