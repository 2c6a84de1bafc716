package expr

import (
	"math/bits"
	"slices"
)

// A testBinding says how a test gets its value for one batch and one request.
type testBinding struct {
	known bool // all rows that reach the test have the same value
	value bool // if known

	// verdicts holds the answer by place in a dictionary of strings, or by code of one of sets, so that each
	// is looked at once, when the first row asks. Empty until then.
	verdicts []uint8
	codes    []int32  // of testRegex: the codes of the places, which verdicts has then
	matcher  *matcher // of testRegex; nil until the first row with a value
	lookups  *lookups // of tests that few plans have; nil until the first row of the first batch asks
}

// lookups find values of rows in a list of the request or in a dictionary. Each is empty until the first row asks.
type lookups struct {
	wholes  elements[int64]
	numbers elements[float64]
	texts   elements[string]
	// recoded has, by place of a string column, the code of the same string in the dictionary of a set column, or -1.
	recoded []int32
}

// look returns the lookups of a test.
func (b *testBinding) look() *lookups {
	if b.lookups == nil {
		b.lookups = new(lookups)
	}
	return b.lookups
}

func (b *testBinding) end() {
	b.verdicts, b.codes, b.matcher = b.verdicts[:0], nil, nil
	if b.lookups != nil {
		*b.lookups = lookups{}
	}
}

// The values of a verdict.
const (
	verdictUnknown uint8 = iota // no row has asked
	verdictFalse
	verdictTrue
)

// bindTest evaluates a test as far as possible without looking at rows. An error
// waits for the first row that reaches it.
func (ev *evaluator) bindTest(t *test, out *testBinding) {
	out.known, out.value = false, false
	known := func(value bool) { out.known, out.value = true, value }
	switch t.op {
	case testConst:
		known(t.value)
	case testCmp:
		a, b := &ev.bound[t.a], &ev.bound[t.b]
		if a.kind == bindNull || b.kind == bindNull {
			known(false)
		} else if a.kind == bindScalar && b.kind == bindScalar {
			known(holds(t.cmp, a.value, b.value))
		}
	case testIsNull:
		if a := &ev.bound[t.a]; a.kind == bindNull {
			known(true)
		} else if a.neverNull() {
			known(false)
		}
	case testInNumbers:
		if a := &ev.bound[t.a]; a.kind == bindNull {
			known(false)
		} else if a.kind == bindScalar {
			known(t.numbers.contains(a.value))
		}
	case testNumberMember:
		unset := ev.boundLeaves[t.y].kind == bindNull && ev.notes == nil // an explanation has the value that was not found
		if unset || ev.bound[t.a].kind == bindNull {
			known(false)
		}
	case testAnd, testOr, testFail, testProbe:
	default:
		ev.bindLeafTest(t, known)
	}
	if out.known && t.negate {
		out.value = !out.value
	}
}

// bindLeafTest is bindTest for tests of leaves.
func (ev *evaluator) bindLeafTest(t *test, known func(bool)) {
	x := &ev.boundLeaves[t.x]
	switch {
	case t.op == testIsNullLeaf:
		if x.kind == bindNull || x.kind == bindScalar {
			known(x.kind == bindNull)
		}
		return
	case x.kind == bindNull:
		known(false)
		return
	}
	switch t.op {
	case testInInts:
		if x.kind == bindScalar {
			known(t.wholes.contains(x.whole()))
		}
	case testInStrings:
		if x.kind == bindScalar {
			_, ok := t.texts[x.value.text]
			known(ok)
		}
	case testCmpInts, testCmpStrings, testIntMember, testStringMember, testTexts:
		y := &ev.boundLeaves[t.y]
		scalars := x.kind == bindScalar && y.kind == bindScalar
		switch {
		case y.kind == bindNull:
			known(false)
		case scalars && t.op == testCmpInts:
			known(holds(t.cmp, x.whole(), y.whole()))
		case scalars && t.op == testCmpStrings:
			known((x.value.text == y.value.text) == (t.cmp == cmpEq))
		case scalars && t.op == testTexts:
			known(t.holds(x.value.text, y.value.text))
		case scalars && t.op == testIntMember:
			known(slices.Contains(y.value.ints, x.whole()))
		case scalars:
			known(slices.Contains(y.value.strings, x.value.text))
		}
	}
}

// test writes to out those positions of in for which test i is true. out may be in.
// A leaf that can fail looks at no position outside of in. The error is an *EvalError
// or rowset.ErrStopped. test may overwrite registers from free on.
func (ev *evaluator) test(i int32, c *chunk, in, out *mask, free int) error {
	words := c.words()
	t, b := &ev.code.tests[i], &ev.boundTests[i]
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
		if err := ev.test(t.a, c, in, out, free); err != nil {
			return err
		}
		return ev.testCompacted(t.b, c, out, out, free)
	case testOr:
		var left, right mask
		if err := ev.test(t.a, c, in, &left, free); err != nil {
			return err
		}
		for k := range words {
			right[k] = in[k] &^ left[k]
		}
		if err := ev.testCompacted(t.b, c, &right, &right, free); err != nil {
			return err
		}
		for k := range words {
			out[k] = left[k] | right[k]
		}
		return nil
	case testProbe:
		err := ev.test(t.a, c, in, out, free)
		ev.notes[t.x] = note{reached: true, truth: out[0]&1 == 1 != t.negate, err: err}
		return err
	}

	var answer mask
	switch t.op {
	case testCmp:
		ev.compare(t, c, &answer, free)
	case testIsNull:
		if v := ev.eval(t.a, c, ev.reg(free), free+1); v.valid != nil {
			for k := range words {
				answer[k] = ^v.valid[k]
			}
		}
	case testInNumbers:
		v := ev.eval(t.a, c, ev.reg(free), free+1)
		memberOf(&answer, v.vals, &t.numbers)
		answer.and(v.valid)
	case testNumberMember:
		v := ev.eval(t.a, c, ev.reg(free), free+1)
		memberOf(&answer, v.vals, b.look().numberList(&ev.boundLeaves[t.y]))
		answer.and(v.valid)
	case testFail:
		if anyOnes(in[:words]) {
			ev.eval(t.a, c, ev.reg(free), free+1)
			return &EvalError{Path: t.path, Err: ErrListOperand}
		}
	default:
		if err := ev.testLeaves(t, b, c, in, &answer); err != nil {
			return err
		}
	}
	if ev.failed != nil { // the condition of an if inside
		return ev.failed
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

// and clears the bits that are not set in valid. A nil valid clears none.
func (m *mask) and(valid []uint64) {
	for k, w := range valid {
		m[k] &= w
	}
}

// compare answers a testCmp.
func (ev *evaluator) compare(t *test, c *chunk, answer *mask, free int) {
	if a := &ev.bound[t.a]; a.kind == bindScalar {
		y := ev.eval(t.b, c, ev.reg(free), free+1)
		compareScalar(answer, t.cmp.swapped(), y.vals, a.value)
		answer.and(y.valid)
		return
	}
	x := ev.eval(t.a, c, ev.reg(free), free+1)
	if b := &ev.bound[t.b]; b.kind == bindScalar {
		compareScalar(answer, t.cmp, x.vals, b.value)
		answer.and(x.valid)
		return
	}
	y := ev.eval(t.b, c, ev.reg(free+1), free+2)
	compareVector(answer, t.cmp, x.vals, y.vals)
	answer.and(x.valid)
	answer.and(y.valid)
}

// Compacting the rows of a chunk costs about as much as one operation on the chunk, so it
// pays when few of many rows are left.
const (
	compactMinRows = 64                       // smallest chunk that is compacted
	compactRatio   = 4                        // least chunk size by rows left
	compactMaxRows = chunkRows / compactRatio // most rows left
	compactLevels  = 3                        // 1024 -> 256 -> 64 -> 16 rows
)

// testCompacted is test for the second side of an and or an or. If the first side left few
// positions, it moves these together and looks at nothing else.
func (ev *evaluator) testCompacted(i int32, c *chunk, in, out *mask, free int) error {
	words := c.words()
	left := countOnes(in[:words])
	if left == 0 {
		*out = mask{}
		return nil
	}
	if c.n < compactMinRows || left*compactRatio > c.n {
		return ev.test(i, c, in, out, free)
	}

	rows := ev.compacted[c.level]
	if rows == nil {
		rows = make([]int32, compactMaxRows)
		ev.compacted[c.level] = rows
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
	if err := ev.test(i, &moved, &answer, &answer, free); err != nil {
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

// firstError returns the error of the first row of the chunk that has one. test goes
// over the chunk leaf by leaf, so it may meet the error of a later row first. firstError
// therefore tests row by row.
func (ev *evaluator) firstError(root int32, c *chunk) error {
	for pos := range c.n {
		one := chunk{n: 1, rows: []int32{c.row(pos)}}
		in := fullMask(1)
		var out mask
		if err := ev.test(root, &one, &in, &out, 0); err != nil {
			return err
		}
	}
	panic("expr: a chunk fails, but none of its rows")
}
