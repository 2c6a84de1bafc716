package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// faultWait is how long a request may take whose run has panicked. It would be forever.
const faultWait = 20 * time.Second

// breaks are plans of two nodes, whose first one plants a bug that shows in a step behind its body. plant is called with the number of
// the use that panics. It returns what the body returns, and what mends the plan again.
var breaks = []struct {
	name  string
	uses  bool // there are several uses
	plant func(c *task.Ctx, bug *testworld.Bug, use int) (rowset.RowSet, func(), error)
}{
	{"an error", true, func(_ *task.Ctx, bug *testworld.Bug, use int) (rowset.RowSet, func(), error) {
		return rowset.RowSet{}, func() {}, bug.Arm(use)
	}},
	{"the context", true, func(_ *task.Ctx, bug *testworld.Bug, use int) (rowset.RowSet, func(), error) {
		bug.Arm(use)
		return rankdtest.Rows(1, 2, 3), func() {}, nil
	}},
	{"the context of a failed node", true, func(_ *task.Ctx, bug *testworld.Bug, use int) (rowset.RowSet, func(), error) {
		bug.Arm(use)
		return rowset.RowSet{}, func() {}, task.ErrInvalid
	}},
	{"the index of the node", false, func(c *task.Ctx, _ *testworld.Bug, _ int) (rowset.RowSet, func(), error) {
		node, index := c.Node, c.Node.Index
		node.Index += 1000
		return rankdtest.Rows(1, 2, 3), func() { node.Index = index }, nil
	}},
	{"the dependents of the node", false, func(c *task.Ctx, _ *testworld.Bug, _ int) (rowset.RowSet, func(), error) {
		node, dependents := c.Node, c.Node.Succs
		node.Succs = []int{1000}
		return rankdtest.Rows(1, 2, 3), func() { node.Succs = dependents }, nil
	}},
	{"the trace sink", false, func(*task.Ctx, *testworld.Bug, int) (rowset.RowSet, func(), error) {
		return rankdtest.Rows(1, 2, 3), func() {}, nil
	}},
}

// TestAPanicStillAnswers breaks the engine itself in each step between the end of a body and the answer. The request is
// answered, the next one is as good as ever, and Close returns.
func TestAPanicStillAnswers(t *testing.T) {
	for _, mode := range []rankd.SchedulingMode{"", rankd.OffloadAll, rankd.InlineAll} {
		for _, model := range enginetest.Models {
			if mode != "" && model != rankd.Reactor {
				continue
			}
			for _, place := range []task.Place{task.Computes, task.Waits} {
				for _, b := range breaks {
					t.Run(string(model)+string(mode)+"/"+[...]string{task.Computes: "computes", task.Waits: "waits"}[place]+"/"+b.name, func(t *testing.T) {
						bug := new(testworld.Bug)
						var use atomic.Int64
						var mend func()
						plant := task.Spec{Op: "test::plant", Output: task.Source, Place: place, Run: func(c *task.Ctx) (rowset.RowSet, error) {
							n := use.Load()
							if n == 0 {
								return rankdtest.Rows(1, 2, 3), nil
							}
							out, undo, err := b.plant(c, bug, int(n))
							mend = undo
							return out, err
						}}
						pass := task.Spec{Op: "test::pass", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil }}
						e := enginetest.Open(t, rankd.Options{
							Model: model, Scheduling: rankd.Scheduling{Mode: mode}, Redis: "127.0.0.1:1" /* not used */, CPUThreads: 2, MaxInflight: 1, MaxQueue: 1,
							Logger: slog.New(slog.DiscardHandler), Tasks: []task.Spec{plant, pass},
							Plans: enginetest.Plans(map[string]string{"p": `{"node_id": "a", "op": "test::plant", "inputs": []}, {"node_id": "out", "op": "test::pass", "inputs": ["a"]},
								{"node_id": "b", "op": "test::pass", "inputs": ["a"]}`}),
							TraceSink: enginetest.Sink(func(*trace.Recording) {
								if b.name == "the trace sink" && use.Load() > 0 {
									panic("a deliberate bug")
								}
							}), TraceSample: 1,
						})
						rank := func(ctx context.Context) (*rankd.Answer, error) {
							type ended struct {
								a   *rankd.Answer
								err error
							}
							done := make(chan ended, 2)
							e.Submit(ctx, rankd.Request{Plan: "p", UserID: 1}, func(a *rankd.Answer, err error) { done <- ended{a, err} })
							select {
							case end := <-done:
								assert.Empty(t, done)
								return end.a, end.err
							case <-time.After(faultWait):
								require.FailNow(t, "no answer", "use %d", use.Load())
								return nil, nil
							}
						}
						fired := 0
						for n := int64(1); n < 100; n++ {
							use.Store(n)
							_, err := rank(bug.Context(t.Context()))
							mend()
							if bug.Fired() {
								fired++
								require.Error(t, err)
							}
							use.Store(0)
							bug.Arm(0)
							a, err := rank(t.Context())
							require.NoError(t, err, "the request behind use %d", n)
							require.Equal(t, 3, a.Len())
							if !b.uses || fired < int(n) {
								break
							}
						}
						assert.True(t, !b.uses || fired > 0)
					})
				}
			}
		}
	}
}

// A row set that breaks the encoder makes an error of its answer.
func TestAPanicOfAnEncoderIsAnError(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Redis: "127.0.0.1:1" /* not used */, Logger: slog.New(slog.DiscardHandler), Plans: enginetest.Plans(map[string]string{"p": enginetest.ThreeRows})})
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", ID: "r", UserID: 1})
	require.NoError(t, err)
	a.Output(0).Rows().Batch.IDs = nil
	var failed *rankd.Error
	require.ErrorAs(t, e.Intake().Contain("r", func() { a.AppendJSON(nil, rankd.FormatFlat) }), &failed)
	assert.Equal(t, outcome.Internal, failed.Class)
	assert.Equal(t, "r", failed.RequestID)
	assert.NoError(t, e.Intake().Contain("r", func() {}))
}
