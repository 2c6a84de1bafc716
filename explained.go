package rankd

import (
	"slices"

	"github.com/rankd/rankd/explain"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/scheduler"
)

// explained is a run whose rows were kept, and what its request wants to know of them. Immutable.
type explained struct {
	graph  *plan.Graph
	rows   []scheduler.NodeRows
	userID int64
	params expr.Params
	asked  Explain
}

// newExplained returns what an explanation needs of a run that is over.
func newExplained(x *scheduler.Execution, result *scheduler.Result, asked Explain) *explained {
	asked.IDs = slices.Clone(asked.IDs)
	return &explained{graph: x.Graph, rows: result.Rows(), userID: x.UserID, params: x.Params, asked: asked}
}

// Explanation says why the rows of the answer are where they are, and why ids are missing. It is nil for a
// synthetic answer, and unless Request.Explain was set. Each call assembles it anew, from the rows of the very run.
func (a *Answer) Explanation() *explain.Explanation {
	x := a.explained
	if x == nil {
		return nil
	}
	run := explain.Run{Graph: x.graph, Rows: x.rows, UserID: x.userID, Params: x.params}
	return run.Of(explain.Asked{All: x.asked.All, IDs: x.asked.IDs})
}

// explanationJSON returns the JSON form of an explanation, or nil if there is none.
func explanationJSON(e *explain.Explanation) []byte {
	if e == nil {
		return nil
	}
	doc, _ := e.MarshalJSON() // An explanation has nothing that JSON lacks.
	return doc
}
