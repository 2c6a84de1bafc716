package rankdtest_test

import (
	"fmt"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// A task that computes: it keeps rows with an even id.
func ExampleRun_computes() {
	even := task.Spec{
		Op: "shop::even", Doc: "Keeps rows with an even id.", Inputs: 1, Output: task.Subset,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			in := c.Inputs[0]
			rows := []int32{}
			for i := range in.Len() {
				if in.ID(i)%2 == 0 {
					rows = append(rows, in.Row(i))
				}
			}
			return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
		},
	}
	out, err := rankdtest.Run(even, rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.Rows(1, 2, 3, 4))})
	fmt.Println(rankdtest.IDs(out), err)
	// Output: [2 4] <nil>
}

// A task that reads Redis: one row with the id that the user's key holds.
func ExampleRun_redis() {
	favourite := task.Spec{
		Op: "shop::favourite", Doc: "One row: the user's favourite.", Output: task.Source, Place: task.Waits,
		Params: []plan.ParamSchema{{Name: "endpoint", Type: plan.Endpoint, Required: true}},
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			redis := c.Redis(c.Node.Endpoint)
			key := fmt.Sprint("favourite:", c.UserID)
			reply, err := redis.Do("GET", key)
			if err != nil {
				return rowset.RowSet{}, err
			}
			id, ok := task.ParseID(reply.Bytes())
			if !ok {
				return rowset.RowSet{}, redis.Errorf("GET %s: %s is not an id", key, task.Quote(string(reply.Bytes())))
			}
			return rowset.Dense(&rowset.Batch{IDs: []int64{id}}), nil
		},
	}
	c := rankdtest.Case{
		Params: map[string]any{"endpoint": "ep_0001"},
		UserID: 7,
		Redis:  rankdtest.Replies(map[string]any{"GET favourite:7": "42", "GET favourite:8": "none"}),
	}
	out, err := rankdtest.Run(favourite, c)
	fmt.Println(rankdtest.IDs(out), err)
	c.UserID = 8
	_, err = rankdtest.Run(favourite, c)
	fmt.Println(err)
	// Output:
	// [42] <nil>
	// endpoint ep_0001 (redis_default): redis 127.0.0.1:6379: GET favourite:8: "none" is not an id
}
