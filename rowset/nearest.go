package rowset

import "math"

// A Measure says how near two vectors are.
type Measure uint8

// The measures.
const (
	ByDot    Measure = iota // Dot: the higher, the nearer
	ByCosine                // Cosine: the higher, the nearer
	ByL2                    // L2: the lower, the nearer
)

// nearestChunk is how many vectors are measured between two checks whether to stop.
const nearestChunk = 512

// Measure returns, by position, how near the vectors of a column are to another vector of the same length: element i
// belongs to the row rs.Row(i). valid has a bit for each row with a result; nil means all rows. A null vector has no
// result, and neither has one whose measure is not finite, such as the cosine of a zero vector. The error is
// ErrStopped once stop says so; a nil stop never does. The numbers are m's.
func (c *VectorColumn) Measure(stop Stop, m *Memory, rs RowSet, to []float32, by Measure) (values []float64, valid Bitmap, err error) {
	values, valid = m.Floats(rs.N), NewBitmap(rs.N)
	probe := probe{by: by}
	probe.set(to)
	measured := 0
	for lo := 0; lo < rs.N; lo += nearestChunk {
		if stop != nil && stop.Cancelled() {
			return nil, nil, ErrStopped
		}
		for pos := lo; pos < min(lo+nearestChunk, rs.N); pos++ {
			values[pos] = 0
			x, ok := c.Value(int(rs.Row(pos)))
			if !ok {
				continue
			}
			if v := probe.measure(x, probe.square(x)); v-v == 0 { // finite
				values[pos] = v
				valid.Set(pos)
				measured++
			}
		}
	}
	if measured == rs.N {
		valid = nil
	}
	return values, valid, nil
}

// A probe is a vector with which others are compared. One goroutine at a time.
type probe struct {
	by   Measure
	to   []float32
	wide []float64 // to, so that each number becomes a double once
	toTo float64   // its square
}

// set makes another vector the probe's.
func (p *probe) set(to []float32) {
	p.to, p.toTo = to, p.square(to)
	p.wide = p.wide[:0]
	for _, x := range to {
		p.wide = append(p.wide, float64(x))
	}
}

// square returns what measure needs of a vector besides itself: its Dot with itself, for ByCosine alone.
func (p *probe) square(x []float32) float64 {
	if p.by == ByCosine {
		return Dot(x, x)
	}
	return 0
}

// measure returns how near a vector is. It is not finite for the cosine of a zero vector.
func (p *probe) measure(x []float32, square float64) float64 {
	switch p.by {
	case ByCosine:
		return wideDot(x, p.wide) / math.Sqrt(square*p.toTo)
	case ByL2:
		return L2(x, p.to)
	default:
		return wideDot(x, p.wide)
	}
}

// wideDot is Dot, bit by bit, for a vector whose numbers are doubles already. That saves conversions
// (BenchmarkNearest).
func wideDot(x []float32, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += float64(float64(a[0]) * b[0])
		s1 += float64(float64(a[1]) * b[1])
		s2 += float64(float64(a[2]) * b[2])
		s3 += float64(float64(a[3]) * b[3])
	}
	switch len(x) - i {
	case 3:
		s2 += float64(float64(x[i+2]) * y[i+2])
		fallthrough
	case 2:
		s1 += float64(float64(x[i+1]) * y[i+1])
		fallthrough
	case 1:
		s0 += float64(float64(x[i]) * y[i])
	}
	return (s0 + s1) + (s2 + s3)
}
