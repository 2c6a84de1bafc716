package taskrun

import (
	"context"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A Request is what an engine gives to all bodies of a request. Zero fields mean that there is none. Immutable while one of
// them runs, but for Rows and Ahead, which any goroutine may use.
type Request struct {
	Rows      *RowBudget      // nil: no bound
	Required  []int           // the indices of the nodes that the request requires: their results must be whole
	Caller    context.Context // that the caller gave Rank; nil: none
	Residents Residents       // the rows of plans that the engine keeps; nil: it keeps none
	Ahead     Ahead           // what nodes have read for later ones
	Tapes     []Tape          // by node; nil: the request is not recorded
}

// An Engine is what an engine gives to all its bodies. The loop may change the Tables. Otherwise it is immutable.
type Engine struct {
	Clock clock.Clock // of deadlines; it may be nil without any
	// LoopValues is how many values a body handles on the loop in one go, columns times rows: it computes on more elsewhere. Zero:
	// no loop waits for it.
	LoopValues int
	// Tables keep what was read from Redis, by Endpoint.Index: nil for an endpoint whose reads are not kept. They are the loop's, and
	// bodies that read run nowhere else.
	Tables []*rowcache.Table
}

// Residents finds the rows of plans that an engine keeps. Any goroutine.
type Residents interface {
	// Resident returns the rows of a plan as they were when the request began. The error says why there are none. It never waits.
	Resident(plan string) (*Resident, error)
}

// Resident is what a plan has returned that an engine keeps. Immutable; any goroutine.
type Resident struct {
	Rows   rowset.RowSet    // dense
	Entity *registry.Entity // of the rows; nil: none
	IDs    *rowset.IDDict   // has the ids of the rows, if they are texts, and gets no more; else nil
}
