package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/task"
)

// TestAsyncHasItsWorkers: an Async that was opened as a program opens it has the workers that
// its Config asks for.
func TestAsyncHasItsWorkers(t *testing.T) {
	const workers, requests = 3, 5
	gate := newGate()
	gate.entered = make(chan *task.Ctx, requests)
	w := openWorld(t, Config{CPUThreads: workers})
	defer gate.release()
	g := graph(t, builtins(t, gate.spec()), "g", node("g", "gate", "", "", ""))
	var results []<-chan *Result
	for range requests {
		results = append(results, w.start(&Execution{Graph: g, UserID: 1}))
	}
	for i := range workers {
		select {
		case <-gate.entered:
		case <-time.After(time.Minute):
			require.Fail(t, "workers are missing", "%d of %d run", i, workers)
		}
	}
	w.counted() // on the loop, after it has begun all requests
	m := w.Metrics()
	assert.Equal(t, int64(requests-workers), m.CPU.Queued)
	gate.release()
	for _, r := range results {
		require.NoError(t, (<-r).Err)
	}
}
