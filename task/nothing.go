package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Nothing returns the stand-in for a failed node with "on_error": "empty": no rows, but each column that the node
// could have returned, so that readers find the columns they read. inputs and refs are the node's.
func (e engine) Nothing(n *plan.Node, reg *registry.Registry, inputs, refs []rowset.RowSet) rowset.RowSet {
	spec := e.SpecOf(n)
	var sides []rowset.RowSet
	switch spec.Output.inherits() {
	case plan.InheritsInputs:
		sides = slices.Clone(inputs)
	case plan.InheritsAll:
		sides = slices.Concat(inputs, refs)
	}
	for i := range sides {
		sides[i].N, sides[i].Rows = 0, []int32{}
	}
	empty := &rowset.Batch{IDs: []int64{}}
	if len(sides) > 0 {
		empty = rowset.Concat(nil, sides...).Batch
	}
	return rowset.Dense(rowset.With(empty, spec.emptyColumns(n, reg)...))
}

// Nulls returns the stand-in for a failed node with "on_error": "null": the rows of its first input, with nulls in
// the columns that the node writes.
func (e engine) Nulls(n *plan.Node, reg *registry.Registry, input rowset.RowSet) rowset.RowSet {
	input.Batch = rowset.With(input.Batch, e.SpecOf(n).nullColumns(n, reg, input.Batch.IDs)...)
	return input
}

// emptyColumns returns the columns that a node writes, without rows.
func (s *Spec) emptyColumns(n *plan.Node, reg *registry.Registry) []rowset.Column {
	return s.nullColumns(n, reg, nil)
}

// nullColumns returns the columns that a node writes, with nulls in all rows of a batch of these ids.
func (s *Spec) nullColumns(n *plan.Node, reg *registry.Registry, ids []int64) []rowset.Column {
	if s.Writes == nil {
		return nil
	}
	var keys []*registry.Key
	for _, id := range s.Writes(n, reg) {
		if key, ok := reg.Key(id); ok {
			keys = append(keys, key)
		}
	}
	return rowset.Project(rowset.NewBatch(ids), keys, true).Columns()
}
