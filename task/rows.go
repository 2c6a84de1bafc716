package task

import (
	"errors"
	"fmt"
	"math"

	"github.com/rankd/rankd/rowset"
)

// Bounds of the rows that the nodes of one request make together.
const (
	// DefaultMaxRows is the bound unless the engine is given another one: 10 M ids take 80 MB.
	DefaultMaxRows = 10_000_000
	// MaxRowsLimit is the highest bound: an int32 numbers the rows of a batch.
	MaxRowsLimit = math.MaxInt32
)

// ErrTooManyRows: the nodes of a request would make more rows than its bound allows.
var ErrTooManyRows = errors.New("too many rows")

// RowsError says how many rows a request's bound refused. It matches ErrTooManyRows. Immutable.
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

// MakeRows counts n rows, at least 0, of a batch that the body is about to make. A body calls it before it allocates
// memory for them. The error is a *RowsError: the request may not make so many. If a body does not count its rows,
// the engine does.
func (c *Ctx) MakeRows(n int64) error {
	c.counted += n
	rows := c.env.rows()
	if rows == nil {
		return nil
	}
	if left, ok := rows.Take(n); !ok {
		return &RowsError{Rows: n, Left: left, Limit: rows.Limit()}
	}
	return nil
}

// RowsLeft returns how many rows the request may still make. Nodes that run at the same
// time may take them first. The number never grows. In a request that is recorded or replayed it is how many rows a
// request may make: what a node asks for must not depend on what others have made by then.
func (c *Ctx) RowsLeft() int64 {
	rows := c.env.rows()
	switch {
	case rows == nil:
		return MaxRowsLimit
	case c.tape() != nil:
		return rows.Limit()
	}
	return rows.Left()
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
	return isAmong(b, c.Inputs) || isAmong(b, c.Refs)
}

func isAmong(b *rowset.Batch, given []rowset.RowSet) bool {
	for i := range given {
		if given[i].Batch == b {
			return true
		}
	}
	return false
}
