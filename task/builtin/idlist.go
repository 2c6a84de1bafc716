package builtin

import (
	"slices"

	"github.com/rankd/rankd/task"
)

// idChunk is how many ids a chunk of an idList has, if the list is long: 256 KiB.
const idChunk = 32 << 10

// An idList gathers ids. A long list is a list of chunks, so that growing it copies nothing and never allocates much
// at once: each growth of one slice with five million ids would block the loop for many milliseconds. Only the body
// uses it.
type idList struct {
	full [][]int64 // in order
	last []int64   // takes what is added
	len  int       // of full
}

// grow makes room for n more ids.
func (l *idList) grow(c *task.Ctx, n int) {
	switch {
	case l.last == nil && n <= idChunk: // of most nodes the whole list
		l.last = make([]int64, 0, n)
	case len(l.last)+n <= cap(l.last):
	case len(l.last)+n <= idChunk:
		l.last = slices.Grow(l.last, n)
	default:
		if len(l.last) > 0 {
			l.full, l.len = append(l.full, l.last), l.len+len(l.last)
		}
		l.last = c.Memory.IDs(max(n, idChunk))[:0]
	}
}

// expect makes room for n more ids, and as many for each of more keys if the list is new.
func (l *idList) expect(c *task.Ctx, n, more int) {
	if l.last == nil {
		n = max(n, min(n*(more+1), idChunk))
	}
	l.grow(c, n)
}

// join returns all ids in one slice.
func (l *idList) join(c *task.Ctx) []int64 {
	if len(l.full) == 0 {
		return l.last
	}
	ids := c.Memory.IDs(l.len + len(l.last))
	rest := ids
	for _, chunk := range append(l.full, l.last) {
		rest = rest[copy(rest, chunk):]
	}
	return ids
}
