package compiler

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/elementarytest"
)

// TestMath compares Math of plan code with arithmetic of 200 bits.
func TestMath(t *testing.T) {
	h := &host{vm: goja.New()}
	object := h.vm.GlobalObject().Get("Math").ToObject(h.vm)
	require.NoError(t, h.installMath(object))
	for _, f := range elementarytest.Functions(t) {
		compute, ok := goja.AssertFunction(object.Get(f.Name))
		require.True(t, ok, f.Name)
		for i := range f.Nearest {
			var args []goja.Value
			for _, x := range f.Case(i) {
				args = append(args, h.vm.ToValue(x))
			}
			got, err := compute(object, args...)
			require.NoError(t, err)
			assert.Less(t, f.Error(i, got.ToFloat()), 0.55, "%s is %v, not %v", f.String(i), got, f.Nearest[i])
		}
	}
}

// TestMathInPlans compiles constants that plans write with Math and **.
func TestMathInPlans(t *testing.T) {
	for code, want := range map[string]string{
		"Math.exp(1.5)": "4.4816890703380645", "Math.exp(709.5)": "1.3549863193146328e+308", "1 / (1 + Math.exp(709.5))": "7.38014831401258e-309",
		"Math.log(5e-324)": "-744.4400719213812", "5e-324 ** -0.49999999999999994": "4.4989137945430106e+161",
		"Math.atan2(-4.8e-298, -1.6e35)": "-3.141592653589793", "Math.trunc(Math.log10(0.0001))": "-4", "Math.floor(Math.log10(1e15))": "15",
		"10 ** -30": "1e-30", "Math.pow(10, 100)": "1e+100", "10 ** -5": "0.00001", "Math.cbrt(343)": "7", "Math.log2(2 ** -1060)": "-1060",
		"(() => { let x = 10; x **= -30; return x })()": "1e-30", "({ valueOf: () => 10 }) ** '-30'": "1e-30", "String(2n ** 70n)": `"1180591620717411303424"`,
		"(() => { try { return 2n ** 2 } catch (e) { return e instanceof TypeError } })()": "true", "Math.hypot(3, '4', { valueOf: () => 12 })": "13",
		"[Math.hypot(), Math.exp(), Math.pow(2), 1 ** NaN, (-8) ** (1 / 3)]": "[0,null,null,null,null]", "undefined ** 0": "1", "null ** 2": "0",
		"[1, 2, 3].map(Math.cbrt)": "[1,1.2599210498948732,1.4422495703074083]",
	} {
		a := compileText(t, fmt.Sprintf(`// @ts-nocheck
import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "p", build: (ctx) => ctx.fixed_source({ trace: JSON.stringify(%s) }) });`, code))
		if !assert.Empty(t, a.Errors, code) {
			continue
		}
		var got struct {
			Nodes []struct {
				Params struct{ Trace string } `json:"params"`
			} `json:"nodes"`
		}
		require.NoError(t, json.Unmarshal(a.Artifact, &got))
		assert.Equal(t, want, got.Nodes[0].Params.Trace, code)
	}
}

// constantsOfMath is the digest of what TestArtifactsWithMath compiles.
const constantsOfMath = "924e1733ae6c6d99700f90b8c31200519df41fc2c5e94ac3b32987f037e8df27"

// TestArtifactsWithMath compiles a plan with many constants that Math and ** compute. The artifact has the same bytes on every
// processor: .ci/long math runs this test on others.
func TestArtifactsWithMath(t *testing.T) {
	number := func(x float64) string {
		text := strconv.FormatFloat(x, 'g', -1, 64)
		return "(" + strings.NewReplacer("+Inf", "Infinity", "-Inf", "-Infinity").Replace(text) + ")"
	}
	var list []string
	for _, f := range elementarytest.Functions(t) {
		for i := 0; i < len(f.Nearest); i += 10 {
			if math.IsNaN(f.Nearest[i]) || math.IsInf(f.Nearest[i], 0) {
				continue
			}
			var args []string
			for _, x := range f.Case(i) {
				args = append(args, number(x))
			}
			list = append(list, "Math."+f.Name+"("+strings.Join(args, ", ")+")")
			if f.Name == "pow" {
				list = append(list, strings.Join(args, " ** "))
			}
		}
	}
	require.Greater(t, len(list), 600)
	tree := compact(t, predicates(t, []string{"Key.score.in([" + strings.Join(list, ", ") + "])"}))
	assert.Equal(t, constantsOfMath, fmt.Sprintf("%x", sha256.Sum256([]byte(tree))), "constants have changed, or they differ on this processor")
}
