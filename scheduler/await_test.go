package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// places are the places whose bodies may wait for time and for functions.
var places = []task.Place{task.Computes, task.Waits, task.OnLoop}

// at returns a task that runs at that place and makes no rows.
func at(place task.Place, run func(c *task.Ctx) error) task.Spec {
	return task.Spec{Op: "test::at", Output: task.Source, Place: place, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		return noRows, run(c)
	}}
}

// request returns a request for a plan with one node, whose task at returns.
func (b *bubble) request() *scheduler.Execution {
	return &scheduler.Execution{Graph: graph(b.t, b.tasks, "x", node("x", "at", "", "", "")), UserID: 1}
}

// A body waits for a function at any place of any engine, and gets its results and its error.
func TestAwait(t *testing.T) {
	fails := errors.New("no such row")
	for name, want := range map[string]struct {
		fn  func(ctx context.Context) error
		err error
	}{
		"returns": {func(ctx context.Context) error { time.Sleep(5 * time.Millisecond); return ctx.Err() }, nil},
		"fails":   {func(context.Context) error { time.Sleep(5 * time.Millisecond); return fails }, fails},
		"panics":  {func(context.Context) error { time.Sleep(5 * time.Millisecond); panic("no rows") }, task.ErrPanic},
		"leaves":  {func(context.Context) error { time.Sleep(5 * time.Millisecond); runtime.Goexit(); return nil }, task.ErrGoexit},
	} {
		for _, place := range places {
			t.Run(name+", "+place.String(), func(t *testing.T) {
				rounds := 0
				spec := at(place, func(c *task.Ctx) (err error) {
					for range 2 {
						called := false
						if err = c.Await(func(ctx context.Context) error { called = true; return want.fn(ctx) }); err != nil {
							return err
						}
						assert.True(t, called)
						rounds++
					}
					return nil
				})
				inBubbles(t, bubbleEngines, scheduler.Config{}, func(t *testing.T, b *bubble) {
					rounds = 0
					r := b.run(b.request())
					if want.err == nil {
						require.NoError(t, r.Err)
						assert.Equal(t, 2, rounds)
						assert.Equal(t, 10*time.Millisecond, r.at)
						return
					}
					requireNode(t, r.Err, "x")
					assert.ErrorIs(t, r.Err, want.err)
					assert.Equal(t, 5*time.Millisecond, r.at)
					if p := (*task.PanicError)(nil); errors.As(r.Err, &p) {
						assert.Contains(t, string(p.Stack), "await_test.go", "the stack of the function")
					}
				}, spec)
			})
		}
	}
}

// A node that times out does not wait for its function. The function's context has ended, and
// its late result is dropped. Close waits for the function.
func TestAwaitEndsWithTheNode(t *testing.T) {
	for name, ends := range map[string]struct {
		timeout time.Duration
		want    error
	}{"timed out": {10 * time.Millisecond, scheduler.ErrNodeTimeout}, "shut down": {0, scheduler.ErrShuttingDown}} {
		for _, place := range places {
			t.Run(name+", "+place.String(), func(t *testing.T) {
				var cause, awaited error
				var gate chan struct{}
				spec := at(place, func(c *task.Ctx) error {
					awaited = c.Await(func(ctx context.Context) error {
						<-ctx.Done()
						cause = context.Cause(ctx)
						<-gate
						return errors.New("late")
					})
					return awaited
				})
				inBubbles(t, bubbleEngines, scheduler.Config{NodeTimeout: ends.timeout}, func(t *testing.T, b *bubble) {
					gate = make(chan struct{})
					r, closed := b.start(b.request()), make(chan struct{})
					if ends.timeout == 0 {
						require.False(t, r.answered())
					} else {
						<-r.done
						assert.Equal(t, ends.timeout, r.at)
						assert.Equal(t, scheduler.AwaitStats{Running: 1}, b.Metrics().Awaits)
					}
					go func() {
						defer close(closed)
						b.Close(0)
					}()
					<-r.done
					assert.ErrorIs(t, r.Err, ends.want)
					synctest.Wait()
					assert.ErrorIs(t, awaited, task.ErrCancelled)
					assert.ErrorIs(t, cause, ends.want)
					select {
					case <-closed:
						t.Error("Close has not waited for the function")
					default:
					}
					close(gate)
					<-closed
					assert.Equal(t, scheduler.AwaitStats{Late: 1}, b.Metrics().Awaits)
				}, spec)
			})
		}
	}
}

// Bodies on the loop wait at the same time, however few workers there are.
func TestAwaitLeavesTheLoop(t *testing.T) {
	spec := at(task.Waits, func(c *task.Ctx) error {
		return c.Await(func(context.Context) error { time.Sleep(5 * time.Millisecond); return nil })
	})
	inBubbles(t, []string{"reactor"}, scheduler.Config{CPUThreads: 1}, func(t *testing.T, b *bubble) {
		var results []*bubbleResult
		for range 100 {
			results = append(results, b.start(b.request()))
		}
		for _, r := range results {
			<-r.done
			require.NoError(t, r.Err)
			assert.Equal(t, 5*time.Millisecond, r.at)
		}
	}, spec)
}

func TestAwaitsAreBounded(t *testing.T) {
	var a scheduler.Awaits
	var waiting []func()
	a.Go = func(fn func()) { waiting = append(waiting, fn) }
	ended := 0
	start := func() error { return a.Start(func() error { return nil }, func(error) { ended++ }) }
	for range scheduler.AwaitsMax {
		require.NoError(t, start())
	}
	require.ErrorIs(t, start(), task.ErrTooManyAwaits)
	assert.Equal(t, scheduler.AwaitStats{Running: scheduler.AwaitsMax, Refused: 1}, a.Stats())
	for _, fn := range waiting {
		fn()
	}
	assert.Equal(t, scheduler.AwaitsMax, ended)
	require.NoError(t, start(), "there is room again")
}

// The waits that a body may begin depend only on its task, not on the engine.
func TestWhoMayWait(t *testing.T) {
	sleep := func(c *task.Ctx) error { return c.Sleep(5 * time.Millisecond) }
	await := func(c *task.Ctx) error {
		return c.Await(func(context.Context) error { time.Sleep(5 * time.Millisecond); return nil })
	}
	redis := func(c *task.Ctx) error { // A bubble cannot reach the address of the table's server.
		_, err := c.Redis(&registry.Endpoint{ID: "ep", Name: "none"}).Do("PING")
		return err
	}
	const inline, io = "must not wait", "must have Place Waits or OnLoop"
	for name, c := range map[string]struct {
		place   task.Place
		cheap   bool
		wait    func(c *task.Ctx) error
		refusal string // empty: it waits
	}{
		"a sleep in a body that computes":     {task.Computes, false, sleep, ""},
		"a sleep in a body that waits":        {task.Waits, false, sleep, ""},
		"a sleep in a body that is cheap":     {task.Computes, true, sleep, inline},
		"a function in a body that computes":  {task.Computes, false, await, ""},
		"a function in a cheap body":          {task.OnLoop, true, await, inline},
		"Redis in a body that computes":       {task.Computes, false, redis, io},
		"Redis in a cheap body that computes": {task.Computes, true, redis, io},
	} {
		t.Run(name, func(t *testing.T) {
			spec := at(c.place, c.wait)
			spec.Inline, spec.Cheap = c.cheap, c.cheap
			inBubbles(t, bubbleEngines, scheduler.Config{}, func(t *testing.T, b *bubble) {
				r := b.run(b.request())
				if c.refusal == "" {
					require.NoError(t, r.Err)
					assert.Equal(t, 5*time.Millisecond, r.at)
				} else {
					assert.ErrorContains(t, r.Err, c.refusal)
				}
			}, spec)
		})
	}
}
