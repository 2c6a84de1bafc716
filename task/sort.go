package task

import (
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// sortRows orders the rows by a column or by id, stably, nulls last.
func sortRows() Spec {
	return Spec{
		Op:  "core::sort",
		Doc: "Orders the rows by a column or by id; stable, nulls last.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Int, Required: true, IsKey: true},
			{Name: "order", Type: plan.String, StrValue: "asc"},
		},
		Inputs: 1,
		Output: Permutation,
		Reads:  func(n *plan.Node) []registry.KeyID { return keyOf(n.Params.Int("by")) },
		Run: func(c *Ctx) (rowset.RowSet, error) {
			order := c.Node.Params.String("order")
			if order != "asc" && order != "desc" {
				return rowset.RowSet{}, invalidf("order is %s, must be \"asc\" or \"desc\"", excerpt.Quote(order))
			}
			by, in := c.Node.Params.Int("by"), c.Inputs[0]
			key, ok := lookupKey(c, by)
			if !ok {
				return rowset.RowSet{}, invalidf("by is %d, which is no registered key", by)
			}
			if key.ID != registry.IDKey && in.Batch.Float(key.ID) == nil && in.Batch.String(key.ID) == nil {
				return rowset.RowSet{}, invalidf("cannot sort by %d (%s): the input has no such column", key.ID, key.Name)
			}
			out, err := rowset.SortUntil(c, in, key.ID, order == "desc")
			return out, stopped(err)
		},
	}
}

// lookupKey finds a key by the number that a plan gives, which may be anything.
func lookupKey(c *Ctx, id int64) (*registry.Key, bool) {
	if id <= 0 || id > 1<<32-1 {
		return nil, false
	}
	return c.Registry.Key(registry.KeyID(id))
}

func keyOf(id int64) []registry.KeyID {
	if id <= 0 || id > 1<<32-1 {
		return nil
	}
	return []registry.KeyID{registry.KeyID(id)}
}
