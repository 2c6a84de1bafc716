package resp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlotsEqualASlice compares the ring with a plain slice: over random pushes and pops, in
// waves that make it wrap, grow while it wraps, and let go of a large ring.
func TestSlotsEqualASlice(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var q slots
		var want []slot
		var pushed uint64
		for wave := range 60 {
			// Every tenth wave is high, and every wave but those ends low.
			high := 1 + rng.IntN(40)
			if wave%10 == 9 {
				high = slotsKeep + rng.IntN(2*slotsKeep)
			}
			for len(want) < high {
				if rng.IntN(3) > 0 || len(want) == 0 {
					pushed++
					s := slot{call: new(Call), generation: pushed, n: rng.IntN(9)}
					q.push(s)
					want = append(want, s)
				} else {
					require.True(t, q.pop() == want[0], "seed %d, wave %d", seed, wave)
					want = want[1:]
				}
			}
			checkSlots(t, &q, want)
			for low := rng.IntN(3); len(want) > low; want = want[1:] {
				require.True(t, *q.front() == want[0] && q.pop() == want[0], "seed %d, wave %d", seed, wave)
			}
			checkSlots(t, &q, want)
		}
	}
}

// checkSlots checks the ring's invariants, and that the places of no slot hold no call.
func checkSlots(t *testing.T, q *slots, want []slot) {
	t.Helper()
	require.Equal(t, len(want), q.len)
	require.Zero(t, len(q.ring)&(len(q.ring)-1), "a power of two")
	ring := make([]slot, len(q.ring))
	for i, s := range want {
		ring[(q.first+i)&(len(ring)-1)] = s
	}
	require.True(t, slices.Equal(ring, q.ring), "the slots are in their places, and the other places are empty")
}
