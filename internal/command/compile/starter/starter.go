// Package starter, which is not covered by the compatibility promise, writes a module that is rankd with a task of its
// own.
package starter

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

//go:embed main.go.tmpl
var mainFile []byte

//go:embed every.go
var taskFile []byte

//go:embed every.plan.ts
var planFile []byte

//go:embed every.plan.test.ts
var planTests []byte

// Tasks returns the task of the module.
func Tasks() []task.Spec { return []task.Spec{every()} }

const (
	// PlanDir is where the plans lie, in the folder of the module.
	PlanDir = "plans"
	// goVersion is the version of Go that rankd's go.mod requires.
	goVersion = "1.26.0"
)

var (
	// pathElement is what Go takes for an element of a module's path.
	pathElement = regexp.MustCompile(`^[A-Za-z0-9_~-]+(\.[A-Za-z0-9_~-]+)*$`)
	moduleLine  = regexp.MustCompile(`(?m)^module (\S+)\n`)
	goLine      = regexp.MustCompile(`(?m)^go .*\n`)
	oneWord     = regexp.MustCompile(`^[\w./][\w./-]*$`)                  // for a shell, as it stands
	required    = regexp.MustCompile(`(?m)^(\t\S+ \S+|require \S+ \S+)$`) // and not marked as indirect
)

// A Module is one that is about to be written. Immutable; any goroutine.
type Module struct {
	dir, name    string
	goMod, goSum []byte // goSum is nil unless a checkout gave it
}

// New says which files the module of folder dir has. It requires the version of rankd that runs, or the checkout if
// one is named. The error says why there can be no such module.
func New(dir, checkout string) (*Module, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	m := &Module{dir: dir, name: filepath.Base(full)}
	if !pathElement.MatchString(m.name) {
		return nil, fmt.Errorf("%s cannot name a module: the name of its folder must have letters, digits, and - _ ~ or dots inside", errtext.Quote(m.name))
	}
	for _, pattern := range []string{"go.mod", "*.go"} {
		if there, _ := filepath.Glob(filepath.Join(full, pattern)); len(there) > 0 { // the patterns are sound
			return nil, fmt.Errorf("%s is there already, and init --go begins a module; for new types of its plans: go run . init %s",
				filepath.Join(dir, filepath.Base(there[0])), PlanDir)
		}
	}
	begins := "module example.com/" + m.name + "\n"
	if checkout == "" {
		release, err := version.Published()
		if err != nil {
			return nil, fmt.Errorf("%w; name a checkout of rankd: init %s --go --checkout PATH", err, dir)
		}
		m.goMod = fmt.Appendf(nil, "%s\ngo %s\n\nrequire %s %s\n", begins, goVersion, version.Module, release)
		return m, nil
	}
	text, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("--checkout %s: is no checkout of rankd: %w", checkout, err)
	}
	if found := moduleLine.FindSubmatch(text); found == nil || string(found[1]) != version.Module {
		return nil, fmt.Errorf("--checkout %s: is no checkout of rankd: its go.mod does not say module %s", checkout, version.Module)
	}
	if checkout, err = filepath.Abs(checkout); err != nil {
		return nil, err
	}
	if m.goSum, err = os.ReadFile(filepath.Join(checkout, "go.sum")); err != nil {
		return nil, err
	}
	// The module needs what rankd needs, so that it builds at once, and without a network.
	text = required.ReplaceAll(text, []byte("$1 // indirect"))
	text = moduleLine.ReplaceAllLiteral(text, []byte(begins))
	m.goMod = goLine.ReplaceAll(text, fmt.Appendf(nil, "$0\nrequire %s v0.0.0\n\nreplace %[1]s => %[2]s\n", version.Module, strings.ReplaceAll(quoted(checkout), "$", "$$")))
	return m, nil
}

// quoted returns a path as go.mod takes it.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t\"'`(),[]{}") || strings.Contains(path, "//") {
		return strconv.Quote(path)
	}
	return path
}

// Write writes the module: its program, its task, and a plan that uses it, with its tests, if the language has a Redis for
// them. Plans and tests that are there stay. It calls report with one line per file. The error names the file.
func (m *Module) Write(l *compiler.Language, report func(line string)) error {
	type file struct {
		name string
		text []byte
	}
	files := []file{
		{"go.mod", m.goMod},
		{"go.sum", m.goSum},
		{"main.go", bytes.ReplaceAll(mainFile, []byte("NAME"), []byte(m.name))},
		{"every.go", bytes.Replace(taskFile, []byte("package starter"), []byte("package main"), 1)},
	}
	isRedis := func(e compiler.EndpointName) bool { return e.Kind == registry.Redis }
	if i := slices.IndexFunc(l.Endpoints, isRedis); i >= 0 {
		plan := bytes.Replace(planFile, []byte("redis_default"), []byte(l.Endpoints[i].Name), 1)
		files = append(files, file{PlanDir + "/every.plan.ts", plan}, file{PlanDir + "/every.plan.test.ts", planTests})
	}
	if err := os.MkdirAll(filepath.Join(m.dir, PlanDir), 0o777); err != nil {
		return err
	}
	for _, f := range files {
		if f.text == nil {
			continue // no checkout gave a go.sum
		}
		if err := fileio.WriteNew(filepath.Join(m.dir, f.name), f.text, report); err != nil {
			return err
		}
	}
	return nil
}

// Next returns the commands that run the tests of the plan.
func (m *Module) Next() string {
	tidy := ""
	if m.goSum == nil {
		tidy = "go mod tidy && "
	}
	dir := m.dir
	if !oneWord.MatchString(dir) {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return "cd " + dir + " && " + tidy + "go run . test " + PlanDir
}
