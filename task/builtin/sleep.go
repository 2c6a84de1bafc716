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
			{Name: "duration_ms", Type: plan.Int, Required: true, Source: atLeast(0)},
			{Name: "fail_after_sleep", Type: plan.Bool},
		},
		Inputs:  1,
		Output:  task.PassThrough,
		Place:   task.OnLoop,
		Forgets: true,
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
