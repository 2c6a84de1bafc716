package scheduler_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
)

// moody is a task whose behavior follows from the node and the user: it passes its input on,
// fails, panics, or fails open.
func moody(op string, spec task.Spec) task.Spec {
	spec.Op, spec.Inputs, spec.Output, spec.Forgets = op, 1, task.PassThrough, true
	spec.Run = func(c *task.Ctx) (rowset.RowSet, error) {
		h := fnv.New32a()
		fmt.Fprint(h, c.Node.ID, c.UserID)
		switch h.Sum32() % 6 {
		case 0, 1:
			return rowset.RowSet{}, fmt.Errorf("node %s fails user %d", c.Node.ID, c.UserID)
		case 2:
			panic(fmt.Sprintf("node %s, user %d", c.Node.ID, c.UserID))
		case 3:
			c.FailOpen(fmt.Errorf("node %s goes on for user %d", c.Node.ID, c.UserID))
		}
		return c.Inputs[0], nil
	}
	return spec
}

// lenientPlan writes a random plan whose nodes may fail, and loads it.
func lenientPlan(t *testing.T, rng *rand.Rand, tasks *task.Catalog) *plan.Graph {
	var text, lenient []string
	add := func(op, input, params string) string {
		id := fmt.Sprintf("n%d", len(text))
		text = append(text, strings.TrimSuffix(node(id, op, input, params, ""), "}"))
		lenient = append(lenient, "")
		return id
	}
	any := func() string { return fmt.Sprintf("n%d", max(rng.IntN(len(text)), rng.IntN(len(text)))) }
	source := func() string { return add("fixed_source", "", fmt.Sprintf(`"row_count": %d`, rng.IntN(6))) }
	source()
	for range 4 + rng.IntN(10) {
		switch rng.IntN(10) {
		case 0:
			source()
		case 1, 2:
			add("concat", any(), fmt.Sprintf(`"rhs": %q`, any()))
		case 3:
			add("sort", any(), fmt.Sprintf(`"by": 1, "order": %q`, []string{"asc", "desc"}[rng.IntN(2)]))
		case 4:
			add("take", any(), fmt.Sprintf(`"count": %d`, 1+rng.IntN(4)))
		case 5:
			add("vm", any(), `"out_key": 2001, "expr_id": "score"`)
		default:
			add([]string{"moody_inline", "moody_on_pool", "moody_on_loop"}[rng.IntN(3)], any(), "")
		}
	}
	output := any()
	for i := range len(text) {
		switch rng.IntN(5) {
		case 0:
			lenient[i] = `, "on_error": "empty"`
		case 1:
			lenient[i] = `, "on_error": "skip"`
		case 2:
			f := source()
			if rng.IntN(2) == 0 {
				f = add("moody_inline", any(), "")
			}
			lenient[i] = fmt.Sprintf(`, "on_error": {"fallback": %q}`, f)
		}
	}
	for {
		nodes := make([]string, len(text))
		for i := range text {
			nodes[i] = text[i] + lenient[i] + "}"
		}
		artifact := strings.Replace(schedulertest.PlanJSON(output, nodes...), `"schema_version"`, `"capabilities_required": ["cap.rankd.on_error.v1"], "schema_version"`, 1)
		g, err := plan.Load("random", []byte(artifact), tasks, testRegistry(t))
		if err == nil {
			return g
		}
		var bad *plan.Error
		require.ErrorAs(t, err, &bad)
		stricter := false
		for i := range lenient { // A plan may not combine all that was drawn, so the loop takes one thing back at a time.
			if lenient[i] != "" && (fmt.Sprintf("n%d", i) == bad.Node || !strings.Contains(bad.Field, "on_error")) {
				lenient[i], stricter = "", true
				break
			}
		}
		require.True(t, stricter, "%v", err)
	}
}

// described returns all that two engines must agree on.
func described(r *scheduler.Result) string {
	if r.Err != nil {
		var failed *scheduler.NodeError
		if errors.As(r.Err, &failed) {
			return "an error" // Which of several failures is the first depends on the order.
		}
		return r.Err.Error()
	}
	var b strings.Builder
	for _, out := range r.Outputs {
		for i := range out.Len() {
			fmt.Fprint(&b, out.ID(i), " ")
		}
		fmt.Fprintln(&b, out.Batch.AppendKeys(nil))
	}
	for _, c := range r.Completeness() {
		fmt.Fprintln(&b, c.Node.ID, c.Status, c.Dropped, c.Err)
	}
	return b.String()
}

// TestEnginesAgreeOnLenientPlans runs random plans with failures on all engines, in all modes.
func TestEnginesAgreeOnLenientPlans(t *testing.T) {
	tasks := builtins(t, moody("test::moody_inline", task.Spec{Inline: true, Cheap: true}), moody("test::moody_on_pool", task.Spec{Expensive: true}),
		moody("test::moody_on_loop", task.Spec{Place: task.OnLoop}))
	reg := testRegistry(t)
	sequential := blocking.OpenSequential(scheduler.Config{Registry: reg})
	defer sequential.Close(scheduler.Forever)
	pools := blocking.OpenTwoPools(scheduler.Config{Registry: reg})
	defer pools.Close(scheduler.Forever)
	engines := map[string]scheduler.Engine{"pool": pools}
	for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
		engines[string(mode)] = openAsync(t, scheduler.Config{Registry: reg, Placement: scheduler.Placement{Mode: mode}})
		engines[string(mode)+", no chaining"] = openAsync(t, scheduler.Config{Registry: reg, Placement: scheduler.Placement{Mode: mode, NoContinuationChaining: true}})
	}
	seen := map[string]int{}
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 14))
		g := lenientPlan(t, rng, tasks)
		for user := int64(1); user <= 4; user++ {
			x := scheduler.Execution{Graph: g, UserID: user}
			if rng.IntN(4) == 0 {
				x.Required = []int{rng.IntN(len(g.Nodes))}
			}
			r := runOn(sequential, &x)
			want := described(r)
			if r.Err != nil {
				seen["error"]++
			}
			for _, c := range r.Completeness() {
				seen[string(c.Status)]++
			}
			for name, e := range engines {
				require.Equal(t, want, described(runOn(e, &x)), "seed %d, user %d, %s", seed, user, name)
			}
		}
	}
	t.Log(seen)
	for _, status := range []string{"error", "ok", "fallback", "failed"} {
		assert.Greater(t, seen[status], 50, status)
	}
}
