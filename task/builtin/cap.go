package builtin

import (
	"fmt"
	"math"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// capRows keeps the first rows of each value of a key.
func capRows() task.Spec {
	return task.Spec{
		Op:  "core::cap",
		Doc: "Keeps at most so many rows of the same key, such as an author.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: groupTypes}, Doc: "The column whose values are counted, such as the author."},
			{Name: "max", Type: plan.Int, Required: true, PerRequest: true, Source: between(1, math.MaxInt32), Doc: "How many rows with the same value stay at most."},
		},
		Strict: true,
		Inputs: 1,
		IDs:    plan.MovesTextIDs,
		Output: task.Subset,
		Reads:  task.KeyParams("by"),
		Reference: task.Reference{
			Text: "The first `max` rows of each value of `by` stay, and the others are gone. [diversify](diversify.md) moves rows apart and drops none; " +
				"[frequencyCap](frequency_cap.md) counts what a user has seen before.",
			Reads:      "The column of `by`.",
			Order:      "The rows that stay keep their order.",
			Nulls:      "A row whose `by` is null always stays. So do all rows if they have no such column.",
			Empty:      "No rows give no rows.",
			Duplicates: "Each row counts, also those with the same id.",
			Failures:   "The node does not fail.",
			Example: task.Example{
				Plan: `ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 8 }).cap({ by: Key.country, max: 2 })`,
			},
		},
		Inline:  true,
		Cheap:   true,
		Forgets: true,
		Run:     runCap,
		Explain: explainCap,
	}
}

func runCap(c *task.Ctx) (rowset.RowSet, error) {
	in := c.Inputs[0]
	most, err := c.Int("max")
	if err != nil {
		return rowset.RowSet{}, err
	}
	of, n, err := rowset.Groups(c, c.Memory, in, c.Node.Params.Key("by").ID)
	if err != nil {
		return rowset.RowSet{}, err
	}
	counts, keep := c.Memory.Rows(n), rowset.NewBitmap(in.Len())
	clear(counts)
	for pos, group := range of {
		if counts[group]++; int64(counts[group]) <= most {
			keep.Set(pos)
		}
	}
	return rowset.Where(c.Memory, in, keep), nil
}

// explainCap names the rows that stay instead of a dropped one.
func explainCap(c *task.Ctx, out rowset.RowSet) task.Account {
	by := c.Node.Params.Key("by")
	most, err := c.Int("max")
	if err != nil {
		return task.Account{}
	}
	of, _, err := rowset.Groups(c, c.Memory, c.Inputs[0], by.ID)
	if err != nil {
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		if at.Side == task.InResult {
			return task.Reason{}
		}
		in := c.Inputs[0]
		why := task.Reason{Kind: task.Capped, By: by.ID, Text: fmt.Sprintf("at most %d rows of the same %s stay", most, by.Name)}
		for pos, group := range of {
			if group == of[at.Pos] && len(why.Instead) < int(most) {
				why.Instead = append(why.Instead, in.ID(pos))
			}
		}
		return why
	}}
}
