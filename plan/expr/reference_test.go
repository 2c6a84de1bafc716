package expr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/rankd/rankd/internal/elementary"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A reference evaluates trees as the format describes them: one row at a time, straight from
// the JSON. It does not fold, bind or cache anything.
type reference struct {
	batch  *rowset.Batch
	params *Params
	typed  bool // the trees are
}

// expr returns the value for a batch row, or false for null.
func (r reference) expr(v *jsondoc.Value, row int) (float64, bool) {
	operands := func() (a, b float64, ok bool) {
		a, aOK := r.expr(v.Get("a"), row)
		b, bOK := r.expr(v.Get("b"), row)
		return a, b, aOK && bOK
	}
	switch op := v.Get("op").Str; op {
	case "const_number":
		return v.Get("value").Float, true
	case "const_null":
		return 0, false
	case "key_ref":
		key := registry.KeyID(v.Get("key_id").Uint)
		if key == registry.IDKey {
			return float64(r.batch.IDs[row]), true
		}
		if c := r.batch.Float(key); c != nil {
			return c.Values[row], c.Valid.Get(row)
		}
		if c := r.batch.Int(key); c != nil {
			return float64(c.Values[row]), c.Valid.Get(row)
		}
		if c := r.batch.Bool(key); c != nil {
			return float64(bit(c.Values.Get(row))), c.Valid.Get(row)
		}
		return 0, false
	case "param_ref":
		id := registry.ParamID(v.Get("param_id").Uint)
		if truth, ok := r.params.Bool(id); ok {
			return float64(bit(truth)), true
		}
		return r.params.Float(id)
	case "neg":
		x, ok := r.expr(v.Get("x"), row)
		return -x, ok
	case "add":
		a, b, ok := operands()
		return a + b, ok
	case "sub":
		a, b, ok := operands()
		return a - b, ok
	case "mul":
		a, b, ok := operands()
		return a * b, ok
	case "coalesce":
		if a, ok := r.expr(v.Get("a"), row); ok {
			return a, true
		}
		return r.expr(v.Get("b"), row)
	default:
		return r.typedExpr(v, row, op)
	}
}

// typedExpr is expr for operators of typed expressions. Their result is null if it is not
// finite.
func (r reference) typedExpr(v *jsondoc.Value, row int, op string) (float64, bool) {
	finite := func(x float64, ok bool) (float64, bool) { return x, ok && !math.IsInf(x, 0) && !math.IsNaN(x) }
	x, xOK := 0.0, false
	if v.Get("x") != nil && r.typeOf(v.Get("x")) != String && r.typeOf(v.Get("x")) != Vector {
		x, xOK = r.expr(v.Get("x"), row)
	}
	now, nowOK := r.params.Now()
	switch op {
	case "now":
		return now, nowOK
	case "length":
		s, ok := r.text(v.Get("x"), row)
		return float64(len(utf16.Encode([]rune(s)))), ok
	case "dot", "cosine", "l2", "norm":
		return finite(r.vectors(v, row, op))
	case "table":
		of := r.value(v.Get("x"), row)
		if of == nil {
			return 0, false
		}
		if entry := v.Get("entries").Get(fmt.Sprint(of)); entry != nil {
			return entry.Float, true
		}
		if otherwise := v.Get("default"); otherwise != nil {
			return otherwise.Float, true
		}
		return 0, false
	case "hour_of", "day_of_week":
		zone, err := time.LoadLocation(v.Get("zone").Get("value").Str)
		if err != nil {
			panic(err)
		}
		if !xOK || !(math.Abs(x) <= 8.64e12) {
			return 0, false
		}
		_, offset := time.Unix(int64(math.Floor(x)), 0).In(zone).Zone()
		seconds := math.Floor(x) + float64(offset)
		if days := math.Floor(seconds / 86400); op == "day_of_week" {
			return math.Mod(math.Mod(days+4, 7)+7, 7), true // 1970 began on a Thursday
		}
		return math.Floor(math.Mod(math.Mod(seconds, 86400)+86400, 86400) / 3600), true
	case "geo_distance":
		var at [4]float64
		for i, name := range []string{"lat1", "lon1", "lat2", "lon2"} {
			var ok bool
			if at[i], ok = r.expr(v.Get(name), row); !ok {
				return 0, false
			}
		}
		if math.Abs(at[0]) > 90 || math.Abs(at[2]) > 90 {
			return 0, false
		}
		return finite(geoDistance(at[0], at[1], at[2], at[3]), true) // TestGeoDistance compares it with vectors
	case "hash", "random":
		of, ok := r.hashInput(v.Get("x"), row)
		if op == "random" {
			of, ok = r.batch.IDs[row], true
		}
		seed, seedOK := r.hashInput(v.Get("seed"), row)
		h := rowset.HashInt(of, seed) >> 11
		if op == "random" {
			return float64(h) / (1 << 53), ok && seedOK
		}
		return float64(h), ok && seedOK
	case "age":
		return finite(now-x, nowOK && xOK)
	case "abs":
		return finite(math.Abs(x), xOK)
	case "floor":
		return finite(math.Floor(x), xOK)
	case "ceil":
		return finite(math.Ceil(x), xOK)
	case "sqrt":
		return finite(math.Sqrt(x), xOK)
	case "exp":
		return finite(elementary.Exp(x), xOK)
	case "log":
		return finite(elementary.Log(x), xOK)
	case "round":
		rounded := math.Floor(x)
		if x-rounded >= 0.5 {
			rounded++
		}
		return finite(math.Copysign(rounded, x), xOK)
	case "trunc":
		return finite(math.Trunc(x), xOK)
	case "sign":
		if x == 0 || math.IsNaN(x) {
			return finite(x, xOK)
		}
		return math.Copysign(1, x), xOK
	case "expm1":
		return finite(elementary.Expm1(x), xOK)
	case "log1p":
		return finite(elementary.Log1p(x), xOK)
	case "log2":
		return finite(elementary.Log2(x), xOK)
	case "log10":
		return finite(elementary.Log10(x), xOK)
	case "sin":
		return finite(elementary.Sin(x), xOK)
	case "cos":
		return finite(elementary.Cos(x), xOK)
	case "tanh":
		return finite(elementary.Tanh(x), xOK)
	case "atan2":
		y, yOK := r.expr(v.Get("y"), row)
		return finite(elementary.Atan2(y, x), xOK && yOK)
	case "clamp":
		low, lowOK := r.expr(v.Get("low"), row)
		high, highOK := r.expr(v.Get("high"), row)
		return finite(min(max(x, low), high), xOK && lowOK && highOK)
	case "decay":
		halfLife, ok := r.expr(v.Get("half_life"), row)
		return finite(decay(x, halfLife), xOK && ok) // TestDecay compares it with math.Exp2
	case "if":
		cond, err := r.pred(v.Get("cond"), row, "")
		if err != nil {
			panic(err) // the parser refuses conditions that can fail
		}
		if cond {
			return r.expr(v.Get("then"), row)
		}
		return r.expr(v.Get("else"), row)
	}
	a, aOK := r.expr(v.Get("a"), row)
	b, bOK := r.expr(v.Get("b"), row)
	ok := aOK && bOK
	switch op {
	case "div":
		return finite(a/b, ok)
	case "mod":
		return finite(math.Mod(a, b), ok)
	case "min":
		return finite(math.Min(a, b), ok)
	case "max":
		return finite(math.Max(a, b), ok)
	case "pow":
		if b == 2 {
			return finite(a*a, ok)
		}
		return finite(elementary.Pow(a, b), ok)
	}
	panic("reference: op " + op)
}

// typeOf is the type of a leaf in the tests' registry.
func (r reference) typeOf(v *jsondoc.Value) Type {
	key, isKey := v.Get("key_id"), v.Get("op").Str == "key_ref"
	switch v.Get("op").Str {
	case "const_number":
		if _, ok := integer(v.Get("value")); ok {
			return Int
		}
	case "const_string", "concat", "lower":
		return String
	case "if", "coalesce":
		for _, branch := range []string{"then", "else", "a", "b"} {
			if v.Get(branch) != nil && r.typeOf(v.Get(branch)) == String {
				return String
			}
		}
	case "const_null":
		return Null
	case "key_ref", "param_ref":
		if !isKey {
			key = v.Get("param_id")
			param, _ := testRegistry.Param(registry.ParamID(key.Uint))
			return keyTypes[param.Type]
		}
		k, _ := testRegistry.Key(registry.KeyID(key.Uint))
		return keyTypes[k.Type]
	}
	return Number
}

// value returns the value of a leaf unchanged, or nil for null: int64, string, []int64 or
// []string.
func (r reference) value(v *jsondoc.Value, row int) any {
	typ := r.typeOf(v)
	if op := v.Get("op").Str; op == "const_number" {
		i, _ := integer(v.Get("value"))
		return i
	} else if op == "const_null" {
		return nil
	} else if typ == String && op != "param_ref" {
		if s, ok := r.text(v, row); ok {
			return s
		}
		return nil
	} else if op == "param_ref" {
		id := registry.ParamID(v.Get("param_id").Uint)
		var value any
		ok := false
		switch typ {
		case Int:
			value, ok = r.params.Int(id)
		case String:
			value, ok = r.params.String(id)
		case Ints:
			value, ok = r.params.IntList(id)
		case Strings:
			value, ok = r.params.StringList(id)
		}
		if !ok {
			return nil
		}
		return value
	}
	key := registry.KeyID(v.Get("key_id").Uint)
	switch typ {
	case Int:
		if key == registry.IDKey {
			return r.batch.IDs[row]
		}
		if c := r.batch.Int(key); c != nil && c.Valid.Get(row) {
			return c.Values[row]
		}
	case String:
		if s, ok := r.text(v, row); ok {
			return s
		}
	case Strings:
		if c := r.batch.Set(key); c != nil {
			if list, ok := c.AppendValues([]string{}, row); ok {
				return list
			}
		}
	}
	return nil
}

// vectors computes an operator of vectors as the documentation describes it.
func (r reference) vectors(v *jsondoc.Value, row int, op string) (float64, bool) {
	get := func(name string) ([]float32, bool) {
		if param := v.Get(name).Get("param_id"); param != nil {
			return r.params.Vector(registry.ParamID(param.Uint))
		}
		if c := r.batch.Vector(registry.KeyID(v.Get(name).Get("key_id").Uint)); c != nil {
			return c.Value(row)
		}
		return nil, false
	}
	sum := func(x, y []float32, of func(x, y float64) float64) float64 {
		var sums [4]float64
		for i := range x {
			sums[i%4] += float64(of(float64(x[i]), float64(y[i])))
		}
		return (sums[0] + sums[1]) + (sums[2] + sums[3])
	}
	product := func(x, y float64) float64 { return x * y }
	if op == "norm" {
		x, ok := get("x")
		return math.Sqrt(sum(x, x, product)), ok
	}
	a, aOK := get("a")
	b, bOK := get("b")
	if !aOK || !bOK {
		return 0, false
	}
	switch op {
	case "dot":
		return sum(a, b, product), true
	case "l2":
		return math.Sqrt(sum(a, b, func(x, y float64) float64 { return (x - y) * (x - y) })), true
	}
	return sum(a, b, product) / math.Sqrt(sum(a, a, product)*sum(b, b, product)), true
}

// hashInput returns the integer that stands for an operand of hash.
func (r reference) hashInput(v *jsondoc.Value, row int) (int64, bool) {
	if v == nil {
		return 0, false
	}
	switch r.typeOf(v) {
	case Int:
		x, ok := r.value(v, row).(int64)
		return x, ok
	case String:
		s, ok := r.value(v, row).(string)
		return rowset.TextBits(s), ok
	}
	x, ok := r.expr(v, row)
	return rowset.NumberBits(x), ok && isFinite(x)
}

// isNull is the null test of typed trees.
func (r reference) isNull(v *jsondoc.Value, row int) bool {
	switch r.typeOf(v) {
	case String, Strings, Ints:
		return r.value(v, row) == nil
	}
	_, ok := r.expr(v, row)
	return !ok
}

// exactly compares integers and strings of typed trees. For other operands, done is false.
func (r reference) exactly(v *jsondoc.Value, row int) (result, done bool) {
	if !r.typed {
		return false, false
	}
	left, right := r.typeOf(v.Get("a")), r.typeOf(v.Get("b"))
	if left != right || left != Int && left != String {
		return false, false
	}
	a, b := r.value(v.Get("a"), row), r.value(v.Get("b"), row)
	if a == nil || b == nil {
		return false, true
	}
	if left == String {
		return (a == b) == (v.Get("cmp").Str == "=="), true
	}
	switch i, j := a.(int64), b.(int64); v.Get("cmp").Str {
	case "==":
		return i == j, true
	case "!=":
		return i != j, true
	case "<":
		return i < j, true
	case "<=":
		return i <= j, true
	case ">":
		return i > j, true
	default:
		return i >= j, true
	}
}

// member reports whether x is in the set or list.
func (r reference) member(v *jsondoc.Value, row int) bool {
	x, set := v.Get("x"), r.value(v.Get("set"), row)
	switch list := set.(type) {
	case []string:
		s, ok := r.value(x, row).(string)
		return ok && slices.Contains(list, s)
	case []int64:
		if r.typeOf(x) == Int {
			i, ok := r.value(x, row).(int64)
			return ok && slices.Contains(list, i)
		}
		number, ok := r.expr(x, row)
		for _, i := range list {
			if ok && float64(i) == number {
				return true
			}
		}
	}
	return false
}

// pred returns whether the predicate is true for a batch row. path leads to v.
func (r reference) pred(v *jsondoc.Value, row int, path string) (bool, error) {
	under := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch op := v.Get("op").Str; op {
	case "const_bool":
		return v.Get("value").Bool, nil
	case "and", "or":
		a, err := r.pred(v.Get("a"), row, under("a"))
		if err != nil || a == (op == "or") {
			return a, err
		}
		return r.pred(v.Get("b"), row, under("b"))
	case "not":
		x, err := r.pred(v.Get("x"), row, under("x"))
		return !x, err
	case "cmp":
		return r.cmp(v, row), nil
	case "is_null", "not_null":
		if r.typed {
			return r.isNull(v.Get("x"), row) == (op == "is_null"), nil
		}
		_, ok := r.expr(v.Get("x"), row)
		return ok == (op == "not_null"), nil
	case "member":
		return r.member(v, row), nil
	case "contains", "starts_with", "ends_with":
		s, ok := r.value(v.Get("x"), row).(string)
		part, also := r.value(v.Get("part"), row).(string)
		at := strings.Index(s, part)
		return ok && also && (op == "contains" && at >= 0 || op == "starts_with" && at == 0 ||
			op == "ends_with" && len(s) >= len(part) && s[len(s)-len(part):] == part), nil
	case "in":
		return r.in(v, row, path)
	case "regex":
		return r.regex(v, row, path)
	default:
		panic("reference: op " + op)
	}
}

func (r reference) cmp(v *jsondoc.Value, row int) bool {
	op := v.Get("cmp").Str
	if r.typed && (v.Get("a").Get("op").Str == "const_null" || v.Get("b").Get("op").Str == "const_null") {
		a, b := r.isNull(v.Get("a"), row), r.isNull(v.Get("b"), row)
		return op == "==" && a && b || op == "!=" && a != b
	}
	if result, done := r.exactly(v, row); done {
		return result
	}
	a, aOK := r.expr(v.Get("a"), row)
	b, bOK := r.expr(v.Get("b"), row)
	if v.Get("a").Get("op").Str == "const_null" || v.Get("b").Get("op").Str == "const_null" {
		return op == "==" && !aOK && !bOK || op == "!=" && aOK != bOK
	}
	if !aOK || !bOK {
		return false
	}
	switch op {
	case "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	panic("reference: cmp " + op)
}

func (r reference) in(v *jsondoc.Value, row int, path string) (bool, error) {
	lhs, list := v.Get("lhs"), v.Get("list").Items
	if len(list) == 0 {
		return false, nil
	}
	if r.typed && r.typeOf(lhs) == Int && list[0].IsNumber() {
		x, ok := r.value(lhs, row).(int64)
		for i := range list {
			if whole, isWhole := integer(&list[i]); ok && isWhole && x == whole || ok && x == 0 && list[i].Float == 0 {
				return true, nil
			}
		}
		return false, nil
	}
	if r.typed && r.typeOf(lhs) == String {
		s, ok := r.value(lhs, row).(string)
		for i := range list {
			if ok && s == list[i].Str {
				return true, nil
			}
		}
		return false, nil
	}
	if list[0].IsNumber() {
		x, ok := r.expr(lhs, row)
		for i := range list {
			if ok && x == list[i].Float {
				return true, nil
			}
		}
		return false, nil
	}
	if lhs.Get("op").Str != "key_ref" {
		return false, &EvalError{path, ErrListOperand}
	}
	s, ok := r.text(lhs, row)
	for i := range list {
		if ok && s == list[i].Str {
			return true, nil
		}
	}
	return false, nil
}

func (r reference) regex(v *jsondoc.Value, row int, path string) (bool, error) {
	s, ok := r.text(v, row)
	if !ok {
		return false, nil
	}
	pattern := v.Get("pattern")
	text := ""
	if pattern.Get("kind").Str == "param" {
		if text, ok = r.params.String(registry.ParamID(pattern.Get("param_id").Uint)); !ok {
			return false, &EvalError{path, ErrNullPattern}
		}
	} else {
		text = pattern.Get("value").Str
	}
	flags := v.Get("flags")
	m := compilePattern(text, flags != nil && flags.Str == "i")
	if m.err != nil {
		return false, &EvalError{path, m.err}
	}
	return m.match(nil, s)
}

// text returns a string. For a regex, it returns the string in the column that its key_id
// names.
func (r reference) text(v *jsondoc.Value, row int) (string, bool) {
	switch v.Get("op").Str {
	case "const_null":
		return "", false
	case "const_string":
		return v.Get("value").Str, true
	case "param_ref":
		return r.params.String(registry.ParamID(v.Get("param_id").Uint))
	case "lower":
		s, ok := r.text(v.Get("x"), row)
		s = cases.Lower(language.Und).String(s) // TestStringsAreJavaScripts compares it with toLowerCase
		return s, ok && len(s) <= TextMax
	case "coalesce":
		if s, ok := r.text(v.Get("a"), row); ok {
			return s, true
		}
		return r.text(v.Get("b"), row)
	case "if":
		if cond, _ := r.pred(v.Get("cond"), row, ""); cond {
			return r.text(v.Get("then"), row)
		}
		return r.text(v.Get("else"), row)
	case "concat":
		a, aOK := r.appended(v.Get("a"), row)
		b, bOK := r.appended(v.Get("b"), row)
		return a + b, aOK && bOK && len(a+b) <= TextMax
	}
	c := r.batch.String(registry.KeyID(v.Get("key_id").Uint))
	if c == nil {
		return "", false
	}
	return c.Value(row)
}

// appended returns an operand of concat as a string.
func (r reference) appended(v *jsondoc.Value, row int) (string, bool) {
	switch r.typeOf(v) {
	case String:
		return r.text(v, row)
	case Int:
		i, ok := r.value(v, row).(int64)
		return fmt.Sprint(i), ok
	}
	x, ok := r.expr(v, row)
	return string(appendNumber(nil, x)), ok && isFinite(x)
}

// filter keeps the rows for which the predicate is true.
func (r reference) filter(v *jsondoc.Value, in rowset.RowSet) ([]int32, error) {
	rows := []int32{}
	for i := range in.N {
		ok, err := r.pred(v, int(in.Row(i)), "")
		if err != nil {
			return nil, err
		}
		if ok {
			rows = append(rows, in.Row(i))
		}
	}
	return rows, nil
}

// A treeGen writes random trees as JSON.
type treeGen struct {
	rng   *rand.Rand
	typed bool
}

func (g treeGen) pick(of ...string) string { return of[g.rng.IntN(len(of))] }

func (g treeGen) number() string {
	switch g.rng.IntN(8) {
	case 0:
		return g.pick("1e308", "-1e308", "-0.0", "-0", "5e-324", "18446744073709551615", "9007199254740993")
	case 1:
		return fmt.Sprint(g.rng.NormFloat64())
	}
	return g.pick("0", "1", "-1", "0.5", "-0.5", "2", "3", "-7", "1e0")
}

func (g treeGen) key() string {
	if g.typed {
		return g.pick("1", "1001", "1002", "2001", "5001", "5002", "5101")
	}
	return g.pick("1", "1001", "1002", "2001", "1001", "3001", "3002", "4001", "0", "77")
}

// expr returns an expression of that depth at most.
func (g treeGen) expr(depth int) string {
	if depth <= 1 || g.rng.IntN(6) == 0 {
		switch g.rng.IntN(8) {
		case 0:
			return `{"op":"const_null"}`
		case 1, 2:
			return `{"op":"const_number","value":` + g.number() + `}`
		case 3:
			if g.typed {
				return g.pick(`{"op":"param_ref","param_id":`+g.pick("1", "3", "5", "6")+`}`, `{"op":"now"}`)
			}
			return `{"op":"param_ref","param_id":` + g.pick("1", "2", "3", "9", "0") + `}`
		default:
			return `{"op":"key_ref","key_id":` + g.key() + `}`
		}
	}
	if g.rng.IntN(8) == 0 {
		return `{"op":"neg","x":` + g.expr(depth-1) + `}`
	}
	if g.typed && g.rng.IntN(2) == 0 {
		return g.typedOperation(depth)
	}
	a, b := g.expr(depth-1), g.expr(depth-1)
	if g.rng.IntN(3) == 0 { // lopsided to either side
		a = g.expr(1)
	} else if g.rng.IntN(3) == 0 {
		b = g.expr(1)
	}
	return `{"op":"` + g.pick("add", "sub", "mul", "mul", "coalesce", "coalesce") + `","a":` + a + `,"b":` + b + `}`
}

// typedOperation returns an operation of typed expressions. Each is equally likely.
func (g treeGen) typedOperation(depth int) string {
	var all []*Operator
	for i := range operators {
		if o := &operators[i]; o.Typed && o.Makes == Number && len(o.Operands) > 0 {
			all = append(all, o)
		}
	}
	o := all[g.rng.IntN(len(all))]
	if o.code == opTable {
		x, entries := g.intLeaf(), `{"1":0.5,"-3":7,"9007199254740993":2}`
		if g.rng.IntN(2) == 0 {
			x, entries = g.textLeaf(), `{"US":0.5,"":7,"s1":2,"ß":-1}`
		}
		return `{"op":"table","x":` + x + `,"entries":` + entries + g.pick("", `,"default":3`) + `}`
	}
	text := `{"op":"` + o.Name + `"`
	for _, operand := range o.Operands {
		part := ""
		switch {
		case operand.Takes == TakesVector:
			part = g.pick(`{"op":"key_ref","key_id":5251}`, `{"op":"key_ref","key_id":5252}`, `{"op":"param_ref","param_id":9}`)
		case operand.Takes == TakesText && o.code != opClock:
			part = g.textLeaf()
		case operand.Takes == TakesText:
			part = str(g.pick("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"))
		case operand.Takes == TakesElement && g.rng.IntN(2) == 0:
			part = g.pick(g.intLeaf(), g.textLeaf())
		case operand.Takes == TakesPredicate:
			part = treeGen{g.rng, true}.cond(min(depth-1, 3))
		case g.rng.IntN(3) == 0:
			part = g.expr(1)
		default:
			part = g.expr(depth - 1)
		}
		text += `,"` + operand.Member + `":` + part
	}
	return text + "}"
}

// cond returns the condition of an if, which cannot fail.
func (g treeGen) cond(depth int) string {
	for {
		text := g.pred(depth)
		if _, err := typedLanguage.ParseExpr(mustJSON(`{"op":"if","cond":` + text + `,"then":{"op":"now"},"else":{"op":"now"}}`)); err == nil {
			return text
		}
	}
}

func mustJSON(text string) *jsondoc.Value {
	v, err := jsondoc.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return &v
}

// textLeaf returns a string that is stored or computed.
func (g treeGen) textLeaf() string {
	if g.rng.IntN(3) == 0 {
		return g.computedText()
	}
	return g.pick(`{"op":"key_ref","key_id":3001}`, `{"op":"key_ref","key_id":3002}`, `{"op":"param_ref","param_id":2}`,
		`{"op":"const_string","value":`+g.quoted()+`}`)
}

// computedText returns an operation that makes a string.
func (g treeGen) computedText() string {
	switch g.rng.IntN(4) {
	case 0:
		parts := []string{g.textLeaf(), g.pick(g.textLeaf(), g.intLeaf(), un("neg", g.expr(2)))}
		g.rng.Shuffle(2, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return bi("concat", parts[0], parts[1])
	case 1:
		return un("lower", g.textLeaf())
	case 2:
		return bi("coalesce", g.textLeaf(), g.pick(g.textLeaf(), null))
	default:
		return when(treeGen{g.rng, true}.cond(1), g.textLeaf(), g.textLeaf())
	}
}

// intLeaf returns a stored integer.
func (g treeGen) intLeaf() string {
	return g.pick(`{"op":"key_ref","key_id":1}`, `{"op":"key_ref","key_id":5001}`, `{"op":"key_ref","key_id":5002}`,
		`{"op":"param_ref","param_id":5}`, `{"op":"const_number","value":`+g.pick("0", "1", "-3", "9007199254740993", "9223372036854775807")+`}`)
}

func (g treeGen) quoted() string {
	return string(jsondoc.AppendString(nil, strings.ToValidUTF8(rowsettest.String(g.rng), "?")))
}

// leafTest returns a predicate of typed trees on stored values.
func (g treeGen) leafTest() string {
	set := g.pick(`{"op":"key_ref","key_id":5201}`, `{"op":"key_ref","key_id":5202}`, `{"op":"param_ref","param_id":8}`)
	ints := `{"op":"param_ref","param_id":7}`
	member := func(x, set string) string { return `{"op":"member","x":` + x + `,"set":` + set + `}` }
	switch g.rng.IntN(10) {
	case 8:
		return `{"op":"` + g.pick("contains", "starts_with", "ends_with") + `","x":` + g.textLeaf() + `,"part":` + g.textLeaf() + `}`
	case 0:
		return cmp(g.textLeaf(), g.pick("==", "!="), g.pick(g.textLeaf(), null))
	case 1, 2:
		return cmp(g.intLeaf(), g.pick("==", "!=", "<", "<=", ">", ">="), g.intLeaf())
	case 3:
		return in(g.intLeaf(), g.numbers())
	case 4:
		return in(g.textLeaf(), g.quoted()+","+g.quoted())
	case 5:
		return member(g.textLeaf(), set)
	case 6:
		return member(g.intLeaf(), ints)
	case 7:
		return member(g.expr(2), ints)
	default:
		return un(g.pick("is_null", "not_null"), g.pick(set, ints, g.textLeaf()))
	}
}

// computed returns an arithmetic expression with about that many operations, which takes many
// registers. None of it can be folded.
func (g treeGen) computed(operations int) string {
	if operations <= 0 {
		return `{"op":"key_ref","key_id":` + g.pick("1", "1001", "1002", "2001") + `}`
	}
	left := g.rng.IntN(operations)
	a, b := g.computed(left), g.computed(operations-1-left)
	return `{"op":"` + g.pick("add", "sub", "mul", "coalesce") + `","a":` + a + `,"b":` + b + `}`
}

// pred returns a predicate of that depth at most.
func (g treeGen) pred(depth int) string {
	if depth > 1 && g.rng.IntN(8) > 0 {
		if g.rng.IntN(4) == 0 {
			return `{"op":"not","x":` + g.pred(depth-1) + `}`
		}
		return `{"op":"` + g.pick("and", "or") + `","a":` + g.pred(depth-1) + `,"b":` + g.pred(depth-1) + `}`
	}
	if g.typed && g.rng.IntN(2) == 0 {
		return g.leafTest()
	}
	switch g.rng.IntN(14) {
	case 0:
		return `{"op":"const_bool","value":` + g.pick("true", "false") + `}`
	case 1, 2:
		return `{"op":"` + g.pick("is_null", "not_null") + `","x":` + g.expr(3) + `}`
	case 3, 4:
		return `{"op":"in","lhs":` + g.expr(2) + `,"list":[` + g.numbers() + `]}`
	case 5, 6:
		list := []string{}
		for range 1 + g.rng.IntN(12) {
			list = append(list, string(jsondoc.AppendString(nil, strings.ToValidUTF8(rowsettest.String(g.rng), "?"))))
		}
		lhs := `{"op":"key_ref","key_id":` + g.pick("3001", "3002", "1001", "1") + `}`
		if g.typed {
			lhs = g.textLeaf()
		} else if g.rng.IntN(12) == 0 {
			lhs = g.expr(2)
		}
		return `{"op":"in","lhs":` + lhs + `,"list":[` + strings.Join(list, ",") + `]}`
	case 7, 8:
		return g.regex()
	default:
		return `{"op":"cmp","cmp":"` + g.pick("==", "!=", "<", "<=", ">", ">=") + `","a":` + g.expr(3) + `,"b":` + g.expr(2) + `}`
	}
}

func (g treeGen) numbers() string {
	list := []string{}
	for range g.rng.IntN(4) * g.rng.IntN(12) {
		list = append(list, g.number())
	}
	return strings.Join(list, ",")
}

func (g treeGen) regex() string {
	pattern := `{"kind":"literal","value":"` + g.pick("", "^s1", "[0-9]$", "u", "^$", "ss|ß", "(?s)e.b", "e.b", `\\bUS`) + `"}`
	switch g.rng.IntN(8) {
	case 0:
		pattern = `{"kind":"literal","value":"` + g.pick("(", "(?=x)", `\\1`, "a{1001}", `\\p{Letter}`) + `"}`
	case 1, 2:
		pattern = `{"kind":"param","param_id":` + g.pick("2", "2", "2", "1", "9") + `}`
	}
	key := g.pick("3001", "3002", "1001", "1")
	if g.typed {
		key = g.pick("3001", "3002")
		if strings.Contains(pattern, `"literal"`) {
			pattern = `{"kind":"literal","value":"` + g.pick("", "^s1", "[0-9]$", "u") + `"}`
		} else {
			pattern = `{"kind":"param","param_id":2}`
		}
	}
	return `{"op":"regex","key_id":` + key + `,"pattern":` + pattern +
		g.pick(``, `,"flags":""`, `,"flags":"i"`) + `}`
}

// params returns parameter values, some of them unset.
func (g treeGen) params() *Params {
	p := new(Params)
	for _, id := range []registry.ParamID{1, 3} {
		if g.rng.IntN(2) == 0 {
			p.SetFloat(id, rowsettest.Float(g.rng))
		}
	}
	if g.rng.IntN(4) > 0 {
		p.SetString(2, g.pick("^s", "e", "S2", "", "(", "^[a-z]+$"))
	}
	if !g.typed {
		return p
	}
	if g.rng.IntN(4) > 0 {
		p.SetNow(1.7e9 + g.rng.Float64())
		p.SetInt(5, rowsettest.ID(g.rng))
		p.SetBool(6, g.rng.IntN(2) == 0)
	}
	if g.rng.IntN(4) > 0 {
		ints, texts := []int64{}, []string{}
		for range g.rng.IntN(2) * g.rng.IntN(40) {
			ints, texts = append(ints, rowsettest.ID(g.rng)), append(texts, rowsettest.String(g.rng))
		}
		vector := make([]float32, rowsettest.VectorDims)
		for i := range vector {
			vector[i] = float32(g.rng.NormFloat64())
		}
		p.SetVector(9, vector)
		p.SetIntList(7, ints)
		p.SetStringList(8, texts)
	}
	return p
}

// sameFloat reports whether two doubles are the same, bit by bit. All NaNs count as the same.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}
