package placement

import (
	"bytes"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// burnOp is test::busy_cpu, except that it burns processor time: two of them on one core take twice as long.
const burnOp = "bench::burn_cpu"

// WithBuiltins returns the text of a plan for engines without the task: test::busy_cpu stands in, which keeps a worker busy for as
// long, whether it has a core or not.
func WithBuiltins(plan []byte) []byte {
	return bytes.ReplaceAll(plan, []byte(burnOp), []byte("test::busy_cpu"))
}

// burnTask returns the task, whose body has burn use that much processor time.
func burnTask(burn func(d time.Duration)) task.Spec {
	return task.Spec{
		Op: burnOp, Doc: "Burns processor time, then passes its input through.",
		Params: []plan.ParamSchema{{Name: "busy_wait_ms", Type: plan.Int, Required: true, Doc: "The processor time, in milliseconds."}},
		Inputs: 1, Output: task.PassThrough, Expensive: true, Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			burn(time.Duration(c.Node.Params.Int("busy_wait_ms")) * time.Millisecond)
			return c.Inputs[0], nil
		},
	}
}

// burn uses so much processor time, or time where the system does not tell processor time. It computes for some
// 10 µs between two readings. Where the goroutine has changed threads between them, the time counts that passed.
func burn(d time.Duration) {
	read, wall := clock.NewThreadCPU(), clock.NewReal()
	if read == nil {
		read = func() (int, time.Duration) { return 0, time.Duration(wall.Now()) }
	}
	thread, used := read()
	for d > 0 {
		began, x := wall.Now(), uint64(1)
		for range 10_000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		if x == 0 {
			return // never, but the compiler does not know
		}
		there, now := read()
		if there == thread {
			d -= now - used
		} else {
			d -= wall.Now().Sub(began)
		}
		thread, used = there, now
	}
}
