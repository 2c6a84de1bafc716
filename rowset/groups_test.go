package rowset_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Groups numbers rows in the same way as a map of the values written as text.
func TestGroups(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		in := rowsettest.RowSet(rng, 400)
		for _, key := range []registry.KeyID{registry.IDKey, 1001, 3001, 5001, 5101, 9} {
			of, n, err := rowset.Groups(nil, nil, in, key)
			require.NoError(t, err)
			known, next := map[string]int32{}, int32(0)
			for pos := range in.Len() {
				text, ok := rowsettest.Field(in.Batch, key, int(in.Row(pos)))
				if key == registry.IDKey {
					text, ok = strconv.FormatInt(in.ID(pos), 10), true
				} else if text == "-0" {
					text = "0"
				}
				want, seen := known[text]
				if !ok || !seen {
					want = next
					next++
				}
				if ok {
					known[text] = want
				}
				require.Equal(t, want, of[pos], "seed %d key %d position %d", seed, key, pos)
			}
			require.Equal(t, int(next), n)
		}
	}
	_, _, err := rowset.Groups(nil, nil, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.SetColumn{Key: 5201, Codes: []int32{-1}, Dict: &rowset.SetDict{Offsets: []int32{0}, Strings: new(rowset.Dict)}})), 5201)
	assert.ErrorAs(t, err, new(*rowset.KeyTypeError))
}
