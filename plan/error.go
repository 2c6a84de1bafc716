package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/errtext"
)

// Error says why an artifact was refused. Immutable once built; any goroutine.
type Error struct {
	File  string
	Node  string // id of the node; "" if the fault is not in a node
	Field string // path: "nodes[2].params.fanout", "expr_table.e1.a"; "" for the whole file
	Msg   string
	Code  string // what is wrong with the value: a Fault constant; "" for other faults

	// SourceSpan is the place in the plan's source that made the node, as in Node; "" if there is none.
	SourceSpan string

	// Others are the further faults of the artifact, in order, without Others of their own. Error does not name them.
	Others []*Error
}

// The codes of faults of one value.
const (
	FaultMissing = "missing" // it has to be there
	FaultType    = "type"
	FaultRange   = "range" // a number, or a number of items
	FaultEnum    = "enum"  // a text that is not one of several
	FaultKey     = "key"   // a key that the task cannot use
)

// All returns the error and its Others.
func (e *Error) All() []*Error { return append([]*Error{e}, e.Others...) }

// joined returns the first fault with the others, or nil.
func joined(faults []*Error) *Error {
	if len(faults) == 0 {
		return nil
	}
	faults[0].Others = faults[1:]
	return faults[0]
}

// errorLimit bounds the length of an error in bytes. Paths and texts come from the
// artifact and can have any length.
const errorLimit = 2048

// Error implements error: one line of at most some 2,000 bytes.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(errtext.Name(e.File))
	if e.Node != "" {
		b.WriteString(": node " + errtext.Quote(e.Node))
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	b.WriteString(": " + e.Msg)
	return cut(oneLine.Replace(b.String()), errorLimit)
}

// oneLine escapes line ends in names and paths, which come from the artifact.
var oneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// cut returns s if it has at most limit bytes, otherwise its beginning and "…".
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// ParamError says what is wrong with a parameter of a node. OpSchema.Prepare returns it. Immutable
// once built; any goroutine.
type ParamError struct {
	Param string // path below params: "rules[1].weight"
	Msg   string
}

// Error implements error.
func (e *ParamError) Error() string { return e.Param + ": " + e.Msg }

// ParamErrorf returns a ParamError. param is a path below params.
func ParamErrorf(param, format string, args ...any) error {
	return &ParamError{Param: param, Msg: fmt.Sprintf(format, args...)}
}

// member returns the path of a member. A plain name follows a dot; others are quoted in
// brackets.
func member(path, name string) string {
	if !validName.MatchString(name) || len(name) > errtext.Limit {
		return path + "[" + errtext.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// element returns the path of the i-th element of an array.
func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// ItemPath returns the path of item i of a List, for ParamErrorf.
func ItemPath(param string, i int) string { return element(param, i) }
