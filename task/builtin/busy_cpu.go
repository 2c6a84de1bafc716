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
		Params:    []plan.ParamSchema{{Name: "busy_wait_ms", Type: plan.Int, Required: true, Source: atLeast(0)}},
		Inputs:    1,
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
