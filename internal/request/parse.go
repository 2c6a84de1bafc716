package request

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// Given has what is known about a request besides its document, for example from the path or the command. A zero
// field is not known. Immutable; any goroutine.
type Given struct {
	UserID     int64  // the document may then omit it, and must not have another one; see SetUserID
	UserIDText string // as UserID, where the registry's users have texts as ids
	Plan       string // as UserID
	RequestID  string // of a document that has none
	// Overrides says which parameters param_overrides may have. The error about another one is the same whether that
	// exists or not. Nil: all are allowed.
	Overrides interface{ MayOverride(param string) bool }
	// Unknown says how to treat a document with members that Parse does not know.
	Unknown Unknown
}

// Unknown says how to treat a document with a member that is not one of Members. Immutable; any goroutine.
type Unknown uint8

// The ways to treat an unknown member.
const (
	IgnoreUnknown Unknown = iota // as the original does
	RefuseNear                   // refuse a name within two edits of a known one
	RefuseUnknown                // refuse all
)

// hides reports whether errors must not reveal if such a parameter exists.
func (g *Given) hides(param string) bool {
	return g.Overrides != nil && !g.Overrides.MayOverride(param)
}

// A Parser checks requests against one registry, with memory that it reuses. Any goroutine.
type Parser struct {
	readings sync.Pool // of *reading
}

// NewParser returns a parser of requests.
func NewParser(reg *registry.Registry) *Parser {
	p := new(Parser)
	p.readings.New = func() any { return &reading{registry: reg, parser: p} }
	return p
}

// Understands reports whether p may read a request: p has parsed it, or a program has filled it in. A request of
// another Parser has parameter numbers that may mean something else in p's registry.
func (p *Parser) Understands(r *Request) bool { return r.parser == nil || r.parser == p }

// Parse checks one document. It may be empty if the user is given.
//
// Parse checks the syntax, then the members in the order of Members, and reports the first fault. The error is an *Error.
// Stream.Locate adds the line of the input to a syntax error.
//
// The last of several members with the same name counts. Given.Unknown says how to treat unknown members. A null
// member counts as absent, except for user_id.
func (p *Parser) Parse(doc []byte, g Given) (Request, error) {
	if len(doc) == 0 && g.hasUser() {
		return g.request(g.requestID()), nil
	}
	r := p.readings.Get().(*reading)
	defer p.readings.Put(r)
	return r.parse(doc, g)
}

func (r *reading) parse(doc []byte, g Given) (req Request, err error) {
	if r.root, err = r.document.Parse(doc); err != nil {
		return Request{}, syntaxError(err, g.requestID())
	}
	r.req, r.given = g.request(g.requestIDOf(&r.root)), g
	if refused := r.members(); refused != nil {
		refused.RequestID = r.req.ID
		err = refused
	} else {
		if req = r.req; req.parsed.Any() {
			req.parser = r.parser
		}
	}
	r.root, r.req, r.given = jsondoc.Value{}, Request{}, Given{}
	return req, err
}

// request returns what is known of a request.
func (g *Given) request(id string) Request {
	return Request{ID: id, UserID: g.UserID, UserIDText: g.UserIDText, Plan: g.Plan}
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
