package cpupool

// queue is a FIFO of jobs, linked through the jobs themselves. A cancelled job can leave
// from the middle at once, and an empty queue holds no memory. Guarded by Pool.mu.
type queue struct {
	first, last *Job
	len         int
}

func (q *queue) push(j *Job) {
	j.prev, j.queued = q.last, true
	if q.last == nil {
		q.first = j
	} else {
		q.last.next = j
	}
	q.last = j
	q.len++
}

// pop removes the oldest job. It returns nil if there is none.
func (q *queue) pop() *Job {
	j := q.first
	if j != nil {
		q.remove(j)
	}
	return j
}

// remove removes j, which must be queued.
func (q *queue) remove(j *Job) {
	if j.prev == nil {
		q.first = j.next
	} else {
		j.prev.next = j.next
	}
	if j.next == nil {
		q.last = j.prev
	} else {
		j.next.prev = j.prev
	}
	j.prev, j.next, j.queued = nil, nil, false
	q.len--
}
