package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// vm evaluates an expression for every active row into a column.
func vm() task.Spec {
	return task.Spec{
		Op:  "core::vm",
		Doc: "Evaluates an expression for every row into a column.",
		Params: []plan.ParamSchema{
			{Name: "out_key", Type: plan.Int, Required: true, IsKey: true, Source: plan.SourceRule{
				KeyTypes: []registry.Type{registry.Float, registry.Int, registry.String, registry.Bool}, Writes: true,
			}, Doc: "The column that the node writes: a writable key."},
			{Name: "expr_id", Type: plan.ExprID, Required: true, Fills: "out_key",
				Doc: "The expression: a number for a float or an int, a string, or a predicate for a bool. An artifact names an entry of `expr_table`."},
		},
		Reference: vmReference(),
		Inputs:    1,
		IDs:       plan.MovesTextIDs,
		Output:    task.SameRows,
		Reads:     task.ExprKeys,
		Writes:    task.ColumnParam("out_key"),
		Inline:    true,
		Forgets:   true,
		Run:       runVM,
		Explain: func(c *task.Ctx, _ rowset.RowSet) task.Account {
			key, _ := c.Key(c.Node.Params.Int("out_key"))
			return task.Account{Reason: func(at task.RowAt) task.Reason {
				why := c.Node.Expr.Explain(c.Inputs[0], at.Pos, c.Params)
				return task.Reason{Kind: task.Computed, Tree: &why, Column: key.ID}
			}}
		},
	}
}

func runVM(c *task.Ctx) (rowset.RowSet, error) {
	outKey := c.Node.Params.Int("out_key")
	key, ok := c.Key(outKey)
	switch {
	case !ok:
		return rowset.RowSet{}, task.Invalidf("out_key is %d, which is not a registered key", outKey)
	case key.Type != registry.Float && (c.Node.Expr == nil || !c.Node.Expr.Typed() || !c.Node.Expr.Fits(key.Type)):
		return rowset.RowSet{}, task.Invalidf("out_key %d (%s) is not a float key", key.ID, key.Name)
	case !key.Writable:
		return rowset.RowSet{}, task.Invalidf("out_key %d (%s) is read-only", key.ID, key.Name)
	case c.Node.Expr == nil:
		return rowset.RowSet{}, task.Invalidf("expr_id is empty")
	}
	return withScore(c, c.Inputs[0], c.Node.Expr, key)
}

// withScore returns in with a column of an expression for its active rows.
func withScore(c *task.Ctx, in rowset.RowSet, e *expr.Expr, key *registry.Key) (rowset.RowSet, error) {
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // the column is as long as the batch
		return rowset.RowSet{}, err
	}
	col, err := e.ColumnOf(c, c.Memory, in, c.Params, key)
	switch {
	case err != nil:
		return rowset.RowSet{}, err
	case col.NotWhole:
		return rowset.RowSet{}, inExpr(task.Invalidf("the expression is not an integer of at most 53 bits for some row, and %s is of type int", key.Name))
	case col.NonFinite:
		return rowset.RowSet{}, inExpr(task.Invalidf("the expression is not finite for some row"))
	case col.Null && !key.Nullable:
		return rowset.RowSet{}, inExpr(task.Invalidf("the expression is null for some row, and %s is not nullable", key.Name))
	}
	in.Batch = rowset.With(in.Batch, col.Column)
	return in, nil
}

// inExpr returns err as an error of the node's expression. The text stays.
func inExpr(err error) error { return &expr.EvalError{Err: err} }

func vmReference() task.Reference {
	return task.Reference{
		Text: "The expression sees one row at a time. [Expressions](../expressions.md) lists its operators. The node replaces a column " +
			"that is there already; other nodes behind the same input do not see that.",
		Reads:  "The columns of the expression.",
		Writes: "The column of `out_key`.",
		Order:  "The rows keep their order.",
		Nulls: "Arithmetic with null gives null, and `coalesce` replaces null. A column that the rows lack reads as null. " +
			"A null result fails the node unless the registry says that the key of `out_key` is nullable.",
		Empty:      "An input without rows gives no rows, and the column exists.",
		Duplicates: "The expression gives each row its value, rows with the same id, too.",
		Failures: "A result that is infinite or not a number fails the node; an intermediate value may be infinite. " +
			"So does a result for an int that is not an integer of at most 53 bits: `Math.round` makes one. An int that the expression only reads " +
			"is copied whole. A plan whose expression does not fit the type of `out_key` is refused.",
		Example: task.Example{
			Plan:    "ctx\n  .fixedSource({ rowCount: 3 })\n  .vm({ outKey: Key.score, expr: Key.id * coalesce(P.weight, 0.5) })",
			Request: `{"user_id": 1, "param_overrides": {"weight": 0.25}}`,
		},
	}
}
