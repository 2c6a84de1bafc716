package rowset_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/rowset"
)

func TestTopAgreesWithSortAndTake(t *testing.T) {
	forRandom(t, 1000, func(t *testing.T, rng *rand.Rand) {
		in := rowsettest.RowSet(rng, 3000)
		keys := sortable(in)
		key, desc := keys[rng.IntN(len(keys))], rng.IntN(2) == 0
		k := [...]int{0, 1, 2, 10, 100, in.N / 9, in.N / 5, in.N / 2, in.N, in.N + 1}[rng.IntN(10)]
		top, err := rowset.TopUntil(nil, nil, in, key, desc, k)
		require.NoError(t, err)
		require.NoError(t, top.Validate())
		require.Equal(t, sortedRows(in, key, desc)[:min(k, in.N)], rowsOf(top), "by %d, desc %v, k %d", key, desc, k)
		assert.Same(t, in.Batch, top.Batch)
	})
}

// topInputs are the orders for which a selection does least and most work.
func topInputs(n int) map[string][]float64 {
	rng := rand.New(rand.NewPCG(3, 3))
	inputs := map[string][]float64{}
	for name, value := range map[string]func(i int) float64{
		"random":         func(int) float64 { return rng.Float64() },
		"ascending":      func(i int) float64 { return float64(i) },
		"descending":     func(i int) float64 { return -float64(i) },
		"all equal":      func(int) float64 { return 1 },
		"signed zero":    func(i int) float64 { return math.Copysign(0, float64(i%3-1)) },
		"three values":   func(i int) float64 { return float64(i * 7919 % 3) },
		"there and back": func(i int) float64 { return math.Abs(float64(i) - 1500) },
	} {
		values := make([]float64, n)
		for i := range values {
			values[i] = value(i)
		}
		inputs[name] = values
	}
	return inputs
}

// A sample finds 0.0 as the limit of a descending order. The next key belongs to -0.0, which no
// row has.
func TestTopOfZeros(t *testing.T) {
	const n, k = 1_000, 10
	for _, zero := range []float64{0, math.Copysign(0, -1)} {
		for _, first := range []float64{-1, 1} {
			values := slices.Repeat([]float64{zero}, n)
			values[0] = first
			in := rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 1001, Values: values}))
			for _, desc := range []bool{true, false} {
				top, err := rowset.TopUntil(nil, nil, in, 1001, desc, k)
				require.NoError(t, err)
				require.Equal(t, sortedRows(in, 1001, desc)[:k], rowsOf(top), "%v first, desc %v", first, desc)
			}
		}
	}
}

// Inputs are so long that the buffer is cut many times.
func TestTopOfLongInputs(t *testing.T) {
	const n = 20_000
	for name, values := range topInputs(n) {
		t.Run(name, func(t *testing.T) {
			valid := rowset.NewBitmap(n)
			for i := range n {
				if i%7 != 0 {
					valid.Set(i)
				}
			}
			for _, valid := range []rowset.Bitmap{nil, valid} {
				in := rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 2001, Values: values, Valid: valid}))
				for _, k := range []int{1, 10, 1000, n/8 - 1} {
					for _, desc := range []bool{false, true} {
						top, err := rowset.TopUntil(nil, nil, in, 2001, desc, k)
						require.NoError(t, err)
						want, err := rowset.Sort(nil, nil, in, 2001, desc)
						require.NoError(t, err)
						require.Equal(t, rowsOf(rowset.Take(want, k)), rowsOf(top), "k %d, desc %v", k, desc)
					}
				}
			}
		})
	}
}

func TestTopStops(t *testing.T) {
	const n = 100_000
	in := rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 2001, Values: make([]float64, n)}))
	for _, k := range []int{10, n / 2} {
		_, err := rowset.TopUntil(stopAtOnce{}, nil, in, 2001, true, k)
		assert.ErrorIs(t, err, rowset.ErrStopped, k)
	}
}

type stopAtOnce struct{}

func (stopAtOnce) Cancelled() bool { return true }

// BenchmarkTop times each selection and the full sort, by turns, with memory as an engine lends
// it. "times-faster" is the ratio of their medians.
func BenchmarkTop(b *testing.B) {
	m := lendingMemory(rowset.NewPool(rowset.PoolConfig{}))
	for _, n := range []int{1000, 10_000, 100_000} {
		for name, values := range topInputs(n) {
			all := rowset.Dense(rowset.NewBatch(make([]int64, n), &rowset.FloatColumn{Key: 2001, Values: values}))
			filtered := all
			for row := 1; row < n; row++ {
				filtered.Rows = append(filtered.Rows, int32(row))
			}
			filtered.N = len(filtered.Rows)
			for shape, in := range map[string]rowset.RowSet{"dense": all, "filtered": filtered} {
				for _, k := range []int{10, n / 10, n / 2} {
					b.Run(fmt.Sprintf("rows=%d/%s/%s/k=%d", n, name, shape, k), func(b *testing.B) {
						var full, top []time.Duration
						sort := func() {
							start := time.Now()
							_, _ = rowset.Sort(nil, m, in, 2001, true)
							full = append(full, time.Since(start))
							m.Release(nil)
						}
						for b.Loop() {
							if len(full)%2 == 0 { // neither always comes first
								sort()
							}
							start := time.Now()
							_, _ = rowset.TopUntil(nil, m, in, 2001, true, k)
							top = append(top, time.Since(start))
							m.Release(nil)
							if len(full) < len(top) {
								sort()
							}
						}
						slices.Sort(full)
						slices.Sort(top)
						b.ReportMetric(float64(top[b.N/2])/1000, "top-µs")
						b.ReportMetric(float64(full[b.N/2])/float64(top[b.N/2]), "times-faster")
					})
				}
			}
		}
	}
}
