package builtin

import (
	"slices"
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// joinColumns is the most columns that one join takes from its right side.
const joinColumns = 256

// join adds columns of another node to the rows, or keeps the rows that the other node has or lacks.
func join() task.Spec {
	return task.Spec{
		Op:  "core::join",
		Doc: "Adds columns of another node by id or key, or keeps the rows that have a match there, or that have none.",
		Reference: task.Reference{
			Text: "`join` looks up each row of the input, the left side, among the rows of the node `right`. Two rows match if the value of `on` equals the value of `right_on`. " +
				"Both are the id by default.\n\n" +
				"- `left` keeps all rows. A row with a match gets the `columns` of the match, another row gets nulls.\n" +
				"- `inner` keeps the rows with a match, and adds the `columns`. Without `columns` it only selects.\n" +
				"- `anti` keeps the rows without a match. It takes no `columns`.\n\n" +
				"A join never makes more rows than its left side has: if several rows of `right` match, the first one counts.",
			Reads:  "The column of `on`; of the node `right` the columns of `right_on` and `columns`.",
			Writes: "The `columns`. One that the left side has, too, is replaced in all rows, also by the null of a row without a match.",
			Order:  "The rows keep the order of the left side. Of several matches the first in the order of `right` counts.",
			Nulls: "A null equals nothing, not even a null. A column that a side lacks counts as null in all its rows. " +
				"`left` writes nulls also under keys that are not nullable, as concat does. The floats 0.0 and -0.0 are equal.",
			Empty:      "Without rows on the left the result has none. Without rows in `right`, `left` and `anti` keep all rows, and `inner` keeps none.",
			Duplicates: "Rows of the left side with the same id or key all stay, with the same match. Of such rows in `right` the first counts.",
			Failures:   "The node does not fail. A plan does not load if a left join has no `columns`, since it would change nothing, or an anti join has some.",
			Example: task.Example{
				Plan: "const me = ctx.viewer({ endpoint: redis });\n" +
					"const scored = me.recommendation({ endpoint: redis, fanout: 100 }).vm({ outKey: Key.score, expr: Key.id * 2 });\n" +
					"return me.follow({ endpoint: redis, fanout: 5 }).join({ right: scored, columns: [Key.score] });",
			},
		},
		Params: []plan.ParamSchema{
			{Name: "right", Type: plan.NodeRef, Required: true, Doc: "The node whose rows are looked up."},
			{Name: "how", Type: plan.Enum, StrValue: "left", Source: plan.SourceRule{OneOf: []string{"left", "inner", "anti"}},
				Doc: "Which rows stay."},
			{Name: "on", Type: plan.Key, Source: plan.SourceRule{KeyTypes: keyTypes},
				Doc: "The column of the input by which rows match. Without it the id."},
			{Name: "right_on", Type: plan.Key, Source: plan.SourceRule{KeyTypes: keyTypes},
				Doc: "The column of `right` by which rows match, of the type of `on`. Without it the key of `on`."},
			{Name: "columns", Type: plan.Key, List: true, MaxItems: joinColumns,
				Source: plan.SourceRule{KeyTypes: append([]registry.Type{registry.StringSet, registry.Vector}, keyTypes...)},
				Doc:    "The columns of `right` that the rows get."},
		},
		Inputs: 1,
		IDs:    plan.ReadsTextIDs,
		Output: task.Pick,
		Reads: func(n *plan.Node, _ *registry.Registry) []registry.KeyID {
			return []registry.KeyID{n.Prepared.(*joinNode).on}
		},
		RefReads: func(n *plan.Node, _ *registry.Registry) []registry.KeyID {
			j := n.Prepared.(*joinNode)
			keys := []registry.KeyID{j.rightOn}
			for _, column := range j.columns {
				keys = append(keys, column.ID)
			}
			return keys
		},
		Writes:    task.KeyParams("columns"),
		KeepsRows: func(n *plan.Node) bool { return n.Prepared.(*joinNode).how == "left" },
		Strict:    true,
		Cheap:     true,
		Forgets:   true,
		Prepare:   prepareJoin,
		Run:       runJoin,
		Explain:   explainJoin,
	}
}

// joinNode is a join's prepared node. Immutable; any goroutine.
type joinNode struct {
	how         string
	on, rightOn registry.KeyID
	columns     []*registry.Key
}

func prepareJoin(n *plan.Node, reg *registry.Registry) (any, error) {
	id, ok := reg.Key(registry.IDKey)
	if !ok {
		id = &registry.Key{ID: registry.IDKey, Type: registry.Int}
	}
	on, rightOn := n.Params.Key("on"), n.Params.Key("right_on")
	if on == nil {
		on = id
	}
	if rightOn == nil {
		rightOn = on
	}
	if on.Type != rightOn.Type {
		return nil, plan.ParamErrorf("right_on", "is %s of type %s, and on is %s of type %s", rightOn.Name, rightOn.Type, on.Name, on.Type)
	}
	j := &joinNode{how: n.Params.String("how"), on: on.ID, rightOn: rightOn.ID, columns: n.Params.Keys("columns")}
	for i, column := range j.columns {
		switch before := slices.Index(j.columns, column); {
		case column.ID == registry.IDKey:
			return nil, plan.ParamErrorf(plan.ItemPath("columns", i), "is the id, which is not a column")
		case before < i:
			return nil, plan.ParamErrorf(plan.ItemPath("columns", i), "is %s, and so is columns[%d]", column.Name, before)
		}
	}
	switch {
	case j.how == "left" && len(j.columns) == 0:
		return nil, plan.ParamErrorf("columns", "is missing: without columns a left join changes nothing")
	case j.how == "anti" && len(j.columns) > 0:
		return nil, plan.ParamErrorf("columns", "has no effect with how \"anti\", whose rows have no match")
	}
	return j, nil
}

func runJoin(c *task.Ctx) (rowset.RowSet, error) {
	j, in, right := c.Node.Prepared.(*joinNode), c.Inputs[0], c.Refs[0]
	rowOf, err := j.match(c)
	if err != nil {
		return rowset.RowSet{}, err
	}
	out := in
	if len(j.columns) > 0 {
		if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // the columns are as long as the batch
			return rowset.RowSet{}, err
		}
		from := rowset.Project(right.Batch, j.columns, true)
		out.Batch = rowset.With(in.Batch, rowset.Gather(c.Memory, from, byBatchRow(c.Memory, in, rowOf)).Columns()...)
	}
	if j.how == "left" {
		return out, nil
	}
	keep := rowset.NewBitmap(in.Len())
	for pos, row := range rowOf {
		if row >= 0 == (j.how == "inner") {
			keep.Set(pos)
		}
	}
	return rowset.Where(c.Memory, out, keep), nil
}

// match returns, by position, the batch row of the right side that matches each row of the left side, or -1.
func (j *joinNode) match(c *task.Ctx) ([]int32, error) {
	return rowset.Match(c, c.Memory, rowset.Side{Rows: c.Inputs[0], Key: j.on}, rowset.Side{Rows: c.Refs[0], Key: j.rightOn})
}

// explainJoin says which row of the right side matched a row, or that none did.
func explainJoin(c *task.Ctx, out rowset.RowSet) task.Account {
	j, in, right := c.Node.Prepared.(*joinNode), c.Inputs[0], c.Refs[0]
	rowOf, err := j.match(c)
	if err != nil {
		return task.Account{}
	}
	matches := byBatchRow(c.Memory, in, rowOf)
	return task.Account{
		From: func(pos int) []task.RowAt {
			row := out.Row(pos)
			from := []task.RowAt{{Pos: positionIn(in, row)}}
			if len(j.columns) > 0 && matches[row] >= 0 {
				from = append(from, task.RowAt{Side: 1, Pos: positionIn(right, matches[row])})
			}
			return from
		},
		Reason: func(at task.RowAt) task.Reason {
			if at.Side == 1 {
				return task.Reason{Kind: task.Unmatched, Text: "only the right side has it, and a join brings no rows of that side"}
			}
			why := task.Reason{Kind: task.Unmatched, By: j.on}
			switch match := matches[c.SideRows(out, at.Side).Row(at.Pos)]; {
			case at.Side == task.InResult && match < 0:
				return task.Reason{}
			case at.Side == task.InResult:
				why.Kind, why.Text = task.Joined, "it got its columns from row "+strconv.Itoa(positionIn(right, match)+1)+" of the right side"
			case match >= 0:
				why.Text = "the right side has it"
			default:
				why.Text = "the right side does not have it"
			}
			return why
		},
	}
}
