package request

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Member is one member of a request's document. Immutable; any goroutine.
type Member struct {
	Name   string
	Schema map[string]any // of JSON Schema; nobody changes it
	Text   string         // one or more sentences for the documentation

	read func(*reading, *jsondoc.Value) *Error // reads a value that is not null, or a required one; nil: it was read before the others
}

// The name of the one member that a document must have, unless the user is given.
const requiredMember = "user_id"

// Required reports whether the document must have the member.
func (m *Member) Required() bool { return m.Name == requiredMember }

// members are all members that Parse reads, in the order in which it checks them. A new one needs a row here and a
// field of Request.
var members = [...]Member{
	{requiredMember, map[string]any{"oneOf": []map[string]any{
		{"type": "integer", "minimum": 1, "maximum": int64(UserIDMax)}, {"type": "string", "minLength": 1},
	}}, fmt.Sprintf("The user to rank for: an integer, or a string of its digits. Where the ids of the entity user are strings: a string of at most %d bytes.",
		rowset.IDBytesMax), (*reading).userID},
	{"request_id", map[string]any{"type": "string"}, "The answer repeats it. One is generated if it is missing.", nil},
	{"context", map[string]any{"type": []string{"object", "null"}}, "What the caller knows about the request, by the names of parameters.", (*reading).context},
	{"param_overrides", map[string]any{"type": []string{"object", "null"}}, "Parameters by name. A caller needs permission for each.", (*reading).overrides},
	{"plan", map[string]any{"type": "string"}, "The name of the plan. A plan in the path must be the same.", (*reading).plan},
	{"deadline_ms", map[string]any{"type": "integer", "minimum": 1}, "How long the answer may take. The header X-Request-Timeout-Ms can only shorten it.", (*reading).timeout},
	{"scheduling", map[string]any{"type": "string"}, "Where the nodes run. A caller needs permission.", (*reading).scheduling},
	{"plan_version", map[string]any{"type": "boolean"}, "Whether the answer says which plan has made it: name, digests, and the side of an alias.", (*reading).planVersion},
	{"trace", map[string]any{"type": "boolean"}, "Whether the answer says what ran when. A caller needs permission.", (*reading).trace},
	{"explain", map[string]any{"oneOf": []map[string]any{{"type": "boolean"}, {"type": "array", "items": map[string]any{"type": []string{"integer", "string"}}}}},
		"Whether the answer says why its rows are where they are, or these ids. A caller needs permission.", (*reading).explain},
	{"now", map[string]any{"type": []string{"string", "number"}}, "What now() is in the plan: a date of RFC 3339, or seconds since 1970. A caller needs permission.", (*reading).now},
	{"consent", map[string]any{"type": "boolean"}, "Whether the user agrees to a line in the log of what was served: false means none.", (*reading).consent},
	{"traffic", map[string]any{"type": "string", "enum": Traffics}, "What the request is if it is not a user's, for the log of what was served. A caller needs permission.", (*reading).traffic},
	{"require", map[string]any{"type": []string{"array", "null"}, "items": map[string]any{"type": "string"}}, "Nodes, by id or label, without which the request fails.", (*reading).require},
}

// memberNames are the names of members. Immutable.
var memberNames = func() (names []string) {
	for i := range members {
		names = append(names, members[i].Name)
	}
	return names
}()

// Members returns the members of a request's document in the order in which Parse checks them. Any goroutine.
func Members() []Member { return slices.Clone(members[:]) }

// reading is a document being read. It is reused. One goroutine at a time.
type reading struct {
	document jsondoc.Parser
	root     jsondoc.Value
	req      Request
	given    Given
	registry *registry.Registry
	parser   *Parser // whose reading it is
}

// members reads the members of the document, up to the first fault.
func (r *reading) members() *Error {
	for i := range members {
		m := &members[i]
		v := r.root.Get(m.Name)
		switch {
		case m.read == nil:
			continue
		case v == nil && m.Required() && (!r.given.hasUser() || r.root.Kind != jsondoc.Object):
			return refuse(CodeInvalid, &r.root, "missing required field: %s", m.Name)
		case v == nil || v.Kind == jsondoc.Null && !m.Required():
			continue
		}
		if refused := m.read(r, v); refused != nil {
			return refused
		}
	}
	return r.unknown()
}

// slip returns the most edits between a mistyped name and the known one: a single one for a short name, since two lead from
// "page" to "plan".
func slip(name string) int {
	if len(name) <= 5 {
		return 1
	}
	return 2
}

// unknown refuses the first unknown member that is not permitted.
func (r *reading) unknown() *Error {
	if r.given.Unknown == IgnoreUnknown {
		return nil
	}
	for i := range r.root.Members {
		name, v := r.root.Members[i].Name, &r.root.Members[i].Value
		if slices.ContainsFunc(members[:], func(m Member) bool { return m.Name == name }) {
			continue
		}
		if near, ok := errtext.NearestWithin(slip(name), name, memberNames); ok {
			return refuse(CodeInvalid, v, "unknown field %s; did you mean %s?", errtext.Quote(name), near)
		}
		if r.given.Unknown == RefuseUnknown {
			return refuse(CodeInvalid, v, "unknown field %s; a request has %s", errtext.Quote(name), strings.Join(memberNames, ", "))
		}
	}
	return nil
}

func (r *reading) context(v *jsondoc.Value) *Error { return r.values(v, &byContext) }

// overrides take precedence over the context.
func (r *reading) overrides(v *jsondoc.Value) *Error { return r.values(v, &byOverride) }

// values sets the parameters of a member of the request: its context or its param_overrides.
func (r *reading) values(v *jsondoc.Value, by *setter) *Error {
	if v.Kind != jsondoc.Object {
		return refuse(by.code, v, "%s must be an object or null, got %s", by.member, v.Describe())
	}
	// Only the last of several members with one name is checked, so find those first. There are few parameters, so a
	// list is enough: an unknown name ends the search, however long the object is.
	type given struct {
		param *registry.Param
		value *jsondoc.Value
	}
	var values []given
members:
	for i := range v.Members {
		m := &v.Members[i]
		if by == &byOverride && r.given.hides(m.Name) {
			return refuse(CodeForbidden, &m.Value, "param_overrides sets %s, and the caller may not set it", errtext.Quote(m.Name))
		}
		param, err := by.param(r.registry, m.Name)
		if param != nil && err != nil && r.given.hides(m.Name) {
			err = by.unknown(r.registry, m.Name)
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
		if err := by.set(&r.req.parsed, g.param, g.value); err != nil {
			return refuse(by.code, g.value, "%v", err)
		}
	}
	return nil
}

func (r *reading) plan(v *jsondoc.Value) *Error {
	switch {
	case v.Kind != jsondoc.String || v.Str == "":
		return refuse(CodeInvalid, v, "plan must be the name of a plan")
	case r.given.Plan != "" && v.Str != r.given.Plan:
		return refuse(CodeInvalid, v, "plan is %s, and the request came for plan %s", errtext.Quote(v.Str), errtext.Quote(r.given.Plan))
	default:
		r.req.Plan = v.Str
	}
	return nil
}

func (r *reading) timeout(v *jsondoc.Value) *Error {
	switch {
	case v.Kind != jsondoc.Uint || v.Uint == 0:
		return refuse(CodeInvalid, v, "deadline_ms must be an integer from 1 to %d", uint64(math.MaxUint64))
	default:
		ms := min(v.Uint, uint64(math.MaxInt64/time.Millisecond))
		r.req.Timeout = time.Duration(ms) * time.Millisecond
	}
	return nil
}

func (r *reading) scheduling(v *jsondoc.Value) *Error {
	switch {
	case v.Kind != jsondoc.String || v.Str == "":
		return refuse(CodeInvalid, v, "scheduling must be the name of a scheduling mode")
	default:
		r.req.Scheduling = plan.Mode(v.Str)
	}
	return nil
}

func (r *reading) trace(v *jsondoc.Value) *Error { return r.flag(v, "trace", &r.req.Trace) }

func (r *reading) consent(v *jsondoc.Value) *Error {
	var agreed bool
	refused := r.flag(v, "consent", &agreed)
	r.req.NoConsent = !agreed
	return refused
}

func (r *reading) traffic(v *jsondoc.Value) *Error {
	if v.Kind != jsondoc.String || !slices.Contains(Traffics, v.Str) {
		return refuse(CodeInvalid, v, "traffic must be one of %s", strings.Join(Traffics, ", "))
	}
	r.req.Traffic = v.Str
	return nil
}

func (r *reading) planVersion(v *jsondoc.Value) *Error {
	return r.flag(v, "plan_version", &r.req.PlanVersion)
}

// flag reads a member that is true or false.
func (r *reading) flag(v *jsondoc.Value, name string, into *bool) *Error {
	if v.Kind != jsondoc.Bool {
		return refuse(CodeInvalid, v, "%s must be true or false", name)
	}
	*into = v.Bool
	return nil
}

func (r *reading) explain(v *jsondoc.Value) *Error {
	switch {
	case v.Kind == jsondoc.Bool:
		r.req.Explain.All = v.Bool
	case v.Kind == jsondoc.Array:
		return r.explainIDs(v)
	default:
		return refuse(CodeInvalid, v, "explain must be true, false or a list of ids, got %s", v.Describe())
	}
	return nil
}

func (r *reading) now(v *jsondoc.Value) (refused *Error) {
	var text string
	switch v.Kind {
	case jsondoc.String:
		text = v.Str
	case jsondoc.Int:
		text = strconv.FormatInt(v.Int, 10)
	case jsondoc.Uint:
		text = strconv.FormatUint(v.Uint, 10)
	case jsondoc.Float:
		text = strconv.FormatFloat(v.Float, 'f', -1, 64)
	}
	var err error
	if r.req.Now, err = ParseNow(text); err != nil {
		return refuse(CodeInvalid, v, "now must be %s, got %s", nowForm, v.Describe())
	}
	return nil
}

// The range of instants for a request: a double holds their seconds to the microsecond, and dates can show their
// years.
var (
	nowLeast = time.Date(1, time.January, 2, 0, 0, 0, 0, time.UTC)
	nowMost  = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)
)

const nowForm = "a date such as \"2026-03-01T12:00:00Z\", or seconds since 1970, before the year 2200"

// ParseNow reads an instant for Request.Now: a date of RFC 3339, or a number of seconds since 1970. The error says which texts it takes.
// Any goroutine.
func ParseNow(text string) (time.Time, error) {
	now, err := time.Parse(time.RFC3339Nano, text)
	if seconds, bad := strconv.ParseFloat(text, 64); bad == nil && math.Abs(seconds) < 1e11 {
		now, err = time.UnixMicro(int64(math.Round(seconds*1e6))), nil
	}
	if err != nil || now.Before(nowLeast) || !now.Before(nowMost) {
		return time.Time{}, errors.New("an instant is " + nowForm)
	}
	return now.UTC(), nil
}

func (r *reading) explainIDs(v *jsondoc.Value) *Error {
	if len(v.Items) == 0 || len(v.Items) > ExplainIDsMax {
		return refuse(CodeInvalid, v, "explain must list 1 to %d ids, got %d", ExplainIDsMax, len(v.Items))
	}
	for i := range v.Items {
		switch id := &v.Items[i]; {
		case id.Kind == jsondoc.Int:
			r.req.Explain.IDs = append(r.req.Explain.IDs, id.Int)
		case id.Kind == jsondoc.Uint && id.Uint <= math.MaxInt64:
			r.req.Explain.IDs = append(r.req.Explain.IDs, int64(id.Uint))
		case id.Kind == jsondoc.String && len(r.registry.Entities()) > 0:
			r.req.Explain.Items = append(r.req.Explain.Items, id.Str)
		default:
			return refuse(CodeInvalid, id, "explain[%d] must be an integer of 64 bits, got %s", i, id.Describe())
		}
	}
	return nil
}

func (r *reading) require(v *jsondoc.Value) *Error {
	switch {
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
		r.req.Require = append(r.req.Require, item.Str)
	}
	return nil
}

// refuse returns the error for a fault at v. The caller fills in the request's id.
func refuse(code string, v *jsondoc.Value, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...), Offset: int64(v.Offset)}
}
