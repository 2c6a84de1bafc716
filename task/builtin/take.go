package builtin

import (
	"math"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// take keeps count rows, behind the first offset.
func take() task.Spec {
	return task.Spec{
		Op:  "core::take",
		Doc: "Keeps the first count rows, or those behind the first offset: a page.",
		Params: []plan.ParamSchema{
			{Name: "count", Type: plan.Int, Required: true, PerRequest: true, Source: atLeast(1), Doc: "The most rows that stay."},
			{Name: "offset", Type: plan.Int, Added: true, PerRequest: true, Source: between(0, math.MaxInt32), Doc: "How many rows are passed over before those that stay."},
		},
		Reference: takeReference(),
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.Window,
		RowsMax: func(n *plan.Node, in int64) int64 {
			return min(max(0, in-n.Params.LeastInt("offset")), max(0, n.Params.Int("count")))
		},
		Prepare: preparePage,
		Cheap:   true,
		Forgets: true,
		First: func(n *plan.Node) (int64, bool) {
			count := n.Params.Int("count")
			return plan.AddRows(n.Params.Int("offset"), count), count > 0
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			p, stated := c.Node.Prepared.(*page)
			if !stated {
				var err error
				if p, err = pageOf(c); err != nil {
					return rowset.RowSet{}, err
				}
			}
			if p.count < 1 {
				return rowset.RowSet{}, task.Invalidf("count is %d, must be at least 1", p.count)
			}
			in := rowset.Take(c.Inputs[0], int(min(plan.AddRows(p.offset, p.count), int64(c.Inputs[0].Len()))))
			return rowset.Skip(c.Memory, in, int(p.offset)), nil
		},
	}
}

// page says which rows stay. Immutable.
type page struct{ count, offset int64 }

// preparePage returns the *page that the plan states, or nil if requests supply a part of it.
func preparePage(n *plan.Node, _ *registry.Registry) (any, error) {
	p := &n.Params
	if p.LeastInt("count") < p.Int("count") || p.LeastInt("offset") < p.Int("offset") {
		return nil, nil
	}
	return &page{p.Int("count"), p.Int("offset")}, nil
}

// pageOf returns the page of a request.
func pageOf(c *task.Ctx) (p *page, err error) {
	p = new(page)
	if p.count, err = c.Int("count"); err == nil {
		p.offset, err = c.Int("offset")
	}
	return p, err
}

func takeReference() task.Reference {
	return task.Reference{
		Text: "The node copies no values. An input with fewer rows than `count` stays as it is. With `offset` the node gives a page: " +
			"`take({ offset: 40, count: 20 })` is the third of twenty rows each, and an input without so many rows gives fewer, or none.",
		Order:      "The rows keep their order.",
		Nulls:      "The task looks at no column.",
		Empty:      "An input without rows gives no rows.",
		Duplicates: "Rows with the same id count one by one.",
		Failures:   "A `count` below 1 fails the node.",
		Example:    task.Example{Plan: "ctx.fixedSource({ rowCount: 5 }).take({ offset: 1, count: 2 })"},
	}
}
