package builtin

import "slices"

// chunkLen is how many values a chunk has, if there are many: 256 KiB.
const chunkLen = 32 << 10

// chunks gather values. Many of them are a list of chunks, so that growing copies nothing and never allocates much
// at once: each growth of one slice with five million ids would block the loop for many milliseconds. Only the body
// uses it.
type chunks[T int64 | float64] struct {
	full [][]T // in order
	last []T   // takes what is added
	len  int   // of full
}

// grow makes room for n more values. Long slices come from alloc.
func (l *chunks[T]) grow(n int, alloc func(n int) []T) {
	switch {
	case l.last == nil && n <= chunkLen: // of most nodes the whole list
		l.last = make([]T, 0, n)
	case len(l.last)+n <= cap(l.last):
	case len(l.last)+n <= chunkLen:
		l.last = slices.Grow(l.last, n)
	default:
		if len(l.last) > 0 {
			l.full, l.len = append(l.full, l.last), l.len+len(l.last)
		}
		l.last = alloc(max(n, chunkLen))[:0]
	}
}

// expect makes room for n more values, and as many for each of more keys if the list is new.
func (l *chunks[T]) expect(n, more int, alloc func(n int) []T) {
	if l.last == nil {
		n = max(n, min(n*(more+1), chunkLen))
	}
	l.grow(n, alloc)
}

// join returns all values in one slice.
func (l *chunks[T]) join(alloc func(n int) []T) []T {
	if len(l.full) == 0 {
		return l.last
	}
	all := alloc(l.len + len(l.last))
	rest := all
	for _, chunk := range append(l.full, l.last) {
		rest = rest[copy(rest, chunk):]
	}
	return all
}
