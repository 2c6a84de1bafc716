package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// BenchmarkWait has 64 requests in flight that wait for 5 ms each: for a timer, or for a
// goroutine that sleeps as long. A request takes some 85 µs at best.
func BenchmarkWait(b *testing.B) {
	const inflight, wait = 64, 5 * time.Millisecond
	for name, run := range map[string]func(c *task.Ctx) error{
		"timer":    func(c *task.Ctx) error { return c.Sleep(wait) },
		"function": func(c *task.Ctx) error { return c.Await(func(context.Context) error { time.Sleep(wait); return nil }) },
	} {
		b.Run(name, func(b *testing.B) {
			e, err := scheduler.OpenAsync(scheduler.Config{Registry: testRegistry(b)})
			require.NoError(b, err)
			defer e.Close(scheduler.Forever)
			g := graph(b, builtins(b, at(task.Waits, run)), "x", node("x", "at", "", "", ""))
			room := make(chan struct{}, inflight)
			b.ReportAllocs()
			for range b.N {
				room <- struct{}{}
				err := e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(r *scheduler.Result) {
					if r.Err != nil {
						b.Error(r.Err)
					}
					<-room
				})
				require.NoError(b, err)
			}
			for range inflight {
				room <- struct{}{}
			}
		})
	}
}
