package elementary

import (
	"math"
	"strconv"
)

// Pow returns x to the power of y, as ** of JavaScript: 1 to the power of NaN or of an infinity is NaN.
func Pow(x, y float64) float64 {
	a, sign := math.Abs(x), 1.0
	switch {
	case y == 0:
		return 1
	case x != x || y-y != 0 || !(a > 0) || a > math.MaxFloat64:
		return powOfSpecial(x, y)
	case x < 0:
		if whole := math.Trunc(y) == y; !whole {
			return math.NaN()
		}
		if isOdd(y) {
			sign = -1
		}
	}
	if a == 10 && math.Abs(y) < 400 && math.Trunc(y) == y {
		return sign * powerOf10(int(y))
	}
	l := logOf(a)
	e := product(y, l.high)
	low := e.low + float64(y*l.low)
	if !(math.Abs(e.high) < 690) {
		if math.IsInf(e.high, 0) {
			low = 0
		}
		return sign * expAtTheEdge(e.high, low, 0)
	}
	n := float64(e.high*stepsPerUnit) + rounder
	steps := int32(math.Float64bits(n))
	n -= rounder
	r := (e.high - float64(n*stepHigh)) - float64(n*stepLow) + low
	return sign * expOf(r, int(steps))
}

// isOdd reports whether a whole number is odd.
func isOdd(y float64) bool { return math.Abs(y) < 1<<53 && int64(y)&1 != 0 }

// powOfSpecial is Pow of a zero, an infinity or a NaN, to a power that is not zero.
func powOfSpecial(x, y float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x || y != y || a == 1:
		return math.NaN()
	case math.IsInf(y, 0) && a > 1 == (y > 0):
		return math.Inf(1)
	case math.IsInf(y, 0):
		return 0
	}
	value := 0.0
	if a > 1 == (y > 0) {
		value = math.Inf(1)
	}
	if math.Signbit(x) && math.Trunc(y) == y && isOdd(y) {
		value = -value
	}
	return value
}

// powerOf10 returns the double that the literal means.
func powerOf10(k int) float64 {
	var text [8]byte
	value, _ := strconv.ParseFloat(string(strconv.AppendInt(append(text[:0], '1', 'e'), int64(k), 10)), 64)
	return value // an infinity if the power is out of range
}

// Cbrt returns the cube root of x.
func Cbrt(x float64) float64 {
	a := math.Abs(x)
	if !(a > 0) || a > math.MaxFloat64 {
		return x + x
	}
	fraction, exponent := math.Frexp(a)
	third := exponent / 3
	z := math.Ldexp(fraction, exponent-3*third)
	y := Exp(Log(z) / 3)
	square := product(y, y)
	cube := square.mul(pair{y, 0})
	y += ((z - cube.high) - cube.low) / (3 * square.high)
	return math.Copysign(math.Ldexp(y, third), x)
}

// Hypot returns the square root of the sum of the squares of all numbers.
func Hypot(numbers ...float64) float64 {
	greatest := 0.0
	for _, x := range numbers {
		if math.IsInf(x, 0) {
			return math.Inf(1)
		}
		greatest = max(greatest, math.Abs(x)) // a NaN stays
	}
	if !(greatest > 0) {
		return greatest
	}
	_, exponent := math.Frexp(greatest)
	total := pair{}
	for _, x := range numbers {
		x = math.Ldexp(x, -exponent)
		total = total.add(product(x, x))
	}
	root := total.sqrt()
	_, size := math.Frexp(root.high)
	root = root.times(power2(1 - size))
	return scaled(root.high, root.low, exponent+size-1)
}
