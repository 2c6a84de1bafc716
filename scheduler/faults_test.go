package scheduler_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// A taskFault is a task that goes wrong, and what its request gets.
type taskFault struct {
	name string
	body task.Body
	// output is the shape that the task promises.
	output  task.Output
	wantErr error
	text    string
	// endless: only a limit ends it.
	endless bool
}

// wrongRows is a batch with other rows than those of any input.
func wrongRows() rowset.RowSet {
	return rowset.Dense(&rowset.Batch{IDs: []int64{41, 42, 43, 44, 45, 46, 47, 48}})
}

var taskFaults = []taskFault{
	{name: "panics", output: task.PassThrough, wantErr: task.ErrPanic, text: "task panicked: out of luck",
		body: func(*task.Ctx) (rowset.RowSet, error) { panic("out of luck") }},
	{name: "panics with an error", output: task.PassThrough, wantErr: task.ErrPanic, text: "assert.AnError",
		body: func(*task.Ctx) (rowset.RowSet, error) { panic(assert.AnError) }},
	{name: "dereferences nil", output: task.PassThrough, wantErr: task.ErrPanic, text: "nil pointer",
		body: func(c *task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{N: int(*(*int64)(nil))}, nil }},
	{name: "reads beyond its input", output: task.PassThrough, wantErr: task.ErrPanic, text: "out of range",
		body: func(c *task.Ctx) (rowset.RowSet, error) {
			_ = c.Inputs[0].Batch.IDs[1_000_000]
			return c.Inputs[0], nil
		}},
	{name: "fails", output: task.PassThrough, wantErr: assert.AnError, text: assert.AnError.Error(),
		body: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, assert.AnError }},
	{name: "returns nothing", output: task.PassThrough, wantErr: task.ErrContract, text: "output has no batch",
		body: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil }},
	{name: "returns other rows", output: task.PassThrough, wantErr: task.ErrContract, text: "must keep its input's batch",
		body: func(*task.Ctx) (rowset.RowSet, error) { return wrongRows(), nil }},
	{name: "drops rows", output: task.Permutation, wantErr: task.ErrContract, text: "not a permutation",
		body: func(c *task.Ctx) (rowset.RowSet, error) { return rowset.Take(c.Inputs[0], 1), nil }},
	{name: "doubles a row", output: task.Subset, wantErr: task.ErrContract, text: "not a subset",
		body: func(c *task.Ctx) (rowset.RowSet, error) {
			return rowset.RowSet{Batch: c.Inputs[0].Batch, Rows: []int32{0, 0}, N: 2}, nil
		}},
	{name: "points beyond its batch", output: task.Subset, wantErr: task.ErrContract, text: "lists row 9 of 8",
		body: func(c *task.Ctx) (rowset.RowSet, error) {
			return rowset.RowSet{Batch: c.Inputs[0].Batch, Rows: []int32{9}, N: 1}, nil
		}},
	{name: "adds a column that it does not announce", output: task.Expand, wantErr: task.ErrContract, text: "3001",
		body: func(*task.Ctx) (rowset.RowSet, error) {
			out := wrongRows()
			b := rowset.NewStringBuilder(keyCountry, out.N)
			for range out.N {
				b.AppendNull()
			}
			out.Batch = rowset.With(out.Batch, b.Column())
			return out, nil
		}},
	{name: "sleeps for ever", output: task.PassThrough, wantErr: scheduler.ErrNodeTimeout, text: "limit 50ms", endless: true,
		body: func(c *task.Ctx) (rowset.RowSet, error) {
			return c.Inputs[0], c.Sleep(math.MaxInt64)
		}},
}

// The place of a body depends on how its task is registered: see task.Spec.
const (
	faultOnPool = "fault::on_pool"
	faultOnLoop = "fault::on_loop"
)

func (f *taskFault) specs() []task.Spec {
	spec := task.Spec{Op: faultOnPool, Doc: "Goes wrong.", Inputs: 1, Output: f.output, Run: f.body}
	onLoop := spec
	onLoop.Op, onLoop.Place = faultOnLoop, task.Waits
	return []task.Spec{spec, onLoop}
}

// loadPlan loads a plan of nodes, the last of which, "out", is its output.
func loadPlan(t testing.TB, reg *registry.Registry, nodes string, more ...task.Spec) *plan.Graph {
	tasks, err := task.NewCatalog(append(builtin.Specs(), more...)...)
	require.NoError(t, err)
	text := fmt.Sprintf(`{"schema_version": 1, "plan_name": "test", "nodes": [%s], "outputs": ["out"]}`, nodes)
	g, err := plan.Load("test.plan.json", []byte(text), tasks, reg)
	require.NoError(t, err)
	return g
}

const eightRows = `{"node_id": "src", "op": "fixed_source", "inputs": [], "params": {"row_count": 8}},`

// goodPlan uses loop and pool: half of eight rows, after a while.
const goodPlan = eightRows + `
	{"node_id": "nap", "op": "sleep", "inputs": ["src"], "params": {"duration_ms": 1}},
	{"node_id": "busy", "op": "busy_cpu", "inputs": ["src"], "params": {"busy_wait_ms": 1}},
	{"node_id": "both", "op": "concat", "inputs": ["nap"], "params": {"rhs": "busy"}},
	{"node_id": "out", "op": "take", "inputs": ["both"], "params": {"count": 4}}`

func assertGood(t testing.TB, r *scheduler.Result) {
	t.Helper()
	if assert.NoError(t, r.Err) {
		assert.Equal(t, 4, r.Outputs[0].Len())
		assert.Equal(t, int64(1), r.Outputs[0].ID(0))
	}
}

// TestTaskFaults has a request meet each fault among other requests, on every engine and in
// both places.
func TestTaskFaults(t *testing.T) {
	reg := registryAt(t, "127.0.0.1:1", "")
	for _, f := range taskFaults {
		for _, op := range []string{faultOnPool, faultOnLoop} {
			if f.endless && op == faultOnPool {
				continue // the pool has no Redis: see TestWhoMayWait
			}
			t.Run(f.name+"/"+op, func(t *testing.T) {
				// Only an endless body meets its limit: on a busy machine a short limit might
				// end any other body, too.
				limit := time.Hour
				if f.endless {
					limit = 50 * time.Millisecond
				}
				// One neighbor of the fault runs at the same time, and one node depends on the
				// fault.
				bad := loadPlan(t, reg, fmt.Sprintf(`%s
					{"node_id": "bad", "op": %q, "inputs": ["src"], "params": {}, "timeout_ms": %d},
					{"node_id": "nap", "op": "sleep", "inputs": ["src"], "params": {"duration_ms": 1}},
					{"node_id": "out", "op": "concat", "inputs": ["bad"], "params": {"rhs": "nap"}}`, eightRows, op, limit.Milliseconds()),
					f.specs()...)
				good := loadPlan(t, reg, goodPlan)
				for _, en := range engines {
					t.Run(en.name, func(t *testing.T) {
						e := en.open(t, scheduler.Config{Registry: reg})
						var others sync.WaitGroup
						defer others.Wait()
						for range 16 {
							others.Go(func() {
								r, _ := run(e, good, user, 0)
								assertGood(t, r)
							})
						}
						for range 3 {
							r, _ := run(e, bad, user, 0)
							require.ErrorIs(t, r.Err, f.wantErr)
							require.ErrorContains(t, r.Err, f.text)
							require.ErrorContains(t, r.Err, fmt.Sprintf("node bad (%s): ", op))
							var node *scheduler.NodeError
							require.ErrorAs(t, r.Err, &node)
							assert.Equal(t, "bad", node.Node)
							assert.Nil(t, r.Outputs)
						}
						others.Wait()
						r, _ := run(e, good, user, 0)
						assertGood(t, r)
					})
				}
			})
		}
	}
}

// TestPanicKeepsItsStack shows that the error holds the stack of a panic, and that its text
// does not, since the text goes into a response.
func TestPanicKeepsItsStack(t *testing.T) {
	reg := registryAt(t, "127.0.0.1:1", "")
	for _, op := range []string{faultOnPool, faultOnLoop} {
		t.Run(op, func(t *testing.T) {
			g := loadPlan(t, reg, fmt.Sprintf(`%s{"node_id": "out", "op": %q, "inputs": ["src"], "params": {}}`, eightRows, op),
				taskFaults[0].specs()...)
			r, _ := run(openAsync(t, scheduler.Config{Registry: reg}), g, user, 0)
			var panicked *task.PanicError
			require.ErrorAs(t, r.Err, &panicked)
			assert.Equal(t, "out of luck", panicked.Value)
			assert.Contains(t, string(panicked.Stack), "faults_test.go")
			assert.NotContains(t, r.Err.Error(), "\n")
		})
	}
}

// TestAFullPool has more CPU work than a pool of one worker with a queue of one takes.
func TestAFullPool(t *testing.T) {
	reg := registryAt(t, "127.0.0.1:1", "")
	host := reactor.New(reactor.Config{})
	require.NoError(t, host.Start())
	t.Cleanup(func() {
		host.Stop()
		<-host.Loop().Done()
	})
	workers := cpupool.New(host.Loop(), cpupool.Config{Workers: 1, QueueMax: 1})
	t.Cleanup(workers.Close)
	e := closing(t, scheduler.NewAsync(scheduler.AsyncConfig{
		Loop: host.Loop(), CPU: workers, Config: scheduler.Config{
			Registry:  reg,
			Placement: scheduler.Placement{Mode: plan.OffloadAll}, // a slow first run would send the sources to the pool
		},
	}))

	// The first request holds the worker until the test lets go. The second waits in the queue.
	started, release := make(chan struct{}, 2), make(chan struct{})
	hold := taskFault{output: task.PassThrough, body: func(c *task.Ctx) (rowset.RowSet, error) {
		started <- struct{}{}
		<-release
		return c.Inputs[0], nil
	}}
	onPool := loadPlan(t, reg, eightRows+`{"node_id": "out", "op": "fault::on_pool", "inputs": ["src"], "params": {}}`, hold.specs()...)
	onLoop := loadPlan(t, reg, eightRows+`{"node_id": "out", "op": "sleep", "inputs": ["src"], "params": {"duration_ms": 1}}`)
	held := make(chan *scheduler.Result, 2)
	submit := func() {
		e.Submit(&scheduler.Execution{Graph: onPool, UserID: user}, func(r *scheduler.Result) { held <- r })
	}
	submit()
	<-started
	submit()

	for range 3 {
		r, _ := run(e, onPool, user, 0) // answered while the worker is held
		require.ErrorIs(t, r.Err, cpupool.ErrQueueFull)
		require.ErrorContains(t, r.Err, "node out (fault::on_pool): cpu pool: queue is full")
		r, _ = run(e, onLoop, user, 0)
		require.NoError(t, r.Err, "what needs no worker goes on")
	}
	close(release)
	for range 2 {
		r := <-held
		require.NoError(t, r.Err, "what was accepted is done")
	}
	r, _ := run(e, onPool, user, 0)
	assert.NoError(t, r.Err)
	m := e.Metrics()
	assert.Equal(t, uint64(3), m.Failed)
	assert.Zero(t, m.Live)
	assert.Zero(t, m.Orphans)
}
