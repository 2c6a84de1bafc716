package expr

import (
	"math/bits"

	"github.com/rankd/rankd/rowset"
)

// A predMachine evaluates one predicate: scratch memory, used by one call at a
// time and then kept for another.
type predMachine struct {
	*machine
	tests  []test
	bound  []testBinding
	params *Params
	stop   rowset.Stop     // nil: never
	hits   []uint64        // the result, a bit per active row
	moved  [levels][]int32 // rows moved together, by chunk level
}

// A testBinding is what a leaf is for one batch and one request.
type testBinding struct {
	known bool // the same for all rows that reach it:
	value bool // this

	column *rowset.StringColumn // of testInStrings, testRegex
	// verdicts says by dictionary code what the leaf's answer is, as far as rows
	// have asked: each distinct string is looked at once. Empty until the first.
	verdicts []uint8
	matcher  *matcher // of testRegex; nil until the first row with a value
}

// The values of a verdict.
const (
	verdictNone uint8 = iota // not asked yet
	verdictFalse
	verdictTrue
)

func (m *predMachine) begin(stop rowset.Stop, batch *rowset.Batch, params *Params) {
	m.machine.begin(batch, params)
	m.params, m.stop = params, stop
	for i := range m.tests {
		m.bindTest(&m.tests[i], &m.bound[i])
	}
}

// bindTest finds what can be known of a leaf without looking at rows. What
// would be an error stays for the first row that reaches it.
func (m *predMachine) bindTest(t *test, out *testBinding) {
	out.known, out.value = false, false
	known := func(value bool) { out.known, out.value = true, value }
	switch t.op {
	case testConst:
		known(t.value)
	case testCmp:
		a, b := &m.machine.bound[t.a], &m.machine.bound[t.b]
		if a.kind == bindNull || b.kind == bindNull {
			known(false)
		} else if a.kind == bindScalar && b.kind == bindScalar {
			known(t.cmp.holds(a.value, b.value))
		}
	case testIsNull:
		if a := &m.machine.bound[t.a]; a.kind == bindNull {
			known(true)
		} else if a.neverNull() {
			known(false)
		}
	case testInNumbers:
		if a := &m.machine.bound[t.a]; a.kind == bindNull {
			known(false)
		} else if a.kind == bindScalar {
			known(t.numbers.contains(a.value))
		}
	case testInStrings, testRegex:
		out.column = m.batch.String(t.key)
		if out.column == nil {
			known(false)
		}
	}
	if out.known && t.negate {
		out.value = !out.value
	}
}

func (m *predMachine) end() {
	m.machine.end()
	m.params, m.stop = nil, nil
	for i := range m.bound {
		b := &m.bound[i]
		b.column, b.matcher, b.verdicts = nil, nil, b.verdicts[:0]
	}
}

// test finds those positions of in for which test i is true. out may be in.
// No position outside of in is looked at by a leaf that can fail. The error is an
// *EvalError or rowset.ErrStopped.
func (m *predMachine) test(i int32, c *chunk, in, out *mask) error {
	words := c.words()
	t, b := &m.tests[i], &m.bound[i]
	if b.known {
		if b.value {
			*out = *in
		} else {
			*out = mask{}
		}
		return nil
	}
	switch t.op {
	case testAnd:
		if err := m.test(t.a, c, in, out); err != nil {
			return err
		}
		return m.narrow(t.b, c, out, out)
	case testOr:
		var left, right mask
		if err := m.test(t.a, c, in, &left); err != nil {
			return err
		}
		for k := range words {
			right[k] = in[k] &^ left[k]
		}
		if err := m.narrow(t.b, c, &right, &right); err != nil {
			return err
		}
		for k := range words {
			out[k] = left[k] | right[k]
		}
		return nil
	}

	var answer mask
	switch t.op {
	case testCmp:
		m.compare(t, c, &answer)
	case testIsNull:
		if v := m.eval(t.a, c, m.reg(0), 1); v.valid != nil {
			for k := range words {
				answer[k] = ^v.valid[k]
			}
		}
	case testInNumbers:
		v := m.eval(t.a, c, m.reg(0), 1)
		memberOf(&answer, v.vals, t.numbers)
		answer.and(v.valid)
	case testInStrings, testRegex:
		if err := m.ask(t, b, c, in, &answer); err != nil {
			return err
		}
	case testFail:
		if anyOnes(in[:words]) {
			return &EvalError{Path: t.path, Err: ErrListOperand}
		}
	}
	flip := uint64(0)
	if t.negate {
		flip = ^uint64(0)
	}
	for k := range words {
		out[k] = in[k] & (answer[k] ^ flip)
	}
	return nil
}

// and clears the bits that are not valid. A nil valid clears none.
func (m *mask) and(valid []uint64) {
	for k, w := range valid {
		m[k] &= w
	}
}

// compare answers a testCmp.
func (m *predMachine) compare(t *test, c *chunk, answer *mask) {
	if a := &m.machine.bound[t.a]; a.kind == bindScalar {
		y := m.eval(t.b, c, m.reg(0), 1)
		compareScalar(answer, t.cmp.swapped(), y.vals, a.value)
		answer.and(y.valid)
		return
	}
	x := m.eval(t.a, c, m.reg(0), 1)
	if b := &m.machine.bound[t.b]; b.kind == bindScalar {
		compareScalar(answer, t.cmp, x.vals, b.value)
		answer.and(x.valid)
		return
	}
	y := m.eval(t.b, c, m.reg(1), 2)
	compareVector(answer, t.cmp, x.vals, y.vals)
	answer.and(x.valid)
	answer.and(y.valid)
}

// ask answers a leaf on strings, for the positions of in.
func (m *predMachine) ask(t *test, b *testBinding, c *chunk, in, answer *mask) error {
	codes := b.column.Codes
	for k, w := range in[:c.words()] {
		for ; w != 0; w &= w - 1 {
			pos := k*64 + bits.TrailingZeros64(w)
			code := codes[c.row(pos)]
			if code < 0 {
				continue
			}
			if len(b.verdicts) == 0 {
				b.verdicts = grown(b.verdicts, len(b.column.Dict.Values))
			}
			if b.verdicts[code] == verdictNone {
				ok, err := m.askOne(t, b, b.column.Dict.Values[code])
				if err != nil {
					return err
				}
				b.verdicts[code] = verdictFalse
				if ok {
					b.verdicts[code] = verdictTrue
				}
			}
			answer[k] |= bit(b.verdicts[code] == verdictTrue) << (uint(pos) % 64)
		}
	}
	return nil
}

// askOne answers a leaf on strings for one string. A match may take long, so each
// asks first whether the answer is still wanted; the error then is rowset.ErrStopped.
func (m *predMachine) askOne(t *test, b *testBinding, s string) (bool, error) {
	if t.op == testInStrings {
		_, ok := t.texts[s]
		return ok, nil
	}
	if m.stop != nil && m.stop.Cancelled() {
		return false, rowset.ErrStopped
	}
	if b.matcher == nil {
		matcher, err := t.pattern.matcher(m.params)
		if err != nil {
			return false, &EvalError{Path: t.path, Err: err}
		}
		b.matcher = matcher
	}
	return b.matcher.match(m.stop, s)
}

// Moving the rows of a chunk together pays when few are left of many: it costs
// about as much as one operation on the chunk.
const (
	moveRows  = 64                    // least size of a chunk that is worth it
	moveRatio = 4                     // chunk size by rows left, at least
	moveMax   = chunkRows / moveRatio // rows left, at most
	levels    = 3                     // 1024 -> 256 -> 64 -> 16 rows
)

// narrow is test for the second side of an and, or: when the first has left
// few positions, it moves these together and looks at nothing else.
func (m *predMachine) narrow(i int32, c *chunk, in, out *mask) error {
	words := c.words()
	left := countOnes(in[:words])
	if left == 0 {
		*out = mask{}
		return nil
	}
	if c.n < moveRows || left*moveRatio > c.n {
		return m.test(i, c, in, out)
	}

	rows := m.moved[c.level]
	if rows == nil {
		rows = make([]int32, moveMax)
		m.moved[c.level] = rows
	}
	j := 0
	for k, w := range in[:words] {
		for ; w != 0; w &= w - 1 {
			rows[j] = c.row(k*64 + bits.TrailingZeros64(w))
			j++
		}
	}
	moved := chunk{n: left, rows: rows[:left], level: c.level + 1}
	answer := fullMask(left)
	if err := m.test(i, &moved, &answer, &answer); err != nil {
		return err
	}
	j = 0
	for k, w := range in[:words] {
		hits := uint64(0)
		for ; w != 0; w &= w - 1 {
			lowest := w & -w
			hits |= lowest & -(answer[j/64] >> (uint(j) % 64) & 1)
			j++
		}
		out[k] = hits
	}
	return nil
}

// firstError returns the error of the first row of the chunk that has one.
// Tests go over the chunk leaf by leaf, so the error that stopped them may be
// of a later row than that of another leaf. Row by row there is no such doubt.
func (m *predMachine) firstError(root int32, c *chunk) error {
	for pos := range c.n {
		one := chunk{n: 1, rows: []int32{c.row(pos)}}
		in := fullMask(1)
		var out mask
		if err := m.test(root, &one, &in, &out); err != nil {
			return err
		}
	}
	panic("expr: an error of a chunk is of none of its rows")
}
