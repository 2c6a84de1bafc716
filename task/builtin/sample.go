package builtin

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// sample draws rows at random, by weights.
func sample() task.Spec {
	return task.Spec{
		Op:  "core::sample",
		Doc: "Draws rows at random, by weights and without replacement, and writes with which probability it drew them.",
		Params: []plan.ParamSchema{
			{Name: "count", Type: plan.Int, Required: true, PerRequest: true, Source: between(1, math.MaxInt32), Doc: "How many rows are drawn at most."},
			{Name: "weight", Type: plan.Key, Source: plan.SourceRule{KeyTypes: numberTypes}, Doc: "The column with the weights, in any unit. Without it all rows have the same."},
			{Name: "seed", Type: plan.Int, PerRequest: true,
				Doc: "Chooses the draws: the same rows, weights and seed give the same result. Without it the ids of the request and of the node do."},
			{Name: "propensity", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "The column for the probability with which a row was drawn, above 0 and at most 1."},
		},
		Strict: true,
		Inputs: 1,
		IDs:    plan.ReadsTextIDs,
		Output: task.Pick,
		Reads: func(n *plan.Node, reg *registry.Registry) []registry.KeyID {
			return append(task.KeyParams("weight")(n, reg), registry.IDKey)
		},
		Writes:  task.KeyParams("propensity"),
		Prepare: prepareSample,
		RowsMax: func(n *plan.Node, in int64) int64 { return min(in, n.Params.Int("count")) },
		Reference: task.Reference{
			Text: "`sample` draws one row after the other. Each draw takes one of the rows that are left, with a probability of its weight divided by the sum of their weights " +
				"(successive sampling; over all rows this is the ranking of the Plackett–Luce model). `propensity` is this probability of the draw that took the row, given the draws before it. " +
				"The product over the rows is the probability of the whole result in its order, which evaluation by inverse propensity needs. It is not the probability that a row is among the result at all, which " +
				"has no short formula.\n\n" +
				"A draw takes the row with the least −ln(u) / weight (Efraimidis and Spirakis: *Weighted random sampling with a reservoir*, Information Processing Letters 97, 2006). " +
				"u is 1 minus the number that [`random(seed)`](../expressions.md) gives the row. So the draws do not depend on the order of the rows, and are the same on every machine. " +
				"Two nodes with the same seed favor the same ids: give them different seeds.",
			Reads:      "The id, and the column of `weight`, if given.",
			Writes:     "The column of `propensity`, if given.",
			Order:      "The rows stand in the order of the draws.",
			Nulls:      "A row is never drawn if its weight is null, 0, negative or not finite. If no column has the weights, no row is drawn.",
			Empty:      "No rows give no rows. If fewer rows than `count` may be drawn, all of these are.",
			Duplicates: "Each row is drawn for itself. Rows with the same id have different random numbers, by their order.",
			Failures:   "The node does not fail. A plan does not load if `propensity` is the key of `weight`, which keeps its values.",
			Example: task.Example{
				Plan: "return ctx.candidates({ endpoint: redis, key: \"inbox:{user}\" })\n" +
					"  .lookup({ endpoint: redis, key: \"article:{id}\", fields: [Key.likes] })\n" +
					"  .sample({ count: 3, weight: Key.likes, seed: 7, propensity: Key.propensity });",
				Redis: []string{"RPUSH inbox:1 11 12 13 14 15", "HSET article:11 likes 40", "HSET article:12 likes 30", "HSET article:13 likes 20", "HSET article:14 likes 0",
					"HSET article:15 likes 10"},
			},
		},
		Inline:  true,
		Forgets: true,
		Run:     runSample,
		Explain: explainSample,
	}
}

func prepareSample(n *plan.Node, _ *registry.Registry) (any, error) {
	weight := n.Params.Key("weight")
	switch {
	case weight == nil:
	case weight.ID == registry.IDKey:
		return nil, plan.ParamErrorf("weight", "is the id, which is not a weight")
	case weight == n.Params.Key("propensity"):
		return nil, plan.ParamErrorf("propensity", "is the key of weight, which keeps its values")
	}
	return nil, nil
}

func runSample(c *task.Ctx) (rowset.RowSet, error) {
	out, propensities, err := draw(c)
	if key := c.Node.Params.Key("propensity"); key != nil && err == nil {
		if err := c.MakeRows(int64(out.Batch.Len())); err != nil { // a column is as long as the batch
			return rowset.RowSet{}, err
		}
		out = rowset.Scatter(c.Memory, out, &rowset.FloatColumn{Key: key.ID, Values: propensities})
	}
	return out, err
}

// draw returns the rows of the result in their order, and their propensities.
func draw(c *task.Ctx) (out rowset.RowSet, propensities []float64, err error) {
	in, p, weight := c.Inputs[0], &c.Node.Params, registry.KeyID(0)
	if key := p.Key("weight"); key != nil {
		weight = key.ID
	}
	count, err := c.Int("count")
	if err != nil {
		return rowset.RowSet{}, nil, err
	}
	random, err := randomNumbers(c, in)
	if err != nil {
		return rowset.RowSet{}, nil, err
	}
	return rowset.Sample(c, c.Memory, in, weight, random, int(count))
}

// randomNumbers returns the random number of each active row: that of its id and the seed. Further rows of an id draw again, by their number.
func randomNumbers(c *task.Ctx, in rowset.RowSet) ([]float64, error) {
	seed := int64(requestSeed(c))
	if c.Node.Params.Given("seed") {
		var err error
		if seed, err = c.Int("seed"); err != nil {
			return nil, err
		}
	}
	of, n, err := rowset.Groups(c, c.Memory, in, registry.IDKey)
	if err != nil {
		return nil, err
	}
	texts, seen, random := c.IDTexts(), c.Memory.Rows(n), c.Memory.Floats(in.Len())
	clear(seen)
	for pos, group := range of {
		id := in.ID(pos)
		if texts != nil {
			id = rowset.TextBits(texts.At(id))
		}
		hash := rowset.HashInt(id, seed)
		if seen[group] > 0 {
			hash = rowset.HashInt(int64(seen[group]), int64(hash))
		}
		seen[group]++
		random[pos] = rowset.HashUnit(hash)
	}
	return random, nil
}

// requestSeed returns bits of the ids of request and node.
func requestSeed(c *task.Ctx) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.RequestID) // a hash takes everything
	_, _ = io.WriteString(h, "\x00"+c.Node.ID)
	return h.Sum64()
}

// explainSample says at which draw a row came and with which probability, or that it did not come.
func explainSample(c *task.Ctx, out rowset.RowSet) task.Account {
	in, weight := c.Inputs[0], c.Node.Params.Key("weight")
	_, propensities, err := draw(c)
	if err != nil {
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		why := task.Reason{Kind: task.Cut, Of: in.Len(), Limit: out.Len(), Text: "it was not drawn"}
		if at.Side == task.InResult {
			why = task.Reason{Kind: task.Sorted, Rank: at.Pos + 1, Of: in.Len(), Limit: out.Len(), Text: fmt.Sprintf("draw %d took it", at.Pos+1),
				Values: []task.Value{{Name: "propensity", Value: propensities[at.Pos]}}}
		}
		if weight != nil {
			of := task.Value{Name: weight.Name}
			if v, ok := numbersOf(in.Batch, weight.ID).get(int(c.SideRows(out, at.Side).Row(at.Pos))); ok {
				of.Value = v
			}
			why.Values = append(why.Values, of)
		}
		return why
	}}
}
