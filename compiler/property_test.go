package compiler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/elementary"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Ids of the built-in registry.
const (
	keyScore   registry.KeyID   = 2002
	keyModel   registry.KeyID   = 1001
	keyCountry registry.KeyID   = 3001
	paramW     registry.ParamID = 4

	paramLang   registry.ParamID = 101
	paramTopics registry.ParamID = 104
)

// nullable is a number or null.
type nullable struct {
	value float64
	ok    bool
}

// row is one row and the request's parameters.
type row struct {
	id                   int64
	score, model, weight nullable
	country              string
	hasCountry           bool
	lang                 string
	topics               []string
	// notFinite says that an operator has turned an infinity or a NaN into null. JavaScript
	// then computes something else.
	notFinite bool
}

// finite returns an operator's result, which is null instead of an infinity.
func (r *row) finite(value float64, ok bool) nullable {
	if ok && (math.IsInf(value, 0) || math.IsNaN(value)) {
		r.notFinite, ok = true, false
	}
	return nullable{value, ok}
}

// numberText is a random expression: its text, how tightly its last operator binds, and its
// value for a row. The value is defined here a second time, apart from compiler and engine.
type numberText struct {
	text  string
	binds int
	eval  func(*row) nullable
}

type predicateText struct {
	text  string
	binds int
	eval  func(*row) bool
}

// How tightly operators bind.
const (
	bindsChoice = iota + 1
	bindsOr
	bindsAnd
	bindsEqual
	bindsLess
	bindsAdd
	bindsMul
	bindsUnary
	bindsAll
)

// textGen writes random expressions, in which natural ones and builders are mixed.
type textGen struct{ rng *rand.Rand }

func (g textGen) pick(of ...string) string { return of[g.rng.IntN(len(of))] }

// operand puts parentheses around a text where they are needed, and sometimes elsewhere.
func (g textGen) operand(text string, binds, least int) string {
	if binds < least || g.rng.IntN(8) == 0 {
		return "(" + text + ")"
	}
	return text
}

func (g textGen) number(depth int) numberText {
	if depth == 0 || g.rng.IntN(6) == 0 {
		return g.leaf()
	}
	if g.rng.IntN(6) == 0 {
		x := g.number(depth - 1)
		eval := func(r *row) nullable { v := x.eval(r); return nullable{-v.value, v.ok} }
		if g.rng.IntN(4) == 0 {
			return numberText{"E.neg(" + x.text + ")", bindsAll, eval}
		}
		return numberText{"- " + g.operand(x.text, x.binds, bindsUnary), bindsUnary, eval}
	}
	if g.rng.IntN(3) == 0 {
		return g.typed(depth)
	}
	a, b := g.number(depth-1), g.number(depth-1)
	if g.rng.IntN(4) == 0 {
		return numberText{g.pick("coalesce", "E.coalesce") + "(" + a.text + ", " + b.text + ")", bindsAll, func(r *row) nullable {
			if v := a.eval(r); v.ok {
				return v
			}
			return b.eval(r)
		}}
	}
	operators := []struct {
		text, builder string
		binds         int
		apply         func(a, b float64) float64
	}{
		{"+", "E.add", bindsAdd, func(a, b float64) float64 { return a + b }},
		{"-", "E.sub", bindsAdd, func(a, b float64) float64 { return a - b }},
		{"*", "E.mul", bindsMul, func(a, b float64) float64 { return a * b }},
	}
	o := operators[g.rng.IntN(len(operators))]
	eval := func(r *row) nullable {
		x, y := a.eval(r), b.eval(r)
		return nullable{o.apply(x.value, y.value), x.ok && y.ok}
	}
	if g.rng.IntN(5) == 0 {
		return numberText{o.builder + "(" + a.text + ", " + b.text + ")", bindsAll, eval}
	}
	text := g.operand(a.text, a.binds, o.binds) + " " + o.text + " " + g.operand(b.text, b.binds, o.binds+1)
	return numberText{text, o.binds, eval}
}

var mathFunctions = []struct {
	name  string
	apply func(float64) float64
}{
	{"Math.abs", math.Abs}, {"Math.floor", math.Floor}, {"Math.ceil", math.Ceil}, {"Math.sqrt", math.Sqrt}, {"Math.exp", elementary.Exp},
	{"Math.log", elementary.Log}, {"Math.trunc", math.Trunc}, {"Math.tanh", elementary.Tanh}, {"Math.log1p", elementary.Log1p},
}

// typed returns an operation of typed expressions. Its first operand is a token, so plan code
// cannot compute an infinity.
func (g textGen) typed(depth int) numberText {
	a, b := g.token(depth-1), g.number(depth-1)
	both := func(apply func(x, y float64) float64) func(*row) nullable {
		return func(r *row) nullable {
			x, y := a.eval(r), b.eval(r)
			return r.finite(apply(x.value, y.value), x.ok && y.ok)
		}
	}
	one := func(apply func(x float64) float64) func(*row) nullable {
		return func(r *row) nullable { x := a.eval(r); return r.finite(apply(x.value), x.ok) }
	}
	call := func(name string, operands ...string) string { return name + "(" + strings.Join(operands, ", ") + ")" }
	infix := func(operator string) string {
		return "(" + a.text + " " + operator + " " + g.operand(b.text, b.binds, bindsUnary) + ")"
	}
	switch g.rng.IntN(18) {
	case 0:
		return numberText{g.pick(infix("/"), call("E.div", a.text, b.text)), bindsAll, both(func(x, y float64) float64 { return x / y })}
	case 1:
		return numberText{g.pick(infix("%"), call("E.mod", a.text, b.text)), bindsAll, both(math.Mod)}
	case 2:
		return numberText{g.pick(infix("**"), call("Math.pow", a.text, b.text)), bindsAll, both(elementary.Pow)}
	case 3:
		return numberText{g.pick(call("Math.min", b.text, a.text), call("E.min", a.text, b.text)), bindsAll, both(math.Min)}
	case 4:
		return numberText{call("Math.max", a.text, b.text, "1"), bindsAll, both(func(x, y float64) float64 { return max(x, y, 1) })}
	case 5:
		return numberText{call("clamp", a.text, "-1", "2.5"), bindsAll, one(func(x float64) float64 { return min(max(x, -1), 2.5) })}
	case 6:
		return numberText{call("Math.atan2", a.text, b.text), bindsAll, both(elementary.Atan2)}
	case 7, 8, 9, 10, 11, 12, 13, 14, 15:
		f := mathFunctions[g.rng.IntN(len(mathFunctions))]
		return numberText{call(f.name, a.text), bindsAll, one(f.apply)}
	default:
		// The condition is a token. Otherwise plan code would decide by a constant.
		cond := g.predicate(min(depth-1, 2))
		text := fmt.Sprintf("Pred.and(%s, true) ? %s : %s", cond.text, b.text, g.operand(a.text, a.binds, bindsOr))
		return numberText{text, bindsChoice, func(r *row) nullable {
			if cond.eval(r) {
				return b.eval(r)
			}
			return a.eval(r)
		}}
	}
}

func (g textGen) leaf() numberText {
	switch g.rng.IntN(5) {
	case 0:
		value := g.rng.IntN(5)
		return numberText{strconv.Itoa(value), bindsAll, func(*row) nullable { return nullable{float64(value), true} }}
	case 1:
		return numberText{g.pick("Key.id", "E.key(Key.id)"), bindsAll, func(r *row) nullable { return nullable{float64(r.id), true} }}
	case 2:
		return numberText{g.pick("Key.score", `Key["score"]`), bindsAll, func(r *row) nullable { return r.score }}
	case 3:
		return numberText{"Key.model_score_1", bindsAll, func(r *row) nullable { return r.model }}
	default:
		return numberText{g.pick("P.weight", "E.param(P.weight)"), bindsAll, func(r *row) nullable { return r.weight }}
	}
}

// token returns an expression that is not a constant for JavaScript.
func (g textGen) token(depth int) numberText {
	x := g.number(depth)
	return numberText{"E.add(" + x.text + ", 0)", bindsAll, func(r *row) nullable { v := x.eval(r); return nullable{v.value + 0, v.ok} }}
}

func (g textGen) predicate(depth int) predicateText {
	if depth == 0 || g.rng.IntN(5) == 0 {
		return g.test()
	}
	if g.rng.IntN(4) == 0 {
		x := g.predicate(depth - 1)
		eval := func(r *row) bool { return !x.eval(r) }
		if g.rng.IntN(4) == 0 {
			return predicateText{"Pred.not(" + x.text + ")", bindsAll, eval}
		}
		return predicateText{"!" + g.operand(x.text, x.binds, bindsUnary), bindsUnary, eval}
	}
	a, b := g.predicate(depth-1), g.predicate(depth-1)
	and := g.rng.IntN(2) == 0
	eval := func(r *row) bool {
		if and {
			return a.eval(r) && b.eval(r)
		}
		return a.eval(r) || b.eval(r)
	}
	word, builder, binds := "||", "Pred.or", bindsOr
	if and {
		word, builder, binds = "&&", "Pred.and", bindsAnd
	}
	if g.rng.IntN(5) == 0 {
		return predicateText{builder + "(" + a.text + ", " + b.text + ")", bindsAll, eval}
	}
	return predicateText{g.operand(a.text, a.binds, binds) + " " + word + " " + g.operand(b.text, b.binds, binds+1), binds, eval}
}

// test returns a predicate whose operands are not predicates.
func (g textGen) test() predicateText {
	switch g.rng.IntN(12) {
	case 11:
		return predicateText{g.pick(`contains(Key.country, "U")`, `Pred.contains(Key.country, "U")`), bindsAll, func(r *row) bool {
			return r.hasCountry && strings.Contains(r.country, "U")
		}}
	case 8:
		return predicateText{`Key.country ` + g.pick("==", "===") + ` P.lang`, bindsEqual, func(r *row) bool { return r.hasCountry && r.country == r.lang }}
	case 9:
		return predicateText{`P.topics.includes(Key.country)`, bindsAll, func(r *row) bool { return r.hasCountry && slices.Contains(r.topics, r.country) }}
	case 10:
		return predicateText{`["US", "DE"].includes(Key.country)`, bindsAll, func(r *row) bool {
			return r.hasCountry && (r.country == "US" || r.country == "DE")
		}}
	case 0:
		x := g.token(1)
		if g.rng.IntN(2) == 0 {
			return predicateText{x.text + g.pick(" == null", " === null"), bindsEqual, func(r *row) bool { return !x.eval(r).ok }}
		}
		return predicateText{"null " + g.pick("!=", "!==") + " " + x.text, bindsEqual, func(r *row) bool { return x.eval(r).ok }}
	case 1:
		x := g.token(2)
		return predicateText{x.text + ".in([1, 2, 3.5])", bindsAll, func(r *row) bool {
			v := x.eval(r)
			return v.ok && slices.Contains([]float64{1, 2, 3.5}, v.value)
		}}
	case 2:
		return predicateText{`Key.country.in(["US", "DE"])`, bindsAll, func(r *row) bool {
			return r.hasCountry && (r.country == "US" || r.country == "DE")
		}}
	case 3:
		if g.rng.IntN(2) == 0 {
			return predicateText{`Key.country ` + g.pick("==", "===") + ` "US"`, bindsEqual, func(r *row) bool { return r.hasCountry && r.country == "US" }}
		}
		return predicateText{`"US" != Key.country`, bindsEqual, func(r *row) bool { return !(r.hasCountry && r.country == "US") }}
	case 4:
		return predicateText{`regex(Key.country, "^u", "i")`, bindsAll, func(r *row) bool {
			return r.hasCountry && strings.HasPrefix(strings.ToLower(r.country), "u")
		}}
	}
	a, b := g.token(2), g.number(2)
	word := g.pick("==", "===", "!=", "!==", "<", "<=", ">", ">=")
	eval := func(r *row) bool {
		x, y := a.eval(r), b.eval(r)
		if !x.ok || !y.ok {
			return false // for != too
		}
		switch word[:1] + word[len(word)-1:] {
		case "==":
			return x.value == y.value
		case "!=":
			return x.value != y.value
		case "<<":
			return x.value < y.value
		case "<=":
			return x.value <= y.value
		case ">>":
			return x.value > y.value
		default:
			return x.value >= y.value
		}
	}
	binds := bindsLess
	if word[0] == '=' || word[0] == '!' {
		binds = bindsEqual
	}
	return predicateText{g.operand(a.text, a.binds, binds+1) + " " + word + " " + g.operand(b.text, b.binds, binds+1), binds, eval}
}

// plainJavaScript has the meaning of the language's names for plain values.
const plainJavaScript = `
const coalesce = (a, b) => a === null ? b : a;
const E = {
  key: (x) => x, param: (x) => x, const: (x) => x, add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b,
  neg: (x) => -x, coalesce, div: (a, b) => a / b, mod: (a, b) => a % b, min: Math.min,
};
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const contains = (s, part) => s.includes(part);
const Pred = { contains, and: (a, b) => a && b, or: (a, b) => a || b, not: (x) => !x };
const regex = (s, pattern, flags) => new RegExp(pattern, flags).test(s);
Number.prototype.in = function (list) { return list.includes(+this); };
String.prototype.in = function (list) { return list.includes(String(this)); };
`

func (r *row) javaScript() string {
	return fmt.Sprintf("Key = { id: %d, score: %v, model_score_1: %v, country: %q }; P = { weight: %v, lang: %q, topics: [%s] };",
		r.id, r.score.value, r.model.value, r.country, r.weight.value, r.lang, `"`+strings.Join(r.topics, `","`)+`"`)
}

// randomRow returns a row. Its numbers are multiples of a half, so sums are exact and
// comparisons hit.
func randomRow(rng *rand.Rand, nulls bool, weight nullable) row {
	number := func() nullable { return nullable{float64(rng.IntN(17)-8) / 2, !nulls || rng.IntN(3) > 0} }
	return row{
		id: int64(rng.IntN(6)), score: number(), model: number(), weight: weight,
		country: []string{"US", "DE", "us", "FR", ""}[rng.IntN(5)], hasCountry: !nulls || rng.IntN(3) > 0,
		lang: "FR", topics: []string{"US", ""},
	}
}

// batchOf returns the rows as the engine stores them.
func batchOf(rows []row) rowset.RowSet {
	b := &rowset.Batch{}
	score, model := make([]float64, len(rows)), make([]float64, len(rows))
	scoreValid, modelValid := rowset.NewBitmap(len(rows)), rowset.NewBitmap(len(rows))
	countries := rowset.NewStringBuilder(keyCountry, len(rows))
	for i, r := range rows {
		b.IDs = append(b.IDs, r.id)
		if r.score.ok {
			score[i] = r.score.value
			scoreValid.Set(i)
		}
		if r.model.ok {
			model[i] = r.model.value
			modelValid.Set(i)
		}
		if r.hasCountry {
			countries.Append([]byte(r.country))
		} else {
			countries.AppendNull()
		}
	}
	b = rowset.NewBatch(b.IDs, countries.Column())
	b = rowset.With(b, &rowset.FloatColumn{Key: keyScore, Values: score, Valid: scoreValid})
	b = rowset.With(b, &rowset.FloatColumn{Key: keyModel, Values: model, Valid: modelValid})
	return rowset.Dense(b)
}

// TestRandomExpressions compiles random expressions and runs them. Rows without nulls give what
// plain JavaScript computes from the same text. All rows give what the language defines.
func TestRandomExpressions(t *testing.T) {
	const seeds, texts = 5, 25
	for seed := range uint64(seeds) {
		g := textGen{rand.New(rand.NewPCG(seed, 11))}
		numbers, numberTexts := make([]numberText, texts), make([]string, texts)
		preds, predTexts := make([]predicateText, texts), make([]string, texts)
		for i := range texts {
			numbers[i], preds[i] = g.number(1+g.rng.IntN(4)), g.predicate(g.rng.IntN(4))
			numberTexts[i], predTexts[i] = numbers[i].text, preds[i].text
		}
		numberTrees, predTrees := expressions(t, numberTexts), predicates(t, predTexts)
		for _, nulls := range []bool{false, true} {
			weight := nullable{float64(g.rng.IntN(9)) / 2, !nulls || g.rng.IntN(2) == 0}
			var params expr.Params
			if weight.ok {
				params.SetFloat(paramW, weight.value)
			}
			params.SetString(paramLang, "FR")
			params.SetStringList(paramTopics, []string{"US", ""})
			rows := make([]row, 20)
			for i := range rows {
				rows[i] = randomRow(g.rng, nulls, weight)
			}
			in := batchOf(rows)
			for i := range texts {
				checkNumber(t, &numbers[i], numberTrees[i], rows, in, &params, seed)
				checkPredicate(t, &preds[i], predTrees[i], rows, in, &params, seed)
			}
			if !nulls {
				checkJavaScript(t, numbers, preds, rows)
			}
		}
	}
}

func document(t *testing.T, tree map[string]any) *jsondoc.Value {
	t.Helper()
	v, err := jsondoc.Parse([]byte(compact(t, tree)))
	require.NoError(t, err)
	return &v
}

// languageOf returns the language of a tree: a tree with an operator of typed trees is typed.
func languageOf(t *testing.T, tree map[string]any) expr.Language {
	text := compact(t, tree)
	for _, o := range expr.Operators() {
		if o.Typed && strings.Contains(text, `"op":"`+o.Name+`"`) {
			return expr.Language{Typed: true, Registry: testRegistry(t)}
		}
	}
	return expr.Language{Typed: strings.Contains(text, `"param_id":101`), Registry: testRegistry(t)}
}

func checkNumber(t *testing.T, n *numberText, tree map[string]any, rows []row, in rowset.RowSet, params *expr.Params, seed uint64) {
	t.Helper()
	e, err := languageOf(t, tree).ParseExpr(document(t, tree))
	require.NoError(t, err)
	column, err := e.Column(nil, nil, in, params)
	require.NoError(t, err)
	for i := range rows {
		want := n.eval(&rows[i])
		ok := column.Valid == nil || column.Valid.Get(i)
		require.Equal(t, want.ok, ok, "seed %d: %s is null, row %+v", seed, n.text, rows[i])
		if want.ok {
			require.Equal(t, want.value, column.Values[i], "seed %d: %s, row %+v", seed, n.text, rows[i])
		}
	}
}

func checkPredicate(t *testing.T, p *predicateText, tree map[string]any, rows []row, in rowset.RowSet, params *expr.Params, seed uint64) {
	t.Helper()
	parsed, err := languageOf(t, tree).ParsePred(document(t, tree))
	require.NoError(t, err)
	kept, err := parsed.Filter(nil, nil, in, params)
	require.NoError(t, err)
	var want, got []int32
	for i := range rows {
		if p.eval(&rows[i]) {
			want = append(want, int32(i))
		}
	}
	for i := range kept.N {
		got = append(got, kept.Row(i))
	}
	require.Equal(t, want, got, "seed %d: %s", seed, p.text)
}

// checkJavaScript compares the value of texts with what JavaScript computes from them.
func checkJavaScript(t *testing.T, numbers []numberText, preds []predicateText, rows []row) {
	t.Helper()
	vm := goja.New()
	require.NoError(t, (&host{vm: vm}).installMath(vm.GlobalObject().Get("Math").ToObject(vm)))
	_, err := vm.RunString(plainJavaScript + "let Key, P;")
	require.NoError(t, err)
	// goja's own ** may have another last digit. Math.pow stands for it.
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n numberText) bool { return strings.Contains(n.text, "**") })
	preds = slices.DeleteFunc(slices.Clone(preds), func(p predicateText) bool { return strings.Contains(p.text, "**") })
	for i := range rows {
		_, err := vm.RunString(rows[i].javaScript())
		require.NoError(t, err)
		for _, n := range numbers {
			v, err := vm.RunString(n.text)
			require.NoError(t, err, n.text)
			rows[i].notFinite = false
			want := n.eval(&rows[i])
			if rows[i].notFinite {
				continue
			}
			require.Equal(t, v.ToFloat()+0, want.value+0, n.text)
			require.False(t, math.IsNaN(v.ToFloat()))
		}
		for _, p := range preds {
			v, err := vm.RunString(p.text)
			require.NoError(t, err, p.text)
			rows[i].notFinite = false
			if want := p.eval(&rows[i]); !rows[i].notFinite {
				require.Equal(t, v.ToBoolean(), want, p.text)
			}
		}
	}
}
