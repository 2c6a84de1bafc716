package builtin

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// scoreCases has a node of each task that scores. Benchmarks and the test of allocations run
// them.
func scoreCases(t testing.TB) map[string]struct {
	spec task.Spec
	nodeCase
} {
	trees := make([]modelTree, 10)
	for i := range trees {
		trees[i] = stump(i%2, float32(i)/10, i%3 == 0, 1, 2)
	}
	models, err := gbdt.ReadFolder(fstest.MapFS{"m.json": {Data: modelFile(t, []string{"k1001", "k5001"}, 2, trees...)}}, "models")
	require.NoError(t, err)
	rules := []any{rule("old > 0", "plus"), rule("new > 3", "plus"), rule("all", "old")}
	return map[string]struct {
		spec task.Spec
		nodeCase
	}{
		"diversify window":          {diversify(), nodeCase{params: map[string]any{"by": "k3001", "max": 2, "window": 10}}},
		"diversify window by int":   {diversify(), nodeCase{params: map[string]any{"by": "k5001", "max": 1, "window": 50}}},
		"diversify decay":           {diversify(), nodeCase{params: map[string]any{"by": "k3001", "method": "decay", "score": "k1001", "out_key": "score"}}},
		"top":                       {top(), nodeCase{params: map[string]any{"expr_id": "old", "out_key": "score", "count": 50}, exprs: boostExprs}},
		"top rerank":                {top(), nodeCase{params: map[string]any{"expr_id": "old", "out_key": "score", "count": 50, "rerank_expr_id": "plus", "rerank_count": 100, "rerank_out_key": "second"}, exprs: boostExprs}},
		"boost first":               {boost(), nodeCase{params: map[string]any{"score": "k1001", "out_key": "score", "rules": rules}, exprs: boostExprs, preds: boostPreds}},
		"boost all":                 {boost(), nodeCase{params: map[string]any{"score": "k1001", "out_key": "score", "mode": "all", "rules": rules}, exprs: boostExprs, preds: boostPreds}},
		"normalize min_max":         {normalize(), nodeCase{params: map[string]any{"by": "k1001", "out_key": "score"}}},
		"normalize z_score":         {normalize(), nodeCase{params: map[string]any{"by": "k1001", "out_key": "score", "method": "z_score"}}},
		"normalize reciprocal_rank": {normalize(), nodeCase{params: map[string]any{"by": "k1001", "out_key": "score", "method": "reciprocal_rank"}}},
		"sample":                    {sample(), nodeCase{params: map[string]any{"count": 50, "weight": "k5001", "seed": 1, "propensity": "score"}}},
		"cap":                       {capRows(), nodeCase{params: map[string]any{"by": "k5001", "max": 2}}},
		"aggregate by int":          {aggregate(), nodeCase{params: map[string]any{"by": []string{"k5001"}, "values": []any{map[string]any{"method": "mean", "column": "k1001", "out_key": "score"}}}}},
		"aggregate all rows":        {aggregate(), nodeCase{params: map[string]any{"values": []any{map[string]any{"method": "max", "column": "k1001", "out_key": "score"}}}}},
		"model of 10 stumps":        {model(models), nodeCase{params: map[string]any{"model": "m", "out_key": "score"}}},
	}
}

// scoreRows returns rows as a feed has them: with two columns of numbers, and with authors,
// some of whom have many rows.
func scoreRows(count int) rowset.RowSet {
	rng := rand.New(rand.NewPCG(14, 14))
	ids := make([]int64, count)
	floats, ints, texts := rowset.NewFloatBuilder(keyFloat, count), rowset.NewIntBuilder(keyInt, count), rowset.NewStringBuilder(keyText, count)
	for i := range ids {
		ids[i] = int64(i)
		author := int64(rng.ExpFloat64() * float64(count) / 20)
		floats.Append(rng.NormFloat64())
		ints.Append(author)
		texts.Append(fmt.Append(nil, "author ", author))
	}
	return rowset.Dense(rowset.NewBatch(ids,
		floats.Column(),
		ints.Column(),
		texts.Column(),
	))
}

// The allocations of a task do not grow with its rows: it makes a few slices, each as long as
// necessary.
func TestScoresAllocateNoMoreForMoreRows(t *testing.T) {
	for name, c := range scoreCases(t) {
		t.Run(name, func(t *testing.T) {
			run := c.runner(t, c.spec)
			allocations := func(rows int) float64 {
				in := scoreRows(rows)
				return testing.AllocsPerRun(2, func() {
					if _, err := run(in, 0); err != nil {
						t.Fatal(err)
					}
				})
			}
			few, many := allocations(1000), allocations(10_000)
			assert.LessOrEqual(t, many, few+40, "a sort may need more buckets, and scratch memory may be made again, mostly under the race detector")
			assert.Less(t, many, 100.0)
		})
	}
}

// BenchmarkScores runs each task that scores for 100, 10,000 and a million rows. As in an
// engine, nobody checks the result. ns/row is the time per row.
func BenchmarkScores(b *testing.B) {
	for _, rows := range []int{100, 10_000, 1_000_000} {
		in := scoreRows(rows)
		for name, c := range scoreCases(b) {
			node, err := c.load(b, c.spec)
			require.NoError(b, err)
			ctx := task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Registry: testRegistry()}
			b.Run(fmt.Sprintf("%s/rows=%d", name, rows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c := ctx
					if _, err := tasks.SpecOf(node).Run(&c); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			})
		}
	}
}
