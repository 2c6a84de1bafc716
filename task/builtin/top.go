package builtin

import (
	"math"
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// top scores the rows and keeps the best.
func top() task.Spec {
	return task.Spec{
		Op:  "core::top",
		Doc: "Scores the rows by an expression and keeps the best, in order; a second expression may rank the best of them anew.",
		Params: []plan.ParamSchema{
			{Name: "expr_id", Type: plan.ExprID, Required: true, Doc: "The score of a row. High scores are good."},
			outKeyParam("The column for the score."),
			{Name: "count", Type: plan.Int, Required: true, Source: between(1, math.MaxInt32), Doc: "How many rows stay at most."},
			{Name: "threshold", Type: plan.Float, Doc: "The least score that stays. Without it every score does."},
			{Name: "rerank_expr_id", Type: plan.ExprID, Doc: "The second score, for the best `rerank_count` rows. It may read `out_key`."},
			{Name: "rerank_count", Type: plan.Int, Source: between(1, math.MaxInt32), Doc: "How many of the best rows get the second score."},
			{Name: "rerank_out_key", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "The column for the second score."},
		},
		Strict:  true,
		Inputs:  1,
		Output:  task.Pick,
		Reads:   topReads,
		Writes:  task.KeyParams("out_key", "rerank_out_key"),
		Prepare: prepareTop,
		Reference: task.Reference{
			Text: "`top` does what `vm`, `sort` and `take` do one after the other, without sorting the rows that do not stay. A `threshold` drops the rows whose score is " +
				"below it.\n\n" +
				"With `rerank_expr_id` the score is the first of two phases: the best `rerank_count` rows get a second, dearer score, which orders " +
				"them among themselves. The rows behind them follow in the order of the first score, as far as `count` reaches. All three `rerank_` parameters need each other.",
			Reads:  "The columns of both expressions.",
			Writes: "The columns of `out_key` and `rerank_out_key`.",
			Order:  "By score, best first. Rows with equal scores keep the order of the input; in the second phase, the order of the first.",
			Nulls: "A row whose score is null stands last, and a `threshold` drops it. So it is for the second score: such a row stands last of the best `rerank_count`. " +
				"The second score is null for the rows behind those.",
			Empty:      "No rows give no rows.",
			Duplicates: "Each row counts, also those with the same id.",
			Failures: "A score that is not finite fails the node. So does a null that the key of its column does not take. The expressions are " +
				"evaluated for rows that do not stay, too, and fail for them as well.",
			Example: task.Example{
				Plan: `ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 50 })
  .top({ expr: Key.id * 0.5, outKey: Key.score, count: 3, threshold: 10,
         rerankExpr: Key.score * -1, rerankCount: 2, rerankOutKey: Key.rank_score })`,
			},
		},
		Inline:  true,
		Forgets: true,
		Run:     runTop,
		Explain: explainTop,
	}
}

// topReads returns the columns of both expressions. The second may read the first score, which the node writes.
func topReads(n *plan.Node, _ *registry.Registry) []registry.KeyID {
	keys := slices.Clone(n.Params.Expr("expr_id").Keys())
	if e := n.Params.Expr("rerank_expr_id"); e != nil {
		keys = append(keys, without(e.Keys(), n.Params.Key("out_key").ID)...)
	}
	return keys
}

// without returns the keys but one.
func without(keys []registry.KeyID, key registry.KeyID) []registry.KeyID {
	return slices.DeleteFunc(slices.Clone(keys), func(k registry.KeyID) bool { return k == key })
}

// prepareTop refuses a second phase that lacks a part.
func prepareTop(n *plan.Node, _ *registry.Registry) (any, error) {
	p := &n.Params
	rerank := [...]string{"rerank_expr_id", "rerank_count", "rerank_out_key"}
	for _, name := range rerank {
		if !p.Given(name) && slices.ContainsFunc(rerank[:], p.Given) {
			return nil, plan.ParamErrorf(name, "is missing: rerank_expr_id, rerank_count and rerank_out_key need each other")
		}
	}
	key := p.Key("rerank_out_key")
	switch {
	case key == nil:
	case key.ID == p.Key("out_key").ID:
		return nil, plan.ParamErrorf("rerank_out_key", "is the key of out_key, which keeps the first score")
	case !key.Nullable && p.Int("rerank_count") < p.Int("count"):
		return nil, plan.ParamErrorf("rerank_count", "is below count, and rerank_out_key is not nullable: the rows behind have no second score")
	}
	return nil, nil
}

func runTop(c *task.Ctx) (rowset.RowSet, error) {
	p := &c.Node.Params
	scored, err := withScore(c, c.Inputs[0], p.Expr("expr_id"), p.Key("out_key"))
	if err != nil {
		return rowset.RowSet{}, err
	}
	first := p.Key("out_key").ID
	count, rerank := int(p.Int("count")), int(p.Int("rerank_count"))
	best, err := rowset.TopUntil(c, c.Memory, scored, first, true, max(count, rerank))
	if err != nil {
		return rowset.RowSet{}, err
	}
	if p.Given("threshold") {
		best = rowset.Take(best, atLeastScore(best, first, p.Float("threshold")))
	}
	if p.Expr("rerank_expr_id") == nil {
		return best, nil
	}
	return reranked(c, best, rerank, count)
}

// reranked orders the first rows of best by the second score, and returns the first count rows.
func reranked(c *task.Ctx, best rowset.RowSet, first, count int) (rowset.RowSet, error) {
	p := &c.Node.Params
	key := p.Key("rerank_out_key")
	head, err := withScore(c, rowset.Take(best, first), p.Expr("rerank_expr_id"), key)
	if err != nil {
		return rowset.RowSet{}, err
	}
	if head, err = rowset.Sort(c, c.Memory, head, key.ID, true); err != nil {
		return rowset.RowSet{}, err
	}
	if best.Len() <= head.Len() || count <= head.Len() {
		return rowset.Take(head, count), nil
	}
	rows := c.Memory.Rows(min(count, best.Len()))
	for i := range rows {
		if i < head.Len() {
			rows[i] = head.Row(i)
		} else {
			rows[i] = best.Row(i)
		}
	}
	return rowset.RowSet{Batch: head.Batch, Rows: rows, N: len(rows)}, nil
}

// atLeastScore returns how many of the first rows have a score of at least threshold. The scores descend, nulls last.
func atLeastScore(rows rowset.RowSet, key registry.KeyID, threshold float64) int {
	scores := rows.Batch.Float(key)
	low, high := 0, rows.Len()
	for low < high {
		middle := (low + high) / 2
		if row := int(rows.Row(middle)); scores.Valid.Get(row) && scores.Values[row] >= threshold {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
