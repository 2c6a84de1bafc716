package trace

import "sync/atomic"

// A Budget bounds the events that the requests in flight of one engine hold together. Any goroutine.
type Budget struct {
	left atomic.Int64
}

// DefaultEvents is how many events the requests in flight of an engine hold together, at most: 32 MiB. A request
// of five nodes takes some 40.
const DefaultEvents = 1 << 20

// requestEvents is how many events one request holds, at most: 2 MiB.
const requestEvents = 1 << 16

// budgetChunk is how many events a Recorder takes from its Budget at once.
const budgetChunk = 64

// NewBudget returns a budget of that many events; zero means DefaultEvents.
func NewBudget(events int) *Budget {
	if events <= 0 {
		events = DefaultEvents
	}
	b := new(Budget)
	b.left.Store(int64(events))
	return b
}

// take reports whether the budget had another chunk.
func (b *Budget) take() bool {
	if b.left.Add(-budgetChunk) >= 0 {
		return true
	}
	b.left.Add(budgetChunk)
	return false
}

// Unused reports whether a budget of that many events (zero means DefaultEvents) has them all.
func (b *Budget) Unused(events int) bool {
	if events <= 0 {
		events = DefaultEvents
	}
	return b.left.Load() == int64(events)
}

// give returns what was taken.
func (b *Budget) give(events int) { b.left.Add(int64(events)) }
