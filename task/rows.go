package task

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/rankd/rankd/rowset"
)

// Bounds of the rows that the nodes of one request make together.
const (
	// DefaultMaxRows holds unless the engine is given another bound: 10 M ids are 80 MB.
	DefaultMaxRows = 10_000_000
	// MaxRowsLimit is the highest bound: an int32 numbers the rows of a batch.
	MaxRowsLimit = math.MaxInt32
)

// ErrTooManyRows: the nodes of a request would make more rows than its bound allows.
var ErrTooManyRows = errors.New("too many rows")

// RowsError says which rows a request's bound refused. It matches ErrTooManyRows. Immutable.
type RowsError struct {
	Rows  int64 // rows that the node was about to make
	Left  int64 // rows that the request could still make
	Limit int64 // rows that all its nodes may make together
}

// Error implements error. It names the flag that sets the bound.
func (e *RowsError) Error() string {
	return fmt.Sprintf("cannot make %d rows: %d are left of the %d that the nodes of a request may make together (max_rows)",
		e.Rows, e.Left, e.Limit)
}

// Unwrap returns ErrTooManyRows.
func (e *RowsError) Unwrap() error { return ErrTooManyRows }

// A RowBudget holds the rows that the nodes of one request may still make. Each new batch
// takes all its rows from it, active or not, whatever its columns. Sources, fan-outs, concat
// and vm make new batches; vm's column is as long as the batch. A selection over an existing
// batch (filter, sort, take) takes none. Nothing returns rows once taken.
//
// Any goroutine, except Refill: the owner, while no body has it.
type RowBudget struct {
	limit int64
	left  atomic.Int64 // never below zero: a refusal takes nothing
}

// NewRowBudget returns a full budget of that many rows: DefaultMaxRows if limit is not
// positive, MaxRowsLimit at most.
func NewRowBudget(limit int) *RowBudget {
	if limit <= 0 {
		limit = DefaultMaxRows
	}
	b := &RowBudget{limit: int64(min(limit, MaxRowsLimit))}
	b.Refill()
	return b
}

// Refill makes b ready for another request.
func (b *RowBudget) Refill() { b.left.Store(b.limit) }

// Left returns how many rows are left. Bodies may take them at any time.
func (b *RowBudget) Left() int64 { return b.left.Load() }

// take takes n rows, at least 0, or none of them. A refusal to one node leaves the rows to the
// others: each refused node asked for more rows than were left, and none is refused zero rows.
func (b *RowBudget) take(n int64) error {
	for {
		left := b.left.Load()
		if n > left {
			return &RowsError{Rows: n, Left: left, Limit: b.limit}
		}
		if b.left.CompareAndSwap(left, left-n) {
			return nil
		}
	}
}

// MakeRows counts n rows, at least 0, of a batch that the body is about to make. A body calls
// it before it allocates memory for them. The error is a *RowsError: the request may not make
// so many. Invoke counts the rows that a body has made and not counted.
func (c *Ctx) MakeRows(n int64) error {
	c.counted += n
	if c.Rows == nil {
		return nil
	}
	return c.Rows.take(n)
}

// RowsLeft returns how many rows the request may still make. Nodes that run at the same
// time may take them first. The number never grows.
func (c *Ctx) RowsLeft() int64 {
	if c.Rows == nil {
		return MaxRowsLimit
	}
	return c.Rows.Left()
}

// countResult counts the rows of a new batch that the body has not counted itself.
func (c *Ctx) countResult(out rowset.RowSet) error {
	if out.Batch == nil || c.has(out.Batch) {
		return nil
	}
	if n := int64(out.Batch.Len()) - c.counted; n > 0 {
		return c.MakeRows(n)
	}
	return nil
}

// has reports whether b is the batch of an input or a node reference.
func (c *Ctx) has(b *rowset.Batch) bool {
	for _, given := range [...][]rowset.RowSet{c.Inputs, c.Refs} {
		for i := range given {
			if given[i].Batch == b {
				return true
			}
		}
	}
	return false
}
