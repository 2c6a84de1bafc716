package scheduler_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Package scheduler's own tests cannot import scheduler/blocking, which imports scheduler. So
// the tests of all three engines are external. This file has the helpers that both kinds of
// tests share.
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
	openFDs           = scheduler.OpenFDs
	assertNothingLeft = scheduler.AssertNothingLeft
	idsUpTo           = schedulertest.IDsUpTo
	noRows            = schedulertest.NoRows
	ms                = schedulertest.MS
)

const (
	ample = schedulertest.Ample
	soon  = schedulertest.Soon
)

// A body outside of the loop that ends its goroutine fails its node with one error. On the loop
// it ends the process.
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

// TestCloseGivesUp closes an engine while work of each kind is in flight. That work would not
// end within an hour. Each request is told so, once, and nothing is left.
func TestCloseGivesUp(t *testing.T) {
	reg := silentRedis(t)
	load := func(output string, nodes ...string) *plan.Graph {
		return graphFor(t, reg, builtin.Catalog(), output, nodes...)
	}
	for name, g := range map[string]*plan.Graph{
		"a sleep":      load("x", source(3), sleepNode("x", "src", ample)),
		"a Redis call": load("x", viewerNode("x")),
		"CPU work":     load("x", source(3), busyNode("x", "src", ample)),
		"all at once": load("z", viewerNode("v"), source(3), busyNode("b", "src", ample),
			sleepNode("s", "src", ample), concatNode("y", "v", "b"), concatNode("z", "y", "s")),
	} {
		for _, engine := range engines {
			for _, grace := range []time.Duration{-1, 0, 5 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s, %s, grace %v", name, engine.name, grace), func(t *testing.T) {
					before := openFDs(t)
					const n = 6 // more than there are CPU workers
					e := engine.open(t, scheduler.Config{Registry: reg, CPUThreads: 2})
					answers := make(chan error, n+2)
					for range n {
						require.NoError(t, e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(r *scheduler.Result) { answers <- r.Err }))
					}
					e.Close(grace)
					require.Len(t, answers, n, "exactly one answer each, before Close returns")
					for range n {
						assert.ErrorIs(t, <-answers, scheduler.ErrShuttingDown)
					}
					assert.Eventually(t, func() bool { return openFDs(t) <= before }, 5*time.Second, time.Millisecond, "descriptors, also those of the server, which notices later")
					if a, ok := e.(*scheduler.Async); ok {
						assertNothingLeft(t, a)
						assert.Equal(t, scheduler.Counts{Requests: n, Failed: n}, gone(a.Metrics().Counts))
					}
					err := e.Submit(&scheduler.Execution{Graph: g, UserID: 1}, func(*scheduler.Result) { t.Error("answered") })
					assert.ErrorIs(t, err, scheduler.ErrShuttingDown)
				})
			}
		}
	}
}

// gone returns the counts without those that say how abandoned bodies ended.
func gone(c scheduler.Counts) scheduler.Counts {
	c.Cancelled, c.LateCompletions = 0, 0
	return c
}
