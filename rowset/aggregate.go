package rowset

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/rankd/rankd/registry"
)

// Aggregation says which value stands for the values of a group. Immutable; any goroutine.
type Aggregation uint8

// The aggregations. All of them pass nulls over.
const (
	// Count is the number of values.
	Count Aggregation = iota
	// Sum adds up. A sum of doubles begins with 0 and adds them in the order of the rows; one of integers is exact.
	Sum
	// Mean is the Sum of doubles, divided by the Count.
	Mean
	// Min is the least value; of equal ones (0.0 and -0.0) the first.
	Min
	// Max is the greatest value; of equal ones (0.0 and -0.0) the first.
	Max
)

// Aggregate returns a column with one value for each of n groups: of has the group of each active row, as Groups returns it. The values
// are those of column, the id or a column of ints or floats; Mean takes one of vectors, too, as long as those of out. Count takes a column of any type that Groups takes, and counts all rows if column
// is 0. A column that the batch lacks is null in all rows.
//
// out is the key of the result. An int result is exact; Mean and columns of floats need a float result, for which
// integers become doubles first. A group is null if it has no value (unless the aggregation is Count), or if its
// result is beyond the range of the type. nulls is the number of such groups.
//
// The error is ErrStopped once stop says so, or a *KeyTypeError. The slices of the result are m's.
func Aggregate(stop Stop, m *Memory, rs RowSet, of []int32, n int, a Aggregation, column registry.KeyID, out *registry.Key) (c Column, nulls int, err error) {
	g := folding{stop: stop, m: m, of: of, counts: m.IDs(n)}
	clear(g.counts)
	if a == Count {
		return g.count(rs, column, out)
	}
	if out.Type == registry.Vector {
		return g.vectors(rs, rs.Batch.Vector(column), out)
	}
	if out.Type == registry.Int {
		ints, _, valid := numbersAt(m, rs, column)
		g.valid = valid
		return g.ints(a, ints, out)
	}
	floats, valid := floatsAt(m, rs, column)
	g.valid = valid
	return g.floats(a, floats, out)
}

// floatsAt is numbersAt with doubles for integers.
func floatsAt(m *Memory, rs RowSet, key registry.KeyID) (floats []float64, valid Bitmap) {
	ints, floats, valid := numbersAt(m, rs, key)
	if ints != nil {
		floats = m.Floats(len(ints))
		for pos, v := range ints {
			floats[pos] = float64(v)
		}
	}
	return floats, valid
}

// numbersAt returns the numbers of the active rows by position, as ints or floats. If the batch has no such column,
// it returns neither, and no row is valid.
func numbersAt(m *Memory, rs RowSet, key registry.KeyID) (ints []int64, floats []float64, valid Bitmap) {
	if key == registry.IDKey {
		return gatherInts(m, rs, rs.Batch.IDs), nil, nil
	}
	if c := rs.Batch.Int(key); c != nil {
		return gatherInts(m, rs, c.Values), nil, validAt(rs, c.Valid)
	}
	c := rs.Batch.Float(key)
	if c == nil {
		return nil, nil, NewBitmap(rs.N)
	}
	if rs.Rows == nil {
		return nil, c.Values[:rs.N], c.Valid
	}
	floats = m.Floats(rs.N)
	gather(floats, c.Values, rs.Rows, 0)
	return nil, floats, validAt(rs, c.Valid)
}

// folding is an Aggregate under way. One goroutine at a time.
type folding struct {
	stop   Stop
	m      *Memory
	of     []int32 // by position
	valid  Bitmap  // by position
	counts []int64 // by group: of the values so far
}

func (g *folding) count(rs RowSet, column registry.KeyID, out *registry.Key) (c Column, nulls int, err error) {
	if texts := rs.Batch.String(column); texts != nil {
		g.valid = codeValidity(rs, texts.Places)
	} else if column != 0 {
		keys, err := keysOf(g.m, rs, column)
		if err != nil {
			return nil, 0, err
		}
		g.valid = keys.valid
	}
	err = inChunks(g.stop, len(g.of), func(lo, hi int) {
		of, valid, counts := g.of, g.valid, g.counts
		for pos := lo; pos < hi; pos++ {
			if valid.Get(pos) {
				counts[of[pos]]++
			}
		}
	})
	switch {
	case err != nil:
		return nil, 0, err
	case out.Type == registry.Int:
		return &IntColumn{Key: out.ID, Values: g.counts}, 0, nil
	}
	counts := g.m.Floats(len(g.counts))
	for group, n := range g.counts {
		counts[group] = float64(n)
	}
	return &FloatColumn{Key: out.ID, Values: counts}, 0, nil
}

func (g *folding) floats(a Aggregation, values []float64, out *registry.Key) (c Column, nulls int, err error) {
	results := g.m.Floats(len(g.counts))
	clear(results)
	err = inChunks(g.stop, len(values), func(lo, hi int) {
		if a == Min || a == Max {
			foldExtreme(g, values, results, a, lo, hi)
			return
		}
		of, valid, counts := g.of, g.valid, g.counts
		for pos := lo; pos < hi; pos++ {
			if valid.Get(pos) {
				group := of[pos]
				results[group] += values[pos]
				counts[group]++
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	valid, nulls := g.validity(func(group int) bool {
		if a == Mean {
			results[group] /= float64(g.counts[group])
		}
		return !math.IsInf(results[group], 0) && !math.IsNaN(results[group])
	})
	return &FloatColumn{Key: out.ID, Values: results, Valid: valid}, nulls, nil
}

// vectors computes the Mean of vectors, number by number: a sum of doubles in the order of the rows, divided by the count. Nil is a column of nulls.
func (g *folding) vectors(rs RowSet, values *VectorColumn, out *registry.Key) (c Column, nulls int, err error) {
	dims := out.Dims
	results := &VectorColumn{Key: out.ID, Dims: dims, Values: make([]float32, dims*len(g.counts))}
	sums := g.m.Floats(dims * len(g.counts))
	clear(sums)
	if values != nil && values.Dims == dims {
		err = inChunks(g.stop, len(g.of), func(lo, hi int) {
			for pos := lo; pos < hi; pos++ {
				if v, ok := values.Value(int(rs.Row(pos))); ok {
					group := int(g.of[pos])
					g.counts[group]++
					sum := sums[group*dims:][:dims]
					for i, x := range v {
						sum[i] += float64(x)
					}
				}
			}
		})
		if err != nil {
			return nil, 0, err
		}
	}
	results.Valid, nulls = g.validity(func(group int) bool {
		n := float64(g.counts[group])
		for i, sum := range sums[group*dims:][:dims] {
			results.Values[group*dims+i] = float32(sum / n)
		}
		return true
	})
	return results, nulls, nil
}

func (g *folding) ints(a Aggregation, values []int64, out *registry.Key) (c Column, nulls int, err error) {
	results, high := g.m.IDs(len(g.counts)), g.m.IDs(len(g.counts)) // high has the upper halves of sums of 128 bits, results the lower ones
	clear(results)
	clear(high)
	err = inChunks(g.stop, len(values), func(lo, hi int) {
		if a != Sum {
			foldExtreme(g, values, results, a, lo, hi)
			return
		}
		of, valid, counts := g.of, g.valid, g.counts
		for pos := lo; pos < hi; pos++ {
			if valid.Get(pos) {
				group, v := of[pos], values[pos]
				sum, carry := bits.Add64(uint64(results[group]), uint64(v), 0)
				results[group] = int64(sum)
				high[group] += v>>63 + int64(carry)
				counts[group]++
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	valid, nulls := g.validity(func(group int) bool { return a != Sum || high[group] == results[group]>>63 })
	return &IntColumn{Key: out.ID, Values: results, Valid: valid}, nulls, nil
}

// foldExtreme takes the values of a chunk for the least or the greatest ones.
func foldExtreme[T cmp.Ordered](g *folding, values, best []T, a Aggregation, lo, hi int) {
	of, valid, counts := g.of, g.valid, g.counts
	for pos := lo; pos < hi; pos++ {
		if !valid.Get(pos) {
			continue
		}
		group, v := of[pos], values[pos]
		if counts[group] == 0 || a == Min && v < best[group] || a == Max && v > best[group] {
			best[group] = v
		}
		counts[group]++
	}
}

// validity returns which groups have values and a result within the range of its type, or nil if all have, and how many have none.
func (g *folding) validity(inRange func(group int) bool) (valid Bitmap, nulls int) {
	n := len(g.counts)
	valid = NewBitmap(n)
	for group, count := range g.counts {
		if count > 0 && inRange(group) {
			valid.Set(group)
		} else {
			nulls++
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	return valid, nulls
}
