package resp

// ringKeep is the largest ring that an empty FIFO keeps: enough for the default MaxInflight.
const ringKeep = 1024

// A ring is a FIFO in a slice that doubles when it is full. Loop only.
type ring[T any] struct {
	items []T // its length is 0 or a power of two
	first int // index of the oldest
	len   int
}

func (q *ring[T]) push(item T) {
	if q.len == len(q.items) {
		items := make([]T, max(16, 2*len(q.items)))
		n := copy(items, q.items[q.first:])
		copy(items[n:], q.items[:q.first])
		q.items, q.first = items, 0
	}
	q.items[(q.first+q.len)&(len(q.items)-1)] = item
	q.len++
}

// at returns item i, counted from the oldest. The pointer is valid until the next push or pop.
func (q *ring[T]) at(i int) *T { return &q.items[(q.first+i)&(len(q.items)-1)] }

// front returns the oldest item, which must exist, as at does.
func (q *ring[T]) front() *T { return &q.items[q.first] }

func (q *ring[T]) pop() T {
	item := q.items[q.first]
	var none T
	q.items[q.first] = none
	q.first = (q.first + 1) & (len(q.items) - 1)
	q.len--
	if q.len == 0 && len(q.items) > ringKeep {
		q.items, q.first = nil, 0
	}
	return item
}
