package rankd

import (
	"errors"
	"fmt"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// Request asks for one ranking.
type Request = request.Request

// Flow names a caller and one of its connections by two numbers of the program's choice: see Request.Flow.
type Flow = scheduler.Flow

// Given has what is known of a request beside its document.
type Given = request.Given

// ParseRequest checks a request in its JSON form, one document such as
// {"user_id": 1, "plan": "diamond"}. It generates an ID if the document has none. The error
// is an *Error of class ErrInvalidRequest. Any goroutine.
func (e *Engine) ParseRequest(doc []byte) (Request, error) { return e.ParseRequestFor(doc, Given{}) }

// ParseRequestFor is ParseRequest for a document that came with facts of its own, such as the plan in a path. The document may be
// empty if the user is given. Any goroutine.
func (e *Engine) ParseRequestFor(doc []byte, g Given) (Request, error) {
	r, err := e.requests.Parse(doc, g)
	if err != nil {
		return Request{}, Refused(err)
	}
	if refused := e.check(&r); refused != nil {
		return Request{}, refused
	}
	return r, nil
}

// check returns the *Error of a request that no engine can run, or that asks for what this one does not let requests choose.
func (e *Engine) check(r *Request) *Error {
	if refused := request.Check(r, e.registry); refused != nil {
		return Refused(refused)
	}
	for g := range request.GrantCount {
		if g.AskedBy(r) && !e.allowed[g] {
			return invalid(r.ID, request.CodeInvalid, fmt.Errorf("this engine does not allow %q in requests", g.String()))
		}
	}
	if r.Scheduling != "" {
		if err := r.Scheduling.Check(); err != nil {
			return invalid(r.ID, request.CodeInvalid, fmt.Errorf("scheduling %w", err))
		}
	}
	return nil
}

// Explain says what a request wants to have explained: all rows of the answer, or ids. The zero value is nothing.
type Explain = request.Explain

// required returns the indices of the nodes that a request requires, by their ids or labels.
func required(g *plan.Graph, names []string) ([]int, error) {
	if len(names) > request.RequireMax {
		return nil, fmt.Errorf("require must name at most %d nodes, got %d", request.RequireMax, len(names))
	}
	if g == nil {
		return nil, errors.New("require names nodes, and the request has no plan")
	}
	var indices []int
	for _, name := range names {
		found := false
		for _, n := range g.Nodes {
			if n.ID == name || n.Trace != "" && n.Trace == name {
				indices, found = append(indices, n.Index), true
			}
		}
		if !found {
			return nil, unknownNode(g, name)
		}
	}
	return indices, nil
}

func unknownNode(g *plan.Graph, name string) error {
	var known []string
	for _, n := range g.Nodes {
		known = append(known, n.ID)
		if n.Trace != "" {
			known = append(known, n.Trace)
		}
	}
	hint := ""
	if near, ok := nearest.Name(name, known); ok {
		hint = "; did you mean " + excerpt.Quote(near) + "?"
	}
	return fmt.Errorf("require names the node %s, and plan %s has none of that id or label%s", excerpt.Quote(name), excerpt.Quote(g.Name), hint)
}
