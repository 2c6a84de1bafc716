package compiler

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

var (
	nativePlans = flag.Int("native_plans", 100, "how many random plans TestPlansWithNativeOperators compiles")
	nativeFirst = flag.Int("native_first", 0, "the seed of the first one")
)

// irTree is an expression or a predicate of an artifact.
type irTree = map[string]any

// irGen makes random trees, as artifacts have them, from the table of operators.
type irGen struct {
	rng    *rand.Rand
	reg    *registry.Registry
	keys   map[registry.Type][]int // ids
	params map[registry.Type][]int
	// literal says that patterns are literals, as conditions of expressions want it.
	literal bool
}

func newIRGen(rng *rand.Rand, reg *registry.Registry) *irGen {
	g := &irGen{rng: rng, reg: reg, keys: make(map[registry.Type][]int), params: make(map[registry.Type][]int)}
	for _, k := range reg.Keys() {
		g.keys[k.Type] = append(g.keys[k.Type], int(k.ID))
	}
	for _, p := range reg.Params() {
		g.params[p.Type] = append(g.params[p.Type], int(p.ID))
	}
	return g
}

func pickOf[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// stored returns a key or a parameter of one of the types.
func (g *irGen) stored(types ...registry.Type) irTree {
	var all []irTree
	for _, typ := range types {
		for _, id := range g.keys[typ] {
			all = append(all, irTree{"op": "key_ref", "key_id": id})
		}
		for _, id := range g.params[typ] {
			all = append(all, irTree{"op": "param_ref", "param_id": id})
		}
	}
	return pickOf(g.rng, all...)
}

func (g *irGen) constant() irTree {
	return irTree{"op": "const_number", "value": pickOf[any](g.rng, 0., 1., -1., 0.5, 2., 3., -7., 0.1, 1e21, 1.5e-7, -123456789., json.RawMessage("-0.0"))}
}

var irNull = irTree{"op": "const_null"}

// of returns a random tree for an operand of an operator.
func (g *irGen) of(o *expr.Operator, i, depth int) irTree {
	switch takes := o.Operands[i].Takes; {
	case o.Name == "table":
		return pickOf(g.rng, g.stored(registry.Int), g.stored(registry.String), irTree{"op": "lower", "x": g.text(depth)}) // A constant is an error.
	case o.Operands[i].Member == "zone":
		return irTree{"op": "const_string", "value": pickOf(g.rng, "UTC", "Europe/Berlin")}
	case takes == expr.TakesPredicate:
		return g.predicate(depth)
	case takes == expr.TakesText:
		return g.text(depth)
	case takes == expr.TakesVector:
		return irTree{"op": "key_ref", "key_id": pickOf(g.rng, g.keys[registry.Vector]...)}
	case takes == expr.TakesElement && g.rng.IntN(2) == 0:
		return g.text(depth)
	case takes == expr.TakesNullable && i > 0 && g.rng.IntN(6) == 0:
		return irNull
	}
	return g.number(depth)
}

// numeric are the operators that make numbers of operands.
var numeric = func() (all []expr.Operator) {
	for _, o := range expr.Operators() {
		if o.Makes == expr.Number && len(o.Operands) > 0 {
			all = append(all, o)
		}
	}
	return all
}()

// number returns a random expression that is a number.
func (g *irGen) number(depth int) irTree {
	if depth <= 0 || g.rng.IntN(7) == 0 {
		switch g.rng.IntN(10) {
		case 0:
			return irNull
		case 1:
			return irTree{"op": "now"}
		case 2, 3, 4:
			return g.constant()
		}
		return g.stored(registry.Float, registry.Int, registry.Float, registry.Bool)
	}
	o := pickOf(g.rng, numeric...)
	if g.rng.IntN(2) == 0 {
		o = *namedOperator(pickOf(g.rng, "add", "sub", "mul", "div", "mod", "pow", "coalesce", "if", "neg"))
	}
	t := irTree{"op": o.Name}
	if o.Name == "table" {
		t["entries"] = map[string]any{"1": 0.5, "7": -2.}
		if g.rng.IntN(2) == 0 {
			t["default"] = 3.5
		}
	}
	literal := g.literal
	g.literal = g.literal || o.Name == "if"
	for i := range o.Operands {
		t[o.Operands[i].Member] = g.of(&o, i, depth-1-g.rng.IntN(2))
	}
	g.literal = literal
	if o.Name == "if" && g.isBool(t["then"].(irTree)) && g.isBool(t["else"].(irTree)) {
		return g.number(depth) // The page says that such a choice is a predicate.
	}
	return t
}

func (g *irGen) isBool(t irTree) bool {
	return t["op"] == "key_ref" && slices.Contains(g.keys[registry.Bool], t["key_id"].(int))
}

// text returns a random expression that is a string.
func (g *irGen) text(depth int) irTree {
	if depth <= 0 || g.rng.IntN(3) == 0 {
		if g.rng.IntN(3) == 0 {
			return irTree{"op": "const_string", "value": pickOf(g.rng, "US", "a b", "ß", "`${x}`", "it's \"", "\\n", "5")}
		}
		return g.stored(registry.String)
	}
	depth--
	switch g.rng.IntN(4) {
	case 0:
		return irTree{"op": "lower", "x": g.text(depth)}
	case 1:
		return irTree{"op": "coalesce", "a": g.text(depth), "b": pickOf(g.rng, irNull, g.text(depth))}
	case 2:
		literal := g.literal
		g.literal = true
		cond := g.predicate(depth)
		g.literal = literal
		return irTree{"op": "if", "cond": cond, "then": g.text(depth), "else": pickOf(g.rng, irNull, g.text(depth))}
	}
	parts := []irTree{g.text(depth), pickOf(g.rng, g.text(depth), g.number(depth))}
	g.rng.Shuffle(2, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return irTree{"op": "concat", "a": parts[0], "b": parts[1]}
}

// predicate returns a random predicate.
func (g *irGen) predicate(depth int) irTree {
	if depth > 0 && g.rng.IntN(4) > 0 {
		depth--
		switch g.rng.IntN(6) {
		case 0, 1:
			return irTree{"op": "not", "x": g.predicate(depth)}
		case 2: // a choice
			c := g.predicate(depth)
			return irTree{"op": "or", "a": irTree{"op": "and", "a": c, "b": g.predicate(depth)},
				"b": irTree{"op": "and", "a": irTree{"op": "not", "x": c}, "b": g.predicate(depth)}}
		}
		return irTree{"op": pickOf(g.rng, "and", "or"), "a": g.predicate(depth), "b": g.predicate(depth)}
	}
	depth = max(depth, 1)
	set, ints := g.stored(registry.StringSet, registry.StringList), g.stored(registry.IntList)
	texts := []any{"US", "DE", "a b"}[:1+g.rng.IntN(3)]
	switch g.rng.IntN(14) {
	case 0:
		return irTree{"op": "const_bool", "value": g.rng.IntN(2) == 0}
	case 1:
		return irTree{"op": pickOf(g.rng, "is_null", "not_null"), "x": pickOf(g.rng, g.number(depth), g.stored(registry.String), set, ints)}
	case 2:
		x, list := g.number(depth-1), []any{1., -2.5, 1e21, 7.}[:1+g.rng.IntN(4)]
		if g.rng.IntN(2) == 0 {
			x, list = g.stored(registry.Int), []any{5., json.RawMessage("9007199254740993"), json.RawMessage("-3")}
		}
		return irTree{"op": "in", "lhs": x, "list": list}
	case 3:
		return irTree{"op": "in", "lhs": g.stored(registry.String), "list": texts}
	case 4:
		return irTree{"op": "member", "x": g.text(1), "set": set}
	case 5:
		return irTree{"op": "member", "x": pickOf(g.rng, g.stored(registry.Int), irTree{"op": "const_number", "value": json.RawMessage("9007199254740993")}), "set": ints}
	case 6:
		pattern := map[string]any{"kind": "literal", "value": pickOf(g.rng, "^U", "a|b", `\d+$`)}
		if !g.literal && g.rng.IntN(3) == 0 {
			pattern = map[string]any{"kind": "param", "param_id": pickOf(g.rng, g.params[registry.String]...)}
		}
		return irTree{"op": "regex", "key_id": pickOf(g.rng, g.keys[registry.String]...), "pattern": pattern, "flags": pickOf(g.rng, "", "i")}
	case 7:
		return irTree{"op": pickOf(g.rng, "contains", "starts_with", "ends_with"), "x": g.text(depth), "part": g.text(depth - 1)}
	case 8: // what a bool is as a predicate
		return irTree{"op": "cmp", "cmp": pickOf(g.rng, "!=", "=="), "a": g.stored(registry.Bool), "b": irTree{"op": "const_number", "value": pickOf(g.rng, 0., 1.)}}
	case 9: // two strings
		a, b := g.text(depth), g.text(depth-1)
		if a["op"] == "const_string" { // which stands behind
			a, b = b, a
		}
		cmp := pickOf(g.rng, "==", "!=")
		switch {
		case a["op"] == "const_string":
			return g.predicate(depth)
		case a["op"] == "key_ref" && b["op"] == "const_string":
			in := irTree{"op": "in", "lhs": a, "list": []any{b["value"]}}
			if cmp == "!=" {
				return irTree{"op": "not", "x": in}
			}
			return in
		}
		return irTree{"op": "cmp", "cmp": cmp, "a": a, "b": b}
	case 10: // two integers
		a, b := g.stored(registry.Int), pickOf(g.rng, g.stored(registry.Int), irTree{"op": "const_number", "value": pickOf(g.rng, json.RawMessage("9007199254740993"), json.RawMessage("-4"))})
		if g.rng.IntN(2) == 0 {
			a, b = b, a
		}
		return irTree{"op": "cmp", "cmp": pickOf(g.rng, "==", "!=", "<", "<=", ">", ">="), "a": a, "b": b}
	}
	return irTree{"op": "cmp", "cmp": pickOf(g.rng, "==", "!=", "<", "<=", ">", ">="), "a": g.number(depth), "b": g.number(depth - 1)}
}

// written is a tree in TypeScript: its text, how tightly its last operator binds, whether it is a value of JavaScript
// for the compiler, and the tree that it has to compile to.
type written struct {
	text  string
	binds int
	plain bool
	tree  irTree
	// decided says that it ends with a constant, "x || true". esbuild leaves out what another operator would do with it.
	decided bool
	// joined says that it is a + or a template of strings, which esbuild joins with another one: ("a" + x) + "b".
	joined bool
}

// How tightly operators bind: those of property_test.go, with places between.
const (
	bindsNullish = 2*bindsChoice + 1
	bindsPower   = 2*bindsMul + 1
	bindsAtom    = 2 * bindsAll
)

var bindsInfix = map[string]int{
	"||": 2 * bindsOr, "&&": 2 * bindsAnd, "==": 2 * bindsEqual, "!=": 2 * bindsEqual, "<": 2 * bindsLess, "<=": 2 * bindsLess, ">": 2 * bindsLess,
	">=": 2 * bindsLess, "+": 2 * bindsAdd, "-": 2 * bindsAdd, "*": 2 * bindsMul, "/": 2 * bindsMul, "%": 2 * bindsMul, "**": bindsPower, "??": bindsNullish,
}

// nativeWriter writes trees as TypeScript. For each operator it takes the one of JavaScript in 70 % of cases, and else
// the builder.
type nativeWriter struct {
	*irGen
	hoisted          []string // constants and helpers, in order
	names            []string // of these
	native, builders int
}

func (w *nativeWriter) chance(percent int) bool { return w.rng.IntN(100) < percent }

// in puts parentheses around a text where they are needed, and sometimes elsewhere.
func (w *nativeWriter) in(x written, least int) string {
	if x.binds < least || w.chance(6) {
		return "(" + x.text + ")"
	}
	return x.text
}

func (w *nativeWriter) hoist(format string, args ...any) string {
	name := fmt.Sprintf("x%d", len(w.names))
	w.names = append(w.names, name)
	w.hoisted = append(w.hoisted, fmt.Sprintf(format, append([]any{name}, args...)...))
	return name
}

// token makes a constant a token.
func (w *nativeWriter) token(x written) written {
	if x.plain {
		object := "E"
		if x.tree["op"] == "const_bool" {
			object = "Pred"
		}
		x.text, x.binds, x.plain = object+".const("+x.text+")", bindsAtom, false
	}
	return x
}

// quoted returns a literal of a string.
func (w *nativeWriter) quoted(s string) string {
	text, _ := json.Marshal(s)
	if !strings.ContainsAny(s, "`$\\'") && w.chance(30) {
		return pickOf(w.rng, "'"+s+"'", "`"+s+"`")
	}
	return string(text)
}

// undecided hides from esbuild that a text ends with a constant.
func (w *nativeWriter) undecided(x written) written {
	if x.decided {
		x.text, x.binds, x.decided = w.hoist("const %s = %s;", x.text), bindsAtom, false
	}
	return x
}

func literalOf(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.RawMessage:
		if string(v) == "-0.0" {
			return "-0"
		}
		return string(v) + "n"
	}
	return fmt.Sprint(v)
}

// write writes a tree.
func (w *nativeWriter) write(t irTree) (made written) {
	x := w.writeOnce(t)
	before := x.text
	defer func() { made.decided, made.joined = x.decided && made.text == before, x.joined && made.text == before }()
	switch {
	case w.chance(5):
		x.text, x.binds = w.hoist("const %s = "+pickOf(w.rng, "%s", "(%s)", "((a) => a)(%s)", "[%s][0]", "{ a: %s }.a")+";", x.text), bindsAtom
	case w.chance(2):
		x.text, x.binds = "((a) => a)("+x.text+")", bindsAtom
	}
	return x
}

func (w *nativeWriter) writeOnce(t irTree) written {
	atom := func(text string) written { return written{text: text, binds: bindsAtom, tree: t} }
	plain := func(text string) written {
		binds := bindsAtom
		if text[0] == '-' {
			binds = 2 * bindsUnary
		}
		return written{text: text, binds: binds, plain: true, tree: t}
	}
	op := t["op"].(string)
	switch op {
	case "const_number", "const_bool":
		x := plain(literalOf(t["value"]))
		if !strings.HasSuffix(x.text, "n") && w.chance(15) {
			x = w.token(x)
		}
		return x
	case "const_null":
		return plain("null")
	case "const_string":
		return plain(w.quoted(t["value"].(string)))
	case "key_ref":
		key, _ := w.reg.Key(registry.KeyID(t["key_id"].(int)))
		name := pickOf(w.rng, "Key."+key.Name, `Key["`+key.Name+`"]`)
		return atom(pickOf(w.rng, name, name, "E.key("+name+")"))
	case "param_ref":
		param, _ := w.reg.Param(registry.ParamID(t["param_id"].(int)))
		return atom(pickOf(w.rng, "P."+param.Name, "E.param(P."+param.Name+")"))
	case "now":
		return atom("now()")
	case "regex":
		key, _ := w.reg.Key(registry.KeyID(t["key_id"].(int)))
		pattern := t["pattern"].(map[string]any)
		text := ""
		if pattern["kind"] == "param" {
			param, _ := w.reg.Param(registry.ParamID(pattern["param_id"].(int)))
			text = "P." + param.Name
		} else {
			text = w.quoted(pattern["value"].(string))
		}
		flags := ""
		if t["flags"] != "" || w.chance(30) {
			flags = fmt.Sprintf(", %q", t["flags"])
		}
		return atom(w.function("regex", "Pred.regex") + "(Key." + key.Name + ", " + text + flags + ")")
	case "in":
		return w.writeIn(t)
	case "member":
		x, set := w.write(t["x"].(irTree)), w.write(t["set"].(irTree))
		t = irTree{"op": op, "x": x.tree, "set": set.tree}
		if !x.plain && w.chance(30) {
			return atomOf(w.in(x, bindsAtom)+".in("+set.text+")", t)
		}
		return atomOf(w.in(set, bindsAtom)+".includes("+x.text+")", t)
	case "is_null", "not_null":
		x := w.token(w.write(t["x"].(irTree)))
		t = irTree{"op": op, "x": x.tree}
		if !w.chance(70) {
			w.builders++
			return atomOf(map[string]string{"is_null": "Pred.isNull", "not_null": "Pred.notNull"}[op]+"("+x.text+")", t)
		}
		w.native++
		equal := map[string]string{"is_null": "==", "not_null": "!="}[op] + pickOf(w.rng, "", "=")
		if w.chance(30) {
			return written{text: "null " + equal + " " + w.in(x, 2*bindsEqual+1), binds: 2 * bindsEqual, tree: t}
		}
		return written{text: w.in(x, 2*bindsEqual) + " " + equal + " null", binds: 2 * bindsEqual, tree: t}
	}
	if x, ok := w.special(t); ok {
		return x
	}
	return w.operation(t)
}

func atomOf(text string, t irTree) written { return written{text: text, binds: bindsAtom, tree: t} }

// function returns one of two names, by the share of native operators.
func (w *nativeWriter) function(native, builder string) string {
	if w.chance(70) || builder == "" {
		w.native++
		return native
	}
	w.builders++
	return builder
}

func (w *nativeWriter) writeIn(t irTree) written {
	x := w.token(w.write(t["lhs"].(irTree)))
	t = irTree{"op": "in", "lhs": x.tree, "list": t["list"]}
	var items []string
	for _, item := range t["list"].([]any) {
		if s, ok := item.(string); ok {
			items = append(items, w.quoted(s))
		} else {
			items = append(items, literalOf(item))
		}
	}
	list := "[" + strings.Join(items, ", ") + "]"
	if w.chance(20) {
		list = w.hoist("const %s = %s;", list)
	}
	switch {
	case !w.chance(70):
		w.builders++
		return atomOf("Pred.in("+x.text+", "+list+")", t)
	case w.chance(30):
		w.native++
		return atomOf(list+".includes("+x.text+")", t)
	case w.chance(30):
		w.native++
		return atomOf("new Set("+list+").has("+x.text+")", t)
	}
	w.native++
	return atomOf(w.in(x, bindsAtom)+".in("+list+")", t)
}

// special writes trees that JavaScript writes in a shorter way: comparisons of a string key, bools, choices between predicates.
func (w *nativeWriter) special(t irTree) (written, bool) {
	sub := func(t any, names ...string) any {
		for _, name := range names {
			m, ok := t.(irTree)
			if !ok {
				return nil
			}
			t = m[name]
		}
		return t
	}
	same := func(a, b any) bool {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return string(x) == string(y)
	}
	isCmpTo := func(t any, cmp string, value float64) bool {
		a, ok := sub(t, "a").(irTree)
		return ok && sub(t, "op") == "cmp" && sub(t, "cmp") == cmp && w.isBool(a) && sub(t, "b", "value") == value
	}
	if !w.chance(60) {
		return written{}, false
	}
	switch {
	case isCmpTo(t, "!=", 0):
		return w.bool(t), true
	case isCmpTo(t, "==", 1):
		return written{text: w.in(w.bool(t), 2*bindsEqual) + pickOf(w.rng, " == ", " === ") + "true", binds: 2 * bindsEqual, tree: t}, true
	case sub(t, "op") == "not" && sub(t, "x", "op") == "in" && sub(t, "x", "lhs", "op") == "key_ref" && len(sub(t, "x", "list").([]any)) == 1:
		if s, ok := sub(t, "x", "list").([]any)[0].(string); ok {
			x := w.write(sub(t, "x", "lhs").(irTree))
			return written{text: w.in(x, 2*bindsEqual) + pickOf(w.rng, " != ", " !== ") + w.quoted(s), binds: 2 * bindsEqual, tree: t}, true
		}
	case sub(t, "op") == "or" && sub(t, "b", "a", "op") == "not" && sub(t, "a", "op") == "and" && sub(t, "b", "op") == "and" && same(sub(t, "a", "a"), sub(t, "b", "a", "x")):
		c, yes, no := w.undecided(w.token(w.write(sub(t, "a", "a").(irTree)))), w.write(sub(t, "a", "b").(irTree)), w.write(sub(t, "b", "b").(irTree))
		tree := irTree{"op": "or", "a": irTree{"op": "and", "a": c.tree, "b": yes.tree}, "b": irTree{"op": "and", "a": irTree{"op": "not", "x": c.tree}, "b": no.tree}}
		return written{text: w.in(c, bindsNullish) + " ? " + w.in(yes, 2) + " : " + w.in(no, 2), binds: 2 * bindsChoice, tree: tree}, true
	}
	return written{}, false
}

// bool writes the key of a comparison with 0 or 1.
func (w *nativeWriter) bool(t irTree) written {
	x := w.write(t["a"].(irTree))
	x.tree = t
	return x
}

// operation writes an operator of the table.
func (w *nativeWriter) operation(t irTree) written {
	o := namedOperator(t["op"].(string))
	if cmp, ok := t["cmp"]; ok {
		o = comparison(cmp.(string))
	}
	var operands []written
	for i := range o.Operands {
		operands = append(operands, w.write(t[o.Operands[i].Member].(irTree)))
	}
	whole := slices.ContainsFunc(operands, func(x written) bool { return x.plain && isWholeLiteral(x) })
	for i := range operands {
		null := operands[i].tree["op"] == "const_null"
		if null && (o.Operands[i].Takes != expr.TakesNullable || i == 0) {
			operands[i] = w.token(operands[i])
		}
	}
	written := w.apply(o, t, operands, whole)
	return written
}

func isWholeLiteral(x written) bool {
	raw, ok := x.tree["value"].(json.RawMessage)
	return ok && string(raw) != "-0.0"
}

// apply writes an operator around operands.
func (w *nativeWriter) apply(o *expr.Operator, t irTree, x []written, whole bool) written {
	tree := maps.Clone(t)
	for i := range x {
		tree[o.Operands[i].Member] = x[i].tree
	}
	name := o.Builder
	if o.Cmp != "" {
		name = "Pred.cmp"
	}
	texts := make([]string, len(x))
	for i := range x {
		texts[i] = x[i].text
	}
	builder := func() written {
		w.builders++
		switch {
		case o.Cmp != "":
			return atomOf(fmt.Sprintf("Pred.cmp(%q, %s)", o.Cmp, strings.Join(texts, ", ")), tree)
		case o.Name == "table":
			return atomOf("E.table("+texts[0]+w.entries(t)+")", tree)
		}
		return atomOf(name+"("+strings.Join(texts, ", ")+")", tree)
	}
	infix, isMath := o.Infix, isMath(o.Function)
	if o.Name == "concat" {
		infix = "+"
	}
	if name != "" && !w.chance(70) || slices.ContainsFunc(x, func(x written) bool { return x.decided || x.joined && o.Name == "concat" }) {
		return builder()
	}
	// What is not a token would be computed by JavaScript.
	plainText := slices.ContainsFunc(x, func(x written) bool { return x.plain && x.tree["op"] == "const_string" })
	lazy := infix == "&&" || infix == "||" || infix == "??" || infix == "?:"
	all := !slices.ContainsFunc(x, func(x written) bool { return !x.plain })
	switch {
	case infix != "" && plainText && (lazy && x[0].plain || all):
		if o.Function == "" || o.Name == "concat" {
			return builder()
		}
		infix = ""
	case lazy && x[0].plain:
		if w.chance(30) {
			if folded, ok := w.foldLazy(infix, x); ok {
				w.native++
				return folded
			}
		}
		x[0] = w.token(x[0])
	case (infix != "" || isMath || o.Prefix != "") && all:
		if w.chance(30) && !whole {
			if folded, ok := w.fold(infix+o.Prefix, x); ok {
				w.native++
				return folded
			}
		}
		i := w.rng.IntN(len(x))
		x[i] = w.token(x[i])
	}
	w.native++
	for i := range x {
		texts[i] = x[i].text
	}
	function := o.Function
	switch {
	case infix == "?:":
		return written{text: w.in(x[0], bindsNullish) + " ? " + w.in(x[1], 2) + " : " + w.in(x[2], 2), binds: 2 * bindsChoice, tree: tree}
	case o.Prefix != "":
		return written{text: o.Prefix + pickOf(w.rng, " ", "") + w.spaced(o.Prefix, w.in(x[0], 2*bindsUnary)), binds: 2 * bindsUnary, tree: tree}
	case infix != "" && (function == "" || w.chance(60)):
		return w.infix(o, infix, x, tree)
	case o.Name == "table":
		return atomOf("table("+texts[0]+w.entries(t)+")", tree)
	case isMath && o.Variadic && w.chance(20):
		return atomOf(function+"(...["+strings.Join(texts, ", ")+"])", tree)
	}
	require := function != ""
	if !require {
		panic("no way to write " + o.Name)
	}
	return atomOf(function+"("+strings.Join(texts, ", ")+")", tree)
}

// spaced keeps two operators apart: - -x.
func (w *nativeWriter) spaced(prefix, text string) string {
	if strings.HasPrefix(text, prefix) {
		return " " + text
	}
	return text
}

func (w *nativeWriter) entries(t irTree) string {
	text := ", { 1: 0.5, '7': -2 }"
	if t["default"] != nil {
		text += ", 3.5"
	}
	return text
}

// infix writes an operator between two operands, perhaps in a helper.
func (w *nativeWriter) infix(o *expr.Operator, operator string, x []written, tree irTree) written {
	binds := bindsInfix[operator]
	if o.Name == "concat" {
		binds = bindsInfix["+"]
		if x[0].tree["op"] != "const_number" && w.chance(30) { // a template is a string from its first part on
			if t := w.template(x[0], x[1]); t != "" {
				return written{text: t, binds: bindsAtom, tree: tree, joined: true}
			}
		}
	}
	write := func(a, b written) string {
		left, right := binds, binds+1
		switch operator {
		case "**":
			left, right = bindsAtom, bindsPower
		case "??":
			if left, right = 2*bindsEqual, 2*bindsEqual; a.binds == bindsNullish {
				left = bindsNullish
			}
		}
		written := operator
		if (o.Cmp == "==" || o.Cmp == "!=") && w.isBool(x[0].tree) == w.isBool(x[1].tree) { // by === no bool is a number
			written += pickOf(w.rng, "", "=")
		}
		first, second := w.in(a, left), w.in(b, right)
		if operator == ">" && second[0] == '(' { // f(a < b, c > (d)) calls a<b, c> in TypeScript
			return "(" + first + " > " + second + ")"
		}
		if w.chance(10) && !strings.HasSuffix(first, "-") && second[0] != '-' && second[0] != '+' && written != "??" {
			return first + written + second
		}
		return first + " " + written + " " + second
	}
	a, b := written{text: "a", binds: bindsAtom}, written{text: "b", binds: bindsAtom}
	switch {
	case w.chance(3):
		return atomOf(w.hoist("const %s = (a: any, b: any) => %s;", write(a, b))+"("+x[0].text+", "+x[1].text+")", tree)
	case w.chance(3):
		return atomOf(w.hoist("function %s({ b, a }: any) { return %s; }", write(a, b))+"({ a: "+x[0].text+", b: "+x[1].text+" })", tree)
	case w.chance(2):
		return atomOf("["+x[0].text+", "+x[1].text+"].reduce((a: any, b: any) => "+write(a, b)+")", tree)
	case o.Cmp == "" && w.chance(3):
		return atomOf("(() => { let v: any = "+x[0].text+"; v "+operator+"= "+x[1].text+"; return v; })()", tree)
	case o.Cmp == "" && w.chance(2):
		return atomOf("((o: any) => (o"+pickOf(w.rng, ".v", `["v"]`)+" "+operator+"= "+x[1].text+"))({ v: "+x[0].text+" })", tree)
	}
	decided := (operator == "||" || operator == "&&") && (x[1].plain || x[1].decided)
	return written{text: write(x[0], x[1]), binds: binds, tree: tree, decided: decided, joined: o.Name == "concat"}
}

// template writes a concatenation of two parts, the first of which is a string, as a template. It returns "" if the parts make none.
func (w *nativeWriter) template(a, b written) string {
	part := func(x written) string {
		if s, ok := x.tree["value"].(string); ok && x.plain && x.tree["op"] == "const_string" && x.text[0] == '"' && !strings.ContainsAny(s, "`$\\") {
			return s
		}
		return "${" + x.text + "}"
	}
	if !w.isText(a.tree) {
		return ""
	}
	return "`" + part(a) + part(b) + "`"
}

// isText reports whether a tree is a string.
func (w *nativeWriter) isText(t irTree) bool {
	switch t["op"] {
	case "const_string", "concat", "lower":
		return true
	case "key_ref":
		return slices.Contains(w.keys[registry.String], t["key_id"].(int))
	case "param_ref":
		return slices.Contains(w.params[registry.String], t["param_id"].(int))
	case "coalesce":
		return w.isText(t["a"].(irTree)) || w.isText(t["b"].(irTree))
	case "if":
		return w.isText(t["then"].(irTree)) || w.isText(t["else"].(irTree))
	}
	return false
}

// foldLazy writes an operator that JavaScript decides, because its first operand is a constant.
func (w *nativeWriter) foldLazy(operator string, x []written) (written, bool) {
	truth, isBool := x[0].tree["value"].(bool)
	null := x[0].tree["op"] == "const_null"
	taken := x[0]
	if slices.ContainsFunc(x[1:], func(x written) bool { return x.tree["op"] != "const_null" && w.isText(x.tree) }) {
		return written{}, false // A comparison of the string itself has another form.
	}
	switch {
	case operator == "?:" && isBool:
		if taken = x[2]; truth {
			taken = x[1]
		}
		taken.text, taken.binds = w.in(x[0], bindsNullish)+" ? "+w.in(x[1], 2)+" : "+w.in(x[2], 2), 2*bindsChoice
		return taken, taken.tree["op"] != "const_null" // which is not an operand everywhere
	case operator == "&&" && isBool && truth, operator == "||" && isBool && !truth, operator == "??" && null:
		taken = x[1]
	case !isBool && operator != "??":
		return written{}, false
	}
	if taken.tree["op"] == "const_null" {
		return written{}, false
	}
	least := bindsInfix[operator]
	if operator == "??" {
		least = 2 * bindsEqual
	}
	taken.text, taken.binds = w.in(x[0], least)+" "+operator+" "+w.in(x[1], least+1), bindsInfix[operator]
	return taken, true
}

// fold writes an operator on constants, which JavaScript computes.
func (w *nativeWriter) fold(operator string, x []written) (written, bool) {
	var v []float64
	for _, operand := range x {
		f, ok := operand.tree["value"].(float64)
		if !ok {
			return written{}, false
		}
		v = append(v, f)
	}
	if len(v) == 1 {
		if operator != "-" || v[0] == 0 {
			return written{}, false
		}
		return written{text: "- " + w.in(x[0], 2*bindsUnary), binds: 2 * bindsUnary, plain: true, tree: irTree{"op": "const_number", "value": -v[0]}}, true
	}
	var value any
	switch operator {
	case "+":
		value = v[0] + v[1]
	case "-":
		value = v[0] - v[1]
	case "*":
		value = v[0] * v[1]
	case "/":
		value = v[0] / v[1]
	case "<":
		value = v[0] < v[1]
	case "==":
		value = v[0] == v[1]
	default:
		return written{}, false
	}
	op := "const_bool"
	if f, ok := value.(float64); ok {
		op = "const_number"
		if math.IsInf(f, 0) || math.IsNaN(f) || f == 0 && math.Signbit(f) {
			return written{}, false
		}
	}
	binds := bindsInfix[operator]
	return written{text: w.in(x[0], binds) + " " + operator + " " + w.in(x[1], binds+1), binds: binds, plain: true, tree: irTree{"op": op, "value": value}}, true
}

// A nativePlan is a random plan: its nodes as the artifact has them, with trees in place of ids of trees, and its source.
type nativePlan struct {
	nodes          []map[string]any
	source, beside string // of the plan, and of a file beside it
}

// makeNativePlan returns a random plan. Each node but sources reads a node before it, and the last one reads all ends.
func makeNativePlan(t *testing.T, w *nativeWriter) *nativePlan {
	p := &nativePlan{}
	var lines []string
	read := make(map[int]bool)
	language := expr.Language{Typed: true, Registry: w.reg}
	valid := func(parse func() (irTree, error)) irTree {
		for {
			if tree, err := parse(); err == nil { // hash of a bool, for example, is none
				return tree
			}
		}
	}
	depth := func() int { return 1 + w.rng.IntN(4) }
	number := func() written {
		return w.write(valid(func() (irTree, error) {
			tree := w.number(depth())
			_, err := language.ParseExpr(document(t, tree))
			return tree, err
		}))
	}
	add := func(op string, input int, params map[string]any, call string) {
		node := map[string]any{"op": op, "params": params, "inputs": []any{}}
		on := "ctx"
		if input >= 0 {
			node["inputs"], on, read[input] = []any{input}, fmt.Sprintf("n%d", input), true
		}
		lines = append(lines, fmt.Sprintf("  const n%d = %s.%s;", len(p.nodes), on, call))
		p.nodes = append(p.nodes, node)
	}
	source := func() {
		add("test::fixed_source", -1, map[string]any{"row_count": float64(len(p.nodes) + 1)}, fmt.Sprintf("fixedSource({ rowCount: %d })", len(p.nodes)+1))
	}
	concat := func(a, b int) {
		read[b] = true
		add("core::concat", a, map[string]any{"rhs": b}, fmt.Sprintf("concat({ rhs: n%d })", b))
	}
	source()
	for range 2 + w.rng.IntN(5) {
		input := w.rng.IntN(len(p.nodes))
		switch w.rng.IntN(10) {
		case 0:
			source()
		case 1:
			concat(input, w.rng.IntN(len(p.nodes)))
		case 2:
			add("core::take", input, map[string]any{"count": 5.}, "take({ count: 5 })")
		case 3, 4, 5:
			x := number()
			if x.tree["op"] == "const_null" {
				x = w.write(w.stored(registry.Float))
			}
			add("core::vm", input, map[string]any{"out_key": 2001., "expr_id": x.tree}, "vm({ outKey: Key.final_score, expr: "+x.text+" })")
		case 6:
			x := w.write(valid(func() (irTree, error) {
				tree := w.text(depth())
				_, err := language.ParseExpr(document(t, tree))
				return tree, err
			}))
			add("core::vm", input, map[string]any{"out_key": 3002., "expr_id": x.tree}, "vm({ expr: "+x.text+", outKey: Key.title })")
		default:
			x := w.write(valid(func() (irTree, error) {
				tree := w.predicate(depth())
				_, err := language.ParsePred(document(t, tree))
				return tree, err
			}))
			add("core::filter", input, map[string]any{"pred_id": x.tree}, "filter({ pred: "+x.text+" })")
		}
	}
	ends := []int{}
	for i := range p.nodes {
		if !read[i] {
			ends = append(ends, i)
		}
	}
	last := ends[0]
	for _, end := range ends[1:] {
		concat(last, end)
		last = len(p.nodes) - 1
	}
	// Constants and helpers stand in the function, before it, or in a file of their own.
	head, inside := `import { definePlan, E, Pred } from "@ranking-dsl/runtime";`+"\n", ""
	hoisted := strings.Join(w.hoisted, "\n") + "\n"
	switch w.rng.IntN(3) {
	case 0:
		inside = hoisted
	case 1:
		head += hoisted
	default:
		if len(w.names) > 0 {
			p.beside = head + hoisted + "export { " + strings.Join(w.names, ", ") + " };\n"
			head += "import { " + strings.Join(w.names, ", ") + ` } from "./parts";` + "\n"
		}
	}
	p.source = head + `export default definePlan({ name: "p", build: (ctx) => {` + "\n" + inside + strings.Join(lines, "\n") + fmt.Sprintf("\n  return n%d;\n} });\n", last)
	return p
}

// shape writes the nodes that an output needs, as JSON: inputs before the nodes that read them, in their order.
func shape(t *testing.T, nodes []map[string]any, last int) string {
	numbers, order := make(map[int]int), []any{}
	var visit func(i int) int
	visit = func(i int) int {
		if n, ok := numbers[i]; ok {
			return n
		}
		inputs, params := []any{}, maps.Clone(nodes[i]["params"].(map[string]any))
		for _, input := range nodes[i]["inputs"].([]any) {
			inputs = append(inputs, visit(input.(int)))
		}
		if rhs, ok := params["rhs"]; ok {
			params["rhs"] = visit(rhs.(int))
		}
		numbers[i] = len(order)
		order = append(order, map[string]any{"op": nodes[i]["op"], "inputs": inputs, "params": params})
		return numbers[i]
	}
	visit(last)
	return compact(t, order)
}

// nodesOf returns the nodes of an artifact in the form of a nativePlan, and the output.
func nodesOf(t *testing.T, artifact []byte) (nodes []map[string]any, last int) {
	var a struct {
		Nodes        []map[string]any
		Outputs      []string
		Exprs, Preds map[string]map[string]any
	}
	artifact = []byte(strings.NewReplacer(`"expr_table":`, `"exprs":`, `"pred_table":`, `"preds":`).Replace(string(artifact)))
	decoder := json.NewDecoder(strings.NewReader(string(artifact)))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&a))
	numbers := make(map[any]int)
	for i, n := range a.Nodes {
		numbers[n["node_id"]] = i
	}
	for _, tables := range []map[string]map[string]any{a.Exprs, a.Preds} {
		for _, tree := range tables {
			delete(tree, "source_span")
		}
	}
	for _, n := range a.Nodes {
		params := n["params"].(map[string]any)
		if id, ok := params["expr_id"].(string); ok {
			params["expr_id"] = a.Exprs[id]
		}
		if id, ok := params["pred_id"].(string); ok {
			params["pred_id"] = a.Preds[id]
		}
		if rhs, ok := params["rhs"]; ok {
			params["rhs"] = numbers[rhs]
		}
		inputs := n["inputs"].([]any)
		for i := range inputs {
			inputs[i] = numbers[inputs[i]]
		}
	}
	require.Len(t, a.Outputs, 1)
	return a.Nodes, numbers[a.Outputs[0]]
}

// TestPlansWithNativeOperators writes random plans of the IR as TypeScript, for each operator with that of JavaScript in 70 % of
// cases and else with the builder, with random parentheses, constants and helpers. Each compiles to the same IR.
//
// The IR that it starts from has the form that the compiler makes: a string key that is compared with a string is
// "in" a list of one, and of a string and a constant the constant stands second. Constants that plan code computes with each
// other are one constant, and what a constant condition leaves out is not there. A string that ends with a constant is not
// joined with another one, and a predicate that ends with a constant is not an operand: esbuild writes "a || true || b" without b. Nodes
// may have other ids.
func TestPlansWithNativeOperators(t *testing.T) {
	reg, err := registry.Load(os.DirFS("../internal/reference/tables"), "dev")
	require.NoError(t, err)
	language := NewLanguage(builtin.Catalog(), reg)
	native, builders, seen := 0, 0, make(map[any]bool)
	for seed := uint64(*nativeFirst); seed < uint64(*nativeFirst+*nativePlans); seed++ {
		w := &nativeWriter{irGen: newIRGen(rand.New(rand.NewPCG(seed, 44)), reg)}
		p := makeNativePlan(t, w)
		folder := t.TempDir()
		if p.beside != "" {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "parts.ts"), []byte(p.beside), 0o600))
		}
		u := newUnit(language, "plans", Source{Folder: folder, File: "a.plan.ts", Text: []byte(p.source)})
		u.compile()
		require.Empty(t, u.answer.Errors, "seed %d:\n%s\n%s", seed, p.source, p.beside)
		want := shape(t, p.nodes, len(p.nodes)-1)
		got, last := nodesOf(t, u.answer.Artifact)
		require.Len(t, got, len(p.nodes))
		require.Equal(t, want, shape(t, got, last), "seed %d:\n%s\n%s", seed, p.source, p.beside)
		native, builders = native+w.native, builders+w.builders
		for _, part := range strings.Split(want, `"op":"`)[1:] {
			op, _, _ := strings.Cut(part, `"`)
			seen[op] = true
		}
	}
	share := float64(native) / float64(native+builders)
	t.Logf("%d plans with %d native operators and %d builders", *nativePlans, native, builders)
	require.InDelta(t, 0.7, share, 0.05)
	if *nativePlans >= 1000 {
		for _, o := range expr.Operators() {
			require.Contains(t, seen, any(o.Name))
		}
	}
}
