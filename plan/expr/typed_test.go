package expr

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/elementary"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

const big = 1 << 53

// typedWorld has four rows, which show the effect of the rules of typed trees.
//
//	row  id       1001  5001     5002     5101   3001  3002  5201
//	 0   1        0.5   7        2^53     true   "DE"  "DE"  {"a","b"}
//	 1   2        null  null     2^53+1   false  null  "US"  {}
//	 2   2^53+1   -0.0  2^53+1   2^53     null   "us"  "US"  null
//	 3   -5       1e308 -3       -3       true   ""    ""    {"DE",""}
func typedWorld() rowset.RowSet {
	rows := world()
	ints := [2]*rowset.IntBuilder{rowset.NewIntBuilder(5001, 4), rowset.NewIntBuilder(5002, 4)}
	bools, other, sets := rowset.NewBoolBuilder(5101, 4), rowset.NewStringBuilder(3002, 4), rowset.NewSetBuilder(5201, 4)
	for row, set := range [][]string{{"a", "b"}, {}, nil, {"DE", ""}} {
		ints[1].Append([]int64{big, big + 1, big, -3}[row])
		if row == 1 {
			ints[0].AppendNull()
		} else {
			ints[0].Append([]int64{7, 0, big + 1, -3}[row])
		}
		if row == 2 {
			bools.AppendNull()
		} else {
			bools.Append(row != 1)
		}
		other.Append([]byte([]string{"DE", "US", "US", ""}[row]))
		for _, member := range set {
			sets.Add([]byte(member))
		}
		if set == nil {
			sets.AppendNull()
		} else {
			sets.Append()
		}
	}
	rows.Batch = rowset.With(rows.Batch,
		ints[0].Column(),
		ints[1].Column(),
		bools.Column(),
		other.Column(),
		sets.Column(),
	)
	return rows
}

func typedWorldParams() *Params {
	p := worldParams()
	p.SetNow(1000)
	p.SetInt(5, big+1)
	p.SetBool(6, true)
	p.SetIntList(7, []int64{1, big + 1})
	p.SetStringList(8, []string{"DE", "x"})
	return p
}

const (
	count  = `{"op":"key_ref","key_id":5001}`
	seen   = `{"op":"key_ref","key_id":5002}`
	flag   = `{"op":"key_ref","key_id":5101}`
	title  = `{"op":"key_ref","key_id":3002}`
	tags   = `{"op":"key_ref","key_id":5201}`
	limit  = `{"op":"param_ref","param_id":5}`
	ints   = `{"op":"param_ref","param_id":7}`
	texts  = `{"op":"param_ref","param_id":8}`
	zero   = `{"op":"const_number","value":0}`
	truly  = `{"op":"cmp","cmp":"!=","a":` + flag + `,"b":` + zero + `}`
	number = `{"op":"param_ref","param_id":1}`
)

func str(s string) string         { return `{"op":"const_string","value":"` + s + `"}` }
func member(x, set string) string { return `{"op":"member","x":` + x + `,"set":` + set + `}` }
func when(c, x, y string) string {
	return `{"op":"if","cond":` + c + `,"then":` + x + `,"else":` + y + `}`
}
func clamp(x, lo, hi string) string {
	return `{"op":"clamp","x":` + x + `,"low":` + lo + `,"high":` + hi + `}`
}
func decayed(x, h string) string { return `{"op":"decay","x":` + x + `,"half_life":` + h + `}` }

func TestTypedExprRules(t *testing.T) {
	isNull := math.Float64frombits(0x7ff8_0000_dead_beef)
	negZero := math.Copysign(0, -1)
	all := func(v float64) [4]float64 { return [4]float64{v, v, v, v} }
	for _, c := range []struct {
		name, tree string
		want       [4]float64
	}{
		{"an int column as doubles", count, [4]float64{7, isNull, big, -3}},
		{"a bool column as 0 and 1", flag, [4]float64{1, 0, isNull, 1}},
		{"a bool parameter", `{"op":"param_ref","param_id":6}`, all(1)},
		{"an int parameter", limit, all(big)},
		{"arithmetic of integers is that of doubles", bi("add", seen, num("1")), [4]float64{big, big, big, -2}},
		{"now", `{"op":"now"}`, all(1000)},
		{"age", un("age", count), [4]float64{993, isNull, 1000 - big, 1003}},
		{"the age of an infinity is null", un("age", bi("mul", score, num("10"))), [4]float64{995, isNull, 1000, isNull}},
		{"division", bi("div", num("1"), id), [4]float64{1, 0.5, 1.0 / big, -0.2}},
		{"division by zero is null", bi("div", id, flag), [4]float64{1, isNull, isNull, -5}},
		{"division of constants by zero", bi("div", num("1"), zero), all(isNull)},
		{"a null of division in coalesce", bi("coalesce", bi("div", num("1"), zero), num("3")), all(3)},
		{"remainder has the sign of the left side", bi("mod", id, num("3")), [4]float64{1, 2, 2, -2}},
		{"remainder by zero is null", bi("mod", id, zero), all(isNull)},
		{"remainder of fractions", bi("mod", num("-5.5"), num("2")), all(-1.5)},
		{"minimum", bi("min", id, score), [4]float64{0.5, isNull, negZero, -5}},
		{"maximum", bi("max", id, score), [4]float64{1, isNull, big, 1e308}},
		{"an infinity in a minimum", bi("min", bi("mul", score, num("10")), zero), [4]float64{0, isNull, negZero, 0}},
		{"an infinity from a maximum", bi("max", bi("mul", score, num("10")), zero), [4]float64{5, isNull, 0, isNull}},
		{"absolute", un("abs", id), [4]float64{1, 2, big, 5}},
		{"floor", un("floor", score), [4]float64{0, isNull, negZero, 1e308}},
		{"ceil", un("ceil", score), [4]float64{1, isNull, negZero, 1e308}},
		{"roots of negative numbers are null", un("sqrt", id), [4]float64{1, math.Sqrt2, math.Sqrt(big), isNull}},
		{"exp overflows to null", un("exp", score), [4]float64{elementary.Exp(0.5), isNull, 1, isNull}},
		{"log of zero and of negative numbers is null", un("log", bi("sub", id, num("1"))), [4]float64{isNull, 0, elementary.Log(big), isNull}},
		{"power", bi("pow", id, num("2")), [4]float64{1, 4, big * big, 25}},
		{"power of zero", bi("pow", flag, num("-1")), [4]float64{1, isNull, isNull, 1}},
		{"power of an infinity", bi("pow", num("1"), bi("mul", score, num("10"))), [4]float64{1, isNull, 1, isNull}},
		{"clamp", clamp(id, num("0"), num("1.5")), [4]float64{1, 1.5, 1.5, 0}},
		{"clamp by columns", clamp(id, score, num("3")), [4]float64{1, isNull, 3, 3}},
		{"clamp whose bounds cross", clamp(id, num("2"), num("1")), all(1)},
		{"decay", decayed(id, num("1")), [4]float64{0.5, 0.25, 0, 32}},
		{"decay without a half life is null", decayed(id, zero), all(isNull)},
		{"decay of a negative half life is null", decayed(id, num("-1")), all(isNull)},
		{"if", when(truly, id, num("9")), [4]float64{1, 9, 9, -5}},
		{"if keeps the null of what it chooses", when(truly, score, num("9")), [4]float64{0.5, 9, 9, 1e308}},
		{"if with null", when(cmp(id, ">", num("1")), null, id), [4]float64{1, isNull, isNull, -5}},
		{"if of a constant", when(yes, score, id), [4]float64{0.5, isNull, negZero, 1e308}},
		{"if passes infinities on", when(truly, bi("mul", score, num("10")), zero), [4]float64{5, 0, 0, math.Inf(1)}},
		{"if in an if", when(cmp(when(truly, id, zero), "<", zero), num("1"), num("2")), [4]float64{2, 2, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := mustExprOf(t, typedLanguage, c.tree)
			column := columnOf(e, typedWorld(), typedWorldParams())
			for row, want := range c.want {
				valid := column.Valid.Get(row)
				if math.Float64bits(want) == math.Float64bits(isNull) {
					assert.False(t, valid, "row %d is null, got %v", row, column.Values[row])
					continue
				}
				require.True(t, valid, "row %d is not null", row)
				assert.True(t, sameFloat(want, column.Values[row]), "row %d: want %v, got %v", row, want, column.Values[row])
			}
			checkExpr(t, e, parseJSON(t, c.tree), typedWorld(), typedWorldParams())
		})
	}
}

func TestNowIsNullWithoutARequest(t *testing.T) {
	for _, tree := range []string{`{"op":"now"}`, un("age", id)} {
		assert.True(t, columnOf(mustExprOf(t, typedLanguage, tree), typedWorld(), nil).Null)
	}
}

func TestTypedPredRules(t *testing.T) {
	for _, c := range []struct {
		name, tree string
		want       []int32
	}{
		{"integers are equal exactly", cmp(seen, "==", num("9007199254740993")), []int32{1}},
		{"integers are ordered exactly", cmp(seen, "<", num("9007199254740993")), []int32{0, 2, 3}},
		{"the id is compared exactly", cmp(id, "==", count), []int32{2}},
		{"the id and a parameter", cmp(limit, "<=", id), []int32{2}},
		{"an integral constant with a point", cmp(id, "==", num("2.0")), []int32{1}},
		{"an integer and a fraction", cmp(count, "<", num("7.5")), []int32{0, 3}},
		{"arithmetic makes it a double", cmp(bi("add", seen, zero), "==", num("9007199254740993")), []int32{0, 1, 2}},
		{"null is unequal to nothing", cmp(count, "!=", num("7")), []int32{2, 3}},
		{"integers in a list", in(seen, "9007199254740993,-3,0.5"), []int32{1, 3}},
		{"minus zero in a list", in(flag, "-0.0"), []int32{1}},
		{"a bool as predicate", truly, []int32{0, 3}},
		{"not a bool", un("not", truly), []int32{1, 2}},
		{"equal string columns", cmp(text, "==", title), []int32{0, 3}},
		{"unequal string columns", cmp(text, "!=", title), []int32{2}},
		{"a string column and a constant", cmp(str("US"), "==", title), []int32{1, 2}},
		{"unequal to a constant", cmp(text, "!=", str("DE")), []int32{2, 3}},
		{"a string column and a parameter", cmp(text, "!=", `{"op":"param_ref","param_id":2}`), []int32{0, 2, 3}},
		{"null strings", un("is_null", text), []int32{1}},
		{"compared with null", cmp(text, "!=", null), []int32{0, 2, 3}},
		{"an empty set is not null", un("is_null", tags), []int32{2}},
		{"a parameter is not null", un("not_null", ints), []int32{0, 1, 2, 3}},
		{"strings in a list", in(title, `"DE","x"`), []int32{0}},
		{"a constant in a set", member(str("b"), tags), []int32{0}},
		{"a string that no set has", member(str("nowhere"), tags), nil},
		{"a column in a set", member(title, tags), []int32{3}},
		{"a column in a list", member(text, texts), []int32{0}},
		{"a constant in a list", member(str("x"), texts), []int32{0, 1, 2, 3}},
		{"the id in a list, exactly", member(id, ints), []int32{0, 2}},
		{"a number in a list", member(bi("mul", flag, num("1")), ints), []int32{0, 3}},
		{"null in a list", member(null, ints), nil},
		{"not in a set", un("not", member(str("b"), tags)), []int32{1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustPredOf(t, typedLanguage, c.tree)
			kept, err := p.Filter(nil, nil, typedWorld(), typedWorldParams())
			require.NoError(t, err)
			var got []int32
			for i := range kept.N {
				got = append(got, kept.Row(i))
			}
			assert.Equal(t, c.want, got)
			checkPred(t, p, parseJSON(t, c.tree), typedWorld(), typedWorldParams())
		})
	}
}

func TestTypedTreesRefuse(t *testing.T) {
	for _, c := range []struct{ name, tree, want string }{
		{"unknown key", bi("add", id, `{"op":"key_ref","key_id":77}`), "b: key_id: 77 is not a registered key"},
		{"feature bundle", `{"op":"key_ref","key_id":4001}`, "key_id: expressions cannot read key k4001 of type feature_bundle"},
		{"unknown parameter", `{"op":"param_ref","param_id":77}`, "param_id: 77 is not a registered parameter"},
		{"a set as expression", tags, "want a number, a string or a predicate, have key k5201 of type string_set"},
		{"a bool in a string", bi("concat", text, flag), "want a number or a string, have key k5101 of type bool"},
		{"a set in a string", bi("concat", text, tags), "b: want a number or a string, have key k5201 of type string_set"},
		{"a number in lower case", un("lower", id), "x: want a string, have key id of type int"},
		{"a string or a number", bi("coalesce", text, id), "cannot choose between key k3001 of type string and key id of type int"},
		{"a parameter's pattern as expression", regexParam("2"),
			"pattern: an expression, and the condition of an if, takes a literal pattern, because an expression cannot fail"},
		{"a string in arithmetic", un("neg", bi("add", id, text)), "x.b: want a number, have key k3001 of type string"},
		{"a constant string in arithmetic", un("sqrt", str("a")), "x: want a number, have a string"},
		{"a set in arithmetic", bi("max", tags, id), "a: want a number, have key k5201 of type string_set"},
		{"clamp without a bound", `{"op":"clamp","x":` + id + `,"low":` + id + `}`, "high is missing"},
		{"if without a predicate", when(id, id, id), `cond: unknown op "key_ref" of a predicate`},
		{"a table of nothing", `{"op":"table","x":` + id + `}`, "entries is missing"},
		{"a table with a text", `{"op":"table","x":` + id + `,"entries":{"1":"a"}}`, `entries["1"]: want a number, have "a"`},
		{"a table of texts for an integer", `{"op":"table","x":` + id + `,"entries":{"01":1}}`, `entries["01"]: want an integer as the name, since x is one`},
		{"a table of a number", `{"op":"table","x":` + score + `,"entries":{}}`, "x: want an integer or a string, have key k1001 of type float"},
		{"a table's default", `{"op":"table","x":` + id + `,"entries":{},"default":"a"}`, `default: want a number or null, have "a"`},
		{"a vector of an integer", `{"op":"dot","a":` + id + `,"b":` + id + `}`, "a: want a vector, have key id of type int"},
		{"a predicate in if's branch", when(yes, yes, id), `then: unknown op "const_bool" of an expression`},
		{"a string in if's branch", when(yes, id, str("a")), "cannot choose between key id of type int and a string"},
		{"a parameter's pattern inside if", when(regexParam("2"), id, id),
			"cond.pattern: an expression, and the condition of an if, takes a literal pattern, because an expression cannot fail"},
		{"... deep inside", when(un("not", cmp(when(regexParam("2"), id, id), ">", id)), id, id),
			"cond.x.a.cond.pattern: an expression, and the condition of an if, takes a literal pattern, because an expression cannot fail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := typedLanguage.ParseExpr(parseJSON(t, c.tree))
			assert.EqualError(t, err, c.want)
		})
	}
	for _, c := range []struct{ name, tree, want string }{
		{"strings are not ordered", cmp(text, "<", title), "a: want a number, have key k3001 of type string"},
		{"a string and a number", cmp(text, "==", id), "cannot compare key k3001 of type string with key id of type int"},
		{"sets are not compared", cmp(tags, "==", tags), "a: want a number or a string, have key k5201 of type string_set"},
		{"strings for a number", in(id, `"a"`), `list: key id of type int cannot be one of "a"`},
		{"numbers for a string", in(text, `1`), "list: key k3001 of type string cannot be one of the integer 1"},
		{"a member of a number", member(id, id), "set: want a set of strings or a list, have key id of type int"},
		{"a number in a set of strings", member(id, tags), "key k5201 of type string_set has no element like key id of type int"},
		{"a string in a list of integers", member(text, ints), "parameter p7 of type int_list has no element like key k3001 of type string"},
		{"a bad pattern", regex("(", ""), "pattern: value: bad pattern: missing closing ): \"(\""},
		{"a pattern for a number", `{"op":"regex","key_id":1001,"pattern":{"kind":"literal","value":""}}`,
			"key_id: want a key of type string, have key k1001 of type float"},
		{"a pattern from a number", regexParam("1"), "pattern: param_id: want a parameter of type string, have parameter p1 of type float"},
		{"a pattern from nothing", regexParam("77"), "pattern: param_id: 77 is not a registered parameter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := typedLanguage.ParsePred(parseJSON(t, c.tree))
			assert.EqualError(t, err, c.want)
		})
	}
}

// Each operator that needs the capability is refused without it, with its place in the
// document.
func TestUntypedTreesRefuseNewOperators(t *testing.T) {
	for _, o := range Operators() {
		if !o.Typed {
			continue
		}
		want := `op "` + o.Name + `" needs "cap.rankd.expressions.v1" in capabilities_required`
		if o.Makes == Predicate {
			_, err := Language{}.ParsePred(parseJSON(t, un("not", `{"op":"`+o.Name+`"}`)))
			assert.EqualError(t, err, "x: "+want)
		} else {
			_, err := Language{}.ParseExpr(parseJSON(t, un("neg", `{"op":"`+o.Name+`"}`)))
			assert.EqualError(t, err, "x: "+want)
		}
	}
}

// The table has all that the parser, the compiler of plans and the reference need.
func TestTheTableOfOperatorsIsWhole(t *testing.T) {
	written := map[string]string{}
	for _, o := range Operators() {
		name := o.Name + o.Cmp
		assert.NotEmpty(t, o.Doc, name)
		assert.NotEmpty(t, o.Null, name)
		assert.NotEmpty(t, o.Example, name)
		for _, w := range []string{o.Infix, o.Prefix + "x", o.Function, o.Builder} {
			if w != "" && w != "x" {
				assert.Empty(t, written[w], "%s and %s are both written %s", name, written[w], w)
				written[w] = name
			}
		}
		if k := o.kernel; k.one != nil || k.two != nil {
			assert.NotNil(t, o.row, name)
			assert.Equal(t, k.one != nil, len(o.Operands) == 1, name)
			assert.Equal(t, k.two != nil, len(o.Operands) == 2, name)
		}
	}
}

// Each kernel computes what the table's row says, with columns and constants on either side.
func TestKernelsAgreeWithRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	values := func() []float64 {
		list := make([]float64, 300)
		for i := range list {
			list[i] = [...]float64{rng.NormFloat64() * 100, float64(rng.IntN(9) - 4), math.Inf(1), math.NaN(), 1e300, math.Copysign(0, -1)}[rng.IntN(6)]
		}
		return list
	}
	for _, o := range Operators() {
		k := o.kernel
		for range 20 {
			x, y := values(), values()
			c := y[0]
			for name, run := range map[string]struct {
				kernel func(dst []float64)
				row    func(i int) float64
			}{
				"one":    {func(dst []float64) { k.one(dst, x) }, func(i int) float64 { return o.row(x[i], 0, 0) }},
				"two":    {func(dst []float64) { k.two(dst, x, y) }, func(i int) float64 { return o.row(x[i], y[i], 0) }},
				"scalar": {func(dst []float64) { k.scalar(dst, x, c) }, func(i int) float64 { return o.row(x[i], c, 0) }},
				"before": {func(dst []float64) { k.before(dst, c, x) }, func(i int) float64 { return o.row(c, x[i], 0) }},
			} {
				if has := map[string]bool{"one": k.one != nil, "two": k.two != nil, "scalar": k.scalar != nil, "before": k.before != nil}; !has[name] {
					continue
				}
				dst := make([]float64, len(x))
				run.kernel(dst)
				for i := range dst {
					if !sameFloat(run.row(i), dst[i]) {
						require.Fail(t, "wrong value", "%s, %s: %v and %v (or %v): want %v, got %v", o.Name, name, x[i], y[i], c, run.row(i), dst[i])
					}
				}
			}
		}
	}
}

func TestRemainderAgreesWithMod(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 100_000 {
		a, b := math.Float64frombits(rng.Uint64()), math.Float64frombits(rng.Uint64())
		switch rng.IntN(4) {
		case 0:
			a, b = float64(rng.IntN(2000)-1000)/8, float64(rng.IntN(200)-100)/8
		case 1: // quotients near integers
			b = rng.NormFloat64()
			a = math.Nextafter(b*float64(rng.IntN(1000)), [...]float64{math.Inf(1), math.Inf(-1), b}[rng.IntN(3)])
		case 2:
			a, b = float64(rng.Int64()), float64(1+rng.Int64N(1<<40))
		}
		if !sameFloat(math.Mod(a, b), remainder(a, b)) {
			require.Fail(t, "wrong remainder", "%v %% %v: want %v, got %v", a, b, math.Mod(a, b), remainder(a, b))
		}
	}
}

func TestDecay(t *testing.T) {
	for n := -1021.0; n <= 1021; n++ {
		assert.Equal(t, math.Exp2(-n), decay(n, 1), "exact after %v half lives", n)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range 10_000 {
		x := rng.Float64()*2000 - 1000
		assert.InEpsilon(t, math.Exp2(-x), decay(x, 1), 1e-15)
	}
	assert.Equal(t, 0.0, decay(5000, 1))
	assert.Equal(t, 5e-324, decay(1074, 1))
}

func TestExplain(t *testing.T) {
	in, params := typedWorld(), typedWorldParams()
	score := when(bi("and", cmp(count, ">", num("5")), truly), bi("mul", id, number), bi("coalesce", null, id))
	params.SetFloat(1, 0.5)
	e := mustExprOf(t, typedLanguage, score)
	assert.Equal(t, Term{Op: "if", Value: 0.5, Terms: []Term{
		{Op: "and", Value: true, Terms: []Term{
			{Op: "cmp", Name: ">", Value: true, Terms: []Term{{Op: "key_ref", Name: "k5001", Key: 5001, Value: int64(7)}, {Op: "const_number", Value: int64(5)}}},
			{Op: "cmp", Name: "!=", Value: true, Terms: []Term{{Op: "key_ref", Name: "k5101", Key: 5101, Value: true}, {Op: "const_number", Value: int64(0)}}},
		}},
		{Op: "mul", Value: 0.5, Terms: []Term{{Op: "key_ref", Name: "id", Key: 1, Value: int64(1)}, {Op: "param_ref", Name: "p1", Param: 1, Value: 0.5}}},
	}}, e.Explain(in, 0, params))
	assert.Equal(t, Term{Op: "if", Value: int64(2), Terms: []Term{
		{Op: "and", Value: false, Terms: []Term{
			{Op: "cmp", Name: ">", Value: false, Terms: []Term{{Op: "key_ref", Name: "k5001", Key: 5001}, {Op: "const_number", Value: int64(5)}}},
		}},
		{Op: "coalesce", Value: int64(2), Terms: []Term{{Op: "const_null"}, {Op: "key_ref", Name: "id", Key: 1, Value: int64(2)}}},
	}}, e.Explain(in, 1, params))

	p := mustPredOf(t, typedLanguage, bi("and", truly, bi("and", un("not", member(str("b"), tags)), cmp(text, "==", str("DE")))))
	why := p.Explain(in, 0, params)
	assert.Equal(t, false, why.Value)
	assert.Equal(t, &Term{Op: "not", Value: false, Terms: []Term{{Op: "member", Value: true, Terms: []Term{
		{Op: "const_string", Value: "b"}, {Op: "key_ref", Name: "k5201", Key: 5201, Value: []string{"a", "b"}},
	}}}}, why.Culprit())
	why = p.Explain(in, 3, params)
	assert.Equal(t, "cmp", why.Culprit().Op)
	assert.Equal(t, "", why.Culprit().Terms[0].Value)

	failing := mustPred(t, bi("or", no, regexParam("9")))
	assert.Equal(t, Term{Op: "or", Fault: ErrNullPattern.Error(), Terms: []Term{
		{Op: "const_bool", Value: false},
		{Op: "regex", Key: 3001, Fault: ErrNullPattern.Error(), Terms: []Term{{Op: "key_ref", Key: 3001, Value: "DE"}}},
	}}, failing.Explain(in, 0, params))
}

func TestKeysAndParamsOfTypedTrees(t *testing.T) {
	e := mustExprOf(t, typedLanguage, when(bi("and", member(text, tags), member(id, ints)), count, number))
	assert.Equal(t, []registry.KeyID{1, 3001, 5001, 5201}, e.Keys())
	assert.Equal(t, []registry.ParamID{1, 7}, e.Params())
}

// A pattern in the condition of an if stops an expression, as it stops a predicate.
func TestAnExpressionWithAPatternStops(t *testing.T) {
	e := mustExprOf(t, typedLanguage, when(regex("7$", ""), id, score))
	rows := benchRows(5000)
	want := columnOf(e, rows, nil)
	for n := range 6 {
		stop := countdown{n: n}
		_, err := e.Column(&stop, nil, rows, nil)
		assert.ErrorIs(t, err, rowset.ErrStopped)
		stop = countdown{n: n}
		_, err = e.Values(&stop, nil, rows, nil)
		assert.ErrorIs(t, err, rowset.ErrStopped)
	}
	assert.Equal(t, want, columnOf(e, rows, nil))
}
