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

func (f *freeList[E]) put(e *E) { f.items = append(f.items, e) }
