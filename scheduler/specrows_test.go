package scheduler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// specRows are the 23 rows of the original specification (async_dag_scheduler_architecture.md,
// "Async Scheduler Tests"). They run on each engine in bubble time. So a row names the exact
// error and the instant of the answer.

// specRow is one row: requests, one after the other, on one engine.
type specRow struct {
	name        string
	nodeTimeout time.Duration
	steps       []specStep
	// counts are the reactor's at the end; the other engines do not count. Abandoned work
	// counts as Cancelled here, unless the row is about a late completion.
	counts scheduler.Counts
}

// specStep is one request.
type specStep struct {
	nodes    []string      // the last is the output
	waited   time.Duration // since the arrival, before the submission
	deadline time.Duration // from the arrival; zero: none
	want     specAnswer
	// on has the answers of engines that answer differently. A comment next to it says why.
	on map[string]specAnswer
}

// specAnswer is an answer: when it comes, counted from the submission, and its error or its
// rows.
type specAnswer struct {
	at   time.Duration
	err  []string // the texts that are allowed: more than one if two nodes fail at one instant on two threads
	rows []int64
}

func fails(at time.Duration, err ...string) specAnswer { return specAnswer{at: at, err: err} }

func succeeds(at time.Duration, rows ...int64) specAnswer { return specAnswer{at: at, rows: rows} }

// pastDeadline is the error of a node that ran when the request's deadline passed.
func pastDeadline(node string, limit time.Duration) string {
	return fmt.Sprintf("node %s: the request's deadline of %v passed while %[1]s ran", node, limit)
}

// timedOut is the text of a node's timeout, noticed at once.
func timedOut(node string, limit time.Duration) string {
	return fmt.Sprintf("node %s: node execution timeout: %v elapsed, limit %[2]v", node, limit)
}

func repeat(times int, steps ...specStep) (all []specStep) {
	for range times {
		all = append(all, steps...)
	}
	return all
}

const (
	busyIs = "busy (test::busy_cpu)"
	napIs  = "nap (test::sleep)"
)

// sequentially is the answer of the sequential engine, where the times of the branches add up.
func sequentially(a specAnswer) map[string]specAnswer { return map[string]specAnswer{"sequential": a} }

func specRows() []specRow {
	busyFor := func(d time.Duration) []string { return []string{source(3), busyNode("busy", "src", d)} }
	nap := []string{source(3), sleepNode("nap", "src", ample)}
	score := []string{source(3), busyNode("busy", "src", ms(10)), vmNode("score", "busy")}
	stages := func(second time.Duration) []string {
		return []string{source(3), busyNode("first", "src", ms(1)), busyNode("second", "first", second)}
	}
	mixedFor := func(nap, busy time.Duration) []string {
		return []string{source(3), sleepNode("nap", "src", nap), busyNode("busy", "nap", busy), vmNode("score", "busy")}
	}
	failed := func(n uint64) scheduler.Counts {
		return scheduler.Counts{Requests: n, Failed: n, NodeTimeouts: n, Cancelled: n}
	}
	return []specRow{
		{name: "three-branch DAG with concurrent sleep + vm", counts: scheduler.Counts{Requests: 1}, steps: []specStep{{
			nodes: []string{source(3), sleepNode("left", "src", ms(20)), sleepNode("right", "src", ms(30)), vmNode("score", "src"),
				concatNode("sleepers", "left", "right"), concatNode("all", "sleepers", "score")},
			deadline: ample,
			want:     succeeds(ms(30), idsUpTo(3, 3)...),
			on:       sequentially(succeeds(ms(50), idsUpTo(3, 3)...)),
		}}},
		{name: "fault injection - no deadlock or UAF on error", counts: scheduler.Counts{Requests: 4, Failed: 3}, steps: append(repeat(3, specStep{
			nodes: []string{source(3), node("failing", "sleep", "src", `"duration_ms": 5, "fail_after_sleep": true`, ""),
				sleepNode("slow", "src", ms(15)), busyNode("busy", "src", ms(10)),
				// The nodes that would hold up the answer do not start after the error.
				sleepNode("never", "slow", ample), busyNode("neither", "busy", ample),
				concatNode("some", "failing", "never"), concatNode("all", "some", "neither")},
			want: fails(ms(15), "node failing (test::sleep): "+builtin.ErrInjected.Error()),
			// Nothing else is in flight when the first node fails.
			on: sequentially(fails(ms(5), "node failing (test::sleep): "+builtin.ErrInjected.Error())),
		}), specStep{nodes: []string{source(2)}, want: succeeds(0, 1, 2)})},
		{name: "request deadline exceeded", counts: failed(1), steps: []specStep{{
			nodes: append(busyFor(ample), sleepNode("end", "busy", 0)), deadline: ms(10), want: fails(ms(10), pastDeadline(busyIs, ms(10))),
		}}},
		{name: "node timeout on CPU work", nodeTimeout: ms(10), counts: failed(1), steps: []specStep{{
			nodes: busyFor(ample), want: fails(ms(10), timedOut(busyIs, ms(10))),
		}}},
		{name: "node timeout on CPU work, of the plan", counts: failed(1), steps: []specStep{{
			nodes: []string{source(3), node("busy", "busy_cpu", "src", `"busy_wait_ms": 3600000`, `"timeout_ms": 10`)},
			want:  fails(ms(10), timedOut(busyIs, ms(10))),
		}}},
		{name: "deadline already expired", counts: scheduler.Counts{Requests: 1, Failed: 1}, steps: []specStep{{
			nodes: busyFor(ample), waited: ms(20), deadline: ms(15), want: fails(0, "request deadline exceeded: 20ms elapsed, limit 15ms"),
		}}},
		{name: "very short deadline (1ms)", counts: failed(1), steps: []specStep{{
			nodes: busyFor(ample), deadline: ms(1), want: fails(ms(1), pastDeadline(busyIs, ms(1))),
		}}},
		{name: "generous deadline succeeds", counts: scheduler.Counts{Requests: 1}, steps: []specStep{{
			nodes: score, deadline: ample, want: succeeds(ms(10), 1, 2, 3),
		}}},
		{name: "very short node timeout (1ms)", nodeTimeout: ms(1), counts: failed(1), steps: []specStep{{
			nodes: busyFor(ample), want: fails(ms(1), timedOut(busyIs, ms(1))),
		}}},
		{name: "generous node timeout succeeds", nodeTimeout: ample, counts: scheduler.Counts{Requests: 1}, steps: []specStep{{
			nodes: score, want: succeeds(ms(10), 1, 2, 3),
		}}},
		{name: "both deadline and node_timeout set", nodeTimeout: ms(10), counts: failed(1), steps: []specStep{{
			nodes: busyFor(ample), deadline: ample, want: fails(ms(10), timedOut(busyIs, ms(10))),
		}}},
		{name: "both set, the deadline first", nodeTimeout: ample, counts: failed(1), steps: []specStep{{
			nodes: busyFor(ample), deadline: ms(10), want: fails(ms(10), pastDeadline(busyIs, ms(10))),
		}}},
		{name: "multi-stage pipeline timeout", counts: failed(1), steps: []specStep{{
			// The second stage has the time that the first has left.
			nodes: stages(ample), deadline: ms(50), want: fails(ms(50), pastDeadline("second (test::busy_cpu)", ms(50))),
		}}},
		{name: "multi-stage pipeline succeeds", counts: scheduler.Counts{Requests: 1}, steps: []specStep{{
			nodes: stages(ms(1)), deadline: ample, want: succeeds(ms(2), 1, 2, 3),
		}}},
		{name: "fixed_source only (no CPU offload)", nodeTimeout: ample, counts: scheduler.Counts{Requests: 1}, steps: []specStep{{
			nodes: []string{source(5)}, deadline: ample, want: succeeds(0, 1, 2, 3, 4, 5),
		}}},
		{name: "repeated timeout operations", counts: failed(5), steps: repeat(5, specStep{
			nodes: busyFor(ample), deadline: ms(1), want: fails(ms(1), pastDeadline(busyIs, ms(1))),
		})},
		{name: "repeated success operations", counts: scheduler.Counts{Requests: 10}, steps: repeat(10, specStep{
			nodes: score, deadline: ample, want: succeeds(ms(10), 1, 2, 3),
		})},
		{name: "alternating success and timeout", counts: scheduler.Counts{Requests: 6, Failed: 3, NodeTimeouts: 3, Cancelled: 3}, steps: repeat(3,
			specStep{nodes: score, deadline: ample, want: succeeds(ms(10), 1, 2, 3)},
			specStep{nodes: busyFor(ample), deadline: ms(5), want: fails(ms(5), pastDeadline(busyIs, ms(5)))},
		)},
		{name: "sleep respects request deadline", counts: failed(1), steps: []specStep{{
			nodes: nap, deadline: ms(10), want: fails(ms(10), pastDeadline(napIs, ms(10))),
		}}},
		{name: "sleep respects node timeout", nodeTimeout: ms(10), counts: failed(1), steps: []specStep{{
			nodes: nap, want: fails(ms(10), timedOut(napIs, ms(10))),
		}}},
		{
			name: "late completion increments counter", nodeTimeout: ms(10),
			counts: scheduler.Counts{Requests: 1, Failed: 1, NodeTimeouts: 1, LateCompletions: 1},
			steps: []specStep{{
				nodes: []string{source(3), node("deaf", "deaf", "src", `"ms": 50`, "")},
				want:  fails(ms(10), timedOut("deaf (test::deaf)", ms(10))),
				// These engines have no counters. The answer waits for a body that does not
				// look, and is late with it.
				on: map[string]specAnswer{
					"pool":       fails(ms(50), "node deaf (test::deaf): node execution timeout: 50ms elapsed, limit 10ms"),
					"sequential": fails(ms(50), "node deaf (test::deaf): node execution timeout: 50ms elapsed, limit 10ms"),
				},
			}},
		},
		{name: "mixed async+CPU pipeline timeout (async)", nodeTimeout: ms(50), counts: failed(1), steps: []specStep{{
			nodes: mixedFor(ample, ms(1)), want: fails(ms(50), timedOut(napIs, ms(50))),
		}}},
		{name: "mixed async+CPU pipeline timeout (CPU)", nodeTimeout: ms(50), counts: failed(1), steps: []specStep{{
			nodes: mixedFor(ms(1), ample), want: fails(ms(51), timedOut(busyIs, ms(50))),
		}}},
		{name: "mixed async+CPU pipeline succeeds", nodeTimeout: ample, counts: scheduler.Counts{Requests: 1}, steps: []specStep{{
			nodes: mixedFor(ms(1), ms(1)), deadline: ample, want: succeeds(ms(2), 1, 2, 3),
		}}},
		{
			name:   "parallel async tasks both respect deadline",
			counts: scheduler.Counts{Requests: 1, Failed: 1, NodeTimeouts: 2, Cancelled: 2},
			steps: []specStep{{
				nodes: []string{source(3), sleepNode("left", "src", ample), sleepNode("right", "src", ample), concatNode("both", "left", "right")},
				// Timers of one instant fire in the order of their starts.
				deadline: ms(50), want: fails(ms(50), pastDeadline("left (test::sleep)", ms(50))),
				// Two threads wake at one instant.
				on: map[string]specAnswer{"pool": fails(ms(50), pastDeadline("left (test::sleep)", ms(50)), pastDeadline("right (test::sleep)", ms(50)))},
			}},
		},
	}
}

// deaf is CPU work of so many milliseconds that ignores its cancellation.
func deaf() task.Spec {
	return task.Spec{
		Op: "test::deaf", Inputs: 1, Output: task.PassThrough, Params: []plan.ParamSchema{{Name: "ms", Type: plan.Int, Required: true}},
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			time.Sleep(ms(int(c.Node.Params.Int("ms"))))
			return c.Inputs[0], nil
		},
	}
}

func TestSpecificationRows(t *testing.T) {
	for _, row := range specRows() {
		t.Run(row.name, func(t *testing.T) {
			// There are so many workers that no row waits for one.
			cfg := scheduler.Config{CPUThreads: 8, NodeTimeout: row.nodeTimeout}
			inBubbles(t, bubbleEngines, cfg, func(t *testing.T, b *bubble) {
				for i, step := range row.steps {
					step.play(t, b, i)
				}
				b.Close(scheduler.Forever)
				if b.async == nil {
					return
				}
				got := b.async.Metrics().Counts
				if row.counts.LateCompletions == 0 {
					got.Cancelled, got.LateCompletions = got.Cancelled+got.LateCompletions, 0
				}
				assert.Equal(t, row.counts, got)
			}, deaf())
		})
	}
}

// The filters of docs/simulation.md find cases.
func TestSpecificationRowFilters(t *testing.T) {
	for filter, least := range map[string]int{"deadline": 5, "timeout": 10, "repeated": 2, "alternating": 1} {
		found := 0
		for _, row := range specRows() {
			if strings.Contains(row.name, filter) {
				found++
			}
		}
		assert.GreaterOrEqual(t, found, least, filter)
	}
}

// play runs one request and checks its answer.
func (s *specStep) play(t *testing.T, b *bubble, i int) {
	want, other := s.on[b.name]
	if !other {
		want = s.want
	}
	req := &scheduler.Execution{UserID: 1, Graph: graph(t, b.tasks, idOf(t, s.nodes[len(s.nodes)-1]), s.nodes...)}
	req.Arrived = b.clock.Now()
	if s.deadline != 0 {
		req.Deadline = req.Arrived.Add(s.deadline)
	}
	time.Sleep(s.waited)
	r := b.run(req)
	assert.Equal(t, want.at, r.at, "request %d: when the answer comes", i)
	if want.err == nil {
		requireRows(t, r.Result, want.rows...)
		return
	}
	require.Error(t, r.Err)
	assert.Contains(t, want.err, r.Err.Error())
	assert.Nil(t, r.Outputs)
}

// idOf returns the id of a node in JSON.
func idOf(t testing.TB, text string) string {
	var n struct {
		ID string `json:"node_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &n))
	return n.ID
}

// jumpingClock is the bubble's clock up to a number of readings. From reading number at on, it
// is an hour ahead. Any goroutine.
type jumpingClock struct {
	clock.Clock
	at, readings atomic.Int64
}

func (c *jumpingClock) Now() clock.Time {
	now := c.Clock.Now()
	if c.readings.Add(1) >= c.at.Load() {
		now = now.Add(ample)
	}
	return now
}

// The blocking engines read the clock before they spawn a node, at its start and at its end.
// The test has the deadline pass at each of these readings. (TestDeadlineBeforeSpawn and
// TestDeadlineAtNodeStart do so for Async, which makes both checks with the same methods of
// State.)
func TestDeadlinePassesAtEachReading(t *testing.T) {
	beforeSpawn := func(ran int) string { return fmt.Sprintf("%v after %d bodies", scheduler.ErrRequestDeadline, ran) }
	atStart := func(ran int) string { return fmt.Sprintf("%v after %d bodies", scheduler.ErrDeadlineBeforeStart, ran) }
	atEnd := func(ran int) string { return fmt.Sprintf("%v after %d bodies", scheduler.ErrNodeTimeout, ran) }
	for engine, want := range map[string][]string{
		"sequential": {beforeSpawn(0), atStart(0), atEnd(1), beforeSpawn(1), atStart(1), atEnd(2), "<nil> after 2 bodies"},
		// The dispatcher reads once more after each spawn, at the same time as the worker:
		// either may be first.
		"pool": {beforeSpawn(0), atStart(0), "", "", beforeSpawn(1), atStart(1), "", "", "<nil> after 2 bodies"},
	} {
		t.Run(engine, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				count := task.Spec{Op: "test::count", Inputs: 1, Output: task.PassThrough,
					Run: func(c *task.Ctx) (rowset.RowSet, error) {
						ran++
						return c.Inputs[0], nil
					}}
				start := count
				start.Op, start.Inputs, start.Output = "test::start", 0, task.Source
				start.Run = func(*task.Ctx) (rowset.RowSet, error) {
					ran++
					return rowset.Dense(new(rowset.Batch)), nil
				}
				jumping := &jumpingClock{Clock: clock.NewReal()}
				b := openBubble(t, engine, scheduler.Config{Clock: jumping}, start, count)
				defer b.close()
				g := graph(t, b.tasks, "second", node("first", "start", "", "", ""), node("second", "count", "first", "", ""))
				for i, want := range want {
					ran = 0
					jumping.readings.Store(0)
					jumping.at.Store(int64(i) + 1)
					arrived := jumping.Clock.Now()
					answers := make(chan *scheduler.Result, 1)
					b.Submit(&scheduler.Execution{Graph: g, UserID: 1, Arrived: arrived, Deadline: arrived.Add(ms(10))},
						func(r *scheduler.Result) { answers <- r })
					err := (<-answers).Err
					var late *scheduler.TimeoutError
					if errors.As(err, &late) {
						err = late.Kind
						assert.GreaterOrEqual(t, late.Elapsed, ample)
					}
					got := fmt.Sprintf("%v after %d bodies", err, ran)
					if want != "" {
						assert.Equal(t, want, got, "the deadline passes at reading %d", i+1)
					}
				}
			})
		})
	}
}

// A node whose time runs out while it waits for a worker does not start when there is one.
func TestDeadlinePassesInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBubble(t, "pool", scheduler.Config{CPUThreads: 1}, deaf())
		defer b.close()
		// The first node has the only worker when the other two are spawned. The error of
		// "fails" would say so if it ran.
		g := graph(t, b.tasks, "both", source(3), node("first", "deaf", "src", `"ms": 20`, ""),
			node("queued", "sleep", "src", `"duration_ms": 0, "fail_after_sleep": true`, `"timeout_ms": 10`),
			concatNode("both", "first", "queued"))
		r := b.run(&scheduler.Execution{Graph: g, UserID: 1})
		assert.EqualError(t, r.Err, "node queued (test::sleep): deadline exceeded before node start: 20ms elapsed, limit 10ms")
		assert.Equal(t, ms(20), r.at)
	})
}

// Each limit ends a sleep that would last forever: the engine's node timeout, the request's
// deadline, and the grace of a shutdown. The body notices.
func TestASleepThatNeverEndsIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		nodeTimeout, deadline, grace time.Duration
		want                         error
	}{
		"node timeout": {ms(50), 0, scheduler.Forever, scheduler.ErrNodeTimeout},
		"deadline":     {0, ms(50), scheduler.Forever, scheduler.ErrNodeTimeout},
		"grace":        {0, 0, ms(50), scheduler.ErrShuttingDown},
	} {
		t.Run(name, func(t *testing.T) {
			slept := make(chan error, 1)
			nap := loopTask("test::nap", func(c *task.Ctx) (rowset.RowSet, error) {
				err := c.Sleep(math.MaxInt64)
				slept <- err
				return rowset.RowSet{}, err
			})
			inBubbles(t, bubbleEngines, scheduler.Config{NodeTimeout: c.nodeTimeout}, func(t *testing.T, b *bubble) {
				g := graph(t, b.tasks, "nap", node("nap", "nap", "", "", ""))
				req := &scheduler.Execution{Graph: g, UserID: 1}
				if c.deadline > 0 {
					req.Deadline = b.clock.Now().Add(c.deadline)
				}
				r := b.start(req)
				require.False(t, r.answered())
				b.Close(c.grace)
				require.True(t, r.answered(), "before Close returns")
				assert.ErrorIs(t, r.Err, c.want)
				assert.Equal(t, ms(50), r.at)
				assert.ErrorIs(t, <-slept, task.ErrCancelled)
			}, nap)
		})
	}
}
