package fileio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Records come back sorted, from any number of runs, with a bounded amount of them in memory, and no file stays.
func TestSorter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 10, 1000, 20_000} {
		s := NewSorter(t.TempDir(), 4<<10, bytes.Compare)
		s.runsMax = 8
		var want [][]byte
		for range n {
			r := fmt.Appendf(nil, "%d", rng.IntN(n*10))
			if n == 1000 { // A record is not a file: nobody takes its first bytes for a mark.
				r = append([]byte(ByteOrderMark), r...)
			}
			want = append(want, r)
			require.NoError(t, s.Add(r))
			require.Less(t, s.size, s.max)
			require.Less(t, len(s.runs), 3*s.runsMax)
		}
		if n > 10_000 {
			assert.Equal(t, 2, s.runs[0].level, "runs are merged more than once")
		}
		slices.SortFunc(want, bytes.Compare)
		var got [][]byte
		require.NoError(t, s.Each(func(r []byte) error { got = append(got, bytes.Clone(r)); return nil }))
		require.Equal(t, want, got)
		s.Close()
		left, err := os.ReadDir(s.folder)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}

// A run that cannot be read or written is an error, and none is lost in silence.
func TestARunThatCannotBeRead(t *testing.T) {
	s := NewSorter(t.TempDir(), 1, bytes.Compare)
	require.NoError(t, s.Add([]byte("2")))
	require.NoError(t, s.Add([]byte("1")))
	s.Close()
	require.ErrorIs(t, s.Each(func([]byte) error { return nil }), os.ErrClosed)
	s = NewSorter(t.TempDir()+"/none", 1, bytes.Compare)
	require.ErrorIs(t, s.Add([]byte("1")), os.ErrNotExist)
}
