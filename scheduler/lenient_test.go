package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
)

var errBroken = errors.New("this task is broken")

// brokenTasks are tasks that fail in one way or another.
type brokenTasks struct {
	counted atomic.Int64   // runs of test::counted
	stuck   chan *task.Ctx // bodies of test::stuck that have begun
	stopped chan error     // how bodies of test::stuck ended
	ended   chan struct{}  // bodies of test::broken and test::counted that are about to end
	specs   []task.Spec
}

func newBrokenTasks() *brokenTasks {
	b := &brokenTasks{stuck: make(chan *task.Ctx, 100), stopped: make(chan error, 100), ended: make(chan struct{}, 100)}
	fails := func(*task.Ctx) (rowset.RowSet, error) {
		b.noteEnd()
		return rowset.RowSet{}, errBroken
	}
	first := func(*plan.Node) (int64, bool) { return 2, true }
	b.specs = []task.Spec{
		{Op: "test::broken", Inputs: 1, Output: task.PassThrough, Inline: true, Cheap: true, Forgets: true, Run: fails},
		{Op: "test::broken_source", Output: task.Source, Writes: task.Columns(finalScore, 3001), Run: fails},
		{Op: "test::broken_score", Inputs: 1, Output: task.SameRows, Writes: task.Columns(finalScore), Inline: true, Run: fails},
		{Op: "test::broken_country", Inputs: 1, Output: task.SameRows, Writes: task.Columns(3001), Inline: true, Run: fails},
		{Op: "test::broken_first", Inputs: 1, Output: task.Prefix, First: first, Inline: true, Cheap: true, Forgets: true, Run: fails},
		{Op: "test::panics", Inputs: 1, Output: task.PassThrough, Run: func(*task.Ctx) (rowset.RowSet, error) { panic("broken") }},
		{Op: "test::open", Inputs: 1, Output: task.PassThrough, Inline: true, Cheap: true, Forgets: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			c.FailOpen(errBroken)
			return c.Inputs[0], nil
		}},
		{Op: "test::counted", Inputs: 1, Output: task.PassThrough, Forgets: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			b.counted.Add(1)
			b.noteEnd()
			return c.Inputs[0], nil
		}},
		// stuck sleeps until it is cancelled.
		{Op: "test::stuck", Inputs: 1, Output: task.PassThrough, Place: task.OnLoop, Forgets: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			b.stuck <- c
			err := c.Sleep(ample)
			b.stopped <- err
			return rowset.RowSet{}, err
		}},
		// slow reads from outside for so long.
		{Op: "test::slow", Inputs: 1, Output: task.PassThrough, Place: task.Waits, Forgets: true, Params: []plan.ParamSchema{{Name: "ms", Type: plan.Int, Required: true}},
			Run: func(c *task.Ctx) (rowset.RowSet, error) {
				return c.Inputs[0], c.Sleep(time.Duration(c.Node.Params.Int("ms")) * time.Millisecond)
			}},
		// after has a body that is about to end settle first.
		{Op: "test::after", Inputs: 1, Output: task.PassThrough, Place: task.OnLoop, Forgets: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			for len(b.ended) == 0 {
				if err := c.Sleep(time.Millisecond); err != nil {
					return rowset.RowSet{}, err
				}
			}
			<-b.ended
			return c.Inputs[0], c.Sleep(5 * soon)
		}},
	}
	return b
}

// noteEnd notes that a body is about to end, if a test waits for that.
func (b *brokenTasks) noteEnd() {
	select {
	case b.ended <- struct{}{}:
	default:
	}
}

const finalScore = schedulertest.FinalScore

// lenientGraph loads a plan of nodes, which may have on_error. The last node is the output.
func lenientGraph(t *testing.T, b *brokenTasks, output string, nodes ...string) *plan.Graph {
	t.Helper()
	artifact := strings.Replace(schedulertest.PlanJSON(output, nodes...), `"schema_version"`, `"capabilities_required": ["cap.rankd.on_error.v1"], "schema_version"`, 1)
	g, err := plan.Load("test.plan.json", []byte(artifact), builtins(t, b.specs...), testRegistry(t))
	require.NoError(t, err)
	return g
}

// punctualGraph is lenientGraph for a plan with a policy, "lenient" as its member.
func punctualGraph(t *testing.T, b *brokenTasks, policy, output string, nodes ...string) *plan.Graph {
	t.Helper()
	artifact := strings.Replace(schedulertest.PlanJSON(output, nodes...), `"schema_version"`,
		`"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.on_error.v1"], "lenient": `+policy+`, "schema_version"`, 1)
	g, err := plan.Load("test.plan.json", []byte(artifact), builtins(t, b.specs...), testRegistry(t))
	require.NoError(t, err)
	return g
}

// TestAPlanAnswersByItsTime: what reads from outside is given up by the share of the deadline that the plan says, and
// what computes behind it runs on.
func TestAPlanAnswersByItsTime(t *testing.T) {
	three := node("src", "fixed_source", "", `"row_count": 3`, "")
	slow := func(id, input string, wait int64, more string) string {
		return node(id, "slow", input, fmt.Sprintf(`"ms": %d`, wait), more)
	}
	const forever, longer, lenient = 1 << 40, 150, `"on_error": "empty"`
	for _, c := range []struct {
		name, policy string
		deadline     time.Duration // 0: none
		nodes        []string
		required     []int
		want         []int64
		told         []string
		err          error
	}{
		{"a node that runs then", `{"answer_by": "1%"}`, 10 * time.Second, []string{three, slow("x", "src", forever, lenient), concatNode("c", "src", "x"), vmNode("v", "c"),
			node("out", "sort", "v", `"by": 2001, "order": "desc"`, "")}, nil, []int64{3, 2, 1}, []string{"x failed"}, scheduler.ErrNodeTimeout},
		{"a node that waits then", `{"answer_by": "1%"}`, 10 * time.Second, []string{three, sleepNode("r", "src", longer*time.Millisecond), slow("x", "r", 0, lenient), concatNode("out", "src", "x")},
			nil, []int64{1, 2, 3}, []string{"x failed"}, scheduler.ErrDeadlineBeforeStart},
		{"one behind the other", `{"answer_by": "1%"}`, 10 * time.Second, []string{three, slow("x", "src", forever, `"on_error": "skip"`), slow("y", "x", forever, lenient), concatNode("out", "src", "y")},
			nil, []int64{1, 2, 3}, []string{"x failed", "y failed"}, nil},
		{"a node that the request requires", `{"answer_by": "1%", "timeout": "1%"}`, 10 * time.Second, []string{three, slow("x", "src", longer, lenient), concatNode("out", "src", "x")},
			[]int{1}, []int64{1, 2, 3, 1, 2, 3}, []string{"x ok"}, nil},
		{"a node that computes", `{"answer_by": "1%"}`, 10 * time.Second, []string{three, slow("y", "src", 0, lenient), sleepNode("x", "src", longer*time.Millisecond), concatNode("c", "src", "x"), concatNode("out", "c", "y")},
			nil, []int64{1, 2, 3, 1, 2, 3, 1, 2, 3}, []string{"y ok"}, nil},
		{"without a deadline", `{"answer_by": "1%"}`, 0, []string{three, slow("x", "src", longer, lenient), concatNode("out", "src", "x")}, nil, []int64{1, 2, 3, 1, 2, 3}, []string{"x ok"}, nil},
		{"a share of the time", `{"timeout": "1%"}`, 10 * time.Second, []string{three, slow("x", "src", forever, lenient), concatNode("out", "src", "x")}, nil, []int64{1, 2, 3}, []string{"x failed"}, scheduler.ErrNodeTimeout},
		{"the node's own share", `{"timeout": "99%"}`, 10 * time.Second, []string{three, slow("x", "src", forever, lenient+`, "timeout": "1%"`), concatNode("out", "src", "x")}, nil, []int64{1, 2, 3}, []string{"x failed"}, scheduler.ErrNodeTimeout},
		{"a share goes before a number", `{"timeout": "99%", "timeout_ms": 1}`, time.Minute, []string{three, slow("x", "src", longer, lenient), concatNode("out", "src", "x")}, nil, []int64{1, 2, 3, 1, 2, 3}, []string{"x ok"}, nil},
		{"the number without a deadline", `{"timeout": "99%", "timeout_ms": 10}`, 0, []string{three, slow("x", "src", forever, lenient), concatNode("out", "src", "x")}, nil, []int64{1, 2, 3}, []string{"x failed"}, scheduler.ErrNodeTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // It waits nearly all of its time.
			b := newBrokenTasks()
			g := punctualGraph(t, b, c.policy, "out", c.nodes...)
			forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
				x := &scheduler.Execution{Graph: g, UserID: 1, Required: c.required}
				if c.deadline > 0 {
					x.Deadline = e.(interface{ Clock() clock.Clock }).Clock().Now().Add(c.deadline)
				}
				r := runOn(e, x)
				requireRows(t, r, c.want...)
				assert.Equal(t, c.told, statuses(r))
				if c.err != nil {
					assert.ErrorIs(t, r.Completeness()[0].Err, c.err)
				}
			})
		})
	}
}

// TestAnAnswerWithTooFewRows: of a page the rows before and behind it count, on each engine.
func TestAnAnswerWithTooFewRows(t *testing.T) {
	src := func(rows int) string {
		return node("src", "fixed_source", "", fmt.Sprintf(`"row_count": %d`, rows), "")
	}
	sorted := node("s", "sort", "src", `"by": 1, "order": "desc"`, "")
	page := func(input string, offset, count int) string {
		return node("out", "take", input, fmt.Sprintf(`"offset": %d, "count": %d`, offset, count), "")
	}
	for _, c := range []struct {
		name  string
		least int
		nodes []string
		want  []plan.Short
	}{
		{"enough", 3, []string{src(3), page("src", 0, 5)}, nil},
		{"too few", 4, []string{src(3), page("src", 0, 5)}, []plan.Short{{Output: "0", Rows: 3, MinRows: 4}}},
		{"no minimum", 0, []string{src(0), page("src", 0, 5)}, nil},
		{"no rows", 1, []string{src(0), page("src", 0, 5)}, []plan.Short{{Output: "0", Rows: 0, MinRows: 1}}},
		{"the third page of a list that is long enough", 5, []string{src(6), page("src", 4, 2)}, nil},
		{"a page behind the end", 5, []string{src(6), page("src", 40, 20)}, nil},
		{"a page behind the end of a list that is too short", 5, []string{src(4), page("src", 40, 20)}, []plan.Short{{Output: "0", Rows: 4, MinRows: 5}}},
		{"the first rows of a sort", 3, []string{src(6), sorted, page("s", 2, 1)}, nil},
		{"the first rows of a sort, of too few", 4, []string{src(2), sorted, page("s", 2, 2)}, []plan.Short{{Output: "0", Rows: 2, MinRows: 4}}},
		{"a page in a chain", 5, []string{src(4), vmNode("v", "src"), sorted, node("w", "sort", "v", `"by": 2001`, ""), page("w", 1, 8)}, []plan.Short{{Output: "0", Rows: 4, MinRows: 5}}},
		{"no page", 4, []string{src(3), node("out", "sort", "src", `"by": 1`, "")}, []plan.Short{{Output: "0", Rows: 3, MinRows: 4}}},
		{"a page that others read, too", 4, []string{src(3), page("src", 2, 8), node("x", "sort", "out", `"by": 1`, "")}, []plan.Short{{Output: "0", Rows: 3, MinRows: 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBrokenTasks()
			load := func(below string) *plan.Graph {
				artifact := strings.Replace(schedulertest.PlanJSON("out", c.nodes...), `"schema_version"`, fmt.Sprintf(
					`"capabilities_required": ["cap.rankd.min_rows.v1"], "min_rows": [%d], "below": %q, "schema_version"`, c.least, below), 1)
				g, err := plan.Load("test.plan.json", []byte(artifact), builtins(t, b.specs...), testRegistry(t))
				require.NoError(t, err)
				return g
			}
			marks, fails := load("mark"), load("error")
			forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
				for range 2 {
					r := runOn(e, &scheduler.Execution{Graph: marks, UserID: 1})
					require.NoError(t, r.Err)
					assert.Equal(t, c.want, r.Short())
					r = runOn(e, &scheduler.Execution{Graph: fails, UserID: 1})
					if c.want == nil {
						require.NoError(t, r.Err)
						continue
					}
					require.ErrorIs(t, r.Err, scheduler.ErrBelowMinimum)
					assert.EqualError(t, r.Err, fmt.Sprintf("output 0 has %d rows, and the plan wants %d at least", c.want[0].Rows, c.want[0].MinRows))
					assert.Nil(t, r.Outputs)
				}
			})
		})
	}
}

// onError and optional are further members of a node.
func onError(value string) string { return fmt.Sprintf(`"on_error": %q`, value) }

func orElse(fallback string) string { return fmt.Sprintf(`"on_error": {"fallback": %q}`, fallback) }

// forAllEngines runs a test on each engine, the reactor in each mode and with each switch.
func forAllEngines(t *testing.T, test func(t *testing.T, e scheduler.Engine)) {
	for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
		for _, p := range []scheduler.Placement{{Mode: mode}, {Mode: mode, NoInlineExecution: true}, {Mode: mode, NoContinuationChaining: true}} {
			t.Run(fmt.Sprintf("reactor, %v, no inline: %v, no chaining: %v", mode, p.NoInlineExecution, p.NoContinuationChaining), func(t *testing.T) {
				test(t, openAsync(t, scheduler.Config{Registry: testRegistry(t), Placement: p}))
			})
		}
	}
	t.Run("pool", func(t *testing.T) {
		// There are as many workers as nodes in any plan, because a required node must not wait
		// for the workers of optional ones.
		e := blocking.OpenTwoPools(scheduler.Config{Registry: testRegistry(t), CPUThreads: 8})
		defer e.Close(scheduler.Forever)
		test(t, e)
	})
	t.Run("sequential", func(t *testing.T) {
		e := blocking.OpenSequential(scheduler.Config{Registry: testRegistry(t)})
		defer e.Close(scheduler.Forever)
		test(t, e)
	})
}

func runOn(e scheduler.Engine, x *scheduler.Execution) *scheduler.Result {
	results := make(chan *scheduler.Result, 1)
	e.Submit(x, func(r *scheduler.Result) {
		r.Recording = nil // It ends with the callback.
		results <- r
	})
	return <-results
}

// statuses returns what an answer says of its nodes, such as "n2 failed".
func statuses(r *scheduler.Result) (all []string) {
	for _, c := range r.Completeness() {
		all = append(all, c.Node.ID+" "+string(c.Status))
	}
	return all
}

// All engines and modes go on in the same way.
func TestAPlanGoesOnWithoutAFailedNode(t *testing.T) {
	three := node("src", "fixed_source", "", `"row_count": 3`, "")
	two := node("two", "fixed_source", "", `"row_count": 2`, "")
	for _, c := range []struct {
		name   string
		output string
		nodes  []string
		want   []int64
		told   []string
	}{
		{"empty", "out", []string{three, node("x", "broken", "src", "", onError("empty")), concatNode("out", "src", "x")},
			[]int64{1, 2, 3}, []string{"x failed"}},
		{"an empty output", "x", []string{three, node("x", "broken", "src", "", onError("empty"))}, []int64{}, []string{"x failed"}},
		{"skip", "out", []string{three, node("x", "broken", "src", "", onError("skip")), node("out", "take", "x", `"count": 2`, "")},
			[]int64{1, 2}, []string{"x failed"}},
		{"skip within a chain", "out", []string{three, vmNode("a", "src"), node("x", "broken", "a", "", onError("skip")),
			node("s", "sort", "x", `"by": 2001, "order": "desc"`, ""), node("out", "take", "s", `"count": 2`, "")}, []int64{3, 2}, []string{"x failed"}},
		{"skip behind a sort that would select", "out", []string{three, node("s", "sort", "src", `"by": 1, "order": "desc"`, ""),
			node("x", "broken_first", "s", "", onError("skip")), node("out", "take", "x", `"count": 3`, "")}, []int64{3, 2, 1}, []string{"x failed"}},
		{"null", "out", []string{three, node("x", "broken_country", "src", "", onError("null")), node("s", "sort", "x", `"by": 3001, "order": "desc"`, ""),
			concatNode("out", "s", "src")}, []int64{1, 2, 3, 1, 2, 3}, []string{"x failed"}},
		{"null within a chain", "out", []string{three, vmNode("a", "src"), node("x", "broken_country", "a", "", onError("null")), node("s", "sort", "x", `"by": 3001`, ""),
			node("t", "sort", "s", `"by": 2001, "order": "desc"`, ""), node("out", "take", "t", `"count": 2`, "")}, []int64{3, 2}, []string{"x failed"}},
		{"fallback", "out", []string{three, two, node("x", "broken", "src", "", orElse("two")), node("out", "take", "x", `"count": 5`, "")},
			[]int64{1, 2}, []string{"x fallback"}},
		{"a fallback that reads the input and others", "out", []string{three, two, node("x", "broken", "src", "", orElse("c")), concatNode("b", "src", "two"),
			node("c", "sort", "b", `"by": 1, "order": "desc"`, ""), node("out", "take", "x", `"count": 4`, "")}, []int64{3, 2, 2, 1}, []string{"x fallback"}},
		{"the fallback of a fallback", "out", []string{three, two, node("x", "broken", "src", "", orElse("y")), node("y", "broken", "src", "", orElse("two")),
			node("out", "take", "x", `"count": 4`, "")}, []int64{1, 2}, []string{"x fallback", "y fallback"}},
		{"a fallback that fails and is empty", "out", []string{three, node("x", "broken", "src", "", orElse("y")), node("y", "broken", "src", "", onError("empty")),
			concatNode("out", "x", "src")}, []int64{1, 2, 3}, []string{"x fallback", "y failed"}},
		{"a fallback that nobody needs", "out", []string{three, node("x", "take", "src", `"count": 1`, orElse("f")), node("f", "counted", "g", "", ""),
			node("g", "counted", "src", "", ""), node("out", "take", "x", `"count": 4`, "")}, []int64{1}, []string{"x ok"}},
		{"an output with a fallback", "x", []string{three, two, node("x", "broken", "src", "", orElse("two"))}, []int64{1, 2}, []string{"x fallback"}},
		{"readers find the columns of a source that is empty", "out", []string{three, node("x", "broken_source", "", "", onError("empty")),
			node("a", "sort", "x", `"by": 3001`, ""), node("b", "sort", "a", `"by": 2001`, ""), concatNode("out", "b", "src")}, []int64{1, 2, 3}, []string{"x failed"}},
		{"readers find the columns of a score that is empty", "out", []string{three, node("x", "broken_score", "src", "", onError("empty")),
			node("b", "sort", "x", `"by": 2001`, ""), concatNode("out", "b", "src")}, []int64{1, 2, 3}, []string{"x failed"}},
		{"two readers, and the input has a third", "out", []string{three, node("x", "broken", "src", "", onError("skip")), node("a", "take", "x", `"count": 1`, ""),
			concatNode("b", "x", "a"), concatNode("out", "b", "src")}, []int64{1, 2, 3, 1, 1, 2, 3}, []string{"x failed"}},
		{"a panic", "out", []string{three, node("x", "panics", "src", "", onError("empty")), concatNode("out", "src", "x")}, []int64{1, 2, 3}, []string{"x failed"}},
		{"an input of the wrong number", "out", []string{three, node("x", "take", "", `"count": 1`, onError("empty")), concatNode("out", "src", "x")},
			[]int64{1, 2, 3}, []string{"x failed"}},
		{"a timeout of the node's own", "out", []string{three, node("x", "stuck", "src", "", onError("skip")+`, "timeout_ms": 5`), node("out", "take", "x", `"count": 2`, "")},
			[]int64{1, 2}, []string{"x failed"}},
		{"all is well", "out", []string{three, node("x", "take", "src", `"count": 1`, onError("empty")), node("y", "take", "src", `"count": 1`, onError("skip")),
			concatNode("out", "x", "y")}, []int64{1, 1}, []string{"x ok", "y ok"}},
		{"a body that fails open", "out", []string{three, node("x", "open", "src", "", ""), node("out", "take", "x", `"count": 2`, "")}, []int64{1, 2}, []string{"x failed"}},
		{"a chain with a body that fails open", "out", []string{three, vmNode("a", "src"), node("x", "open", "a", "", ""), vmNode("b", "x"),
			node("y", "open", "b", "", ""), node("out", "take", "y", `"count": 2`, "")}, []int64{1, 2}, []string{"x failed", "y failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBrokenTasks()
			g := lenientGraph(t, b, c.output, c.nodes...)
			forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
				for range 2 { // the second runs on memory that the first has used, and with what the engine learned from the first
					r := runOn(e, &scheduler.Execution{Graph: g, UserID: 1})
					requireRows(t, r, c.want...)
					assert.Equal(t, c.told, statuses(r))
					for _, one := range r.Completeness() {
						assert.Equal(t, one.Status == outcome.NodeOK, one.Err == nil, "%v", one.Err)
					}
				}
				assert.Zero(t, b.counted.Load(), "a fallback ran that nobody needed")
			})
		})
	}
}

func TestWhatAPlanCannotDoWithout(t *testing.T) {
	three := node("src", "fixed_source", "", `"row_count": 3`, "")
	for _, c := range []struct {
		name     string
		nodes    []string
		required []int
		within   time.Duration // of the request; 0: no limit
		node     string
		err      error
	}{
		{"a node without on_error", []string{three, node("x", "broken", "src", "", ""), node("y", "broken", "x", "", onError("empty"))}, nil, 0, "x", errBroken},
		{"a fallback that fails", []string{three, node("x", "broken", "src", "", orElse("y")), node("y", "broken", "src", "", "")}, nil, 0, "y", errBroken},
		{"a required node", []string{three, node("x", "broken", "src", "", onError("empty"))}, []int{1}, 0, "x", errBroken},
		{"a required node with a fallback", []string{three, node("x", "broken", "src", "", orElse("y")), node("y", "counted", "src", "", "")}, []int{0, 1}, 0, "x", errBroken},
		{"a required node that fails open", []string{three, node("x", "open", "src", "", "")}, []int{1}, 0, "x", errBroken},
		{"a required node that fails open within a chain", []string{three, vmNode("a", "src"), node("x", "open", "a", "", ""), vmNode("b", "x")}, []int{2}, 0, "x", errBroken},
		{"the deadline of the request", []string{three, node("x", "stuck", "src", "", onError("empty"))}, nil, soon, "x", scheduler.ErrNodeTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBrokenTasks()
			g := lenientGraph(t, b, "src", c.nodes...)
			forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
				x := &scheduler.Execution{Graph: g, UserID: 1, Required: c.required}
				if c.within > 0 {
					x.Deadline = e.(interface{ Clock() clock.Clock }).Clock().Now().Add(c.within)
				}
				r := runOn(e, x)
				require.ErrorIs(t, r.Err, c.err)
				requireNode(t, r.Err, c.node)
				assert.Nil(t, r.Outputs)
				assert.Zero(t, b.counted.Load(), "a fallback ran that nobody needed")
			})
		})
	}
}

// TestAnOptionalNodeIsWaitedForWhileARequiredOneRuns tests the engines that run several nodes
// of a request at once.
func TestAnOptionalNodeIsWaitedForWhileARequiredOneRuns(t *testing.T) {
	three := node("src", "fixed_source", "", `"row_count": 3`, "")
	stuck := node("x", "stuck", "src", "", `"optional": true`)
	for _, c := range []struct {
		name     string
		nodes    []string
		required []int
		want     []int64
		told     []string
	}{
		{"given up", []string{three, stuck, sleepNode("r", "src", soon), concatNode("out", "r", "x")}, nil, []int64{1, 2, 3}, []string{"x late"}},
		{"given up, its input instead", []string{three, node("x", "stuck", "src", "", `"optional": true, "on_error": "skip"`), sleepNode("r", "src", soon), concatNode("out", "r", "x")},
			nil, []int64{1, 2, 3, 1, 2, 3}, []string{"x late"}},
		{"given up, its fallback instead", []string{three, node("x", "stuck", "src", "", `"optional": true, "on_error": {"fallback": "f"}`), node("f", "take", "src", `"count": 1`, ""),
			sleepNode("r", "src", soon), concatNode("out", "r", "x")}, nil, []int64{1, 2, 3, 1}, []string{"x fallback"}},
		{"two, one behind the other", []string{three, stuck, node("y", "stuck", "x", "", `"optional": true`), sleepNode("r", "src", soon), concatNode("out", "r", "y")},
			nil, []int64{1, 2, 3}, []string{"x late", "y late"}},
		{"two side by side", []string{three, stuck, node("y", "stuck", "src", "", `"optional": true`), sleepNode("r", "src", soon), concatNode("a", "r", "y"), concatNode("out", "a", "x")},
			nil, []int64{1, 2, 3}, []string{"x late", "y late"}},
		{"in time", []string{three, node("x", "counted", "src", "", `"optional": true`), node("r", "after", "src", "", ""), concatNode("out", "r", "x")},
			nil, []int64{1, 2, 3, 1, 2, 3}, []string{"x ok"}},
		{"in time, though it failed", []string{three, node("x", "broken", "src", "", `"optional": true`), node("r", "after", "src", "", ""), concatNode("out", "r", "x")},
			nil, []int64{1, 2, 3}, []string{"x failed"}},
		{"required by the request", []string{three, sleepNode("r", "src", 0), node("x", "sleep", "src", `"duration_ms": 15`, `"optional": true`), concatNode("out", "r", "x")},
			[]int{2}, []int64{1, 2, 3, 1, 2, 3}, []string{"x ok"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // It waits nearly all of its time.
			b := newBrokenTasks()
			g := lenientGraph(t, b, "out", c.nodes...)
			forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
				if _, sequential := e.(*blocking.Sequential); sequential {
					t.Skip("it runs one node at a time, and waits for it")
				}
				for range 2 {
					r := runOn(e, &scheduler.Execution{Graph: g, UserID: 1, Required: c.required})
					requireRows(t, r, c.want...)
					assert.Equal(t, c.told, statuses(r))
				}
				e.Close(scheduler.Forever) // Nothing of it is left.
				for range len(b.stuck) {
					<-b.stuck
					assert.ErrorIs(t, <-b.stopped, task.ErrCancelled)
				}
			})
		})
	}
}

// A request that has failed does not wait for optional nodes.
func TestAFailedRequestDoesNotWaitForOptionalNodes(t *testing.T) {
	b := newBrokenTasks()
	g := lenientGraph(t, b, "r", node("src", "fixed_source", "", `"row_count": 3`, ""), node("x", "stuck", "src", "", `"optional": true`),
		node("r", "sleep", "src", `"duration_ms": 5, "fail_after_sleep": true`, ""))
	forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
		if _, sequential := e.(*blocking.Sequential); sequential {
			t.Skip("it runs one node at a time, and waits for it")
		}
		requireNode(t, runOn(e, &scheduler.Execution{Graph: g, UserID: 1}).Err, "r")
	})
}

// The sequential engine waits for optional nodes, unless something else ends them.
func TestTheSequentialEngineWaitsForOptionalNodes(t *testing.T) {
	b := newBrokenTasks()
	g := lenientGraph(t, b, "out", node("src", "fixed_source", "", `"row_count": 3`, ""), node("x", "sleep", "src", `"duration_ms": 5`, `"optional": true`),
		sleepNode("r", "src", 0), concatNode("out", "r", "x"))
	e := blocking.OpenSequential(scheduler.Config{Registry: testRegistry(t)})
	defer e.Close(scheduler.Forever)
	r := runOn(e, &scheduler.Execution{Graph: g, UserID: 1})
	requireRows(t, r, 1, 2, 3, 1, 2, 3)
	assert.Equal(t, []string{"x ok"}, statuses(r))
}

// The Redis call of a node that is given up ends at once, and so does one that begins
// afterwards.
func TestAGivenUpCallEnds(t *testing.T) {
	reg := silentRedis(t)
	errs := make(chan error, 4)
	asks := task.Spec{Op: "test::asks", Inputs: 1, Output: task.PassThrough, Place: task.Waits, Params: []plan.ParamSchema{{Name: "endpoint", Type: plan.Endpoint, Required: true}},
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			for range 2 {
				_, err := c.Redis(c.Node.Endpoint).Do("GET", "x")
				errs <- err
			}
			return c.Inputs[0], nil
		}}
	artifact := strings.Replace(schedulertest.PlanJSON("out", source(3), node("x", "asks", "src", `"endpoint": "ep_0001"`, `"optional": true`), sleepNode("r", "src", soon),
		concatNode("out", "r", "x")), `"schema_version"`, `"capabilities_required": ["cap.rankd.on_error.v1"], "schema_version"`, 1)
	g, err := plan.Load("test.plan.json", []byte(artifact), builtins(t, asks), reg)
	require.NoError(t, err)
	e := openAsync(t, scheduler.Config{Registry: reg})
	r := runOn(e, &scheduler.Execution{Graph: g, UserID: 1})
	requireRows(t, r, 1, 2, 3)
	assert.Equal(t, []string{"x late"}, statuses(r))
	for range 2 {
		assert.ErrorIs(t, <-errs, task.ErrCancelled)
	}
	assert.EqualValues(t, 1, e.Metrics().GivenUp)
	assert.EqualValues(t, 1, e.Metrics().Plans["test"].Degraded)
}

// Degraded counts the answers in which something is missing, by plan.
func TestDegradedIsCounted(t *testing.T) {
	b := newBrokenTasks()
	g := lenientGraph(t, b, "x", source(3), node("x", "broken", "src", "", onError("empty")))
	well := lenientGraph(t, b, "src", source(3), node("x", "take", "src", `"count": 1`, onError("empty")))
	well.Name = "well"
	forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
		for _, one := range []*plan.Graph{g, well, g} {
			require.NoError(t, runOn(e, &scheduler.Execution{Graph: one, UserID: 1}).Err)
		}
		require.Error(t, runOn(e, &scheduler.Execution{Graph: g, UserID: 1, Required: []int{1}}).Err)
		m := e.Metrics()
		assert.EqualValues(t, 2, m.Placement.Degraded)
		assert.EqualValues(t, 2, m.Plans["test"].Degraded)
		assert.Zero(t, m.Plans["well"].Degraded)
	})
}

// Deltas are about the nodes that were due: a fallback that nobody needed has none.
func TestDeltasOfLenientPlans(t *testing.T) {
	b := newBrokenTasks()
	nodes := []string{source(3), node("x", "broken_score", "src", "", onError("empty")), node("y", "take", "src", `"count": 1`, orElse("f")), node("f", "take", "src", `"count": 2`, "")}
	g := lenientGraph(t, b, "x", nodes...)
	forAllEngines(t, func(t *testing.T, e scheduler.Engine) {
		r := runOn(e, &scheduler.Execution{Graph: g, UserID: 1, Deltas: true})
		require.NoError(t, r.Err)
		var ids []string
		for _, d := range r.Deltas() {
			ids = append(ids, d.NodeID)
		}
		assert.Equal(t, []string{"src", "x", "y"}, ids)
		assert.Equal(t, []registry.KeyID{finalScore}, r.Deltas()[1].New, "the empty result has the column")
	})
}
