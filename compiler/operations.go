package compiler

import (
	"fmt"
	"strings"

	"github.com/dop251/goja"
)

func isMath(function string) bool { return strings.HasPrefix(function, "Math.") }

// at notes which statement begins.
func (h *host) at(c goja.FunctionCall) goja.Value {
	h.u.statement.Store(c.Argument(0).ToInteger())
	return goja.Undefined()
}

// infix is an operator between two values of which one at least is a token.
func (h *host) infix(c goja.FunctionCall) goja.Value {
	written, a, b, at := c.Argument(0).String(), c.Argument(1), c.Argument(2), int(c.Argument(3).ToInteger())
	if h.isBroken(a) || h.isBroken(b) {
		return h.broken
	}
	if o := infixOperator(written); o != nil {
		return h.between(o, written, a, b, at)
	}
	return h.noCounterpart(written, "operator "+written, at)
}

// between applies an operator of the table to operands around it.
func (h *host) between(o *operator, written string, a, b goja.Value, at int) goja.Value {
	if o.cmp == "==" || o.cmp == "!=" {
		if v, done := h.equality(o, a, b, at); done {
			return v
		}
	}
	if o.cmp != "" && (goja.IsNull(a) || goja.IsNull(b)) {
		h.u.failAt(at, "null", fmt.Sprintf("%s with null is false in every row", written), "write x == null or x != null")
		return h.broken
	}
	return h.combine(o, "operator "+written, []goja.Value{a, b}, []int{at, at}, at, false)
}

// equality handles what == and != mean besides the comparison of numbers: null tests and strings.
func (h *host) equality(o *operator, a, b goja.Value, at int) (v goja.Value, done bool) {
	t, other := tokenOf(a), b
	if t == nil || tokenOf(b) != nil && t.kind == number {
		if u := tokenOf(b); u != nil && (t == nil || u.kind != number) {
			t, other = u, a
		}
	}
	negate := o.cmp == "!="
	switch {
	case goja.IsNull(other):
		op := "is_null"
		if negate {
			op = "not_null"
		}
		return h.nullTest(op, t, at), true
	case goja.IsUndefined(other):
		h.u.failAt(at, "type", "a comparison with undefined", "write == null for a null test")
		return h.broken, true
	case t.kind == predicate:
		h.u.failAt(at, "type", "a predicate cannot be compared", "write the predicate itself, or ! before it")
		return h.broken, true
	case t.kind == text && goja.IsString(other):
		in := branch("in", map[string]any{"list": []any{other.String()}}, []string{"lhs"}, t.tree)
		if negate {
			in = branch("not", nil, single, in)
		}
		return h.result(predicate, in, at), true
	case t.kind == text && tokenOf(other) != nil:
		h.u.failAt(at, "type", fmt.Sprintf("%s cannot be compared with %s", t.describe(), tokenOf(other).describe()),
			"a string key is compared with strings that the source states")
		return h.broken, true
	case t.kind == textParam:
		h.u.failAt(at, "type", t.describe()+" cannot be compared", "a string parameter can only be the pattern of regex")
		return h.broken, true
	case t.kind == number && goja.IsString(other):
		h.u.failAt(at, "type", fmt.Sprintf("%s is a number, %s is not", t.describe(), quote(other.String())), "write the number without quotes")
		return h.broken, true
	}
	return nil, false
}

// nullTest makes a null test of an expression.
func (h *host) nullTest(op string, t *value, at int) goja.Value {
	switch t.kind {
	case number:
		return h.result(predicate, branch(op, nil, single, t.tree), at)
	case broken:
		return h.broken
	case text, textParam:
		h.u.failAt(at, "null-test", fmt.Sprintf("%s is a string, and null tests are for numbers", t.describe()),
			"regex(key, \"\") is true for every string that is not null")
	default:
		h.wrongKind(t, number, at, "a null test")
	}
	return h.broken
}

// combine applies an operator to operands of its kind.
func (h *host) combine(o *operator, what string, operands []goja.Value, places []int, at int, nulls bool) goja.Value {
	args := make([]*tree, len(operands))
	for i, operand := range operands {
		if args[i] = h.tree(operand, o.takes, nulls, places[i], what); args[i] == nil {
			return h.broken
		}
	}
	var members map[string]any
	if o.cmp != "" {
		members = map[string]any{"cmp": o.cmp}
	}
	t := branch(o.ir, members, o.operands, args[:len(o.operands)]...)
	for _, more := range args[len(o.operands):] { // and(a, b, c)
		t = branch(o.ir, members, o.operands, t, more)
	}
	return h.result(o.makes, t, at)
}

// apply calls an operator that is written as a function.
func (h *host) apply(o *operator, name string, args []goja.Value, site *callSite) goja.Value {
	variadic := o.builder == name && (o.ir == "and" || o.ir == "or")
	if len(args) != len(o.operands) && !(variadic && len(args) > len(o.operands)) {
		h.u.failAt(site.at, "arguments", fmt.Sprintf("%s takes %d arguments, not %d", name, len(o.operands), len(args)),
			"write "+name+"("+strings.Join(o.operands, ", ")+")")
		return h.broken
	}
	places := make([]int, len(args))
	for i := range args {
		if places[i] = site.arg(i); h.isBroken(args[i]) {
			return h.broken
		}
	}
	return h.combine(o, name, args, places, site.start, o.nulls)
}

// prefix is an operator before a token.
func (h *host) prefix(c goja.FunctionCall) goja.Value {
	written, a, at := c.Argument(0).String(), c.Argument(1), int(c.Argument(2).ToInteger())
	if h.isBroken(a) {
		return h.broken
	}
	if o := prefixOperator(written); o != nil {
		return h.combine(o, "operator "+written, []goja.Value{a}, []int{at}, at, false)
	}
	if written == "+" {
		return h.noCounterpart("unary +", "operator +", at)
	}
	return h.noCounterpart(written, "operator "+written, at)
}

// math is a function of Math with a token among its arguments.
func (h *host) math(c goja.FunctionCall) goja.Value {
	name, site := "Math."+c.Argument(0).String(), h.callSite()
	list := c.Argument(1).ToObject(h.vm)
	args := make([]goja.Value, list.Get("length").ToInteger())
	for i := range args {
		if args[i] = list.Get(itoa(i)); h.isBroken(args[i]) {
			return h.broken
		}
	}
	if o := functionOperator(name); o != nil {
		return h.apply(o, name, args, site)
	}
	return h.noCounterpart(name, name, site.at)
}

// noCounterpart reports an operator or a function that expressions do not have.
func (h *host) noCounterpart(written, what string, at int) goja.Value {
	hint := foreign[written]
	if hint == "" {
		hint = "expressions have " + strings.Join(spelled(), " ")
	}
	h.u.failAt(at, "no-counterpart", what+" has no counterpart in expressions", hint)
	return h.broken
}

// spelled returns how the operators of the table are written, each once.
func spelled() []string {
	var all []string
	for i := range operators {
		o := &operators[i]
		all = append(all, strings.TrimSpace(o.infix+o.prefix+o.function))
	}
	return all
}

// atRunTime explains why a token cannot decide what plan code does.
func atRunTime(t *value) string {
	return t.describe() + " has a value only when the plan runs, not while it is built"
}

// test is the condition of an if or a loop that is a token. The plan goes on as if it were false, so
// that a loop ends.
func (h *host) test(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t.kind != broken {
		h.u.failAt(int(c.Argument(1).ToInteger()), "condition", atRunTime(t), "write .filter({ pred: "+asPredicate(t)+" }), which decides per row")
	}
	return h.vm.ToValue(false)
}

// choose is the condition of a ternary that is a token.
func (h *host) choose(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t.kind != broken {
		h.u.failAt(int(c.Argument(1).ToInteger()), "no-counterpart", "operator ?: has no counterpart in expressions: "+atRunTime(t), foreign["?:"])
	}
	return h.vm.ToValue(true)
}

// condition is what a callback of filter, some, every or find returns.
func (h *host) condition(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t == nil {
		return c.Argument(0)
	}
	if t.kind != broken {
		h.u.failAt(h.u.here(), "condition", atRunTime(t), "the array's method wants true or false for each element")
	}
	return h.vm.ToValue(false)
}

// asPredicate writes how a token becomes a predicate.
func asPredicate(t *value) string {
	switch {
	case t.kind == predicate, t.kind == opaque:
		return "..."
	case t.kind == text:
		return short(t) + " == \"...\""
	}
	return short(t) + " != 0"
}

// value is a token where plan code compares with ===, as in a switch.
func (h *host) value(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t.kind != broken {
		h.u.failAt(int(c.Argument(1).ToInteger()), "condition", atRunTime(t), "write one .filter for each case, and concat the branches")
	}
	return goja.Undefined()
}

// each is a token that plan code loops over.
func (h *host) each(c goja.FunctionCall) goja.Value {
	h.iterate(c.Argument(0), int(c.Argument(1).ToInteger()))
	return h.vm.NewArray()
}

// iterate reports a loop over what the host made.
func (h *host) iterate(v goja.Value, at int) {
	t := tokenOf(v)
	switch {
	case t == nil:
		h.u.failAt(at, "loop", plainWords(v)+" has no elements while the plan is built", "a method such as .vm or .filter handles every row by itself")
	case t.kind != broken:
		h.u.failAt(at, "loop", atRunTime(t)+": plan code cannot loop over it", "a method such as .vm or .filter handles every row by itself")
	}
}

// convertObject is the implicit conversion of what the host made.
func (h *host) convertObject(v goja.Value, hint string) goja.Value {
	if t := tokenOf(v); t != nil {
		return h.convert(t, hint)
	}
	h.u.failAt(h.u.here(), "conversion", plainWords(v)+" cannot be converted to a "+hint, "pass it on as it is")
	return h.vm.ToValue("")
}

// convert is the implicit conversion of a token.
func (h *host) convert(t *value, hint string) goja.Value {
	if t.kind != broken {
		to, advice := "a string", "strings in plan code are fixed when the plan is built; regex(key, pattern) and == compare strings per row"
		if hint == "number" {
			to, advice = "a number of plan code", "write the arithmetic with operators, as in Key.id * 2"
		}
		h.u.failAt(h.u.here(), "conversion", atRunTime(t)+": it cannot become "+to, advice)
	}
	if hint == "number" {
		return h.vm.ToValue(0)
	}
	return h.vm.ToValue("")
}

// isBroken reports whether a value is what a fault left, so that nothing more is to be said of it.
func (h *host) isBroken(v goja.Value) bool {
	if t := tokenOf(v); t != nil {
		return t.kind == broken
	}
	return v == h.brokenCall
}
