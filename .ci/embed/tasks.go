package main

import (
	"context"
	"time"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// .ci/embed-run copies docs/shop/tasks.go beside this file: a task that computes, one that waits for Redis, and one that waits for a function
// of its own. Here stands what that page lacks.

// pause waits for a millisecond.
var pause = task.Spec{
	Op:     "shop::pause",
	Inputs: 1,
	Output: task.PassThrough,
	Place:  task.OnLoop,
	Run:    func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], c.Sleep(time.Millisecond) },
}

// stock stands for a client of a database. Ids of a multiple of 5 are out of stock.
func stock(ctx context.Context, ids []int64) ([]bool, error) {
	have := make([]bool, len(ids))
	for i, id := range ids {
		have[i] = id%5 != 0
	}
	return have, ctx.Err()
}
