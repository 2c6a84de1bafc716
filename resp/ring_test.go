package resp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRingEqualsASlice compares the ring with a plain slice over random pushes and pops. These
// come in waves, which make the ring wrap, grow while it wraps, and give back its memory.
func TestRingEqualsASlice(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var q ring[part]
		var want []part
		var pushed uint64
		for wave := range 60 {
			// Every tenth wave is high. All other waves end low.
			high := 1 + rng.IntN(40)
			if wave%10 == 9 {
				high = ringKeep + rng.IntN(2*ringKeep)
			}
			for len(want) < high {
				if rng.IntN(3) > 0 || len(want) == 0 {
					pushed++
					s := part{call: new(Call), generation: pushed, to: rng.Int32N(9)}
					q.push(s)
					want = append(want, s)
				} else {
					require.True(t, q.pop() == want[0], "seed %d, wave %d", seed, wave)
					want = want[1:]
				}
			}
			checkRing(t, &q, want)
			for low := rng.IntN(3); len(want) > low; want = want[1:] {
				require.True(t, *q.front() == want[0] && q.pop() == want[0], "seed %d, wave %d", seed, wave)
			}
			checkRing(t, &q, want)
		}
	}
}

// checkRing checks the ring's invariants, and that places without an item hold no call.
func checkRing(t *testing.T, q *ring[part], want []part) {
	t.Helper()
	require.Equal(t, len(want), q.len)
	require.Zero(t, len(q.items)&(len(q.items)-1), "a power of two")
	ring := make([]part, len(q.items))
	for i, s := range want {
		ring[(q.first+i)&(len(ring)-1)] = s
	}
	require.True(t, slices.Equal(ring, q.items), "the items are in their places, and the other places are empty")
}
