package elementary

import "math"

// A pair is the sum of two doubles, of which the second is at most half a unit in the last place of the first.
type pair struct{ high, low float64 }

// ordered returns a + b as a pair. The first must not be smaller than the second, unless it is zero.
func ordered(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

// sum returns a + b as a pair.
func sum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// product returns a * b as a pair.
func product(a, b float64) pair {
	p := float64(a * b)
	return pair{p, math.FMA(a, b, -p)}
}

func (x pair) add(y pair) pair {
	s := sum(x.high, y.high)
	t := sum(x.low, y.low)
	s = ordered(s.high, s.low+t.high)
	return ordered(s.high, s.low+t.low)
}

func (x pair) mul(y pair) pair {
	p := x.multiplied(y)
	return ordered(p.high, p.low)
}

func (x pair) div(y pair) pair {
	q := x.quotient(y)
	return ordered(q.high, q.low)
}

// multiplied and quotient return x * y and x / y as two doubles, of which the second may be some units of the first.
func (x pair) multiplied(y pair) pair {
	p := product(x.high, y.high)
	return pair{p.high, p.low + (float64(x.high*y.low) + float64(x.low*y.high))}
}

func (x pair) quotient(y pair) pair {
	q := x.high / y.high
	return pair{q, float64((math.FMA(-q, y.high, x.high) + (x.low - float64(q*y.low))) * (1 / y.high))}
}

func (x pair) sqrt() pair {
	if x.high == 0 {
		return x
	}
	s := math.Sqrt(x.high)
	return ordered(s, float64((math.FMA(-s, s, x.high)+x.low)*(0.5/s)))
}

// times returns x multiplied by a power of two.
func (x pair) times(power float64) pair { return pair{float64(x.high * power), float64(x.low * power)} }

func (x pair) negate() pair { return pair{-x.high, -x.low} }

// value rounds a pair.
func (x pair) value() float64 { return x.high + x.low }

// power2 returns 2^k for k from -1022 to 1023.
func power2(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// scaled returns (high + low) * 2^k, rounded once, for high from 1/2 to 4. A result below the normal numbers has fewer bits: adding
// 2^(-1022-k) rounds to these.
func scaled(high, low float64, k int) float64 {
	switch {
	case k > 1030:
		return math.Inf(1)
	case k > 1020:
		return (high + low) * power2(k-10) * 0x1p10
	case k > -1020:
		return (high + low) * power2(k)
	case k < -1080:
		return 0
	}
	value := high + low
	if k < -1022 || value*power2(k+60) < 0x1p-962 {
		smallest := power2(-1022 - k)
		s := sum(smallest, high)
		value = s.high + (s.low + low) - smallest
	}
	return value * power2(k+60) * 0x1p-60
}
