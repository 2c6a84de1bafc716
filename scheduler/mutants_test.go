package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bugVariable names the environment variable that wakes one bug of a binary of mutants.
const bugVariable = "RANKD_BUG"

// Mutants are the test binaries of packages, each built once with every deliberate bug in it. A
// function with a bug exists twice: as it is, and with the bug. The function calls its double
// if RANKD_BUG names that bug.
type mutants struct {
	overlay  string            // path of the overlay for go build
	binaries map[string]string // path of a package's test binary, by the package's folder
}

// buildMutants builds the tests that look for these bugs.
func buildMutants(t *testing.T, list []mutation) *mutants {
	t.Helper()
	m := &mutants{binaries: make(map[string]string)}
	m.writeOverlay(t, list)
	for i := range list {
		folder := list[i].tested(t)
		if m.binaries[folder] != "" {
			continue
		}
		binary := filepath.Join(t.TempDir(), "mutants.test")
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", m.overlay, "-o", binary, ".")
		build.Dir = folder
		out, err := build.CombinedOutput()
		require.NoError(t, err, "the mutants do not build:\n%s", out)
		m.binaries[folder] = binary
	}
	return m
}

// writeOverlay writes the sources with all bugs, and the file that tells go build which source
// each one replaces.
func (m *mutants) writeOverlay(t *testing.T, list []mutation) {
	dir := t.TempDir()
	places := make(map[string][]mutantPlace) // by file
	for i := range list {
		place := list[i].place(t)
		places[place.file] = append(places[place.file], mutantPlace{place, &list[i]})
	}
	replace := make(map[string]string)
	add := func(file string, text []byte) {
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		require.NoError(t, os.WriteFile(replace[file], text, 0o644))
	}
	for file, bugs := range places {
		text, name, err := withBugs(bugs)
		require.NoError(t, err, file)
		add(file, text)
		chosen := filepath.Join(filepath.Dir(file), "deliberatebug_generated.go")
		if replace[chosen] == "" {
			add(chosen, fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar deliberateBug = os.Getenv(%q)\n", name, bugVariable))
		}
	}
	spec, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	require.NoError(t, err)
	m.overlay = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(m.overlay, spec, 0o644))
}

// A mutantPlace is a bug and its place.
type mutantPlace struct {
	*goPlace
	bug *mutation
}

// withBugs returns the source of one file with these bugs, and the name of its package.
func withBugs(bugs []mutantPlace) (text []byte, name string, err error) {
	source := bugs[0].source
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, bugs[0].file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	offset := func(pos token.Pos) int { return files.Position(pos).Offset }
	var doubles bytes.Buffer
	rest := 0
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := offset(f.Pos()), offset(f.End())
		var choice strings.Builder
		for _, b := range bugs {
			if b.pos < from || b.pos >= to {
				continue
			}
			call, err := callDouble(f, b.bug.name)
			if err != nil {
				return nil, "", err
			}
			choice.WriteString(call)
			at := offset(f.Name.End())
			fmt.Fprintf(&doubles, "\n%s_%s%s%s%s\n", source[from:at], b.bug.name, source[at:b.pos], b.bug.promise.text(b.goPlace, b.bug.bug), source[b.end:to])
		}
		if choice.Len() > 0 {
			open := offset(f.Body.Lbrace) + 1
			text = append(text, source[rest:open]...)
			text = append(text, choice.String()...)
			if source[open] != '\n' { // a body of one line
				text = append(text, '\n')
			}
			rest = open
		}
	}
	text = append(text, source[rest:]...)
	return append(text, doubles.Bytes()...), parsed.Name.Name, nil
}

// callDouble returns the statement that calls a function's double if its bug is awake.
func callDouble(f *ast.FuncDecl, bug string) (string, error) {
	fields := f.Type.Params.List
	if f.Recv != nil {
		fields = slices.Concat(f.Recv.List, fields)
	}
	var names []string
	for _, field := range fields {
		if len(field.Names) == 0 {
			return "", fmt.Errorf("%s has a parameter without a name", functionName(f))
		}
		for _, name := range field.Names {
			arg := name.Name
			if arg == "_" {
				return "", fmt.Errorf("%s has a parameter without a name", functionName(f))
			}
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			names = append(names, arg)
		}
	}
	double := f.Name.Name + "_" + bug
	if f.Recv != nil {
		double, names = names[0]+"."+double, names[1:]
	}
	call := double + "(" + strings.Join(names, ", ") + ")"
	if f.Type.Results == nil {
		return fmt.Sprintf("\nif deliberateBug == %q { %s; return }", bug, call), nil
	}
	return fmt.Sprintf("\nif deliberateBug == %q { return %s }", bug, call), nil
}

func TestWithBugs(t *testing.T) {
	source := []byte(`package p

func (s *Stack) Push(items ...int) {
	s.add(len(items))
}

func half(a, b int) (int, error) { return sum(a, b) / 2, nil }
`)
	var bugs []mutantPlace
	for _, m := range []mutation{
		{name: "push_more", promise: promise{"Stack.Push", "call", "add"}, bug: "s.add(1 + len(items))"},
		{name: "push_one", promise: promise{"Stack.Push", "call", "len"}, bug: "1"},
		{name: "third", promise: promise{"half", "call", "sum"}, bug: "$ * 2 / 3"},
	} {
		place, err := m.promise.findIn("p.go", source)
		require.NoError(t, err, m.name)
		bugs = append(bugs, mutantPlace{place, &m})
	}
	text, name, err := withBugs(bugs)
	require.NoError(t, err)
	assert.Equal(t, "p", name)
	assert.Equal(t, `package p

func (s *Stack) Push(items ...int) {
if deliberateBug == "push_more" { s.Push_push_more(items...); return }
if deliberateBug == "push_one" { s.Push_push_one(items...); return }
	s.add(len(items))
}

func half(a, b int) (int, error) {
if deliberateBug == "third" { return half_third(a, b) }
 return sum(a, b) / 2, nil }

func (s *Stack) Push_push_more(items ...int) {
	s.add(1 + len(items))
}

func (s *Stack) Push_push_one(items ...int) {
	s.add(1)
}

func half_third(a, b int) (int, error) { return sum(a, b) * 2 / 3 / 2, nil }
`, string(text))
}
