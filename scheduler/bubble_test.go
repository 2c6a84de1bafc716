package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// A third world holds each of the three engines: a bubble of testing/synctest. Goroutines,
// locks and pools are real there, but time is not. It stands still while a goroutine runs, and
// jumps to the next timer when all of them wait. A verdict therefore names an exact instant, on
// any machine. A bubble has no Redis, because a socket belongs to the machine.

// bubbleEngines are the engines that a bubble can hold.
var bubbleEngines = []string{"reactor", "pool", "sequential"}

// bubble is an engine in a bubble. Its tests call synctest.Wait, which returns when every
// goroutine waits. After that, only time or the test itself makes anything happen.
type bubble struct {
	scheduler.Engine
	name  string // of bubbleEngines
	t     testing.TB
	clock clock.Clock
	tasks *task.Catalog
	// async is the engine, if it is an Async; stopLoop then stops its loop.
	async    *scheduler.Async
	stopLoop func()
}

// inBubbles runs the test once with each of the engines, which is closed at the end.
func inBubbles(t *testing.T, engines []string, cfg scheduler.Config, test func(t *testing.T, b *bubble), tasks ...task.Spec) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := openBubble(t, engine, cfg, tasks...)
				defer b.close()
				test(t, b)
			})
		})
	}
}

// openBubble opens an engine. It has the built-in tasks and these ones, which may replace
// built-in ones.
func openBubble(t testing.TB, engine string, cfg scheduler.Config, tasks ...task.Spec) *bubble {
	cfg.Registry = testRegistry(t)
	if cfg.Clock == nil {
		cfg.Clock = clock.NewReal() // of the bubble
	}
	b := &bubble{name: engine, t: t, clock: cfg.Clock, tasks: bubbleTasks(t, tasks)}
	switch engine {
	case "reactor":
		b.async, b.stopLoop = openBubbleAsync(t, cfg)
		b.Engine = b.async
	case "pool":
		b.Engine = blocking.OpenTwoPools(cfg)
	case "sequential":
		b.Engine = blocking.OpenSequential(cfg)
	default:
		t.Fatalf("unknown engine %q", engine)
	}
	return b
}

// bubbleTasks returns the built-in tasks and these ones, which may replace built-in ones.
// busy_cpu sleeps in the bubble's time, since the bubble's time would stand still while a body
// spins.
func bubbleTasks(t testing.TB, more []task.Spec) *task.Catalog {
	var specs []task.Spec
	replaced := map[string]bool{}
	for _, spec := range more {
		replaced[spec.Op] = true
	}
	for _, spec := range builtin.Specs() {
		if spec.Op == "test::busy_cpu" {
			spec.Run = func(c *task.Ctx) (rowset.RowSet, error) {
				select {
				case <-time.After(time.Duration(c.Node.Params.Int("busy_wait_ms")) * time.Millisecond):
					return c.Inputs[0], nil
				case <-c.Context().Done():
					return rowset.RowSet{}, task.ErrCancelled
				}
			}
		}
		if !replaced[spec.Op] {
			specs = append(specs, spec)
		}
	}
	tasks, err := task.NewCatalog(append(specs, more...)...)
	require.NoError(t, err)
	return tasks
}

// openBubbleAsync opens an Async. A goroutine that waits for a wake or a timer drives its loop.
// A real host would wait in the kernel, which a bubble cannot see.
func openBubbleAsync(t testing.TB, cfg scheduler.Config) (e *scheduler.Async, stopLoop func()) {
	cfg = cfg.WithDefaults()
	l := loop.New(loop.Config{Clock: cfg.Clock, OnPanic: func(recovered any, stack []byte) {
		t.Errorf("panic on the loop: %v\n%s", recovered, stack)
	}})
	host := bubbleHost(make(chan struct{}, 1))
	l.Hold() // stands for the host's I/O
	require.NoError(t, l.Start(host))
	go l.Run(loop.RunDefault, host.poll)
	workers := cpupool.New(l, cpupool.Config{Workers: cfg.CPUThreads, Clock: cfg.Clock})
	e = scheduler.NewAsync(scheduler.AsyncConfig{
		Loop: l, CPU: workers, Config: scheduler.Config{
			Registry: cfg.Registry, NodeTimeout: cfg.NodeTimeout, MaxInflight: cfg.MaxInflight, MaxQueue: cfg.MaxQueue,
		},
	})
	return e, func() {
		l.Stop()
		<-l.Done()
	}
}

// bubbleHost is the host of a loop without I/O.
type bubbleHost chan struct{}

func (h bubbleHost) poll(wait time.Duration) {
	if wait < 0 {
		<-h
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-h:
	case <-timer.C:
	}
}

func (h bubbleHost) Wake() {
	select {
	case h <- struct{}{}:
	default:
	}
}

func (h bubbleHost) Flush()             {}
func (h bubbleHost) Drain() bool        { return false }
func (h bubbleHost) Finish(done func()) { done() }

// close closes the engine after all requests in flight have ended. It fails the test if
// anything is left.
func (b *bubble) close() {
	b.Close(scheduler.Forever)
	if b.async != nil {
		b.stopLoop()
		assertNothingLeft(b.t, b.async)
	}
}

// start submits a request. The result notes the instant at which it came.
func (b *bubble) start(req *scheduler.Execution) *bubbleResult {
	r := &bubbleResult{done: make(chan struct{})}
	submitted := b.clock.Now()
	done := func(result *scheduler.Result) {
		r.Result, r.at = result, b.clock.Now().Sub(submitted)
		close(r.done) // a second result panics
	}
	if err := b.Submit(req, done); err != nil {
		done(&scheduler.Result{Err: err})
	}
	return r
}

// run submits a request and waits for its result.
func (b *bubble) run(req *scheduler.Execution) *bubbleResult {
	r := b.start(req)
	<-r.done
	return r
}

// bubbleResult is a request in a bubble.
type bubbleResult struct {
	*scheduler.Result
	at   time.Duration // when the result came, since the submission
	done chan struct{}
}

// answered reports whether the result has come by the time that every goroutine waits.
func (r *bubbleResult) answered() bool {
	synctest.Wait()
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
