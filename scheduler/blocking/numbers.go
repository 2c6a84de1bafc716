package blocking

import "sync"

// numbers gives each worker that is busy a number of its own, the lowest that is free. Any goroutine.
type numbers struct {
	mu   sync.Mutex
	busy []bool
}

func (n *numbers) take() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, busy := range n.busy {
		if !busy {
			n.busy[i] = true
			return i
		}
	}
	n.busy = append(n.busy, true)
	return len(n.busy) - 1
}

func (n *numbers) give(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy[number] = false
}
