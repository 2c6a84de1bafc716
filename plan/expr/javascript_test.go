package expr

import (
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/elementarytest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// TestMath compares the functions of Math that expressions have with arithmetic of 200 bits.
func TestMath(t *testing.T) {
	golden := map[string]elementarytest.Function{}
	for _, f := range elementarytest.Functions(t) {
		golden["Math."+f.Name] = f
	}
	seen := 0
	for _, o := range Operators() {
		if !strings.HasPrefix(o.Function, "Math.") {
			continue
		}
		seen++
		f, ok := golden[o.Function]
		require.True(t, ok, o.Function)
		for i := range f.Nearest {
			args := append(f.Case(i), 0)
			off := f.Error(i, o.row(args[0], args[1], 0))
			assert.Less(t, off, 0.55, "%s: row", f.String(i))
			kernel := []float64{0}
			if len(o.Operands) == 1 {
				o.kernel.one(kernel, args[:1])
			} else if o.kernel.two(kernel, args[:1], args[1:2]); o.kernel.scalar != nil {
				assert.Equal(t, f.Error(i, kernel[0]), off, "%s: the kernel of two columns", f.String(i))
				o.kernel.scalar(kernel, args[:1], args[1])
			}
			assert.Equal(t, f.Error(i, kernel[0]), off, "%s: the kernel", f.String(i))
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
