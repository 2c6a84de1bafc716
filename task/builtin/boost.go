package builtin

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// maxRules bounds the rules of a node. Each is a pass over the rows.
const maxRules = 256

// boost changes a score by rules.
func boost() task.Spec {
	return task.Spec{
		Op:  "core::boost",
		Doc: "Changes a score by rules, each a predicate and an expression, into a new column.",
		Params: []plan.ParamSchema{
			{Name: "score", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: numberTypes}, Doc: "The column that the rules start from. It keeps its values."},
			outKeyParam("The column for the result."),
			{Name: "mode", Type: plan.Enum, StrValue: "first", Source: plan.SourceRule{OneOf: []string{"first", "all"}},
				Doc: "`first`: at most one rule changes a row, the first whose predicate is true. `all`: each of them does, one after the other."},
			{Name: "rules", Type: plan.Object, List: true, Required: true, MinItems: 1, MaxItems: maxRules, Doc: "The rules, in order.", Fields: []plan.ParamSchema{
				{Name: "pred_id", Type: plan.PredID, Required: true, Doc: "The rule changes the rows for which this predicate is true."},
				{Name: "expr_id", Type: plan.ExprID, Required: true, Doc: "The new value of `out_key`. It may read `out_key`."},
				{Name: "name", Type: plan.String, Doc: "The name of the rule, for people."},
			}},
		},
		Strict:  true,
		Inputs:  1,
		IDs:     plan.MovesTextIDs,
		Output:  task.SameRows,
		Reads:   boostReads,
		Writes:  task.KeyParams("out_key"),
		Prepare: prepareBoost,
		Reference: task.Reference{
			Text: "`out_key` starts as a copy of `score`. Each rule in turn evaluates its expression for the rows for which its predicate is true, and its value replaces that " +
				"of `out_key`. Expressions and predicates may read `out_key`: they find the value that the rules before them left. With `mode: \"first\"` this is " +
				"the value of `score`, since a row that a rule has changed takes part in no further rule.",
			Reads:      "The columns of `score` and of all predicates and expressions.",
			Writes:     "The column of `out_key`.",
			Order:      "The rows keep their order.",
			Nulls:      "A null score stays null until a rule gives it a value. A rule may give null. A null at the end fails the node if `out_key` is not nullable.",
			Empty:      "No rows give no rows. A rule without a row evaluates nothing.",
			Duplicates: "Each row counts for itself, also those with the same id.",
			Failures:   "An expression that is not finite for a row of its rule fails the node, and so does a predicate that cannot be evaluated. The error names the rule. A plan does not load if `out_key` is the key of `score`, which keeps its values.",
			Example: task.Example{
				Plan: `ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 5 })
  .vm({ outKey: Key.score, expr: Key.id * 1 })
  .boost({ score: Key.score, outKey: Key.final_score, mode: "all", rules: [
    { name: "home", pred: Key.country.in(["US", "CA"]), expr: Key.final_score * 2 },
    { name: "even", pred: Key.score > 900, expr: Key.final_score + 0.5 } ] })`,
			},
		},
		Inline:  true,
		Forgets: true,
		Run:     runBoost,
		Explain: explainBoost,
	}
}

func prepareBoost(n *plan.Node, _ *registry.Registry) (any, error) {
	if n.Params.Key("score").ID == n.Params.Key("out_key").ID {
		return nil, plan.ParamErrorf("out_key", "is the key of score, which keeps its values")
	}
	return nil, nil
}

// boostReads returns the columns that the rules read, and the column that they start from. They may also read the
// column that the node writes.
func boostReads(n *plan.Node, _ *registry.Registry) []registry.KeyID {
	keys := []registry.KeyID{n.Params.Key("score").ID}
	for _, rule := range n.Params.Objects("rules") {
		keys = append(keys, rule.Pred("pred_id").Keys()...)
		keys = append(keys, rule.Expr("expr_id").Keys()...)
	}
	return without(keys, n.Params.Key("out_key").ID)
}

func runBoost(c *task.Ctx) (rowset.RowSet, error) {
	in, p := c.Inputs[0], &c.Node.Params
	b, err := newRuleBook(c, in)
	if err != nil {
		return rowset.RowSet{}, err
	}
	for i, rule := range p.Objects("rules") {
		if _, err := b.apply(rule.Pred("pred_id"), rule.Expr("expr_id")); err == rowset.ErrStopped {
			return rowset.RowSet{}, err
		} else if err != nil {
			return rowset.RowSet{}, fmt.Errorf("rules[%d]: %w", i, err)
		}
	}
	return b.out.finish(in, p.Key("out_key"))
}

// A ruleBook applies rules to the rows of one run. One goroutine at a time.
type ruleBook struct {
	c     *task.Ctx
	out   *scores
	rows  rowset.RowSet // that rules may still change, over a batch with out
	once  bool          // a rule takes its rows out of rows
	spare []int32       // for the rows of a rule
}

// newRuleBook returns the rule book of the active rows of in, before the first rule.
func newRuleBook(c *task.Ctx, in rowset.RowSet) (ruleBook, error) {
	p := &c.Node.Params
	out, err := newScores(c, in.Batch)
	if err != nil {
		return ruleBook{}, err
	}
	base := numbersOf(in.Batch, p.Key("score").ID)
	for i := range in.Len() {
		row := in.Row(i)
		if v, ok := base.get(int(row)); ok {
			out.set(row, v)
		}
	}
	// The rules read the column while it changes. This batch is not shared.
	return ruleBook{c: c, out: out, rows: out.over(in, p.Key("out_key")), once: p.String("mode") == "first"}, nil
}

// apply sets the rows for which when is true to the values of then, and returns how many these are.
func (b *ruleBook) apply(when *expr.Pred, then *expr.Expr) (n int, err error) {
	hits, n, err := when.Matches(b.c, b.rows, b.c.Params)
	if err != nil || n == 0 {
		return 0, err
	}
	matched := b.split(hits, n)
	values, err := then.Values(b.c, b.c.Memory, matched, b.c.Params)
	switch {
	case err != nil:
		return 0, err
	case values.NonFinite:
		return 0, notFinite(b.c, then, matched, values)
	}
	for i, row := range matched.Rows {
		if values.Valid.Get(i) {
			b.out.set(row, values.Values[i])
		} else {
			b.out.setNull(row)
		}
	}
	return n, nil
}

// split returns the n rows that a predicate hit. It leaves the others in rows, if a row changes only once.
func (b *ruleBook) split(hits rowset.Bitmap, n int) rowset.RowSet {
	if b.spare == nil {
		b.spare = b.c.Memory.Rows(b.rows.Len())
	}
	matched := b.spare[:0]
	var rest []int32
	if b.once && n < b.rows.Len() {
		rest = b.c.Memory.Rows(b.rows.Len() - n)[:0]
	}
	for i := range b.rows.Len() {
		if row := b.rows.Row(i); hits.Get(i) {
			matched = append(matched, row)
		} else if rest != nil {
			rest = append(rest, row)
		}
	}
	if b.once {
		b.rows = rowset.RowSet{Batch: b.rows.Batch, Rows: rest, N: len(rest)}
	}
	return rowset.RowSet{Batch: b.rows.Batch, Rows: matched, N: n}
}

// explainBoost applies the rules to one row alone, and says which of them changed it.
func explainBoost(c *task.Ctx, _ rowset.RowSet) task.Account {
	p, in := &c.Node.Params, c.Inputs[0]
	score := p.Key("score")
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		why := task.Reason{Kind: task.Passed, Column: p.Key("out_key").ID}
		row := in.Row(at.Pos)
		b, err := newRuleBook(c, rowset.RowSet{Batch: in.Batch, Rows: []int32{row}, N: 1})
		if err != nil {
			return why
		}
		if b.out.valid.Get(int(row)) {
			why.Values = []task.Value{{Name: score.Name, Value: b.out.values[row]}}
		}
		for i, rule := range p.Objects("rules") {
			if b.rows.Len() == 0 {
				break
			}
			tree := rule.Expr("expr_id").Explain(b.rows, 0, c.Params)
			n, err := b.apply(rule.Pred("pred_id"), rule.Expr("expr_id"))
			if err != nil {
				break
			}
			if n > 0 {
				name := cmp.Or(rule.String("name"), strconv.Itoa(i+1))
				why.Kind, why.Fired = task.Boosted, append(why.Fired, task.Fired{Rule: name, Tree: &tree})
			}
		}
		return why
	}}
}
