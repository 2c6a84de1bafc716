package builtin

import (
	"math"
	"slices"
	"strconv"

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
			{Name: "count", Type: plan.Int, Required: true, PerRequest: true, Source: between(1, math.MaxInt32), Doc: "How many rows stay at most."},
			{Name: "threshold", Type: plan.Float, Doc: "The least score that stays. Without it every score does."},
			{Name: "rerank_expr_id", Type: plan.ExprID, Doc: "The second score, for the best `rerank_count` rows. It may read `out_key`."},
			{Name: "rerank_count", Type: plan.Int, Source: between(1, math.MaxInt32), Doc: "How many of the best rows get the second score."},
			{Name: "rerank_out_key", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "The column for the second score."},
		},
		Strict:  true,
		Inputs:  1,
		IDs:     plan.MovesTextIDs,
		Output:  task.Pick,
		RowsMax: atMost("count"),
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
	count, err := c.Int("count")
	if err != nil {
		return rowset.RowSet{}, err
	}
	ranked, err := rankTop(c, int(count), max(int(count), int(c.Node.Params.Int("rerank_count"))))
	return ranked.out, err
}

// A ranking is what a run of top found. Immutable once built; any goroutine.
type ranking struct {
	best   rowset.RowSet // the first rows by the first score
	passed int           // how many of them reach the threshold
	head   rowset.RowSet // the first of these, by the second score; none without a second phase
	out    rowset.RowSet // the result
}

// rankTop ranks the rows, of which count stay. Those that stay are the best by the first score, and in order.
func rankTop(c *task.Ctx, count, ordered int) (r ranking, err error) {
	p := &c.Node.Params
	first := p.Key("out_key")
	scored, err := withScore(c, c.Inputs[0], p.Expr("expr_id"), first)
	if err != nil {
		return ranking{}, err
	}
	if r.best, err = rowset.TopUntil(c, c.Memory, scored, first.ID, true, ordered); err != nil {
		return ranking{}, err
	}
	r.passed = r.best.Len()
	if p.Given("threshold") {
		r.passed = atLeastScore(r.best, first.ID, p.Float("threshold"))
	}
	best := rowset.Take(r.best, r.passed)
	if p.Expr("rerank_expr_id") == nil {
		r.out = rowset.Take(best, count)
		return r, nil
	}
	r.head, err = rerank(c, rowset.Take(best, int(p.Int("rerank_count"))))
	if err != nil {
		return ranking{}, err
	}
	r.out = inFront(c.Memory, r.head, best, count)
	return r, nil
}

// rerank orders the rows by the second score.
func rerank(c *task.Ctx, rows rowset.RowSet) (rowset.RowSet, error) {
	key := c.Node.Params.Key("rerank_out_key")
	head, err := withScore(c, rows, c.Node.Params.Expr("rerank_expr_id"), key)
	if err != nil {
		return rowset.RowSet{}, err
	}
	return rowset.Sort(c, c.Memory, head, key.ID, true)
}

// inFront returns the first count rows of best, with head in place of as many rows.
func inFront(m *rowset.Memory, head, best rowset.RowSet, count int) rowset.RowSet {
	if best.Len() <= head.Len() || count <= head.Len() {
		return rowset.Take(head, count)
	}
	rows := m.Rows(min(count, best.Len()))
	for i := range rows {
		if i < head.Len() {
			rows[i] = head.Row(i)
		} else {
			rows[i] = best.Row(i)
		}
	}
	return rowset.RowSet{Batch: head.Batch, Rows: rows, N: len(rows)}
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

// explainTop says how rows were scored, or why they did not stay. It ranks all rows, so that each has a rank.
func explainTop(c *task.Ctx, out rowset.RowSet) task.Account {
	p, in := &c.Node.Params, c.Inputs[0]
	asked, err := c.Int("count")
	if err != nil {
		return task.Account{}
	}
	count := int(asked)
	r, err := rankTop(c, count, in.Len())
	if err != nil {
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		row := c.SideRows(out, at.Side).Row(at.Pos)
		pos, second := positionIn(r.best, row), positionIn(r.head, row)
		e, key := p.Expr("expr_id"), p.Key("out_key")
		if second >= 0 {
			e, key = p.Expr("rerank_expr_id"), p.Key("rerank_out_key")
		}
		tree := e.Explain(r.best, pos, c.Params)
		why := task.Reason{Kind: task.Cut, Tree: &tree, Column: key.ID}
		switch {
		case at.Side == task.InResult:
			why.Kind = task.Sorted
			if second >= 0 {
				why.Text = "a second score ordered it among the best " + strconv.FormatInt(p.Int("rerank_count"), 10)
			}
		case pos >= r.passed:
			why.Text = "its score is below the threshold"
			rankedBy(&why, r.best, pos, key.ID, r.passed)
			if why.Score != nil {
				lacks := p.Float("threshold") - *why.Score
				why.Lacks = &lacks
			}
		case second >= 0:
			rankedBy(&why, r.head, second, key.ID, count)
		default:
			rankedBy(&why, rowset.Take(r.best, r.passed), pos, key.ID, count)
		}
		return why
	}}
}

// rankedBy fills in the rank and the score of a row, and by how much it missed the last of so many rows.
func rankedBy(why *task.Reason, sorted rowset.RowSet, pos int, key registry.KeyID, limit int) {
	why.Rank, why.Of, why.Limit = pos+1, sorted.Len(), limit
	scores := sorted.Batch.Float(key)
	score, ok := scores.Value(int(sorted.Row(pos)))
	if !ok {
		return
	}
	why.Score = &score
	if 0 < limit && limit <= pos {
		if last, ok := scores.Value(int(sorted.Row(limit - 1))); ok {
			lacks := last - score
			why.Lacks = &lacks
		}
	}
}
