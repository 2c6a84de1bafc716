package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

const (
	// diagnosticsMax bounds how many errors one plan reports.
	diagnosticsMax = 20
	// faultsMax bounds how often plan code may make a fault, however few the places.
	faultsMax = 1000
)

// unit compiles one plan. It lives in a child process. One goroutine at a time, except statement.
type unit struct {
	language *Language
	label    string // of the folder, in spans
	folder   *folder
	answer   answer
	faults   int
	seen     map[string]bool // places that have been reported
	late     bool            // a watchdog has stopped the plan's code, so that no time is left for a draft

	importsMu sync.Mutex
	imports   map[[2]string]string // guarded by importsMu: the files that imports mean, by importer and text
	bundle    *bundle
	rewritten *rewritten
	vm        *goja.Runtime
	host      *host

	// The watchdog reads these. Any goroutine.
	statement atomic.Int64 // offset in the bundle of the last statement that began
	located   atomic.Pointer[bundle]
	running   atomic.Pointer[goja.Runtime]
	turns     atomic.Int64 // how often a test's code began to wait for the parent, and went on: odd while it waits

	testing *testRun // nil: the unit is a plan
}

// answer is what a child process reports about one plan.
type answer struct {
	Plan     string       `json:"plan,omitempty"`
	NameLine int          `json:"name_line,omitempty"` // where the plan states its name
	NameCol  int          `json:"name_column,omitempty"`
	NameText string       `json:"name_excerpt,omitempty"`
	Artifact []byte       `json:"artifact,omitempty"` // unless there are Errors
	Draft    []byte       `json:"draft,omitempty"`    // see emit
	Errors   []Diagnostic `json:"errors,omitempty"`
	Warnings []Diagnostic `json:"warnings,omitempty"`
	Files    []string     `json:"files,omitempty"` // in the folder
	Digest   string       `json:"digest,omitempty"`

	Call   *hostCall `json:"call,omitempty"`   // of a test that runs: this is not the end yet
	Served *served   `json:"served,omitempty"` // the same

	Places []byte `json:"places,omitempty"` // JSON of a map[string]place: of what stands in Artifact and Draft
	// Foreign says that the artifact cannot hold some value. Only Places shows that it is not null.
	Foreign bool `json:"foreign,omitempty"`
}

// errStopped stops a plan whose errors have been reported.
var errStopped = errors.New("stopped")

func newUnit(language *Language, label string, source Source) *unit {
	u := &unit{language: language, label: label, seen: make(map[string]bool)}
	folder, err := openFolder(source)
	if err != nil {
		u.fail("unreadable", source.File, 1, 1, "cannot open the folder: "+err.Error(), "name an existing folder")
		return u
	}
	u.folder = folder
	return u
}

// compile compiles the plan. Interrupt may stop it from another goroutine.
func (u *unit) compile() {
	if u.folder == nil {
		return
	}
	defer u.folder.close()
	defer func() { u.answer.Digest, u.answer.Files = u.folder.digest() }()
	if u.testing != nil {
		u.test()
		return
	}
	if !u.read() {
		return
	}
	definition := u.run()
	if u.host != nil && !u.late {
		u.emit(definition)
	}
}

// read bundles and rewrites the sources. It returns false after it has reported errors.
func (u *unit) read() (read bool) {
	if u.bundle = u.buildBundle(); u.bundle == nil {
		return false
	}
	defer func() {
		if why := recover(); why != nil { // The parser of the engine, or the rewriter behind it, does not know some syntax.
			u.fail("syntax", u.folder.entry, 1, 1, fmt.Sprint("plan code cannot use the syntax of this file or of an import: ", why), noSyntax)
			read = false
		}
	}()
	program, err := parser.ParseFile(nil, "", u.bundle.script, 0, parser.WithDisableSourceMaps)
	if err != nil {
		u.failParse(err)
		return false
	}
	u.located.Store(u.bundle)
	u.rewritten = rewrite(u.bundle.script, program)
	for _, at := range u.rewritten.refused {
		u.failAt(at, "syntax", "plan code cannot assign and wait in one expression", "give the yield or await a statement of its own")
	}
	for _, at := range u.rewritten.arguments {
		u.failAt(at, "syntax", "plan code cannot use arguments in the parameters of a function", "write (...args)")
	}
	return true
}

// failParse reports that goja refuses what esbuild accepts.
func (u *unit) failParse(err error) {
	var list parser.ErrorList
	if errors.As(err, &list) {
		for _, e := range list {
			line, column := e.Position.Line, e.Position.Column
			if line < 1 || line > len(u.bundle.lines) {
				continue
			}
			u.failAt(u.bundle.lines[line-1]+max(0, column-1), "syntax", syntaxText(e.Message), syntaxHint(e.Message))
		}
	}
	if len(u.answer.Errors) == 0 {
		u.fail("syntax", u.folder.entry, 1, 1, "plan code cannot use this syntax: "+err.Error(), noSyntax)
	}
}

// fail reports an error at a place of a file. Plan code continues after it, to find more errors, but not forever.
func (u *unit) fail(code, file string, line, column int, message, hint string) {
	u.add(&u.answer.Errors, Error, code, file, line, column, message, hint)
	if u.faults++; u.vm != nil && (len(u.answer.Errors) >= diagnosticsMax || u.faults >= faultsMax) {
		u.stop()
	}
}

// stop ends plan code that has nothing more to report.
func (u *unit) stop() { u.vm.Interrupt(errStopped) }

// add adds a diagnostic, unless there is one at its place or there are enough.
func (u *unit) add(list *[]Diagnostic, severity, code, file string, line, column int, message, hint string) {
	d := Diagnostic{Severity: severity, Code: code, File: file, Line: line, Column: column, Message: message, Hint: hint}
	if u.folder != nil {
		d.Excerpt = u.folder.line(file, line)
	}
	key := d.Place() // it follows from the fault already reported at this place
	if u.seen[key] || len(*list) >= diagnosticsMax {
		return
	}
	u.seen[key] = true
	*list = append(*list, d)
}

// failAt reports an error at an offset of the bundle.
func (u *unit) failAt(offset int, code, message, hint string) {
	file, line, column := u.place(offset)
	u.fail(code, file, line, column, message, hint)
}

// place returns the place in the sources of an offset of the bundle. An offset without a source maps to the start of
// the plan.
func (u *unit) place(offset int) (file string, line, column int) {
	if u.bundle != nil {
		if file, line, column, ok := u.bundle.source(offset); ok {
			return file, line, column
		}
	}
	return u.folder.entry, 1, 1
}

// span returns the place of an offset as artifacts write it.
func (u *unit) span(offset int) string {
	file, line, column := u.place(offset)
	return fmt.Sprintf("%s:%d:%d", path.Join(u.label, file), line, column)
}

// expired returns the answer for a plan that has to be stopped, at the statement that runs. Any
// goroutine.
func (u *unit) expired(why interruption) answer {
	d := Diagnostic{Severity: Error, Code: why.code, File: u.folder.entry, Line: 1, Column: 1, Message: why.message, Hint: why.hint}
	if b := u.located.Load(); b != nil {
		if file, line, column, ok := b.source(int(u.statement.Load())); ok {
			d.File, d.Line, d.Column = file, line, column
		}
	}
	d.Excerpt = u.folder.line(d.File, d.Line)
	return answer{Errors: []Diagnostic{d}}
}

// seconds writes a duration for a message.
func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data
	}
	return text
}

// faultOfSource matches what the engine says of faults that esbuild passes.
var faultOfSource = regexp.MustCompile(`^(Missing initializer|Unterminated|Unmatched|Invalid regular expression|Nothing to repeat|Invalid group)`)

// syntaxText and syntaxHint tell a fault of the source from syntax that the engine lacks.
func syntaxText(message string) string {
	if message == "Invalid group" {
		return "patterns of plan code have no such group: (?:…), (?<name>…) and looking ahead and behind are there"
	}
	if faultOfSource.MatchString(message) {
		return lowerFirst(message)
	}
	return "plan code cannot use this syntax: " + lowerFirst(message)
}

func syntaxHint(message string) string {
	if faultOfSource.MatchString(message) {
		return "the source has to be TypeScript: tsc --noEmit says more"
	}
	return noSyntax
}
