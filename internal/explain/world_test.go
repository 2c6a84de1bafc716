package explain_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// world has the engines of a test, and the tasks of its plans. These are the built-in ones,
// children, which replaces each row by two, and those that a test adds.
type world struct {
	t       testing.TB
	reg     *registry.Registry
	tasks   *task.Catalog
	engines map[string]scheduler.Engine
}

func newWorld(t testing.TB, more ...task.Spec) *world {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	children := task.Spec{
		Op: "test::children", Inputs: 1, Output: task.Expand, Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			in := c.Inputs[0]
			ids := []int64{}
			for i := range in.Len() {
				ids = append(ids, in.ID(i)%7*10, in.ID(i)%7*10+1)
			}
			return rowset.Dense(&rowset.Batch{IDs: ids}), nil
		},
	}
	tasks, err := task.NewCatalog(slices.Concat(builtin.Specs(), []task.Spec{children}, more)...)
	require.NoError(t, err)
	w := &world{t: t, reg: reg, tasks: tasks, engines: map[string]scheduler.Engine{}}
	cfg := scheduler.Config{Registry: reg, CPUThreads: 2}
	async, err := scheduler.OpenAsync(cfg)
	require.NoError(t, err)
	offload := cfg
	offload.Placement.Mode = plan.OffloadAll
	second, err := scheduler.OpenAsync(offload)
	require.NoError(t, err)
	w.engines["reactor"], w.engines["offload_all"] = async, second
	w.engines["pool"], w.engines["sequential"] = blocking.OpenTwoPools(cfg), blocking.OpenSequential(cfg)
	t.Cleanup(func() {
		for _, e := range w.engines {
			e.Close(scheduler.Forever)
		}
	})
	return w
}

// load compiles a plan.
func (w *world) load(nodes []string, outputs ...string) *plan.Graph {
	return w.compile("", nodes, outputs)
}

// lenient compiles a plan that may go on without nodes that fail.
func (w *world) lenient(nodes []string, outputs ...string) *plan.Graph {
	return w.compile(`"capabilities_required": ["cap.rankd.on_error.v1"], `, nodes, outputs)
}

func (w *world) compile(members string, nodes, outputs []string) *plan.Graph {
	text := fmt.Sprintf(`{%s"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": ["%s"],
"expr_table": {"half": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "coalesce", "a": {"op": "param_ref", "param_id": 4},
   "b": {"op": "const_number", "value": 0.5}}},
  "back": {"op": "sub", "a": {"op": "const_number", "value": 100}, "b": {"op": "key_ref", "key_id": 1}}},
"pred_table": {"odd": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1}, "list": [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 30, 31, 40]},
  "middle": {"op": "and", "a": {"op": "cmp", "cmp": ">", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}},
   "b": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 41}}}}}`,
		members, strings.Join(nodes, ",\n"), strings.Join(outputs, `","`))
	g, err := plan.Load("p", []byte(text), w.tasks, w.reg)
	require.NoError(w.t, err, text)
	return g
}

func node(id, op, params string, inputs ...string) string {
	list := ""
	if len(inputs) > 0 {
		list = `"` + strings.Join(inputs, `","`) + `"`
	}
	return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}}`, id, op, list, params)
}

// run runs a plan on an engine.
func (w *world) run(engine string, g *plan.Graph, keep bool) *scheduler.Result {
	done := make(chan *scheduler.Result, 1)
	var params expr.Params
	params.SetFloat(4, 0.25)
	w.engines[engine].Submit(&scheduler.Execution{Graph: g, UserID: 1, Params: params, KeepRows: keep}, func(r *scheduler.Result) { done <- r })
	r := <-done
	require.NoError(w.t, r.Err)
	return r
}

// explain runs a plan and explains it.
func (w *world) explain(engine string, g *plan.Graph, asked explain.Asked) (*explain.Explanation, *scheduler.Result) {
	r := w.run(engine, g, true)
	var params expr.Params
	params.SetFloat(4, 0.25)
	run := explain.Run{Graph: g, Rows: r.Rows(), UserID: 1, Params: params}
	return run.Of(asked), r
}

// randomPlan returns a plan of sources, and of some nodes that read one or two earlier nodes
// each.
func (w *world) randomPlan(rng *rand.Rand) *plan.Graph {
	var nodes []string
	scored := []bool{}
	id := func(i int) string { return fmt.Sprintf("n%d", i) }
	add := func(score bool, op, params string, inputs ...string) {
		nodes = append(nodes, node(id(len(nodes)), op, params, inputs...))
		scored = append(scored, score)
	}
	for range 1 + rng.IntN(2) {
		add(false, "fixed_source", fmt.Sprintf(`"row_count": %d`, rng.IntN(40)))
	}
	for range 3 + rng.IntN(9) {
		from := max(rng.IntN(len(nodes)), rng.IntN(len(nodes)))
		in, score := id(from), scored[from]
		switch rng.IntN(17) {
		case 0:
			add(true, "vm", `"out_key": 2001, "expr_id": "half"`, in)
		case 1:
			add(true, "vm", `"out_key": 2001, "expr_id": "back"`, in)
		case 2:
			add(score, "filter", `"pred_id": "odd"`, in)
		case 3:
			add(score, "filter", `"pred_id": "middle"`, in)
		case 4:
			by := 1
			if score {
				by = 2001
			}
			add(score, "sort", fmt.Sprintf(`"by": %d, "order": %q`, by, []string{"asc", "desc"}[rng.IntN(2)]), in)
		case 5:
			add(score, "take", fmt.Sprintf(`"count": %d`, 1+rng.IntN(12)), in)
		case 6:
			rhs := rng.IntN(len(nodes))
			add(score || scored[rhs], "concat", fmt.Sprintf(`"rhs": %q`, id(rhs)), in)
		case 7:
			add(false, "test::children", "", in)
		case 8:
			with := rng.IntN(len(nodes))
			add(score && scored[with], "union", "", in, id(with))
		case 9:
			if score {
				add(true, "dedupe", `"by": 2001`, in)
			} else {
				add(false, "dedupe", "", in)
			}
		case 10, 13, 14:
			add(score, "join", fmt.Sprintf(`"right": %q, "how": %q`, id(rng.IntN(len(nodes))), []string{"inner", "inner", "anti"}[rng.IntN(3)]), in)
		case 11:
			with := rng.IntN(len(nodes))
			add(score && scored[with], "blend", `"ratio": [2, 1]`, in, id(with))
		case 16:
			if score {
				add(true, "sample", fmt.Sprintf(`"count": %d, "seed": %d, "weight": 2001`, 1+rng.IntN(20), rng.IntN(9)), in)
			} else {
				add(false, "cap", fmt.Sprintf(`"by": 1, "max": %d`, 1+rng.IntN(2)), in)
			}
		case 15:
			keep := []string{"all", "first"}[rng.IntN(2)]
			if score {
				add(true, "aggregate", fmt.Sprintf(`"keep": %q, "values": [{"method": "mean", "column": 2001, "out_key": 2001}]`, keep), in)
			} else {
				add(true, "aggregate", fmt.Sprintf(`"keep": %q, "by": [1], "values": [{"method": "max", "column": 1, "out_key": 2001}]`, keep), in)
			}
		default:
			add(score, "sleep", `"duration_ms": 0`, in)
		}
	}
	outputs := []string{id(len(nodes) - 1)}
	if rng.IntN(3) == 0 {
		outputs = append(outputs, id(rng.IntN(len(nodes))))
	}
	return w.load(nodes, outputs...)
}
