package builtin

import (
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// keyTypes are the types by which rows can be told apart.
var keyTypes = []registry.Type{registry.Int, registry.Float, registry.String, registry.Bool}

// dedupe keeps one row of each id or key.
func dedupe() task.Spec {
	return task.Spec{
		Op:  "core::dedupe",
		Doc: "Keeps one row of each id, or of each value of a key.",
		Reference: task.Reference{
			Text: "`dedupe` compares rows by their id, or by the column of `by`, and keeps one row of each value. `keep` says which one: the first, or the one with " +
				"the greatest (`max`) or least (`min`) value of `column`. The other rows are gone.\n\n" +
				"`sources` names a set column, mostly the `source` of [union](union.md). The row that stays then has the members of the sets of all rows with its value: an id " +
				"that two sources gave names both.",
			Reads:  "The columns of `by`, `column` and `sources`, if given.",
			Writes: "The column of `sources`, if given.",
			Order:  "The rows that stay keep their order and their own places: with `max` a row does not move to the place of the first row of its value. Among equal values of `column` the first row stays.",
			Nulls: "A row whose `by` is null is never a duplicate and always stays. A null in `column` loses against any value; if all are null, the first row stays. " +
				"A null set adds nothing; if all sets are null, the result's is null. A column that the input lacks counts as null in all rows. The floats 0.0 and -0.0 are equal.",
			Empty:      "The result of an input without rows has none.",
			Duplicates: "Removing them is the purpose of the task. With `by`, rows with the same id may stay, if their values differ.",
			Failures:   "The node does not fail.",
			Example: task.Example{
				Plan: "const me = ctx.viewer({ endpoint: redis });\n" +
					"return me.follow({ endpoint: redis, fanout: 3 }).union({\n" +
					"  with: [me.recommendation({ endpoint: redis, fanout: 3 }), me.follow({ endpoint: redis, fanout: 1 })],\n" +
					"  source: Key.source, names: [\"follow\", \"recommended\", \"closest\"],\n" +
					"}).dedupe({ sources: Key.source });",
			},
		},
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Key, Source: plan.SourceRule{KeyTypes: keyTypes},
				Doc: "The column that makes rows duplicates. Without it the id does."},
			{Name: "keep", Type: plan.Enum, StrValue: "first", Source: plan.SourceRule{OneOf: []string{"first", "max", "min"}},
				Doc: "Which of the rows with one value stays."},
			{Name: "column", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Int, registry.Float}},
				Doc: "The column that `max` and `min` compare. They need it; `first` takes none."},
			{Name: "sources", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.StringSet}, Writes: true},
				Doc: "The set column whose sets the row that stays collects."},
		},
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.Pick,
		Reads:     task.KeyParams("by", "column", "sources"),
		Writes:    task.KeyParams("sources"),
		ChoosesBy: task.KeyParams("by"),
		Strict:    true,
		Cheap:     true,
		Forgets:   true,
		Prepare:   prepareDedupe,
		Run:       runDedupe,
		Explain:   explainDedupe,
	}
}

func prepareDedupe(n *plan.Node, _ *registry.Registry) (any, error) {
	keep := n.Params.String("keep")
	d := &rowset.Distinction{By: registry.IDKey, Keep: map[string]rowset.Keep{"max": rowset.KeepMax, "min": rowset.KeepMin}[keep]}
	column := n.Params.Key("column")
	switch {
	case keep == "first" && column != nil:
		return nil, plan.ParamErrorf("column", "has no effect with keep \"first\"")
	case keep != "first" && column == nil:
		return nil, plan.ParamErrorf("column", "is missing: keep %q compares a column", keep)
	case column != nil:
		d.Column = column.ID
	}
	if by := n.Params.Key("by"); by != nil {
		d.By = by.ID
	}
	if sets := n.Params.Key("sources"); sets != nil {
		d.Sets = sets.ID
	}
	return d, nil
}

func runDedupe(c *task.Ctx) (rowset.RowSet, error) {
	d, in := c.Node.Prepared.(*rowset.Distinction), c.Inputs[0]
	if d.Sets != 0 && in.Batch.Set(d.Sets) != nil {
		if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // the column is as long as the batch
			return rowset.RowSet{}, err
		}
	}
	return rowset.Dedupe(c, c.Memory, in, *d)
}

// explainDedupe names the row that was kept instead of a duplicate. For a kept row it says how many duplicates it
// had, and from which rows it has its set.
func explainDedupe(c *task.Ctx, out rowset.RowSet) task.Account {
	d, in := c.Node.Prepared.(*rowset.Distinction), c.Inputs[0]
	of, _, err := rowset.Groups(c, c.Memory, in, d.By)
	if err != nil {
		return task.Account{}
	}
	groups := byBatchRow(c.Memory, in, of)
	// same returns the positions of the rows with the value of a row.
	same := func(rows rowset.RowSet, row int32) (at []int) {
		for pos := range rows.Len() {
			if groups[rows.Row(pos)] == groups[row] {
				at = append(at, pos)
			}
		}
		return at
	}
	return task.Account{
		From: func(pos int) []task.RowAt {
			own := positionIn(in, out.Row(pos))
			from := []task.RowAt{{Pos: own}}
			if d.Sets == 0 {
				return from
			}
			for _, at := range same(in, out.Row(pos)) {
				if at != own {
					from = append(from, task.RowAt{Pos: at})
				}
			}
			return from
		},
		Reason: func(at task.RowAt) task.Reason {
			row := c.SideRows(out, at.Side).Row(at.Pos)
			if at.Side == task.InResult {
				if n := len(same(in, row)); n > 1 {
					return task.Reason{Kind: task.Merged, Text: strconv.Itoa(n) + " rows had this value", By: d.By}
				}
				return task.Reason{}
			}
			why := task.Reason{Kind: task.Deduplicated, By: d.By}
			for _, kept := range same(out, row) {
				why.Instead = append(why.Instead, out.ID(kept))
			}
			return why
		},
	}
}
