package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The most keys and values of an aggregate.
const aggregateKeysMax, aggregateValuesMax = 8, 64

// aggregations are the values of method.
var aggregations = []string{rowset.Count: "count", rowset.Sum: "sum", rowset.Mean: "mean", rowset.Min: "min", rowset.Max: "max"}

// aggregate writes values computed over each group of rows.
func aggregate() task.Spec {
	return task.Spec{
		Op:  "core::aggregate",
		Doc: "Counts, adds up or averages the values of rows that belong together, such as those of an author.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Key, List: true, MinItems: 1, MaxItems: aggregateKeysMax, Source: plan.SourceRule{KeyTypes: groupTypes},
				Doc: "The columns whose values make a group together. Without it all rows are one group."},
			{Name: "values", Type: plan.Object, List: true, Required: true, MinItems: 1, MaxItems: aggregateValuesMax, Doc: "What to compute.", Fields: []plan.ParamSchema{
				{Name: "method", Type: plan.Enum, Required: true, Source: plan.SourceRule{OneOf: aggregations}, Doc: "The computation; see above."},
				{Name: "column", Type: plan.Key, Source: plan.SourceRule{KeyTypes: append(slices.Clone(groupTypes), registry.Float, registry.Vector)},
					Doc: "The column with the values: of numbers, for `mean` of vectors, too, or for `count` of any of these types but vectors. `count` without it counts rows."},
				{Name: "out_key", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: append(slices.Clone(numberTypes), registry.Vector), Writes: true},
					Doc: "The column for the result: a vector for the `mean` of vectors of its length, int for a `count`, and for `sum`, `min` and `max` of ints, else float. Float takes all of them."},
			}},
			{Name: "keep", Type: plan.Enum, StrValue: "all", Source: plan.SourceRule{OneOf: []string{"all", "first"}},
				Doc: "The rows of the result: `all`, or the `first` of each group."},
		},
		Strict:    true,
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.Pick,
		KeepsRows: func(n *plan.Node) bool { return n.Params.String("keep") == "all" },
		Reads:     task.KeyParams("by", "values.column"),
		Writes:    task.KeyParams("values.out_key"),
		Across:    true,
		Prepare:   prepareAggregate,
		Reference: task.Reference{
			Text: "Rows with the same values in all columns of `by` are a group. Each of `values` computes one number from the rows of a group, and each row gets that of its group. " +
				"With `keep: \"first\"` the result has one row for each group: its first one, with the group's numbers.\n\n" +
				"| `method` | result |\n|---|---|\n" +
				"| `count` | the number of rows; with `column` the number of rows that have a value there |\n" +
				"| `sum` | the sum of `column` |\n" +
				"| `mean` | the arithmetic mean of `column`: the sum divided by the count. Of vectors it is their center, number by number: of those of the last ten items seen a taste |\n" +
				"| `min`, `max` | the least and the greatest value of `column` |\n\n" +
				"Results have the unit of their column. In an int column they are exact, for any order of the rows. In a float column integers become doubles first, and a sum starts with 0 and " +
				"adds the values in the order of the rows, so that it has the same bits on every machine. " +
				"All values are computed from the columns of the input, also if `out_key` replaces one of them.",
			Reads:  "The columns of `by` and of each `column`.",
			Writes: "The columns of each `out_key`.",
			Order:  "The rows keep their order; groups stand where their first rows do. Of `min` and `max` the floats 0.0 and -0.0 are equal, and the first one stays.",
			Nulls: "A null counts for nothing: the `count` of rows without the `count` of the column is the number of its nulls. Without any value the count is 0, and the other results are null. " +
				"So is a sum beyond the range of its type, and the mean of such a sum. A row with a null in `by` is a group of its own. A column that the input lacks counts as null in all rows.",
			Empty:      "No rows give no rows, also without `by`.",
			Duplicates: "Each row counts, also those with the same id. `by: [Key.id]` makes them a group.",
			Failures:   "A null result fails the node if its `out_key` is not nullable.",
			Example: task.Example{
				Plan: "return ctx.candidates({ endpoint: redis, key: \"inbox:{user}\" })\n" +
					"  .lookup({ endpoint: redis, key: \"article:{id}\", fields: [Key.author, Key.likes] })\n" +
					"  .aggregate({ by: [Key.author], values: [\n" +
					"    { method: \"count\", outKey: Key.author_items },\n" +
					"    { method: \"mean\", column: Key.likes, outKey: Key.author_likes } ] });",
				Redis: []string{"RPUSH inbox:1 11 12 13 14", "HSET article:11 author ann likes 12", "HSET article:12 author bob likes 7", "HSET article:13 author ann likes 40",
					"HSET article:14 author ann"},
			},
		},
		Inline:  true,
		Forgets: true,
		Run:     runAggregate,
		Explain: explainAggregate,
	}
}

// aggregateNode is an aggregate's prepared node. Immutable; any goroutine.
type aggregateNode struct {
	by     []registry.KeyID
	names  string // of the columns of by, for people
	values []aggregateValue
}

// aggregateValue is one of its values. Immutable; any goroutine.
type aggregateValue struct {
	method rowset.Aggregation
	column registry.KeyID // 0: the rows themselves
	out    *registry.Key
}

func prepareAggregate(n *plan.Node, _ *registry.Registry) (any, error) {
	a := &aggregateNode{}
	var names []string
	for i, key := range n.Params.Keys("by") {
		if slices.Contains(a.by, key.ID) {
			return nil, plan.ParamErrorf(plan.ItemPath("by", i), "key %s is there twice", key.Name)
		}
		a.by, names = append(a.by, key.ID), append(names, key.Name)
	}
	a.names = strings.Join(names, " and ")
	for i, p := range n.Params.Objects("values") {
		method, column := p.String("method"), p.Key("column")
		v := aggregateValue{method: rowset.Aggregation(slices.Index(aggregations, method)), out: p.Key("out_key")}
		at := func(name string) string { return plan.ItemPath("values", i) + "." + name }
		switch {
		case slices.ContainsFunc(a.values, func(other aggregateValue) bool { return other.out == v.out }):
			return nil, plan.ParamErrorf(at("out_key"), "key %s is there twice", v.out.Name)
		case v.out.Type == registry.Vector && (column == nil || v.method != rowset.Mean || column.Type != registry.Vector || column.Dims != v.out.Dims):
			return nil, plan.ParamErrorf(at("out_key"), "is %s of type %s, which is for the mean of such vectors alone", v.out.Name, v.out.TypeName())
		case column != nil && column.Type == registry.Vector && v.out.Type != registry.Vector:
			return nil, plan.ParamErrorf(at("column"), "is %s of type %s, which has a mean of that type alone", column.Name, column.TypeName())
		case v.method == rowset.Count, v.out.Type == registry.Vector:
		case column == nil:
			return nil, plan.ParamErrorf(at("column"), "is missing: method %q needs it", method)
		case !slices.Contains(numberTypes, column.Type):
			return nil, plan.ParamErrorf(at("column"), "is %s of type %s, and method %q is for int or float", column.Name, column.Type, method)
		case v.out.Type == registry.Int && (v.method == rowset.Mean || column.Type == registry.Float):
			return nil, plan.ParamErrorf(at("out_key"), "is %s of type int, and the %s of %s (%s) is a float", v.out.Name, method, column.Name, column.Type)
		}
		if column != nil {
			v.column = column.ID
		}
		a.values = append(a.values, v)
	}
	return a, nil
}

func runAggregate(c *task.Ctx) (rowset.RowSet, error) {
	a, in := c.Node.Prepared.(*aggregateNode), c.Inputs[0]
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // a column is as long as the batch
		return rowset.RowSet{}, err
	}
	of, n, err := rowset.Groups(c, c.Memory, in, a.by...)
	if err != nil {
		return rowset.RowSet{}, err
	}
	columns := make([]rowset.Column, len(a.values))
	for i, v := range a.values {
		column, nulls, err := rowset.Aggregate(c, c.Memory, in, of, n, v.method, v.column, v.out)
		if err != nil {
			return rowset.RowSet{}, err
		}
		if columns[i] = column; nulls > 0 && !v.out.Nullable {
			return rowset.RowSet{}, task.Invalidf("values[%d].out_key: the result is null for %d groups, and %s is not nullable", i, nulls, v.out.Name)
		}
	}
	if c.Node.Params.String("keep") == "all" {
		return rowset.ScatterGroups(c.Memory, in, of, n, columns...), nil
	}
	return rowset.Scatter(c.Memory, firsts(c.Memory, in, of, n), columns...), nil
}

// firsts returns the first row of each of n groups.
func firsts(m *rowset.Memory, in rowset.RowSet, of []int32, n int) rowset.RowSet {
	rows := m.Rows(n)[:0]
	for pos, group := range of {
		if int(group) == len(rows) {
			rows = append(rows, in.Row(pos))
		}
	}
	return rowset.RowSet{Batch: in.Batch, Rows: rows, N: n}
}

// explainAggregate says which rows were a group and what the result was. For a dropped row it names the row that
// represents its group.
func explainAggregate(c *task.Ctx, out rowset.RowSet) task.Account {
	a, in := c.Node.Prepared.(*aggregateNode), c.Inputs[0]
	of, _, err := rowset.Groups(c, c.Memory, in, a.by...)
	if err != nil {
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		row := c.SideRows(out, at.Side).Row(at.Pos)
		own := of[positionIn(in, row)]
		first, rows := slices.Index(of, own), 0
		for _, group := range of {
			if group == own {
				rows++
			}
		}
		if at.Side != task.InResult {
			why := task.Reason{Kind: task.Deduplicated, Text: "the first row of its group stays", Instead: []int64{in.ID(first)}}
			if len(a.by) == 1 {
				why.By = a.by[0]
			}
			return why
		}
		why := task.Reason{Kind: task.Computed, Column: a.values[0].out.ID, Text: fmt.Sprintf("over all %d rows", rows)}
		if a.by != nil {
			why.Text = fmt.Sprintf("over %d rows of the same %s", rows, a.names)
		}
		for _, v := range a.values {
			why.Values = append(why.Values, task.Value{Name: v.out.Name, Value: out.Batch.Column(v.out.ID).Any(int(row))})
		}
		return why
	}}
}
