package peers

import "cmp"

// scored is a row with its score.
type scored struct {
	score float64
	row   int // place in the input, which decides among equals
}

// better says which of two rows comes first in a stable descending sort.
func better(a, b scored) bool {
	if c := cmp.Compare(a.score, b.score); c != 0 {
		return c > 0
	}
	return a.row < b.row
}

// topK returns the first k rows of a stable descending sort by score, in order. It rejects
// nearly every row after one comparison. Sorting some thousand rows to keep fifty would cost
// more than all other computing of the plan. Scores must not be NaN; k is at least 1.
func topK(scores []float64, k int) []scored {
	heap := make([]scored, 0, min(k, len(scores))) // the worst on top
	for row, score := range scores {
		s := scored{score, row}
		switch {
		case len(heap) < k:
			heap = append(heap, s)
			for i := len(heap) - 1; i > 0; {
				parent := (i - 1) / 2
				if !better(heap[parent], heap[i]) {
					break
				}
				heap[parent], heap[i] = heap[i], heap[parent]
				i = parent
			}
		case better(s, heap[0]):
			heap[0] = s
			sink(heap)
		}
	}
	for rest := heap; len(rest) > 1; { // heapsort: the worst goes to the end
		last := len(rest) - 1
		rest[0], rest[last] = rest[last], rest[0]
		rest = rest[:last]
		sink(rest)
	}
	return heap
}

// sink moves the top of a heap down to its place.
func sink(heap []scored) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && better(heap[child], heap[right]) {
			child = right
		}
		if !better(heap[i], heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
