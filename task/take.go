package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// take keeps the first count rows.
func take() Spec {
	return Spec{
		Op:     "core::take",
		Doc:    "Keeps the first count rows.",
		Params: []plan.ParamSchema{{Name: "count", Type: plan.Int, Required: true}},
		Inputs: 1,
		Output: Prefix,
		Run: func(c *Ctx) (rowset.RowSet, error) {
			count := c.Node.Params.Int("count")
			if count < 1 {
				return rowset.RowSet{}, invalidf("count is %d, must be at least 1", count)
			}
			in := c.Inputs[0]
			return rowset.Take(in, int(min(count, int64(in.Len())))), nil
		},
	}
}
