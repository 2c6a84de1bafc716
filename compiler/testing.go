package compiler

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
)

// A TestCall is a request of a test's code to its host. It belongs to the host until the host returns.
type TestCall struct {
	Name string          // what is asked for: one of the Test* names
	Arg  json.RawMessage // of the call
	// Serve lets a function of the test answer a request to a service, a body with a JSON document. The error says
	// what the function threw. It works until the host returns; any goroutine.
	Serve func(service string, body []byte) ([]byte, error)
}

// The names of calls. The words in quotes are the members of Arg, and of the value that the host returns.
const (
	TestBegins  = "begin"   // "name", "line": a test begins; returns true if it runs
	TestEnds    = "end"     // a TestFailure or null
	TestData    = "data"    // an object by key, each a pair of kind and value; returns a number for it
	TestRank    = "rank"    // "request", "data" (a number or null), "services" by name, which are canned answers or null for a function
	TestExplain = "explain" // the same, and "ids", "pair", "column" and "shelf": why the rows are where they are; returns text
	// TestEndpoints asks for the names of the endpoints. TestRank may have one of them as the endpoint of "out", which is down, or slow.
	TestEndpoints = "endpoints"
	TestNodes     = "nodes"    // as TestRank: the "name", the "op" and the "rows" of each node of the plan
	TestSnapshot  = "snapshot" // "name", "value"; returns what was recorded before, or null
	TestLog       = "log"      // a text
)

// A TestHost answers the calls of one test file, one after the other: one goroutine at a time. The value becomes JSON. An error becomes an exception of the test.
type TestHost func(ctx context.Context, call *TestCall) (value any, err error)

// A TestFailure says why a test failed. Immutable; any goroutine.
type TestFailure struct {
	Diagnostic
	Detail string `json:"detail,omitempty"` // lines that follow the message
}

// String returns the failure for a terminal.
func (f *TestFailure) String() string {
	text := f.Diagnostic.String()
	if f.Detail != "" {
		text += "\n" + f.Detail
	}
	return text
}

// Test runs the tests in the file of source in a child process; host answers their calls. The result has errors if
// the file is not sound, or if its code had to be stopped. As with Compile, an error means that the compiler cannot
// work at all.
func (c *Compiler) Test(ctx context.Context, source Source, host TestHost) (Result, error) {
	absolute, err := filepath.Abs(source.Folder)
	if err != nil {
		return Result{}, err
	}
	p, err := c.take()
	if err != nil {
		return Result{}, err
	}
	given := source
	given.Folder = absolute
	a, alive := p.test(ctx, job{Label: label(absolute), Source: given, Test: true}, c.config.Timeout, host)
	if alive && ctx.Err() == nil {
		c.put(p)
	} else {
		p.kill()
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	r := Result{Source: source, Errors: a.Errors, Warnings: a.Warnings, Digest: a.Digest}
	for _, file := range a.Files {
		r.Files = append(r.Files, r.path(file))
	}
	for i := range r.Errors {
		r.Errors[i].File = r.path(r.Errors[i].File)
	}
	return r, nil
}

// reply is the parent's answer to a call, or an earlier request to a service of the test.
type reply struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	Serve *serveCall      `json:"serve,omitempty"`
}

// serveCall asks a function of the test.
type serveCall struct {
	Service string `json:"service"`
	Body    []byte `json:"body"`
}

// hostCall is a call on its way.
type hostCall struct {
	Name string          `json:"name"`
	Arg  json.RawMessage `json:"arg"`
}

// served is what a function of the test answered.
type served struct {
	Body  []byte `json:"body,omitempty"`
	Error string `json:"error,omitempty"`
}

// wordsOfTests makes a sentence about a plan one about a test.
var wordsOfTests = strings.NewReplacer("the plan", "the test", " to compile", "", "build runs once at compile time: ", "")

// test runs the tests of a file. The process is usable afterwards only if alive is true.
func (p *process) test(ctx context.Context, j job, timeout time.Duration, host TestHost) (a answer, alive bool) {
	a, err := p.exchange(j, timeout)
	for err == nil && a.Call != nil && ctx.Err() == nil {
		var mu sync.Mutex // guards p and over while the host works
		over := false
		var last *answer // that came while a function of the test should answer
		call := &TestCall{Name: a.Call.Name, Arg: a.Call.Arg, Serve: func(service string, body []byte) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if over {
				return nil, errors.New("the request that asked the service has ended")
			}
			a, err := p.exchange(reply{Serve: &serveCall{Service: service, Body: body}}, timeout)
			if err != nil || a.Served == nil {
				if over = true; err != nil {
					a = p.died(j, err)
				}
				last = &a
				return nil, errors.New("the test has ended")
			}
			if a.Served.Error != "" {
				return nil, errors.New(a.Served.Error)
			}
			return a.Served.Body, nil
		}}
		var r reply
		value, failed := host(ctx, call)
		mu.Lock()
		over = true
		mu.Unlock()
		if last != nil {
			return *last, false
		}
		if failed == nil {
			r.Value, failed = json.Marshal(value)
		}
		if failed != nil {
			r = reply{Error: failed.Error()}
		}
		a, err = p.exchange(r, timeout)
	}
	if err != nil || a.Call != nil {
		return p.died(j, err), false
	}
	return p.answered(a)
}

//go:embed testing.js
var testingSource string

var testingScript = sync.OnceValue(func() *goja.Program { return goja.MustCompile("testing", testingSource, true) })

// testExports are the names that testModule exports.
var testExports = []string{"expect", "failure", "forUsers", "json", "log", "now", "rank", "redis", "service", "set", "sortedSet", "test"}

// testRun runs the tests of a file. It lives in a child process. One goroutine at a time.
type testRun struct {
	child *child
	unit  *unit
	tests []testCase
	serve goja.Callable // a function of the test for a service
	scope goja.Callable // begins and ends the scope of a test
	busy  bool          // a function of the test answers for a service
}

// testCase is a test that the file has declared.
type testCase struct {
	name string
	at   int // offset in the bundle
	run  goja.Callable
}

// test declares the tests of the file and runs those that the host wants.
func (u *unit) test() {
	if !u.read() {
		return
	}
	main := u.load()
	if main == nil {
		return
	}
	t := u.testing
	err := t.install()
	if err == nil {
		_, err = main(goja.Undefined(), u.host.object)
	}
	if err != nil {
		u.failScript(err)
		return
	}
	if len(u.answer.Errors) > 0 {
		return
	}
	for i := range t.tests {
		if !t.runOne(&t.tests[i]) {
			return
		}
	}
}

// install adds the exports of testModule to the host.
func (t *testRun) install() error {
	vm := t.unit.vm
	made, err := vm.RunProgram(testingScript())
	if err != nil {
		return err
	}
	function, _ := goja.AssertFunction(made)
	host := vm.NewObject()
	plan := strings.TrimSuffix(filepath.Base(t.unit.folder.entry), TestExtension)
	for name, v := range map[string]any{"ask": t.ask, "declare": t.declare, "plan": plan} {
		if err := host.Set(name, v); err != nil {
			return err
		}
	}
	built, err := function(goja.Undefined(), host)
	if err != nil {
		return err
	}
	parts := built.ToObject(vm)
	t.serve, _ = goja.AssertFunction(parts.Get("serve"))
	t.scope, _ = goja.AssertFunction(parts.Get("scope"))
	exports := parts.Get("exports").ToObject(vm)
	for _, name := range testExports {
		if err := t.unit.host.object.Set(name, exports.Get(name)); err != nil {
			return err
		}
	}
	return nil
}

// declare is test(name, run).
func (t *testRun) declare(c goja.FunctionCall) goja.Value {
	vm := t.unit.vm
	run, ok := goja.AssertFunction(c.Argument(1))
	name, isText := c.Argument(0).Export().(string)
	switch {
	case !ok || !isText || name == "" || strings.ContainsAny(name, "\n\r"):
		panic(vm.NewTypeError("a test has a name and a function, as in test(\"adults first\", () => { … })"))
	case slices.ContainsFunc(t.tests, func(other testCase) bool { return other.name == name }):
		panic(vm.NewTypeError("another test of this file has the name %s", quote(name)))
	}
	t.tests = append(t.tests, testCase{name: name, at: t.unit.here(), run: run})
	return goja.Undefined()
}

// runOne runs a test. It returns false if none can run after it.
func (t *testRun) runOne(c *testCase) bool {
	u := t.unit
	file, line, _ := u.place(c.at)
	wanted, err := t.exchange(TestBegins, map[string]any{"name": c.name, "file": file, "line": line})
	if err != nil || string(wanted) != "true" {
		return err == nil
	}
	var failure *TestFailure
	if _, err = t.scope(goja.Undefined(), u.vm.ToValue(true)); err == nil {
		var result goja.Value
		result, err = c.run(goja.Undefined())
		if err == nil && isPromise(result) {
			failure = t.failureAt(c.at, "a test must not be async: nothing waits for its promise", "")
		}
	}
	var thrown *goja.Exception
	switch {
	case errors.As(err, &thrown):
		failure = t.thrown(thrown)
	case err != nil: // It was stopped.
		u.failScript(err)
		return false
	}
	about, err := t.scope(goja.Undefined(), u.vm.ToValue(false))
	if err != nil { // It was stopped while a function answered for a service.
		u.failScript(err)
		return false
	}
	if failure != nil {
		failure.Message = about.String() + failure.Message
	}
	_, err = t.exchange(TestEnds, failure)
	return err == nil
}

// thrown returns the failure for an exception of a test.
func (t *testRun) thrown(e *goja.Exception) *TestFailure {
	message, detail := "an object was thrown", ""
	_ = t.unit.inside(func() error {
		message = t.unit.thrownText(e.Value())
		if object, ok := e.Value().(*goja.Object); ok {
			if v := object.Get("detail"); v != nil && !goja.IsUndefined(v) {
				detail = v.String()
			}
		}
		return nil
	})
	message = strings.TrimPrefix(message, "TypeError: TypeError: ")
	at, _ := t.unit.offset(e.Stack())
	f := t.failureAt(at, message, detail)
	if match := notDefined.FindStringSubmatch(message); match != nil {
		f.Hint = t.hint(match[1])
	}
	return f
}

// hint says what to use instead of a name that tests do not have.
func (t *testRun) hint(name string) string {
	switch {
	case name == "console":
		return "log(value) prints beside the outcome of the test"
	case name == "Date":
		return "now(\"2026-03-01T12:00:00Z\") says what now() is in the plans"
	case slices.Contains(testExports, name):
		return fmt.Sprintf("import { %s } from %q", name, testModule)
	}
	return cmp.Or(strings.ReplaceAll(absent[name], "plan code", "a test"), t.unit.globalHint(name))
}

func (t *testRun) failureAt(at int, message, detail string) *TestFailure {
	if first, rest, several := strings.Cut(message, "\n"); several {
		message, detail = first, rest+detail
	}
	f := &TestFailure{Detail: detail}
	f.Severity, f.Code, f.Message = Error, "test", message
	f.File, f.Line, f.Column = t.unit.place(at)
	f.Excerpt = t.unit.folder.line(f.File, f.Line)
	return f
}

// ask is a call of the API: ask(name, arg).
func (t *testRun) ask(c goja.FunctionCall) goja.Value {
	vm := t.unit.vm
	value, err := t.exchange(c.Argument(0).String(), c.Argument(1).Export())
	if err != nil {
		made, stopped := vm.New(vm.GlobalObject().Get("Error"), vm.ToValue(err.Error()))
		if stopped != nil { // while a function answered for a service
			panic(stopped)
		}
		panic(made)
	}
	v, err := t.unit.fromJSON(json.NewDecoder(bytes.NewReader(value)))
	if err != nil {
		panic(vm.NewTypeError("%s", err.Error()))
	}
	return v
}

// exchange sends a call to the parent and waits for its reply. Meanwhile functions of the test answer for services.
func (t *testRun) exchange(name string, arg any) (json.RawMessage, error) {
	if t.busy {
		return nil, errors.New("a function that answers for a service asks the engine nothing: it answers from its request")
	}
	text, err := json.Marshal(arg)
	if err != nil {
		return nil, errors.New("a request holds what JSON cannot: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	t.unit.turns.Add(1)
	defer t.unit.turns.Add(1)
	if err := t.send(answer{Call: &hostCall{Name: name, Arg: text}}); err != nil {
		return nil, err
	}
	for {
		var r reply
		if err := t.child.decoder.Decode(&r); err != nil {
			return nil, err
		}
		if r.Serve == nil {
			if r.Error != "" {
				return nil, errors.New(r.Error)
			}
			return r.Value, nil
		}
		t.unit.turns.Add(1)
		s := t.answerFor(r.Serve)
		t.unit.turns.Add(1)
		if err := t.send(answer{Served: s}); err != nil {
			return nil, err
		}
	}
}

// answerFor has a function of the test answer a request to a service.
func (t *testRun) answerFor(asked *serveCall) *served {
	body, err := t.unit.fromJSON(json.NewDecoder(bytes.NewReader(asked.Body)))
	if err != nil {
		return &served{Error: "the request is not JSON: " + err.Error()}
	}
	t.busy = true
	defer func() { t.busy = false }()
	result, err := t.serve(goja.Undefined(), t.unit.vm.ToValue(asked.Service), body)
	var thrown *goja.Exception
	if errors.As(err, &thrown) {
		return &served{Error: t.thrown(thrown).Message}
	}
	if err != nil {
		return &served{Error: err.Error()}
	}
	text, err := json.Marshal(result.Export())
	if err != nil {
		return &served{Error: err.Error()}
	}
	return &served{Body: text}
}

// send sends a message that is not the end of the job.
func (t *testRun) send(a answer) error {
	t.child.mu.Lock()
	defer t.child.mu.Unlock()
	if t.child.busy != t.unit {
		return errors.New("the test has been stopped")
	}
	return t.child.encoder.Encode(a)
}

// safeInteger is the largest integer up to which JavaScript numbers hold all integers.
const safeInteger = 1<<53 - 1

// fromJSON reads the next value. Integers that numbers do not hold become BigInts.
func (u *unit) fromJSON(d *json.Decoder) (goja.Value, error) {
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			items := []any{}
			for d.More() {
				item, err := u.fromJSON(d)
				if err != nil {
					return nil, err
				}
				items = append(items, item)
			}
			_, err = d.Token()
			return u.vm.NewArray(items...), err
		}
		object := u.vm.NewObject()
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := u.fromJSON(d)
			if err != nil {
				return nil, err
			}
			text, _ := name.(string) // as JSON has it
			if err := object.Set(text, value); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	case json.Number:
		n, ok := new(big.Int).SetString(t.String(), 10)
		if ok && (n.CmpAbs(big.NewInt(safeInteger)) > 0) {
			return u.vm.ToValue(n), nil
		}
		f, err := strconv.ParseFloat(t.String(), 64)
		return u.vm.ToValue(f), err
	case nil:
		return goja.Null(), nil
	default:
		return u.vm.ToValue(t), nil
	}
}
