package expr

import (
	"fmt"
	"strings"
)

// ofVectors computes an opVectors: what the operator says of the vectors in each row.
func (ev *evaluator) ofVectors(in *instruction, c *chunk, dst *register) vector {
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	clear(vals)
	clear(valid)
	x := &ev.boundLeaves[in.a]
	y := x
	if len(in.of.Operands) > 1 {
		y = &ev.boundLeaves[in.b]
	}
	for pos := range vals {
		row := int(c.row(pos))
		a, ok := x.vectorAt(row)
		b, also := y.vectorAt(row)
		if ok && also && len(a) == len(b) {
			vals[pos] = in.of.vectors(a, b)
			valid[pos/64] |= 1 << (uint(pos) % 64)
		}
	}
	return vector{vals, valid}
}

// vectorAt returns the vector of a batch row, or false for null.
func (b *leafBinding) vectorAt(row int) ([]float32, bool) {
	switch {
	case b.kind == bindScalar:
		return b.value.vector, true
	case b.vectors != nil:
		return b.vectors.Value(row)
	}
	return nil, false
}

// vectorText shows a vector in one line of an explanation.
func vectorText(v []float32) string {
	const shown = 4
	var b strings.Builder
	for i, x := range v[:min(len(v), shown)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.4g", x)
	}
	if len(v) > shown {
		b.WriteString(", …")
	}
	return fmt.Sprintf("%d numbers: %s", len(v), b.String())
}

// oneVector makes an operator of one vector from its function.
func oneVector(of func(x []float32) float64) func(x, y []float32) float64 {
	return func(x, _ []float32) float64 { return of(x) }
}
