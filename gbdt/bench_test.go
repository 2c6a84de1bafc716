package gbdt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPredict scores rows with 100 full trees of depth 6 over 30 features, 10 % of them missing. Values and thresholds have one
// distribution and splits are random, so no branch would be predictable. ns/row·tree is the time of one row in one tree, on one worker.
func BenchmarkPredict(b *testing.B) {
	const trees, features = 100, 30
	rng := rand.New(rand.NewPCG(14, 6))
	m, err := Read(randomModel(rng, shape{features: features, trees: trees, depth: 6, split: 1}).text(b))
	require.NoError(b, err)
	for _, count := range []int{100, 10_000, 1_000_000} {
		values := make([][]float32, features)
		for f := range values {
			values[f] = make([]float32, count)
			for i := range values[f] {
				values[f][i] = float32(rng.NormFloat64())
				if rng.IntN(10) == 0 {
					values[f][i] = nan
				}
			}
		}
		columns := make([]Column, features)
		for f := range columns {
			columns[f] = func(dst []float32, from int) { copy(dst, values[f][from:]) }
		}
		out := make([]float64, count)
		b.Run(fmt.Sprintf("rows=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Predict(nil, columns, Prediction, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count)/trees, "ns/row·tree")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	rng := rand.New(rand.NewPCG(14, 6))
	text := randomModel(rng, shape{features: 30, trees: 100, depth: 6, split: 1}).text(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(text); err != nil {
			b.Fatal(err)
		}
	}
}
