package builtin

import (
	"fmt"
	"strconv"

	"github.com/rankd/rankd/gbdt"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// This file has what the tasks that score say of one row of a run: see task.Spec.Explain.

// explainTop says how a row was scored, or why it did not stay.
func explainTop(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	p, in := &c.Node.Params, c.Inputs[0]
	first, second := p.Key("out_key"), p.Key("rerank_out_key")
	if at.Side == task.InResult {
		pos := positionIn(in, out.Row(at.Pos))
		tree := p.Expr("expr_id").Explain(in, pos, c.Params)
		why := task.Reason{Kind: task.Sorted, Tree: &tree, Column: first.ID}
		if second != nil {
			if _, ok := out.Batch.Float(second.ID).Value(int(out.Row(at.Pos))); ok {
				tree = p.Expr("rerank_expr_id").Explain(out, at.Pos, c.Params)
				why.Column = second.ID
				why.Text = "a second score ordered it among the best " + strconv.FormatInt(p.Int("rerank_count"), 10)
			}
		}
		return why
	}
	tree := p.Expr("expr_id").Explain(in, at.Pos, c.Params)
	why := task.Reason{Kind: task.Cut, Tree: &tree, Column: first.ID}
	scored, err := withScore(c, in, p.Expr("expr_id"), first)
	if err != nil {
		return why
	}
	best, err := rowset.Sort(c, nil, scored, first.ID, true)
	if err != nil {
		return why
	}
	row := in.Row(at.Pos)
	limit, key := int(p.Int("count")), first
	if p.Given("threshold") {
		threshold := p.Float("threshold")
		kept := atLeastScore(best, first.ID, threshold)
		if positionIn(best, row) >= kept {
			why.Text = "its score is below the threshold"
			rankedBy(&why, best, row, first.ID, kept)
			if why.Score != nil {
				lacks := threshold - *why.Score
				why.Lacks = &lacks
			}
			return why
		}
		best = rowset.Take(best, kept)
	}
	if head := int(p.Int("rerank_count")); second != nil && positionIn(best, row) < head {
		tree = p.Expr("rerank_expr_id").Explain(best, positionIn(best, row), c.Params)
		if best, err = reranked(c, best, head, head); err != nil {
			return why
		}
		key, why.Column = second, second.ID
	}
	rankedBy(&why, best, row, key.ID, limit)
	return why
}

// rankedBy fills in the rank and the score of a row, and what it lacks to the last of so many rows.
func rankedBy(why *task.Reason, sorted rowset.RowSet, row int32, key registry.KeyID, limit int) {
	pos := positionIn(sorted, row)
	why.Rank, why.Of, why.Limit = pos+1, sorted.Len(), limit
	scores := sorted.Batch.Float(key)
	score, ok := scores.Value(int(row))
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

// explainBoost says which rules changed a row.
func explainBoost(c *task.Ctx, _ rowset.RowSet, at task.RowAt) task.Reason {
	p, in := &c.Node.Params, c.Inputs[0]
	key := p.Key("out_key")
	why := task.Reason{Kind: task.Passed, Column: key.ID}
	out, err := newScores(c, in.Batch)
	if err != nil {
		return why
	}
	row := in.Row(at.Pos)
	if v, ok := numbersOf(in.Batch, p.Key("score").ID).get(int(row)); ok {
		out.set(row, v)
		why.Values = append(why.Values, task.Value{Name: p.Key("score").Name, Value: v})
	}
	one := rowset.RowSet{Batch: in.Batch, Rows: []int32{row}, N: 1}
	b := ruleBook{c: c, out: out, rows: out.over(one, key), once: p.String("mode") == "first"}
	for i, rule := range p.Objects("rules") {
		if b.rows.Len() == 0 {
			break
		}
		when, then := rule.Pred("pred_id"), rule.Expr("expr_id")
		if when.Explain(b.rows, 0, c.Params).Value != true {
			continue
		}
		tree := then.Explain(b.rows, 0, c.Params)
		name := rule.String("name")
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		why.Kind, why.Fired = task.Boosted, append(why.Fired, task.Fired{Rule: name, Tree: &tree})
		if err := b.apply(when, then); err != nil {
			break
		}
	}
	return why
}

// explainNormalize says from which number, among which, the result of a row comes.
func explainNormalize(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	p, in := &c.Node.Params, c.Inputs[0]
	by, method := p.Key("by"), p.String("method")
	why := task.Reason{Kind: task.Normalized, Column: p.Key("out_key").ID}
	values, row := numbersOf(in.Batch, by.ID), in.Row(at.Pos)
	v, ok := values.get(int(row))
	if !ok {
		why.Text = by.Name + " is null"
		return why
	}
	why.Text = fmt.Sprintf("%s of %s among %d rows", method, by.Name, in.Len())
	why.Values = []task.Value{{Name: by.Name, Value: v}}
	if method == "min_max" || method == "z_score" {
		least, greatest := extremes(in, values)
		why.Values = append(why.Values, task.Value{Name: "least", Value: least}, task.Value{Name: "greatest", Value: greatest})
		return why
	}
	why.Rank, why.Of = 1, in.Len()
	for i := range in.Len() {
		if other, ok := values.get(int(in.Row(i))); ok && (p.String("order") == "desc" && other > v || p.String("order") == "asc" && other < v) {
			why.Rank++
		}
	}
	return why
}

// explainModel says for which values of its features a model scored a row.
func explainModel(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	s, in := c.Node.Prepared.(*scorer), c.Inputs[0]
	why := task.Reason{Kind: task.Computed, Column: c.Node.Params.Key("out_key").ID,
		Text: fmt.Sprintf("model %s (%s), %d trees", task.Quote(c.Node.Params.String("model")), s.model.Objective(), s.model.Trees())}
	one := rowset.RowSet{Batch: in.Batch, Rows: []int32{in.Row(at.Pos)}, N: 1}
	var value [1]float32
	for _, id := range s.reads() {
		key, ok := c.Registry.Key(id)
		if !ok {
			continue
		}
		featureColumn(one, id)(value[:], 0)
		v := task.Value{Name: key.Name}
		if value[0] == value[0] {
			v.Value = float64(value[0])
		}
		why.Values = append(why.Values, v)
	}
	margin := make([]float64, 1)
	s.model.Predict(nil, s.columns(one), gbdt.Margin, margin)
	why.Values = append(why.Values, task.Value{Name: "margin", Value: margin[0]})
	return why
}

// explainDiversify says whether a row had to wait, or how much of its score it kept.
func explainDiversify(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	if at.Side != task.InResult {
		return task.Reason{} // only a run that was cut short lacks rows
	}
	p, in := &c.Node.Params, c.Inputs[0]
	by, row := p.Key("by"), out.Row(at.Pos)
	if key := p.Key("out_key"); key != nil {
		why := task.Reason{Kind: task.Computed, Column: key.ID, Text: "its score falls with each row of the same " + by.Name + " that ranks before it"}
		before, okBefore := numbersOf(in.Batch, p.Key("score").ID).get(int(row))
		after, okAfter := out.Batch.Float(key.ID).Value(int(row))
		if okBefore && okAfter {
			why.Values = []task.Value{{Name: p.Key("score").Name, Value: before}, {Name: key.Name, Value: after}}
		}
		return why
	}
	switch before := positionIn(in, row); {
	case before < at.Pos:
		window := "the result"
		if p.Given("window") {
			window = fmt.Sprintf("each %d neighbours", p.Int("window"))
		}
		return task.Reason{Kind: task.Moved, Text: fmt.Sprintf("it waited: %s has at most %d rows of the same %s", window, p.Int("max"), by.Name)}
	case before > at.Pos:
		return task.Reason{Kind: task.Moved, Text: "rows before it had to wait"}
	default:
		return task.Reason{Kind: task.Passed}
	}
}

// positionIn returns the position of a batch row among the active rows, or -1.
func positionIn(rows rowset.RowSet, row int32) int {
	for i := range rows.Len() {
		if rows.Row(i) == row {
			return i
		}
	}
	return -1
}
