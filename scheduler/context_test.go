package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

type contextKey struct{}

// The context of a body has the caller's values and the node's deadline. It ends with the node, and says why.
func TestContextOfABody(t *testing.T) {
	left := errors.New("the caller has left")
	for name, c := range map[string]struct {
		timeout, request time.Duration // of a node and of the request; zero: none
		deadline         time.Duration // of the context; zero: none
		returns          bool          // the body does not wait for the end
		end              func(b *bubble, leave context.CancelCauseFunc)
		want             error
	}{
		"the node times out":    {timeout: 10 * time.Millisecond, deadline: 10 * time.Millisecond, want: scheduler.ErrNodeTimeout},
		"the request times out": {timeout: ample, request: 20 * time.Millisecond, deadline: 20 * time.Millisecond, want: scheduler.ErrNodeTimeout},
		"the body returns":      {returns: true, want: task.ErrReturned},
		"the engine ends":       {end: func(b *bubble, _ context.CancelCauseFunc) { b.Close(0) }, want: scheduler.ErrShuttingDown},
		"the caller leaves":     {end: func(_ *bubble, leave context.CancelCauseFunc) { leave(left) }, want: left},
	} {
		var ctx context.Context
		spec := task.Spec{Op: "test::asks", Output: task.Source, Run: func(body *task.Ctx) (rowset.RowSet, error) {
			ctx = body.Context()
			assert.True(t, ctx == body.Context(), "one for each run")
			assert.Equal(t, "value", ctx.Value(contextKey{}))
			deadline, ok := ctx.Deadline()
			assert.Equal(t, c.deadline != 0, ok)
			if ok {
				assert.Equal(t, c.deadline, time.Until(deadline))
			}
			assert.NoError(t, ctx.Err())
			if !c.returns {
				<-ctx.Done()
			}
			return noRows, nil
		}}
		t.Run(name, func(t *testing.T) {
			inBubbles(t, bubbleEngines, scheduler.Config{NodeTimeout: c.timeout}, func(t *testing.T, b *bubble) {
				caller, leave := context.WithCancelCause(context.WithValue(t.Context(), contextKey{}, "value"))
				defer leave(nil)
				req := &scheduler.Execution{Graph: graph(t, b.tasks, "x", node("x", "asks", "", "", "")), UserID: 1, Context: caller}
				if c.request > 0 {
					req.Deadline = b.clock.Now().Add(c.request)
				}
				r := b.start(req)
				if c.end != nil {
					require.False(t, r.answered())
					c.end(b, leave)
				}
				<-r.done
				<-ctx.Done()
				assert.ErrorIs(t, ctx.Err(), context.Canceled)
				assert.ErrorIs(t, context.Cause(ctx), c.want)
			}, spec)
		})
	}
}

// The context has the caller's own deadline if that comes first.
func TestContextOfABodyWhoseCallerHasADeadline(t *testing.T) {
	spec := task.Spec{Op: "test::asks", Output: task.Source, Run: func(body *task.Ctx) (rowset.RowSet, error) {
		deadline, _ := body.Context().Deadline()
		assert.Equal(t, time.Second, time.Until(deadline))
		return noRows, nil
	}}
	inBubbles(t, bubbleEngines, scheduler.Config{NodeTimeout: time.Minute}, func(t *testing.T, b *bubble) {
		caller, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := b.run(&scheduler.Execution{Graph: graph(t, b.tasks, "x", node("x", "asks", "", "", "")), UserID: 1, Context: caller})
		require.NoError(t, r.Err)
	}, spec)
}

// Libraries derive contexts and register functions that are called at the end, while nodes time
// out and their memory is used again. A bubble ends only when no goroutine is left.
func TestContextsUnderTimeouts(t *testing.T) {
	const requests = 400
	var ended atomic.Int64
	run := func(c *task.Ctx) (rowset.RowSet, error) {
		ctx, cancel := context.WithTimeout(c.Context(), ample)
		defer cancel()
		context.AfterFunc(c.Context(), func() { ended.Add(1) })
		select {
		case <-ctx.Done():
		// A deadline of zero would have such timers of a bubble fire on any thread at once,
		// which the race detector does not survive (go.dev/issue/78156).
		case <-time.After(1 + time.Duration(c.UserID%5)*time.Millisecond/2):
		}
		return noRows, nil
	}
	inBubbles(t, bubbleEngines, scheduler.Config{NodeTimeout: time.Millisecond, CPUThreads: 4}, func(t *testing.T, b *bubble) {
		g := graph(t, b.tasks, "x", node("x", "asks", "", "", ""))
		ended.Store(0)
		begun := int64(0)
		var results []*bubbleResult
		for user := range int64(requests) {
			results = append(results, b.start(&scheduler.Execution{Graph: g, UserID: user + 1}))
		}
		for _, r := range results {
			if <-r.done; !errors.Is(r.Err, scheduler.ErrDeadlineBeforeStart) {
				begun++
			}
		}
		b.Close(scheduler.Forever)
		assert.True(t, results[0].answered())
		assert.LessOrEqual(t, ended.Load(), begun)
		assert.NotZero(t, ended.Load())
	}, task.Spec{Op: "test::asks", Output: task.Source, Run: run})
}

// A node on the loop that needs no coroutine has a context, too.
func TestContextOfAnInlineBody(t *testing.T) {
	var contexts []context.Context
	spec := task.Spec{Op: "test::asks", Inputs: 1, Output: task.PassThrough, Inline: true, Cheap: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			assert.NoError(t, c.Context().Err())
			contexts = append(contexts, c.Context())
			return c.Inputs[0], nil
		}}
	inBubbles(t, []string{"reactor"}, scheduler.Config{}, func(t *testing.T, b *bubble) {
		g := graph(t, b.tasks, "y", source(1), node("x", "asks", "src", "", ""), node("y", "asks", "x", "", ""))
		require.NoError(t, b.run(&scheduler.Execution{Graph: g, UserID: 1}).Err)
		require.Len(t, contexts, 2)
		for _, ctx := range contexts {
			assert.ErrorIs(t, context.Cause(ctx), task.ErrReturned)
		}
		assert.EqualValues(t, 3, b.Metrics().Placement.Inline, "with the source")
	}, spec)
}
