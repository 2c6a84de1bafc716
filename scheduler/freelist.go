package scheduler

// A freeList keeps objects for their next use. It returns the last one first, which the
// processor's cache still holds. One goroutine at a time.
type freeList[E any] struct{ items []*E }

// take returns an object of an earlier use, or nil if there is none.
func (f *freeList[E]) take() *E {
	last := len(f.items) - 1
	if last < 0 {
		return nil
	}
	e := f.items[last]
	f.items = f.items[:last]
	return e
}

// freeMax is how many objects a freeList keeps. What a burst made beyond that is given back.
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
