package elementary

import (
	"math"
	"math/bits"
)

// angleOf returns k and a small t, so that x is k * π/128 + t but for full circles.
func angleOf(x float64) (k int, t pair) {
	n := float64(x*anglesPerUnit) + rounder
	k = int(int32(math.Float64bits(n)))
	n -= rounder
	t = ordered(math.FMA(-n, angle.high, x), -float64(n*angle.low)) // the first is exact
	if lost := math.Abs(t.high) < 0x1p-20 && k != 0; lost || !(math.Abs(x) < 1<<19) {
		return farAngle(x)
	}
	return k, t
}

// farAngle is angleOf of any number of at least 2^-10, by the bits of 128/π that decide: those before make full circles, and those
// behind are too small.
func farAngle(x float64) (k int, t pair) {
	b := math.Float64bits(x)
	mantissa, exponent := b&(1<<52-1)|1<<52, int(b>>52&0x7ff)-1075 // |x| is mantissa * 2^exponent
	// first is the bit of inverseAngle, counted from the left, whose product with the lowest bit of the mantissa is 2^63. The
	// integer has 64 bits, so bit i is 2^(63-i).
	first := exponent
	var w [4]uint64
	for j := range w {
		w[j] = wordAt(first + 64*j)
	}
	// The product of mantissa and w, modulo 2^256 in units of 2^-192.
	h3, _ := bits.Mul64(mantissa, w[3])
	h2, l2 := bits.Mul64(mantissa, w[2])
	h1, l1 := bits.Mul64(mantissa, w[1])
	l0 := mantissa * w[0]
	p2, c := bits.Add64(l2, h3, 0)
	p1, c := bits.Add64(l1, h2, c)
	p0 := l0 + h1 + c
	// p0 is the integer, p1 and p2 are its fraction.
	k = int(p0 & 255)
	negative := p1>>63 != 0
	if negative { // the next multiple is nearer
		k++
		p2, c = bits.Sub64(0, p2, 0)
		p1, _ = bits.Sub64(0, p1, c)
	}
	shift := bits.LeadingZeros64(p1)
	if p1 == 0 {
		shift = 64 + bits.LeadingZeros64(p2)
		p1, p2 = p2, 0
	}
	n := uint(shift % 64)
	if n > 0 {
		p1 = p1<<n | p2>>(64-n)
		p2 <<= n
	}
	// Doubles of 53 and of 64 bits: the first is cut, so the second is exact but for its last bits.
	fraction := ordered(float64(p1&^(1<<11-1)), float64(p1&(1<<11-1))+float64(float64(p2)*0x1p-64))
	t = fraction.times(power2(-64 - shift)).mul(angle)
	if negative {
		t = t.negate()
	}
	if x < 0 {
		return -k, t.negate()
	}
	return k, t
}

// wordAt returns 64 bits of inverseAngle from a bit on, which may be before the first.
func wordAt(bit int) uint64 {
	i, n := bit>>6, uint(bit&63)
	get := func(i int) uint64 {
		if i < 0 || i >= len(inverseAngle) {
			return 0
		}
		return inverseAngle[i]
	}
	return get(i)<<n | get(i+1)>>(64-n)
}

// sinePair returns the sine of k * π/128 + t.
func sinePair(k int, t pair) pair {
	s, c := &sines[k&255], &sines[(k+64)&255]
	v := t.high
	v2 := float64(v * v)
	p := product(c.high, v)
	// Of the sine of t, what is more than t, and of its cosine, what is less than 1.
	sine := float64(float64(v2*v) * (float64(v2*(1./120-float64(v2*(1./5040)))) - 1./6))
	cosine := float64(v2 * (float64(v2*(1./24-float64(v2*(1./720)))) - 0.5))
	low := s.low + float64(c.low*v) + float64(c.high*t.low) + float64(s.high*cosine) + float64(c.high*sine)
	sum := ordered(s.high, p.high)
	return ordered(sum.high, sum.low+p.low+low)
}

// Sin returns the sine of x, an angle in radians.
func Sin(x float64) float64 {
	switch a := math.Abs(x); {
	case a < 0x1p-6:
		v := float64(x * x)
		return math.Copysign(a+float64(float64(v*a)*(float64(v*(1./120-float64(v*(1./5040))))-1./6)), x)
	case x-x != 0:
		return math.NaN()
	}
	return sinePair(angleOf(x)).value()
}

// Cos returns the cosine of x, an angle in radians.
func Cos(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	k, t := angleOf(x)
	return sinePair(k+64, t).value()
}

// Tan returns the tangent of x, an angle in radians.
func Tan(x float64) float64 {
	switch {
	case x-x != 0:
		return math.NaN()
	case math.Abs(x) < 0x1p-27:
		return cubic(x, 1./3)
	}
	k, t := angleOf(x)
	return sinePair(k, t).quotient(sinePair(k+64, t)).value()
}

// turned returns the angle of a line from the origin, up to π, by that between it and the nearer axis: the y axis if the
// line is steep, else the x axis. The line may go to the left.
func turned(a pair, steep, left bool) float64 {
	i := 0
	if steep {
		i = 1
	}
	if left {
		i += 2
	}
	t := &turns[i]
	s := ordered(t.from.high, float64(t.sign*a.high))
	return s.high + (s.low + (t.from.low + float64(t.sign*a.low)))
}

var turns = [4]struct {
	from pair
	sign float64
}{{pair{}, 1}, {halfPi, -1}, {pi, -1}, {halfPi, 1}}

// Atan returns the arc tangent of x, from -π/2 to π/2.
func Atan(x float64) float64 { return Atan2(x, 1) }

// Asin returns the arc sine of x, from -π/2 to π/2.
func Asin(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a <= 1):
		return math.NaN()
	case a < 0x1p-5:
		return x + arcSineRest(x)
	case a > 0.7:
		return math.Copysign(turned(arcSine(otherSide(a), pair{a, 0}), true, false), x)
	}
	return math.Copysign(arcSine(pair{a, 0}, otherSide(a)).value(), x)
}

// otherSide returns the square root of 1 - a².
func otherSide(a float64) pair {
	p := product(a, a)
	s := ordered(1, -p.high)
	return pair{s.high, s.low - p.low}.sqrt()
}

// Acos returns the arc cosine of x, from 0 to π.
func Acos(x float64) float64 {
	a := math.Abs(x)
	if !(a <= 1) {
		return math.NaN()
	}
	if a > 0.7 {
		return turned(arcSine(otherSide(a), pair{a, 0}), false, x < 0)
	}
	return turned(arcSine(pair{a, 0}, otherSide(a)), true, x < 0)
}

// arcSine returns the angle whose sine is y and whose cosine is x, for y up to 0.72.
func arcSine(y, x pair) pair {
	if y.high < 0x1p-5 {
		return ordered(y.high, y.low+arcSineRest(y.high))
	}
	j := float64(y.high*64) + rounder
	c := float64((j - rounder) * (1. / 64))
	a := &arcSines[math.Float64bits(j)&63]
	// The sine of the angle, less that whose sine is c.
	p, q := product(y.high, a.cosine.high), product(c, x.high)
	d := p.high - q.high // exact
	rest := (p.low - q.low) + (float64(y.high*a.cosine.low) + (float64(y.low*a.cosine.high) - float64(c*x.low)))
	s := ordered(a.angle.high, d)
	return ordered(s.high, s.low+(a.angle.low+(rest+arcSineRest(d))))
}

// arcSineRest returns the arc sine of x, less x, for |x| up to 2^-5.
func arcSineRest(x float64) float64 {
	v := float64(x * x)
	return float64(float64(v*x) * ((1./6 + float64(v*(3./40))) + float64(float64(v*v)*((15./336+float64(v*(105./3456)))+float64(float64(v*v)*(945./42240))))))
}

// Atan2 returns the angle, from -π to π, between the x axis and the line from the origin to (x, y).
func Atan2(y, x float64) float64 {
	a, b := math.Abs(y), math.Abs(x)
	low, high := min(a, b), max(a, b)
	if !(low > 0x1p-300 && high < 0x1p300) {
		return atan2AtTheEdge(y, x)
	}
	// c is near to low / high, and the rest of the angle has the tangent (low - c*high) / (high + c*low).
	j := float64(low/high*64) + rounder
	c := float64((j - rounder) * (1. / 64))
	p, below := product(c, high), ordered(high, float64(c*low))
	t := pair{low - p.high, -p.low}.quotient(below) // the first is exact
	t2 := float64(t.high * t.high)
	t.low += float64(float64(t2*t.high) * (float64(t2*(1./5-float64(t2*(1./7-float64(t2*(1./9)))))) - 1./3))
	angle := &arcs[math.Float64bits(j)&127]
	s := ordered(angle.high, t.high)
	return math.Copysign(turned(ordered(s.high, s.low+(angle.low+t.low)), a > b, x < 0), y)
}

// atan2AtTheEdge is Atan2 of numbers that are not finite, zero, very small or very large.
func atan2AtTheEdge(y, x float64) float64 {
	a, b := math.Abs(y), math.Abs(x)
	var angle pair
	steep := false
	switch {
	case a != a || b != b:
		return math.NaN()
	case a == 0 || math.IsInf(b, 0) && !math.IsInf(a, 0):
		// On the axis.
	case math.IsInf(a, 0) && math.IsInf(b, 0):
		angle = halfPi.times(0.5)
	case b < a*0x1p-70: // or a is infinite
		steep = true
	case a < b*0x1p-35:
		if angle.high = a / b; x > 0 {
			return math.Copysign(angle.high, y)
		}
	default: // No part of a product may be too small or too large.
		_, most := math.Frexp(max(a, b))
		return Atan2(math.Ldexp(y, -most), math.Ldexp(x, -most))
	}
	return math.Copysign(turned(angle, steep, math.Signbit(x)), y)
}
