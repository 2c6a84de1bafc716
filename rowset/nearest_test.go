package rowset_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/rowset"
)

// TestMeasure compares each measure with a function of two vectors, for random rows with nulls
// and zeros.
func TestMeasure(t *testing.T) {
	functions := map[rowset.Measure]func(x, y []float32) float64{rowset.ByDot: rowset.Dot, rowset.ByCosine: rowset.Cosine, rowset.ByL2: rowset.L2}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 77))
		dims, n := 1+rng.IntN(9), rng.IntN(1500)
		b := rowset.NewVectorBuilder(9, dims, n)
		for range n {
			v := make([]float32, dims)
			for i := range v {
				v[i] = float32(rng.IntN(5) - 2)
			}
			if rng.IntN(5) == 0 {
				b.AppendNull()
			} else {
				require.True(t, b.Append(v))
			}
		}
		column := b.Column().(*rowset.VectorColumn)
		to := make([]float32, dims)
		for i := range to {
			to[i] = float32(rng.NormFloat64())
		}
		if rng.IntN(4) == 0 {
			clear(to)
		}
		in := rowsettest.Rows(rng, rowset.NewBatch(make([]int64, n), column))
		for by, of := range functions {
			values, valid, err := column.Measure(nil, nil, in, to, by)
			require.NoError(t, err)
			all := true
			for pos := range in.N {
				x, ok := column.Value(int(in.Row(pos)))
				want := 0.0
				if ok {
					want = of(x, to)
				}
				if ok = ok && want-want == 0; !ok {
					want = 0
				}
				all = all && ok
				require.Equal(t, ok, valid.Get(pos), "seed %d, position %d", seed, pos)
				require.Equal(t, want, values[pos], "seed %d, position %d", seed, pos)
			}
			assert.Equal(t, all, valid == nil)
		}
	}
}

// BenchmarkNearest measures 10,000 vectors of 64 numbers and keeps the best 100; BenchmarkVectors/sum reads the same memory and adds it up.
func BenchmarkNearest(b *testing.B) {
	const rows, dims = 10_000, 64
	rng := rand.New(rand.NewPCG(26, 2))
	column := &rowset.VectorColumn{Key: 9, Dims: dims, Values: make([]float32, rows*dims)}
	for i := range column.Values {
		column.Values[i] = float32(rng.NormFloat64())
	}
	in := rowset.Dense(rowset.NewBatch(make([]int64, rows), column))
	to := column.Values[:dims]
	for name, by := range map[string]rowset.Measure{"dot": rowset.ByDot, "cosine": rowset.ByCosine, "l2": rowset.ByL2} {
		b.Run(name, func(b *testing.B) {
			m := rowset.NewMemory(rowset.NewPool(rowset.PoolConfig{}))
			m.SetLending(true)
			for b.Loop() {
				values, valid, err := column.Measure(nil, m, in, to, by)
				require.NoError(b, err)
				scored := rowset.Scatter(m, in, &rowset.FloatColumn{Key: 10, Values: values, Valid: valid})
				_, err = rowset.TopUntil(nil, m, scored, 10, by != rowset.ByL2, 100)
				require.NoError(b, err)
				m.Release(nil)
			}
		})
	}
}

// BenchmarkRelevance chooses 20 of 1,000 rows with vectors of 64 numbers: 20,000 measures.
func BenchmarkRelevance(b *testing.B) {
	const rows, dims = 1_000, 64
	rng := rand.New(rand.NewPCG(26, 3))
	column := &rowset.VectorColumn{Key: 9, Dims: dims, Values: make([]float32, rows*dims)}
	for i := range column.Values {
		column.Values[i] = float32(rng.NormFloat64())
	}
	scores := make([]float64, rows)
	for i := range scores {
		scores[i] = rng.Float64()
	}
	in := rowset.Dense(rowset.NewBatch(make([]int64, rows), column))
	for name, by := range map[string]rowset.Measure{"dot": rowset.ByDot, "cosine": rowset.ByCosine, "l2": rowset.ByL2} {
		b.Run(name, func(b *testing.B) {
			m := rowset.NewMemory(rowset.NewPool(rowset.PoolConfig{}))
			m.SetLending(true)
			for b.Loop() {
				_, err := rowset.MarginalRelevance(nil, m, in, column, scores, nil, by, 0.5, 20)
				require.NoError(b, err)
				m.Release(nil)
			}
		})
	}
}
