package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// sourceBlock is how many rows a source makes between two checks whether to stop.
const sourceBlock = 1 << 16

// fixedSource makes rows with the ids 1 to row_count and no columns. It needs no Redis.
func fixedSource() task.Spec {
	return task.Spec{
		Op:  "test::fixed_source",
		Doc: "Rows with the ids 1 to row_count; no Redis needed.",
		Params: []plan.ParamSchema{{
			Name: "row_count", Type: plan.Int, IntValue: 1, Source: atLeast(0),
			Doc: "The number of rows.",
		}},
		Reference: fixedSourceReference(),
		Output:    task.Source,
		RowsMax:   perRow("row_count"),
		Place:     task.OnLoop,
		Cost:      func(n *plan.Node) int64 { return n.Params.Int("row_count") },
		Cheap:     true,
		Forgets:   true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			count := c.Node.Params.Int("row_count")
			if count < 0 {
				return rowset.RowSet{}, task.Invalidf("row_count is %d, must not be negative", count)
			}
			if err := c.MakeRows(count); err != nil {
				return rowset.RowSet{}, err
			}
			ids := c.Memory.IDs(int(count))
			for from := 0; from < len(ids); from += sourceBlock {
				if c.Cancelled() {
					return rowset.RowSet{}, task.ErrCancelled
				}
				for i, block := 0, ids[from:min(from+sourceBlock, len(ids))]; i < len(block); i++ {
					block[i] = int64(from+i) + 1
				}
			}
			return rowset.Dense(&rowset.Batch{IDs: ids}), nil
		},
	}
}

func fixedSourceReference() task.Reference {
	return task.Reference{
		Text:       "The rows have no columns. The task serves tests, benchmarks and first steps.",
		Order:      "The ids ascend.",
		Nulls:      "The result has no columns, so it has no nulls.",
		Empty:      "A `row_count` of 0 gives no rows.",
		Duplicates: "Each id occurs once.",
		Failures: "A negative `row_count` fails the node. So does a number of rows that the request may not make " +
			"(`--max_rows`).",
		Example: task.Example{Plan: "ctx.fixedSource({ rowCount: 3 })"},
	}
}
