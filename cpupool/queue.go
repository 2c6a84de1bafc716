package cpupool

import "container/heap"

// queue has the jobs that wait for a worker. The job with the earliest Due starts first; among equal ones, the first
// submitted. Only the holder of the pool's mutex touches it.
type queue struct {
	jobs jobHeap
	next uint64 // number of the next submission
}

func (q *queue) Len() int { return len(q.jobs) }

// push adds a job, which is not in the queue.
func (q *queue) push(j *Job) {
	q.next++
	j.number = q.next
	heap.Push(&q.jobs, j)
}

// pop takes the first job out, and returns nil if there is none.
func (q *queue) pop() *Job {
	if len(q.jobs) == 0 {
		return nil
	}
	return heap.Pop(&q.jobs).(*Job)
}

// remove takes a job out. It reports false for one that is not in the queue.
func (q *queue) remove(j *Job) bool {
	if j.place == 0 {
		return false
	}
	heap.Remove(&q.jobs, j.place-1)
	return true
}

// jobHeap implements heap.Interface. Each job knows its place: one more than its index.
type jobHeap []*Job

func (h jobHeap) Len() int { return len(h) }

func (h jobHeap) Less(i, k int) bool {
	if h[i].Due != h[k].Due {
		return h[i].Due < h[k].Due
	}
	return h[i].number < h[k].number
}

func (h jobHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].place, h[k].place = i+1, k+1
}

// Push implements heap.Interface.
func (h *jobHeap) Push(j any) {
	*h = append(*h, j.(*Job))
	j.(*Job).place = len(*h)
}

// Pop implements heap.Interface.
func (h *jobHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last], j.place = nil, 0
	*h = (*h)[:last]
	return j
}
