package builtin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// diversifyRulesMax is the most rules of one node.
const diversifyRulesMax = 8

// diversify keeps rows of one key, such as an author, apart, or rows with similar vectors.
func diversify() task.Spec {
	zeroToOne := func(rule plan.SourceRule) plan.SourceRule {
		zero, one := 0.0, 1.0
		rule.FloatMin, rule.FloatMax = &zero, &one
		return rule
	}
	maxParam := plan.ParamSchema{Name: "max", Type: plan.Int, IntValue: 1, Source: between(1, math.MaxInt32),
		Doc: "For `window`: how many rows with the same value a window has at most."}
	windowParam := plan.ParamSchema{Name: "window", Type: plan.Int, Source: between(1, math.MaxInt32),
		Doc: "For `window`: how many neighbouring rows of the result are a window. Without it the whole result is one."}
	return task.Spec{
		Op:  "core::diversify",
		Doc: "Keeps rows of the same key, such as an author, or with similar vectors, from standing close together.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Key, Source: plan.SourceRule{KeyTypes: groupTypes}, Doc: "For `window` and `decay`: the column whose values are kept apart, such as the author."},
			{Name: "rules", Type: plan.Object, List: true, MinItems: 1, MaxItems: diversifyRulesMax,
				Doc: "For `window`, in place of `by`, `max` and `window`: several rules, the one that matters most first.", Fields: []plan.ParamSchema{
					{Name: "by", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: groupTypes}, Doc: "The column whose values the rule keeps apart."},
					maxParam, windowParam,
				}},
			{Name: "method", Type: plan.Enum, StrValue: "window", Source: plan.SourceRule{OneOf: []string{"window", "decay", "mmr"}},
				Doc: "How rows are kept apart; see above."},
			maxParam,
			windowParam,
			{Name: "score", Type: plan.Key, Source: plan.SourceRule{KeyTypes: numberTypes},
				Doc: "For `decay` and `mmr`, required: the column by which rows are ranked."},
			{Name: "factor", Type: plan.Float, FloatValue: 0.5, Source: zeroToOne(plan.SourceRule{}),
				Doc: "For `decay`: the factor by which the kept part of the score, above `floor`, shrinks with each further row of the same value."},
			{Name: "floor", Type: plan.Float, Source: zeroToOne(plan.SourceRule{}),
				Doc: "For `decay`: the part of its score that every row keeps."},
			{Name: "out_key", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "For `decay` and `mmr`, required: the column for the lowered score."},
			{Name: "vector", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Vector}},
				Doc: "For `mmr`, required: the column with the vectors of the rows."},
			{Name: "measure", Type: plan.Enum, StrValue: measures[rowset.ByCosine], Source: plan.SourceRule{OneOf: measures},
				Doc: "For `mmr`: what says how similar two vectors are: their product, the cosine of their angle, or, for `l2`, 1 / (1 + their distance)."},
			{Name: "lambda", Type: plan.Float, FloatValue: 0.5, Source: plan.SourceRule{FloatMin: new(float64)},
				Doc: "For `mmr`: how much of the score a similarity of 1 takes."},
			{Name: "limit", Type: plan.Int, PerRequest: true, Source: between(1, math.MaxInt32),
				Doc: "For `mmr`: how many rows stay at most. Without it all do, and each is compared with each."},
		},
		Strict:  true,
		Inputs:  1,
		IDs:     plan.MovesTextIDs,
		Output:  task.Pick,
		Limited: true,
		RowsMax: func(n *plan.Node, in int64) int64 {
			if n.Params.Given("limit") {
				return atMost("limit")(n, in)
			}
			return in
		},
		Reads:         task.KeyParams("by", "rules.by", "score", "vector"),
		Writes:        task.KeyParams("out_key"),
		ChoosesBy:     task.Columns(), // It moves rows, and keeps the best ones.
		Across:        true,
		Prepare:       prepareDiversify,
		ExpensiveNode: func(n *plan.Node) bool { return n.Params.String("method") == "mmr" }, // its time grows with the square of the rows
		Reference: task.Reference{
			Text: "`window` reorders the rows: among any `window` neighbours of the result at most `max` have the same value. Each place takes the first row that is " +
				"left and fits, however far behind it stands. If no row fits, the first that is left takes the place all the same: " +
				"no row is ever lost, and the rule is broken only at the end of the result, where nothing else is left.\n\n" +
				"`rules` has several such rules hold at once, which two nodes one behind the other do not: the second moves rows without regard to the first. If no row fits all rules, the " +
				"place takes the first that fits all but the last rule, and so on: the first rule is the last to be broken.\n\n" +
				"`decay` ranks the rows by `score`, best first, and lowers the score of each further row with the same value: the first keeps all of it, the second " +
				"`floor + (1 − floor) × factor`, the third `floor + (1 − floor) × factor²`. A score below zero falls by the same part of its size. " +
				"The result is ordered by the decayed score, which `out_key` gets; `score` keeps its values.\n\n" +
				"`mmr` (maximal marginal relevance) keeps rows with similar vectors apart. Each place takes the row whose `score`, less `lambda` times its greatest similarity to a row " +
				"that stands before, is the highest; `out_key` gets this number. The similarity is that of [nearest](nearest.md), but for `l2`, where it is 1 / (1 + distance). " +
				"`.diversify({ method: \"mmr\", vector: Key.embedding, score: Key.score, lambda: 0.7, outKey: Key.final_score, limit: 20 })` gives twenty rows. " +
				"The time grows with the rows times `limit`, or the `count` of a `take` right behind.",
			Reads:  "The node reads the columns of `by`. For `decay` and `mmr` it also reads the column of `score`, and for `mmr` that of `vector`.",
			Writes: "For `decay` and `mmr` the column of `out_key`; otherwise none.",
			Order: "`window`: the order of the input, except that a row waits while it does not fit. `decay`: by the decayed score, best first; equal ones " +
				"stand in the order of `score`, and then of the input. `mmr`: in the order of choice; of equal rows the first of the input is chosen.",
			Nulls: "Rows whose `by` is null are never kept apart: each fits anywhere and keeps its whole score. So are all rows if they have no such column. " +
				"A row whose `score` is null counts for nothing, stays null and stands last. A row without a vector is similar to no other, and keeps its whole score: so do all rows " +
				"if they have no such column, and rows whose similarity is not finite: the cosine of a zero vector.",
			Empty:      "No rows give no rows.",
			Duplicates: "Each row counts, also those with the same id. `by: id` keeps them apart.",
			Failures:   "A null score fails the node if `out_key` is not nullable. A plan does not load if it gives one method a parameter of another, or if `out_key` is the key of `score`, which keeps its values.",
			Example: task.Example{
				Plan: `ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 8 })
  .diversify({ by: Key.country, max: 1, window: 3 })`,
			},
		},
		Inline:  true,
		Forgets: true,
		Run:     runDiversify,
		Explain: explainDiversify,
	}
}

// diversifyMethods are the methods of each parameter that not all of them have, and of these which need it.
var diversifyMethods = []struct {
	param   string
	methods []string
	needed  bool
}{
	{"by", []string{"window", "decay"}, false}, {"rules", []string{"window"}, false}, {"max", []string{"window"}, false}, {"window", []string{"window"}, false},
	{"factor", []string{"decay"}, false}, {"floor", []string{"decay"}, false}, {"score", []string{"decay", "mmr"}, true}, {"out_key", []string{"decay", "mmr"}, true},
	{"vector", []string{"mmr"}, true}, {"measure", []string{"mmr"}, false}, {"lambda", []string{"mmr"}, false}, {"limit", []string{"mmr"}, false},
}

// prepareDiversify refuses parameters of the method that the node does not use. It returns the parameters of each rule, a
// []plan.NodeParams: those of the node itself, if it has only one.
func prepareDiversify(n *plan.Node, _ *registry.Registry) (any, error) {
	method, p := n.Params.String("method"), &n.Params
	switch rules := p.Given("rules"); {
	case method != "mmr" && rules == p.Given("by"):
		return nil, plan.ParamErrorf("by", "or rules must be given, and only one of them")
	case rules && (p.Given("max") || p.Given("window")):
		return nil, plan.ParamErrorf("rules", "have a max and a window each, so the node has none")
	}
	for _, param := range diversifyMethods {
		switch has := slices.Contains(param.methods, method); {
		case p.Given(param.param) && !has:
			return nil, plan.ParamErrorf(param.param, "belongs to method %s, and the method is %q", strings.Join(quotedAll(param.methods), " or "), method)
		case has && param.needed && !p.Given(param.param):
			return nil, plan.ParamErrorf(param.param, "is missing: method %q needs it", method)
		}
	}
	if p.Given("score") && p.Key("score").ID == p.Key("out_key").ID {
		return nil, plan.ParamErrorf("out_key", "is the key of score, which keeps its values")
	}
	if p.Given("rules") {
		return p.Objects("rules"), nil
	}
	return []plan.NodeParams{*p}, nil
}

func quotedAll(texts []string) (quoted []string) {
	for _, text := range texts {
		quoted = append(quoted, task.Quote(text))
	}
	return quoted
}

func runDiversify(c *task.Ctx) (rowset.RowSet, error) {
	in, params := c.Inputs[0], &c.Node.Params
	switch params.String("method") {
	case "decay":
		return decay(c, in)
	case "mmr":
		out, _, err := marginalRelevance(c)
		return out, err
	}
	var some [diversifyRulesMax]spreadRule
	rules := some[:0]
	for _, p := range c.Node.Prepared.([]plan.NodeParams) {
		groups, n, err := rowset.Groups(c, c.Memory, in, p.Key("by").ID)
		if err != nil {
			return rowset.RowSet{}, err
		}
		rules = append(rules, spreadRule{groups: groups, n: n, most: int32(p.Int("max")), window: int(p.Int("window"))})
	}
	rows, ok := spread(c, c.Memory, in.N, rules, c.Limit)
	if !ok {
		return rowset.RowSet{}, task.ErrCancelled
	}
	for i, pos := range rows {
		rows[i] = in.Row(int(pos))
	}
	return rowset.RowSet{Batch: in.Batch, Rows: rows, N: len(rows)}, nil
}

func decay(c *task.Ctx, in rowset.RowSet) (rowset.RowSet, error) {
	params := &c.Node.Params
	score, outKey := params.Key("score"), params.Key("out_key")
	factor, floor := params.Float("factor"), params.Float("floor")
	out, err := newScores(c, in.Batch)
	if err != nil {
		return rowset.RowSet{}, err
	}
	ranked := in
	if in.Batch.Has(score.ID) {
		if ranked, err = rowset.Sort(c, c.Memory, in, score.ID, true); err != nil {
			return rowset.RowSet{}, err
		}
	}
	groups, n, err := rowset.Groups(c, c.Memory, ranked, params.Key("by").ID)
	if err != nil {
		return rowset.RowSet{}, err
	}
	kept := c.Memory.Floats(n) // by group: the power of factor that its next row gets
	for g := range kept {
		kept[g] = 1
	}
	values := numbersOf(in.Batch, score.ID)
	for i, g := range groups {
		row := ranked.Row(i)
		v, ok := values.get(int(row))
		if !ok {
			break // nulls come last
		}
		out.set(row, lower(v, floor+float64((1-floor)*kept[g])))
		kept[g] *= factor
	}
	ranked, err = out.finish(ranked, outKey)
	if err != nil {
		return rowset.RowSet{}, err
	}
	if c.Limit > 0 {
		return rowset.TopUntil(c, c.Memory, ranked, outKey.ID, true, c.Limit)
	}
	return rowset.Sort(c, c.Memory, ranked, outKey.ID, true)
}

// marginalRelevance orders rows for the method mmr, and says how it came to the order.
func marginalRelevance(c *task.Ctx) (rowset.RowSet, rowset.Relevance, error) {
	p, in, most := &c.Node.Params, c.Inputs[0], c.Inputs[0].N
	fail := func(err error) (rowset.RowSet, rowset.Relevance, error) {
		return rowset.RowSet{}, rowset.Relevance{}, err
	}
	if p.Given("limit") {
		limit, err := c.Int("limit")
		if err != nil {
			return fail(err)
		}
		most = min(most, int(limit))
	}
	if c.Limit > 0 {
		most = min(most, c.Limit)
	}
	out, err := newScores(c, in.Batch)
	if err != nil {
		return fail(err)
	}
	scores, valid, values := c.Memory.Floats(in.N), rowset.NewBitmap(in.N), numbersOf(in.Batch, p.Key("score").ID)
	for pos := range in.N {
		var ok bool
		if scores[pos], ok = values.get(int(in.Row(pos))); ok {
			valid.Set(pos)
		}
	}
	by := rowset.Measure(slices.Index(measures, p.String("measure")))
	r, err := rowset.MarginalRelevance(c, c.Memory, in, in.Batch.Vector(p.Key("vector").ID), scores, valid, by, p.Float("lambda"), most)
	if err != nil {
		return fail(err)
	}
	rows := c.Memory.Rows(most)[:0]
	for _, pos := range r.Chosen {
		rows = append(rows, in.Row(int(pos)))
	}
	for pos := range in.N {
		switch row := in.Row(pos); {
		case valid.Get(pos):
			out.set(row, r.Scores[pos])
		case len(rows) < most: // all that have a score are chosen
			rows = append(rows, row)
		}
	}
	result, err := out.finish(in, p.Key("out_key"))
	if err != nil {
		return fail(err)
	}
	result.Rows, result.N = rows, len(rows)
	return result, r, nil
}

// lower reduces a score by the fraction 1−kept of its size.
func lower(score, kept float64) float64 {
	if score >= 0 {
		return score * kept
	}
	return max(score*(2-kept), -math.MaxFloat64)
}

// explainDiversify says whether a row had to wait, or how much of its score it kept.
func explainDiversify(c *task.Ctx, out rowset.RowSet) task.Account {
	p, in := &c.Node.Params, c.Inputs[0]
	if p.String("method") == "mmr" {
		return explainRelevance(c, out)
	}
	key := p.Key("out_key")
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		if at.Side != task.InResult {
			return task.Reason{} // only a run that was cut short lacks rows
		}
		row := out.Row(at.Pos)
		if key != nil {
			why := task.Reason{Kind: task.Computed, Column: key.ID, Text: "its score falls with each row of the same " + p.Key("by").Name + " that ranks before it"}
			before, okBefore := numbersOf(in.Batch, p.Key("score").ID).get(int(row))
			after, okAfter := out.Batch.Float(key.ID).Value(int(row))
			if okBefore && okAfter {
				why.Values = []task.Value{{Name: p.Key("score").Name, Value: before}, {Name: key.Name, Value: after}}
			}
			return why
		}
		switch before := positionIn(in, row); {
		case before < at.Pos:
			var rules []string
			for _, p := range c.Node.Prepared.([]plan.NodeParams) {
				window := "the result"
				if p.Given("window") {
					window = fmt.Sprintf("each %d neighbours", p.Int("window"))
				}
				rules = append(rules, fmt.Sprintf("%s has at most %d rows of the same %s", window, p.Int("max"), p.Key("by").Name))
			}
			return task.Reason{Kind: task.Moved, Text: "it waited: " + strings.Join(rules, ", and ")}
		case before > at.Pos:
			return task.Reason{Kind: task.Moved, Text: "rows before it had to wait"}
		default:
			return task.Reason{Kind: task.Passed}
		}
	}}
}

// explainRelevance says what each row lost, and to which row it is that similar.
func explainRelevance(c *task.Ctx, out rowset.RowSet) task.Account {
	p, in := &c.Node.Params, c.Inputs[0]
	_, r, err := marginalRelevance(c)
	if err != nil {
		return task.Account{}
	}
	score, key, before := p.Key("score"), p.Key("out_key"), numbersOf(in.Batch, p.Key("score").ID)
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		why, pos := task.Reason{Kind: task.Computed, Column: key.ID}, at.Pos
		if at.Side == task.InResult {
			pos = positionIn(in, out.Row(at.Pos))
		} else {
			why.Kind, why.Limit, why.Of = task.Cut, out.Len(), in.Len()
		}
		v, ok := before.get(int(in.Row(pos)))
		if !ok {
			why.Text = score.Name + " is null"
			return why
		}
		after := r.Scores[pos]
		if why.Kind == task.Cut && len(r.Chosen) > 0 {
			lacks := r.Scores[r.Chosen[len(r.Chosen)-1]] - after
			why.Score, why.Lacks = &after, &lacks
		}
		why.Values = []task.Value{{Name: score.Name, Value: v}, {Name: key.Name, Value: after}}
		like := r.Like[pos]
		if like < 0 {
			why.Text = "it is similar to no row before it"
			return why
		}
		why.Text = fmt.Sprintf("of the rows before it, it is most similar to id %s, which takes %v times this similarity from its score",
			task.Quote(c.IDText(in.ID(int(like)))), p.Float("lambda"))
		why.Values = append(why.Values, task.Value{Name: p.String("measure"), Value: r.Similarity[pos]})
		return why
	}}
}
