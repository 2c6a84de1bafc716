package fileio

import (
	"context"
	"sync"
)

// A Queue hands items to a function, one after the other, on a goroutine that lives as long as there are items. Any goroutine.
type Queue[T any] struct {
	handle func(T)
	max    int

	mu      sync.Mutex
	waiting []entry[T]
	size    int           // of waiting; at most max, unless one item alone is larger
	idle    chan struct{} // closed when the goroutine ends; nil: none runs
	closed  bool
	dropped uint64
}

type entry[T any] struct {
	item T
	size int
}

// NewQueue returns a Queue that holds items of at most that size together, apart from the one in work.
func NewQueue[T any](max int, handle func(T)) *Queue[T] { return &Queue[T]{handle: handle, max: max} }

// Add adds the item that create returns. If there is no room, or after Close, it drops and counts the item without
// calling create, and reports false. An item larger than the queue fits if nothing else waits. Add never waits for
// the function that handles items.
func (q *Queue[T]) Add(size int, create func() T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) > 0 && size > q.max-q.size {
		q.dropped++
		return false
	}
	q.waiting = append(q.waiting, entry[T]{create(), size})
	q.size += size
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.run()
	}
	return true
}

func (q *Queue[T]) run() {
	for {
		item, ok := q.next()
		if !ok {
			return
		}
		q.handle(item)
	}
}

// next takes the first item. It reports false, and the goroutine must end, if there is none.
func (q *Queue[T]) next() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting = nil // the room that a burst took
		close(q.idle)
		q.idle = nil
		return item, false
	}
	first := q.waiting[0]
	q.waiting[0] = entry[T]{}
	q.waiting = q.waiting[1:]
	q.size -= first.size
	return first.item, true
}

// Dropped returns how many items were dropped.
func (q *Queue[T]) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Flush waits until no item is left. The error is the cause of ctx if ctx ended first.
func (q *Queue[T]) Flush(ctx context.Context) error {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close takes no more items, and waits until none is left. If ctx ends first Close drops the items that wait, leaves the one in work to the
// goroutine, and returns the cause of ctx. A second call waits, too.
func (q *Queue[T]) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	err := q.Flush(ctx)
	if err != nil {
		q.mu.Lock()
		q.dropped += uint64(len(q.waiting))
		q.waiting, q.size = nil, 0
		q.mu.Unlock()
	}
	return err
}
