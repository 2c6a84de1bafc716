package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// mediaFanoutMax is the most entries that media reads of one list.
const mediaFanoutMax = 10_000

// media expands each row to the ids in media:{id}. The rows have no columns, since media ids are not users. It takes
// one round trip, unless listRead needs more.
func media() task.Spec {
	return task.Spec{
		Op:        "core::media",
		Doc:       "Expands each row to its media.",
		Params:    withRecallParams(endpointParam, fanoutParam(mediaFanoutMax), entityParam),
		Reference: mediaReference(),
		Inputs:    1,
		Prepare: func(n *plan.Node, _ *registry.Registry) (any, error) {
			lists := prepareLists(n, "media:")
			return &lists, nil
		},
		Output:  task.Expand,
		RowsMax: perRow("fanout"),
		Place:   task.Waits,
		Forgets: true,
		Partial: true,
		Ask: func(c *task.Ctx, r *task.Reads, _ int) error {
			return c.Node.Prepared.(*preparedLists).ask(c, r, mediaFanoutMax)
		},
		Make: func(_ *task.Ctx, r *task.Reads) (rowset.RowSet, error) {
			return r.At(0).(*entriesRead).rows(), nil
		},
	}
}

func mediaReference() task.Reference {
	r := listReference("media:", "")
	r.Nulls = "The result has no columns, so it has no nulls. Media are not users, so the node reads no hashes."
	r.Example.Plan = "ctx.viewer({ endpoint: redis }).media({ endpoint: redis, fanout: 3 })"
	return r
}
