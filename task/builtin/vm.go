package builtin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
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
	case col.NotWhole || col.NonFinite:
		values, err := e.Values(c, c.Memory, in, c.Params)
		if err != nil {
			return rowset.RowSet{}, err
		}
		if col.NotWhole {
			return rowset.RowSet{}, unfit(c, e, in, "not an integer of at most 53 bits", "; "+key.Name+" is of type int",
				func(pos int) bool {
					return math.Trunc(values.Values[pos]) != values.Values[pos] || math.Abs(values.Values[pos]) > 1<<53
				})
		}
		return rowset.RowSet{}, notFinite(c, e, in, values)
	case col.Null && !key.Nullable:
		return rowset.RowSet{}, unfit(c, e, in, "null", "; "+key.Name+" is not nullable", func(pos int) bool { return col.Any(int(in.Row(pos))) == nil })
	}
	in.Batch = rowset.With(in.Batch, col.Column)
	return in, nil
}

// notFinite returns the error of an expression that has an infinity or a NaN among its values.
func notFinite(c *task.Ctx, e *expr.Expr, in rowset.RowSet, values expr.Values) error {
	return unfit(c, e, in, "not finite", "", func(pos int) bool { v := values.Values[pos]; return v-v != 0 })
}

// readsShown is how many of the values that an expression has read an error shows.
const readsShown = 8

// unfit returns the error of an expression whose value for some active row cannot stay. It names the first such row, and what the
// expression has read there.
func unfit(c *task.Ctx, e *expr.Expr, in rowset.RowSet, what, why string, bad func(pos int) bool) error {
	pos := 0
	for pos < in.Len()-1 && !bad(pos) {
		pos++
	}
	tree := e.Explain(in, pos, c.Params)
	var reads []string
	var walk func(t *expr.Term)
	walk = func(t *expr.Term) {
		if t.Op == "key_ref" || t.Op == "param_ref" {
			value := "null"
			if text, ok := t.Value.(string); ok {
				value = task.Quote(text)
			} else if t.Value != nil {
				value = errtext.Cut(fmt.Sprint(t.Value))
			}
			if read := t.Name + " = " + value; len(reads) < readsShown && !slices.Contains(reads, read) {
				reads = append(reads, read)
			}
		}
		for i := range t.Terms {
			walk(&t.Terms[i])
		}
	}
	walk(&tree)
	row := "the row with id " + errtext.Text(c.IDText(in.Batch.IDs[in.Row(pos)]))
	if len(reads) > 0 {
		row += " (" + strings.Join(reads, ", ") + ")"
	}
	return inExpr(task.Invalidf("the expression is %s for %s%s", what, row, why))
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
