package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// vm evaluates an expression for every active row into a float column.
func vm() task.Spec {
	return task.Spec{
		Op:  "core::vm",
		Doc: "Evaluates an expression for every row into a float column.",
		Params: []plan.ParamSchema{
			{Name: "out_key", Type: plan.Int, Required: true, IsKey: true, Source: plan.SourceRule{
				KeyTypes: []registry.Type{registry.Float}, Writes: true,
			}},
			{Name: "expr_id", Type: plan.ExprID, Required: true},
		},
		Inputs:  1,
		Output:  task.SameRows,
		Reads:   task.ExprKeys,
		Writes:  task.ColumnParam("out_key"),
		Inline:  true,
		Forgets: true,
		Run:     runVM,
		Explain: func(c *task.Ctx, _ rowset.RowSet, at task.RowAt) task.Reason {
			if at.Side != task.InResult || c.Node.Expr == nil {
				return task.Reason{}
			}
			why := c.Node.Expr.Explain(c.Inputs[0], at.Pos, c.Params)
			key, _ := c.Key(c.Node.Params.Int("out_key"))
			return task.Reason{Kind: task.Computed, Tree: &why, Column: key.ID}
		},
	}
}

func runVM(c *task.Ctx) (rowset.RowSet, error) {
	outKey := c.Node.Params.Int("out_key")
	key, ok := c.Key(outKey)
	switch {
	case !ok:
		return rowset.RowSet{}, task.Invalidf("out_key is %d, which is not a registered key", outKey)
	case key.Type != registry.Float:
		return rowset.RowSet{}, task.Invalidf("out_key %d (%s) is not a float key", key.ID, key.Name)
	case !key.Writable:
		return rowset.RowSet{}, task.Invalidf("out_key %d (%s) is read-only", key.ID, key.Name)
	case c.Node.Expr == nil:
		return rowset.RowSet{}, task.Invalidf("expr_id is empty")
	}
	in := c.Inputs[0]
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // the column is as long as the batch
		return rowset.RowSet{}, err
	}
	col, err := c.Node.Expr.Column(c, c.Memory, in, c.Params)
	switch {
	case err != nil:
		return rowset.RowSet{}, err
	case col.NonFinite:
		return rowset.RowSet{}, inExpr(task.Invalidf("the expression is not finite for some row"))
	case col.Null && !key.Nullable:
		return rowset.RowSet{}, inExpr(task.Invalidf("the expression is null for some row, and %s is not nullable", key.Name))
	}
	out := in
	out.Batch = rowset.With(in.Batch, rowset.Columns{Floats: []rowset.FloatColumn{{Key: key.ID, Values: col.Values, Valid: col.Valid}}})
	return out, nil
}

// inExpr returns err as an error of the node's expression. The text stays.
func inExpr(err error) error { return &expr.EvalError{Err: err} }
