package expr

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

// world has four rows, which show the effect of most rules. Columns 1002 and 3002 do not exist.
//
//	row  id       1001   3001
//	 0   1        0.5    "DE"
//	 1   2        null   null
//	 2   2^53+1   -0.0   "us"
//	 3   -5       1e308  ""
func world() rowset.RowSet {
	country := rowset.NewStringBuilder(3001, 4)
	country.Append([]byte("DE"))
	country.AppendNull()
	country.Append([]byte("us"))
	country.Append(nil)
	valid := rowset.NewBitmap(4)
	for _, row := range []int{0, 2, 3} {
		valid.Set(row)
	}
	return rowset.Dense(rowset.NewBatch([]int64{1, 2, 1<<53 + 1, -5}, &rowset.FloatColumn{Key: 1001, Values: []float64{0.5, math.NaN(), math.Copysign(0, -1), 1e308}, Valid: valid}, country.Column()))
}

// These functions make the trees of the tables below.
const (
	null   = `{"op":"const_null"}`
	id     = `{"op":"key_ref","key_id":1}`
	score  = `{"op":"key_ref","key_id":1001}`
	absent = `{"op":"key_ref","key_id":1002}`
	text   = `{"op":"key_ref","key_id":3001}`
	weight = `{"op":"param_ref","param_id":4}`
	unset  = `{"op":"param_ref","param_id":3}`
	yes    = `{"op":"const_bool","value":true}`
	no     = `{"op":"const_bool","value":false}`
	// inf and nan are only the results of arithmetic.
	inf = `{"op":"mul","a":{"op":"const_number","value":1e308},"b":{"op":"const_number","value":10}}`
	nan = `{"op":"sub","a":` + inf + `,"b":` + inf + `}`
)

func num(v string) string       { return `{"op":"const_number","value":` + v + `}` }
func un(op, x string) string    { return `{"op":"` + op + `","x":` + x + `}` }
func bi(op, a, b string) string { return `{"op":"` + op + `","a":` + a + `,"b":` + b + `}` }
func cmp(a, op, b string) string {
	return `{"op":"cmp","cmp":"` + op + `","a":` + a + `,"b":` + b + `}`
}
func in(lhs, list string) string { return `{"op":"in","lhs":` + lhs + `,"list":[` + list + `]}` }
func regex(pattern, flags string) string {
	return `{"op":"regex","key_id":3001,"pattern":{"kind":"literal","value":"` + pattern + `"},"flags":"` + flags + `"}`
}
func regexParam(param string) string {
	return `{"op":"regex","key_id":3001,"pattern":{"kind":"param","param_id":` + param + `}}`
}

func worldParams() *Params {
	p := new(Params)
	p.SetFloat(4, 0.25)
	p.SetString(2, "D")
	return p
}

// usedMemory lends slices of any length that are full of other values.
func usedMemory() *rowset.Memory {
	m := rowset.NewMemory(rowset.NewPool(rowset.PoolConfig{LengthMin: 1, Poison: true}))
	m.SetLending(true)
	for length := 1; length <= 4096; length *= 2 {
		m.Floats(length)
		m.Rows(length)
	}
	m.Release(nil)
	return m
}

// columnOf evaluates a column without a stop.
func columnOf(e *Expr, in rowset.RowSet, params *Params) Column {
	c, err := e.Column(nil, nil, in, params)
	if err != nil {
		panic(err)
	}
	return c
}

func TestExprRules(t *testing.T) {
	isNull := math.Float64frombits(0x7ff8_0000_dead_beef)
	negZero := math.Copysign(0, -1)
	for _, c := range []struct {
		name, tree string
		want       [4]float64
	}{
		{"a number", num("0.2"), [4]float64{0.2, 0.2, 0.2, 0.2}},
		{"a large integer is rounded", num("9007199254740993"), [4]float64{1 << 53, 1 << 53, 1 << 53, 1 << 53}},
		{"null", null, [4]float64{isNull, isNull, isNull, isNull}},
		{"ids are rounded", id, [4]float64{1, 2, 1 << 53, -5}},
		{"a column", score, [4]float64{0.5, isNull, negZero, 1e308}},
		{"an absent column is null", absent, [4]float64{isNull, isNull, isNull, isNull}},
		{"a string column is null", text, [4]float64{isNull, isNull, isNull, isNull}},
		{"an unknown key is null", `{"op":"key_ref","key_id":77}`, [4]float64{isNull, isNull, isNull, isNull}},
		{"a parameter", weight, [4]float64{0.25, 0.25, 0.25, 0.25}},
		{"an unset parameter is null", unset, [4]float64{isNull, isNull, isNull, isNull}},
		{"a string parameter is null", `{"op":"param_ref","param_id":2}`, [4]float64{isNull, isNull, isNull, isNull}},
		{"null in, null out", bi("add", score, id), [4]float64{1.5, isNull, 1 << 53, 1e308}},
		{"null on the right", bi("mul", id, null), [4]float64{isNull, isNull, isNull, isNull}},
		{"sub, scalar on the left", bi("sub", num("1"), id), [4]float64{0, -1, 1 - 1<<53, 6}},
		{"sub, scalar on the right", bi("sub", id, num("1")), [4]float64{0, 1, 1<<53 - 1, -6}},
		{"neg keeps null, flips zero", un("neg", score), [4]float64{-0.5, isNull, 0, -1e308}},
		{"overflow on the way", bi("mul", bi("mul", score, num("10")), num("0")), [4]float64{0, isNull, negZero, math.NaN()}},
		{"overflow as result", bi("mul", score, num("10")), [4]float64{5, isNull, negZero, math.Inf(1)}},
		{"coalesce", bi("coalesce", score, id), [4]float64{0.5, 2, negZero, 1e308}},
		{"coalesce of two nulls", bi("coalesce", score, absent), [4]float64{0.5, isNull, negZero, 1e308}},
		{"zero is not null", bi("coalesce", num("0"), id), [4]float64{0, 0, 0, 0}},
		{"not a number is not null", bi("coalesce", nan, id), [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
		{"coalesce of an unset parameter", bi("mul", id, bi("coalesce", unset, num("0.2"))), [4]float64{0.2, 0.4, 0.2 * (1 << 53), -1}},
		{"coalesce of a set parameter", bi("mul", id, bi("coalesce", weight, num("0.2"))), [4]float64{0.25, 0.5, 1 << 51, -1.25}},
		{"rounded after each operation", bi("add", bi("mul", num("1e308"), num("10")), un("neg", bi("mul", num("1e308"), num("10")))),
			[4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, params := world(), worldParams()
			col := columnOf(mustExpr(t, c.tree), rows, params)
			for row, want := range c.want {
				if math.Float64bits(want) == math.Float64bits(isNull) {
					assert.False(t, col.Valid.Get(row), "row %d is null", row)
				} else if assert.True(t, col.Valid.Get(row), "row %d is not null", row) {
					assert.True(t, sameFloat(want, col.Values[row]), "row %d: want %v, have %v", row, want, col.Values[row])
				}
			}
			checkExpr(t, mustExpr(t, c.tree), parseJSON(t, c.tree), rows, params)
		})
	}
}

func TestPredRules(t *testing.T) {
	// want lists the rows kept, or names the error.
	for _, c := range []struct{ name, tree, want string }{
		{"true", yes, "0123"},
		{"false", no, ""},
		{"and", bi("and", cmp(id, ">", num("0")), cmp(id, "<", num("2"))), "0"},
		{"or", bi("or", cmp(id, "<", num("0")), cmp(id, "==", num("2"))), "13"},
		{"not", un("not", cmp(id, ">", num("1"))), "03"},

		{"== null is is_null", cmp(score, "==", null), "1"},
		{"null == is is_null", cmp(null, "==", score), "1"},
		{"!= null is not_null", cmp(score, "!=", null), "023"},
		{"null != is not_null", cmp(null, "!=", score), "023"},
		{"null == null", cmp(null, "==", null), "0123"},
		{"null != null", cmp(null, "!=", null), ""},
		{"null < null", cmp(null, "<", null), ""},
		{"null <= null", cmp(null, "<=", null), ""},
		{"orderings with null are false", bi("or", cmp(score, ">=", null), cmp(null, ">", score)), ""},
		{"not of an ordering with null", un("not", cmp(score, ">=", null)), "0123"},
		{"an expression that comes out null is not a null literal", cmp(un("neg", null), "==", un("neg", null)), ""},
		{"nor is it unequal", cmp(un("neg", null), "!=", num("1")), ""},
		{"it equals a null literal", cmp(un("neg", null), "==", null), "0123"},
		{"an unset parameter equals nothing", cmp(unset, "==", unset), ""},
		{"an absent column equals nothing", cmp(absent, "==", absent), ""},
		{"an absent column equals a null literal", cmp(absent, "==", null), "0123"},
		{"coalesced from null, still no literal", cmp(bi("coalesce", null, null), "==", score), ""},
		{"null is not unequal", cmp(score, "!=", num("0.5")), "23"},
		{"not of a comparison is true for null", un("not", cmp(score, ">", num("5"))), "012"},
		{"negative zero equals zero", cmp(score, "==", num("0")), "2"},
		{"scalar on the left", cmp(num("1"), "<", id), "12"},
		{"scalar on the left, or equal", cmp(num("1"), "<=", id), "012"},
		{"two columns", cmp(score, "<", id), "02"},
		{"two columns, greater", cmp(id, ">=", score), "02"},
		{"two scalars", cmp(weight, "==", num("0.25")), "0123"},
		{"inf equals inf", cmp(bi("mul", score, num("1e10")), "==", inf), "3"},
		{"nan equals nothing", cmp(nan, "==", nan), ""},
		{"nan is unequal to all", cmp(nan, "!=", nan), "0123"},
		{"nan is unequal to a row's value", cmp(score, "!=", nan), "023"},
		{"nan is not less", bi("or", cmp(score, "<", nan), cmp(score, ">=", nan)), ""},
		{"not of a comparison with nan", un("not", cmp(id, "<", nan)), "0123"},

		{"is_null", un("is_null", score), "1"},
		{"not_null", un("not_null", score), "023"},
		{"an id is never null", un("is_null", id), ""},
		{"nan is not null", un("is_null", nan), ""},
		{"a string column reads as null", un("is_null", text), "0123"},
		{"computed null", un("is_null", bi("add", score, id)), "1"},

		{"in numbers", in(id, "2,-5,7"), "13"},
		{"in, negative zero", in(score, "0"), "2"},
		{"in, null is not a member", in(score, "0.5,1e308,2"), "03"},
		{"not in is true for null", un("not", in(score, "0.5")), "123"},
		{"in, many numbers", in(score, strings.Repeat("7,", 40)+"-0,0.5"), "02"},
		{"in, a scalar", in(weight, "0.25"), "0123"},
		{"in, nan", in(nan, "1,2"), ""},
		{"in, empty list", in(text, ""), ""},
		{"in, empty list, any lhs", in(un("neg", id), ""), ""},
		{"in strings", in(text, `"us","FR",""`), "23"},
		{"in strings, case counts", in(text, `"US","de"`), ""},
		{"in strings, a float key", in(score, `"DE"`), ""},
		{"in strings, an absent key", in(absent, `"DE"`), ""},
		{"in strings, the id", in(id, `"1"`), ""},
		{"not in strings is true for null", un("not", in(text, `"DE"`)), "123"},
		{"in strings, no key", in(un("neg", id), `"DE"`), "a list of strings needs a key_ref as lhs"},
		{
			"in strings, folds to a key but is none", in(bi("coalesce", null, text), `"DE"`),
			"a list of strings needs a key_ref as lhs",
		},

		{"regex", regex("D", ""), "0"},
		{"regex is partial", regex("^.$|s", ""), "2"},
		{"regex, empty pattern", regex("", ""), "023"},
		{"regex, empty string", regex("^$", ""), "3"},
		{"regex, case", regex("US", ""), ""},
		{"regex, ignoring case", regex("US", "i"), "2"},
		{"not regex is true for null", un("not", regex("D", "")), "123"},
		{"regex parameter", regexParam("2"), "0"},
		{"regex parameter unset", regexParam("7"), "pattern parameter is null, unset or no string"},
		{"regex parameter of another type", regexParam("4"), "pattern parameter is null, unset or no string"},
		{"bad regex", un("not", regex("(", "")), "x: bad pattern: missing closing ): \"(\""},
		{"bad regex on an absent column", strings.Replace(regex("(", ""), "3001", "3002", 1), ""},
		{"bad regex on a float column", strings.Replace(regex("(", ""), "3001", "1001", 1), ""},

		{"an error that and does not reach", bi("and", un("is_null", score), regex("(", "")), ""},
		{"an error that or does not reach", bi("or", un("not_null", score), regex("(", "")), "023"},
		{"an error that not and does not reach", un("not", bi("and", un("is_null", score), regex("(", ""))), "0123"},
		{
			"an error reached by one row", bi("and", cmp(id, "==", num("1")), regex("(", "")),
			"b: bad pattern: missing closing ): \"(\"",
		},
		{"the first row's error", bi("or", bi("and", cmp(id, "==", num("2")), in(null, `"a"`)), regex("(", "")),
			"b: bad pattern: missing closing ): \"(\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, params := world(), worldParams()
			p := mustPred(t, c.tree)
			out, err := p.Filter(nil, nil, rows, params)
			if err != nil {
				assert.EqualError(t, err, c.want)
				assert.ErrorAs(t, err, new(*EvalError))
			} else {
				got := ""
				for i := range out.N {
					got += string(rune('0' + out.Row(i)))
				}
				assert.Equal(t, c.want, got)
			}
			checkPred(t, p, parseJSON(t, c.tree), rows, params)
		})
	}
}

func TestNoRowsNoErrors(t *testing.T) {
	for name, rows := range map[string]rowset.RowSet{
		"zero row set": {},
		"no rows":      rowset.Take(world(), 0),
		"no row kept":  {Batch: world().Batch, Rows: []int32{}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := mustPred(t, regex("(", "")).Filter(nil, nil, rows, nil)
			require.NoError(t, err)
			assert.Zero(t, out.N)
			assert.Same(t, rows.Batch, out.Batch)
			col := columnOf(mustExpr(t, bi("add", id, null)), rows, nil)
			assert.False(t, col.Null)
			assert.False(t, col.NonFinite)
			assert.Zero(t, col.Valid.Count(len(col.Values)))
		})
	}
}

func TestInactiveRowsAreNotLookedAt(t *testing.T) {
	rows := world()
	rows.Rows, rows.N = []int32{2, 0}, 2 // neither the null nor the huge value
	col := columnOf(mustExpr(t, bi("mul", score, num("10"))), rows, nil)
	assert.False(t, col.Null)
	assert.False(t, col.NonFinite)
	assert.Equal(t, []float64{5, 0, math.Copysign(0, -1), 0}, col.Values)

	rows.Rows, rows.N = []int32{1}, 1 // only the null
	_, err := mustPred(t, regex("(", "")).Filter(nil, nil, rows, nil)
	assert.NoError(t, err)
}

func TestFilterKeepsTheOrderOfTheRows(t *testing.T) {
	rows := world()
	rows.Rows, rows.N = []int32{3, 0, 2}, 3
	out, err := mustPred(t, cmp(score, "!=", num("0"))).Filter(nil, nil, rows, nil)
	require.NoError(t, err)
	assert.Equal(t, []int32{3, 0}, out.Rows)
}

func TestFilterThatKeepsAllCopiesNothing(t *testing.T) {
	rows := world()
	out, err := mustPred(t, yes).Filter(nil, nil, rows, nil)
	require.NoError(t, err)
	assert.Equal(t, rows, out)
	rows.Rows, rows.N = []int32{3, 1}, 2
	out, err = mustPred(t, yes).Filter(nil, nil, rows, nil)
	require.NoError(t, err)
	assert.Same(t, &rows.Rows[0], &out.Rows[0])
}

func TestResultIsNotAViewOfTheBatch(t *testing.T) {
	rows := world()
	col := columnOf(mustExpr(t, score), rows, nil)
	assert.NotSame(t, &rows.Batch.Float(1001).Values[0], &col.Values[0])
	assert.NotSame(t, &rows.Batch.Float(1001).Valid[0], &col.Valid[0])
}

// A kernel that is written out, or made for scalars, computes the same as the row function.
func TestKernelsAgreeWithRowFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	random := func() []float64 {
		values := make([]float64, 200)
		for i := range values {
			values[i] = [...]float64{rng.NormFloat64(), float64(rng.IntN(5) - 2), math.Inf(1), math.NaN(), math.Copysign(0, -1)}[rng.IntN(5)]
		}
		return values
	}
	fromRows := make([]Operator, 0, len(operators))
	for _, o := range operators {
		o.kernel = kernel{}
		fromRows = append(fromRows, o)
	}
	fromRows = withKernels(fromRows)
	for round := range 20 * len(operators) {
		i := round % len(operators)
		o := &operators[i]
		if o.row == nil {
			continue
		}
		x, y, z, made := random(), random(), random(), make([]float64, 200)
		same := func(what string, compute func(dst []float64), row func(i int) float64) {
			compute(made)
			for i := range made {
				require.True(t, sameFloat(row(i), made[i]), "%s, %s: %v, %v, %v", o.Name, what, x[i], y[i], z[i])
			}
		}
		for what, k := range map[string]kernel{"written": o.kernel, "from rows": fromRows[i].kernel} {
			switch len(o.Operands) {
			case 1:
				same(what, func(dst []float64) { k.one(dst, x) }, func(i int) float64 { return o.row(x[i], 0, 0) })
			case 2:
				same(what, func(dst []float64) { k.two(dst, x, y) }, func(i int) float64 { return o.row(x[i], y[i], 0) })
			case 3:
				same(what, func(dst []float64) { k.three(dst, x, y, z) }, func(i int) float64 { return o.row(x[i], y[i], z[i]) })
			}
		}
		k, b, c := o.kernel, y[0], z[0]
		if k.scalar != nil {
			same("scalar", func(dst []float64) { k.scalar(dst, x, b) }, func(i int) float64 { return o.row(x[i], b, 0) })
		}
		if k.before != nil {
			same("before", func(dst []float64) { k.before(dst, b, x) }, func(i int) float64 { return o.row(b, x[i], 0) })
		}
		if k.scalars != nil {
			same("scalars", func(dst []float64) { k.scalars(dst, x, b, c) }, func(i int) float64 { return o.row(x[i], b, c) })
		}
	}
}
