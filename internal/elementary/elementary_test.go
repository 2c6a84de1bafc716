package elementary

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/internal/testing/elementarytest"
)

// bitsOfAll is the digest of the results of the short list of arguments.
const bitsOfAll = "228bb1aeed51e4a6373996e19ca235703204c8e5307876b9b6aff699c4342845"

// errorMax is what the package promises, in units in the last place.
const errorMax = 0.55

var functions = map[string]func(args []float64) float64{
	"acos": one(Acos), "acosh": one(Acosh), "asin": one(Asin), "asinh": one(Asinh), "atan": one(Atan), "atanh": one(Atanh),
	"cbrt": one(Cbrt), "cos": one(Cos), "cosh": one(Cosh), "exp": one(Exp), "expm1": one(Expm1), "log": one(Log), "log10": one(Log10),
	"log1p": one(Log1p), "log2": one(Log2), "sin": one(Sin), "sinh": one(Sinh), "tan": one(Tan), "tanh": one(Tanh),
	"atan2": func(args []float64) float64 { return Atan2(args[0], args[1]) },
	"hypot": func(args []float64) float64 { return Hypot(args...) },
	"pow":   func(args []float64) float64 { return Pow(args[0], args[1]) },
}

func one(f func(float64) float64) func([]float64) float64 {
	return func(args []float64) float64 { return f(args[0]) }
}

// TestErrors compares each function with arithmetic of 200 bits. The sum of all bits is the same on every processor.
func TestErrors(t *testing.T) {
	seen, digest := 0, sha256.New()
	for _, f := range elementarytest.Functions(t) {
		compute := functions[f.Name]
		if compute == nil {
			continue
		}
		seen++
		worst, where, wrong, other := 0.0, 0, 0, 0
		for i := range f.Nearest {
			got := compute(f.Case(i))
			if got != got {
				got = math.NaN()
			}
			_ = binary.Write(digest, binary.LittleEndian, got)
			off := f.Error(i, got)
			if off > 0.5 {
				other++
			}
			if off > worst {
				worst, where = off, i
			}
			bound := errorMax
			if f.Exact(i) && math.Abs(f.Nearest[i]) >= 0x1p-1022 {
				bound = 0.5
			}
			if off > bound {
				if wrong++; wrong < 10 {
					t.Errorf("%s: %v is %.4g units in the last place off: the nearest is %v", f.String(i), got, off, f.Nearest[i])
				}
			}
		}
		t.Logf("error of %s: %.4f at %s; not the nearest double: %d of %d", f.Name, worst, f.String(where), other, len(f.Nearest))
	}
	assert.Equal(t, len(functions), seen)
	all := fmt.Sprintf("%x", digest.Sum(nil))
	t.Logf("the digest of all bits is %s", all)
	if !elementarytest.Long() {
		assert.Equal(t, bitsOfAll, all, "the bits of results have changed, or they differ on this processor")
	}
}

func TestPowersOfTenAreTheirLiterals(t *testing.T) {
	for k := -420; k <= 420; k++ {
		want, _ := strconv.ParseFloat(fmt.Sprintf("1e%d", k), 64)
		assert.Equal(t, want, Pow(10, float64(k)), k)
		if want >= 0x1p-1022 && want <= math.MaxFloat64 {
			assert.Equal(t, float64(k), Log10(want), k)
		}
	}
}

func TestExp2(t *testing.T) {
	for k := -1080; k <= 1030; k++ {
		assert.Equal(t, math.Ldexp(1, k), Exp2(float64(k)), k)
	}
	for _, f := range elementarytest.Functions(t) {
		if f.Name == "pow" {
			for i, x := range f.Args[0] {
				if y := f.Args[1][i]; x == 2 {
					assert.LessOrEqual(t, f.Error(i, Exp2(y)), errorMax, "2 ** %v", y)
				}
			}
		}
	}
}

func TestHypotOfMany(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		numbers []float64
		want    float64
	}{
		{nil, 0}, {[]float64{-3}, 3}, {[]float64{math.Copysign(0, -1)}, 0}, {[]float64{1, 2, 2}, 3}, {[]float64{2, 3, 6, 0}, 7},
		{[]float64{nan, -inf, 1}, inf}, {[]float64{1, nan}, nan}, {[]float64{1e200, 2e200, 2e200}, 3e200}, {[]float64{5e-324, 0, 0}, 5e-324},
		{[]float64{3 * 5e-324, 4 * 5e-324}, 5 * 5e-324}, {[]float64{1.7e308, 1.7e308}, inf},
	} {
		got := Hypot(c.numbers...)
		assert.True(t, got == c.want || got != got && c.want != c.want, "hypot%v is %v, not %v", c.numbers, got, c.want)
	}
}

func Benchmark(b *testing.B) {
	for _, name := range []string{"exp", "expm1", "log", "pow", "log10", "sin", "cos", "tanh", "atan2", "asin", "cbrt"} {
		f := functions[name]
		old := map[string]func(a []float64) float64{"exp": one(math.Exp), "log": one(math.Log), "log10": one(math.Log10), "sin": one(math.Sin),
			"expm1": one(math.Expm1), "cos": one(math.Cos), "tanh": one(math.Tanh), "asin": one(math.Asin), "cbrt": one(math.Cbrt),
			"pow":   func(a []float64) float64 { return math.Pow(a[0], a[1]) },
			"atan2": func(a []float64) float64 { return math.Atan2(a[0], a[1]) }}[name]
		args := make([][]float64, 1000)
		for i := range args {
			args[i] = []float64{(float64(i) + 0.5) / 1000, float64(i)/200 + 0.3}
		}
		for what, f := range map[string]func(a []float64) float64{"here": f, "go": old} {
			b.Run(name+"/"+what, func(b *testing.B) {
				sum := 0.0
				for b.Loop() {
					for _, a := range args {
						sum += f(a)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/call")
				_ = sum
			})
		}
	}
}
