package compiler

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// at notes which statement begins.
func (h *host) at(c goja.FunctionCall) goja.Value {
	h.u.statement.Store(c.Argument(0).ToInteger())
	return goja.Undefined()
}

// infix is an operator between two values, at least one of which is a token.
func (h *host) infix(c goja.FunctionCall) goja.Value {
	written, a, b, at := c.Argument(0).String(), c.Argument(1), c.Argument(2), int(c.Argument(3).ToInteger())
	if h.isBroken(a) || h.isBroken(b) {
		return h.broken
	}
	if written == "+" && (isText(a) || isText(b)) {
		return h.join(a, b, at)
	}
	if o := infixOperator(written); o != nil {
		return h.between(o, written, a, b, at)
	}
	return h.noCounterpart(written, "operator "+written, at)
}

// join is + where an operand is a string, and each step of a template.
func (h *host) join(a, b goja.Value, at int) goja.Value {
	for _, side := range [2][2]goja.Value{{a, b}, {b, a}} {
		if goja.IsString(side[0]) && side[0].String() == "" && isText(side[1]) {
			return side[1]
		}
	}
	return h.combine(namedOperator("concat"), "operator +", []goja.Value{a, b}, []int{at, at}, at)
}

// between applies an operator of the table to operands around it.
func (h *host) between(o *expr.Operator, written string, a, b goja.Value, at int) goja.Value {
	if o.Cmp == "==" || o.Cmp == "!=" {
		if h.strict(written, a, b, at) {
			return h.broken
		}
		if v, done := h.equality(o, a, b, at); done {
			return v
		}
	}
	if o.Cmp != "" && (goja.IsNull(a) || goja.IsNull(b)) {
		h.u.failAt(at, "null", fmt.Sprintf("%s with null is false in every row", written), "write x == null or x != null")
		return h.broken
	}
	return h.combine(o, "operator "+written, []goja.Value{a, b}, []int{at, at}, at)
}

// strict reports a comparison by === or !== of a bool and a number, which are never the same in JavaScript.
func (h *host) strict(written string, a, b goja.Value, at int) bool {
	if len(written) != len("===") {
		return false
	}
	for _, side := range [2][2]goja.Value{{a, b}, {b, a}} {
		if t, other := tokenOf(side[0]), tokenOf(side[1]); t != nil && t.truth && (goja.IsNumber(side[1]) || other != nil && other.kind == number && !other.truth) {
			h.u.failAt(at, "type", fmt.Sprintf("%s is true or false, and no number is, by %s", t.describe(), written), "write "+short(t)+" "+written+" true")
			return true
		}
	}
	return false
}

// equality handles what == and != mean besides the comparison of numbers: null tests, strings and bools.
func (h *host) equality(o *expr.Operator, a, b goja.Value, at int) (v goja.Value, done bool) {
	t, other := tokenOf(a), b
	if t == nil || tokenOf(b) != nil && t.kind == number {
		if u := tokenOf(b); u != nil && (t == nil || u.kind != number) {
			t, other = u, a
		}
	}
	negate := o.Cmp == "!="
	truth, isTruth := boolean(other)
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
	case t.truth && isTruth:
		bit := 0.0
		if truth {
			bit = 1
		}
		return h.result(predicate, branch(o.Name, map[string]any{"cmp": o.Cmp}, memberNames(o), t.tree, constNumber(bit)), at), true
	case t.kind == predicate:
		h.u.failAt(at, "type", "a predicate cannot be compared", "write the predicate itself, or ! before it")
		return h.broken, true
	case t.kind.isText() || h.textID(t) && goja.IsString(other):
		return h.sameText(o, t, other, at), true
	case t.kind == set:
		h.u.failAt(at, "type", t.describe()+" cannot be compared", "write "+short(t)+".includes(x)")
		return h.broken, true
	case t.kind == number && goja.IsString(other):
		h.u.failAt(at, "type", fmt.Sprintf("%s is a number, %s is not", t.describe(), quote(other.String())), "write the number without quotes")
		return h.broken, true
	}
	return nil, false
}

// sameText compares a string key or parameter with a string, or with another one.
func (h *host) sameText(o *expr.Operator, t *value, other goja.Value, at int) goja.Value {
	u := tokenOf(other)
	switch {
	case u != nil && u.kind == broken:
		return h.broken
	case u != nil && (u.kind.isText() || h.textID(u)):
		return h.result(predicate, needsTypes(branch(o.Name, map[string]any{"cmp": o.Cmp}, memberNames(o), t.tree, u.tree)), at)
	case goja.IsString(other) && t.kind != text && t.kind != number:
		return h.result(predicate, branch(o.Name, map[string]any{"cmp": o.Cmp}, memberNames(o), t.tree, constText(other.String())), at)
	case goja.IsString(other):
		in := branch("in", map[string]any{"list": []any{other.String()}}, []string{"lhs"}, t.tree)
		in.typed = in.typed || t.kind == number
		if o.Cmp == "!=" {
			in = branch("not", nil, memberNames(namedOperator("not")), in)
		}
		return h.result(predicate, in, at)
	}
	h.u.failAt(at, "type", fmt.Sprintf("%s cannot be compared with %s", t.describe(), plainWords(other)),
		"a string is compared with a string, a string key or a string parameter")
	return h.broken
}

// textID reports whether a token is the id and may be compared with texts. Loading checks whether the rows of the
// node have such ids.
func (h *host) textID(t *value) bool {
	return h.u.language.TextIDs && t.key != nil && t.key.ID == registry.IDKey
}

// nullTest makes a null test of a key, a parameter or an expression.
func (h *host) nullTest(op string, t *value, at int) goja.Value {
	switch t.kind {
	case number, text, textParam, madeText, set, vectorKey:
		test := branch(op, nil, memberNames(namedOperator(op)), t.tree)
		test.typed = test.typed || t.kind != number
		return h.result(predicate, test, at)
	case broken:
		return h.broken
	}
	h.wrongKind(t, number, at, "a null test")
	return h.broken
}

// combine applies an operator to operands of its kind.
func (h *host) combine(o *expr.Operator, what string, operands []goja.Value, places []int, at int) goja.Value {
	args, names := make([]*tree, len(operands)), memberNames(o)
	texts := slices.ContainsFunc(operands, isText) // of ?? or ?:, whose operands are all numbers or all strings
	for i, operand := range operands {
		takes, want := o.Operands[min(i, len(names)-1)].Takes, number
		switch takes {
		case expr.TakesPredicate:
			want = predicate
		case expr.TakesText:
			want = text
		case expr.TakesVector:
			want = vectorKey
		case expr.TakesElement:
			if isText(operand) {
				want = text
			}
		case expr.TakesNullable:
			if texts {
				want = text
			}
		}
		if o.Cmp != "" && isInt64(operand) && isWhole(operands[1-i]) {
			args[i] = constWhole(operand.String())
			continue
		}
		if o.Cmp != "" && isWhole(operands[1-i]) && !h.exact(operand, places[i]) {
			return h.broken
		}
		if args[i] = h.tree(operand, want, takes == expr.TakesNullable || o.Cmp != "", places[i], what); args[i] == nil {
			return h.broken
		}
	}
	var members map[string]any
	if o.Cmp != "" {
		members = map[string]any{"cmp": o.Cmp}
	}
	t := branch(o.Name, members, names, args[:len(names)]...)
	for _, more := range args[len(names):] { // and(a, b, c)
		t = branch(o.Name, members, names, t, more)
		t.typed = t.typed || o.Typed
	}
	if o.Name == "if" && args[0].fails {
		h.u.failAt(places[0], "pattern", "the condition of "+what+" takes patterns that are known while the plan is built, because an expression cannot fail",
			"filter by the pattern, or write it into the plan")
		return h.broken
	}
	// Two integers are compared exactly, which takes types.
	t.typed = t.typed || o.Typed || o.Cmp != "" && args[0].whole && args[1].whole
	kind := makes(o)
	if texts && kind == number && o.Operands[len(names)-1].Takes == expr.TakesNullable {
		kind, t.typed = madeText, true
	}
	return h.result(kind, t, at)
}

// isText reports whether a value is a string, now or when the plan runs.
func isText(v goja.Value) bool {
	t := tokenOf(v)
	return t == nil && goja.IsString(v) || t != nil && t.kind.isText()
}

// exact reports an integer of plan code, to compare with another one, that a double may not have.
func (h *host) exact(v goja.Value, at int) bool {
	if tokenOf(v) != nil || !goja.IsNumber(v) {
		return true
	}
	x := v.ToFloat()
	if !(math.Abs(x) >= 1<<53 && math.Abs(x) < 1<<63) {
		return true
	}
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	h.u.failAt(at, "precision", "the number "+digits+" may be another one in the source: numbers of JavaScript from 2^53 on are rounded",
		"write its digits with n behind them, as in 9007199254740993n")
	return false
}

// isWhole reports whether a value is a key or a parameter with integers.
func isWhole(v goja.Value) bool {
	t := tokenOf(v)
	return t != nil && t.kind == number && t.tree.whole
}

// apply calls an operator that is written as a function.
func (h *host) apply(o *expr.Operator, name string, args []goja.Value, site *callSite) goja.Value {
	if len(args) != len(o.Operands) && !(o.Variadic && len(args) > len(o.Operands)) {
		h.u.failAt(site.at, "arguments", fmt.Sprintf("%s takes %d arguments, not %d", name, len(o.Operands), len(args)),
			"write "+name+"("+CamelCase(strings.Join(memberNames(o), ", "))+")")
		return h.broken
	}
	places := make([]int, len(args))
	for i := range args {
		if places[i] = site.arg(i); h.isBroken(args[i]) {
			return h.broken
		}
	}
	return h.combine(o, name, args, places, site.start)
}

// prefix is an operator before a token.
func (h *host) prefix(c goja.FunctionCall) goja.Value {
	written, a, at := c.Argument(0).String(), c.Argument(1), int(c.Argument(2).ToInteger())
	if h.isBroken(a) {
		return h.broken
	}
	if o := prefixOperator(written); o != nil {
		return h.combine(o, "operator "+written, []goja.Value{a}, []int{at}, at)
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

// atRunTime explains why a token cannot decide what plan code does.
func atRunTime(t *value) string {
	return t.describe() + " has a value only when the plan runs, not while it is built"
}

// test handles a token as the condition of an if or a loop. The plan goes on as if it were false, so that a loop
// ends.
func (h *host) test(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t.kind != broken {
		h.u.failAt(int(c.Argument(1).ToInteger()), "condition", atRunTime(t), "write .filter({ pred: "+asPredicate(t)+" }), which decides per row")
	}
	return h.vm.ToValue(false)
}

// choose is a ternary whose condition is a token.
func (h *host) choose(c goja.FunctionCall) goja.Value {
	cond, then, other, at := tokenOf(c.Argument(0)), c.Argument(1), c.Argument(2), int(c.Argument(3).ToInteger())
	if cond.kind == broken || h.isBroken(then) || h.isBroken(other) {
		return h.broken
	}
	if cond.kind != predicate && !cond.truth {
		h.u.failAt(at, "condition", "the condition of ?: is a predicate, not "+article(cond), "write "+asPredicate(cond)+" ? a : b")
		return h.broken
	}
	if isPredicate(then) && isPredicate(other) {
		// c && then || !c && other
		yes := h.combine(infixOperator("&&"), "operator ?:", []goja.Value{c.Argument(0), then}, []int{at, at}, at)
		no := h.combine(prefixOperator("!"), "operator ?:", []goja.Value{c.Argument(0)}, []int{at}, at)
		no = h.combine(infixOperator("&&"), "operator ?:", []goja.Value{no, other}, []int{at, at}, at)
		return h.combine(infixOperator("||"), "operator ?:", []goja.Value{yes, no}, []int{at, at}, at)
	}
	return h.combine(infixOperator("?:"), "operator ?:", []goja.Value{c.Argument(0), then, other}, []int{at, at, at}, at)
}

// try notes whether plan code runs a side behind a token.
func (h *host) try(c goja.FunctionCall) goja.Value {
	h.trying = c.Argument(0).ToBoolean()
	return goja.Undefined()
}

// changed reports that a side behind a token changes what is older than the side. c has the operator, the token and the place, and
// where the change is.
func (h *host) changed(c goja.FunctionCall) goja.Value {
	why := c.Argument(0).ToObject(h.vm)
	operator, t, site, at := why.Get("0").String(), tokenOf(why.Get("1")), int(why.Get("2").ToInteger()), int(c.Argument(1).ToInteger())
	if t.kind == broken {
		return goja.Undefined()
	}
	if at < 0 {
		at = h.u.here()
	}
	sides := "the right side of " + operator + " runs behind "
	if operator == "?:" {
		sides = "both sides of ?: run behind "
	}
	file, line, _ := h.u.place(at)
	h.u.failAt(site, "condition", fmt.Sprintf("%s%s, whatever a row has, and %s:%d changes what was there before", sides, t.describe(), file, line),
		"compute it before, as in const a = next(); Key.id > 5 ? a : 0")
	return goja.Undefined()
}

// isPredicate reports whether a value is true or false, now or when the plan runs.
func isPredicate(v goja.Value) bool {
	if t := tokenOf(v); t != nil {
		return t.kind == predicate || t.truth
	}
	_, ok := boolean(v)
	return ok
}

// condition is what a callback of filter, some, every or find returns.
func (h *host) condition(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t == nil {
		return c.Argument(0)
	}
	if t.kind != broken {
		h.u.failAt(h.u.here(), "condition", atRunTime(t), `the array's method wants true or false for each element: write ["US"].includes(Key.country), or conditions with || between them`)
	}
	return h.vm.ToValue(false)
}

// asPredicate writes how a token becomes a predicate.
func asPredicate(t *value) string {
	switch {
	case t.kind == predicate, t.kind == opaque:
		return "..."
	case t.truth:
		return short(t)
	case t.kind == set:
		return short(t) + ".includes(x)"
	case t.kind.isText():
		return short(t) + " == \"...\""
	}
	return short(t) + " != 0"
}

// value handles a token that plan code compares with ===, as in a switch.
func (h *host) value(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	if t.kind != broken {
		h.u.failAt(int(c.Argument(1).ToInteger()), "condition", atRunTime(t), "write one .filter for each case, and concat the branches")
	}
	return goja.Undefined()
}

// mayLack reports whether a token is a member of Key or P that is null in some row or request. JavaScript takes it to be there.
func (v *value) mayLack() bool {
	return v.param != nil && v.param.Default == nil || v.key != nil && v.key.Nullable
}

// given handles a token that stands where a default of JavaScript is, which is not for it. c has the token, the offset of the default, and
// the member that the token was of, if it was one. A function may be called with a key, whatever its default: it is then given.
func (h *host) given(c goja.FunctionCall) goja.Value {
	t, at, member := tokenOf(c.Argument(0)), int(c.Argument(1).ToInteger()), c.Argument(2).String()
	for i, d := range slices.Backward(h.defaults) {
		if d.at == at && d.token == t { // it is the default
			h.defaults = slices.Delete(h.defaults, i, i+1)
			return goja.Undefined()
		}
	}
	if t.mayLack() && (t.param != nil || t.name == "Key."+member) {
		h.lookAt("a default", t, at)
	}
	return goja.Undefined()
}

// takenDefault is a default that a parameter has taken whose function has not begun. One goroutine at a time.
type takenDefault struct {
	token *value
	at    int // offset
}

// taken handles a default that a parameter takes: c has the token and its offset.
func (h *host) taken(c goja.FunctionCall) goja.Value {
	if t := tokenOf(c.Argument(0)); t.mayLack() {
		h.defaults = append(h.defaults, takenDefault{t, int(c.Argument(1).ToInteger())})
	}
	return goja.Undefined()
}

// asks handles what asks an object whether a member is there. c has the object and the name.
func (h *host) asks(c goja.FunctionCall) goja.Value {
	if m, ok := export[*members](c.Argument(0)); ok && m.tokens {
		if t := tokenOf(m.get(c.Argument(1).String())); t != nil && t.mayLack() {
			h.lookAt(isThere, t, h.u.here())
		}
	}
	return goja.Undefined()
}

// varies reports whether a token is a value, equal to another one in some rows, and neither the name of a key nor rows.
func (h *host) varies(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	return h.vm.ToValue(t.key == nil && t.kind != broken)
}

// isSet reports whether a token is a set: elsewhere JavaScript would see its elements.
func (h *host) isSet(c goja.FunctionCall) goja.Value {
	t := tokenOf(c.Argument(0))
	return h.vm.ToValue(t != nil && t.kind == set)
}

// each handles a token that plan code loops over.
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

// looks says what to write in place of functions and operators of JavaScript that look at a value.
var looks = map[string]string{
	"typeof": typeHint, "instanceof": typeHint, "Array.isArray": typeHint, "Number.isInteger": "write x == Math.floor(x)", "Number.isSafeInteger": "write x == Math.floor(x)",
	"Number.isFinite": "a result that is not finite is null: write x != null", "Number.isNaN": "a result that is not a number is null: write x == null",
	"an iterator": "the iterator says true or false", "Object.is": "write ==", "Boolean": "write the predicate itself, or x != 0",
	"Array.prototype.indexOf": `write ["US", "CA"].includes(Key.country)`, "Array.prototype.lastIndexOf": `write ["US", "CA"].includes(Key.country)`,
	"Array.prototype.includes": "write Key.a == x || Key.b == x", "Set.prototype.has": "write Key.a == x || Key.b == x",
	"Set.prototype.values": alikeHint, "Set.prototype.entries": alikeHint, "Set.prototype.forEach": alikeHint,
	"Map.prototype.get": tableHint, "Map.prototype.has": tableHint, "Map.prototype.set": tableHint, "JSON.stringify": "a template writes values of a row: `${Key.title}!`",
}

const (
	isThere   = "a question whether it is there"
	typeHint  = "the registry says which type it has; x == null tests whether it is missing"
	alikeHint = "hold values in an array; a set of keys, such as new Set([Key.a, Key.b]), may be listed"
	tableHint = "write table(Key.category, { shoes: 2, hats: 3 }, 1)"
)

// look reports that JavaScript's own code looks at a token: c has what looks, the token or nothing, and perhaps the offset.
func (h *host) look(c goja.FunctionCall) goja.Value {
	what, t := c.Argument(0).String(), tokenOf(c.Argument(1))
	if t != nil && t.kind == broken {
		return h.broken
	}
	if _, inPlan := h.u.offset(h.vm.CaptureCallStack(0, nil)); inPlan || t != nil { // The engine asks for the class of an exception, too.
		h.lookAt(what, t, h.lookPlace(c))
	}
	return h.broken
}

func (h *host) lookPlace(c goja.FunctionCall) int {
	if at := c.Argument(2); goja.IsNumber(at) {
		return int(at.ToInteger())
	}
	return h.site()
}

// lookAt reports that JavaScript's own code looks at t; nil is a token that is not at hand.
func (h *host) lookAt(what string, t *value, at int) {
	seen := "a value that"
	if t != nil {
		seen = t.describe() + ", which"
	}
	hint := looks[what]
	if (what == "a default" || what == isThere) && t != nil {
		hint = "write " + orElse(t)
	}
	if hint == "" {
		hint = "plan code may hold it in arrays and objects and pass it on, and cannot look at it"
	}
	h.u.failAt(at, "look", fmt.Sprintf("%s looks at %s has a value only when the plan runs", what, seen), hint)
}

// orElse writes what a token is where it is null.
func orElse(t *value) string {
	if t.kind == number && !t.truth || t.kind.isText() {
		return short(t) + " ?? x, or " + short(t) + " != null"
	}
	return short(t) + " != null"
}

// replaceAdder replaces the method by which a collection takes a member, which JavaScript's constructor calls, too. The
// function sees the collection and the first argument before.
func (h *host) replaceAdder(c goja.FunctionCall) goja.Value {
	prototype, name := c.Argument(0).ToObject(h.vm), c.Argument(1).String()
	original, _ := goja.AssertFunction(prototype.Get(name))
	see, _ := goja.AssertFunction(c.Argument(2))
	made := func(c goja.FunctionCall) goja.Value {
		args := make([]goja.Value, max(2, len(c.Arguments)))
		for i := range args {
			if args[i] = c.Argument(i); args[i] == nil { // a hole of an array
				args[i] = goja.Undefined()
			}
		}
		if h.trying || tokenOf(args[0]) != nil {
			if _, err := see(goja.Undefined(), c.This, args[0]); err != nil {
				panic(err)
			}
		}
		v, err := original(c.This, args...)
		if err != nil {
			panic(err)
		}
		return v
	}
	function := h.vm.ToValue(made).ToObject(h.vm)
	_ = function.DefineDataProperty("name", h.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = function.DefineDataProperty("length", prototype.Get(name).ToObject(h.vm).Get("length"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.DefineDataProperty(name, function, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return goja.Undefined()
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
		to, advice := "a string", "strings in plan code are fixed when the plan is built; per row, == and regex(key, pattern) compare strings, and table(key, { US: 2 }, 1) looks them up"
		if hint == "number" {
			to, advice = "a number of plan code", "write the arithmetic with operators, as in Key.id * 2; x == null tests whether a value is missing"
		}
		h.u.failAt(h.u.here(), "conversion", atRunTime(t)+": it cannot become "+to, advice)
	}
	if hint == "number" {
		return h.vm.ToValue(0)
	}
	return h.vm.ToValue("")
}

// isBroken reports whether a value is left over from a fault, so that no more faults are reported for it.
func (h *host) isBroken(v goja.Value) bool {
	if t := tokenOf(v); t != nil {
		return t.kind == broken
	}
	return v == h.brokenCall
}
