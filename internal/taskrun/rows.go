package taskrun

import "sync/atomic"

// A RowBudget holds the rows that the nodes of one request may still make. Each new batch takes all its rows from it,
// active or not, whatever its columns. Sources, fan-outs, concat and vm make new batches; vm's column is as long as
// the batch. A selection over an existing batch (filter, sort, take) takes none. Rows once taken stay taken.
//
// Any goroutine, except Refill: the owner, while no body has it.
type RowBudget struct {
	limit int64
	left  atomic.Int64 // never below zero: a refusal takes nothing
}

// NewRowBudget returns a full budget of that many rows.
func NewRowBudget(limit int64) *RowBudget {
	b := &RowBudget{limit: limit}
	b.Refill()
	return b
}

// Refill makes b ready for another request.
func (b *RowBudget) Refill() { b.left.Store(b.limit) }

// Limit returns how many rows a full budget has.
func (b *RowBudget) Limit() int64 { return b.limit }

// Left returns how many rows are left. Bodies may take them at any time.
func (b *RowBudget) Left() int64 { return b.left.Load() }

// Take takes n rows, at least 0. If fewer are left it takes none, and returns false and how many were left. Other
// nodes can still take these: a node is refused only if it asks for more rows than are left.
func (b *RowBudget) Take(n int64) (left int64, ok bool) {
	for {
		left := b.left.Load()
		if n > left {
			return left, false
		}
		if b.left.CompareAndSwap(left, left-n) {
			return left - n, true
		}
	}
}
