package scheduler_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/scheduler/schedulertest"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Package scheduler's own tests cannot import scheduler/blocking, which imports scheduler. So the
// tests of all three engines are external. These are the helpers that they share with its own.
var (
	node              = schedulertest.Node
	source            = schedulertest.Source
	sleepNode         = schedulertest.SleepNode
	busyNode          = schedulertest.BusyNode
	concatNode        = schedulertest.ConcatNode
	vmNode            = schedulertest.VMNode
	viewerNode        = schedulertest.ViewerNode
	graph             = schedulertest.Graph
	graphFor          = schedulertest.GraphFor
	builtins          = schedulertest.Catalog
	testRegistry      = schedulertest.Registry
	silentRedis       = schedulertest.SilentRedis
	loopTask          = schedulertest.LoopTask
	requireRows       = scheduler.RequireRows
	requireNode       = scheduler.RequireNode
	assertNothingLeft = scheduler.AssertNothingLeft
	idsUpTo           = schedulertest.IDsUpTo
	noRows            = schedulertest.NoRows
	ms                = schedulertest.MS
)

const (
	ample = schedulertest.Ample
	soon  = schedulertest.Soon
)

// TestBlockingEnginesDrain holds the blocking engines to the same contract, as far as
// blocking goes: sleeps and Redis calls are given up, CPU work is asked to stop and waited
// for, and a node that waits for a worker never starts.
func TestBlockingEnginesDrain(t *testing.T) {
	reg := silentRedis(t)
	load := func(output string, nodes ...string) *plan.Graph {
		return graphFor(t, reg, builtin.Catalog(), output, nodes...)
	}
	for name, openEngine := range map[string]func(scheduler.Config) scheduler.Engine{
		"sequential": func(c scheduler.Config) scheduler.Engine { return blocking.OpenSequential(c) },
		"pool":       func(c scheduler.Config) scheduler.Engine { return blocking.OpenTwoPools(c) },
	} {
		t.Run(name, func(t *testing.T) {
			e := openEngine(scheduler.Config{Registry: reg, CPUThreads: 1})
			answers := make(chan error, 8)
			graphs := []*plan.Graph{
				load("x", source(1), sleepNode("x", "src", ample)), load("x", viewerNode("x")),
				load("x", source(1), busyNode("x", "src", ample)), load("x", source(1), busyNode("x", "src", ample)),
			}
			for _, g := range graphs {
				e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(r *scheduler.Result) { answers <- r.Err })
			}
			e.Close(soon) // so that some of it is under way
			require.Len(t, answers, len(graphs))
			for range graphs {
				assert.ErrorIs(t, <-answers, scheduler.ErrShuttingDown)
			}
			err := e.Submit(&scheduler.Execution{Graph: load("src", source(1)), UserID: 1}, func(*scheduler.Result) { t.Error("answered") })
			assert.ErrorIs(t, err, scheduler.ErrShuttingDown)
			e.Close(scheduler.Forever)
		})
	}
}

// One contract, three engines: a sleep ends when the body is cancelled.
func TestACancelledBodySleepsNoMore(t *testing.T) {
	engines := map[string]func(scheduler.Config) (scheduler.Engine, error){
		"reactor":    func(c scheduler.Config) (scheduler.Engine, error) { return scheduler.OpenAsync(c) },
		"pool":       func(c scheduler.Config) (scheduler.Engine, error) { return blocking.OpenTwoPools(c), nil },
		"sequential": func(c scheduler.Config) (scheduler.Engine, error) { return blocking.OpenSequential(c), nil },
	}
	for engine, openEngine := range engines {
		for name, c := range map[string]struct {
			nodeTimeout time.Duration
			close       bool
			want        error
		}{
			"timed out": {nodeTimeout: soon, want: scheduler.ErrNodeTimeout},
			"shut down": {close: true, want: scheduler.ErrShuttingDown},
		} {
			t.Run(engine+", "+name, func(t *testing.T) {
				entered, slept := make(chan struct{}, 1), make(chan error, 1)
				g := graph(t, builtins(t, loopTask("test::nap", func(c *task.Ctx) (rowset.RowSet, error) {
					entered <- struct{}{}
					err := c.Sleep(ample)
					slept <- err
					return rowset.RowSet{}, err
				})), "x", node("x", "nap", "", "", ""))
				e, err := openEngine(scheduler.Config{Registry: testRegistry(t), NodeTimeout: c.nodeTimeout})
				require.NoError(t, err)
				answer := make(chan error, 1)
				e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(r *scheduler.Result) { answer <- r.Err })
				<-entered
				if c.close {
					e.Close(0)
				}
				assert.ErrorIs(t, <-answer, c.want)
				e.Close(scheduler.Forever)
				assert.ErrorIs(t, <-slept, task.ErrCancelled)
			})
		}
	}
}

// A node's timeout counts from its own start on the sequential engine, too.
func TestSequentialTimeoutsCountFromTheNodesStart(t *testing.T) {
	time := clock.NewManual()
	step := loopTask("test::step", func(c *task.Ctx) (rowset.RowSet, error) {
		time.Advance(ample / 2)
		return c.Inputs[0], nil
	})
	step.Inputs, step.Output = 1, task.PassThrough
	g := graph(t, builtins(t, step), "c", source(1), node("a", "step", "src", "", ""), node("b", "step", "a", "", ""),
		node("c", "step", "b", "", ""))
	e := blocking.OpenSequential(scheduler.Config{Registry: testRegistry(t), Clock: time, NodeTimeout: ample})
	defer e.Close(scheduler.Forever)
	answer := make(chan *scheduler.Result, 1)
	e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(r *scheduler.Result) { answer <- r })
	requireRows(t, <-answer, 1)
}

// A body off the loop that ends its goroutine fails its node with one error. On the loop it ends the process.
func TestGoexitOnEveryEngine(t *testing.T) {
	leave := task.Spec{Op: "test::leave", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) {
		runtime.Goexit()
		return rowset.RowSet{}, nil
	}}
	inBubbles(t, bubbleEngines, scheduler.Config{}, func(t *testing.T, b *bubble) {
		r := b.run(&scheduler.Execution{Graph: graph(t, b.tasks, "x", node("x", "leave", "", "", "")), UserID: 1})
		assert.ErrorIs(t, r.Err, task.ErrGoexit)
		requireNode(t, r.Err, "x")
	}, leave)
}
