package starter

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// every keeps the first of each n rows.
func every() task.Spec {
	one := int64(1)
	return task.Spec{
		Op:  "own::every",
		Doc: "Keeps the first of each n rows.",
		Params: []plan.ParamSchema{
			{Name: "n", Type: plan.Int, Required: true, Source: plan.SourceRule{Min: &one}, Doc: "Of so many rows one stays."},
		},
		Strict: true,
		Inputs: 1,
		IDs:    plan.MovesTextIDs, // ids that are texts may come, too
		Output: task.Subset,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			in, n := c.Inputs[0], c.Node.Params.Int("n")
			var rows []int32
			for i := int64(0); i < int64(in.Len()); i += n {
				rows = append(rows, in.Row(int(i)))
			}
			return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
		},
	}
}
