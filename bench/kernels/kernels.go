package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// artifact has one node per kernel, with its name. Rows provides the columns.
const artifact = `{"schema_version": 1, "plan_name": "kernels", "nodes": [
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

// Names lists the kernels.
func Names() []string { return []string{"vm", "filter", "sort", "take", "concat"} }

// Descriptions says what each kernel computes, by name.
func Descriptions() map[string]string {
	return map[string]string{
		"vm":     "final_score = 0.7·model_score_1 + 0.3·model_score_2",
		"filter": "model_score_1 ≥ 0.5, which half of the rows pass",
		"sort":   "by model_score_1, descending",
		"take":   "the first half",
		"concat": "the rows and the same rows again; rows are counted once",
	}
}

// Result is the time of one kernel at one number of rows. Immutable.
type Result struct {
	Kernel   string  `json:"kernel"`
	Rows     int     `json:"rows"`
	NsPerRow float64 `json:"ns_per_row"` // median of the samples
	NsPerOp  float64 `json:"ns_per_op"`
	Spread   float64 `json:"spread"` // (third quartile − first) ÷ median
}

// samples is the number of samples per kernel. Up to five bad samples do not move the
// median of eleven.
const samples = 11

// Measure runs a kernel on that many rows for about d and returns the time of one run.
func Measure(kernel string, rows int, d time.Duration) (*Result, error) {
	run, err := prepare(kernel, rows)
	if err != nil {
		return nil, err
	}
	// The first runs warm up and say how many fit into a sample.
	times := 0
	for began := time.Now(); times == 0 || time.Since(began) < d/samples; times++ {
		if err := run(); err != nil {
			return nil, err
		}
	}
	var took []float64
	for range samples {
		began := time.Now()
		for range times {
			if err := run(); err != nil {
				return nil, err
			}
		}
		took = append(took, float64(time.Since(began))/float64(times))
	}
	slices.Sort(took)
	median := took[samples/2]
	return &Result{
		Kernel: kernel, Rows: rows, NsPerOp: median, NsPerRow: median / float64(rows),
		Spread: (took[samples*3/4] - took[samples/4]) / median,
	}, nil
}

// prepare returns a function that runs the kernel once on that many rows.
func prepare(kernel string, rows int) (func() error, error) {
	if rows < 1 {
		return nil, fmt.Errorf("kernel %s on %d rows", kernel, rows)
	}
	reg, err := registry.Default("test")
	if err != nil {
		return nil, err
	}
	catalog, err := tasks.NewTrustingCatalog(builtin.Specs())
	if err != nil {
		return nil, err
	}
	graph, err := plan.Load("kernels", fmt.Appendf(nil, artifact, (rows+1)/2), catalog, reg)
	if err != nil {
		return nil, err
	}
	for _, node := range graph.Nodes {
		if node.ID != kernel || !slices.Contains(Names(), kernel) {
			continue
		}
		in := Rows(rows)
		c := &task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Params: new(expr.Params), Registry: reg}
		for range node.Refs {
			c.Refs = append(c.Refs, in)
		}
		spec := tasks.SpecOf(node)
		return func() error {
			_, err := tasks.Invoke(spec, c)
			return err
		}, nil
	}
	return nil, fmt.Errorf("unknown kernel %q", kernel)
}

// Rows returns n rows, the same in every call: ids, model_score_1 and model_score_2 uniform
// in [0, 1), and one of fifty countries.
func Rows(n int) rowset.RowSet {
	random := rand.New(rand.NewPCG(1, 2))
	ids, first, second := make([]int64, n), make([]float64, n), make([]float64, n)
	country := rowset.NewStringBuilder(3001, n)
	for i := range n {
		ids[i], first[i], second[i] = int64(i+1), random.Float64(), random.Float64()
		country.Append(fmt.Appendf(nil, "C%d", random.IntN(50)))
	}
	return rowset.Dense(rowset.NewBatch(ids, &rowset.FloatColumn{Key: 1001, Values: first}, &rowset.FloatColumn{Key: 1002, Values: second}, country.Column()))
}
