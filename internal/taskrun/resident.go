package taskrun

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Residents finds the rows of plans that an engine keeps. Any goroutine.
type Residents interface {
	// Resident returns the rows of a plan as they were when the request began. The error says why there are none. It never waits.
	Resident(plan string) (*Resident, error)
}

// Resident is what a plan has returned that an engine keeps. Immutable; any goroutine.
type Resident struct {
	Rows   rowset.RowSet    // dense
	Entity *registry.Entity // of the rows; nil: none
	Texts  [][]byte         // the id of each row, if ids are texts; else nil
}
