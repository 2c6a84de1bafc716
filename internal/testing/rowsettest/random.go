// Package rowsettest makes random row sets for property tests: of all shapes that the engine can come up
// with, and with traps for code that looks at what it must not (garbage under nulls, unused dictionary
// entries, stray bits).
package rowsettest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// The keys that random batches may have a column of. Each is there in three
// of four batches; other keys never are.
var (
	FloatKeys  = [...]registry.KeyID{1001, 1002, 2001}
	StringKeys = [...]registry.KeyID{3001, 3002}
	IntKeys    = [...]registry.KeyID{5001, 5002}
	BoolKeys   = [...]registry.KeyID{5101}
	SetKeys    = [...]registry.KeyID{5201, 5202}
	VectorKeys = [...]registry.KeyID{5251, 5252} // of VectorDims numbers
)

// VectorDims is the length of vectors in random batches.
const VectorDims = 5

// long is a string of 64 KiB.
var long = strings.Repeat("x", 64<<10)

// sizes are batch lengths around the places where code changes its ways:
// words of a bitmap, thresholds of sort, chunks of expr.
var sizes = [...]int{0, 1, 2, 3, 8, 24, 25, 63, 64, 65, 130, 320, 321, 1023, 1024, 1025, 2500}

// RowSet returns a random row set over a random batch of at most maxRows rows.
func RowSet(rng *rand.Rand, maxRows int) rowset.RowSet {
	n := min(sizes[rng.IntN(len(sizes))], maxRows)
	return Rows(rng, Batch(rng, n))
}

// Rows returns a random list of active rows of a batch: all, a prefix, a
// selection dense or sparse, or a permutation of either.
func Rows(rng *rand.Rand, b *rowset.Batch) rowset.RowSet {
	n := b.Len()
	switch rng.IntN(4) {
	case 0:
		return rowset.Dense(b)
	case 1:
		return rowset.RowSet{Batch: b, N: rng.IntN(n + 1)}
	}
	keep := [...]float64{0.02, 0.5, 0.95, 1}[rng.IntN(4)]
	rows := []int32{}
	for row := range n {
		if rng.Float64() < keep {
			rows = append(rows, int32(row))
		}
	}
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	return rowset.RowSet{Batch: b, Rows: rows, N: len(rows)}
}

// Batch returns a random batch of n rows.
func Batch(rng *rand.Rand, n int) *rowset.Batch {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = ID(rng)
	}
	var columns []rowset.Column
	for _, keys := range [...]struct {
		of   []registry.KeyID
		make func(rng *rand.Rand, key registry.KeyID, n int) rowset.Column
	}{
		{FloatKeys[:], floatColumn}, {StringKeys[:], stringColumn}, {IntKeys[:], intColumn}, {BoolKeys[:], boolColumn}, {SetKeys[:], setColumn},
		{VectorKeys[:], vectorColumn},
	} {
		for _, key := range keys.of {
			if rng.IntN(4) > 0 {
				columns = append(columns, keys.make(rng, key, n))
			}
		}
	}
	return rowset.NewBatch(ids, columns...)
}

// ID returns a random id: often one of few, sometimes too large for a double.
func ID(rng *rand.Rand) int64 {
	switch rng.IntN(8) {
	case 0:
		return int64(rng.Uint64())
	case 1:
		return [...]int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 1<<53 + 1, 0}[rng.IntN(5)]
	}
	return rng.Int64N(20) - 10
}

// Float returns a random finite double: often one of few, sometimes one that
// overflows in arithmetic.
func Float(rng *rand.Rand) float64 {
	switch rng.IntN(4) {
	case 0:
		return rng.NormFloat64()
	case 1:
		return [...]float64{1e308, -1e308, 5e-324, math.Copysign(0, -1), 0, math.MaxFloat64}[rng.IntN(6)]
	}
	return float64(rng.IntN(5)-2) / 2
}

// String returns a random string, one of about forty: also an empty one, one with zero bytes, what is not UTF-8, and seldom a long one.
func String(rng *rand.Rand) string {
	switch rng.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8:
		return [...]string{"", "DE", "US", "us", "ß", "Ünï", "line\nbreak", "\xff\xfe", "\x00", "DE\x00"}[rng.IntN(10)]
	case 9:
		if rng.IntN(100) == 0 {
			return long
		}
	}
	return "s" + strconv.Itoa(rng.IntN(32))
}

func floatColumn(rng *rand.Rand, key registry.KeyID, n int) rowset.Column {
	c := &rowset.FloatColumn{Key: key, Values: make([]float64, n), Valid: validity(rng, n)}
	for i := range c.Values {
		if c.Valid.Get(i) {
			c.Values[i] = Float(rng)
		} else {
			c.Values[i] = [...]float64{math.NaN(), math.Inf(1), 1}[rng.IntN(3)]
		}
	}
	return c
}

func intColumn(rng *rand.Rand, key registry.KeyID, n int) rowset.Column {
	c := &rowset.IntColumn{Key: key, Values: make([]int64, n), Valid: validity(rng, n)}
	for i := range c.Values {
		c.Values[i] = ID(rng) // garbage, where the row is null
	}
	return c
}

func boolColumn(rng *rand.Rand, key registry.KeyID, n int) rowset.Column {
	c := &rowset.BoolColumn{Key: key, Values: rowset.NewBitmap(n), Valid: validity(rng, n)}
	for i := range c.Values {
		c.Values[i] = rng.Uint64() // garbage, where the row is null, and past the last row
	}
	return c
}

func vectorColumn(rng *rand.Rand, key registry.KeyID, n int) rowset.Column {
	c := &rowset.VectorColumn{Key: key, Dims: VectorDims, Values: make([]float32, n*VectorDims), Valid: validity(rng, n)}
	for i := range c.Values {
		if c.Valid.Get(i / VectorDims) {
			c.Values[i] = [...]float32{float32(rng.NormFloat64()), float32(rng.IntN(3) - 1), 0, math.MaxFloat32}[rng.IntN(4)]
		} else {
			c.Values[i] = [...]float32{float32(math.NaN()), float32(math.Inf(1)), 1}[rng.IntN(3)]
		}
	}
	return c
}

// validity returns the validity of n rows: nil for half of the columns, of which no row is null.
func validity(rng *rand.Rand, n int) rowset.Bitmap {
	if rng.IntN(2) == 0 {
		return nil
	}
	valid := rowset.NewBitmap(n)
	nulls := [...]float64{0, 0.01, 0.5, 1}[rng.IntN(4)]
	for i := range n {
		if rng.Float64() >= nulls {
			valid.Set(i)
		}
	}
	if stray := uint(n) % 64; stray != 0 {
		valid[len(valid)-1] |= rng.Uint64() << stray
	}
	return valid
}

// stringColumn returns a column in one of its forms: as a builder makes it, with a place for each row, or with any place that has the
// string. Its codes may be known already.
func stringColumn(rng *rand.Rand, key registry.KeyID, n int) rowset.Column {
	b := rowset.NewStringBuilder(key, n)
	for range rng.IntN(20) { // entries that no row may use
		b.Append([]byte(String(rng)))
	}
	unused := b.Len()
	nulls := [...]float64{0, 0.1, 0.5, 1}[rng.IntN(4)]
	for range n {
		if rng.Float64() < nulls {
			b.AppendNull()
		} else {
			b.Append([]byte(String(rng)))
		}
	}
	c := b.Column().(*rowset.StringColumn)
	c.Places = c.Places[unused:]
	if own := [...]float64{0, 0.5, 1}[rng.IntN(3)]; own > 0 {
		values := slices.Clone(c.Dict.Values)
		for row, place := range c.Places {
			if place >= 0 && rng.Float64() < own {
				c.Places[row] = int32(len(values))
				values = append(values, c.Dict.Values[place])
			}
		}
		c.Dict = &rowset.Dict{Values: values}
	}
	if rng.IntN(2) == 0 {
		c.Codes(nil, rowset.RowSet{Batch: rowset.NewBatch(nil, c), N: n})
	}
	return c
}

func setColumn(rng *rand.Rand, key registry.KeyID, n int) rowset.Column {
	b := rowset.NewSetBuilder(key, n)
	unused := rng.IntN(20) // sets that no row may use
	nulls := [...]float64{0, 0.1, 0.5, 1}[rng.IntN(4)]
	for i := range unused + n {
		for range rng.IntN(4) {
			b.Add([]byte(String(rng)))
		}
		if i >= unused && rng.Float64() < nulls {
			b.AppendNull()
		} else {
			b.Append()
		}
	}
	c := b.Column().(*rowset.SetColumn)
	c.Codes = c.Codes[unused:]
	if rng.IntN(2) == 0 { // several rows of one set
		for i, code := range c.Codes {
			if code > 0 {
				c.Codes[i] = code / 2
			}
		}
	}
	return c
}
