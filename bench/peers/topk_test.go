package peers

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTopKIsAPrefixOfTheStableSort compares with sorting everything. Many of the scores are
// equal.
func TestTopKIsAPrefixOfTheStableSort(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	for range 2000 {
		scores := make([]float64, random.IntN(60))
		for i := range scores {
			scores[i] = float64(random.IntN(20)) - 10
		}
		all := make([]scored, len(scores))
		for i, s := range scores {
			all[i] = scored{s, i}
		}
		slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		k := 1 + random.IntN(70)
		require.Equal(t, all[:min(k, len(all))], topK(scores, k), "seed %d: %v, k %d", seed, scores, k)
	}
}

func TestTopKOfNothing(t *testing.T) {
	require.Empty(t, topK(nil, 5))
}
