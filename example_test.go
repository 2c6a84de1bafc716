package rankd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The engine runs an example plan for user 1.
func Example() {
	redis, err := rankdtest.StartRedis() // or a redis-server of your own
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()

	e, err := rankd.Open(rankd.Options{Redis: redis.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	answer, err := e.Rank(context.Background(), rankd.Request{Plan: "simple_viewer", UserID: 1})
	if err != nil {
		log.Fatal(err)
	}
	for c := range answer.Candidates() {
		country, _ := c.String("country")
		fmt.Println(c.ID(), country)
	}
	// Output: 1 US
}

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

const distinctPlan = `{
  "schema_version": 1,
  "plan_name": "unique",
  "nodes": [
    {"node_id": "a",    "op": "test::fixed_source", "inputs": [],    "params": {"row_count": 3}},
    {"node_id": "twice","op": "core::concat",       "inputs": ["a"], "params": {"rhs": "a"}},
    {"node_id": "once", "op": "shop::distinct",       "inputs": ["twice"]}
  ],
  "outputs": ["once"]
}`

// The engine runs a plan of its own folder, with a task of its own. No Redis is needed, since the
// plan reads none.
func Example_ownTaskAndPlans() {
	folder, err := os.MkdirTemp("", "plans")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "unique.plan.json"), []byte(distinctPlan), 0o644); err != nil {
		log.Fatal(err)
	}

	e, err := rankd.Open(rankd.Options{Plans: os.DirFS(folder), Plan: "unique", Tasks: []task.Spec{distinct()}})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	answer, err := e.Rank(context.Background(), rankd.Request{UserID: 1})
	if err != nil {
		log.Fatal(err)
	}
	for c := range answer.Candidates() {
		fmt.Print(c.ID(), " ")
	}
	// Output: 1 2 3
}

// Errors have classes, and a text that a program may show.
func ExampleError() {
	e, err := rankd.Open(rankd.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	_, err = e.Rank(context.Background(), rankd.Request{Plan: "no_such_plan", UserID: 1})
	var failed *rankd.Error
	if errors.As(err, &failed) && errors.Is(err, rankd.ErrUnknownPlan) {
		fmt.Println(failed.Text)
	}
	// Output: Unknown plan
}

// Submit needs no goroutine per request.
func ExampleEngine_Submit() {
	e, err := rankd.Open(rankd.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	done := make(chan string)
	e.Submit(context.Background(), rankd.Request{Plan: "no_such_plan", UserID: 1}, func(a *rankd.Answer, err error) {
		if err != nil {
			go func() { done <- "failed" }() // the callback runs on the loop and must not block
			return
		}
		go func() { done <- fmt.Sprint(a.Len()) }()
	})
	fmt.Println(<-done)
	// Output: failed
}
