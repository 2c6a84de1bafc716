package expr

import "math"

// The kernels of this file do all the work. Each handles one chunk. The slices of a
// call have equal length, and dst may be one of the operands.
//
// Kernels build words of bits from the last bit to the first, by doubling. That takes
// one instruction a bit beside the test, and no variable shift.
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

func convertIDs(dst []float64, ids []int64) {
	dst = dst[:len(ids)]
	for i, id := range ids {
		dst[i] = float64(id)
	}
}

func gatherIDs(dst []float64, ids []int64, rows []int32) {
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = float64(ids[row])
	}
}

func gatherValues(dst, values []float64, rows []int32) {
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

// allFinite reports whether x has neither an infinity nor a NaN. v*0 is zero for a
// finite v and NaN for all others, and a NaN stays in a sum. Four sums keep the
// additions from waiting for each other.
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

// cmpOp is a comparison.
type cmpOp uint8

const (
	cmpEq cmpOp = iota
	cmpNe
	cmpLt
	cmpLe
	cmpGt
	cmpGe
)

func parseCmp(s string) (cmpOp, bool) {
	switch s {
	case "==":
		return cmpEq, true
	case "!=":
		return cmpNe, true
	case "<":
		return cmpLt, true
	case "<=":
		return cmpLe, true
	case ">":
		return cmpGt, true
	case ">=":
		return cmpGe, true
	}
	return 0, false
}

// swapped returns the comparison of (b, a) that equals op of (a, b).
func (op cmpOp) swapped() cmpOp {
	switch op {
	case cmpLt:
		return cmpGt
	case cmpLe:
		return cmpGe
	case cmpGt:
		return cmpLt
	case cmpGe:
		return cmpLe
	}
	return op
}

// holds compares two values. A NaN is unequal to everything, and neither less nor
// greater.
func (op cmpOp) holds(a, b float64) bool {
	switch op {
	case cmpEq:
		return a == b
	case cmpNe:
		return a != b
	case cmpLt:
		return a < b
	case cmpLe:
		return a <= b
	case cmpGt:
		return a > b
	default:
		return a >= b
	}
}

// bit returns 1 for true, without a branch.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// compareScalar sets bit i of out to "x[i] op c". Bits past the end are
// undefined.
func compareScalar(out *mask, op cmpOp, x []float64, c float64) {
	for k := 0; len(x) > 0; k++ {
		block := x[:min(64, len(x))]
		x = x[len(block):]
		w := uint64(0)
		switch op {
		case cmpEq:
			for i := len(block) - 1; i >= 0; i-- {
				w = w + w + bit(block[i] == c)
			}
		case cmpNe:
			for i := len(block) - 1; i >= 0; i-- {
				w = w + w + bit(block[i] != c)
			}
		case cmpLt:
			for i := len(block) - 1; i >= 0; i-- {
				w = w + w + bit(block[i] < c)
			}
		case cmpLe:
			for i := len(block) - 1; i >= 0; i-- {
				w = w + w + bit(block[i] <= c)
			}
		case cmpGt:
			for i := len(block) - 1; i >= 0; i-- {
				w = w + w + bit(block[i] > c)
			}
		case cmpGe:
			for i := len(block) - 1; i >= 0; i-- {
				w = w + w + bit(block[i] >= c)
			}
		}
		out[k] = w
	}
}

// compareVector sets bit i of out to "x[i] op y[i]". Bits past the end are
// undefined.
func compareVector(out *mask, op cmpOp, x, y []float64) {
	switch op {
	case cmpGt, cmpGe:
		op, x, y = op.swapped(), y, x
	}
	for k := 0; len(x) > 0; k++ {
		n := min(64, len(x))
		a, b := x[:n], y[:n]
		x, y = x[n:], y[n:]
		w := uint64(0)
		switch op {
		case cmpEq:
			for i := n - 1; i >= 0; i-- {
				w = w + w + bit(a[i] == b[i])
			}
		case cmpNe:
			for i := n - 1; i >= 0; i-- {
				w = w + w + bit(a[i] != b[i])
			}
		case cmpLt:
			for i := n - 1; i >= 0; i-- {
				w = w + w + bit(a[i] < b[i])
			}
		case cmpLe:
			for i := n - 1; i >= 0; i-- {
				w = w + w + bit(a[i] <= b[i])
			}
		}
		out[k] = w
	}
}

// numberSetScan is the longest list of numbers that is scanned. A map lookup costs
// about as much as that many comparisons.
const numberSetScan = 16

// A numberSet is the list of numbers of an in. Immutable once built; any goroutine.
type numberSet struct {
	few  []float64            // the list, if short
	many map[float64]struct{} // else; nil if short
}

func newNumberSet(list []float64) *numberSet {
	if len(list) <= numberSetScan {
		return &numberSet{few: list}
	}
	s := &numberSet{many: make(map[float64]struct{}, len(list))}
	for _, v := range list {
		s.many[v] = struct{}{} // a map finds -0.0 under 0.0, and no NaN: as == does
	}
	return s
}

func (s *numberSet) contains(v float64) bool {
	if s.many != nil {
		_, ok := s.many[v]
		return ok
	}
	for _, x := range s.few {
		if x == v {
			return true
		}
	}
	return false
}

// memberOf sets bit i of out to "x[i] is in the set". Bits past the end are
// undefined.
func memberOf(out *mask, x []float64, set *numberSet) {
	for k := 0; len(x) > 0; k++ {
		block := x[:min(64, len(x))]
		x = x[len(block):]
		w := uint64(0)
		for i := len(block) - 1; i >= 0; i-- {
			w = w + w + bit(set.contains(block[i]))
		}
		out[k] = w
	}
}
