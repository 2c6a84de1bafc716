package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// filter keeps the rows for which a predicate is true.
func filter() Spec {
	return Spec{
		Op:     "core::filter",
		Doc:    "Keeps the rows for which a predicate is true.",
		Params: []plan.ParamSchema{{Name: "pred_id", Type: plan.PredID, Required: true}},
		Inputs: 1,
		Output: Subset,
		Reads: func(n *plan.Node) []registry.KeyID {
			if n.Pred == nil {
				return nil
			}
			return n.Pred.Keys()
		},
		Run: func(c *Ctx) (rowset.RowSet, error) {
			if c.Node.Pred == nil {
				return rowset.RowSet{}, invalidf("pred_id is empty")
			}
			out, err := c.Node.Pred.FilterUntil(c, c.Inputs[0], c.Params)
			return out, stopped(err)
		},
	}
}
