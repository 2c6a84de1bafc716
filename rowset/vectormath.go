package rowset

import "math"

// The sums over two vectors are doubles, added in a fixed order: number i of each vector goes to sum i mod 4, and the
// four sums s are added as (s0 + s1) + (s2 + s3). The product of two floats is exact as a double. Where a product is
// not exact, a conversion keeps the compiler from fusing it with the addition. So the bits are the same on every
// machine.

// Dot returns the sum of the products of two vectors of one length.
func Dot(x, y []float32) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += exactly(a[0], b[0])
		s1 += exactly(a[1], b[1])
		s2 += exactly(a[2], b[2])
		s3 += exactly(a[3], b[3])
	}
	switch len(x) - i {
	case 3:
		s2 += exactly(x[i+2], y[i+2])
		fallthrough
	case 2:
		s1 += exactly(x[i+1], y[i+1])
		fallthrough
	case 1:
		s0 += exactly(x[i], y[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// exactly returns the product of two numbers. A double has it, so a compiler may fuse it with a sum (.ci/fused).
func exactly(x, y float32) float64 {
	return float64(x) * float64(y)
}

// Norm returns the length of a vector: the square root of its Dot with itself.
func Norm(x []float32) float64 { return math.Sqrt(Dot(x, x)) }

// Cosine returns the cosine of the angle between two vectors: their Dot, divided by the square root of the product of
// each one's Dot with itself. It is NaN if one of them is zero.
func Cosine(x, y []float32) float64 { return Dot(x, y) / math.Sqrt(Dot(x, x)*Dot(y, y)) }

// L2 returns the distance between two vectors of one length: the square root of the sum of the squares of their differences.
func L2(x, y []float32) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += square(a[0], b[0])
		s1 += square(a[1], b[1])
		s2 += square(a[2], b[2])
		s3 += square(a[3], b[3])
	}
	switch len(x) - i {
	case 3:
		s2 += square(x[i+2], y[i+2])
		fallthrough
	case 2:
		s1 += square(x[i+1], y[i+1])
		fallthrough
	case 1:
		s0 += square(x[i], y[i])
	}
	return math.Sqrt((s0 + s1) + (s2 + s3))
}

// square returns the square of a difference. The conversion forbids a fused multiply-add.
func square(x, y float32) float64 {
	d := float64(x) - float64(y)
	return float64(d * d)
}
