package builtin

import (
	"fmt"
	"math"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// normalize writes how each row's number compares with the others'.
func normalize() task.Spec {
	return task.Spec{
		Op:  "core::normalize",
		Doc: "Writes how a number of each row compares with the numbers of the other rows.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: numberTypes},
				Doc: "The column with the numbers, or the id."},
			outKeyParam("The column for the result. `by` keeps its values, unless it is the same column."),
			{Name: "method", Type: plan.Enum, StrValue: "min_max",
				Source: plan.SourceRule{OneOf: []string{"min_max", "z_score", "rank", "reciprocal_rank"}},
				Doc:    "The computation; see above."},
			{Name: "order", Type: plan.Enum, StrValue: "desc", Source: plan.SourceRule{OneOf: []string{"asc", "desc"}},
				Doc: "`desc`: high numbers are good. `asc`: low numbers are good."},
			{Name: "k", Type: plan.Int, IntValue: 60, Source: between(0, 1<<31-1),
				Doc: "The constant of `reciprocal_rank`. The higher it is, the less the first ranks stand out."},
		},
		Strict: true,
		Inputs: 1,
		IDs:    plan.MovesTextIDs,
		Output: task.SameRows,
		Reads:  task.KeyParams("by"),
		Writes: task.KeyParams("out_key"),
		Across: true,
		Reference: task.Reference{
			Text: "`min_max` maps the numbers to 0 … 1: (v − least) / (greatest − least). `z_score` is the distance from the mean in standard deviations " +
				"of all rows (population). `rank` counts from 1, the best row. `reciprocal_rank` is 1 / (k + rank), which adds up well over several lists.\n\n" +
				"With `order: \"asc\"` low numbers are good: `min_max` gives 1 to the least, `z_score` changes its sign, and rank 1 is the least.",
			Reads:      "The column of `by`.",
			Writes:     "The column of `out_key`.",
			Order:      "The rows keep their order. Equal numbers have the same result: they share the best of their ranks, and the next rank leaves a gap, as in 1, 1, 3.",
			Nulls:      "A null stays null and counts for nothing. It fails the node if `out_key` is not nullable. All rows are null if they have no such column.",
			Empty:      "No rows give no rows. If all numbers are equal, as for a single row, `min_max` gives 1 and `z_score` gives 0.",
			Duplicates: "Each row counts, also those with the same id.",
			Failures:   "A null fails the node if `out_key` is not nullable. Results are finite for all finite numbers.",
			Example: task.Example{
				Plan: `ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 4 })
  .vm({ outKey: Key.score, expr: Key.id * 2 })
  .normalize({ by: Key.score, outKey: Key.final_score, method: "reciprocal_rank" })`,
			},
		},
		Inline:  true,
		Forgets: true,
		Run:     runNormalize,
		Explain: explainNormalize,
	}
}

func runNormalize(c *task.Ctx) (rowset.RowSet, error) {
	in, by, params := c.Inputs[0], c.Node.Params.Key("by").ID, &c.Node.Params
	out, err := newScores(c, in.Batch)
	if err != nil {
		return rowset.RowSet{}, err
	}
	values, desc := numbersOf(in.Batch, by), params.String("order") == "desc"
	switch params.String("method") {
	case "min_max":
		minMax(in, values, desc, out)
	case "z_score":
		zScore(in, values, desc, out)
	case "rank":
		err = rank(c, in, by, desc, out, func(rank int) float64 { return float64(rank) })
	case "reciprocal_rank":
		k := float64(params.Int("k"))
		err = rank(c, in, by, desc, out, func(rank int) float64 { return 1 / (k + float64(rank)) })
	}
	if err != nil {
		return rowset.RowSet{}, err
	}
	return out.finish(in, params.Key("out_key"))
}

// extremes returns the least and the greatest number of the active rows. least > greatest if there is none.
func extremes(in rowset.RowSet, values numbers) (least, greatest float64) {
	least, greatest = math.Inf(1), math.Inf(-1)
	for i := range in.Len() {
		if v, ok := values.get(int(in.Row(i))); ok {
			least, greatest = min(least, v), max(greatest, v)
		}
	}
	return least, greatest
}

func minMax(in rowset.RowSet, values numbers, desc bool, out *scores) {
	least, greatest := extremes(in, values)
	half := 1.0
	if math.IsInf(greatest-least, 0) {
		half = 0.5 // so that no difference is beyond the range of doubles
	}
	length := float64(greatest*half) - float64(least*half)
	for i := range in.Len() {
		row := in.Row(i)
		v, ok := values.get(int(row))
		switch {
		case !ok:
		case least == greatest:
			out.set(row, 1)
		case desc:
			out.set(row, (float64(v*half)-float64(least*half))/length)
		default:
			out.set(row, (float64(greatest*half)-float64(v*half))/length)
		}
	}
}

func zScore(in rowset.RowSet, values numbers, desc bool, out *scores) {
	least, greatest := extremes(in, values)
	// A power of two brings the numbers near 1, exactly, so that no square is beyond the range of doubles.
	_, exponent := math.Frexp(max(math.Abs(least), math.Abs(greatest)))
	scale := math.Ldexp(1, -max(-1000, min(exponent, 1000)))
	sum, n := 0.0, 0.0
	for i := range in.Len() {
		if v, ok := values.get(int(in.Row(i))); ok {
			sum += float64(v * scale)
			n++
		}
	}
	mean, squares := sum/n, 0.0
	for i := range in.Len() {
		if v, ok := values.get(int(in.Row(i))); ok {
			d := float64(v*scale) - mean
			squares += float64(d * d)
		}
	}
	deviation := math.Sqrt(squares / n)
	if !desc {
		deviation = -deviation
	}
	for i := range in.Len() {
		row := in.Row(i)
		switch v, ok := values.get(int(row)); {
		case !ok:
		case least == greatest: // the mean may be off by a rounding
			out.set(row, 0)
		default:
			out.set(row, (float64(v*scale)-mean)/deviation)
		}
	}
}

// rank writes score(rank) for each row.
func rank(c *task.Ctx, in rowset.RowSet, by registry.KeyID, desc bool, out *scores, score func(rank int) float64) error {
	if !in.Batch.Has(by) {
		return nil // all are null
	}
	sorted, err := rowset.Sort(c, c.Memory, in, by, desc)
	if err != nil {
		return err
	}
	values, value := numbersOf(in.Batch, by), 0.0
	for i := range sorted.Len() {
		row := sorted.Row(i)
		if !values.valid.Get(int(row)) {
			break // nulls come last
		}
		if i == 0 || !values.equal(row, sorted.Row(i-1)) {
			value = score(i + 1)
		}
		out.set(row, value)
	}
	return nil
}

// explainNormalize says from which number, among which, the result of a row comes.
func explainNormalize(c *task.Ctx, _ rowset.RowSet) task.Account {
	p, in := &c.Node.Params, c.Inputs[0]
	by, method := p.Key("by"), p.String("method")
	values := numbersOf(in.Batch, by.ID)
	ranks, err := newScores(c, in.Batch)
	ranked := method == "rank" || method == "reciprocal_rank"
	if ranked && err == nil {
		err = rank(c, in, by.ID, p.String("order") == "desc", ranks, func(rank int) float64 { return float64(rank) })
	}
	if err != nil {
		return task.Account{}
	}
	least, greatest := extremes(in, values)
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		why := task.Reason{Kind: task.Normalized, Column: p.Key("out_key").ID}
		row := int(in.Row(at.Pos))
		v, ok := values.get(row)
		if !ok {
			why.Text = by.Name + " is null"
			return why
		}
		why.Text = fmt.Sprintf("%s of %s among %d rows", method, by.Name, in.Len())
		why.Values = []task.Value{{Name: by.Name, Value: v}}
		if ranked {
			why.Rank, why.Of = int(ranks.values[row]), in.Len()
		} else {
			why.Values = append(why.Values, task.Value{Name: "least", Value: least}, task.Value{Name: "greatest", Value: greatest})
		}
		return why
	}}
}
