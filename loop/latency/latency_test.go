package latency_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/latency"
)

func TestQuantilesAreAtMostAnEighthTooHigh(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var h, other latency.Histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(1) << rng.IntN(40)
		d += time.Duration(rng.Int64N(int64(d)))
		all = append(all, d)
		if i%2 == 0 {
			h.Add(d)
		} else {
			other.Add(d)
		}
	}
	slices.Sort(all)
	q := latency.Of(&h, &other)
	h.Merge(&other)
	assert.Equal(t, q, latency.Of(&h))
	assert.EqualValues(t, len(all), q.Count)
	assert.Equal(t, all[len(all)-1], q.Max)
	for part, got := range map[int]time.Duration{500: q.P50, 990: q.P99, 999: q.P999} {
		want := all[part*len(all)/1000-1]
		assert.GreaterOrEqual(t, got, want, part)
		assert.LessOrEqual(t, got, want+want/8+1, part)
	}
}

// The quantiles of few durations, some of them long, equal those of hdrhistogram.
func TestQuantilesAreNearestRanks(t *testing.T) {
	const short, long = time.Microsecond, time.Second
	want := hdrhistogram.New(1, int64(time.Hour), 1)
	for n := 1; n <= 250; n++ {
		for ofLong := range min(n, 8) + 1 {
			var h latency.Histogram
			want.Reset()
			for range n - ofLong {
				h.Add(short)
			}
			for range ofLong {
				h.Add(long)
			}
			_ = want.RecordValues(int64(short), int64(n-ofLong))
			_ = want.RecordValues(int64(long), int64(ofLong))
			q := latency.Of(&h)
			for percent, got := range map[float64]time.Duration{50: q.P50, 99: q.P99, 99.9: q.P999} {
				require.Equal(t, time.Duration(want.ValueAtPercentile(percent)) >= long/2, got >= long/2, "%g %% of %d, %d of them long", percent, n, ofLong)
			}
		}
	}
}

func TestHistogramsCountTogether(t *testing.T) {
	var long, short latency.Histogram
	long.Add(time.Second)
	short.Add(time.Millisecond)
	for _, q := range []latency.Quantiles{latency.Of(&long, &short), latency.Of(&short, &long)} {
		assert.EqualValues(t, 2, q.Count)
		assert.Equal(t, time.Second, q.Max)
		assert.Equal(t, time.Second, q.P99)
		assert.InEpsilon(t, time.Millisecond, q.P50, 1./8)
	}
}

func TestQuantilesOfExtremes(t *testing.T) {
	tests := []struct {
		name string
		add  []time.Duration
		want latency.Quantiles
	}{
		{"nothing", nil, latency.Quantiles{}},
		{"zero", []time.Duration{0}, latency.Quantiles{Count: 1}},
		{"negative", []time.Duration{-5}, latency.Quantiles{Count: 1}},
		{"small ones are exact", []time.Duration{3, 3, 3}, latency.Quantiles{Count: 3, P50: 3, P99: 3, P999: 3, Max: 3}},
		{"beyond the last bucket", []time.Duration{1 << 60}, latency.Quantiles{Count: 1, Max: 1 << 60}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h latency.Histogram
			for _, d := range tt.add {
				h.Add(d)
			}
			got := latency.Of(&h)
			if tt.name == "beyond the last bucket" { // which ends somewhere
				assert.Greater(t, got.P50, time.Hour)
				got.P50, got.P99, got.P999 = 0, 0, 0
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	var h latency.Histogram
	for b.Loop() {
		h.Add(12345)
	}
}
