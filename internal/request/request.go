package request

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// Request asks for one ranking. The same object goes from the front to the answer: a program fills it in, or Parse
// does. The engine does not change it. One goroutine at a time.
type Request struct {
	// Plan names the plan. Empty means the engine's own choice, Options.Plan or PlanFile.
	Plan string
	// UserID is the user to rank for, from 1 to 2^32-1. It is zero where the registry's entity registry.UserEntity has strings as ids.
	UserID int64
	// UserIDText is the user if users have strings as ids: 1 to 256 bytes of UTF-8.
	UserIDText string
	// Context has what the caller knows about this request, such as the hour or the items that the user has seen. It
	// has parameters that the registry marks with context, by name. Values are as in Params.
	Context map[string]any
	// Params override request parameters by name, on top of the context. A value is a number (of any integer or
	// float type, or a json.Number), a string, a bool, a slice of integers or strings, or nil for null.
	Params map[string]any
	// Timeout bounds this request, from its arrival. Zero means no bound of its own. A negative
	// one is an error of class ErrInvalidRequest.
	Timeout time.Duration
	// Scheduling is the mode of this request. Empty means the engine's. Options.AllowRequestScheduling
	// permits it; otherwise the request fails with ErrInvalidRequest.
	Scheduling plan.Mode
	// ID is returned in Answer.RequestID and Error.RequestID. Empty is an ID like any other.
	ID string
	// SchemaDeltas asks for Answer.SchemaDeltas.
	SchemaDeltas bool
	// PlanVersion makes the JSON of the answer show Answer.Version. An answer to a request for an alias always shows
	// it.
	PlanVersion bool
	// Trace asks for a trace of the run: Answer.Trace and Error.Trace. Options.AllowRequestTrace permits it;
	// otherwise the request fails with ErrInvalidRequest.
	Trace bool
	// Explain asks for Answer.Explanation: of all rows, or of ids. Options.AllowRequestExplain permits it; otherwise the
	// request fails with ErrInvalidRequest.
	Explain Explain

	// Now is what now() is in the plan. Zero means the present instant. Timers, deadlines, ages of cached rows and traces keep to the engine's
	// clocks. Options.AllowRequestNow permits it; otherwise the request fails with ErrInvalidRequest.
	Now time.Time

	// NoConsent says that the user agrees to no log: the log of served rows has no line of this request.
	NoConsent bool
	// Traffic says what the request is if it is not a user's: "test", "bot" or "internal". The log of served rows shows
	// it. Options.AllowRequestTraffic permits it; otherwise the request fails with ErrInvalidRequest.
	Traffic string

	// Require names nodes of the plan by their ids or labels (the common parameter "trace"). If such a node fails, or
	// has a shortfall, the request fails, even though the plan would go on. The plan waits for it even if it is
	// optional.
	Require []string

	// Flow says whose request this is, in case it has to wait for Options.MaxInflight: callers take turns, and so do
	// the connections of each. Two requests of one user of the library do not wait for each other if they have
	// different flows. The zero value is a flow like any other.
	Flow Flow

	parsed expr.Params // what the document sets; Context and Params take precedence
	parser *Parser     // the one that has filled in parsed; nil: parsed is empty
}

// AppendUser appends the user of a request as text: the digits of an integer.
func AppendUser(dst []byte, r *Request) []byte {
	if r.UserIDText != "" {
		return append(dst, r.UserIDText...)
	}
	return strconv.AppendInt(dst, r.UserID, 10)
}

// Values returns the values of a request's parameters: those of its document, its Context and its Params, and the
// registry's defaults of the others. They include the user's id if that is a text.
func Values(r *Request, reg *registry.Registry) (expr.Params, *Error) {
	params := r.parsed
	params.SetUser(r.UserIDText)
	if len(r.Context) == 0 && len(r.Params) == 0 { // Usually.
		return withDefaults(params, reg), nil
	}
	for _, given := range [...]struct {
		by     *setter
		values map[string]any
	}{{&byContext, r.Context}, {&byOverride, r.Params}} {
		if len(given.values) == 0 {
			continue
		}
		var err error
		if params, err = given.by.values(params, given.values, reg); err != nil {
			return expr.Params{}, &Error{RequestID: r.ID, Code: given.by.code, Detail: err.Error(), Offset: -1}
		}
	}
	return withDefaults(params, reg), nil
}

// withDefaults returns params with the registry's defaults of those that are null.
func withDefaults(params expr.Params, reg *registry.Registry) expr.Params {
	cloned := false
	for _, p := range reg.Defaults() {
		if params.Has(p.ID) {
			continue
		}
		if !cloned { // The document's values belong to the request, which may run again.
			params, cloned = params.Clone(), true
		}
		switch v := p.Default.(type) {
		case int64:
			params.SetInt(p.ID, v)
		case float64:
			params.SetFloat(p.ID, v)
		case string:
			params.SetString(p.ID, v)
		case bool:
			params.SetBool(p.ID, v)
		}
	}
	return params
}

// Check returns an error if a request has a value that no engine with that registry accepts.
func Check(r *Request, reg *registry.Registry) *Error {
	detail := userFault(r, reg)
	switch n := len(r.Explain.IDs) + len(r.Explain.Items); {
	case detail != "":
	case r.Traffic != "" && !slices.Contains(Traffics, r.Traffic):
		detail = "traffic must be one of " + strings.Join(Traffics, ", ") + ", not " + errtext.Quote(r.Traffic)
	case r.Timeout < 0:
		detail = fmt.Sprintf("Timeout must not be negative, got %v", r.Timeout)
	case n > ExplainIDsMax:
		detail = fmt.Sprintf("explain has %d ids, and may have %d", n, ExplainIDsMax)
	default:
		return nil
	}
	return &Error{RequestID: r.ID, Code: CodeInvalid, Detail: detail, Offset: -1}
}

// Traffics are the values of Request.Traffic, besides none. Immutable.
var Traffics = []string{"test", "bot", "internal"}

// Explain says what a request wants to have explained. The zero value is nothing. Immutable; any goroutine.
type Explain struct {
	All bool    // the rows of the answer
	IDs []int64 // these ids, in the answer or not
	// Items are ids, too: of an entity, as in "product:7" or "product:sku-1", or of any entity whose ids are strings, as in "sku-1".
	Items []string
}

// Asked reports whether there is something to explain.
func (e *Explain) Asked() bool { return e.All || len(e.IDs)+len(e.Items) > 0 }

// ExplainIDsMax bounds the ids that a request may have explained.
const ExplainIDsMax = 100

// RequireMax is how many nodes a request may require.
const RequireMax = 64

// Flow says whose a request is: waiting requests take turns by caller, and those of one caller by connection. The numbers
// mean nothing but themselves. Requests without a caller, number 0, take turns by connection alone. The zero value is a
// flow like any other. Immutable; any goroutine.
type Flow struct{ Caller, Connection uint64 }
