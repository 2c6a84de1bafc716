package rowset

import "math/bits"

// Bitmap has one bit per row, row i in bit i%64 of word i/64. A nil Bitmap
// means "all rows valid". Bits past the last row are undefined.
// Any goroutine may read it; only its builder changes it.
type Bitmap []uint64

// BitmapWords returns the number of words of a Bitmap of n rows.
func BitmapWords(n int) int { return (n + 63) / 64 }

// NewBitmap returns a Bitmap of n rows, all invalid.
func NewBitmap(n int) Bitmap { return make(Bitmap, BitmapWords(n)) }

// NewBitmapOf returns a Bitmap of n rows, of which the first valid rows are valid.
// 0 <= valid <= n.
func NewBitmapOf(n, valid int) Bitmap {
	m := NewBitmap(n)
	m.SetRange(0, valid)
	return m
}

// Get reports whether row i is valid. Every row of a nil Bitmap is.
func (m Bitmap) Get(i int) bool { return m == nil || m[uint(i)/64]>>(uint(i)%64)&1 != 0 }

// bit is Get as a 1 or a 0.
func (m Bitmap) bit(i int32) uint64 {
	if m == nil {
		return 1
	}
	return m[uint(i)/64] >> (uint(i) % 64) & 1
}

// Set makes row i valid. Only for a Bitmap being built; it must not be nil.
func (m Bitmap) Set(i int) { m[uint(i)/64] |= 1 << (uint(i) % 64) }

// Clear makes row i invalid. Only for a Bitmap being built; it must not be nil.
func (m Bitmap) Clear(i int) { m[uint(i)/64] &^= 1 << (uint(i) % 64) }

// SetRange makes the rows [lo, hi) valid. Only for a Bitmap being built; it
// must not be nil.
func (m Bitmap) SetRange(lo, hi int) {
	if lo >= hi {
		return
	}
	first, last := lo/64, (hi-1)/64
	from, to := ^uint64(0)<<(uint(lo)%64), ^uint64(0)>>(63-uint(hi-1)%64)
	if first == last {
		m[first] |= from & to
		return
	}
	m[first] |= from
	for i := first + 1; i < last; i++ {
		m[i] = ^uint64(0)
	}
	m[last] |= to
}

// Count returns how many of the first n rows are valid.
func (m Bitmap) Count(n int) int {
	if m == nil {
		return n
	}
	count, full := 0, n/64
	for _, w := range m[:full] {
		count += bits.OnesCount64(w)
	}
	if rest := uint(n) % 64; rest != 0 {
		count += bits.OnesCount64(m[full] << (64 - rest))
	}
	return count
}

// All reports whether the first n rows are all valid.
func (m Bitmap) All(n int) bool { return m.Count(n) == n }

// copyRange copies the first n bits of src to m, from position at on. Those bits of m
// must be clear before. A nil src counts as all ones.
func (m Bitmap) copyRange(at int, src Bitmap, n int) {
	if src == nil {
		m.SetRange(at, at+n)
		return
	}
	shift := uint(at) % 64
	for i := 0; i < n; i += 64 {
		w := src[i/64]
		if left := n - i; left < 64 {
			w &= 1<<uint(left) - 1
		}
		k := (at + i) / 64
		m[k] |= w << shift
		if high := w >> (64 - shift); high != 0 { // a shift by 64 gives 0
			m[k+1] |= high
		}
	}
}
