package expr

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// MaxDepth bounds how deep the objects of a tree nest, the root being level 1.
// The plan format asks for 256 at least. The bound keeps recursion small, and the
// registers that a deep tree may need.
const MaxDepth = 1000

// ParseError says what is wrong with a tree, and where. Immutable; any goroutine.
type ParseError struct {
	Path string // from the root of the tree: "a.b.x", "list[3]"; "" is the root itself
	Msg  string
}

// Error implements error: one line.
func (e *ParseError) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return e.Path + ": " + e.Msg
}

// ParseExpr parses and compiles the tree of an ExprIR. It ignores members that the
// format does not know. The error is a *ParseError.
func ParseExpr(v *jsondoc.Value) (*Expr, error) {
	var p parser
	n, err := p.expr(v)
	if err != nil {
		return nil, err
	}
	e := &Expr{keys: sortedSet(p.keys), params: sortedSet(p.params)}
	e.root = p.program.add(n)
	e.program = p.program
	return e, nil
}

// ParsePred parses and compiles the tree of a PredIR. It ignores members that the
// format does not know. A bad literal pattern is not an error here; Filter fails when
// a row reaches it. The error is a *ParseError.
func ParsePred(v *jsondoc.Value) (*Pred, error) {
	var p parser
	root, err := p.pred(v, false)
	if err != nil {
		return nil, err
	}
	return &Pred{
		program: p.program, tests: p.tests, root: root,
		keys: sortedSet(p.keys), params: sortedSet(p.params),
	}, nil
}

// A parser walks one tree and compiles it.
type parser struct {
	path    []string // to the current place
	program program  // of all expressions
	tests   []test   // of the predicate
	keys    []registry.KeyID
	params  []registry.ParamID
}

// expr parses an expression, with constants folded.
func (p *parser) expr(v *jsondoc.Value) (*node, error) {
	op, err := p.op(v, "expression")
	if err != nil {
		return nil, err
	}
	switch op {
	case "const_number":
		value, err := p.field(v, "value")
		if err != nil {
			return nil, err
		}
		if !value.IsNumber() {
			return nil, p.fail("value: want a number, have %s", value.Describe())
		}
		return &node{op: opConst, value: value.Float}, nil
	case "const_null":
		return &node{op: opNull}, nil
	case "key_ref":
		key, err := p.key(v)
		return &node{op: opKey, key: key}, err
	case "param_ref":
		param, err := p.param(v)
		return &node{op: opParam, param: param}, err
	case "neg":
		x, err := p.childExpr(v, "x")
		if err != nil {
			return nil, err
		}
		return fold(&node{op: opNeg, a: x}), nil
	}
	binary, ok := binaryOp(op)
	if !ok {
		return nil, p.fail("unknown op %s of an expression", excerpt.Quote(op))
	}
	a, err := p.childExpr(v, "a")
	if err != nil {
		return nil, err
	}
	b, err := p.childExpr(v, "b")
	if err != nil {
		return nil, err
	}
	return fold(&node{op: binary, a: a, b: b}), nil
}

func binaryOp(name string) (opcode, bool) {
	switch name {
	case "add":
		return opAdd, true
	case "sub":
		return opSub, true
	case "mul":
		return opMul, true
	case "coalesce":
		return opCoalesce, true
	}
	return 0, false
}

// pred parses a predicate, or its negation, and returns the index of its test.
//
// De Morgan's laws push a not down to the leaves. Both "not (a and b)" and "(not a)
// or (not b)" look at b only where a is true.
func (p *parser) pred(v *jsondoc.Value, negate bool) (int32, error) {
	op, err := p.op(v, "predicate")
	if err != nil {
		return 0, err
	}
	switch op {
	case "const_bool":
		value, err := p.field(v, "value")
		if err != nil {
			return 0, err
		}
		if value.Kind != jsondoc.Bool {
			return 0, p.fail("value: want true or false, have %s", value.Describe())
		}
		return p.emit(test{op: testConst, value: value.Bool, negate: negate}), nil
	case "not":
		return p.childPred(v, "x", !negate)
	case "and", "or":
		a, err := p.childPred(v, "a", negate)
		if err != nil {
			return 0, err
		}
		b, err := p.childPred(v, "b", negate)
		if err != nil {
			return 0, err
		}
		if (op == "and") != negate {
			return p.emit(test{op: testAnd, a: a, b: b}), nil
		}
		return p.emit(test{op: testOr, a: a, b: b}), nil
	case "cmp":
		return p.cmp(v, negate)
	case "is_null", "not_null":
		x, err := p.childExpr(v, "x")
		if err != nil {
			return 0, err
		}
		return p.emit(test{op: testIsNull, a: p.program.add(x), negate: negate != (op == "not_null")}), nil
	case "in":
		return p.in(v, negate)
	case "regex":
		return p.regex(v, negate)
	}
	return 0, p.fail("unknown op %s of a predicate", excerpt.Quote(op))
}

func (p *parser) cmp(v *jsondoc.Value, negate bool) (int32, error) {
	name, err := p.field(v, "cmp")
	if err != nil {
		return 0, err
	}
	cmp, ok := cmpOp(0), false
	if name.Kind == jsondoc.String {
		cmp, ok = parseCmp(name.Str)
	}
	if !ok {
		return 0, p.fail("cmp: want one of == != < <= > >=, have %s", name.Describe())
	}
	a, err := p.childExpr(v, "a")
	if err != nil {
		return 0, err
	}
	b, err := p.childExpr(v, "b")
	if err != nil {
		return 0, err
	}
	// Only the literal null compares equal to null. An expression that evaluates to
	// null makes any comparison false. Folding turns such expressions into nulls, so
	// look at the tree before folding.
	aNull, bNull := isOp(v.Get("a"), "const_null"), isOp(v.Get("b"), "const_null")
	if !aNull && !bNull {
		return p.emit(test{op: testCmp, cmp: cmp, a: p.program.add(a), b: p.program.add(b), negate: negate}), nil
	}
	other := a
	if aNull {
		other = b
	}
	switch cmp {
	case cmpEq:
		return p.emit(test{op: testIsNull, a: p.program.add(other), negate: negate}), nil
	case cmpNe:
		return p.emit(test{op: testIsNull, a: p.program.add(other), negate: !negate}), nil
	}
	return p.emit(test{op: testConst, value: false, negate: negate}), nil
}

func (p *parser) in(v *jsondoc.Value, negate bool) (int32, error) {
	lhs, err := p.childExpr(v, "lhs")
	if err != nil {
		return 0, err
	}
	list, err := p.field(v, "list")
	if err != nil {
		return 0, err
	}
	if list.Kind != jsondoc.Array {
		return 0, p.fail("list: want an array, have %s", list.Describe())
	}
	var numbers []float64
	texts := make(map[string]struct{})
	for i := range list.Items {
		item := &list.Items[i]
		switch {
		case item.IsNumber():
			numbers = append(numbers, item.Float)
		case item.Kind == jsondoc.String:
			texts[item.Str] = struct{}{}
		default:
			return 0, p.fail("list[%d]: want a number or a string, have %s", i, item.Describe())
		}
		if len(numbers) > 0 && len(texts) > 0 {
			return 0, p.fail("list[%d]: numbers and strings are mixed", i)
		}
	}
	t := test{negate: negate, path: p.where()}
	switch {
	case len(list.Items) == 0:
		t.op = testConst
	case len(numbers) > 0:
		t.op, t.a, t.numbers = testInNumbers, p.program.add(lhs), newNumberSet(numbers)
	case isOp(v.Get("lhs"), "key_ref"):
		t.op, t.key, t.texts = testInStrings, lhs.key, texts
	default:
		t.op = testFail
	}
	return p.emit(t), nil
}

func (p *parser) regex(v *jsondoc.Value, negate bool) (int32, error) {
	key, err := p.key(v)
	if err != nil {
		return 0, err
	}
	ignoreCase := false
	if flags := v.Get("flags"); flags != nil {
		if flags.Kind != jsondoc.String || flags.Str != "" && flags.Str != "i" {
			return 0, p.fail(`flags: want "" or "i", have %s`, flags.Describe())
		}
		ignoreCase = flags.Str == "i"
	}
	source, err := p.field(v, "pattern")
	if err != nil {
		return 0, err
	}
	pat, err := p.pattern(source, ignoreCase)
	if err != nil {
		return 0, err
	}
	return p.emit(test{op: testRegex, key: key, pattern: pat, path: p.where(), negate: negate}), nil
}

func (p *parser) pattern(v *jsondoc.Value, ignoreCase bool) (*pattern, error) {
	p.path = append(p.path, "pattern")
	defer p.up()
	if v.Kind != jsondoc.Object {
		return nil, p.fail("want an object, have %s", v.Describe())
	}
	kind, err := p.field(v, "kind")
	if err != nil {
		return nil, err
	}
	switch {
	case kind.Kind == jsondoc.String && kind.Str == "literal":
		value, err := p.field(v, "value")
		if err != nil {
			return nil, err
		}
		if value.Kind != jsondoc.String {
			return nil, p.fail("value: want a string, have %s", value.Describe())
		}
		return newLiteralPattern(value.Str, ignoreCase), nil
	case kind.Kind == jsondoc.String && kind.Str == "param":
		param, err := p.param(v)
		if err != nil {
			return nil, err
		}
		if param == 0 {
			return nil, p.fail("param_id: 0 is not a parameter")
		}
		return newParamPattern(param, ignoreCase), nil
	}
	return nil, p.fail(`kind: want "literal" or "param", have %s`, kind.Describe())
}

// op checks that v is an object, not nested too deep, and returns its op.
func (p *parser) op(v *jsondoc.Value, what string) (string, error) {
	if len(p.path) >= MaxDepth {
		return "", p.fail("nested deeper than %d levels", MaxDepth)
	}
	if v == nil || v.Kind != jsondoc.Object {
		return "", p.fail("want an object, the %s; have %s", what, v.Describe())
	}
	op, err := p.field(v, "op")
	if err != nil {
		return "", err
	}
	if op.Kind != jsondoc.String {
		return "", p.fail("op: want a string, have %s", op.Describe())
	}
	return op.Str, nil
}

func (p *parser) childExpr(v *jsondoc.Value, name string) (*node, error) {
	child, err := p.field(v, name)
	if err != nil {
		return nil, err
	}
	p.path = append(p.path, name)
	defer p.up()
	return p.expr(child)
}

func (p *parser) childPred(v *jsondoc.Value, name string, negate bool) (int32, error) {
	child, err := p.field(v, name)
	if err != nil {
		return 0, err
	}
	p.path = append(p.path, name)
	defer p.up()
	return p.pred(child, negate)
}

func (p *parser) up() { p.path = p.path[:len(p.path)-1] }

func (p *parser) field(v *jsondoc.Value, name string) (*jsondoc.Value, error) {
	f := v.Get(name)
	if f == nil {
		return nil, p.fail("%s is missing", name)
	}
	return f, nil
}

func (p *parser) key(v *jsondoc.Value) (registry.KeyID, error) {
	id, err := p.id(v, "key_id")
	p.keys = append(p.keys, registry.KeyID(id))
	return registry.KeyID(id), err
}

func (p *parser) param(v *jsondoc.Value) (registry.ParamID, error) {
	id, err := p.id(v, "param_id")
	p.params = append(p.params, registry.ParamID(id))
	return registry.ParamID(id), err
}

// id reads an id, an integer literal without sign. The registry need not have it: an
// unknown id reads as null.
func (p *parser) id(v *jsondoc.Value, name string) (uint32, error) {
	id, err := p.field(v, name)
	if err != nil {
		return 0, err
	}
	if id.Kind != jsondoc.Uint {
		return 0, p.fail("%s: want an integer without sign, have %s", name, id.Describe())
	}
	if id.Uint > math.MaxUint32 {
		return 0, p.fail("%s: %d is more than %d", name, id.Uint, uint32(math.MaxUint32))
	}
	return uint32(id.Uint), nil
}

func (p *parser) emit(t test) int32 {
	p.tests = append(p.tests, t)
	return int32(len(p.tests) - 1)
}

func (p *parser) fail(format string, args ...any) error {
	return &ParseError{Path: p.where(), Msg: fmt.Sprintf(format, args...)}
}

// where returns the path to the current place. It leaves out the middle of a deep path.
func (p *parser) where() string {
	const ends = 16
	if n := len(p.path); n > 3*ends {
		return strings.Join(p.path[:ends], ".") + ".…." + strings.Join(p.path[n-ends:], ".")
	}
	return strings.Join(p.path, ".")
}

// isOp reports whether v is an object of that op.
func isOp(v *jsondoc.Value, op string) bool {
	name := v.Get("op")
	return name != nil && name.Kind == jsondoc.String && name.Str == op
}

func sortedSet[T registry.KeyID | registry.ParamID](ids []T) []T {
	slices.Sort(ids)
	return slices.Compact(ids)
}
