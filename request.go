package rankd

import (
	"fmt"
	"time"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// Request asks for one ranking. The engine does not change it.
type Request struct {
	// Plan names the plan. Empty means the engine's own choice, Options.Plan or PlanFile.
	Plan string
	// UserID is the user to rank for, from 1 to 2^32-1.
	UserID int64
	// Context has what the caller knows about this request, such as the hour or the items that the user has seen: the
	// parameters that the registry marks with context, by name. Values are as in Params.
	Context map[string]any
	// Params override request parameters by name, on top of the context. A value is a number (of any integer or
	// float type, or a json.Number), a string, a bool, a slice of integers or strings, or nil for null.
	Params map[string]any
	// Timeout bounds this request, from its arrival. Zero means no bound of its own. A negative
	// one is an error of class ErrInvalidRequest.
	Timeout time.Duration
	// Scheduling is the mode of this request. Empty means the engine's. Options.AllowRequestScheduling
	// permits it; otherwise the request fails with ErrInvalidRequest.
	Scheduling SchedulingMode
	// ID is returned in Answer.RequestID and Error.RequestID. Empty is an ID like any other.
	ID string
	// SchemaDeltas asks for Answer.SchemaDeltas.
	SchemaDeltas bool
	// Trace asks for a trace of the run: Answer.Trace and Error.Trace. Options.AllowRequestTrace permits it;
	// otherwise the request fails with ErrInvalidRequest.
	Trace bool
	// Explain asks for Answer.Explanation: of all rows, or of ids. Options.AllowRequestExplain permits it; otherwise the
	// request fails with ErrInvalidRequest.
	Explain Explain

	// Require names nodes of the plan by their ids or labels (the common parameter "trace"). If such a node fails, or lacks
	// rows, the request fails, though the plan would go on without it. The plan waits for it even if it is optional.
	Require []string

	// Flow says whose request this is, if it has to wait for Options.MaxInflight: callers take turns, and so do the connections
	// of each. Two requests of one user of the library need not wait in line if they have different flows. The zero value is a flow
	// like any other.
	Flow Flow

	// Of a request that ParseRequest has made. Context and Params come on top.
	parsed expr.Params
}

// Flow names a caller and one of its connections by two numbers of the program's choice: see Request.Flow. Requests without a
// caller, number 0, take turns by connection.
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
	p, err := e.requests.Parse(doc, g)
	if err != nil {
		return Request{}, Refused(err)
	}
	r := Request{Plan: p.Plan, UserID: p.UserID, Timeout: p.Timeout, Scheduling: SchedulingMode(p.Scheduling), ID: p.RequestID, Trace: p.Trace, Explain: p.Explain, Require: p.Require, parsed: p.Params}
	if refused := e.check(&r); refused != nil {
		return Request{}, refused
	}
	return r, nil
}

// check returns the *Error of a request that no engine can run, or that asks for what this one does not let requests choose.
func (e *Engine) check(r *Request) *Error {
	err := request.CheckUserID(r.UserID)
	if err == nil && r.Timeout < 0 {
		err = fmt.Errorf("Timeout must not be negative, got %v", r.Timeout)
	}
	for _, field := range [...]struct {
		name           string
		asked, allowed bool
	}{
		{"scheduling", r.Scheduling != "", e.options.AllowRequestScheduling},
		{"trace", r.Trace, e.options.AllowRequestTrace},
		{"explain", r.Explain.Asked(), e.options.AllowRequestExplain},
	} {
		if err == nil && field.asked && !field.allowed {
			err = fmt.Errorf("this engine does not allow %q in requests", field.name)
		}
	}
	if err == nil && r.Scheduling != "" {
		if fault := r.Scheduling.Check(); fault != nil {
			err = fmt.Errorf("scheduling %w", fault)
		}
	}
	if n := len(r.Explain.IDs); err == nil && n > request.ExplainIDsMax {
		err = fmt.Errorf("explain has %d ids, and may have %d", n, request.ExplainIDsMax)
	}
	if err != nil {
		return invalid(r.ID, request.CodeInvalid, err)
	}
	return nil
}

// Explain says what a request wants to have explained: all rows of the answer, or ids. The zero value is nothing.
type Explain = request.Explain

// params returns the request's checked parameters: its context, and what it overrides.
func (e *Engine) params(r *Request) (expr.Params, *Error) {
	params := r.parsed
	var err error
	if len(r.Context) > 0 {
		if params, err = request.Context(params, r.Context, e.registry); err != nil {
			return expr.Params{}, invalid(r.ID, request.CodeInvalid, err)
		}
	}
	if len(r.Params) > 0 {
		if params, err = request.Override(params, r.Params, e.registry); err != nil {
			return expr.Params{}, invalid(r.ID, request.CodeInvalidParams, err)
		}
	}
	return params, nil
}
