package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// viewer starts a plan from the user of the request: one row with the country
// column, from user:{id}. One round trip.
func viewer() task.Spec {
	return task.Spec{
		Op:        "core::viewer",
		Doc:       "One row: the user of the request.",
		Params:    withRecallParams(endpointParam),
		Reference: viewerReference(),
		Output:    task.Source,
		Entity:    registry.UserEntity,
		OfRequest: true,
		IDs:       plan.ReadsTextIDs,
		Prepare:   func(n *plan.Node, reg *registry.Registry) (any, error) { return prepareUsers(n, reg) },
		RowsMax:   func(*plan.Node, int64) int64 { return 1 },
		Writes:    writesCountry,
		Place:     task.Waits,
		Forgets:   true,
		Partial:   true,
		Ask: func(c *task.Ctx, r *task.Reads, _ int) error {
			if err := c.MakeRows(1); err != nil {
				return err
			}
			ids, texts := []int64{c.UserID}, (*rowset.IDTexts)(nil)
			if c.Node.Entity.TextIDs() {
				var err error
				if ids, err = c.NumberIDs(ids[:0], []byte(c.UserIDText())); err != nil {
					return err
				}
				texts = c.Params.IDs().Texts()
			}
			c.Node.Prepared.(*preparedUsers).ask(c, r, ids, texts)
			return nil
		},
		Make: func(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) { return usersOf(c, r.At(0).(*lookupDecoder)) },
	}
}

func viewerReference() task.Reference {
	return task.Reference{
		Text:       "Most plans start here: the next node expands the user to candidates. The id of the row is `user_id` of the request, and its entity is `user`.",
		Writes:     countryWrites + "Its value comes from the hash `user:{id}`.",
		Redis:      "One `HGETALL`, in one round trip.",
		Order:      "There is one row.",
		Nulls:      countryNulls,
		Empty:      "A user without a hash gives a row all the same.",
		Duplicates: "There is one row.",
		Failures:   "A key of another type than hash fails the node, and so does an error of Redis.",
		Example:    task.Example{Plan: "ctx.viewer({ endpoint: redis })"},
	}
}
