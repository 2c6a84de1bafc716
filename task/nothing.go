package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Nothing returns what the readers of a failed node see by "on_error": "empty": no rows, with each column that
// the node could have given, so that readers find the columns they read. inputs and refs are the node's.
func Nothing(n *plan.Node, reg *registry.Registry, inputs, refs []rowset.RowSet) rowset.RowSet {
	spec := SpecOf(n)
	var floats []rowset.FloatColumn
	var strings []rowset.StringColumn
	seen := func(key registry.KeyID) bool {
		return slices.ContainsFunc(floats, func(c rowset.FloatColumn) bool { return c.Key == key }) ||
			slices.ContainsFunc(strings, func(c rowset.StringColumn) bool { return c.Key == key })
	}
	add := func(id registry.KeyID, kind registry.Type) {
		switch {
		case seen(id):
		case kind == registry.Float:
			floats = append(floats, rowset.FloatColumn{Key: id})
		case kind == registry.String:
			strings = append(strings, rowset.StringColumn{Key: id, Dict: new(rowset.Dict)})
		}
	}
	if spec.Writes != nil {
		for _, id := range spec.Writes(n) {
			if key, ok := reg.Key(id); ok {
				add(id, key.Type)
			}
		}
	}
	for _, in := range spec.inherits(inputs, refs) {
		for i := range in.Batch.Floats {
			add(in.Batch.Floats[i].Key, registry.Float)
		}
		for i := range in.Batch.Strings {
			add(in.Batch.Strings[i].Key, registry.String)
		}
	}
	return rowset.Dense(rowset.NewBatch([]int64{}, floats, strings))
}

// inherits returns the row sets whose columns a result has.
func (s *Spec) inherits(inputs, refs []rowset.RowSet) []rowset.RowSet {
	switch s.Output {
	case Source, Expand:
		return nil
	case Append:
		return slices.Concat(inputs, refs)
	default:
		return inputs
	}
}
