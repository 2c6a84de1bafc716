package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// rowCountMax bounds the rows that a plan can make without Redis giving them: 100 M
// ids are 800 MB. Each concat of a node with itself doubles its rows, so a plan of a few
// dozen nodes would otherwise ask for more memory than there is.
const rowCountMax = 100_000_000

// concat appends the rows of the node that rhs names to those of its input.
func concat() Spec {
	return Spec{
		Op:     "core::concat",
		Doc:    "The rows of the input, then those of rhs, at most 100 million together; columns are the union.",
		Params: []plan.ParamSchema{{Name: "rhs", Type: plan.NodeRef, Required: true}},
		Inputs: 1,
		Output: Append,
		Run: func(c *Ctx) (rowset.RowSet, error) {
			if n := c.Inputs[0].Len() + c.Refs[0].Len(); n > rowCountMax {
				return rowset.RowSet{}, invalidf("result would have %d rows, at most %d are allowed", n, rowCountMax)
			}
			return rowset.Concat(c.Inputs[0], c.Refs[0]), nil
		},
	}
}
