package request

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// Parsed is one checked request. Immutable once built; any goroutine.
type Parsed struct {
	RequestID string        // the request's own, may be empty; generated if absent or not a string
	UserID    int64         // 1 … 2^32-1
	Params    expr.Params   // context, and param_overrides on top
	Plan      string        // name of a plan; empty means the caller's choice
	Timeout   time.Duration // deadline_ms, from the request's arrival; 0 means none
	// Scheduling is the name of a scheduling mode, which the caller checks; empty means the
	// caller's choice.
	Scheduling string
	// Trace asks for a trace of the run in the answer. The caller checks whether it may.
	Trace bool
	// Explain asks why rows are in the answer, or are not. The caller checks whether it may.
	Explain Explain
	// Require names nodes by id or label. The caller checks whether the plan has them.
	Require []string
}

// Explain says what a request wants to have explained. The zero value is nothing. Immutable; any goroutine.
type Explain struct {
	All bool    // the rows of the answer
	IDs []int64 // these ids, in the answer or not
}

// Asked reports whether there is something to explain.
func (e *Explain) Asked() bool { return e.All || len(e.IDs) > 0 }

// ExplainIDsMax bounds the ids that a request may have explained.
const ExplainIDsMax = 100

// RequireMax is how many nodes a request may require.
const RequireMax = 64

// UserIDMax is the largest user_id that a request may carry.
const UserIDMax = math.MaxUint32

// Given has what is known of a request beside its document, such as the path or the command that it came with. A zero field is
// not known. Immutable; any goroutine.
type Given struct {
	UserID    int64  // the document need not say it then, and must not say another one
	Plan      string // as UserID
	RequestID string // of a document that has none
	// Overrides says which parameters may stand in param_overrides. The error about another one is the same whether that exists or not.
	// Nil: all may.
	Overrides interface{ MayOverride(param string) bool }
}

// hides reports whether nobody may learn from an error whether there is such a parameter.
func (g *Given) hides(param string) bool {
	return g.Overrides != nil && !g.Overrides.MayOverride(param)
}

// Parse checks one document of which nothing else is known. Any goroutine.
func Parse(doc []byte, reg *registry.Registry) (Parsed, error) {
	return NewParser(reg).Parse(doc, Given{})
}

// A Parser checks requests against one registry, with memory that it uses again. Any goroutine.
type Parser struct {
	registry  *registry.Registry
	documents sync.Pool // of *jsondoc.Parser
}

// NewParser returns a parser of requests.
func NewParser(reg *registry.Registry) *Parser {
	return &Parser{registry: reg, documents: sync.Pool{New: func() any { return new(jsondoc.Parser) }}}
}

// Parse checks one document. It may be empty if the user is given.
//
// Parse checks in a fixed order and reports the first fault: syntax, user_id, context,
// param_overrides, plan, deadline_ms, scheduling, trace, explain, require. The error is an *Error. Stream.Locate adds the line
// of the input to a syntax error.
//
// The last of several members with the same name counts. Parse ignores unknown members.
// A null context, param_overrides, plan, deadline_ms, scheduling, trace, explain or require is the same as none.
func (p *Parser) Parse(doc []byte, g Given) (Parsed, error) {
	if len(doc) == 0 && g.UserID != 0 {
		return Parsed{RequestID: g.requestID(), UserID: g.UserID, Plan: g.Plan}, nil
	}
	document, reg := p.documents.Get().(*jsondoc.Parser), p.registry
	root, err := document.Parse(doc)
	p.documents.Put(document)
	if err != nil {
		return Parsed{}, syntaxError(err, g.requestID())
	}
	req := Parsed{RequestID: g.requestIDOf(&root)}
	refused := req.readUserID(&root, g.UserID)
	if refused == nil {
		refused = req.readValues(&root, &byContext, reg, &g)
	}
	if refused == nil {
		refused = req.readValues(&root, &byOverride, reg, &g) // on top of the context
	}
	if refused == nil {
		refused = req.readPlan(&root, g.Plan)
	}
	if refused == nil {
		refused = req.readTimeout(&root)
	}
	if refused == nil {
		refused = req.readScheduling(&root)
	}
	if refused == nil {
		refused = req.readTrace(&root)
	}
	if refused == nil {
		refused = req.readExplain(&root)
	}
	if refused == nil {
		refused = req.readRequire(&root)
	}
	if refused != nil {
		refused.RequestID = req.RequestID
		return Parsed{}, refused
	}
	return req, nil
}

func syntaxError(err error, requestID string) *Error {
	refused := &Error{RequestID: requestID, Code: CodeInvalidJSON, Detail: err.Error(), Offset: -1}
	var syntax *jsondoc.SyntaxError
	if errors.As(err, &syntax) {
		refused.Offset = syntax.Offset
		refused.Detail = fmt.Sprintf("%s at byte offset %d of the document", syntax.Msg, syntax.Offset)
	}
	return refused
}

// requestID returns the id of a request whose document has none.
func (g *Given) requestID() string {
	if g.RequestID != "" {
		return g.RequestID
	}
	return NewID()
}

func (g *Given) requestIDOf(root *jsondoc.Value) string {
	if v := root.Get("request_id"); v != nil && v.Kind == jsondoc.String {
		return v.Str
	}
	return g.requestID()
}

// UserID reads a user id from text, such as an argument of a command: as "user_id" of a document may be a string. The error is an
// *Error without a RequestID. Any goroutine.
func UserID(text []byte) (int64, error) {
	id, ok := decimalID(text)
	if !ok {
		return 0, &Error{Code: CodeInvalid, Detail: badDecimal(string(text)), Offset: -1}
	}
	return id, nil
}

// CheckUserID returns an error unless id is a user id that a request may carry. Any goroutine.
func CheckUserID(id int64) error {
	if id < 1 || id > UserIDMax {
		return badUserID(id)
	}
	return nil
}

// badUserID returns the error for a number that is not a user id.
func badUserID[T int64 | uint64 | string](got T) error {
	return fmt.Errorf("user_id must be an integer from 1 to %d, got %v", int64(UserIDMax), got)
}

func badDecimal(text string) string {
	return fmt.Sprintf("user_id as a string must be decimal digits for an integer from 1 to %d, got %s", int64(UserIDMax), excerpt.Quote(text))
}

// readUserID reads the user, which is given if it is not zero.
func (r *Parsed) readUserID(root *jsondoc.Value, given int64) *Error {
	v := root.Get("user_id")
	if v == nil && given != 0 && root.Kind == jsondoc.Object {
		r.UserID = given
		return nil
	}
	if v == nil {
		return refuse(CodeInvalid, root, "missing required field: user_id")
	}
	switch v.Kind {
	case jsondoc.Uint:
		if v.Uint < 1 || v.Uint > UserIDMax {
			return refuse(CodeInvalid, v, "%v", badUserID(v.Uint))
		}
		r.UserID = int64(v.Uint)
	case jsondoc.Int:
		return refuse(CodeInvalid, v, "%v", badUserID(v.Int))
	case jsondoc.String:
		id, ok := decimalID(v.Str)
		if !ok {
			return refuse(CodeInvalid, v, "%s", badDecimal(v.Str))
		}
		r.UserID = id
	case jsondoc.Float:
		if v.Float < 1 || v.Float > UserIDMax {
			// An integer literal beyond 64 bits is a Float, too, so the text does not speak of literals.
			return refuse(CodeInvalid, v, "%v", badUserID("a number out of that range"))
		}
		fallthrough
	default:
		return refuse(CodeInvalid, v, "user_id must be an integer or a string of decimal digits, got %s", v.Describe())
	}
	if given != 0 && r.UserID != given {
		return refuse(CodeInvalid, v, "user_id is %d, and the request came for user %d", r.UserID, given)
	}
	return nil
}

// decimalID reads a user id from ASCII digits, with any number of leading zeros.
func decimalID[T string | []byte](s T) (int64, bool) {
	var id int64
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		if id = id*10 + int64(s[i]-'0'); id > UserIDMax {
			return 0, false
		}
	}
	return id, id > 0
}

// readValues sets the parameters of a member of the request: its context or its param_overrides.
func (r *Parsed) readValues(root *jsondoc.Value, by *setter, reg *registry.Registry, g *Given) *Error {
	v := root.Get(by.member)
	if v == nil || v.Kind == jsondoc.Null {
		return nil
	}
	if v.Kind != jsondoc.Object {
		return refuse(by.code, v, "%s must be an object or null, got %s", by.member, v.Describe())
	}
	// Only the last of several members with one name is checked, so find those first.
	// There are few parameters, so a list serves: an unknown name ends the search,
	// however long the object is.
	type given struct {
		param *registry.Param
		value *jsondoc.Value
	}
	var values []given
members:
	for i := range v.Members {
		m := &v.Members[i]
		if by == &byOverride && g.hides(m.Name) {
			return refuse(CodeForbidden, &m.Value, "param_overrides sets %s, and the caller may not set it", excerpt.Quote(m.Name))
		}
		param, err := by.param(reg, m.Name)
		if param != nil && err != nil && g.hides(m.Name) {
			err = by.unknown(m.Name)
		}
		if err != nil {
			return refuse(by.code, &m.Value, "%v", err)
		}
		for j := range values {
			if values[j].param == param {
				values[j].value = &m.Value
				continue members
			}
		}
		values = append(values, given{param, &m.Value})
	}
	for _, g := range values {
		if err := by.set(&r.Params, g.param, g.value); err != nil {
			return refuse(by.code, g.value, "%v", err)
		}
	}
	return nil
}

// readPlan reads the name of the plan, which is given if it is not empty.
func (r *Parsed) readPlan(root *jsondoc.Value, given string) *Error {
	v := root.Get("plan")
	switch {
	case v == nil || v.Kind == jsondoc.Null:
		r.Plan = given
	case v.Kind != jsondoc.String || v.Str == "":
		return refuse(CodeInvalid, v, "plan must be the name of a plan")
	case given != "" && v.Str != given:
		return refuse(CodeInvalid, v, "plan is %s, and the request came for plan %s", excerpt.Quote(v.Str), excerpt.Quote(given))
	default:
		r.Plan = v.Str
	}
	return nil
}

func (r *Parsed) readTimeout(root *jsondoc.Value) *Error {
	v := root.Get("deadline_ms")
	switch {
	case v == nil || v.Kind == jsondoc.Null:
	case v.Kind != jsondoc.Uint || v.Uint == 0:
		return refuse(CodeInvalid, v, "deadline_ms must be an integer from 1 to %d", uint64(math.MaxUint64))
	default:
		ms := min(v.Uint, uint64(math.MaxInt64/time.Millisecond))
		r.Timeout = time.Duration(ms) * time.Millisecond
	}
	return nil
}

func (r *Parsed) readScheduling(root *jsondoc.Value) *Error {
	v := root.Get("scheduling")
	switch {
	case v == nil || v.Kind == jsondoc.Null:
	case v.Kind != jsondoc.String || v.Str == "":
		return refuse(CodeInvalid, v, "scheduling must be the name of a scheduling mode")
	default:
		r.Scheduling = v.Str
	}
	return nil
}

func (r *Parsed) readTrace(root *jsondoc.Value) *Error {
	v := root.Get("trace")
	switch {
	case v == nil || v.Kind == jsondoc.Null:
	case v.Kind != jsondoc.Bool:
		return refuse(CodeInvalid, v, "trace must be true or false")
	default:
		r.Trace = v.Bool
	}
	return nil
}

func (r *Parsed) readExplain(root *jsondoc.Value) *Error {
	v := root.Get("explain")
	switch {
	case v == nil || v.Kind == jsondoc.Null:
	case v.Kind == jsondoc.Bool:
		r.Explain.All = v.Bool
	case v.Kind == jsondoc.Array:
		return r.readExplainIDs(v)
	default:
		return refuse(CodeInvalid, v, "explain must be true, false or a list of ids, got %s", v.Describe())
	}
	return nil
}

func (r *Parsed) readExplainIDs(v *jsondoc.Value) *Error {
	if len(v.Items) == 0 || len(v.Items) > ExplainIDsMax {
		return refuse(CodeInvalid, v, "explain must list 1 to %d ids, got %d", ExplainIDsMax, len(v.Items))
	}
	for i := range v.Items {
		switch id := &v.Items[i]; {
		case id.Kind == jsondoc.Int:
			r.Explain.IDs = append(r.Explain.IDs, id.Int)
		case id.Kind == jsondoc.Uint && id.Uint <= math.MaxInt64:
			r.Explain.IDs = append(r.Explain.IDs, int64(id.Uint))
		default:
			return refuse(CodeInvalid, id, "explain[%d] must be an integer of 64 bits, got %s", i, id.Describe())
		}
	}
	return nil
}

func (r *Parsed) readRequire(root *jsondoc.Value) *Error {
	v := root.Get("require")
	switch {
	case v == nil || v.Kind == jsondoc.Null:
		return nil
	case v.Kind != jsondoc.Array:
		return refuse(CodeInvalid, v, "require must be an array of nodes, got %s", v.Describe())
	case len(v.Items) > RequireMax:
		return refuse(CodeInvalid, v, "require must name at most %d nodes, got %d", RequireMax, len(v.Items))
	}
	for i := range v.Items {
		item := &v.Items[i]
		if item.Kind != jsondoc.String {
			return refuse(CodeInvalid, item, "require[%d] must be the id or the label of a node, got %s", i, item.Describe())
		}
		r.Require = append(r.Require, item.Str)
	}
	return nil
}

// refuse returns the error for a fault at v. The caller fills in the request's id.
func refuse(code string, v *jsondoc.Value, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...), Offset: int64(v.Offset)}
}
