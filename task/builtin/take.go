package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// take keeps the first count rows.
func take() task.Spec {
	return task.Spec{
		Op:  "core::take",
		Doc: "Keeps the first count rows.",
		Params: []plan.ParamSchema{{
			Name: "count", Type: plan.Int, Required: true, Source: atLeast(1),
			Doc: "The most rows that stay.",
		}},
		Reference: takeReference(),
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.Prefix,
		RowsMax:   atMost("count"),
		Cheap:     true,
		Forgets:   true,
		First: func(n *plan.Node) (int64, bool) {
			count := n.Params.Int("count")
			return count, count > 0
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			count := c.Node.Params.Int("count")
			if count < 1 {
				return rowset.RowSet{}, task.Invalidf("count is %d, must be at least 1", count)
			}
			in := c.Inputs[0]
			return rowset.Take(in, int(min(count, int64(in.Len())))), nil
		},
	}
}

func takeReference() task.Reference {
	return task.Reference{
		Text:       "The node copies nothing. An input with fewer rows stays as it is.",
		Order:      "The rows keep their order.",
		Nulls:      "The task looks at no column.",
		Empty:      "An input without rows gives no rows.",
		Duplicates: "Rows with the same id count one by one.",
		Failures:   "A `count` below 1 fails the node.",
		Example:    task.Example{Plan: "ctx.fixedSource({ rowCount: 5 }).take({ count: 2 })"},
	}
}
