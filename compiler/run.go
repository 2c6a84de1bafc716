package compiler

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

//go:embed prelude.js
var preludeSource string

// The scripts of the host are compiled where they first run: in a child.
var prelude = sync.OnceValue(func() *goja.Program { return goja.MustCompile("prelude", preludeSource, true) })

const (
	planScript   = "plan" // name of the rewritten script in stacks
	callDepthMax = 2000   // of plan code
)

// run runs the plan's code and its build function. It returns nil after it has reported errors.
func (u *unit) run() *definition {
	main := u.load()
	if main == nil {
		return nil
	}
	var d *definition
	var err error
	type rejection struct {
		promise *goja.Promise
		at      int
	}
	var rejected []rejection // by async functions, and nobody has caught them
	u.vm.SetPromiseRejectionTracker(func(p *goja.Promise, what goja.PromiseRejectionOperation) {
		if what == goja.PromiseRejectionReject {
			rejected = append(rejected, rejection{p, int(u.statement.Load())})
		} else {
			rejected = slices.DeleteFunc(rejected, func(r rejection) bool { return r.promise == p })
		}
	})
	if err := u.inside(func() error { d, err = u.host.define(main); return err }); err != nil {
		u.failScript(err)
		return nil
	}
	for _, r := range rejected {
		text := "an object"
		_ = u.inside(func() error { text = u.thrownText(r.promise.Result()); return nil })
		u.failAt(r.at, "exception", "plan code failed in an async function: "+cutText(text), "build runs once, from start to end: nothing waits, so write the function without async")
	}
	return d
}

// load makes the sandbox and returns the code of the file as a function of the host. It returns nil after it has reported errors.
func (u *unit) load() goja.Callable {
	u.vm = goja.New()
	u.vm.SetMaxCallStackSize(callDepthMax)
	u.vm.SetParserOptions(parser.WithDisableSourceMaps)
	u.vm.SetTimeSource(func() time.Time { return time.Unix(0, 0).UTC() })
	u.vm.SetRandSource(func() float64 { return 0 })
	u.host = newHost(u)
	if err := u.host.install(); err != nil {
		u.fail("internal", u.folder.entry, 1, 1, err.Error(), internalHint)
		return nil
	}
	script, err := goja.Parse(planScript, "(function ("+hostName+") {"+u.rewritten.script+"\nreturn "+hostName+".link();})", parser.WithDisableSourceMaps)
	if err != nil {
		u.fail("internal", u.folder.entry, 1, 1, "the rewritten plan cannot be parsed: "+err.Error(), internalHint)
		return nil
	}
	program, err := goja.CompileAST(script, true)
	if err != nil {
		u.failScript(err)
		return nil
	}
	wrapper, err := u.vm.RunProgram(program)
	if err != nil {
		u.failScript(err)
		return nil
	}
	main, _ := goja.AssertFunction(wrapper)
	u.running.Store(u.vm) // from here on the plan's time counts
	return main
}

// inside runs f as a function that plan code has called, so that an exception in plan code that f reaches, such as a
// getter, becomes the error.
func (u *unit) inside(f func() error) error {
	var failed error
	function, _ := goja.AssertFunction(u.vm.ToValue(func(goja.FunctionCall) goja.Value {
		failed = f()
		return goja.Undefined()
	}))
	if _, err := function(goja.Undefined()); err != nil {
		return err
	}
	return failed
}

// prefixLen is the length of the text before the rewritten script on its first line.
const prefixLen = len("(function (") + len(hostName) + len(") {")

// offset returns the offset in the bundle of the innermost plan code in a stack.
func (u *unit) offset(stack []goja.StackFrame) (int, bool) {
	for i := range stack {
		if stack[i].SrcName() != planScript {
			continue
		}
		p := stack[i].Position()
		if p.Line == 1 {
			p.Column -= prefixLen
		}
		at := u.rewritten.original(p.Line, p.Column)
		if _, _, _, ok := u.bundle.source(at); ok {
			return at, true
		}
	}
	return 0, false
}

// thrownAt returns the offset in the bundle where plan code ended, or of the statement that ran.
func (u *unit) thrownAt(stack []goja.StackFrame) int {
	at, found := u.offset(stack)
	if !found {
		at = int(u.statement.Load())
	}
	return at
}

// here returns the offset in the bundle of the plan code that runs.
func (u *unit) here() int {
	at, _ := u.offset(u.vm.CaptureCallStack(0, nil))
	return at
}

// hereName returns the offset in the bundle of a member that plan code reads. Stacks are exact for
// calls and lag behind for members, so it is the next member of that name.
func (u *unit) hereName(name string) int {
	at := u.here()
	places := u.rewritten.members[name]
	if i, _ := slices.BinarySearch(places, at); i < len(places) {
		return places[i]
	}
	return at
}

// interruption is why a watchdog stopped the vm.
type interruption struct{ code, message, hint string }

// failScript reports the error that ended the plan's code.
func (u *unit) failScript(err error) {
	var thrown *goja.Exception
	var interrupted *goja.InterruptedError
	var tooDeep *goja.StackOverflowError
	var syntax *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &interrupted):
		if why, ok := interrupted.Value().(interruption); ok {
			u.late = true
			u.failAt(u.thrownAt(interrupted.Stack()), why.code, why.message, why.hint)
		}
	case errors.As(err, &tooDeep):
		u.failAt(u.thrownAt(tooDeep.Stack()), "recursion", fmt.Sprintf("functions call each other more than %d levels deep", callDepthMax), "write a loop")
	case errors.As(err, &thrown) && u.host.refused != nil && thrown.Value() == goja.Value(u.host.refused): // and reported
	case errors.As(err, &thrown):
		message, hint := u.thrownWords(thrown)
		u.failAt(u.thrownAt(thrown.Stack()), "exception", message, hint)
	case errors.As(err, &syntax):
		u.failAt(u.rewritten.original(1, syntax.Offset-prefixLen+1), "syntax", syntaxText(syntax.Message), syntaxHint(syntax.Message))
	default:
		u.fail("exception", u.folder.entry, 1, 1, err.Error(), internalHint)
	}
}

var notDefined = regexp.MustCompile(`^ReferenceError: (\S+) is not defined$`)

// absent are names that scripts elsewhere have, with the reasons why plans do not have them.
var absent = map[string]string{
	"Date": "write now() for the time of the request and age(x) for the seconds since x; a date is a number of seconds since 1970", "performance": noClock, "setTimeout": noTimers, "setInterval": noTimers, "setImmediate": noTimers,
	"queueMicrotask": noTimers, "fetch": noReach, "XMLHttpRequest": noReach, "WebSocket": noReach, "process": noReach,
	"require": noReach, "module": noReach, "Deno": noReach, "Bun": noReach, "Buffer": noReach, "window": noReach, "document": noReach,
	"eval": noEval, "Function": noEval, "console": "plans have no output; throw new Error(text) stops with a text",
	"crypto": noChance, "Promise": noTimers, "WeakRef": noTimers, "Iterator": noSyntax, "Temporal": noClock,
	"Intl": "plans have no locales: the same source gives the same artifact", "structuredClone": "write { ...x }, or JSON.parse(JSON.stringify(x))",
	"SharedArrayBuffer": noReach, "Atomics": noReach, "AbortController": noReach, "WebAssembly": noReach, "FinalizationRegistry": noTimers,
	"URL": noReach, "URLSearchParams": noReach, "TextEncoder": noReach, "TextDecoder": noReach, "atob": noReach, "btoa": noReach,
	"DisposableStack": noSyntax, "AsyncDisposableStack": noSyntax, "Float16Array": noSyntax,
}

// missed are those of them that each engine of JavaScript has where plan code runs elsewhere. A plan that looks for one,
// by typeof or in a try, would mean something else there.
var missed = []string{"Date", "Intl", "Promise", "Function", "eval", "WeakRef", "Iterator", "SharedArrayBuffer", "Atomics", "structuredClone", "performance",
	"crypto", "console", "setTimeout", "setInterval", "queueMicrotask", "AbortController", "WebAssembly", "FinalizationRegistry", "URL", "URLSearchParams",
	"TextEncoder", "TextDecoder", "atob", "btoa", "fetch", "DisposableStack", "AsyncDisposableStack", "Float16Array"}

// commonModule is the name in place of module that esbuild makes of export =.
const commonModule = "stdin_module"

const (
	noClock  = "plans have no clock: the same source gives the same artifact"
	noChance = "plans have no randomness: the same source gives the same artifact"
	noTimers = "plans have no timers: build runs once, from start to end"
	noReach  = "plan code reaches no file, network or process"
	noSyntax = "it is newer than what plan code runs on: write it in an older way"
	noEval   = "plan code cannot make code from text"
)

// thrownText returns what an exception says.
func (u *unit) thrownText(v goja.Value) string {
	object, ok := v.(*goja.Object)
	switch {
	case !ok:
		return v.String()
	case hosted(v):
		return plainWords(v)
	}
	message, name := object.Get("message"), object.Get("name")
	if message == nil || goja.IsUndefined(message) || name == nil {
		return plainWords(v)
	}
	return strings.TrimPrefix(name.String()+": "+message.String(), "Error: ")
}

// plainer has what to say in place of what the engine says.
var plainer = []struct {
	engine *regexp.Regexp
	text   string
}{
	{regexp.MustCompile(`^TypeError: Object has no member '(.*)'$`), "TypeError: $1 is not a function: the value in front of it has no such member"},
	{regexp.MustCompile(`^TypeError: Value is not an object: (.*)$`), "TypeError: $1 is not a function or an object, as it has to be here"},
	{regexp.MustCompile(`^TypeError: (?:Value is not callable|Not a function): (.*)$`), "TypeError: $1 is not a function"},
	{regexp.MustCompile(`^TypeError: Value is not a constructor$`), "TypeError: the value behind new is not a class"},
	{regexp.MustCompile(`^TypeError: Cannot read property '(.*)' of undefined(?: or null)?$`), "TypeError: Cannot read property '$1' of undefined or null"},
	{regexp.MustCompile(`^TypeError: Value is not object coercible$`), "TypeError: undefined or null has no members to take, as const { a } = x takes them"},
	{regexp.MustCompile(`^TypeError: Cannot convert undefined or null to object$`), "TypeError: undefined or null stands where a list or an object has to be"},
	{regexp.MustCompile(`^TypeError: object is not iterable$`), "TypeError: the value is not a list: it has no elements to loop over, to spread or to take"},
	{regexp.MustCompile(`^TypeError: Receiver is not an object: (.*)$`), "TypeError: $1 is not an object, so it takes no members"},
	{regexp.MustCompile(`^TypeError: No initial value$`), "TypeError: reduce of an empty array needs a second argument"},
	{regexp.MustCompile(`^TypeError: (?:prototype is not an object|Function has non-object prototype in instanceof check|Expecting a function in instanceof check, but got .*)$`), "TypeError: the right side of instanceof is not a class"},
	{regexp.MustCompile(`^TypeError: .*\b(?:[dD]ynamic|[hH]ost) (?:objects?|array)\b.*$`), "TypeError: Key, P, EP, the context and rows cannot be changed"},
	{regexp.MustCompile(`^SyntaxError: (invalid character .*|unexpected end of JSON input|unexpected EOF|EOF)$`), "SyntaxError: the text is not JSON: $1"},
	{regexp.MustCompile(`^SyntaxError: Invalid flags supplied to RegExp constructor '(.*)'$`), "SyntaxError: patterns of plan code have the flags g, i, m, s, u and y, each once, not $1"},
	{regexp.MustCompile(`^SyntaxError: Invalid regular expression \(re2\): (.*) \(error parsing regexp: (.*)\)$`), "SyntaxError: the pattern $1 has a fault: $2"},
}

// thrownWords returns the message of an exception and a hint.
func (u *unit) thrownWords(e *goja.Exception) (message, hint string) {
	text := "an object"
	_ = u.inside(func() error { text = u.thrownText(e.Value()); return nil }) // it may throw once more
	if text == "TypeError: Dynamic object is not callable" {
		return "a key, a parameter or an expression is called as a function", "write Key.id without parentheses, and an operator between two expressions"
	}
	if match := notDefined.FindStringSubmatch(text); match != nil {
		if match[1] == commonModule {
			return "a plan has no export =", "write export default"
		}
		if why, ok := absent[match[1]]; ok {
			return "plans have no " + match[1], why
		}
		return match[1] + " is not defined", u.globalHint(match[1])
	}
	text, _, _ = strings.Cut(text, "\n")
	for _, p := range plainer {
		if p.engine.MatchString(text) {
			text = p.engine.ReplaceAllString(text, p.text)
			break
		}
	}
	return "plan code failed: " + cutText(text), "the plan's own code threw this while the plan was built"
}
