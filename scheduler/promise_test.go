package scheduler

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A promise anchors a bug at what a function does, whatever its statements look like:
//
//	entry           the bug runs before the body
//	without NAME    the function does not call NAME
//	call NAME       the bug stands for the call of NAME; there $ is the call itself
//
// NAME is the last part of the callee, such as Reset or cancel.Reset. The function calls it
// exactly once. A function or a call that no longer exists is an error of the hunt.
type promise struct {
	function string // Name, or Type.Name of a method
	kind     string // entry, without or call
	callee   string
}

// A goPlace is where a bug goes. Immutable.
type goPlace struct {
	file     string
	source   []byte
	pos, end int
}

// String implements fmt.Stringer.
func (p *goPlace) String() string {
	return fmt.Sprintf("%s:%d", p.file, 1+bytes.Count(p.source[:p.pos], []byte("\n")))
}

// parsePromise reads the first line of a mutation below its function.
func parsePromise(function, line string) (p promise, ok bool) {
	kind, callee, _ := strings.Cut(line, " ")
	ok = kind == "entry" && callee == "" || (kind == "without" || kind == "call") && callee != ""
	return promise{function, kind, callee}, ok
}

// find returns the place of the promise in the package of a folder.
func (p promise) find(dir string) (*goPlace, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if place, err := p.findIn(file, source); place != nil || err != nil {
			return place, err
		}
	}
	return nil, fmt.Errorf("no function %s", p.function)
}

// findIn returns the place of the promise in a file, or nil if the function is not there.
func (p promise) findIn(file string, source []byte) (*goPlace, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	place := func(pos, end token.Pos) *goPlace {
		return &goPlace{file: file, source: source, pos: files.Position(pos).Offset, end: files.Position(end).Offset}
	}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || functionName(f) != p.function {
			continue
		}
		if p.kind == "entry" {
			return place(f.Body.Lbrace+1, f.Body.Lbrace+1), nil
		}
		calls := p.callsIn(f.Body)
		if len(calls) != 1 {
			return nil, fmt.Errorf("%s calls %s %d times, not once", p.function, p.callee, len(calls))
		}
		if p.kind == "call" {
			return place(calls[0].Pos(), calls[0].End()), nil
		}
		s := statementOf(f.Body, calls[0])
		return place(s.Pos(), s.End()), nil
	}
	return nil, nil
}

// functionName returns Name, or Type.Name of a method.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

// callsIn returns the calls of the callee.
func (p promise) callsIn(body *ast.BlockStmt) (calls []*ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && strings.HasSuffix("."+types.ExprString(call.Fun), "."+p.callee) {
			calls = append(calls, call)
		}
		return true
	})
	return calls
}

// statementOf returns the smallest statement around a call.
func statementOf(body *ast.BlockStmt, call *ast.CallExpr) (smallest ast.Stmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil || n.Pos() > call.Pos() || n.End() < call.End() {
			return false
		}
		if s, ok := n.(ast.Stmt); ok {
			smallest = s
		}
		return true
	})
	return smallest
}

// text returns the text that replaces the place. A statement that is left out still uses its
// variables.
func (p promise) text(place *goPlace, bug string) string {
	there := string(place.source[place.pos:place.end])
	switch p.kind {
	case "entry":
		return "{\n" + bug + "\n}\n"
	case "without":
		return "if false {\n" + there + "\n}"
	default:
		return strings.ReplaceAll(bug, "$", there)
	}
}

func TestPromise(t *testing.T) {
	const source = `package p

func (s *Stack[T]) Pop() (top int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	_ = s.pops.Add(1)
	if s.empty() {
		return 0
	}
	s.moves.Add(1)
	return s.items[s.n]
}
`
	for _, c := range []struct{ function, line, bug, want, fails string }{
		{"Stack[T].Pop", "entry", "return 1", "(top int) {{\nreturn 1\n}\n\n\ts.lock.Lock()", ""},
		{"Stack[T].Pop", "without lock.Unlock", "", "if false {\ndefer s.lock.Unlock()\n}\n", ""},
		{"Stack[T].Pop", "without pops.Add", "", "if false {\n_ = s.pops.Add(1)\n}\n", ""},
		{"Stack[T].Pop", "call empty", "!$", "if !s.empty() {", ""},
		{"Stack[T].Pop", "call Lock", "$; s.n++", "\ts.lock.Lock(); s.n++\n", ""},
		{"Stack[T].Pop", "without Add", "", "", "calls Add 2 times"},
		{"Stack[T].Pop", "without Clear", "", "", "calls Clear 0 times"},
		{"Stack[T].Push", "entry", "", "", "no function"},
	} {
		p, ok := parsePromise(c.function, c.line)
		require.True(t, ok, c.line)
		place, err := p.findIn("p.go", []byte(source))
		if c.fails == "no function" {
			assert.NoError(t, err)
			assert.Nil(t, place)
			continue
		}
		if c.fails != "" {
			assert.ErrorContains(t, err, c.fails)
			continue
		}
		require.NoError(t, err)
		assert.Contains(t, source[:place.pos]+p.text(place, c.bug)+source[place.end:], c.want)
	}
	for _, line := range []string{"", "entry Lock", "call", "without", "if s.n == 0 {"} {
		_, ok := parsePromise("Stack.Pop", line)
		assert.False(t, ok, line)
	}
}
