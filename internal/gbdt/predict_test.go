package gbdt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A model of random trees predicts rows in numbers around the size of a block. The results
// equal a walk of each row through each tree, bit for bit.
func TestPredictIsTheWalkOfEachRow(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 14))
		s := shape{features: 1 + rng.IntN(12), trees: rng.IntN(12), depth: rng.IntN(16), split: 0.5 + rng.Float64()/2, numbers: edges, categories: rng.IntN(2) == 0}
		if s.depth > 8 {
			s.split = 0.6
		}
		d := randomModel(rng, s)
		m, err := Read(d.text(t))
		require.NoError(t, err, "seed %d", seed)
		infinities := append([]float32{float32(math.Inf(1)), float32(math.Inf(-1))}, edges...)
		rows := randomRows(rng, rng.IntN(150), s.features, 0.2, infinities)
		out := make([]float64, len(rows))
		require.True(t, m.Predict(nil, columnsOf(rows, s.features), Prediction, out))
		for i, row := range rows {
			want := float64(d.margin(0.5, row))
			if math.IsNaN(want) { // infinities of both signs added
				require.True(t, math.IsNaN(out[i]), "seed %d row %d", seed, i)
				continue
			}
			require.Equal(t, want, out[i], "seed %d row %d", seed, i)
			each := make([]float64, s.features)
			sum, ok := m.Contributions(columnsOf(rows[i:i+1], s.features), each)
			require.True(t, ok)
			size := math.Abs(sum)
			for _, v := range each {
				sum, size = sum+v, size+math.Abs(v)
			}
			if !math.IsInf(size, 0) && size == size && size < math.MaxFloat32/4 {
				require.InDelta(t, want, sum, 1e-5*max(1, size), "seed %d row %d", seed, i)
			}
		}
		assert.Equal(t, s.trees, m.Trees())
	}
}

// stopAfter is a Stop that says yes after so many questions.
type stopAfter int

func (s *stopAfter) Cancelled() bool { *s--; return *s < 0 }

func TestPredictStops(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m, err := Read(randomModel(rng, shape{features: 2, trees: 3, depth: 3, split: 1}).text(t))
	require.NoError(t, err)
	rows := randomRows(rng, 10*blockRows, 2, 0, nil)
	for asked := range 12 {
		stop := stopAfter(asked)
		assert.Equal(t, asked >= 10, m.Predict(&stop, columnsOf(rows, 2), Margin, make([]float64, len(rows))), asked)
	}
}

// Features that no split reads need no column.
func TestUnusedFeatures(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	d := randomModel(rng, shape{features: 3, trees: 4, depth: 3, split: 1})
	for _, tree := range d.Learner.Booster.Model.Trees {
		for i := range tree.Features {
			tree.Features[i] = 1
		}
	}
	m, err := Read(d.text(t))
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true, false}, []bool{m.Uses(0), m.Uses(1), m.Uses(2)})
	rows := randomRows(rng, 5, 3, 0, nil)
	columns := columnsOf(rows, 3)
	columns[0], columns[2] = nil, nil
	assert.True(t, m.Predict(nil, columns, Prediction, make([]float64, 5)))
}

func TestPredictAllocatesNothingThatGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	m, err := Read(randomModel(rng, shape{features: 4, trees: 5, depth: 4, split: 1}).text(t))
	require.NoError(t, err)
	for _, count := range []int{1, 100, 10_000} {
		rows := randomRows(rng, count, 4, 0.1, nil)
		columns, out := columnsOf(rows, 4), make([]float64, count)
		m.Predict(nil, columns, Prediction, out)
		assert.LessOrEqual(t, testing.AllocsPerRun(10, func() { m.Predict(nil, columns, Prediction, out) }), 2.0, count)
	}
}

func TestOrderKeyKeepsTheOrder(t *testing.T) {
	numbers := append([]float32{float32(math.Inf(1)), float32(math.Inf(-1))}, edges...)
	for _, a := range numbers {
		assert.Greater(t, orderKey(a), int32(missingLeft))
		assert.Less(t, orderKey(a), int32(missingRight))
		for _, b := range numbers {
			assert.Equal(t, a < b, orderKey(a) < orderKey(b), "%v < %v", a, b)
		}
	}
}
