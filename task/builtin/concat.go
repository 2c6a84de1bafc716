package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// concat appends the rows of the node that rhs names to the rows of its input.
func concat() task.Spec {
	return task.Spec{
		Op:      "core::concat",
		Doc:     "The rows of the input, then the rows of rhs; columns are the union.",
		Params:  []plan.ParamSchema{{Name: "rhs", Type: plan.NodeRef, Required: true}},
		Inputs:  1,
		Output:  task.Append,
		Cheap:   true,
		Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			if err := c.MakeRows(int64(c.Inputs[0].Len()) + int64(c.Refs[0].Len())); err != nil {
				return rowset.RowSet{}, err
			}
			return rowset.Concat(c.Memory, c.Inputs[0], c.Refs[0]), nil
		},
	}
}
