package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// viewer starts a plan from the user who asks: one row with the country
// column, from user:{id}. One round trip.
func viewer() Spec {
	users := userCommand()
	body := func(c *Ctx) (rowset.RowSet, error) {
		if err := c.MakeRows(1); err != nil {
			return rowset.RowSet{}, err
		}
		return readUsers(c, users, []int64{c.UserID})
	}
	return Spec{
		Op:       "core::viewer",
		Doc:      "One row: the user of the request.",
		Params:   []plan.ParamSchema{endpointParam},
		IsIO:     true,
		Output:   Source,
		Writes:   writesCountry(),
		Run:      body,
		RunAsync: body,
	}
}
