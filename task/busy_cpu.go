package task

import (
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// busyCPU keeps a CPU worker busy and passes its input through; it is for tests
// and benchmarks of what happens to the rest meanwhile.
func busyCPU() Spec {
	return Spec{
		Op:     "test::busy_cpu",
		Doc:    "Burns CPU time, then passes its input through.",
		Params: []plan.ParamSchema{{Name: "busy_wait_ms", Type: plan.Int, Required: true}},
		Inputs: 1,
		Output: PassThrough,
		Run: func(c *Ctx) (rowset.RowSet, error) {
			ms := c.Node.Params.Int("busy_wait_ms")
			if ms < 0 {
				return rowset.RowSet{}, invalidf("busy_wait_ms is %d, must not be negative", ms)
			}
			for end := time.Now().Add(milliseconds(ms)); time.Now().Before(end); {
				if c.Cancelled() {
					return rowset.RowSet{}, ErrCancelled
				}
			}
			return c.Inputs[0], nil
		},
	}
}
