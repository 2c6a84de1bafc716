package scheduler

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The tests of this file are about bodies that nobody waits for any more. Some of these bodies
// already wait, others begin to wait later.

// waits is what a body that ignores every error has seen.
type waits struct {
	errs       []error  // of its sleeps
	iterations []uint64 // of the loop, in which they end
	cancelled  bool     // the Ctx says after the first one that the node was given up
	done       bool     // its channel does
}

// spec returns a task that sleeps four times, however its sleeps end.
func (w *waits) spec(l *loop.Loop) task.Spec {
	return loopTask("test::deaf", func(c *task.Ctx) (rowset.RowSet, error) {
		sleep := func(d time.Duration) {
			w.errs = append(w.errs, c.Sleep(d))
			w.iterations = append(w.iterations, l.Iteration())
		}
		sleep(ample)
		w.cancelled = c.Cancelled() && c.Context().Err() != nil
		select {
		case <-c.Context().Done():
			w.done = true
		default:
		}
		for _, d := range []time.Duration{ample, 0, time.Nanosecond} {
			sleep(d)
		}
		return noRows, nil
	})
}

// By hand, the test checks instants to the nanosecond. The body ignores its cancellation, so it
// completes late.
func TestAnOrphanSleepsNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*handWorld)
		want Counts
	}{
		"timed out": {func(w *handWorld) { w.Advance(ms(10)) }, Counts{NodeTimeouts: 1}},
		"shut down": {func(w *handWorld) { w.close(0) }, Counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := newHandWorld(t, 0), new(waits)
			p := w.start(w.within(graph(t, builtins(t, seen.spec(w.Loop)), "x", node("x", "deaf", "", "", "")), ms(10)))
			w.Settle()
			require.Nil(t, p.Result)
			c.end(w)
			require.NotNil(t, p.Result)
			require.Len(t, seen.errs, 4, "all sleeps end at this instant")
			for i, err := range seen.errs {
				assert.ErrorIs(t, err, task.ErrCancelled, "sleep %d", i)
				assert.Equal(t, seen.iterations[0]+uint64(i), seen.iterations[i], "each leaves the loop to others")
			}
			assert.True(t, seen.cancelled)
			assert.True(t, seen.done)
			c.want.Requests, c.want.Failed, c.want.LateCompletions = 1, 1, 1
			assert.Equal(t, c.want, w.counted())
		})
	}
}

// silentDialer makes connections that never come about.
type silentDialer struct{}

func (silentDialer) Dial(string, transport.DialOptions, transport.Handler) transport.Conn {
	return silentConn{}
}

type silentConn struct{}

func (silentConn) Write([]byte) error { return nil }
func (silentConn) Unsent() int        { return 0 }
func (silentConn) Close(error)        {}

// withClients gives the engine clients of servers that never answer.
func (w *handWorld) withClients(o resp.Options) {
	for i := range w.endpoints {
		w.endpoints[i].redis = resp.NewClient(w.Loop, silentDialer{}, o)
	}
}

// A body that retries with back-off forever ends with the engine, whether Close finds it in a
// call or asleep. A body that ignores how its sleeps end makes its attempts at once.
func TestABodyThatTriesAgainDoesNotHoldUpClose(t *testing.T) {
	const attemptsMax = 4 // of a body that would try forever
	for name, c := range map[string]struct {
		asleep, deaf bool
		attempts     int
		want         Counts
	}{
		"in a call":               {false, false, 1, Counts{Cancelled: 1}},
		"in a call, and is deaf":  {false, true, attemptsMax, Counts{LateCompletions: 1}},
		"in a sleep":              {true, false, 1, Counts{Cancelled: 1}},
		"in a sleep, and is deaf": {true, true, attemptsMax, Counts{LateCompletions: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			retry := loopTask("test::retry", func(body *task.Ctx) (rowset.RowSet, error) {
				for attempts < attemptsMax {
					attempts++
					if _, err := body.Redis(body.Node.Endpoint).Do("PING"); err == nil {
						break
					}
					if err := body.Sleep(ample); err != nil && !c.deaf {
						return rowset.RowSet{}, err
					}
				}
				return noRows, nil
			})
			retry.Params = []plan.ParamSchema{{Name: "endpoint", Type: plan.Endpoint, Required: true}}
			w := newHandWorld(t, 0)
			w.withClients(resp.Options{RequestTimeout: ms(5), ConnectTimeout: ample})
			p := w.start(w.within(graph(t, builtins(t, retry), "x", node("x", "retry", "", `"endpoint": "ep_0001"`, "")), 0))
			w.Settle()
			if c.asleep {
				w.Advance(ms(5))
				require.True(t, w.nodes()[0].body.timer.Active(), "the call has failed and the body sleeps")
			}
			w.close(0)
			assert.ErrorIs(t, p.Err, ErrShuttingDown)
			assert.True(t, w.ended, "at this instant")
			assert.Equal(t, c.attempts, attempts)
			c.want.Requests, c.want.Failed = 1, 1
			assert.Equal(t, c.want, w.counted())
		})
	}
}

// Thousands of sleeping bodies end one by one. The cost of each does not depend on how many
// there are, and none ends on the stack of another.
func TestTheDrainIsALoop(t *testing.T) {
	const n = 2000
	for name, timeout := range map[string]time.Duration{"timed out": ms(10), "shut down": 0} {
		t.Run(name, func(t *testing.T) {
			w, deep, ended := newHandWorld(t, timeout), 0, 0
			stacks := make([]byte, 16<<20)
			g := graph(t, builtins(t, loopTask("test::nap", func(c *task.Ctx) (rowset.RowSet, error) {
				err := c.Sleep(ample)
				if ended++; ended == n {
					all := stacks[:runtime.Stack(stacks, true)] // the loop's goroutine is one of them, and is not this coroutine's
					deep = bytes.Count(all, []byte("(*loopBody).wake("))
				}
				return rowset.RowSet{}, err
			})), "x", node("x", "nap", "", "", ""))
			for range n {
				w.start(w.within(g, 0))
			}
			w.Settle()
			require.Len(t, w.nodes(), n)
			w.Advance(timeout)
			if timeout > 0 {
				assert.Empty(t, w.nodes(), "an orphan is left to the drain")
			}
			before := new(runtime.MemStats)
			runtime.ReadMemStats(before)
			w.close(0)
			after := new(runtime.MemStats)
			runtime.ReadMemStats(after)
			assert.True(t, w.ended)
			assert.Equal(t, n, ended)
			assert.Equal(t, 1, deep, "bodies that are resumed at a time")
			assert.Less(t, (after.TotalAlloc-before.TotalAlloc)/n, uint64(1<<10), "bytes for each body")
		})
	}
}

// The client's timer for a call can fire before the node's. The node is late all the same, and
// counts as such.
func TestANodeIsLateWhicheverTimerFires(t *testing.T) {
	g := builtinGraph(t, "x", viewerNode("x"))
	for name, c := range map[string]struct {
		request time.Duration // limit of the client
		steps   []time.Duration
		late    bool
	}{
		"the node's first": {ample, []time.Duration{ms(10)}, true},
		"the client's 1 ns before, in an iteration of its own": {ms(10) - 1, []time.Duration{ms(10) - 1}, false},
		"the client's 1 ns before, told after the node's":      {ms(10) - 1, []time.Duration{ms(10) - 1, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHandWorld(t, ms(10))
			w.withClients(resp.Options{RequestTimeout: c.request, ConnectTimeout: ample})
			p := w.start(w.within(g, 0))
			w.Settle()
			for _, step := range c.steps {
				w.Harness.Clock.Advance(step)
				w.Iterate()
			}
			w.Settle()
			require.NotNil(t, p.Result)
			requireNode(t, p.Err, "x")
			if !c.late {
				assert.ErrorIs(t, p.Err, resp.ErrTimeout)
				assert.Equal(t, Counts{Requests: 1, Failed: 1}, w.counted())
				return
			}
			assert.Equal(t, TimeoutError{Kind: ErrNodeTimeout, Elapsed: ms(10), Limit: ms(10)},
				*requireTimeout(t, p.Err, ErrNodeTimeout))
			assert.Equal(t, uint64(1), w.counted().NodeTimeouts)
			assert.Zero(t, w.orphans.Len())
		})
	}
}
