package compiler

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

//go:embed prelude.js
var preludeSource string

var prelude = goja.MustCompile("prelude", preludeSource, true)

const (
	planScript   = "plan" // name of the rewritten script in stacks
	callDepthMax = 2000   // of plan code
)

// run runs the plan's code and its build function. It returns nil after it has reported errors.
func (u *unit) run() *definition {
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
	script, err := goja.Parse(planScript, "(function ("+hostName+") {"+u.rewritten.script+"\nreturn plan;})", parser.WithDisableSourceMaps)
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
	exports, err := main(goja.Undefined(), u.host.object)
	if err != nil {
		u.failScript(err)
		return nil
	}
	exported := goja.Undefined()
	if object, ok := exports.(*goja.Object); ok {
		exported = object.Get("default")
	}
	d, ok := u.host.defined(exported)
	if !ok {
		return nil
	}
	if err := u.host.build(d); err != nil {
		u.failScript(err)
		return nil
	}
	return d
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
			at, found := u.offset(interrupted.Stack())
			if !found {
				at = int(u.statement.Load())
			}
			u.failAt(at, why.code, why.message, why.hint)
		}
	case errors.As(err, &tooDeep):
		at, _ := u.offset(tooDeep.Stack())
		u.failAt(at, "recursion", fmt.Sprintf("functions call each other more than %d levels deep", callDepthMax), "write a loop")
	case errors.As(err, &thrown):
		at, _ := u.offset(thrown.Stack())
		message, hint := u.thrownWords(thrown)
		u.failAt(at, "exception", message, hint)
	case errors.As(err, &syntax):
		u.failAt(u.rewritten.original(1, syntax.Offset-prefixLen+1), "syntax", "plan code cannot use this syntax: "+lowerFirst(syntax.Message), noSyntax)
	default:
		u.fail("exception", u.folder.entry, 1, 1, err.Error(), internalHint)
	}
}

var notDefined = regexp.MustCompile(`^ReferenceError: (\S+) is not defined$`)

// absent are names that scripts elsewhere have, with why plans have them not.
var absent = map[string]string{
	"Date": noClock, "performance": noClock, "setTimeout": noTimers, "setInterval": noTimers, "setImmediate": noTimers,
	"queueMicrotask": noTimers, "fetch": noReach, "XMLHttpRequest": noReach, "WebSocket": noReach, "process": noReach,
	"require": noReach, "module": noReach, "Deno": noReach, "Bun": noReach, "Buffer": noReach, "window": noReach, "document": noReach,
	"eval": noEval, "Function": noEval, "console": "plans have no output; throw new Error(text) stops with a text",
	"crypto": noChance,
}

const (
	noClock  = "plans have no clock: the same source gives the same artifact"
	noChance = "plans have no randomness: the same source gives the same artifact"
	noTimers = "plans have no timers: build runs once, from start to end"
	noReach  = "plan code reaches no file, network or process"
	noSyntax = "it is newer than what plan code runs on: write it in an older way"
	noEval   = "plan code cannot make code from text"
)

// thrownWords returns the message of an exception and a hint.
func (u *unit) thrownWords(e *goja.Exception) (message, hint string) {
	text := e.Value().String()
	if object, ok := e.Value().(*goja.Object); ok {
		if m := object.Get("message"); m != nil && !goja.IsUndefined(m) {
			text = strings.TrimPrefix(object.Get("name").String()+": "+m.String(), "Error: ")
		}
	}
	if match := notDefined.FindStringSubmatch(text); match != nil {
		if why, ok := absent[match[1]]; ok {
			return "plans have no " + match[1], why
		}
		return match[1] + " is not defined", u.globalHint(match[1])
	}
	text, _, _ = strings.Cut(text, "\n")
	return "plan code failed: " + cutText(text), "the plan's own code threw this while the plan was built"
}
