package builtin

import (
	"errors"
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// ErrInjected is the error of a sleep with fail_after_sleep.
var ErrInjected = errors.New("injected failure: fail_after_sleep is set")

// sleep waits and passes its input through, for tests and benchmarks.
func sleep() task.Spec {
	return task.Spec{
		Op:  "test::sleep",
		Doc: "Waits, then passes its input through or fails on purpose.",
		Params: []plan.ParamSchema{
			{Name: "duration_ms", Type: plan.Int, Required: true, Source: atLeast(0), Doc: "The time to wait, in milliseconds."},
			{Name: "fail_after_sleep", Type: plan.Bool, Doc: "If true, the node fails once it has waited."},
		},
		Reference: sleepReference(),
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.PassThrough,
		Place:     task.OnLoop,
		Forgets:   true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			ms := c.Node.Params.Int("duration_ms")
			if ms < 0 {
				return rowset.RowSet{}, task.Invalidf("duration_ms is %d, must not be negative", ms)
			}
			if err := c.Sleep(milliseconds(ms)); err != nil {
				return rowset.RowSet{}, err
			}
			if c.Node.Params.Bool("fail_after_sleep") {
				return rowset.RowSet{}, ErrInjected
			}
			return c.Inputs[0], nil
		},
	}
}

// milliseconds converts without overflow: more than 292 years count as 292 years.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(1<<63-1)/int64(time.Millisecond))) * time.Millisecond
}

func sleepReference() task.Reference {
	return task.Reference{
		Text: "The node stands in for a slow service in tests and benchmarks. It waits on a timer and holds no worker of the " +
			"asynchronous engine.\n\nIt ends early once nobody waits for its result any more.",
		Order:      "The rows keep their order.",
		Nulls:      "The task looks at no column.",
		Empty:      "The node waits for an input without rows, too.",
		Duplicates: "Rows with the same id stay.",
		Failures:   "A negative `duration_ms` fails the node. `fail_after_sleep` fails it on purpose.",
		Example:    task.Example{Plan: "ctx.fixedSource({ rowCount: 2 }).sleep({ durationMs: 1 })"},
	}
}
