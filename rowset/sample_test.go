package rowset

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

// sampleRows returns rows with these weights, some of which are nil.
func sampleRows(weights ...any) RowSet {
	b := NewBuilder(nil, &registry.Key{ID: 9, Type: registry.Float}, len(weights)).(*FloatBuilder)
	for _, w := range weights {
		b.AppendAny(w)
	}
	c := b.Column().(*FloatColumn)
	for i, w := range weights {
		if v, ok := w.(float64); ok && (math.IsNaN(v) || math.IsInf(v, 0)) { // builders keep these out
			c.Values[i] = v
			c.Valid.Set(i)
		}
	}
	ids := make([]int64, len(weights))
	for i := range ids {
		ids[i] = int64(i)
	}
	return Dense(NewBatch(ids, c))
}

// randomOf returns a random number for each active row, by its id.
func randomOf(rs RowSet, seed int64) []float64 {
	random := make([]float64, rs.N)
	for pos := range random {
		random[pos] = rand.New(rand.NewPCG(uint64(rs.ID(pos)), uint64(seed))).Float64()
	}
	return random
}

// plainSample draws one row after another, as the definition says.
func plainSample(rs RowSet, weight func(row int32) float64, random []float64, k int) (rows []int32, propensities []float64) {
	left := make([]int, 0, rs.N)
	for pos := range rs.N {
		if w := weight(rs.Row(pos)); w > 0 && !math.IsInf(w, 1) {
			left = append(left, pos)
		}
	}
	for len(left) > 0 && len(rows) < k {
		first, sum := 0, new(big.Float).SetPrec(4000)
		arrival := func(i int) float64 {
			return -math.Log(1-random[left[i]]) / weight(rs.Row(left[i]))
		}
		for i := range left {
			sum.Add(sum, big.NewFloat(weight(rs.Row(left[i]))))
			if arrival(i) < arrival(first) {
				first = i
			}
		}
		row := rs.Row(left[first])
		share, _ := sum.Quo(big.NewFloat(weight(row)), sum).Float64()
		rows, propensities = append(rows, row), append(propensities, share)
		left = slices.Delete(left, first, first+1)
	}
	return rows, propensities
}

func TestSampleAsPlainDraws(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 26))
		weights := make([]any, rng.IntN(200))
		for i := range weights {
			switch rng.IntN(8) {
			case 0:
				weights[i] = []any{nil, 0.0, -1.0, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[rng.IntN(7)]
			case 1:
				weights[i] = []float64{1e-300, 5e-324}[rng.IntN(2)]
			case 2:
				if seed%3 == 0 {
					weights[i] = math.MaxFloat64
					break
				}
				fallthrough
			default:
				weights[i] = rng.ExpFloat64()
			}
		}
		in := sampleRows(weights...)
		if rng.IntN(2) == 0 && len(weights) > 0 {
			for _, row := range rng.Perm(len(weights))[:1+rng.IntN(len(weights))] {
				in.Rows = append(in.Rows, int32(row))
			}
			in.N = len(in.Rows)
		}
		key := []registry.KeyID{9, 9, 0, 77, registry.IDKey}[rng.IntN(5)]
		of := func(row int32) float64 {
			switch key {
			case 0:
				return 1
			case registry.IDKey:
				return float64(row)
			case 9:
				if v, ok := in.Batch.Float(9).Value(int(row)); ok && !math.IsNaN(v) {
					return v
				}
			}
			return 0
		}
		k, random := rng.IntN(1+in.N+2), randomOf(in, int64(seed))
		rows, propensities := plainSample(in, of, random, k)
		out, got, err := Sample(nil, nil, in, key, random, k)
		require.NoError(t, err)
		require.Len(t, out.Rows, len(rows))
		require.NoError(t, out.Validate())
		for i := range rows {
			require.Equal(t, rows[i], out.Rows[i], "seed %d draw %d", seed, i)
			require.Positive(t, got[i])
			require.InEpsilon(t, max(5e-324, propensities[i]), got[i], 1e-9, "seed %d draw %d", seed, i)
		}
	}
}

// Propensities are probabilities: over many seeds, each pair of draws is as frequent as the
// product of its propensities.
func TestSampleDrawsAsItsPropensitiesSay(t *testing.T) {
	const seeds = 60_000
	in := sampleRows(1.0, 2.0, 3.0, 4.0, 0.0)
	pairs, claimed := map[[2]int32]int{}, map[[2]int32]float64{}
	for seed := range int64(seeds) {
		out, propensities, err := Sample(nil, nil, in, 9, randomOf(in, seed), 2)
		require.NoError(t, err)
		pair := [2]int32(out.Rows)
		pairs[pair]++
		claimed[pair] = propensities[0] * propensities[1]
	}
	require.Len(t, pairs, 12)
	square, sum := 0.0, 0.0
	for pair, n := range pairs {
		first, second := float64(pair[0])+1, float64(pair[1])+1
		want := first / 10 * second / (10 - first)
		assert.InDelta(t, want, claimed[pair], 1e-12)
		square += (float64(n) - want*seeds) * (float64(n) - want*seeds) / (want * seeds)
		sum += want
	}
	assert.InDelta(t, 1, sum, 1e-12)
	assert.Less(t, square, 31.3, "chi-square with 11 degrees of freedom exceeds this in 1 of 1,000 runs; the seeds are fixed")
}

// The same rows in another order give the same draws in the same order.
func TestSampleLooksOnlyAtRandomNumbers(t *testing.T) {
	in := sampleRows(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
	want, _, err := Sample(nil, nil, in, 9, randomOf(in, 3), 4)
	require.NoError(t, err)
	in.Rows = []int32{5, 3, 1, 0, 2, 4}
	got, _, err := Sample(nil, nil, in, 9, randomOf(in, 3), 4)
	require.NoError(t, err)
	assert.Equal(t, want.Rows, got.Rows)
}

// BenchmarkSample draws 100 of 10,000 rows. It compares with a plain loop that only computes
// which row comes first.
func BenchmarkSample(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	weights := make([]any, 10_000)
	for i := range weights {
		weights[i] = rng.ExpFloat64()
	}
	in := sampleRows(weights...)
	random := randomOf(in, 1)
	values := in.Batch.Float(9).Values
	b.Run("plain loop", func(b *testing.B) {
		for b.Loop() {
			first := math.Inf(1)
			for i, w := range values {
				first = min(first, -math.Log(1-random[i])/w)
			}
		}
	})
	b.Run("sample", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = Sample(nil, nil, in, 9, random, 100)
		}
	})
}

// TestPropensityIsNotThatOfTheAnswer draws as the example of the page does, and finds its figures.
func TestPropensityIsNotThatOfTheAnswer(t *testing.T) {
	page, err := os.ReadFile("../docs/served-log.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "weights 5 to 1, `sample` with count 3")
	require.True(t, ok)
	shown := regexp.MustCompile(`(?m)^\| (\d) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|$`).FindAllStringSubmatch(table, -1)
	require.Len(t, shown, 5)
	rs := sampleRows(5.0, 4.0, 3.0, 2.0, 1.0)
	const draws = 200_000
	var times, propensity [5]float64
	for seed := range draws {
		out, propensities, err := Sample(nil, nil, rs, 9, randomOf(rs, int64(seed)), 3)
		require.NoError(t, err)
		for i := range out.N {
			times[out.ID(i)]++
			propensity[out.ID(i)] += propensities[i]
		}
	}
	for i, row := range shown {
		in, mean := times[i]/draws, propensity[i]/times[i]
		for column, want := range []float64{float64(5 - i), in, mean, in / mean} {
			got, err := strconv.ParseFloat(row[1+column], 64)
			require.NoError(t, err)
			assert.InEpsilon(t, want, got, 0.015, row[0])
		}
	}
}
