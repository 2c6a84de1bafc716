package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// media expands each row to the ids in media:{id}. The rows have no columns:
// media ids are no users. One round trip, whatever the number of rows.
func media() Spec {
	body := func(c *Ctx) (rowset.RowSet, error) {
		ids, err := readLists(c, "media:", 10_000)
		if err != nil {
			return rowset.RowSet{}, err
		}
		return rowset.Dense(&rowset.Batch{IDs: ids}), nil
	}
	return Spec{
		Op:       "core::media",
		Doc:      "Expands each row to its media.",
		Params:   []plan.ParamSchema{endpointParam, fanoutParam},
		Inputs:   1,
		IsIO:     true,
		Output:   Expand,
		Run:      body,
		RunAsync: body,
	}
}
