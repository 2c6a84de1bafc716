package expr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/rowset/rowsettest"
)

// A reference evaluates trees as the format describes them: one row at a time,
// straight from the JSON, nothing folded, bound or cached.
type reference struct {
	batch  *rowset.Batch
	params *Params
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
		if c := r.batch.Float(key); c != nil && c.Valid.Get(row) {
			return c.Values[row], true
		}
		return 0, false
	case "param_ref":
		return r.params.Float(registry.ParamID(v.Get("param_id").Uint))
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
		panic("reference: op " + op)
	}
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
		_, ok := r.expr(v.Get("x"), row)
		return ok == (op == "not_null"), nil
	case "in":
		return r.in(v, row, path)
	case "regex":
		return r.regex(v, row, path)
	default:
		panic("reference: op " + op)
	}
}

func (r reference) cmp(v *jsondoc.Value, row int) bool {
	a, aOK := r.expr(v.Get("a"), row)
	b, bOK := r.expr(v.Get("b"), row)
	op := v.Get("cmp").Str
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

// text returns the string of a row in the column that v's key_id names.
func (r reference) text(v *jsondoc.Value, row int) (string, bool) {
	c := r.batch.String(registry.KeyID(v.Get("key_id").Uint))
	if c == nil {
		return "", false
	}
	return c.Value(row)
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
type treeGen struct{ rng *rand.Rand }

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
	return g.pick("1", "1001", "1002", "2001", "1001", "3001", "3002", "4001", "0", "77")
}

// expr returns an expression of at most that depth.
func (g treeGen) expr(depth int) string {
	if depth <= 1 || g.rng.IntN(6) == 0 {
		switch g.rng.IntN(8) {
		case 0:
			return `{"op":"const_null"}`
		case 1, 2:
			return `{"op":"const_number","value":` + g.number() + `}`
		case 3:
			return `{"op":"param_ref","param_id":` + g.pick("1", "2", "3", "9", "0") + `}`
		default:
			return `{"op":"key_ref","key_id":` + g.key() + `}`
		}
	}
	if g.rng.IntN(8) == 0 {
		return `{"op":"neg","x":` + g.expr(depth-1) + `}`
	}
	a, b := g.expr(depth-1), g.expr(depth-1)
	if g.rng.IntN(3) == 0 { // lopsided to either side
		a = g.expr(1)
	} else if g.rng.IntN(3) == 0 {
		b = g.expr(1)
	}
	return `{"op":"` + g.pick("add", "sub", "mul", "mul", "coalesce", "coalesce") + `","a":` + a + `,"b":` + b + `}`
}

// computed returns an arithmetic expression of which nothing folds, with
// about that many operations: what takes many registers.
func (g treeGen) computed(operations int) string {
	if operations <= 0 {
		return `{"op":"key_ref","key_id":` + g.pick("1", "1001", "1002", "2001") + `}`
	}
	left := g.rng.IntN(operations)
	a, b := g.computed(left), g.computed(operations-1-left)
	return `{"op":"` + g.pick("add", "sub", "mul", "coalesce") + `","a":` + a + `,"b":` + b + `}`
}

// pred returns a predicate of at most that depth.
func (g treeGen) pred(depth int) string {
	if depth > 1 && g.rng.IntN(8) > 0 {
		if g.rng.IntN(4) == 0 {
			return `{"op":"not","x":` + g.pred(depth-1) + `}`
		}
		return `{"op":"` + g.pick("and", "or") + `","a":` + g.pred(depth-1) + `,"b":` + g.pred(depth-1) + `}`
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
			list = append(list, fmt.Sprintf("%q", strings.ToValidUTF8(rowsettest.String(g.rng), "?")))
		}
		lhs := `{"op":"key_ref","key_id":` + g.pick("3001", "3002", "1001", "1") + `}`
		if g.rng.IntN(12) == 0 {
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
	return `{"op":"regex","key_id":` + g.pick("3001", "3002", "1001", "1") + `,"pattern":` + pattern +
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
	return p
}

// sameFloat reports whether two doubles are the same, bit by bit; one NaN is
// like another.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}
