package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Nothing returns what the readers of a failed node see by "on_error": "empty": no rows, with each column that
// the node could have given, so that readers find the columns they read. inputs and refs are the node's.
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
	return rowset.Dense(rowset.With(empty, spec.emptyColumns(n, reg)))
}

// emptyColumns returns the columns that a node writes, without rows.
func (s *Spec) emptyColumns(n *plan.Node, reg *registry.Registry) (c rowset.Columns) {
	if s.Writes == nil {
		return c
	}
	for _, id := range s.Writes(n, reg) {
		key, ok := reg.Key(id)
		if !ok {
			continue
		}
		switch key.Type {
		case registry.Float:
			c.Floats = append(c.Floats, rowset.FloatColumn{Key: id})
		case registry.String:
			c.Strings = append(c.Strings, rowset.StringColumn{Key: id, Dict: new(rowset.Dict)})
		case registry.Int:
			c.Ints = append(c.Ints, rowset.IntColumn{Key: id})
		case registry.Bool:
			c.Bools = append(c.Bools, rowset.BoolColumn{Key: id})
		case registry.StringSet:
			c.Sets = append(c.Sets, rowset.SetColumn{Key: id, Dict: &rowset.SetDict{Offsets: []int32{0}, Strings: new(rowset.Dict)}})
		}
	}
	return c
}
