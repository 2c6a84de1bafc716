package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// filter keeps the rows for which a predicate is true.
func filter() task.Spec {
	return task.Spec{
		Op:  "core::filter",
		Doc: "Keeps the rows for which a predicate is true.",
		Params: []plan.ParamSchema{{
			Name: "pred_id", Type: plan.PredID, Required: true,
			Doc: "The predicate. An artifact names an entry of `pred_table`.",
		}},
		Reference: filterReference(),
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.Subset,
		Reads:     task.ExprKeys,
		Inline:    true,
		Forgets:   true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			if c.Node.Pred == nil {
				return rowset.RowSet{}, task.Invalidf("pred_id is empty")
			}
			return c.Node.Pred.Filter(c, c.Memory, c.Inputs[0], c.Params)
		},
		Explain: func(c *task.Ctx, _ rowset.RowSet) task.Account {
			return task.Account{Reason: func(at task.RowAt) task.Reason {
				if at.Side == task.InResult {
					return task.Reason{}
				}
				why := c.Node.Pred.Explain(c.Inputs[0], at.Pos, c.Params)
				return task.Reason{Kind: task.Filtered, Tree: &why}
			}}
		},
	}
}

func filterReference() task.Reference {
	return task.Reference{
		Text:  "The predicate sees one row at a time. [Expressions](../expressions.md) lists its operators.",
		Reads: "The columns of the predicate.",
		Order: "The rows keep their order.",
		Nulls: "A comparison with null is false, `!=` too, so its negation is true. `Key.x == null` finds nulls. " +
			"A column that the rows lack reads as null.",
		Empty:      "An input without rows gives no rows.",
		Duplicates: "The predicate decides for each row, so rows with the same id stay or go one by one.",
		Failures: "The node fails if a pattern is invalid, or if its parameter is not set, once a row with a value reaches it. " +
			"A row that an earlier part of `and` or `or` decides does not reach it.",
		Example: task.Example{Plan: `ctx
  .viewer({ endpoint: redis })
  .follow({ endpoint: redis, fanout: 5 })
  .filter({ pred: Key.country.in(["US", "CA"]) && Key.id > 100 })`},
	}
}
