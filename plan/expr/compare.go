package expr

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

// cmpOf returns the comparison that the table names.
func cmpOf(s string) cmpOp {
	switch s {
	case "==":
		return cmpEq
	case "!=":
		return cmpNe
	case "<":
		return cmpLt
	case "<=":
		return cmpLe
	case ">":
		return cmpGt
	case ">=":
		return cmpGe
	}
	panic("expr: not a comparison: " + s)
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
func holds[T float64 | int64](op cmpOp, a, b T) bool {
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
func compareScalar[T float64 | int64](out *mask, op cmpOp, x []T, c T) {
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
func compareVector[T float64 | int64](out *mask, op cmpOp, x, y []T) {
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

// elementsScan is the longest list that is scanned. A map lookup costs about as much as that many
// comparisons.
const elementsScan = 16

// elements is a list for tests whether it has a value. Immutable once built; any goroutine.
type elements[T comparable] struct {
	few  []T            // the list, if short
	many map[T]struct{} // else; nil if short
}

// elementsOf returns the elements of a list, and may keep the list.
func elementsOf[T comparable](list []T) elements[T] {
	if len(list) <= elementsScan {
		return elements[T]{few: list}
	}
	s := elements[T]{many: make(map[T]struct{}, len(list))}
	for _, v := range list {
		s.many[v] = struct{}{} // a map finds -0.0 under 0.0, and never a NaN, like ==
	}
	return s
}

func (s *elements[T]) contains(v T) bool {
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
func memberOf[T float64 | int64](out *mask, x []T, set *elements[T]) {
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
