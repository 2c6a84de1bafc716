package main

import (
	"context"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tasks returns the program's own tasks.
func tasks() []task.Spec { return []task.Spec{distinct(), activity(), fans()} }

// distinct keeps the first row of each id.
func distinct() task.Spec {
	return task.Spec{
		Op:     "shop::distinct",
		Doc:    "Keeps the first row of each id.",
		Inputs: 1,
		Output: task.Subset,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			in := c.Inputs[0]
			seen := make(map[int64]bool, in.Len())
			rows := make([]int32, 0, in.Len())
			for i := range in.Len() {
				if id := in.ID(i); !seen[id] {
					seen[id] = true
					rows = append(rows, in.Row(i))
				}
			}
			return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
		},
	}
}

// activity writes how many users each row follows into a float column.
func activity() task.Spec {
	return task.Spec{
		Op:  "shop::activity",
		Doc: "Writes how many users each row follows into a float column.",
		Params: []plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Required: true},
			{Name: "out_key", Type: plan.Int, Required: true, IsKey: true},
		},
		Inputs: 1,
		Output: task.SameRows,
		Writes: task.ColumnParam("out_key"),
		Place:  task.Waits,
		Run:    countFollowed,
	}
}

func countFollowed(c *task.Ctx) (rowset.RowSet, error) {
	outKey := c.Node.Params.Int("out_key")
	key, ok := c.Key(outKey)
	if !ok || key.Type != registry.Float || !key.Writable {
		return rowset.RowSet{}, task.Invalidf("out_key is %d, must be a writable float key", outKey)
	}
	in := c.Inputs[0]
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil {
		return rowset.RowSet{}, err
	}

	redis := c.Redis(c.Node.Endpoint)
	b := redis.NewBatch()
	for i := range in.Len() {
		b.Begin(2)
		b.ArgString("LLEN")
		b.ArgKey("follow:", in.ID(i))
	}
	replies, err := redis.Send(b)
	if err != nil {
		return rowset.RowSet{}, err
	}

	counts := rowset.NewFloatBuilder(key.ID, in.Len())
	for i, reply := range replies.All() {
		if err := redis.CheckKind(reply, resp.Integer, "LLEN", "follow:", in.ID(i)); err != nil {
			return rowset.RowSet{}, err
		}
		counts.Append(float64(reply.Int()))
	}
	return rowset.Scatter(c.Memory, in, counts.Column()), nil
}

// inStock keeps the rows that a warehouse has. stock blocks: it asks a database.
func inStock(stock func(ctx context.Context, ids []int64) ([]bool, error)) task.Spec {
	return task.Spec{
		Op:     "shop::in_stock",
		Doc:    "Keeps the rows that the warehouse has in stock.",
		Inputs: 1,
		Output: task.Subset,
		Place:  task.Waits,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			in := c.Inputs[0]
			ids := make([]int64, in.Len())
			for i := range ids {
				ids[i] = in.ID(i)
			}
			var have []bool
			err := c.Await(func(ctx context.Context) (err error) {
				have, err = stock(ctx, ids)
				return err
			})
			if err != nil {
				return rowset.RowSet{}, err
			}
			rows := make([]int32, 0, len(ids))
			for i, ok := range have {
				if ok {
					rows = append(rows, in.Row(i))
				}
			}
			return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
		},
	}
}
