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
			}, Doc: "The column that decides the order, or the id."},
			{Name: "order", Type: plan.String, StrValue: "asc", Source: plan.SourceRule{OneOf: []string{"asc", "desc"}},
				Doc: "The direction: ascending or descending."},
		},
		Reference: sortReference(),
		Inputs:    1,
		IDs:       plan.ReadsTextIDs,
		Output:    task.Permutation,
		Reads:     task.ColumnParam("by"),
		Limited:   true,
		Inline:    true,
		Forgets:   true,
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
			case in.Batch.Vector(key.ID) != nil:
				return rowset.RowSet{}, task.Invalidf("cannot sort by %d (%s): vectors have no order", key.ID, key.Name)
			}
			if key.ID == registry.IDKey && c.Node.InputEntity.TextIDs() { // The numbers in place of the ids have no order.
				texts := idColumn(c, in.Batch).(*rowset.StringColumn)
				texts.Key = 0 // of no column
				sorted, err := sortBy(c, rowset.RowSet{Batch: rowset.With(&rowset.Batch{IDs: in.Batch.IDs}, texts), Rows: in.Rows, N: in.N}, texts.Key, order == "desc")
				sorted.Batch = in.Batch
				return sorted, err
			}
			return sortBy(c, in, key.ID, order == "desc")
		},
	}
}

// sortBy sorts rows by a column, or selects the first of them where the node has a limit.
func sortBy(c *task.Ctx, in rowset.RowSet, key registry.KeyID, desc bool) (rowset.RowSet, error) {
	if c.Limit > 0 {
		return rowset.TopUntil(c, c.Memory, in, key, desc, c.Limit)
	}
	return rowset.Sort(c, c.Memory, in, key, desc)
}

func sortReference() task.Reference {
	return task.Reference{
		Text: "Ids and integers compare exactly, floats as doubles with 0.0 equal to -0.0. Texts compare by their bytes, ids that are strings among them.\n\n" +
			"If `take` alone reads the result, the node selects the first rows and does not sort the others.",
		Reads:      "The column of `by`.",
		Order:      "Rows with equal values keep their order, in both directions. So `desc` is not the reverse of `asc`.",
		Nulls:      "Nulls come last in both directions, in their order.",
		Empty:      "An input without rows gives no rows. Its column has to exist all the same.",
		Duplicates: "Rows with the same id stay. By id they are equal, and keep their order.",
		Failures: "A `by` that is not a registered key fails the node, and so does a key whose column the input lacks. " +
			"An `order` other than `asc` and `desc` fails it, too.",
		Example: task.Example{Plan: `ctx
  .viewer({ endpoint: redis })
  .follow({ endpoint: redis, fanout: 5 })
  .sort({ key: Key.country, order: "desc" })`},
	}
}
