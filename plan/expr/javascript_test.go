package expr

import (
	"math"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMathIsJavaScripts compares the functions of Math with a JavaScript engine, on numbers at the edges of doubles. The last bits of
// transcendental functions are not defined by the language, so these may differ by a few units in the last place.
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
