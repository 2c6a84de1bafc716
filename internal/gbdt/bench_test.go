package gbdt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPredict scores rows with 100 full trees of depth 6 over 30 features, of which 10 %
// are missing. Values and thresholds have one distribution and splits are random, so branches
// are not predictable. ns/row·tree is the time of one row in one tree, on one worker.
func BenchmarkPredict(b *testing.B) {
	const trees, features = 100, 30
	rng := rand.New(rand.NewPCG(14, 6))
	m, err := Read(randomModel(rng, shape{features: features, trees: trees, depth: 6, split: 1}).text(b))
	require.NoError(b, err)
	benchmarkPredict(b, rng, m)
}

// BenchmarkPredictLightGBM is BenchmarkPredict for trees of LightGBM with the same shape. NaN is the missing value.
func BenchmarkPredictLightGBM(b *testing.B) {
	rng := rand.New(rand.NewPCG(14, 6))
	d := &lightDocument{features: 30, objective: "regression"}
	for range 100 {
		var t lightDocumentTree
		for split := range 63 {
			t.features, t.decisions = append(t.features, rng.IntN(30)), append(t.decisions, 8+2*rng.IntN(2))
			t.thresholds = append(t.thresholds, float64(rng.IntN(255)-127)/40) // LightGBM has 255 bins
			left, right := 2*split+1, 2*split+2
			if left >= 63 {
				left, right = ^(left - 63), ^(right - 63)
			}
			t.left, t.right = append(t.left, left), append(t.right, right)
		}
		for range 64 {
			t.leaves = append(t.leaves, rng.NormFloat64())
		}
		d.trees = append(d.trees, t)
	}
	m, err := Read([]byte(d.text()))
	require.NoError(b, err)
	benchmarkPredict(b, rng, m)
}

func benchmarkPredict(b *testing.B, rng *rand.Rand, m *Model) {
	trees, features := m.Trees(), m.Features()
	for _, count := range []int{100, 10_000, 1_000_000} {
		values := make([][]float64, features)
		for f := range values {
			values[f] = make([]float64, count)
			for i := range values[f] {
				values[f][i] = rng.NormFloat64()
				if rng.IntN(10) == 0 {
					values[f][i] = math.NaN()
				}
			}
		}
		columns := make([]Column, features)
		for f := range columns {
			columns[f] = func(dst []float64, from int) { copy(dst, values[f][from:]) }
		}
		out := make([]float64, count)
		b.Run(fmt.Sprintf("rows=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Predict(nil, columns, Prediction, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count)/float64(trees), "ns/row·tree")
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
