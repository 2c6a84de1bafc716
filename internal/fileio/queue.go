package fileio

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Queue hands items to a function, one after the other, on a goroutine that lives as long as there are items. Any goroutine.
type Queue[T any] struct {
	handle func(T)
	rest   func()        // nil: items are handled as they come
	wake   chan struct{} // ends a pause; nil without rest
	run    func()        // the method work, bound once
	max    int

	mu      sync.Mutex
	waiting []entry[T] // from first on
	first   int
	size    int           // of waiting; at most max, unless one item alone is larger
	running bool          // the goroutine has not ended
	idle    chan struct{} // closed when the goroutine ends; nil: nobody waits for that
	closed  bool
	dropped uint64
}

type entry[T any] struct {
	item T
	size int
}

// queueKept is the room for items that a queue keeps when it is empty. The room that a burst took is freed.
const queueKept = 1024

// NewQueue returns a Queue that holds items of at most that size together, apart from the one in work.
func NewQueue[T any](max int, handle func(T)) *Queue[T] {
	q := &Queue[T]{handle: handle, max: max}
	q.run = q.work
	return q
}

// An item of a gathering queue waits until there are gatherItems, but for at most gatherFor. To start or wake a goroutine for each item
// costs more than many a function that handles it: a new stack that grows, a timer, a thread that wakes up.
const (
	gatherItems = 16
	gatherFor   = 10 * time.Millisecond
)

// NewGatheringQueue is NewQueue for a function that is cheaper for many items at once: the goroutine handles what has come
// meanwhile, lets other goroutines run between two items, and calls rest.
func NewGatheringQueue[T any](max int, handle func(T), rest func()) *Queue[T] {
	q := NewQueue(max, handle)
	q.rest, q.wake = rest, make(chan struct{}, 1)
	return q
}

// Add adds the item that create returns. If there is no room, or after Close, it drops and counts the item without
// calling create, and reports false. An item larger than the queue fits if nothing else waits. Add never waits for
// the function that handles items.
func (q *Queue[T]) Add(size int, create func() T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.first < len(q.waiting) && size > q.max-q.size {
		q.dropped++
		return false
	}
	if 2*q.first > len(q.waiting) && len(q.waiting) == cap(q.waiting) { // Half of the room is in front: an item moves once.
		n := copy(q.waiting, q.waiting[q.first:])
		clear(q.waiting[n:])
		q.waiting, q.first = q.waiting[:n], 0
	}
	q.waiting = append(q.waiting, entry[T]{create(), size})
	q.size += size
	if !q.running {
		q.running = true
		go q.run()
	}
	if q.rest != nil && (len(q.waiting)-q.first == gatherItems || 2*q.size > q.max) {
		q.endPause()
	}
	return true
}

// endPause has a gathering queue go on at once. It does not wait.
func (q *Queue[T]) endPause() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue[T]) work() {
	for {
		if q.rest != nil {
			pause := time.NewTimer(gatherFor)
			select {
			case <-q.wake:
			case <-pause.C:
			}
			pause.Stop()
		}
		for item, ok := q.next(); ok; item, ok = q.next() {
			q.handle(item)
			if q.rest != nil {
				runtime.Gosched()
			}
		}
		if q.rest != nil {
			q.rest()
		}
		if q.end() {
			return
		}
	}
}

// next takes the first item, if there is one.
func (q *Queue[T]) next() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == len(q.waiting) {
		return item, false
	}
	first := q.waiting[q.first]
	q.waiting[q.first] = entry[T]{}
	q.first++
	q.size -= first.size
	return first.item, true
}

// end reports whether nothing waits, and the goroutine must end.
func (q *Queue[T]) end() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first < len(q.waiting) {
		return false
	}
	if q.waiting, q.first = q.waiting[:0], 0; cap(q.waiting) > queueKept {
		q.waiting = nil
	}
	q.running = false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	return true
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
	if q.running && q.idle == nil {
		q.idle = make(chan struct{})
	}
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
	if q.rest != nil {
		q.endPause()
	}
	err := q.Flush(ctx)
	if err != nil {
		q.mu.Lock()
		q.dropped += uint64(len(q.waiting) - q.first)
		q.waiting, q.first, q.size = nil, 0, 0
		q.mu.Unlock()
	}
	return err
}
