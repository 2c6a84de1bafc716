package loop

import "github.com/rankd/rankd/loop/clock"

// timerEntry holds a timer's sort key beside the timer, so that a comparison follows no
// pointers.
type timerEntry struct {
	due   clock.Time
	seq   uint64
	timer *Timer
}

func (e *timerEntry) before(f *timerEntry) bool {
	return e.due < f.due || e.due == f.due && e.seq < f.seq
}

// timerHeap is a 4-ary min-heap. It has half the levels of a binary heap, and the four
// children that a step down compares lie side by side. Loop only.
// Invariants: no entry is before its parent; entries[i].timer.pos == i.
type timerHeap struct{ entries []timerEntry }

const arity = 4

func (h *timerHeap) len() int { return len(h.entries) }

// first returns the due time of the earliest timer, 0 if there is none.
func (h *timerHeap) first() clock.Time {
	if len(h.entries) == 0 {
		return 0
	}
	return h.entries[0].due
}

// last returns the last timer of the array, the cheapest one to remove.
func (h *timerHeap) last() *Timer { return h.entries[len(h.entries)-1].timer }

func (h *timerHeap) push(e timerEntry) {
	h.entries = append(h.entries, e)
	h.up(len(h.entries)-1, e)
}

// pop removes and returns the earliest timer.
func (h *timerHeap) pop() *Timer {
	t := h.entries[0].timer
	h.remove(0)
	return t
}

// remove removes the entry at pos and makes its timer inactive.
func (h *timerHeap) remove(pos int) {
	h.entries[pos].timer.pos = inactive
	end := len(h.entries) - 1
	moved := h.entries[end]
	h.entries[end] = timerEntry{}
	h.entries = shrink(h.entries[:end])
	if pos == end {
		return
	}
	if pos > 0 && moved.before(&h.entries[(pos-1)/arity]) {
		h.up(pos, moved)
	} else {
		h.down(pos, moved)
	}
}

// up places e at pos or at one of its ancestors.
func (h *timerHeap) up(pos int, e timerEntry) {
	for pos > 0 {
		parent := (pos - 1) / arity
		if !e.before(&h.entries[parent]) {
			break
		}
		h.set(pos, h.entries[parent])
		pos = parent
	}
	h.set(pos, e)
}

// down places e at pos or at one of its descendants.
func (h *timerHeap) down(pos int, e timerEntry) {
	for {
		child := pos*arity + 1
		if child >= len(h.entries) {
			break
		}
		least := child
		for c := child + 1; c < min(child+arity, len(h.entries)); c++ {
			if h.entries[c].before(&h.entries[least]) {
				least = c
			}
		}
		if !h.entries[least].before(&e) {
			break
		}
		h.set(pos, h.entries[least])
		pos = least
	}
	h.set(pos, e)
}

func (h *timerHeap) set(pos int, e timerEntry) {
	h.entries[pos] = e
	e.timer.pos = pos
}
