package elementary

import (
	"math"
	"math/bits"
)

// angleOf returns k and a small t, so that x is k * π/128 + t but for full circles.
func angleOf(x float64) (k int, t pair) {
	if !(math.Abs(x) < 1<<19) {
		return farAngle(x)
	}
	n := math.RoundToEven(float64(x * anglesPerUnit))
	if n == 0 {
		return 0, pair{x, 0}
	}
	first := x - float64(n*angle1) // exact
	rest := sum(first, -float64(n*angle2))
	t = sum(rest.high, -float64(n*angle3))
	if math.Abs(t.high) < 0x1p-20 { // more bits are lost
		return farAngle(x)
	}
	return int(n), ordered(t.high, t.low+rest.low)
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
	switch {
	case x-x != 0:
		return math.NaN()
	case math.Abs(x) < 0x1p-27:
		return cubic(x, -1./6)
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
	return sinePair(k, t).div(sinePair(k+64, t)).value()
}

// arc returns the arc tangent of y/x, for y from 0 to x.
func arc(y, x pair) pair {
	j := math.RoundToEven(float64(y.high / x.high * 64))
	c := pair{j * (1. / 64), 0}
	t := y.add(c.mul(x).negate()).div(x.add(c.mul(y)))
	v2 := float64(t.high * t.high)
	cube := float64(float64(v2*t.high) * (float64(v2*(1./5-float64(v2*(1./7-float64(v2*(1./9)))))) - 1./3))
	if j == 0 {
		return ordered(t.high, t.low+cube)
	}
	return arcs[int(j)].add(ordered(t.high, t.low+cube))
}

// quarter returns the angle of the line from the origin to (x, y), for y and x of at least 0.
func quarter(y, x pair) pair {
	if y.high > x.high {
		return halfPi.add(arc(x, y).negate())
	}
	return arc(y, x)
}

// Atan returns the arc tangent of x, from -π/2 to π/2.
func Atan(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 0x1p-27:
		return cubic(x, -1./3)
	case a > 0x1p60:
		return math.Copysign(halfPi.value(), x)
	case x != x:
		return math.NaN()
	}
	return math.Copysign(quarter(pair{a, 0}, pair{1, 0}).value(), x)
}

// Asin returns the arc sine of x, from -π/2 to π/2.
func Asin(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a <= 1):
		return math.NaN()
	case a < 0x1p-27:
		return cubic(x, 1./6)
	}
	return math.Copysign(quarter(pair{a, 0}, otherSide(a)).value(), x)
}

// otherSide returns the square root of 1 - a².
func otherSide(a float64) pair { return sum(1, -a).mul(sum(1, a)).sqrt() }

// Acos returns the arc cosine of x, from 0 to π.
func Acos(x float64) float64 {
	a := math.Abs(x)
	if !(a <= 1) {
		return math.NaN()
	}
	angle := quarter(otherSide(a), pair{a, 0})
	if x < 0 {
		angle = pi.add(angle.negate())
	}
	return angle.value()
}

// Atan2 returns the angle, from -π to π, between the x axis and the line from the origin to (x, y).
func Atan2(y, x float64) float64 {
	a, b := math.Abs(y), math.Abs(x)
	if a != a || b != b {
		return math.NaN()
	}
	var angle pair
	switch {
	case a == 0 || math.IsInf(b, 0) && !math.IsInf(a, 0):
		// On the axis.
	case math.IsInf(a, 0) && math.IsInf(b, 0):
		angle = halfPi.times(0.5)
	case b == 0 || math.IsInf(a, 0):
		angle = halfPi
	case a < b*0x1p-35:
		if angle.high = a / b; x > 0 {
			return math.Copysign(angle.high, y)
		}
	case min(a, b) > 0x1p-300 && max(a, b) < 0x1p300:
		angle = quarter(pair{a, 0}, pair{b, 0})
	default: // No part of a product may be too small or too large.
		_, most := math.Frexp(max(a, b))
		scale := func(v float64) pair { return pair{math.Ldexp(v, -most), 0} }
		angle = quarter(scale(a), scale(b))
	}
	if math.Signbit(x) {
		angle = pi.add(angle.negate())
	}
	return math.Copysign(angle.value(), y)
}
