package expr

import "math"

// The kernels of this file do all the work. Each handles one chunk. The slices of a
// call have equal length, and dst may be one of the operands.
//
// Kernels build words of bits from the last bit to the first, by doubling. That takes one instruction per bit besides
// the test, and no variable shift.
//
// No loop has both a multiplication and an addition, because a compiler may fuse the
// two (it does on arm64), which rounds once instead of twice.

func addScalar(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = v + c
	}
}

// subScalar computes c - x. (x - c is addScalar of -c.)
func subScalar(dst []float64, c float64, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = c - v
	}
}

func mulScalar(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = v * c
	}
}

func addVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v + y[i]
	}
}

func subVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v - y[i]
	}
}

func mulVector(dst, x, y []float64) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * y[i]
	}
}

func negate(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = -v
	}
}

func fill(dst []float64, v float64) {
	for i := range dst {
		dst[i] = v
	}
}

func convertInts(dst []float64, ints []int64) {
	dst = dst[:len(ints)]
	for i, v := range ints {
		dst[i] = float64(v)
	}
}

func gatherInts(dst []float64, ints []int64, rows []int32) {
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = float64(ints[row])
	}
}

func gather[T float64 | int64](dst, values []T, rows []int32) {
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = values[row]
	}
}

// gatherBits sets bit i of dst to bit rows[i] of words.
func gatherBits(dst, words []uint64, rows []int32) {
	for k := range dst {
		block := rows[k*64 : min(k*64+64, len(rows))]
		w := uint64(0)
		for i := len(block) - 1; i >= 0; i-- {
			row := uint32(block[i])
			w = w + w + words[row/64]>>(row%64)&1
		}
		dst[k] = w
	}
}

// choose sets dst[i] to x[i] if bit i of has is set, else to y[i]. It handles at most
// 64 elements. It does not branch, because nulls tend to come at random.
func choose(dst []float64, has uint64, x, y []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		m := -(has & 1)
		has >>= 1
		dst[i] = math.Float64frombits(math.Float64bits(x[i])&m | math.Float64bits(y[i])&^m)
	}
}

// zeroInvalid sets the values of null rows to 0.
func zeroInvalid(vals []float64, valid []uint64) {
	for k, w := range valid {
		if w == ^uint64(0) {
			continue
		}
		block := vals[k*64 : min(k*64+64, len(vals))]
		for i, v := range block {
			block[i] = math.Float64frombits(math.Float64bits(v) & -(w & 1))
			w >>= 1
		}
	}
}

// allFinite reports whether all values of x are finite. v*0 is zero for a finite v and NaN for all others, and a NaN
// stays in a sum. Four sums keep the additions independent of each other.
func allFinite(x []float64) bool {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		s0 += float64(x[0] * 0)
		s1 += float64(x[1] * 0)
		s2 += float64(x[2] * 0)
		s3 += float64(x[3] * 0)
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(v * 0)
	}
	return s0+s1+s2+s3 == 0
}

// isFinite reports whether v is neither an infinity nor a NaN.
func isFinite(v float64) bool { return v-v == 0 }

// keepFinite returns, in out, which values are finite and were valid. A nil valid has no nulls.
func keepFinite(out *mask, vals []float64, valid []uint64) []uint64 {
	words := out[:(len(vals)+63)/64]
	for k := range words {
		block := vals[k*64 : min(k*64+64, len(vals))]
		w := uint64(0)
		for i := len(block) - 1; i >= 0; i-- {
			w = w + w + bit(isFinite(block[i]))
		}
		if valid != nil {
			w &= valid[k]
		}
		words[k] = w
	}
	return words
}
