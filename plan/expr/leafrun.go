package expr

import (
	"math/bits"
	"slices"

	"github.com/rankd/rankd/rowset"
)

// Tests on strings and sets take longer than arithmetic: each row reads a place or a code, and then the dictionary entry
// there. Where the test allows it, a string or a member is compared once for each.

// testLeaves answers a test on integers, strings, sets or lists, at least for the positions of in. The leaf x
// has a column, or y has.
func (ev *evaluator) testLeaves(t *test, b *testBinding, c *chunk, in, answer *mask) error {
	x, y := &ev.boundLeaves[t.x], &ev.boundLeaves[t.y]
	switch t.op {
	case testCmpInts:
		ev.compareInts(t.cmp, x, y, c, answer)
	case testInInts:
		vals, valid := ev.readInts(x, c, 0)
		memberOf(answer, vals, &t.wholes)
		answer.and(valid)
	case testIntMember:
		vals, valid := ev.readInts(x, c, 0)
		memberOf(answer, vals, b.look().intList(y))
		answer.and(valid)
	case testIsNullLeaf:
		x.nullBits(c, answer)
	case testCmpStrings:
		switch {
		case x.kind == bindColumn && y.kind == bindColumn:
			testPairs(func(a, b string) bool { return (a == b) == (t.cmp == cmpEq) }, x.strings, y.strings, c, in, answer)
		case x.kind == bindColumn:
			return ev.testStrings(t, b, x.strings, c, in, answer)
		default:
			return ev.testStrings(t, b, y.strings, c, in, answer)
		}
	case testTexts:
		switch {
		case x.kind == bindColumn && y.kind == bindColumn:
			testPairs(t.holds, x.strings, y.strings, c, in, answer)
		case x.kind == bindColumn:
			return ev.testStrings(t, b, x.strings, c, in, answer)
		default:
			return ev.testStrings(t, b, y.strings, c, in, answer)
		}
	case testStringMember:
		switch {
		case y.kind == bindScalar:
			return ev.testStrings(t, b, x.strings, c, in, answer)
		case x.kind == bindScalar:
			b.look().testSets(y.sets, x.value.text, c, in, answer)
		default:
			b.look().testElements(x.strings, y.sets, c, in, answer)
		}
	default:
		return ev.testStrings(t, b, x.strings, c, in, answer)
	}
	return nil
}

// compareInts answers a testCmpInts. Not both leaves are scalars.
func (ev *evaluator) compareInts(op cmpOp, x, y *leafBinding, c *chunk, answer *mask) {
	if x.kind == bindScalar {
		op, x, y = op.swapped(), y, x
	}
	a, valid := ev.readInts(x, c, 0)
	if y.kind == bindScalar {
		compareScalar(answer, op, a, y.whole())
		answer.and(valid)
		return
	}
	b, alsoValid := ev.readInts(y, c, 1)
	compareVector(answer, op, a, b)
	answer.and(valid)
	answer.and(alsoValid)
}

// intRegister returns scratch memory for integers.
func (ev *evaluator) intRegister(i int) *intRegister {
	if ev.ints[i] == nil {
		ev.ints[i] = new(intRegister)
	}
	return ev.ints[i]
}

// set sets the bit of a position if value is true.
func (m *mask) set(pos int, value bool) { m[pos/64] |= bit(value) << (uint(pos) % 64) }

// testPairs answers a test of two columns for the positions of in.
func testPairs(holds func(s, part string) bool, x, y *rowset.StringColumn, c *chunk, in, answer *mask) {
	for k, w := range in[:c.words()] {
		for ; w != 0; w &= w - 1 {
			pos := k*64 + bits.TrailingZeros64(w)
			row := c.row(pos)
			left, ok := x.Value(int(row))
			right, also := y.Value(int(row))
			if ok && also {
				answer.set(pos, holds(left, right))
			}
		}
	}
}

// testStrings answers a test whose value for a row depends on the row's string alone, for the positions of in. A match costs more than
// a code does.
func (ev *evaluator) testStrings(t *test, b *testBinding, column *rowset.StringColumn, c *chunk, in, answer *mask) error {
	if t.op == testRegex && b.codes == nil {
		b.codes = column.Codes(nil, ev.rows)
	}
	for k, w := range in[:c.words()] {
		for ; w != 0; w &= w - 1 {
			pos := k*64 + bits.TrailingZeros64(w)
			code := rowset.CodeAt(b.codes, column.Places[c.row(pos)])
			if code < 0 {
				continue
			}
			if len(b.verdicts) == 0 {
				b.verdicts = zeroed(b.verdicts, len(column.Dict.Values))
			}
			if b.verdicts[code] == verdictUnknown {
				ok, err := ev.testString(t, b, column.Dict.Values[code])
				if err != nil {
					return err
				}
				b.verdicts[code] = verdictOf(ok)
			}
			answer[k] |= bit(b.verdicts[code] == verdictTrue) << (uint(pos) % 64)
		}
	}
	return nil
}

func verdictOf(ok bool) uint8 {
	if ok {
		return verdictTrue
	}
	return verdictFalse
}

// testString answers a test for one string. A match may take long, so testString first asks whether to
// stop. The error then is rowset.ErrStopped.
func (ev *evaluator) testString(t *test, b *testBinding, s string) (bool, error) {
	switch t.op {
	case testInStrings:
		_, ok := t.texts[s]
		return ok, nil
	case testCmpStrings:
		other := &ev.boundLeaves[t.y]
		if other.kind != bindScalar {
			other = &ev.boundLeaves[t.x]
		}
		return (s == other.value.text) == (t.cmp == cmpEq), nil
	case testTexts:
		if other := &ev.boundLeaves[t.y]; other.kind == bindScalar {
			return t.holds(s, other.value.text), nil
		}
		return t.holds(ev.boundLeaves[t.x].value.text, s), nil
	case testStringMember:
		return b.look().textList(&ev.boundLeaves[t.y]).contains(s), nil
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

// testSets answers whether the sets have a string, for the positions of in.
func (l *lookups) testSets(column *rowset.SetColumn, s string, c *chunk, in, answer *mask) {
	if len(l.recoded) == 0 {
		l.recoded = []int32{int32(slices.Index(column.Dict.Strings.Values, s))}
	}
	member := l.recoded[0]
	if member < 0 {
		return
	}
	for k, w := range in[:c.words()] {
		for ; w != 0; w &= w - 1 {
			pos := k*64 + bits.TrailingZeros64(w)
			if set := column.Codes[c.row(pos)]; set >= 0 {
				answer.set(pos, has(column.Dict, set, member))
			}
		}
	}
}

// testElements answers whether the row's set has the row's string, for the positions of in.
func (l *lookups) testElements(x *rowset.StringColumn, y *rowset.SetColumn, c *chunk, in, answer *mask) {
	if len(l.recoded) == 0 {
		l.recoded = recode(x.Dict, y.Dict.Strings)
	}
	for k, w := range in[:c.words()] {
		for ; w != 0; w &= w - 1 {
			pos := k*64 + bits.TrailingZeros64(w)
			row := c.row(pos)
			place, set := x.Places[row], y.Codes[row]
			if place < 0 || set < 0 {
				continue
			}
			code := l.recoded[place]
			answer.set(pos, code >= 0 && has(y.Dict, set, code))
		}
	}
}

// has reports whether a set has a member. It is for small sets, as most are.
func has(d *rowset.SetDict, set, member int32) bool {
	if members := d.Set(int(set)); len(members) <= elementsScan {
		return slices.Contains(members, member)
	}
	return d.Has(int(set), member)
}

// recode returns, by place in from, the place of the same string in to, whose strings are distinct, or -1.
func recode(from, to *rowset.Dict) []int32 {
	index := make(map[string]int32, len(to.Values))
	for code, s := range to.Values {
		index[s] = int32(code)
	}
	codes := make([]int32, len(from.Values))
	for i, s := range from.Values {
		codes[i] = -1
		if code, ok := index[s]; ok {
			codes[i] = code
		}
	}
	return codes
}

// intList returns the elements of a list of the request.
func (l *lookups) intList(y *leafBinding) *elements[int64] {
	if l.wholes.few == nil && l.wholes.many == nil {
		l.wholes = elementsOf(y.value.ints)
	}
	return &l.wholes
}

// numberList is intList for a value that is a double.
func (l *lookups) numberList(y *leafBinding) *elements[float64] {
	if y.kind == bindScalar && l.numbers.few == nil && l.numbers.many == nil {
		list := make([]float64, len(y.value.ints))
		convertInts(list, y.value.ints)
		l.numbers = elementsOf(list)
	}
	return &l.numbers
}

// textList is intList for strings.
func (l *lookups) textList(y *leafBinding) *elements[string] {
	if l.texts.few == nil && l.texts.many == nil {
		l.texts = elementsOf(y.value.strings)
	}
	return &l.texts
}
