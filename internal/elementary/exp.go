package elementary

import "math"

// rounder, added and subtracted, rounds a number below 2^51 to an integer.
const rounder = 0x1.8p52

// Exp returns e to the power of x.
func Exp(x float64) float64 {
	if !(math.Abs(x) < 690) {
		return expAtTheEdge(x, 0, 0)
	}
	n := float64(x*stepsPerUnit) + rounder
	steps := int32(math.Float64bits(n)) // the low bits of n
	n -= rounder
	r := (x - float64(n*stepHigh)) - float64(n*stepLow)
	return expOf(r, int(steps))
}

// expOf returns 2^(steps/128) * exp(r) for a small r and a result that is a normal number.
func expOf(r float64, steps int) float64 {
	t := &powers[steps&127]
	s := math.Float64frombits(math.Float64bits(t.high) + uint64(steps>>7)<<52)
	return s + float64(s*(t.low+smallExpm1(r)))
}

// smallExpm1 returns exp(r) - 1 for |r| up to ln 2 / 256.
func smallExpm1(r float64) float64 {
	r2 := float64(r * r)
	return r + float64(r2*((0.5+float64(r*(1./6)))+float64(r2*(1./24+float64(r*(1./120))))))
}

// expAtTheEdge is exp(x+low) * 2^shift for all numbers.
func expAtTheEdge(x, low float64, shift int) float64 {
	switch {
	case x != x:
		return math.NaN()
	case x > 800:
		return math.Inf(1)
	case x < -800:
		return 0
	}
	n := math.RoundToEven(float64(x * stepsPerUnit))
	r := (x - float64(n*stepHigh)) - float64(n*stepLow) + low
	t := &powers[int(n)&127]
	return scaled(t.high, float64(t.high*(t.low+smallExpm1(r))), int(n)>>7+shift)
}

// Exp2 returns 2 to the power of x.
func Exp2(x float64) float64 {
	if !(math.Abs(x) < 990) {
		switch {
		case x != x:
			return math.NaN()
		case x >= 1024:
			return math.Inf(1)
		case x < -1076:
			return 0
		}
		n := math.RoundToEven(x * 128)
		t := &powers[int(n)&127]
		return scaled(t.high, float64(t.high*(t.low+smallExpm1(float64((x-float64(n*(1./128)))*ln2)))), int(n)>>7)
	}
	n := float64(x*128) + rounder
	steps := int32(math.Float64bits(n))
	n -= rounder
	return expOf(float64((x-float64(n*(1./128)))*ln2), int(steps))
}

// expm1Pair returns exp(x) - 1 for |x| up to 708, to some 60 bits at least.
func expm1Pair(x float64) pair {
	n := float64(x*stepsPerUnit) + rounder
	steps := int32(math.Float64bits(n))
	n -= rounder
	r, rest := x-float64(n*stepHigh), float64(n*stepLow) // exact, and tiny
	t := &powers[steps&127]
	s := math.Float64frombits(math.Float64bits(t.high) + uint64(steps>>7)<<52)
	v := r - rest
	v2 := float64(v * v)
	low := float64(v2 * ((0.5 + float64(v*(1./6))) + float64(v2*((1./24+float64(v*(1./120)))+float64(v2*(1./720))))))
	p, one := product(s, r), sum(s, -1)
	e := ordered(one.high, p.high)
	return ordered(e.high, e.low+((one.low+p.low)+float64(s*(low+(float64(t.low*(1+v))-rest)))))
}

// Expm1 returns e to the power of x, less 1.
func Expm1(x float64) float64 {
	switch {
	case x < -60:
		return -1
	case x < 708:
		return math.Copysign(expm1Pair(x).value(), x)
	}
	return Exp(x)
}

// Sinh returns the hyperbolic sine of x.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	if a < 40 {
		e := expm1Pair(a)
		return math.Copysign(e.add(e.div(e.add(pair{1, 0}))).value()*0.5, x)
	}
	return math.Copysign(expAtTheEdge(a, 0, -1), x)
}

// Cosh returns the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	if a < 40 {
		e := expm1Pair(a).add(pair{1, 0})
		return e.add(pair{1, 0}.div(e)).value() * 0.5
	}
	return expAtTheEdge(a, 0, -1)
}

// Tanh returns the hyperbolic tangent of x.
func Tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 22:
		e := expm1Pair(2 * a)
		below := sum(2, e.high)
		return math.Copysign(e.quotient(pair{below.high, below.low + e.low}).value(), x)
	case x != x:
		return math.NaN()
	}
	return math.Copysign(1, x)
}

// cubic returns x + c * x³ for a small x. A zero keeps its sign.
func cubic(x, c float64) float64 {
	return math.Copysign(math.Abs(x)+float64(float64(x*x)*float64(c*math.Abs(x))), x)
}
