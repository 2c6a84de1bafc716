package builtin

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// distinctIDs are the ids by which rows are looked up, each once. Only the body uses it.
type distinctIDs struct {
	values []int64 // in the order in which rows first have them
	// at has, per position of the active rows, the index of its id in values; len(values) stands for a row
	// without an id. Nil: position i has index i.
	at     []int32
	absent bool // some row has no id
}

// distinctOf returns the ids of the active rows of in: those of the column by, or of the rows themselves
// if by is nil.
func distinctOf(c *task.Ctx, in rowset.RowSet, by *registry.Key) distinctIDs {
	if by == nil || by.ID == registry.IDKey {
		return distinctRows(c, in)
	}
	column := in.Batch.Int(by.ID)
	if column == nil {
		return noIDs(c, in)
	}
	var ids distinctIDs
	values, at := c.Memory.IDs(in.N)[:0], c.Memory.Rows(in.N)
	for i := range in.N {
		at[i] = -1
		if value, ok := column.Value(int(in.Row(i))); ok {
			at[i] = int32(len(values))
			values = append(values, value)
		}
	}
	distinct, of := rowset.Distinct(c.Memory, values)
	ids.values, ids.absent = distinct, len(values) < in.N
	if !ids.absent {
		ids.at = of
		return ids
	}
	for i, position := range at {
		switch {
		case position < 0:
			at[i] = int32(len(distinct))
		case of != nil:
			at[i] = of[position]
		}
	}
	ids.at = at
	return ids
}

// distinctRows returns the ids of the rows themselves.
func distinctRows(c *task.Ctx, in rowset.RowSet) (ids distinctIDs) {
	values := in.Batch.IDs[:in.N]
	if in.Rows != nil {
		values = c.Memory.IDs(in.N)
		for i, row := range in.Rows {
			values[i] = in.Batch.IDs[row]
		}
	}
	ids.values, ids.at = rowset.Distinct(c.Memory, values)
	return ids
}

// noIDs returns the ids of rows of which none has one.
func noIDs(c *task.Ctx, in rowset.RowSet) distinctIDs {
	at := c.Memory.Rows(in.N)
	clear(at)
	return distinctIDs{at: at, absent: in.N > 0}
}
