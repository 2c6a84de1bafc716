package builtin

import (
	"fmt"
	"math"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// diversifyRulesMax is the most rules of one node.
const diversifyRulesMax = 8

// diversify keeps rows of one key, such as an author, apart.
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
		Doc: "Keeps rows of the same key, such as an author, from standing close together.",
		Params: []plan.ParamSchema{
			{Name: "by", Type: plan.Key, Source: plan.SourceRule{KeyTypes: groupTypes}, Doc: "The column whose values are kept apart, such as the author."},
			{Name: "rules", Type: plan.Object, List: true, MinItems: 1, MaxItems: diversifyRulesMax,
				Doc: "For `window`, in place of `by`, `max` and `window`: several rules, the one that matters most first.", Fields: []plan.ParamSchema{
					{Name: "by", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: groupTypes}, Doc: "The column whose values the rule keeps apart."},
					maxParam, windowParam,
				}},
			{Name: "method", Type: plan.Enum, StrValue: "window", Source: plan.SourceRule{OneOf: []string{"window", "decay"}},
				Doc: "How rows are kept apart; see above."},
			maxParam,
			windowParam,
			{Name: "score", Type: plan.Key, Source: plan.SourceRule{KeyTypes: numberTypes},
				Doc: "For `decay`, required: the column by which rows are ranked."},
			{Name: "factor", Type: plan.Float, FloatValue: 0.5, Source: zeroToOne(plan.SourceRule{}),
				Doc: "For `decay`: the factor by which the kept part of the score, above `floor`, shrinks with each further row of the same value."},
			{Name: "floor", Type: plan.Float, Source: zeroToOne(plan.SourceRule{}),
				Doc: "For `decay`: the part of its score that every row keeps."},
			{Name: "out_key", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "For `decay`, required: the column for the decayed score."},
		},
		Strict:  true,
		Inputs:  1,
		IDs:     plan.MovesTextIDs,
		Output:  task.Pick,
		Limited: true,
		Reads:   task.KeyParams("by", "rules.by", "score"),
		Writes:  task.KeyParams("out_key"),
		Prepare: prepareDiversify,
		Reference: task.Reference{
			Text: "`window` reorders the rows: among any `window` neighbours of the result at most `max` have the same value. Each place takes the first row that is " +
				"left and fits, however far behind it stands. If no row fits, the first that is left takes the place all the same: " +
				"no row is ever lost, and the rule is broken only at the end of the result, where nothing else is left.\n\n" +
				"`rules` has several such rules hold at once, which two nodes one behind the other do not: the second moves rows without regard to the first. If no row fits all rules, the " +
				"place takes the first that fits all but the last rule, and so on: the first rule is the last to be broken.\n\n" +
				"`decay` ranks the rows by `score`, best first, and lowers the score of each further row with the same value: the first keeps all of it, the second " +
				"`floor + (1 − floor) × factor`, the third `floor + (1 − floor) × factor²`. A score below zero falls by the same part of its size. " +
				"The result is ordered by the decayed score, which `out_key` gets; `score` keeps its values.",
			Reads:  "The columns of `by`; for `decay` also the column of `score`.",
			Writes: "For `decay` the column of `out_key`; otherwise none.",
			Order: "`window`: the order of the input, except that a row waits while it does not fit. `decay`: by the decayed score, best first; equal ones " +
				"stand in the order of `score`, and then of the input.",
			Nulls: "Rows whose `by` is null are never kept apart: each fits anywhere and keeps its whole score. So are all rows if they have no such column. " +
				"A row whose `score` is null counts for nothing, stays null and stands last.",
			Empty:      "No rows give no rows.",
			Duplicates: "Each row counts, also those with the same id. `by: id` keeps them apart.",
			Failures:   "A null score fails the node if `out_key` is not nullable. A plan does not load if it gives one method a parameter of the other, or if `out_key` is the key of `score`, which keeps its values.",
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

// prepareDiversify refuses parameters of the method that the node does not use. It returns the parameters of each rule, a
// []plan.NodeParams: those of the node itself, if it has only one.
func prepareDiversify(n *plan.Node, _ *registry.Registry) (any, error) {
	method, p := n.Params.String("method"), &n.Params
	switch rules := p.Given("rules"); {
	case rules == p.Given("by"):
		return nil, plan.ParamErrorf("by", "or rules must be given, and only one of them")
	case rules && (p.Given("max") || p.Given("window")):
		return nil, plan.ParamErrorf("rules", "have a max and a window each, so the node has none")
	}
	for _, param := range [...]struct{ name, method string }{
		{"rules", "window"}, {"max", "window"}, {"window", "window"}, {"score", "decay"}, {"factor", "decay"}, {"floor", "decay"}, {"out_key", "decay"},
	} {
		if p.Given(param.name) && param.method != method {
			return nil, plan.ParamErrorf(param.name, "belongs to method %q, and the method is %q", param.method, method)
		}
	}
	if method == "decay" {
		for _, name := range [...]string{"score", "out_key"} {
			if !p.Given(name) {
				return nil, plan.ParamErrorf(name, "is missing: method %q needs it", method)
			}
		}
		if p.Key("score").ID == p.Key("out_key").ID {
			return nil, plan.ParamErrorf("out_key", "is the key of score, which keeps its values")
		}
	}
	if p.Given("rules") {
		return p.Objects("rules"), nil
	}
	return []plan.NodeParams{*p}, nil
}

func runDiversify(c *task.Ctx) (rowset.RowSet, error) {
	in, params := c.Inputs[0], &c.Node.Params
	if params.String("method") == "decay" {
		return decay(c, in)
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
