package expr

import (
	"math/bits"

	"github.com/rankd/rankd/rowset"
)

// A predEvaluator evaluates one predicate. It is scratch memory: one call uses it at a
// time, and a pool keeps it for the next.
type predEvaluator struct {
	*evaluator
	tests     []test
	bound     []testBinding
	params    *Params
	stop      rowset.Stop            // nil: never
	hits      []uint64               // the result, a bit per active row
	compacted [compactLevels][]int32 // rows of compacted chunks, by level
}

// A testBinding says how a leaf gets its value for one batch and one request.
type testBinding struct {
	known bool // all rows that reach the leaf have the same value
	value bool // if known

	column *rowset.StringColumn // of testInStrings, testRegex
	// verdicts holds the leaf's answer by dictionary code, so that each distinct string
	// is looked at once, when the first row asks. Empty until then.
	verdicts []uint8
	matcher  *matcher // of testRegex; nil until the first row with a value
}

// The values of a verdict.
const (
	verdictUnknown uint8 = iota // no row has asked
	verdictFalse
	verdictTrue
)

func (ev *predEvaluator) begin(stop rowset.Stop, batch *rowset.Batch, params *Params) {
	ev.evaluator.begin(batch, params)
	ev.params, ev.stop = params, stop
	for i := range ev.tests {
		ev.bindTest(&ev.tests[i], &ev.bound[i])
	}
}

// bindTest evaluates a leaf as far as possible without looking at rows. An error
// waits for the first row that reaches the leaf.
func (ev *predEvaluator) bindTest(t *test, out *testBinding) {
	out.known, out.value = false, false
	known := func(value bool) { out.known, out.value = true, value }
	switch t.op {
	case testConst:
		known(t.value)
	case testCmp:
		a, b := &ev.evaluator.bound[t.a], &ev.evaluator.bound[t.b]
		if a.kind == bindNull || b.kind == bindNull {
			known(false)
		} else if a.kind == bindScalar && b.kind == bindScalar {
			known(t.cmp.holds(a.value, b.value))
		}
	case testIsNull:
		if a := &ev.evaluator.bound[t.a]; a.kind == bindNull {
			known(true)
		} else if a.neverNull() {
			known(false)
		}
	case testInNumbers:
		if a := &ev.evaluator.bound[t.a]; a.kind == bindNull {
			known(false)
		} else if a.kind == bindScalar {
			known(t.numbers.contains(a.value))
		}
	case testInStrings, testRegex:
		out.column = ev.batch.String(t.key)
		if out.column == nil {
			known(false)
		}
	}
	if out.known && t.negate {
		out.value = !out.value
	}
}

func (ev *predEvaluator) end() {
	ev.evaluator.end()
	ev.params, ev.stop = nil, nil
	for i := range ev.bound {
		b := &ev.bound[i]
		b.column, b.matcher, b.verdicts = nil, nil, b.verdicts[:0]
	}
}

// test writes to out those positions of in for which test i is true. out may be in.
// A leaf that can fail looks at no position outside of in. The error is an *EvalError
// or rowset.ErrStopped.
func (ev *predEvaluator) test(i int32, c *chunk, in, out *mask) error {
	words := c.words()
	t, b := &ev.tests[i], &ev.bound[i]
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
		if err := ev.test(t.a, c, in, out); err != nil {
			return err
		}
		return ev.testCompacted(t.b, c, out, out)
	case testOr:
		var left, right mask
		if err := ev.test(t.a, c, in, &left); err != nil {
			return err
		}
		for k := range words {
			right[k] = in[k] &^ left[k]
		}
		if err := ev.testCompacted(t.b, c, &right, &right); err != nil {
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
		ev.compare(t, c, &answer)
	case testIsNull:
		if v := ev.eval(t.a, c, ev.reg(0), 1); v.valid != nil {
			for k := range words {
				answer[k] = ^v.valid[k]
			}
		}
	case testInNumbers:
		v := ev.eval(t.a, c, ev.reg(0), 1)
		memberOf(&answer, v.vals, t.numbers)
		answer.and(v.valid)
	case testInStrings, testRegex:
		if err := ev.testStrings(t, b, c, in, &answer); err != nil {
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

// and clears the bits that are not set in valid. A nil valid clears none.
func (m *mask) and(valid []uint64) {
	for k, w := range valid {
		m[k] &= w
	}
}

// compare answers a testCmp.
func (ev *predEvaluator) compare(t *test, c *chunk, answer *mask) {
	if a := &ev.evaluator.bound[t.a]; a.kind == bindScalar {
		y := ev.eval(t.b, c, ev.reg(0), 1)
		compareScalar(answer, t.cmp.swapped(), y.vals, a.value)
		answer.and(y.valid)
		return
	}
	x := ev.eval(t.a, c, ev.reg(0), 1)
	if b := &ev.evaluator.bound[t.b]; b.kind == bindScalar {
		compareScalar(answer, t.cmp, x.vals, b.value)
		answer.and(x.valid)
		return
	}
	y := ev.eval(t.b, c, ev.reg(1), 2)
	compareVector(answer, t.cmp, x.vals, y.vals)
	answer.and(x.valid)
	answer.and(y.valid)
}

// testStrings answers a leaf on strings, for the positions of in.
func (ev *predEvaluator) testStrings(t *test, b *testBinding, c *chunk, in, answer *mask) error {
	codes := b.column.Codes
	for k, w := range in[:c.words()] {
		for ; w != 0; w &= w - 1 {
			pos := k*64 + bits.TrailingZeros64(w)
			code := codes[c.row(pos)]
			if code < 0 {
				continue
			}
			if len(b.verdicts) == 0 {
				b.verdicts = zeroed(b.verdicts, len(b.column.Dict.Values))
			}
			if b.verdicts[code] == verdictUnknown {
				ok, err := ev.testString(t, b, b.column.Dict.Values[code])
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

// testString answers a leaf on strings for one string. A match may take long, so testString
// first asks whether to stop. The error then is rowset.ErrStopped.
func (ev *predEvaluator) testString(t *test, b *testBinding, s string) (bool, error) {
	if t.op == testInStrings {
		_, ok := t.texts[s]
		return ok, nil
	}
	if ev.stop != nil && ev.stop.Cancelled() {
		return false, rowset.ErrStopped
	}
	if b.matcher == nil {
		matcher, err := t.pattern.matcher(ev.params)
		if err != nil {
			return false, &EvalError{Path: t.path, Err: err}
		}
		b.matcher = matcher
	}
	return b.matcher.match(ev.stop, s)
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
func (ev *predEvaluator) testCompacted(i int32, c *chunk, in, out *mask) error {
	words := c.words()
	left := countOnes(in[:words])
	if left == 0 {
		*out = mask{}
		return nil
	}
	if c.n < compactMinRows || left*compactRatio > c.n {
		return ev.test(i, c, in, out)
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
	if err := ev.test(i, &moved, &answer, &answer); err != nil {
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
func (ev *predEvaluator) firstError(root int32, c *chunk) error {
	for pos := range c.n {
		one := chunk{n: 1, rows: []int32{c.row(pos)}}
		in := fullMask(1)
		var out mask
		if err := ev.test(root, &one, &in, &out); err != nil {
			return err
		}
	}
	panic("expr: a chunk fails, but none of its rows")
}
