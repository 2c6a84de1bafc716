package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// viewer starts a plan from the user of the request: one row with the country
// column, from user:{id}. One round trip.
func viewer() task.Spec {
	users := userCommand()
	return task.Spec{
		Op:      "core::viewer",
		Doc:     "One row: the user of the request.",
		Params:  []plan.ParamSchema{endpointParam},
		Output:  task.Source,
		Writes:  task.Columns(keyCountry),
		Place:   task.Waits,
		Forgets: true,
		Partial: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			if err := c.MakeRows(1); err != nil {
				return rowset.RowSet{}, err
			}
			return readUsers(c, users, []int64{c.UserID})
		},
	}
}
