package rowset

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// bitsOf reads the first n bits.
func bitsOf(m Bitmap, n int) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = m.Get(i)
	}
	return out
}

func TestBitmapAgreesWithBools(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rng.IntN(200)
		m, want := NewBitmap(n), make([]bool, n)
		for range 4 {
			lo := rng.IntN(n + 1)
			hi := lo + rng.IntN(n-lo+1)
			m.SetRange(lo, hi)
			for i := lo; i < hi; i++ {
				want[i] = true
			}
			i := rng.IntN(n)
			m.Clear(i)
			want[i] = false
			i = rng.IntN(n)
			m.Set(i)
			want[i] = true
		}
		assert.Equal(t, want, bitsOf(m, n))
		upTo, count := rng.IntN(n+1), 0
		for _, b := range want[:upTo] {
			if b {
				count++
			}
		}
		assert.Equal(t, count, m.Count(upTo))
		assert.Equal(t, count == upTo, m.All(upTo))
	}
}

func TestNilBitmapIsAllValid(t *testing.T) {
	var m Bitmap
	assert.True(t, m.Get(12345))
	assert.Equal(t, 70, m.Count(70))
	assert.True(t, m.All(70))
}

func TestNewBitmapOf(t *testing.T) {
	for _, c := range []struct{ n, valid int }{{0, 0}, {1, 0}, {1, 1}, {64, 64}, {65, 64}, {65, 65}, {300, 129}} {
		m := NewBitmapOf(c.n, c.valid)
		assert.Len(t, m, BitmapWords(c.n))
		assert.Equal(t, c.valid, m.Count(c.n))
		assert.True(t, m.All(c.valid))
	}
}

func TestCopyRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		at, n, after := rng.IntN(140), rng.IntN(140), rng.IntN(70)
		src := NewBitmap(n)
		for i := range src {
			src[i] = rng.Uint64() // stray bits past the end, too
		}
		if rng.IntN(4) == 0 {
			src = nil
		}
		m := NewBitmap(at + n + after)
		m.copyRange(at, src, n)
		want := make([]bool, at+n+after)
		copy(want[at:], bitsOf(src, n))
		assert.Equal(t, want, bitsOf(m, len(want)), "at %d, n %d", at, n)
	}
}
