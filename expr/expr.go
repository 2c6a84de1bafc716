// Package expr parses the expression and predicate trees of a plan, compiles
// them once, and evaluates them a column at a time over the active rows of a
// RowSet, with the null rules of the plan format.
package expr

import (
	"github.com/rankd/rankd/jsondoc"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Params are the parameter values that one request sets. Immutable once
// built; any goroutine. The zero Params has no values: all parameters read
// as null. An explicit null is the same as unset.
type Params struct {
	floats  []floatParam
	strings []stringParam
}

type floatParam struct {
	id    registry.ParamID
	value float64
}

type stringParam struct {
	id    registry.ParamID
	value string
}

// SetFloat sets a parameter while the Params are being built.
func (p *Params) SetFloat(id registry.ParamID, v float64) {
	p.floats = append(p.floats, floatParam{id, v})
}

// SetString sets a parameter while the Params are being built.
func (p *Params) SetString(id registry.ParamID, v string) {
	p.strings = append(p.strings, stringParam{id, v})
}

// Float returns the float (or int) value of a parameter, or false if null.
func (p *Params) Float(id registry.ParamID) (float64, bool) {
	for i := range p.floats {
		if p.floats[i].id == id {
			return p.floats[i].value, true
		}
	}
	return 0, false
}

// String returns the string value of a parameter, or false if it is null or
// of another type.
func (p *Params) String(id registry.ParamID) (string, bool) {
	for i := range p.strings {
		if p.strings[i].id == id {
			return p.strings[i].value, true
		}
	}
	return "", false
}

// ParseExpr parses the tree of an ExprIR. Errors name the path inside the
// tree ("a.b.x: unknown op ...").
func ParseExpr(v *jsondoc.Value) (*Expr, error) { panic("stub") }

// ParsePred parses the tree of a PredIR.
func ParsePred(v *jsondoc.Value) (*Pred, error) { panic("stub") }

// Expr is a compiled expression: per row a double or null. Immutable once
// built; any goroutine.
type Expr struct{}

// Pred is a compiled predicate. Immutable once built; any goroutine.
type Pred struct{}

// Eval evaluates e for the active rows of in. values has in.Batch.Len()
// elements, those of inactive rows are 0 and invalid; valid is nil if every row of the batch
// is active and non-null. Indexing is by batch row.
func (e *Expr) Eval(in rowset.RowSet, params *Params) (values []float64, valid rowset.Bitmap) {
	panic("stub")
}

// Filter returns the active rows of in, in their order, for which p is true.
// An error of a leaf (bad regex, string list on a non-key) occurs only if some
// row reaches that leaf.
func (p *Pred) Filter(in rowset.RowSet, params *Params) (rowset.RowSet, error) { panic("stub") }
