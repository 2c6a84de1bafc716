package builtin

import (
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// busyCPU keeps a CPU worker busy and passes its input through, for tests and
// benchmarks.
func busyCPU() task.Spec {
	return task.Spec{
		Op:        "test::busy_cpu",
		Doc:       "Burns CPU time, then passes its input through.",
		Reference: busyCPUReference(),
		Params: []plan.ParamSchema{{
			Name: "busy_wait_ms", Type: plan.Int, Required: true, Source: atLeast(0),
			Doc: "The time for which the node keeps a CPU worker busy, in milliseconds.",
		}},
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.PassThrough,
		Expensive: true,
		Forgets:   true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			ms := c.Node.Params.Int("busy_wait_ms")
			if ms < 0 {
				return rowset.RowSet{}, task.Invalidf("busy_wait_ms is %d, must not be negative", ms)
			}
			for end := time.Now().Add(milliseconds(ms)); time.Now().Before(end); {
				if c.Cancelled() {
					return rowset.RowSet{}, task.ErrCancelled
				}
			}
			return c.Inputs[0], nil
		},
	}
}

func busyCPUReference() task.Reference {
	return task.Reference{
		Text: "The node stands in for a costly computation in tests and benchmarks. It never runs on the loop.\n\n" +
			"The node ends early once nobody waits for its result any more.",
		Order:      "The rows keep their order.",
		Nulls:      "The task looks at no column.",
		Empty:      "The node burns its time for an input without rows, too.",
		Duplicates: "Rows with the same id stay.",
		Failures:   "A negative `busy_wait_ms` fails the node.",
		Example:    task.Example{Plan: "ctx.fixedSource({ rowCount: 2 }).busyCpu({ busyWaitMs: 1 })"},
	}
}
