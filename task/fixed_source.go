package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// fixedSource makes rows with the ids 1 to row_count and no columns; it needs no Redis.
func fixedSource() Spec {
	body := func(c *Ctx) (rowset.RowSet, error) {
		count := c.Node.Params.Int("row_count")
		if count < 0 {
			return rowset.RowSet{}, invalidf("row_count is %d, must not be negative", count)
		}
		if err := c.MakeRows(count); err != nil {
			return rowset.RowSet{}, err
		}
		ids, next := make([]int64, count), int64(1)
		for block := range slices.Chunk(ids, 1<<16) {
			if c.Cancelled() {
				return rowset.RowSet{}, ErrCancelled
			}
			for i := range block {
				block[i] = next
				next++
			}
		}
		return rowset.Dense(&rowset.Batch{IDs: ids}), nil
	}
	return Spec{
		Op:       "test::fixed_source",
		Doc:      "Rows with the ids 1 to row_count; no Redis needed.",
		Params:   []plan.ParamSchema{{Name: "row_count", Type: plan.Int, IntValue: 1}},
		Output:   Source,
		Computes: func(n *plan.Node) int64 { return n.Params.Int("row_count") },
		Run:      body,
		RunAsync: body,
	}
}
