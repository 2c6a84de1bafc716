package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// kernels measures the tasks that compute, by the number of rows. It runs them as the engine does: the task's body on a batch of
// columns, with the checks of its output. One goroutine.
type kernels struct {
	Rows     []int         `json:"rows"`
	Duration time.Duration `json:"duration_ns"` // of all rounds of a kernel

	runs  []func() error // of the kernels on the rows of this scenario
	times []int          // that each of them runs in a round
}

// A kernel and what it computes. Immutable.
type kernel struct{ name, doc string }

// allKernels returns the kernels.
func allKernels() []kernel {
	return []kernel{
		{"vm", "final_score = 0.7·model_score_1 + 0.3·model_score_2"},
		{"filter", "model_score_1 ≥ 0.5, which half of the rows pass"},
		{"sort", "by model_score_1, descending"},
		{"take", "the first half"},
		{"concat", "the rows and the same rows again; rows are counted once"},
	}
}

// kernelRowsMax bounds the rows of a kernel: some gigabytes of columns.
const kernelRowsMax = 20_000_000

// kernelRounds is the number of rounds. Up to five bad ones do not move the median of eleven.
const kernelRounds = 11

func (p *Program) kernelsMode() mode {
	o := new(kernels)
	_, long := describe("Measure the kernels as tasks run them, in ns per row.\n", allKernels(), func(k kernel) (string, string) { return k.name, k.doc })
	return mode{
		use: "kernels", short: "Measure vm, filter, sort, take and concat by number of rows", long: long,
		example: "  rankd bench kernels --rows 10,1000,1000000",
		rows: []cmdline.Setting{
			{Name: "rows", To: &o.Rows, Default: []int{10, 100, 1000, 10_000, 100_000, 1_000_000}, Least: 1, Most: kernelRowsMax, Help: "`numbers` of rows"},
			{Name: "duration", To: &o.Duration, Default: 500 * time.Millisecond, Least: 1, Most: int64(24 * time.Hour), Help: "how `long` each kernel is measured, per number of rows"},
		},
		report: func(ctx context.Context) (*harness.Report, error) {
			return p.measure(ctx, func(*rig) (*harness.Experiment, error) { return o.experiment(), nil }, o.report)
		},
	}
}

// String returns the settings as a line of text.
func (o *kernels) String() string {
	return fmt.Sprintf("%d interleaved rounds, %v in all for each kernel; medians with 95 %% intervals", kernelRounds, o.Duration)
}

var kernelsTable = harness.TableSpec{Figures: []harness.Figure{
	{Key: "ns_per_row", Head: "ns/row", Text: func(e harness.Estimate) string { return fmt.Sprintf("%.3g", e.Median) }, Spread: true},
	{Key: "ns_per_op", Head: "ns", Text: harness.Whole},
}}

func (o *kernels) experiment() *harness.Experiment {
	e := &harness.Experiment{
		Rounds: kernelRounds, Figures: kernelsTable.Figures,
		Prepare: func(ctx context.Context, scenario int) (failures []string, stop func(), err error) {
			return nil, nil, o.prepare(ctx, o.Rows[scenario])
		},
		Run: func(_ context.Context, scenario, subject, _ int) (harness.Sample, error) {
			took, err := o.time(subject)
			return harness.Sample{Figures: map[string]float64{"ns_per_op": took, "ns_per_row": took / float64(o.Rows[scenario])}}, err
		},
	}
	for _, rows := range o.Rows {
		e.Scenarios = append(e.Scenarios, harness.Item{Name: fmt.Sprintf("%d rows", rows), Labels: []harness.Label{{Key: "rows", Value: rows, Head: "rows"}}})
	}
	for _, k := range allKernels() {
		e.Subjects = append(e.Subjects, harness.Named("kernel", "kernel", k.name)...)
	}
	return e
}

func (o *kernels) report(results [][]*harness.Result) *harness.Report {
	r := &harness.Report{Title: "The kernels", Settings: o, Results: harness.Flatten(results)}
	r.Sections = []harness.Section{{Tables: []harness.Table{kernelsTable.Table(r.Results)}}}
	r.Answer = kernelsAnswer(o.Rows, results)
	return r
}

// kernelsAnswer tells the order of the kernels at the largest number of rows that was measured.
func kernelsAnswer(rows []int, results [][]*harness.Result) string {
	at := slices.Index(rows, slices.Max(rows))
	perRow := func(r *harness.Result) float64 { return r.Value("ns_per_row") }
	byTime := func(a, b *harness.Result) int { return cmp.Compare(perRow(a), perRow(b)) }
	fastest, slowest := slices.MinFunc(results[at], byTime), slices.MaxFunc(results[at], byTime)
	return fmt.Sprintf("On %d rows %s is the fastest kernel, with %.3g ns a row, and %s the slowest, with %.3g ns.", rows[at],
		allKernels()[fastest.Subject].name, perRow(fastest), allKernels()[slowest.Subject].name, perRow(slowest))
}

// time runs a kernel as often as prepare has found, and returns the mean time of a run in ns.
func (o *kernels) time(kernel int) (float64, error) {
	began := time.Now()
	for range o.times[kernel] {
		if err := o.runs[kernel](); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(began)) / float64(o.times[kernel]), nil
}

// prepare makes the kernels ready for so many rows. The first runs warm up and say how many fit into a round.
func (o *kernels) prepare(ctx context.Context, rows int) error {
	in := kernelRows(rows)
	o.runs, o.times = nil, nil
	for _, k := range allKernels() {
		run, err := prepareKernel(k.name, in)
		if err != nil {
			return err
		}
		times := 0
		for began := time.Now(); times == 0 || time.Since(began) < o.Duration/(kernelRounds+1); times++ {
			if err := errors.Join(run(), ctx.Err()); err != nil {
				return err
			}
		}
		o.runs, o.times = append(o.runs, run), append(o.times, times)
	}
	return nil
}

// prepareKernel returns a function that runs the kernel once on the rows.
func prepareKernel(kernel string, in rowset.RowSet) (func() error, error) {
	reg, err := registry.Default("test")
	if err != nil {
		return nil, err
	}
	catalog, err := engineTasks.NewTrustingCatalog(builtin.Specs())
	if err != nil {
		return nil, err
	}
	graph, err := plan.Load("kernels", fmt.Appendf(nil, kernelsArtifact, (in.Len()+1)/2), catalog, reg)
	if err != nil {
		return nil, err
	}
	node := graph.Nodes[slices.IndexFunc(graph.Nodes, func(n *plan.Node) bool { return n.ID == kernel })]
	memory := rowset.NewMemory(rowset.NewPool(rowset.PoolConfig{})) // as a request has it; without it a sort allocates its scratch memory
	c := &task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Params: new(expr.Params), Registry: reg, Memory: memory}
	for range node.Refs {
		c.Refs = append(c.Refs, in)
	}
	spec := engineTasks.SpecOf(node)
	return func() error {
		_, err := engineTasks.Invoke(spec, c)
		memory.Release(nil)
		return err
	}, nil
}

// engineTasks is the view that engines have of package task.
var engineTasks = task.Engine(taskrun.Key{})

// kernelsArtifact has one node per kernel, with its name. kernelRows provides the columns.
const kernelsArtifact = `{"schema_version": 1, "plan_name": "kernels", "nodes": [
	{"node_id": "rows", "op": "test::fixed_source", "inputs": []},
	{"node_id": "vm", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2001, "expr_id": "final"}},
	{"node_id": "filter", "op": "core::filter", "inputs": ["rows"], "params": {"pred_id": "half"}},
	{"node_id": "sort", "op": "core::sort", "inputs": ["rows"], "params": {"by": 1001, "order": "desc"}},
	{"node_id": "take", "op": "core::take", "inputs": ["rows"], "params": {"count": %d}},
	{"node_id": "concat", "op": "core::concat", "inputs": ["rows"], "params": {"rhs": "rows"}}],
	"outputs": ["vm", "filter", "sort", "take", "concat"],
	"expr_table": {"final": {"op": "add",
		"a": {"op": "mul", "a": {"op": "key_ref", "key_id": 1001}, "b": {"op": "const_number", "value": 0.7}},
		"b": {"op": "mul", "a": {"op": "key_ref", "key_id": 1002}, "b": {"op": "const_number", "value": 0.3}}}},
	"pred_table": {"half": {"op": "cmp", "cmp": ">=", "a": {"op": "key_ref", "key_id": 1001}, "b": {"op": "const_number", "value": 0.5}}}}`

// kernelRows returns n rows, the same in every call: ids, model_score_1 and model_score_2 uniform
// in [0, 1), and one of fifty countries.
func kernelRows(n int) rowset.RowSet {
	random := rand.New(rand.NewPCG(1, 2))
	ids, first, second := make([]int64, n), make([]float64, n), make([]float64, n)
	country := rowset.NewStringBuilder(3001, n)
	for i := range n {
		ids[i], first[i], second[i] = int64(i+1), random.Float64(), random.Float64()
		country.Append(fmt.Appendf(nil, "C%d", random.IntN(50)))
	}
	return rowset.Dense(rowset.NewBatch(ids, &rowset.FloatColumn{Key: 1001, Values: first}, &rowset.FloatColumn{Key: 1002, Values: second}, country.Column()))
}
