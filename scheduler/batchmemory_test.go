package scheduler

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// TestIdleNodesKeepLittleOfTheirBatches: bodies that live at the same time fill a batch each,
// and some then fill a small one in the same memory. The engine keeps the objects of the bodies
// for the next request, but not these buffers.
func TestIdleNodesKeepLittleOfTheirBatches(t *testing.T) {
	const (
		bodies     = 32
		batchBytes = 512 << 10
		keptMax    = bodies * batchBytes / 4
	)
	for name, after := range map[string]func(*task.Ctx){
		"large":            func(*task.Ctx) {},
		"large then small": func(c *task.Ctx) { tasks.Env(c).Waiter.NewBatch().Cmd("PING") },
	} {
		t.Run(name, func(t *testing.T) {
			filled := 0
			fill := func(c *task.Ctx) (rowset.RowSet, error) {
				b := tasks.Env(c).Waiter.NewBatch()
				for b.Size() < batchBytes {
					b.Cmd("ECHO", "0123456789012345678901234567890123456789")
				}
				after(c)
				for filled++; filled < bodies; {
					if err := c.Sleep(time.Millisecond); err != nil {
						return rowset.RowSet{}, err
					}
				}
				return rowset.Dense(new(rowset.Batch)), nil
			}
			tasks := builtins(t, task.Spec{Op: "test::fill", Output: task.Source, Place: task.Waits, Run: fill})
			w := openWorld(t, Config{})
			plan := graph(t, tasks, "src", node("src", "test::fill", "", "", ""))
			before := heapInUse()
			var results []<-chan *Result
			for range bodies {
				results = append(results, w.start(&Execution{Graph: plan}))
			}
			for _, result := range results {
				require.NoError(t, (<-result).Err)
			}
			assert.Less(t, heapInUse()-before, int64(keptMax))
			runtime.KeepAlive(w)
		})
	}
}

// heapInUse returns the bytes of all objects that are reachable.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
