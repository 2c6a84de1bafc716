package rankd

import (
	"context"
	"errors"
	"fmt"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// Request asks for one ranking.
type Request = request.Request

// Flow names a caller and one of its connections by two numbers of the program's choice: see Request.Flow.
type Flow = scheduler.Flow

// ParseRequest checks a request in its JSON form, one document such as
// {"user_id": 1, "plan": "diamond"}. It generates an ID if the document has none. The error
// is an *Error of class ErrInvalidRequest. Any goroutine.
func (e *Engine) ParseRequest(doc []byte) (Request, error) {
	return e.Intake().Parse(doc, request.Given{})
}

// Intake is what fronts need of an engine beside what all programs do: they take requests as documents, from callbacks on the loop. Not
// stable yet, apart from Start. Any goroutine.
type Intake struct{ engine *Engine }

// Intake returns the intake of e.
func (e *Engine) Intake() Intake { return Intake{e} }

// Parse is Engine.ParseRequest for a document that came with facts of its own, such as the plan in a path. The document may be empty if
// the user is given.
func (in Intake) Parse(doc []byte, g request.Given) (Request, error) {
	r, err := in.engine.requests.Parse(doc, g)
	if err != nil {
		return Request{}, in.Refused(err)
	}
	if refused := in.engine.check(&r); refused != nil {
		return Request{}, refused
	}
	return r, nil
}

// Start is Engine.Submit for a caller that takes a refusal at once, which costs no goroutine: either it returns an *Error and never calls
// done, or it returns nil, and done is called as by Submit.
// A request that has to wait may still be refused, by done, in favor of a caller with fewer: see Options.MaxQueue.
//
// A plan that no request has named before is first loaded on a goroutine of its own, because that takes long and a callback may call Start
// on the loop.
func (in Intake) Start(ctx context.Context, r Request, done func(*Answer, error)) error {
	return in.engine.start(ctx, r, done)
}

// UnknownPlan returns the *Error of a request for a plan that the engine does not have. It does not check that the plan is missing, and
// reads the folder of plans the first time alone. A server that has its own list of plans uses it.
func (in Intake) UnknownPlan(requestID, plan string) *Error {
	return planError(requestID, in.engine.library.Unknown(plan))
}

// Reactor returns the loop of an engine with the Reactor model, and nil with another model. A front gives it the connections of its
// clients, and calls Start from their callbacks: no goroutine stands between socket and scheduler. Their owner closes these connections
// before the engine. A callback on the loop must not block.
func (in Intake) Reactor() *reactor.Reactor {
	if async, ok := in.engine.scheduler.(*scheduler.Async); ok {
		return async.Reactor()
	}
	return nil
}

// check returns the *Error of a request that no engine can run, or that asks for what this one does not let requests choose.
func (e *Engine) check(r *Request) *Error {
	if refused := request.Check(r, e.registry); refused != nil {
		return e.Intake().Refused(refused)
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
