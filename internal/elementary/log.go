package elementary

import "math"

// firstPart is the double with which the first part of logs begins.
const firstPart = 0x3fe6000000000000 // 11/16

// part returns the part of logs for a normal number x, and z and k for which x is z * 2^k.
func part(x float64) (i int, z, k float64) {
	bits := math.Float64bits(x)
	above := bits - firstPart
	return int(above>>44) & 255, math.Float64frombits(bits - above&(0xfff<<52)), float64(int64(above) >> 52)
}

// reduced returns z * inverse - 1, exactly: high has so few bits that its product is exact, and the sum has 53 bits.
func reduced(z, inverse float64) float64 {
	high := math.Float64frombits(math.Float64bits(z) &^ (1<<27 - 1))
	return (float64(high*inverse) - 1) + float64((z-high)*inverse)
}

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	scale := 0.0
	if bits := math.Float64bits(x); bits-1<<52 >= 0x7fe<<52 { // not normal, or negative
		if !(x > 0) || x > math.MaxFloat64 {
			return logOfNone(x)
		}
		x, scale = x*0x1p52, -52
	}
	i, z, k := part(x)
	k += scale
	t := &logs[i]
	r := reduced(z, t.inverse)
	w := float64(k*ln2High) + t.high
	s := w + r
	r2 := float64(r * r)
	low := (float64(k*ln2Low) + t.low) + ((w - s) + r)
	return s + (low + float64(r2*((float64(r*(1./3))-0.5)+float64(r2*((float64(r*(1./5))-1./4)+float64(r2*((float64(r*(1./7))-1./6)-float64(r2*(1./8)))))))))
}

// logOfNone returns the logarithm of a number that is not above zero, or not finite.
func logOfNone(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x > 0:
		return x
	}
	return math.NaN()
}

// logOf returns the logarithm of a finite double above zero.
func logOf(x float64) pair {
	scale := 0.0
	if x < 0x1p-1022 {
		x, scale = x*0x1p52, -52
	}
	i, z, k := part(x)
	return logSum(i, k+scale, pair{reduced(z, logs[i].inverse), 0})
}

// logPair returns the logarithm of a pair whose first number is from 2^-60 to 2^1000.
func logPair(x pair) pair {
	i, z, k := part(x.high)
	t := logs[i].inverse
	return logSum(i, k, ordered(reduced(z, t), float64(float64(x.low*power2(-int(k)))*t)))
}

// logSum returns ln 2 * k + ln(1 + r), less the logarithm of the inverse of part i.
func logSum(i int, k float64, r pair) pair {
	t, v := &logs[i], r.high
	w := ordered(float64(k*ln2High)+t.high, v)
	square := product(v, v).times(-0.5)
	s := ordered(w.high, square.high)
	low := ((float64(k*ln2Low) + t.low) + (r.low + w.low)) + ((s.low + square.low) - float64(v*r.low))
	v2 := float64(v * v)
	low += float64(float64(v2*v) * ((1./3 - float64(v*(1./4))) + float64(v2*((1./5-float64(v*(1./6)))+float64(v2*(1./7-float64(v*(1./8))))))))
	return ordered(s.high, low)
}

// Log2 returns the logarithm of x to base 2.
func Log2(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return logOfNone(x)
	}
	return logOf(x).multiplied(log2e).value()
}

// Log10 returns the logarithm of x to base 10.
func Log10(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return logOfNone(x)
	}
	return logOf(x).multiplied(log10e).value()
}

// Log1p returns the natural logarithm of 1 + x.
func Log1p(x float64) float64 {
	switch {
	case math.Abs(x) < 0x1p-30:
		return x - float64(float64(x*x)*0.5)
	case !(x > -1) || x > math.MaxFloat64:
		return logOfNone(x + 1)
	case x > 0x1p60:
		return Log(x)
	}
	return logPair(sum(x, 1)).value()
}

// log1pPair returns the logarithm of 1 + x.
func log1pPair(x pair) pair { return logPair(pair{1, 0}.add(x)) }

// Asinh returns the inverse hyperbolic sine of x.
func Asinh(x float64) float64 {
	a := math.Abs(x)
	if a < 0x1p-27 {
		return cubic(x, -1./6)
	}
	if !(a < 0x1p500) {
		return math.Copysign(logOfLarge(a), x)
	}
	square := product(a, a)
	root := square.add(pair{1, 0}).sqrt()
	return math.Copysign(log1pPair(pair{a, 0}.add(square.div(root.add(pair{1, 0})))).value(), x)
}

// logOfLarge returns the logarithm of 2a.
func logOfLarge(a float64) float64 {
	if !(a <= math.MaxFloat64) {
		return a
	}
	return logOf(a).add(ln2Pair).value()
}

// Acosh returns the inverse hyperbolic cosine of x.
func Acosh(x float64) float64 {
	if !(x >= 1) {
		return math.NaN()
	}
	if !(x < 0x1p500) {
		return logOfLarge(x)
	}
	above := sum(x, -1)
	return log1pPair(above.add(above.mul(above.add(pair{2, 0})).sqrt())).value()
}

// Atanh returns the inverse hyperbolic tangent of x.
func Atanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 0x1p-27:
		return cubic(x, 1./3)
	case a == 1:
		return math.Copysign(math.Inf(1), x)
	case !(a < 1):
		return math.NaN()
	}
	return math.Copysign(log1pPair(pair{2 * a, 0}.div(sum(1, -a))).value()*0.5, x)
}
