package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// fixedSource makes rows with the ids 1 to row_count, at most rowCountMax, and no
// columns; it needs no Redis.
func fixedSource() Spec {
	body := func(c *Ctx) (rowset.RowSet, error) {
		count := c.Node.Params.Int("row_count")
		if count < 0 || count > rowCountMax {
			return rowset.RowSet{}, invalidf("row_count is %d, must be between 0 and %d", count, rowCountMax)
		}
		ids := make([]int64, count)
		for i := range ids {
			ids[i] = int64(i) + 1
		}
		return rowset.Dense(&rowset.Batch{IDs: ids}), nil
	}
	return Spec{
		Op:       "test::fixed_source",
		Doc:      "Rows with the ids 1 to row_count; no Redis needed.",
		Params:   []plan.ParamSchema{{Name: "row_count", Type: plan.Int, IntValue: 1}},
		Output:   Source,
		Run:      body,
		RunAsync: body,
	}
}
