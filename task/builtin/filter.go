package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// filter keeps the rows for which a predicate is true.
func filter() task.Spec {
	return task.Spec{
		Op:      "core::filter",
		Doc:     "Keeps the rows for which a predicate is true.",
		Params:  []plan.ParamSchema{{Name: "pred_id", Type: plan.PredID, Required: true}},
		Inputs:  1,
		Output:  task.Subset,
		Reads:   task.ExprKeys,
		Inline:  true,
		Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			if c.Node.Pred == nil {
				return rowset.RowSet{}, task.Invalidf("pred_id is empty")
			}
			return c.Node.Pred.Filter(c, c.Memory, c.Inputs[0], c.Params)
		},
		Explain: func(c *task.Ctx, _ rowset.RowSet, at task.RowAt) task.Reason {
			if at.Side == task.InResult || c.Node.Pred == nil {
				return task.Reason{}
			}
			why := c.Node.Pred.Explain(c.Inputs[0], at.Pos, c.Params)
			return task.Reason{Kind: task.Filtered, Tree: &why}
		},
	}
}
