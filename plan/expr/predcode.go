package expr

// testOp is an operation of a compiled predicate.
type testOp uint8

const (
	testConst     testOp = iota // value
	testAnd                     // tests a and b
	testOr                      // tests a or b
	testCmp                     // expressions a, b compared by cmp
	testIsNull                  // expression a is null
	testInNumbers               // expression a is one of numbers
	testFail                    // fails with ErrListOperand, once expression a is computed
	testProbe                   // test a, which is noted for the part x: see explain.go

	// On values that are read as they stand.
	testCmpInts      // integers x, y compared by cmp
	testInInts       // integer x is one of wholes
	testCmpStrings   // strings x, y compared by cmp, which is == or !=
	testInStrings    // string x is one of texts
	testRegex        // string x, a column, matches pattern
	testIsNullLeaf   // x is null
	testIntMember    // integer x is in list y
	testNumberMember // expression a is in list y
	testStringMember // string x is in set or list y
	testTexts        // strings x, y fulfil holds
)

// A test is an operation of a compiled predicate.
type test struct {
	op      testOp
	negate  bool // not of and, or: the value is the opposite
	value   bool
	cmp     cmpOp
	a, b    int32 // of and, or tests; otherwise instructions
	x, y    int32 // leaves
	numbers elements[float64]
	wholes  elements[int64]
	texts   map[string]struct{}
	pattern *pattern
	holds   func(s, part string) bool
	path    string // of tests that may fail: the place in the tree
}

// pred appends the tests of a predicate, or of its negation, and returns the index of the last.
//
// De Morgan's laws push a not down to the leaves. Both "not (a and b)" and "(not a)
// or (not b)" look at b only where a is true.
func (c *compiler) pred(n *node, negate bool) int32 {
	at := c.test(n, negate)
	if c.parts != nil {
		at = c.emit(test{op: testProbe, a: at, x: c.part(n, at), negate: negate})
	}
	return at
}

// test is pred without a probe of n itself.
func (c *compiler) test(n *node, negate bool) int32 {
	switch n.op.code {
	case opTruth:
		return c.emit(test{op: testConst, value: n.truth, negate: negate})
	case opNot:
		return c.pred(n.args[0], !negate)
	case opAnd, opOr:
		t := test{op: testOr, a: c.pred(n.args[0], negate), b: c.pred(n.args[1], negate)}
		if (n.op.code == opAnd) != negate {
			t.op = testAnd
		}
		return c.emit(t)
	case opIsNull, opNotNull:
		return c.emit(c.nullTest(n.args[0], negate != (n.op.code == opNotNull)))
	case opCmp:
		return c.emit(c.comparison(n, negate))
	case opIn:
		return c.emit(c.in(n, negate))
	case opMember:
		return c.emit(c.member(n, negate))
	case opTexts:
		return c.emit(test{op: testTexts, x: c.leaf(n.args[0], String), y: c.leaf(n.args[1], String), holds: n.op.texts, negate: negate})
	case opRegex:
		return c.emit(test{op: testRegex, x: c.leaf(n.args[0], String), pattern: n.pattern, path: n.path, negate: negate})
	}
	panic("expr: not a predicate: " + n.op.Name)
}

func (c *compiler) emit(t test) int32 {
	c.tests = append(c.tests, t)
	return int32(len(c.tests) - 1)
}

// nullTest returns the test whether x is null.
func (c *compiler) nullTest(x *node, negate bool) test {
	if x.typ.isNumber() {
		return test{op: testIsNull, a: c.number(x), negate: negate}
	}
	return test{op: testIsNullLeaf, x: c.leaf(x, x.typ), negate: negate}
}

func (c *compiler) comparison(n *node, negate bool) test {
	cmp, a, b := cmpOf(n.op.Cmp), n.args[0], n.args[1]
	// Only the literal null compares equal to null. An expression that evaluates to
	// null makes any comparison false.
	other := a
	if a.op.code == opNull {
		other = b
	}
	null := a.op.code == opNull || b.op.code == opNull
	switch {
	case null && cmp == cmpEq:
		return c.nullTest(other, negate)
	case null && cmp == cmpNe:
		return c.nullTest(other, !negate)
	case a.typ == Int && b.typ == Int:
		return test{op: testCmpInts, cmp: cmp, x: c.leaf(a, Int), y: c.leaf(b, Int), negate: negate}
	case a.typ == String && b.typ == String:
		return test{op: testCmpStrings, cmp: cmp, x: c.leaf(a, String), y: c.leaf(b, String), negate: negate}
	}
	return test{op: testCmp, cmp: cmp, a: c.number(a), b: c.number(b), negate: negate}
}

func (c *compiler) in(n *node, negate bool) test {
	lhs, t := n.args[0], test{negate: negate, path: n.path}
	switch {
	case n.list.fails:
		t.op, t.a = testFail, c.number(lhs)
	case len(n.list.texts) > 0 || lhs.typ == String:
		t.op, t.x, t.texts = testInStrings, c.leaf(lhs, String), n.list.texts // trees without types say no more than that it is a key
	case lhs.typ == Int:
		t.op, t.x, t.wholes = testInInts, c.leaf(lhs, Int), elementsOf(n.list.wholes)
	default:
		t.op, t.a, t.numbers = testInNumbers, c.number(lhs), elementsOf(n.list.numbers)
	}
	return t
}

func (c *compiler) member(n *node, negate bool) test {
	x, set := n.args[0], n.args[1]
	t := test{negate: negate, y: c.leaf(set, set.typ)}
	switch {
	case set.typ == Strings:
		t.op, t.x = testStringMember, c.leaf(x, String)
	case x.typ == Int:
		t.op, t.x = testIntMember, c.leaf(x, Int)
	default:
		t.op, t.a = testNumberMember, c.number(x)
	}
	return t
}
