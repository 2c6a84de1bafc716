package builtin

import (
	"math"
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// measures are the values of the parameter by, by their rowset.Measure.
var measures = []string{"dot", "cosine", "l2"}

// nearest keeps the rows whose vectors are nearest to a vector.
func nearest() task.Spec {
	vector := plan.SourceRule{KeyTypes: []registry.Type{registry.Vector}}
	return task.Spec{
		Op:  "core::nearest",
		Doc: "Keeps the rows whose vectors are nearest to a vector, in order.",
		Params: []plan.ParamSchema{
			{Name: "to", Type: plan.NodeRef, Doc: "The node with the vector to be near to: that of its first row."},
			{Name: "context", Type: plan.String, Doc: "The name of a vector in the request's context, in place of `to`."},
			{Name: "vector", Type: plan.Key, Required: true, Source: vector, Doc: "The column with the vectors of the rows."},
			{Name: "to_vector", Type: plan.Key, Source: vector, Doc: "The column of `to`, with vectors as long. Without it the key of `vector`."},
			{Name: "by", Type: plan.Enum, StrValue: measures[rowset.ByDot], Source: plan.SourceRule{OneOf: measures},
				Doc: "What says how near two vectors are: their product, the cosine of their angle, or their distance."},
			outKeyParam("The column for this number."),
			{Name: "count", Type: plan.Int, Required: true, PerRequest: true, Source: between(1, math.MaxInt32), Doc: "How many rows stay at most."},
		},
		Strict:  true,
		Inputs:  1,
		IDs:     plan.MovesTextIDs,
		Output:  task.Pick,
		RowsMax: atMost("count"),
		Reads:   task.KeyParams("vector"),
		RefReads: func(n *plan.Node, _ *registry.Registry) []registry.KeyID {
			if n.Prepared.(*nearestNode).context != nil {
				return nil
			}
			return []registry.KeyID{toVector(n).ID}
		},
		Writes:  task.KeyParams("out_key"),
		Prepare: prepareNearest,
		Reference: task.Reference{
			Text: "`nearest` computes `dot`, `cosine` or `l2` of each row's vector and one vector, as [expressions](../expressions.md#vectors) do, and keeps the rows with the " +
				"highest (`dot`, `cosine`) or lowest (`l2`) numbers. The search is exact: it looks at each row. The vector may be the user's, from `lookup`, or the mean of the items that the " +
				"user has seen, from `aggregate`.",
			Reads:  "The column of `vector`, and that of `to_vector` in `to`.",
			Writes: "The column of `out_key`.",
			Order:  "The nearest row comes first. Rows that are equally near keep the order of the input.",
			Nulls: "A row without a vector is dropped. So is a row whose number is not finite: the cosine of a zero vector. If `to` has no rows, or no vector in the " +
				"first one, or if the request gives no vector, no row stays.",
			Empty:      "No rows give no rows.",
			Duplicates: "Each row counts, also those with the same id.",
			Failures:   "The node does not fail.",
			Example: task.Example{
				Plan: "const seen = ctx.candidates({ endpoint: redis, key: \"seen:{user}\", limit: 10 })\n" +
					"  .lookup({ endpoint: redis, key: \"item:{id}\", fields: [Key.embedding] });\n" +
					"const taste = seen\n" +
					"  .aggregate({ values: [{ method: \"mean\", column: Key.embedding, outKey: Key.taste }], keep: \"first\" });\n" +
					"return ctx.candidates({ endpoint: redis, key: \"items\" })\n" +
					"  .lookup({ endpoint: redis, key: \"item:{id}\", fields: [Key.embedding] })\n" +
					"  .nearest({ to: taste, vector: Key.embedding, toVector: Key.taste, by: \"cosine\", outKey: Key.score, count: 2 });",
				Redis: []string{"RPUSH seen:1 1 2", "RPUSH items 3 4 5", "HSET item:1 embedding [1,0,0,0]", "HSET item:2 embedding [0.5,0.5,0,0]",
					"HSET item:3 embedding [0,1,0,0]", "HSET item:4 embedding [2,1,0,0]", "HSET item:5 embedding [0,0,0,1]"},
			},
		},
		Inline:  true,
		Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			count, err := c.Int("count")
			if err != nil {
				return rowset.RowSet{}, err
			}
			return rankNearest(c, int(count))
		},
		Explain: explainNearest,
	}
}

// nearestNode is a prepared node. Immutable; any goroutine.
type nearestNode struct {
	context *registry.Param // nil: the vector comes from a node
}

func prepareNearest(n *plan.Node, reg *registry.Registry) (any, error) {
	of, to, name := n.Params.Key("vector"), toVector(n), n.Params.String("context")
	switch {
	case n.Params.Given("to") == (name != ""):
		return nil, plan.ParamErrorf("to", "give either to, a node, or context, the name of a vector of the request")
	case name == "" && of.Dims != to.Dims:
		return nil, plan.ParamErrorf("to_vector", "is %s of type %s, and vector is %s of type %s", to.Name, to.TypeName(), of.Name, of.TypeName())
	case name == "":
		return &nearestNode{}, nil
	case n.Params.Given("to_vector"):
		return nil, plan.ParamErrorf("to_vector", "is a column of to, which is not given")
	}
	p, ok := reg.ParamByName(name)
	switch {
	case !ok:
		return nil, plan.ParamErrorf("context", "there is no parameter %s", task.Quote(name))
	case p.Type != registry.Vector || p.Dims != of.Dims:
		return nil, plan.ParamErrorf("context", "is %s of type %s, and vector is %s of type %s", p.Name, p.TypeName(), of.Name, of.TypeName())
	}
	return &nearestNode{context: p}, nil
}

// probe returns the vector that the rows are compared with.
func probe(c *task.Ctx) ([]float32, bool) {
	if p := c.Node.Prepared.(*nearestNode).context; p != nil {
		return c.Params.Vector(p.ID)
	}
	return firstVector(c.Refs[0], toVector(c.Node).ID)
}

// toVector returns the key of that vector.
func toVector(n *plan.Node) *registry.Key {
	if key := n.Params.Key("to_vector"); key != nil {
		return key
	}
	return n.Params.Key("vector")
}

// rankNearest returns the nearest rows, at most count of them.
func rankNearest(c *task.Ctx, count int) (rowset.RowSet, error) {
	p, in, by := &c.Node.Params, c.Inputs[0], rowset.Measure(slices.Index(measures, c.Node.Params.String("by")))
	out := p.Key("out_key").ID
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // the column is as long as the batch
		return rowset.RowSet{}, err
	}
	values, valid := c.Memory.Floats(in.N), rowset.NewBitmap(in.N)
	clear(values)
	of := in.Batch.Vector(p.Key("vector").ID)
	if to, ok := probe(c); ok && of != nil && in.N > 0 {
		var err error
		if values, valid, err = of.Measure(c, c.Memory, in, to, by); err != nil {
			return rowset.RowSet{}, err
		}
	}
	measured := in.N
	if valid != nil {
		measured = valid.Count(in.N)
	}
	scored := rowset.Scatter(c.Memory, in, &rowset.FloatColumn{Key: out, Values: values, Valid: valid})
	return rowset.TopUntil(c, c.Memory, scored, out, by != rowset.ByL2, min(count, measured)) // nulls come last
}

// firstVector returns the vector of the first row.
func firstVector(rows rowset.RowSet, key registry.KeyID) ([]float32, bool) {
	if rows.Len() == 0 {
		return nil, false
	}
	c := rows.Batch.Vector(key)
	if c == nil {
		return nil, false
	}
	return c.Value(int(rows.Row(0)))
}

// explainNearest says how near rows are. It ranks all of them, so that each has a rank.
func explainNearest(c *task.Ctx, out rowset.RowSet) task.Account {
	key := c.Node.Params.Key("out_key").ID
	asked, err := c.Int("count")
	if err != nil {
		return task.Account{}
	}
	all, err := rankNearest(c, c.Inputs[0].Len())
	if err != nil {
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		why := task.Reason{Kind: task.Cut, Column: key, Of: all.Len(), Limit: int(asked)}
		if at.Side == task.InResult {
			why.Kind = task.Sorted
		}
		pos := positionIn(all, c.SideRows(out, at.Side).Row(at.Pos))
		if pos < 0 {
			why.Text = "it has no vector, or there is none to be near to"
			return why
		}
		rankedBy(&why, all, pos, key, int(asked))
		if why.Lacks != nil && c.Node.Params.String("by") == measures[rowset.ByL2] {
			*why.Lacks = -*why.Lacks
		}
		return why
	}}
}
