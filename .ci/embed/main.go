// Command embed runs rankd in a program of another module, with a task and a plan folder of
// its own. .ci/run builds and runs it, and compares its output.
package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

//go:embed plans
var files embed.FS

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

func run() error {
	redis, err := rankdtest.StartRedis() // demo data; or a redis-server of your own
	if err != nil {
		return err
	}
	defer redis.Close()
	plans, err := fs.Sub(files, "plans")
	if err != nil {
		return err
	}

	e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Plans: plans, Tasks: []task.Spec{everyOther}})
	if err != nil {
		return err
	}
	defer e.Close()
	answer, err := e.Rank(context.Background(), rankd.Request{Plan: "friends", UserID: 1})
	if err != nil {
		return err
	}
	for c := range answer.Candidates() {
		country, _ := c.String("country")
		fmt.Println(c.ID(), country)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
