package expr

import (
	"math"
	"time"

	"github.com/rankd/rankd/internal/elementary"
)

// The kernels of this file belong to operators of typed expressions. They follow the rules of kernels.go.
//
// exp, log, pow and decay take much longer than a multiplication: each calls a function for each row. mod divides,
// truncates and corrects. if is two operations, since its condition is a test.

func divVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v / y[i]
	}
}

func divByScalar(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = v / c
	}
}

func divScalar(dst []float64, c float64, y []float64) {
	dst = dst[:len(y)]
	for i, v := range y {
		dst[i] = c / v
	}
}

// remainder is the % of JavaScript, and math.Mod, but faster for most operands. A quotient below 2^52 is off by less
// than one half. So truncating it gives the right integer or, if it was rounded up to an integer, the next one. The
// fused multiplication then subtracts exactly. If the remainder has the wrong sign, it went one step too far.
func remainder(a, b float64) float64 {
	q := math.Trunc(a / b)
	if !(math.Abs(q) < 1<<52) || math.IsInf(b, 0) {
		return math.Mod(a, b)
	}
	r := math.FMA(-q, b, a)
	if r < 0 && a > 0 || r > 0 && a < 0 {
		r += math.Copysign(b, a)
	}
	return math.Copysign(r, a)
}

func modVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = remainder(v, y[i])
	}
}

func modByScalar(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = remainder(v, c)
	}
}

func absolute(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.Abs(v)
	}
}

func floor(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.Floor(v)
	}
}

func ceil(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.Ceil(v)
	}
}

// round is Math.round of JavaScript: a half goes up, and what becomes zero keeps its sign.
func round(x float64) float64 {
	whole := math.Floor(x)
	if x-whole >= 0.5 {
		whole++
	}
	return math.Copysign(whole, x)
}

// sign is Math.sign of JavaScript: a zero keeps its sign.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func squareRoot(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.Sqrt(v)
	}
}

func exponential(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = elementary.Exp(v)
	}
}

func logarithm(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = elementary.Log(v)
	}
}

// power is the ** of JavaScript. The square is the power that plans use most.
func power(a, b float64) float64 {
	if b == 2 {
		return a * a
	}
	return elementary.Pow(a, b)
}

func powVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = power(v, y[i])
	}
}

func powByScalar(dst, x []float64, c float64) {
	if c == 2 {
		mulVector(dst, x, x)
		return
	}
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = power(v, c)
	}
}

// decay is 2^(-x/halfLife), or NaN if halfLife is not above 0.
func decay(x, halfLife float64) float64 {
	if !(halfLife > 0) {
		return math.NaN()
	}
	return elementary.Exp2(-x / halfLife)
}

func decayVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = decay(v, y[i])
	}
}

func decayScalar(dst, x []float64, halfLife float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = decay(v, halfLife)
	}
}

func minVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = min(v, y[i])
	}
}

func minScalar(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = min(v, c)
	}
}

func maxVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = max(v, y[i])
	}
}

func maxScalar(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = max(v, c)
	}
}

func clampVector(dst, x, low, high []float64) {
	dst, low, high = dst[:len(x)], low[:len(x)], high[:len(x)]
	for i, v := range x {
		dst[i] = min(max(v, low[i]), high[i])
	}
}

func clampScalar(dst, x []float64, low, high float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = min(max(v, low), high)
	}
}

// geoDistance returns the meters between two places on a sphere, from degrees. The haversine is exact for short distances.
func geoDistance(lat1, lon1, lat2, lon2 float64) float64 {
	if !(math.Abs(lat1) <= 90 && math.Abs(lat2) <= 90) {
		return math.NaN()
	}
	const radius, radians = 6371008.8, math.Pi / 180
	lat, lon := elementary.Sin((lat2-lat1)*(radians/2)), elementary.Sin((lon2-lon1)*(radians/2))
	cos := elementary.Cos(lat1*radians) * elementary.Cos(lat2*radians)
	h := float64(lat*lat) + float64(cos*float64(lon*lon)) // the conversions forbid a fused multiply-add
	return 2 * radius * elementary.Asin(math.Sqrt(min(h, 1)))
}

// at returns what an operator with a clock says of a time, in seconds since 1970, in a zone.
func (o *Operator) at(x float64, zone *time.Location) float64 {
	if !(math.Abs(x) <= 8.64e12) {
		return math.NaN()
	}
	return float64(o.clock(time.Unix(int64(math.Floor(x)), 0).In(zone)))
}
