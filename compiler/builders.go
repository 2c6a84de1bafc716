package compiler

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/plan/expr"
)

type builder = func(goja.FunctionCall) goja.Value

// numberBuilders returns the members of E.
func (h *host) numberBuilders() map[string]builder {
	all := map[string]builder{"key": h.eKey, "param": h.eParam, "const": h.eConst, "table": h.table}
	h.tableBuilders("E.", all)
	return all
}

// predicateBuilders returns the members of Pred.
func (h *host) predicateBuilders() map[string]builder {
	all := map[string]builder{
		"cmp": h.predCmp, "regex": h.regex, "const": h.predConst,
		"in": func(c goja.FunctionCall) goja.Value {
			site := h.callSite()
			t := tokenOf(c.Argument(0))
			if t == nil {
				h.u.failAt(site.arg(0), "type", "Pred.in takes a key or an expression, not "+plainWords(c.Argument(0)), "write Pred.in(E.key(Key.country), [\"US\"])")
				return h.broken
			}
			return h.in(t, c.Argument(1), site.arg(1), site.start)
		},
		"isNull":  func(c goja.FunctionCall) goja.Value { return h.predNull("is_null", "Pred.isNull", c) },
		"notNull": func(c goja.FunctionCall) goja.Value { return h.predNull("not_null", "Pred.notNull", c) },
	}
	h.tableBuilders("Pred.", all)
	return all
}

// tableBuilders adds the operators of the table that are members of an object and take numbers or predicates.
func (h *host) tableBuilders(object string, all map[string]builder) {
	for _, o := range expr.Operators() {
		name, ok := strings.CutPrefix(o.Builder, object)
		if ok && all[name] == nil {
			all[name] = func(c goja.FunctionCall) goja.Value { return h.apply(&o, o.Builder, c.Arguments, h.callSite()) }
		}
	}
}

// eKey is E.key(Key.id): the key itself.
func (h *host) eKey(c goja.FunctionCall) goja.Value {
	if t := tokenOf(c.Argument(0)); t != nil && (t.key != nil || t.kind == broken) {
		return c.Argument(0)
	}
	h.u.failAt(h.callSite().arg(0), "type", "E.key takes a key, not "+plainWords(c.Argument(0)), "write E.key(Key.id)")
	return h.broken
}

// eParam is E.param(P.weight): the parameter itself.
func (h *host) eParam(c goja.FunctionCall) goja.Value {
	if t := tokenOf(c.Argument(0)); t != nil && (t.param != nil || t.kind == broken) {
		return c.Argument(0)
	}
	h.u.failAt(h.callSite().arg(0), "type", "E.param takes a parameter, not "+plainWords(c.Argument(0)), "write E.param(P.weight)")
	return h.broken
}

// eConst is E.const(0.5) or E.const(null).
func (h *host) eConst(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	if t := tokenOf(c.Argument(0)); t != nil {
		if t.kind != broken {
			h.u.failAt(site.arg(0), "type", "E.const takes a constant, not "+article(t), "write the expression itself")
		}
		return h.broken
	}
	t := h.tree(c.Argument(0), number, true, site.arg(0), "E.const")
	if t == nil {
		return h.broken
	}
	return h.result(number, t, site.start)
}

// predConst is Pred.const(true).
func (h *host) predConst(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	if b, ok := boolean(c.Argument(0)); ok {
		return h.result(predicate, constBool(b), site.start)
	}
	if !h.isBroken(c.Argument(0)) {
		h.u.failAt(site.arg(0), "type", "Pred.const takes true or false, not "+plainWords(c.Argument(0)), "write Pred.const(true)")
	}
	return h.broken
}

// predCmp is Pred.cmp(">", a, b).
func (h *host) predCmp(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	if len(c.Arguments) != 3 {
		h.u.failAt(site.at, "arguments", fmt.Sprintf("Pred.cmp takes 3 arguments, not %d", len(c.Arguments)), `write Pred.cmp(">", a, b)`)
		return h.broken
	}
	if h.isBroken(c.Argument(0)) || h.isBroken(c.Argument(1)) || h.isBroken(c.Argument(2)) {
		return h.broken
	}
	o := comparison(c.Argument(0).String())
	if o == nil || !goja.IsString(c.Argument(0)) {
		h.u.failAt(site.arg(0), "enum", "Pred.cmp compares with == != < <= > >=, not "+plainWords(c.Argument(0)), `write Pred.cmp(">=", a, b)`)
		return h.broken
	}
	operands, places := c.Arguments[1:], []int{site.arg(1), site.arg(2)}
	for _, operand := range operands {
		if t := tokenOf(operand); t != nil && (t.kind.isText() || t.kind == set || t.truth) && (o.Cmp == "==" || o.Cmp == "!=") {
			if v, done := h.equality(o, operands[0], operands[1], site.start); done {
				return v
			}
		}
	}
	return h.combine(o, "Pred.cmp", operands, places, site.start)
}

// predNull is Pred.isNull(x) or Pred.notNull(x).
func (h *host) predNull(op, name string, c goja.FunctionCall) goja.Value {
	site := h.callSite()
	if t := tokenOf(c.Argument(0)); t != nil {
		return h.nullTest(op, t, site.arg(0))
	}
	h.u.failAt(site.arg(0), "type", name+" takes an expression, not "+plainWords(c.Argument(0)), "write "+name+"(E.key(Key.score))")
	return h.broken
}

// listMax bounds the list of .in, which the artifact holds.
const listMax = 1_000_000

// in is x.in(list). It has an offset of its own.
func (h *host) in(t *value, list goja.Value, at, start int) goja.Value {
	if t.kind == broken || h.isBroken(list) {
		return h.broken
	}
	if of := tokenOf(list); of != nil && of.kind == set {
		return h.member(of, h.make(t), at, start)
	}
	if t.kind != number && !t.kind.isText() {
		h.wrongKind(t, number, at, ".in")
		return h.broken
	}
	array := arrayOf(list)
	if array == nil {
		h.u.failAt(at, "type", ".in takes an array, not "+plainWords(list), `write .in(["US", "CA"]) or .in([1, 2])`)
		return h.broken
	}
	length := array.Get("length").ToInteger()
	if length > listMax {
		h.u.failAt(at, "too-large", fmt.Sprintf("the list of .in has %d elements, more than %d", length, listMax), "write a task that looks them up")
		return h.broken
	}
	items := make([]any, length)
	whole, texts := false, t.kind != number || h.textID(t) && length > 0 && goja.IsString(array.Get("0"))
	for i := range items {
		item := array.Get(itoa(i))
		if item == nil {
			item = goja.Undefined()
		}
		switch {
		case h.isBroken(item):
			return h.broken
		case texts && goja.IsString(item):
			items[i] = item.String()
		case !texts && t.tree.whole && !h.exact(item, at):
			return h.broken
		case !texts && goja.IsNumber(item) && !math.IsNaN(item.ToFloat()) && !math.IsInf(item.ToFloat(), 0):
			items[i] = item.ToFloat()
		case !texts && t.tree.whole && isInt64(item):
			items[i], whole = json.RawMessage(item.String()), true
		default:
			want, example := "numbers", "write .in([1, 2])"
			if texts {
				want, example = "strings", `write .in(["US", "CA"])`
			}
			h.u.failAt(at, "type", fmt.Sprintf("the list of %s.in has %s, not %s", short(t), want, plainWords(item)), example)
			return h.broken
		}
	}
	in := branch("in", map[string]any{"list": items}, []string{"lhs"}, t.tree)
	in.typed = in.typed || whole || texts && t.kind == number
	return h.result(predicate, in, start)
}

// includes is list.includes(x) with an array of plan code and an x that is known only at run time.
func (h *host) includes(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	return h.in(tokenOf(c.Argument(1)), c.Argument(0), site.arg(0), site.start)
}

// member is of.includes(x), or x.in(of), with a set or a list of the request.
func (h *host) member(of *value, x goja.Value, at, start int) goja.Value {
	if h.isBroken(x) {
		return h.broken
	}
	var element *tree
	switch t := tokenOf(x); {
	case t != nil && (t.kind.isText() || h.textID(t)) && of.elements == text, t != nil && t.kind == number && of.elements == number:
		element = t.tree
	case t == nil && goja.IsString(x) && of.elements == text:
		element = constText(x.String())
	case t == nil && isInt64(x) && of.elements == number:
		element = constWhole(x.String())
	case t == nil && goja.IsNumber(x) && of.elements == number:
		if !h.exact(x, at) {
			return h.broken
		}
		element = h.tree(x, number, false, at, ".includes")
	default:
		want, example := "a number", "write "+short(of)+".includes(Key.id)"
		if of.elements == text {
			want, example = "a string", "write "+short(of)+`.includes("news")`
		}
		h.u.failAt(at, "type", fmt.Sprintf("%s has strings or numbers of its own: .includes takes %s, not %s", short(of), want, plainWords(x)), example)
	}
	if element == nil {
		return h.broken
	}
	return h.result(predicate, needsTypes(branch("member", nil, memberNames(namedOperator("member")), element, of.tree)), start)
}

// isInt64 reports whether a value of plan code is a BigInt of at most 64 bits.
func isInt64(v goja.Value) bool {
	if !goja.IsBigInt(v) {
		return false
	}
	_, err := strconv.ParseInt(v.String(), 10, 64)
	return err == nil
}

// table is table(x, entries, otherwise).
func (h *host) table(c goja.FunctionCall) goja.Value {
	const advice = "write table(Key.category, { shoes: 2, hats: 3 }, 1)"
	site := h.callSite()
	if h.isBroken(c.Argument(0)) {
		return h.broken
	}
	x := tokenOf(c.Argument(0))
	operand := c.Argument(0)
	if x != nil && x.tree != nil && x.tree.op == "const_number" { // E.const(5)
		operand = h.vm.ToValue(x.tree.members["value"])
	}
	f, isNumber := finite(operand)
	switch {
	case goja.IsString(operand):
		x = &value{kind: text, name: quote(operand.String()), tree: constText(operand.String())}
	case isNumber && !h.exact(operand, site.arg(0)):
		return h.broken
	case isNumber && f == math.Trunc(f) && math.Abs(f) < 1<<53, isInt64(operand):
		x = &value{kind: number, name: operand.String(), tree: constWhole(operand.String())}
	}
	if x == nil || !x.kind.isText() && !(x.kind == number && x.tree.whole) {
		h.u.failAt(site.arg(0), "type", "table takes a key, a parameter or a constant that is a string or an integer, not "+plainWords(c.Argument(0)), advice)
		return h.broken
	}
	given, ok := c.Argument(1).(*goja.Object)
	if !ok || hosted(given) || given.ClassName() != "Object" {
		h.u.failAt(site.arg(1), "type", "the entries of table are an object, not "+plainWords(c.Argument(1)), advice)
		return h.broken
	}
	entries := make(map[string]any)
	for _, name := range given.Keys() {
		value, ok := finite(given.Get(name))
		if !ok {
			h.u.failAt(site.arg(1), "type", "the entry "+quote(name)+" of table is not a number", advice)
			return h.broken
		}
		integer, err := strconv.ParseInt(name, 10, 64)
		if f := float64(integer); err == nil && x.kind == number && math.Abs(f) >= 1<<53 && strconv.FormatFloat(f, 'f', -1, 64) == name {
			h.u.failAt(site.arg(1), "precision", "the entry "+quote(name)+" of table may be another number in the source: numbers of JavaScript from 2^53 on are rounded",
				"compare with its digits with n behind them, as in Key.id == 9007199254740993n ? 2 : table(Key.id, { 7: 3 })")
			return h.broken
		}
		if err != nil && x.kind == number && !h.textID(x) {
			h.u.failAt(site.arg(1), "type", "the entry "+quote(name)+" of table is not an integer, as "+x.describe()+" is", advice)
			return h.broken
		}
		entries[name] = value
	}
	if len(entries) > expr.EntriesMax {
		h.u.failAt(site.arg(1), "too-large", fmt.Sprintf("table has %d entries, and takes %d", len(entries), expr.EntriesMax), "read the values from Redis by a lookup")
		return h.broken
	}
	members := map[string]any{"entries": entries}
	if otherwise := c.Argument(2); !goja.IsUndefined(otherwise) && !goja.IsNull(otherwise) {
		value, ok := finite(otherwise)
		if !ok {
			h.u.failAt(site.arg(2), "type", "the default of table is a number or null, not "+plainWords(otherwise), advice)
			return h.broken
		}
		members["default"] = value
	}
	return h.result(number, needsTypes(branch("table", members, []string{"x"}, x.tree)), site.start)
}

// finite returns the number of a value of plan code, or false if it is not a finite number.
func finite(v goja.Value) (float64, bool) {
	if v == nil || hosted(v) || !goja.IsNumber(v) {
		return 0, false
	}
	f := v.ToFloat()
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// regex is regex(key, pattern, flags).
func (h *host) regex(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	if h.isBroken(c.Argument(0)) || h.isBroken(c.Argument(1)) || h.isBroken(c.Argument(2)) {
		return h.broken
	}
	key := tokenOf(c.Argument(0))
	if key == nil || key.kind != text {
		h.u.failAt(site.arg(0), "type", "regex takes a string key, not "+plainWords(c.Argument(0)), `write regex(Key.title, "^new", "i")`)
		return h.broken
	}
	flags := ""
	switch f := c.Argument(2); {
	case goja.IsUndefined(f):
	case goja.IsString(f) && (f.String() == "" || f.String() == "i"):
		flags = f.String()
	default:
		h.u.failAt(site.arg(2), "enum", `the flags of regex are "" or "i", not `+plainWords(f), `"i" ignores the case of letters`)
		return h.broken
	}
	var pattern map[string]any
	switch p, source := tokenOf(c.Argument(1)), c.Argument(1); {
	case p != nil && p.kind == textParam:
		pattern = map[string]any{"kind": "param", "param_id": p.param.ID}
	case p == nil && goja.IsString(source):
		if err := expr.CheckPattern(source.String(), flags == "i"); err != nil {
			h.u.failAt(site.arg(1), "pattern", err.Error(), "patterns are written in RE2: https://github.com/google/re2/wiki/Syntax")
			return h.broken
		}
		pattern = map[string]any{"kind": "literal", "value": source.String()}
	default:
		h.u.failAt(site.arg(1), "type", "the pattern of regex is a string or a string parameter, not "+plainWords(source),
			`write regex(Key.title, "^new", "i") or regex(Key.title, P.name)`)
		return h.broken
	}
	match := leaf("regex", map[string]any{"key_id": key.key.ID, "pattern": pattern, "flags": flags})
	match.fails = pattern["kind"] == "param"
	return h.result(predicate, match, site.start)
}
