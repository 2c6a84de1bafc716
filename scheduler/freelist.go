package scheduler

import "slices"

// A freeList keeps objects for their next use. It returns the last one first, which the
// processor's cache still holds. One goroutine at a time.
type freeList[E any] struct {
	items []*E
	least int // the fewest items since the last dropIdle
}

// take returns an object of an earlier use, or nil if there is none.
func (f *freeList[E]) take() *E {
	last := len(f.items) - 1
	if last < 0 {
		return nil
	}
	e := f.items[last]
	f.items = f.items[:last]
	f.least = min(f.least, last)
	return e
}

// dropIdle removes and returns at most so many of the objects that were not taken since the last call, beyond those to
// keep. The caller closes what they hold.
func (f *freeList[E]) dropIdle(keep, most int) []*E {
	n := max(min(f.least-keep, most), 0)
	idle := slices.Clone(f.items[:n])
	f.items = slices.Delete(f.items, 0, n)
	f.least = len(f.items)
	return idle
}

// freeMax is how many objects a freeList keeps. Objects beyond that, from a burst, are freed.
const freeMax = 4096

// put keeps an object for its next use. False means that the list is full: the caller closes what
// the object holds.
func (f *freeList[E]) put(e *E) (kept bool) {
	if len(f.items) >= freeMax {
		return false
	}
	f.items = append(f.items, e)
	return true
}
