package scheduler

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// TestTimelines replays the timelines of the original specification in testdata/timelines: an
// example plan, and how long Redis and the CPU take. Below the line stands what the reactor did
// in virtual time.
//
//	plan diamond          the plan, one that rankd comes with
//	user 1
//	deadline 50ms         of the request; none if there is no such line
//	redis follow:1 10ms 101 102
//	                      what it takes to answer a command for this key, and the list; a connection answers
//	                      in order. A user has a country, whatever its line says.
//	cpu join 2ms          what a node takes on its worker
//
// The original specification draws a node's start a millisecond after what it waited for; here that is part of what the node takes.
func TestTimelines(t *testing.T) {
	files, err := filepath.Glob("testdata/timelines/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			script, _, _ := strings.Cut(string(text), "---\n")
			got := script + "---\n" + playTimeline(t, script)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			assert.Equal(t, string(text), got)
		})
	}
}

// timeline is the reactor in virtual time. Its Redis and its workers take as long as they are
// told.
type timeline struct {
	distant
	tasks   *task.Catalog
	workers timelineWorkers
	redis   map[string]redisAnswer // by key
	cpu     map[string]time.Duration
	spans   []*span

	inFlight, inFlightMax int // commands that Redis has not answered yet
}

type redisAnswer struct {
	takes time.Duration
	list  []string
}

// span is one run of a body.
type span struct {
	node       string
	onPool     bool
	began, end time.Duration // since the start of the timeline
	err        error
}

func (s *span) overlaps(other *span) bool { return s.began < other.end && other.began < s.end }

// drawnPlans are the example plans with the node ids of the drawings.
var drawnPlans = os.DirFS("../examples/demo/testdata/drawn")

const timelineWorkersMax = 2 // as the drawings have it

func newTimeline(t *testing.T) *timeline {
	tl := &timeline{redis: map[string]redisAnswer{}, cpu: map[string]time.Duration{}}
	for range timelineWorkersMax {
		co := newCoroutine()
		tl.workers.idle = append(tl.workers.idle, co)
		t.Cleanup(co.stop)
	}
	tl.openIn(t, simnet.Config{}, tl.accept, cpupool.Config{Workers: timelineWorkersMax, Executor: &tl.workers}, Placement{Mode: plan.OffloadAll})
	tl.workers.sim = tl.sim
	t.Cleanup(func() { assert.Empty(t, tl.panics) })
	var specs []task.Spec
	for _, spec := range builtin.Specs() {
		specs = append(specs, tasks.WithBody(spec, tl.watched(tasks.Body(spec))))
	}
	var err error
	tl.tasks, err = task.NewCatalog(specs...)
	require.NoError(t, err)
	return tl
}

// now returns how long the timeline has gone.
func (tl *timeline) now() time.Duration { return time.Duration(tl.sim.Now() - clock.NewManual().Now()) }

// watched notes when a body runs, and where. On a worker, the body takes its time after it has
// computed.
func (tl *timeline) watched(body task.Body) task.Body {
	return func(c *task.Ctx) (out rowset.RowSet, err error) {
		s := &span{node: c.Node.ID, began: tl.now(), onPool: tl.workers.current != nil}
		tl.spans = append(tl.spans, s)
		out, err = body(c)
		if s.onPool {
			tl.workers.take(tl.cpu[s.node])
		}
		s.end, s.err = tl.now(), err
		return out, err
	}
}

// accept serves a connection. It answers each command when its time has come, in order.
func (tl *timeline) accept(p *simnet.Peer) {
	var free clock.Time // when the connection has answered all that it has
	var queue [][]byte  // answers, the oldest first
	p.OnData = func(data []byte) int {
		rest := data
		for len(rest) > 0 {
			complete, args, _, left, err := redcon.ReadNextCommand(rest, nil)
			require.NoError(tl.t, err)
			if !complete {
				break
			}
			rest = left
			answer := tl.redis[string(args[1])]
			var out []byte
			switch string(args[0]) {
			case "HGETALL":
				out = redcon.AppendArray(out, 2)
				out = redcon.AppendBulkString(out, "country")
				out = redcon.AppendBulkString(out, "US")
			case "LRANGE":
				out = redcon.AppendArray(out, len(answer.list))
				for _, entry := range answer.list {
					out = redcon.AppendBulkString(out, entry)
				}
			}
			tl.inFlight++
			tl.inFlightMax = max(tl.inFlightMax, tl.inFlight)
			queue = append(queue, out)
			free = max(free, tl.sim.Now().Add(answer.takes))
			tl.sim.At(free, func() { // once for each answer: if several are due at one instant, each call sends the oldest
				tl.inFlight--
				p.Write(queue[0])
				queue = queue[1:]
			})
		}
		return len(data) - len(rest)
	}
}

// timelineWorkers are the workers of the CPU pool. Each is a coroutine that suspends for as
// long as its work takes.
type timelineWorkers struct {
	sim     *loopsim.Sim
	idle    []*coroutine
	queue   []func()
	current *coroutine // that runs; nil on the loop
}

// Go implements cpupool.Executor.
func (w *timelineWorkers) Go(run func()) {
	w.queue = append(w.queue, run)
	w.sim.After(0, w.dispatch)
}

// dispatch gives the oldest job to an idle worker, if there are both.
func (w *timelineWorkers) dispatch() {
	if len(w.queue) == 0 || len(w.idle) == 0 {
		return
	}
	run, co := w.queue[0], w.idle[0]
	w.queue, w.idle = w.queue[1:], w.idle[1:]
	w.enter(co, func() bool { return co.start(run) })
}

// enter resumes a worker's job until it takes time or ends.
func (w *timelineWorkers) enter(co *coroutine, resume func() (ended bool)) {
	w.current = co
	ended := resume()
	w.current = nil
	if ended {
		w.idle = append(w.idle, co)
		w.dispatch()
	}
}

// take has the present job take that long.
func (w *timelineWorkers) take(d time.Duration) {
	co := w.current
	w.sim.After(d, func() { w.enter(co, co.resume) })
	co.suspend()
}

// Stop implements cpupool.Executor.
func (w *timelineWorkers) Stop() {}

// playTimeline plays a script and returns what happened.
func playTimeline(t *testing.T, script string) string {
	tl := newTimeline(t)
	req := &Execution{}
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		duration := func(i int) time.Duration {
			d, err := time.ParseDuration(words[i])
			require.NoError(t, err, line)
			return d
		}
		switch words[0] {
		case "plan":
			var err error
			req.Graph, err = plan.NewLibrary(drawnPlans, "the examples", tl.tasks, tl.reg, nil).Get(words[1])
			require.NoError(t, err)
		case "user":
			var err error
			req.UserID, err = strconv.ParseInt(words[1], 10, 64)
			require.NoError(t, err, line)
		case "deadline":
			req.Deadline = tl.sim.Now().Add(duration(1))
		case "redis":
			tl.redis[words[1]] = redisAnswer{duration(2), words[3:]}
		case "cpu":
			tl.cpu[words[1]] = duration(2)
		default:
			require.Fail(t, "unknown line", line)
		}
	}
	var result *Result
	var answered time.Duration
	tl.Submit(req, func(r *Result) {
		require.Nil(t, result, "a second answer")
		result, answered = r, tl.now()
	})
	tl.play()
	require.NotNil(t, result)
	return tl.draw(result, answered)
}

// draw draws the bodies that ran, with a column for each millisecond, and the request's answer.
func (tl *timeline) draw(result *Result, answered time.Duration) string {
	var b strings.Builder
	column := func(d time.Duration) int { return int(d / time.Millisecond) }
	for _, s := range tl.spans {
		where := map[bool]string{false: "loop", true: "pool"}[s.onPool]
		bar := strings.Repeat(" ", column(s.began)) + strings.Repeat("=", column(s.end-s.began))
		note := ""
		switch {
		case s.err != nil:
			note = " gave up"
		case s.end > answered:
			note = " result dropped"
		}
		fmt.Fprintf(&b, "%-6s %s %4v to %-4v |%s|%s\n", s.node, where, s.began, s.end, bar, note)
	}
	b.WriteString("side by side:")
	for i, s := range tl.spans {
		for _, other := range tl.spans[i+1:] {
			if s.overlaps(other) {
				fmt.Fprintf(&b, " %s+%s", s.node, other.node)
			}
		}
	}
	fmt.Fprintf(&b, "\nanswer after %v: ", answered)
	if result.Err != nil {
		fmt.Fprintln(&b, result.Err)
	} else {
		for i, out := range result.Outputs {
			if i > 0 {
				b.WriteString(" and")
			}
			for row := range out.Len() {
				fmt.Fprintf(&b, " %d", out.ID(row))
			}
		}
		b.WriteByte('\n')
	}
	if c := tl.counted(); c.NodeTimeouts > 0 {
		fmt.Fprintf(&b, "%d nodes timed out: %d late completions, %d cancelled\n", c.NodeTimeouts, c.LateCompletions, c.Cancelled)
	}
	return b.String()
}

// The test is the same as above in virtual time: one call per request is in flight, and all
// together take as long as one.
func TestAHundredRedisCallsTakeAsLongAsOne(t *testing.T) {
	const calls = 150
	tl := newTimeline(t)
	tl.redis["user:1"] = redisAnswer{takes: ms(10)}
	g, err := plan.NewLibrary(drawnPlans, "the examples", tl.tasks, tl.reg, nil).Get("simple_viewer")
	require.NoError(t, err)
	answers := 0
	for range calls {
		tl.Submit(&Execution{Graph: g, UserID: 1}, func(r *Result) {
			answers++
			assert.NoError(t, r.Err)
			assert.Equal(t, ms(10), tl.now())
		})
	}
	tl.play()
	assert.Equal(t, calls, answers)
	assert.Equal(t, calls, tl.inFlightMax)
}
