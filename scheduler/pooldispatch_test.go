package scheduler_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// The tests of this file check the threading of the two-pool engine: which workers run a node,
// and how many nodes run at once. Every body stops at a door. The bodies at the doors are all
// that the engine runs at once, when all goroutines wait.

// dispatchTable is the original specification's table of tasks and pools (THREADING_MODEL.md).
// fixed_source and busy_cpu are not in it, but they do no I/O.
var dispatchTable = map[string]struct {
	io   bool
	node string // JSON of the members op and params, and inputs
}{
	"core::viewer":         {true, `"op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}`},
	"core::follow":         {true, `"op": "follow", "inputs": ["src"], "params": {"endpoint": "ep_0001", "fanout": 1}`},
	"core::recommendation": {true, `"op": "recommendation", "inputs": ["src"], "params": {"endpoint": "ep_0001", "fanout": 1}`},
	"core::media":          {true, `"op": "media", "inputs": ["src"], "params": {"endpoint": "ep_0001", "fanout": 1}`},
	"core::vm":             {false, `"op": "vm", "inputs": ["src"], "params": {"out_key": 2001, "expr_id": "score"}`},
	"core::filter":         {false, `"op": "filter", "inputs": ["src"], "params": {"pred_id": "big"}`},
	"core::sort":           {false, `"op": "sort", "inputs": ["src"], "params": {"by": 1}`},
	"core::take":           {false, `"op": "take", "inputs": ["src"], "params": {"count": 1}`},
	"core::concat":         {false, `"op": "concat", "inputs": ["src"], "params": {"rhs": "src"}`},
	"test::sleep":          {false, `"op": "sleep", "inputs": ["src"], "params": {"duration_ms": 0}`},
	"test::busy_cpu":       {false, `"op": "busy_cpu", "inputs": ["src"], "params": {"busy_wait_ms": 0}`},
	"test::fixed_source":   {false, `"op": "fixed_source", "inputs": [], "params": {}`},
}

// doors are built-in tasks whose bodies wait at the door of their kind until it opens.
type doors struct {
	inside [2]atomic.Int32 // bodies at the door: CPU, I/O
	opened [2]chan struct{}
	specs  []task.Spec
}

const (
	cpuDoor = iota
	ioDoor
)

// newDoors is called in the bubble. All tasks but free ones wait.
func newDoors(free ...string) *doors {
	d := &doors{opened: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
	for _, spec := range builtin.Specs() {
		kind := cpuDoor
		if dispatchTable[spec.Op].io {
			kind = ioDoor
		}
		waits := true
		for _, op := range free {
			waits = waits && op != spec.Op
		}
		spec.Output, spec.Writes, spec.Limited = task.Source, nil, false
		if max(spec.Inputs, spec.InputsMax) > 0 {
			spec.Output = task.Expand
		}
		spec = task.Engine(taskrun.Key{}).WithBody(spec, func(*task.Ctx) (rowset.RowSet, error) {
			if waits {
				d.inside[kind].Add(1)
				defer d.inside[kind].Add(-1)
				<-d.opened[kind]
			}
			return rowset.Dense(new(rowset.Batch)), nil
		})
		d.specs = append(d.specs, spec)
	}
	return d
}

// waiting returns how many bodies of that kind run when all goroutines wait.
func (d *doors) waiting(kind int) int {
	synctest.Wait()
	return int(d.inside[kind].Load())
}

// copiesOf returns a plan of n nodes of an op, none of which reads another.
func (b *bubble) copiesOf(op string, n int) *scheduler.Execution {
	nodes := []string{source(1)}
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"node_id": "x%d", %s}`, i, dispatchTable[op].node))
	}
	return &scheduler.Execution{Graph: graph(b.t, b.tasks, "x0", nodes...), UserID: 1}
}

// Each task runs on the pool of its place, and eight nodes of it at once, in one request and in eight.
func TestPoolDispatchesByPlace(t *testing.T) {
	// Tasks of the original specification have every place. The engine dispatches the other
	// tasks by the same rules.
	specs := slices.DeleteFunc(builtin.Specs(), func(s task.Spec) bool { _, ok := dispatchTable[s.Op]; return !ok })
	require.Len(t, specs, len(dispatchTable), "the table's tasks exist")
	// There are enough workers to tell the pool from the number of bodies that run at once.
	const cpuWorkers, ioWorkers, nodes = 3, 5, 8
	for _, spec := range specs {
		entry := dispatchTable[spec.Op]
		kind, workers := cpuDoor, cpuWorkers
		if entry.io {
			kind, workers = ioDoor, ioWorkers
		}
		t.Run(spec.Op, func(t *testing.T) {
			assert.Equal(t, entry.io, spec.Place == task.Waits)
			for name, load := range map[string][]int{"one request": {nodes}, "many requests": {1, 1, 1, 1, 1, 1, 1, 1}} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						// The source is instant, unless the test is about it.
						var free []string
						if spec.Op != "test::fixed_source" {
							free = []string{"test::fixed_source"}
						}
						d := newDoors(free...)
						b := openBubble(t, "pool", scheduler.Config{CPUThreads: cpuWorkers, IOThreads: ioWorkers}, d.specs...)
						defer b.close()
						var results []*bubbleResult
						for _, n := range load {
							results = append(results, b.start(b.copiesOf(spec.Op, n)))
						}
						assert.Equal(t, workers, d.waiting(kind), "bodies at once")
						assert.Zero(t, d.waiting(1-kind), "on the other workers")
						close(d.opened[kind])
						for _, r := range results {
							<-r.done
							assert.NoError(t, r.Err)
						}
					})
				})
			}
		})
	}
}

// The test shows why there are two pools: blocked I/O leaves the CPU workers free, and the
// other way around.
func TestPoolsDoNotStarveEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		blocked, other string
		kind           int
	}{
		"I/O is stuck":      {"core::viewer", "core::vm", ioDoor},
		"CPU work is stuck": {"core::vm", "core::viewer", cpuDoor},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoors("test::fixed_source")
				b := openBubble(t, "pool", scheduler.Config{CPUThreads: 2, IOThreads: 2}, d.specs...)
				defer b.close()
				// The sources of both are done before the workers are stuck.
				other := b.start(b.copiesOf(c.other, 1))
				require.Equal(t, 1, d.waiting(1-c.kind))
				blocked := b.start(b.copiesOf(c.blocked, 5))
				assert.Equal(t, 2, d.waiting(c.kind))
				close(d.opened[1-c.kind])
				assert.True(t, other.answered(), "nothing of it waits for the other kind's workers")
				assert.False(t, blocked.answered())
				close(d.opened[c.kind])
				<-blocked.done
				assert.NoError(t, blocked.Err)
			})
		})
	}
}

// The loop takes a core, but a second worker is worth more than that core. The default never
// exceeds the one of the original specification.
func TestDefaultCPUThreads(t *testing.T) {
	for cores, workers := range map[int]int{1: 2, 2: 2, 3: 2, 4: 3, 8: 7, 9: 8, 16: 8, 256: 8} {
		assert.Equal(t, workers, scheduler.DefaultCPUThreads(cores), "%d cores", cores)
	}
}

// The four I/O threads come from the original specification. The number of CPU workers is our
// own choice.
func TestPoolDefaults(t *testing.T) {
	for op, c := range map[string]struct{ kind, want int }{"core::viewer": {ioDoor, 4}, "core::vm": {cpuDoor, scheduler.DefaultCPUThreads(runtime.NumCPU())}} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoors("test::fixed_source")
				b := openBubble(t, "pool", scheduler.Config{}, d.specs...)
				defer b.close()
				r := b.start(b.copiesOf(op, 20))
				assert.Equal(t, c.want, d.waiting(c.kind))
				close(d.opened[c.kind])
				<-r.done
			})
		})
	}
}

// Async runs as many CPU bodies at once as it has workers, in one request or in many. The
// sequential engine runs one node of a request at a time, but several requests at once.
func TestNodesAtOnceOnTheOtherEngines(t *testing.T) {
	for name, c := range map[string]struct {
		engine         string
		requests, each int
		want           int
	}{
		"reactor, one request":       {"reactor", 1, 8, 3},
		"reactor, many requests":     {"reactor", 8, 1, 3},
		"sequential, one request":    {"sequential", 1, 8, 1},
		"sequential, eight requests": {"sequential", 8, 1, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoors("test::fixed_source")
				b := openBubble(t, c.engine, scheduler.Config{CPUThreads: 3}, d.specs...)
				defer b.close()
				var results []*bubbleResult
				for range c.requests {
					results = append(results, b.start(b.copiesOf("core::vm", c.each)))
				}
				assert.Equal(t, c.want, d.waiting(cpuDoor))
				close(d.opened[cpuDoor])
				for _, r := range results {
					<-r.done
					assert.NoError(t, r.Err)
				}
			})
		})
	}
}
