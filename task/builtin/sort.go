package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// sortRows orders the rows by a column or by id, stably, nulls last.
func sortRows() task.Spec {
	return task.Spec{
		Op:  "core::sort",
		Doc: "Orders the rows by a column or by id; stable, nulls last.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Int, Required: true, IsKey: true, Source: plan.SourceRule{
				Alias: "key", KeyTypes: []registry.Type{registry.Int, registry.Float, registry.String, registry.Bool},
			}},
			{Name: "order", Type: plan.String, StrValue: "asc", Source: plan.SourceRule{OneOf: []string{"asc", "desc"}}},
		},
		Inputs:  1,
		Output:  task.Permutation,
		Reads:   task.ColumnParam("by"),
		Limited: true,
		Inline:  true,
		Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			order := c.Node.Params.String("order")
			if order != "asc" && order != "desc" {
				return rowset.RowSet{}, task.Invalidf("order is %s, must be \"asc\" or \"desc\"", task.Quote(order))
			}
			by, in := c.Node.Params.Int("by"), c.Inputs[0]
			key, ok := c.Key(by)
			if !ok {
				return rowset.RowSet{}, task.Invalidf("by is %d, which is not a registered key", by)
			}
			switch {
			case !in.Batch.Has(key.ID):
				return rowset.RowSet{}, task.Invalidf("cannot sort by %d (%s): the input has no such column", key.ID, key.Name)
			case in.Batch.Set(key.ID) != nil:
				return rowset.RowSet{}, task.Invalidf("cannot sort by %d (%s): sets have no order", key.ID, key.Name)
			}
			if c.Limit > 0 {
				return rowset.TopUntil(c, c.Memory, in, key.ID, order == "desc", c.Limit)
			}
			return rowset.Sort(c, c.Memory, in, key.ID, order == "desc")
		},
	}
}
