package scheduler

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// watched is an engine whose watchdog looks when the test says so.
type watched struct {
	*world
	now   time.Time
	stuck chan Stuck
}

func openWatched(t *testing.T) *watched {
	w := &watched{world: openWorld(t, Config{}), now: time.Now(), stuck: make(chan Stuck, 4)}
	w.watchdog.close()
	dog := newWatchdog(w.loop, func(s Stuck) { w.stuck <- s })
	dog.start(nil)
	exchanged := make(chan struct{})
	w.Post(func() {
		w.watchdog = dog
		close(exchanged)
	})
	<-exchanged
	return w
}

// look has the watchdog look that long after the last time.
func (w *watched) look(after time.Duration) {
	w.now = w.now.Add(after)
	w.watchdog.look(w.now)
}

// waitIdle waits until the loop waits.
func (w *watched) waitIdle() {
	require.Eventually(w.t, func() bool {
		_, idle := w.loop.Progress()
		return idle
	}, ample, time.Millisecond)
}

// The watchdog names a body on the loop that does not return, or any other callback. It does so
// once, and says when it is over. Meanwhile Metrics answers.
func TestWatchdog(t *testing.T) {
	holdUpTheLoop := func(entered chan<- struct{}, gate <-chan struct{}) {
		entered <- struct{}{}
		<-gate
	}
	for name, c := range map[string]struct {
		spec func(hold func()) task.Spec
		node bool
	}{
		"a coroutine": {func(hold func()) task.Spec {
			return loopTask("test::holds", func(*task.Ctx) (rowset.RowSet, error) { hold(); return noRows, nil })
		}, true},
		"a coroutine that has waited": {func(hold func()) task.Spec {
			return loopTask("test::holds", func(c *task.Ctx) (rowset.RowSet, error) {
				err := c.Sleep(1)
				hold()
				return noRows, err
			})
		}, true},
		"inline": {func(hold func()) task.Spec {
			return task.Spec{Op: "test::holds", Output: task.Source, Inline: true, Cheap: true,
				Run: func(*task.Ctx) (rowset.RowSet, error) { hold(); return noRows, nil }}
		}, true},
		"a receiver of answers": {func(func()) task.Spec {
			return loopTask("test::holds", func(*task.Ctx) (rowset.RowSet, error) { return noRows, nil })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, entered, gate := openWatched(t), make(chan struct{}, 1), make(chan struct{})
			hold := func() { holdUpTheLoop(entered, gate) }
			g := graph(t, builtins(t, c.spec(hold)), "x", node("x", "holds", "", "", `"source_span": "plans/x.plan.ts:7:3"`))
			assert.Zero(t, w.Metrics().Stuck)
			answered := make(chan error, 1)
			w.Submit(&Execution{Graph: g, UserID: 1}, func(r *Result) {
				if !c.node {
					hold()
				}
				answered <- r.Err
			})
			<-entered
			for range 3 {
				w.look(stuckAfter)
			}
			s := <-w.stuck
			assert.False(t, s.Over)
			assert.Equal(t, stuckAfter, s.For)
			assert.Contains(t, s.Stack, "TestWatchdog.", "the function that holds up the loop")
			assert.Contains(t, s.Stack, "loop.(*Loop)")
			var log bytes.Buffer
			s.Log(slog.New(slog.NewTextHandler(&log, nil)))
			if c.node {
				require.NotNil(t, s.Node)
				assert.Equal(t, "x", s.Node.ID)
				assert.Contains(t, log.String(), "node=x op=test::holds source_span=plans/x.plan.ts:7:3 stack=")
			} else {
				assert.Nil(t, s.Node)
				assert.Contains(t, log.String(), "a callback holds up the loop")
			}
			m := w.Metrics()
			assert.EqualValues(t, 1, m.Stuck)
			assert.NotZero(t, m.StuckFor)
			assert.NotZero(t, w.StuckFor())
			assert.Zero(t, m.Requests, "the last copy")
			assert.Len(t, m.Redis, len(w.endpoints))

			close(gate)
			require.NoError(t, <-answered)
			w.waitIdle()
			w.look(stuckAfter)
			w.look(stuckAfter)
			assert.True(t, (<-w.stuck).Over)
			assert.Empty(t, w.stuck, "said once each")
			m = w.Metrics()
			assert.EqualValues(t, 1, m.Stuck)
			assert.Zero(t, m.StuckFor)
			assert.EqualValues(t, 1, m.Requests)
		})
	}
}

// A loop that waits is not stuck. A loop whose whole process was stopped for a while is not
// stuck, either.
func TestWatchdogIsNotMisled(t *testing.T) {
	w := openWatched(t)
	w.waitIdle()
	for range 4 {
		w.look(stuckAfter)
	}
	entered, gate := make(chan struct{}), make(chan struct{})
	w.Post(func() { close(entered); <-gate })
	<-entered
	w.look(stuckAfter)
	w.look(ample) // The process was stopped.
	close(gate)
	w.waitIdle()
	w.look(stuckAfter)
	w.look(stuckAfter)
	assert.Empty(t, w.stuck)
}
