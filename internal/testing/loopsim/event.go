package loopsim

import "github.com/rankd/rankd/loop/clock"

// event happens outside the loop. Loop only.
type event struct {
	at  clock.Time
	tie uint32 // random; orders events of one instant
	seq uint64 // number of the call of At; orders the rest
	fn  func()
}

func (e *event) before(f *event) bool {
	switch {
	case e.at != f.at:
		return e.at < f.at
	case e.tie != f.tie:
		return e.tie < f.tie
	default:
		return e.seq < f.seq
	}
}

// eventHeap is a binary min-heap. Invariant: no event is before its parent.
type eventHeap []event

func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
}

func (h *eventHeap) pop() event {
	s := *h
	first, end := s[0], len(s)-1
	moved := s[end]
	s[end] = event{}
	s = s[:end]
	*h = s
	if end == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= end {
			break
		}
		if child+1 < end && s[child+1].before(&s[child]) {
			child++
		}
		if !s[child].before(&moved) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = moved
	return first
}
