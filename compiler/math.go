package compiler

import (
	"github.com/dop251/goja"

	"github.com/rankd/rankd/internal/elementary"
)

// elementaries are the functions of Math that goja would take from Go's package math, whose last digits differ between
// processors. Rows are computed by the same functions.
var elementaries = map[string]func(float64) float64{
	"acos": elementary.Acos, "acosh": elementary.Acosh, "asin": elementary.Asin, "asinh": elementary.Asinh, "atan": elementary.Atan,
	"atanh": elementary.Atanh, "cbrt": elementary.Cbrt, "cos": elementary.Cos, "cosh": elementary.Cosh, "exp": elementary.Exp,
	"expm1": elementary.Expm1, "log": elementary.Log, "log10": elementary.Log10, "log1p": elementary.Log1p, "log2": elementary.Log2,
	"sin": elementary.Sin, "sinh": elementary.Sinh, "tan": elementary.Tan, "tanh": elementary.Tanh,
}

// installMath replaces functions of Math. The prelude computes ** by Math.pow.
func (h *host) installMath(object *goja.Object) error {
	for name, f := range elementaries {
		if err := object.Set(name, func(c goja.FunctionCall) goja.Value { return h.vm.ToValue(f(c.Argument(0).ToFloat())) }); err != nil {
			return err
		}
	}
	for name, f := range map[string]func(x, y float64) float64{"atan2": elementary.Atan2, "pow": elementary.Pow} {
		if err := object.Set(name, func(c goja.FunctionCall) goja.Value {
			x := c.Argument(0).ToFloat()
			return h.vm.ToValue(f(x, c.Argument(1).ToFloat()))
		}); err != nil {
			return err
		}
	}
	return object.Set("hypot", func(c goja.FunctionCall) goja.Value {
		numbers := make([]float64, len(c.Arguments))
		for i, v := range c.Arguments {
			numbers[i] = v.ToFloat()
		}
		return h.vm.ToValue(elementary.Hypot(numbers...))
	})
}
