package rowset_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

func TestDistinct(t *testing.T) {
	for _, tt := range []struct {
		values, distinct []int64
		at               []int32
	}{
		{nil, nil, nil},
		{[]int64{7}, []int64{7}, nil},
		{[]int64{3, 1, 2}, []int64{3, 1, 2}, nil},
		{[]int64{5, 5, 5}, []int64{5}, []int32{0, 0, 0}},
		{[]int64{0, -1, 0, math.MinInt64, -1, math.MaxInt64}, []int64{0, -1, math.MinInt64, math.MaxInt64}, []int32{0, 1, 0, 2, 1, 3}},
	} {
		distinct, at := rowset.Distinct(nil, tt.values)
		assert.True(t, slices.Equal(tt.distinct, distinct), "%v: %v", tt.values, distinct)
		assert.Equal(t, tt.at, at)
	}
}

// Random lists, against a map.
func TestDistinctOfRandomLists(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		values := make([]int64, r.IntN(3000))
		spread := 1 + r.Int64N(4000)
		for i := range values {
			values[i] = r.Int64N(spread) << uint(r.IntN(2)*40)
		}
		first := make(map[int64]int32)
		var want []int64
		for _, v := range values {
			if _, seen := first[v]; !seen {
				first[v] = int32(len(want))
				want = append(want, v)
			}
		}
		distinct, at := rowset.Distinct(nil, values)
		require.True(t, slices.Equal(want, distinct))
		if len(want) == len(values) {
			require.Nil(t, at)
			continue
		}
		for i, v := range values {
			require.Equal(t, first[v], at[i])
		}
	}
}
