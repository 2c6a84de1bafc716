package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// concat appends the rows of the node that rhs names to the rows of its input.
func concat() task.Spec {
	return task.Spec{
		Op:  "core::concat",
		Doc: "The rows of the input, then the rows of rhs; columns are the union.",
		Params: []plan.ParamSchema{{
			Name: "rhs", Type: plan.NodeRef, Required: true,
			Doc: "The node whose rows follow those of the input. It may be the input itself.",
		}},
		Reference: concatReference(),
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.Append,
		Cheap:     true,
		Forgets:   true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			if err := c.MakeRows(int64(c.Inputs[0].Len()) + int64(c.Refs[0].Len())); err != nil {
				return rowset.RowSet{}, err
			}
			return rowset.Concat(c.Memory, c.Inputs[0], c.Refs[0]), nil
		},
	}
}

func concatReference() task.Reference {
	return task.Reference{
		Text: "The two branches run side by side if neither needs the other. The result has the columns of both. " +
			"A column exists even if its side has no rows.",
		Order:      "The rows of the input come first, then the rows of `rhs`, both in their order.",
		Nulls:      "A column is null for the rows of the side that lacks it.",
		Empty:      "The rows of the other side are the result. Two sides without rows give no rows, with the columns of both.",
		Duplicates: "Rows with the same id stay, all of them.",
		Failures:   "The node fails if the request may not make so many rows (`--max_rows`).",
		Example: task.Example{Plan: `const me = ctx.viewer({ endpoint: redis });
return me
  .follow({ endpoint: redis, fanout: 2 })
  .concat({ rhs: me.media({ endpoint: redis, fanout: 2 }) });`},
	}
}
