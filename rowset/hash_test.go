package rowset_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/rowset"
)

// The bits of hashes never change. These were computed in Python from the definitions.
func TestHashVectors(t *testing.T) {
	for _, c := range []struct {
		v, seed int64
		want    uint64
		unit    float64
	}{
		{0, 0, 0xa706dd2f4d197e6f, 0.6524484863740322},
		{1, 0, 0x8b4fda8c892b50e, 0.03401170130434639},
		{0, 1, 0x5e41ab087439611e, 0.36818951565166946},
		{-1, 7, 0xa9a96b699dc41760, 0.6627413876392583},
		{math.MaxInt64, math.MinInt64, 0x5f3a13a1b8fc68fe, 0.3719799299078531},
		{1234567, 42, 0x17b64b64210c082, 0.005789083954428342},
	} {
		assert.Equal(t, c.want, rowset.HashInt(c.v, c.seed))
		assert.Equal(t, c.unit, rowset.HashUnit(c.want))
	}
	for _, c := range []struct {
		text string
		seed int64
		want uint64
	}{
		{"", 0, 0x5b21f68ffa77f14c}, {"a", 0, 0x565e25cbdb1b0d6e}, {"sku-1", 42, 0xffb913ffafdc6d18}, {"é", 1, 0x6a765b30ce704912},
	} {
		assert.Equal(t, c.want, rowset.HashText(c.text, c.seed))
	}
	assert.Equal(t, uint64(0xb1f5c27889a96d08), rowset.HashInt(rowset.NumberBits(0.5), 42))
	assert.Equal(t, uint64(0x5c3cb6c850d25751), rowset.HashText("u-17", rowset.TextBits("2026-11-23")))
	for _, c := range []struct {
		x    float64
		want int64
	}{{3, 3}, {math.Copysign(0, -1), 0}, {-1 << 63, math.MinInt64}, {1 << 63, int64(math.Float64bits(1 << 63))}, {0.5, 0x3fe0000000000000}} {
		assert.Equal(t, c.want, rowset.NumberBits(c.x), c.x)
	}
	assert.Less(t, rowset.HashUnit(math.MaxUint64), 1.0)
	assert.Zero(t, rowset.HashUnit(1<<11-1))
}

// A change of any bit of the value or the seed changes half of the bits of the hash.
func TestHashChangesHalfOfItsBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 4))
	const values = 400
	for bit := range 64 {
		byValue, bySeed := 0, 0
		for range values {
			v, seed := int64(rng.Uint64()), int64(rng.Uint64())
			h := rowset.HashInt(v, seed)
			byValue += popCount(h ^ rowset.HashInt(v^1<<bit, seed))
			bySeed += popCount(h ^ rowset.HashInt(v, seed^1<<bit))
		}
		assert.InDelta(t, 32, float64(byValue)/values, 1.5, "bit %d", bit)
		assert.InDelta(t, 32, float64(bySeed)/values, 1.5, "bit %d", bit)
	}
}

func popCount(x uint64) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}
