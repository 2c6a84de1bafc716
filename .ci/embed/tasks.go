package main

import (
	"context"
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tasks has a task of each kind: one computes, one waits for a timer, one for a function of its own, and one for Redis.
var tasks = []task.Spec{everyOther, pause, inStock, activity}

// everyOther keeps the first row, the third, and so on.
var everyOther = task.Spec{
	Op:     "shop::every_other",
	Doc:    "Keeps every other row, from the first on.",
	Inputs: 1,
	Output: task.Subset,
	Run: func(c *task.Ctx) (rowset.RowSet, error) {
		in := c.Inputs[0]
		var rows []int32
		for i := 0; i < in.Len(); i += 2 {
			rows = append(rows, in.Row(i))
		}
		return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
	},
}

// pause waits for a millisecond.
var pause = task.Spec{
	Op:     "shop::pause",
	Inputs: 1,
	Output: task.PassThrough,
	Place:  task.OnLoop,
	Run:    func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], c.Sleep(time.Millisecond) },
}

// inStock keeps the rows that a blocking client has in stock.
var inStock = task.Spec{
	Op:     "shop::in_stock",
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
		var rows []int32
		for i := range in.Len() {
			if have[i] {
				rows = append(rows, in.Row(i))
			}
		}
		return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
	},
}

// stock stands for a client of a database. Ids of a multiple of 5 are out of stock.
func stock(ctx context.Context, ids []int64) ([]bool, error) {
	have := make([]bool, len(ids))
	for i, id := range ids {
		have[i] = id%5 != 0
	}
	return have, ctx.Err()
}

// activity writes how many users each row follows into a float column.
var activity = task.Spec{
	Op: "shop::activity",
	Params: []plan.ParamSchema{
		{Name: "endpoint", Type: plan.Endpoint, Required: true},
		{Name: "out_key", Type: plan.Int, Required: true, IsKey: true},
	},
	Inputs: 1,
	Output: task.SameRows,
	Writes: task.ColumnParam("out_key"),
	Place:  task.Waits,
	Run: func(c *task.Ctx) (rowset.RowSet, error) {
		key, ok := c.Key(c.Node.Params.Int("out_key"))
		if !ok || key.Type != registry.Float {
			return rowset.RowSet{}, task.Invalidf("out_key must be a float key")
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
		counts, parts := rowset.NewFloatBuilder(key.ID, in.Len()), redis.Parts(b)
		for parts.Next() {
			for i, reply := range parts.Replies().All() {
				if err := redis.CheckKind(reply, resp.Integer, "LLEN", "follow:", in.ID(parts.From()+i)); err != nil {
					return rowset.RowSet{}, err
				}
				counts.Append(float64(reply.Int()))
			}
		}
		if err := parts.Err(); err != nil {
			return rowset.RowSet{}, err
		}
		return rowset.Scatter(c.Memory, in, rowset.Columns{Floats: []rowset.FloatColumn{counts.Column()}}), nil
	},
}
