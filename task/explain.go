package task

import (
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// This file has the types with which a task explains the rows of a run that is over. See Spec.Explain.

// An Account is what the second run of a node reports about its rows. One goroutine at a time.
type Account struct {
	// From returns the rows of the inputs from which the result's row at that position comes, beginning with the one
	// that gave the row its id. None means that the node made the row. If From is nil, the shape decides: the same
	// position, the same row of the batch, the row appended there, or none for Source and Expand; for other shapes
	// the first row of that id in each input and node reference.
	From func(pos int) []RowAt
	// Reason returns what the node did to one row: to a row of the result, or to a row of an input whose id is not in
	// the result. If Reason is nil or returns the zero Reason, the shape decides.
	Reason func(at RowAt) Reason
}

// InResult is the side of a row of the result.
const InResult = -1

// RowAt names a row of a run of a node. Immutable; any goroutine.
type RowAt struct {
	Side int // InResult, or the number of an input; the node references come after the inputs
	Pos  int // position in the active rows of that side
}

// SideRows returns the rows of a side of a run whose result is out.
func (c *Ctx) SideRows(out rowset.RowSet, side int) rowset.RowSet {
	switch {
	case side == InResult:
		return out
	case side < len(c.Inputs):
		return c.Inputs[side]
	default:
		return c.Refs[side-len(c.Inputs)]
	}
}

// Sides returns the number of inputs and node references together.
func (c *Ctx) Sides() int { return len(c.Inputs) + len(c.Refs) }

// The kinds of a Reason for a row that is not in the result.
const (
	Filtered     = "filtered"     // a predicate is false for it
	Excluded     = "excluded"     // its id is in a list of ids to leave out
	Deduplicated = "deduplicated" // another row stands for it
	Capped       = "capped"       // its group has as many rows as it may
	Cut          = "cut"          // its rank is beyond the kept rows
	Unmatched    = "unmatched"    // the other side of a join decided against it
	MissingData  = "missing"      // data that the node needs was missing
	FailedRow    = "failed"       // the node failed for this row alone
	FailedNode   = "node_failed"  // the node failed, and the plan went on without its rows
	Expanded     = "expanded"     // other rows came in its place
	Dropped      = "dropped"      // the task does not say more
)

// The kinds of a Reason for a row of the result.
const (
	FromSource = "source"     // the node made it
	Computed   = "computed"   // the node wrote a column
	Sorted     = "sorted"     // the node ordered the rows
	Kept       = "kept"       // the node dropped other rows
	Boosted    = "boosted"    // rules changed its score
	Merged     = "merged"     // several rows became one, or several inputs
	Moved      = "moved"      // the node changed its rank for another reason than a score
	Joined     = "joined"     // columns came from another node
	Normalized = "normalized" // its score was put into the proportions of the others
	Passed     = "passed"     // the node left it as it was
)

// A Reason is what one run of a node did to one row. Zero fields mean nothing. Immutable once built; any goroutine.
type Reason struct {
	Kind   string         // one of the words above; "" for the zero Reason
	Text   string         // a sentence for people, without the node's name
	Tree   *expr.Term     // of the expression or predicate that decided, with the values of this row
	Column registry.KeyID // the column that Tree computes: it was written, or sorted by
	By     registry.KeyID // the column, or the id, whose value in this row decided
	// Instead are the ids of the rows that are kept in place of this one.
	Instead         []int64
	Rank, Of, Limit int      // the rank, from 1, among Of rows, of which Limit were kept
	Score           *float64 // by which it was ranked
	Lacks           *float64 // by how much the score missed the last row that was kept
	Fired           []Fired  // rules that applied, in order
	Values          []Value  // further values that say why
}

// Fired is a rule that applied to a row. Immutable; any goroutine.
type Fired struct {
	Rule string     // its name, or its number from 1
	Tree *expr.Term // of its expression
}

// Value is a named value of a Reason. Immutable; any goroutine.
type Value struct {
	Name  string
	Value any      // nil, bool, int64, float64, string or []string
	Adds  *float64 // what it adds to the result, if that is a sum
}
