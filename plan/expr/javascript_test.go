package expr

import (
	"math"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// TestMathIsJavaScripts compares the functions of Math with a JavaScript engine, on numbers at
// the edges of doubles. The language does not define the last bits of transcendental functions.
// These may differ by a few units in the last place.
func TestMathIsJavaScripts(t *testing.T) {
	exact := map[string]bool{"Math.abs": true, "Math.floor": true, "Math.ceil": true, "Math.round": true, "Math.trunc": true,
		"Math.sign": true, "Math.sqrt": true, "Math.min": true, "Math.max": true}
	values := []float64{0, math.Copysign(0, -1), 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999999999999994, -0.49999999999999994, 0.2, -0.2, 1, -1, 3,
		1e-9, -1e-9, 1 << 52, 1<<52 + 1, 1<<53 - 1, -(1<<52 + 1), 1e308, -1e308, math.SmallestNonzeroFloat64, 709.9, -745.2,
		math.Inf(1), math.Inf(-1), math.NaN()}
	vm := goja.New()
	seen := 0
	for _, o := range Operators() {
		if !strings.HasPrefix(o.Function, "Math.") {
			continue
		}
		seen++
		value, err := vm.RunString(o.Function)
		require.NoError(t, err, o.Function)
		js, ok := goja.AssertFunction(value)
		require.True(t, ok, o.Function)
		for _, a := range values {
			for _, b := range values {
				answer, err := js(goja.Undefined(), vm.ToValue(a), vm.ToValue(b))
				require.NoError(t, err)
				want, got := answer.ToFloat(), o.row(a, b, 0)
				same := math.Float64bits(want) == math.Float64bits(got) || math.IsNaN(want) && math.IsNaN(got)
				if !exact[o.Function] {
					same = same || math.Abs(want-got) <= math.Abs(want)*0x1p-50
				}
				assert.True(t, same, "%s(%v, %v): want %v, got %v", o.Function, a, b, want, got)
			}
		}
	}
	assert.GreaterOrEqual(t, seen, 20)
}

// TestStringsAreJavaScripts compares the operators of strings with a JavaScript engine.
func TestStringsAreJavaScripts(t *testing.T) {
	vm := goja.New()
	values := []string{`""`, `"a"`, `"Straße ÄÖ"`, `"İstanbul"`, `"ΑΣ"`, `"ΑΣ ΣΑΣ."`, `"😀 OK"`, `"ǅ"`, `0`, `-0`, `0.1`, `-7`, `1e21`, `1e-7`, `1.5e-9`, `123456789012345680000`,
		`-2.5e+300`, `5e-324`, `0.000001`, `100`, `1e15`}
	value := func(js string) string {
		if js[0] == '"' {
			return `{"op":"const_string","value":` + js + `}`
		}
		return `{"op":"const_number","value":` + js + `}`
	}
	one := rowset.Dense(rowset.NewBatch([]int64{1}))
	check := func(js, tree string) {
		want, err := vm.RunString(js)
		require.NoError(t, err, js)
		e := mustExprOf(t, typedLanguage, tree)
		if e.Type() == Number {
			got, ok := e.Value(nil)
			require.True(t, ok)
			assert.Equal(t, want.ToFloat(), got, js)
			return
		}
		got, err := e.ColumnOf(nil, nil, one, nil, &registry.Key{ID: 2, Type: registry.String})
		require.NoError(t, err)
		assert.Equal(t, want.String(), got.Any(0), js)
	}
	for _, a := range values {
		for _, b := range values {
			check("`${"+a+"}${"+b+"}`", bi("concat", value(a), value(b)))
		}
		if a[0] == '"' {
			check(a+".length", un("length", value(a)))
			check(a+".toLowerCase()", un("lower", value(a)))
		}
	}
}

// TestStringsThatAreTooLong: a string of more than TextMax bytes is null, and so is all that is
// made of it.
func TestStringsThatAreTooLong(t *testing.T) {
	tree := str(strings.Repeat("x", TextMax/2))
	tree = bi("concat", tree, tree)
	one := rowset.Dense(rowset.NewBatch([]int64{1}))
	key := &registry.Key{ID: 2, Type: registry.String}
	for _, c := range []struct {
		tree string
		null bool
	}{{tree, false}, {bi("concat", tree, str("y")), true}, {bi("concat", tree, id), true}, {un("lower", bi("concat", id, tree)), true}} {
		got, err := mustExprOf(t, typedLanguage, c.tree).ColumnOf(nil, nil, one, nil, key)
		require.NoError(t, err)
		assert.Equal(t, c.null, got.Null)
	}
}
