package latency_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/loop/latency"
)

func TestBucketsCountWhatIsShorter(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var h latency.Histogram
	var want latency.Buckets
	for i := range 50_000 {
		d := time.Duration(rng.Int64N(1 << (1 + rng.IntN(34))))
		if i%10 == 0 {
			d = latency.Bound(rng.IntN(len(want.Below))) - time.Duration(rng.IntN(2)) // at a bound, and right before it
		}
		h.Add(d)
		want.Count++
		want.Sum += d
		for b := range want.Below {
			if d < latency.Bound(b) {
				want.Below[b]++
			}
		}
	}
	got := h.Buckets()
	assert.InEpsilon(t, want.Sum, got.Sum, 1.0/16)
	got.Sum = want.Sum
	assert.Equal(t, want, got)
	assert.Equal(t, latency.Buckets{}, new(latency.Histogram).Buckets())
}
