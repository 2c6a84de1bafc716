package compiler

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/task"
)

// node is a node of the plan and, in plan code, the candidate set that it makes; without a method it
// is the context. It implements goja.DynamicObject. One goroutine at a time.
type node struct {
	host   *host
	method *Method        // nil for the context
	inputs []*node        // none for a source
	refs   []*node        // node references among the parameters
	params map[string]any // by parameter: JSON values, *node, placedTree, lists and objects of them
	hints  map[string]any // members of scheduling
	limit  int64          // timeout_ms; 0 means none

	onError  any   // a word of onErrors; nil if there is none
	fallback *node // of on_error; nil if there is none
	optional bool

	at int // offset in the bundle of the method's name

	needed bool
	id     string
}

func (n *node) name() string {
	if n.method == nil {
		return "the context"
	}
	return "a candidate set"
}

// Get implements goja.DynamicObject: the methods.
func (n *node) Get(name string) goja.Value {
	h := n.host
	m := h.u.language.method(name)
	if m != nil && m.continues(n) {
		return h.vm.ToValue(func(c goja.FunctionCall) goja.Value { return h.newNode(n, m, name, c) })
	}
	switch name {
	case "then", "toJSON", "constructor", "toString", "valueOf":
		return nil
	}
	var hint string
	switch {
	case m != nil && m.Source:
		hint = fmt.Sprintf("%s starts a plan: write ctx.%s(...)", name, name)
	case m != nil:
		hint = fmt.Sprintf("%s continues a candidate set: write ctx.viewer(...).%s(...)", name, name)
	default:
		if near, ok := nearest.Name(name, n.Keys()); ok {
			hint = "did you mean " + near + "?"
		}
	}
	h.u.failAt(h.u.hereName(name), "unknown-method", fmt.Sprintf("%s has no method %s", n.name(), quote(name)), hint)
	return h.brokenCall
}

// Set implements goja.DynamicObject.
func (n *node) Set(string, goja.Value) bool { return n.host.refuseSet(n.name()) }

// Has implements goja.DynamicObject.
func (n *node) Has(name string) bool { return slices.Contains(n.Keys(), name) }

// Delete implements goja.DynamicObject.
func (n *node) Delete(string) bool { return false }

// Keys implements goja.DynamicObject.
func (n *node) Keys() []string {
	var all []string
	for i := range n.host.u.language.Methods {
		if m := &n.host.u.language.Methods[i]; m.continues(n) {
			all = append(all, m.Names...)
		}
	}
	return all
}

// continues reports whether m is a method of n.
func (m *Method) continues(n *node) bool {
	if n.method == nil {
		return m.Source
	}
	return m.InputsMax > 0
}

// newNode calls a method.
func (h *host) newNode(input *node, m *Method, name string, c goja.FunctionCall) goja.Value {
	site := h.callSite()
	n := &node{host: h, method: m, params: make(map[string]any), at: site.at}
	if input.method != nil {
		n.inputs = append(n.inputs, input)
	}
	h.nodes = append(h.nodes, n)
	if len(h.nodes) > nodesMax {
		h.u.failAt(site.at, "too-large", fmt.Sprintf("the plan has more than %d nodes", nodesMax), "look for a loop that makes nodes")
		h.u.stop()
		return h.broken
	}
	if len(c.Arguments) > 1 {
		h.u.failAt(site.arg(1), "arguments", fmt.Sprintf("%s takes one argument, its options", name), "put all options into one object")
	}
	o := optionReader{host: h, node: n, name: name, site: site}
	o.read(c.Argument(0))
	return h.wrap(n)
}

// nodesMax bounds the nodes of a plan.
const nodesMax = 10_000

// optionReader reads the options of one call. One goroutine at a time.
type optionReader struct {
	host *host
	node *node
	name string // of the method, as the plan writes it
	site *callSite
}

// common are the options of every method. A task's own parameter of the same name counts instead.
var common = []string{"trace", "scheduling", "timeoutMs", "onError", "optional"}

func (o *optionReader) read(v goja.Value) {
	m := o.node.method
	object, ok := v.(*goja.Object)
	switch {
	case v == nil || goja.IsUndefined(v):
		object = o.host.vm.NewObject()
	case o.host.isBroken(v):
		return
	case !ok || object.ClassName() != "Object" || tokenOf(v) != nil:
		o.host.u.failAt(o.site.arg(0), "type", fmt.Sprintf("%s takes an object of options, not %s", o.name, plainWords(v)),
			fmt.Sprintf("write %s({ ... })", o.name))
		return
	}
	if hosted(v) {
		o.host.u.failAt(o.site.arg(0), "type", fmt.Sprintf("%s takes an object of options, not %s", o.name, plainWords(v)),
			fmt.Sprintf("write %s({ %s })", o.name, m.example()))
		return
	}
	given := make(map[string]string) // parameter to the name in the source
	misspelt := false
	for _, name := range object.Keys() {
		value := object.Get(name)
		option := optionNamed(m.Options, name)
		switch {
		case option != nil && given[option.Param] != "":
			o.fail(name, false, "option", "%s and %s are the same option of %s", "keep one of them", given[option.Param], name, o.name)
		case name == task.InputsOption && m.InputsMax > 1:
			o.with(value)
		case option != nil:
			given[option.Param] = name
			if value == nil || goja.IsUndefined(value) {
				delete(given, option.Param)
				continue // as if it were left out
			}
			if v, ok := o.param(option, name, value); ok {
				o.node.params[option.Param] = v
			}
		case slices.Contains(common, name):
			o.common(name, value)
		default:
			o.unknown(name)
			misspelt = true
		}
	}
	if count := len(o.node.inputs); count > 0 && count < m.InputsMin {
		o.host.u.failAt(o.site.at, "missing-option", fmt.Sprintf("%s needs %d inputs, not %d", o.name, m.InputsMin, count),
			"write "+task.InputsOption+": [other]")
	}
	for i := range m.Options {
		option := &m.Options[i]
		if given[option.Param] != "" {
			continue
		}
		switch {
		case option.Required && misspelt: // it may be the misspelt one
		case option.Required:
			o.host.u.failAt(o.site.at, "missing-option", fmt.Sprintf("%s needs the option %s", o.name, option.Names[0]),
				fmt.Sprintf("write %s({ %s })", o.name, m.example()))
		case option.Rule.Default != nil:
			o.node.params[option.Param] = *option.Rule.Default
		}
	}
}

// example writes the required options.
func (m *Method) example() string { return requiredExample(m.Options) }

// place returns where an option is: its value, or its name, or the call.
func (o *optionReader) place(name string, value bool) int {
	if inside := strings.IndexAny(name, ".["); inside > 0 {
		name = name[:inside] // an item of a list, or a field of an object
	}
	s, ok := o.site.options[name]
	switch {
	case !ok:
		return o.site.at
	case value:
		return s.to
	}
	return s.from
}

// fail reports a fault of an option, at its value or at its name.
func (o *optionReader) fail(name string, value bool, code, format, hint string, args ...any) {
	o.host.u.failAt(o.place(name, value), code, fmt.Sprintf(format, args...), hint)
}

func (o *optionReader) unknown(name string) {
	all := optionNames(o.node.method.Options)
	if o.node.method.InputsMax > 1 {
		all = append(all, task.InputsOption)
	}
	hint := ""
	if near, ok := nearest.Name(name, append(all, common...)); ok {
		hint = "did you mean " + near + "?"
	}
	o.fail(name, false, "unknown-option", "%s has no option %s", hint, o.name, quote(name))
}

// advice shows how an option is written.
func (o *optionReader) advice(option *Option, name string) string {
	return "write " + name + ": " + option.example()
}

// wrong reports a value of a wrong type.
func (o *optionReader) wrong(name, want string, v goja.Value, hint string) {
	if t := tokenOf(v); t != nil && t.param != nil {
		hint = t.name + " has a value only when the plan runs; this option is fixed when the plan is built"
	}
	o.fail(name, true, "type", "%s must be %s, not %s", hint, name, want, plainWords(v))
}

// common reads an option that every method has.
func (o *optionReader) common(name string, v goja.Value) {
	if v == nil || goja.IsUndefined(v) || o.host.isBroken(v) {
		return
	}
	switch name {
	case "trace":
		switch {
		case goja.IsNull(v):
			o.node.params["trace"] = nil
		case goja.IsString(v):
			o.node.params["trace"] = v.String()
		default:
			o.wrong(name, "a string or null", v, `write trace: "top"`)
		}
	case "timeoutMs":
		if f := v.ToFloat(); !goja.IsNumber(v) || f != math.Trunc(f) || f < 1 || f > timeoutMaxMS {
			o.wrong(name, fmt.Sprintf("an integer from 1 to %d", int64(timeoutMaxMS)), v, "write timeoutMs: 50")
			return
		}
		o.node.limit = v.ToInteger()
	case "scheduling":
		o.scheduling(v)
	case "onError":
		o.onError(v)
	case "optional":
		o.optional(v)
	}
}

// timeoutMaxMS keeps durations within what the engine counts, nanoseconds in 64 bits.
const timeoutMaxMS = math.MaxInt64 / 1_000_000 / 1000 * 1000

// scheduling reads the scheduling hint.
func (o *optionReader) scheduling(v goja.Value) {
	object, ok := v.(*goja.Object)
	if !ok || object.ClassName() != "Object" {
		o.wrong("scheduling", "an object", v, "write scheduling: { inline: true } or { costEstimateUs: 50 }")
		return
	}
	o.node.hints = make(map[string]any)
	for _, name := range object.Keys() {
		value := object.Get(name)
		switch b, isBool := boolean(value); {
		case goja.IsUndefined(value) || o.host.isBroken(value):
		case name == "inline" && isBool:
			o.node.hints["inline"] = b
		case name == "inline":
			o.fail("scheduling", true, "type", "scheduling.inline must be true or false, not %s", "write scheduling: { inline: true }", plainWords(value))
		case name == "costEstimateUs":
			if f := value.ToFloat(); !goja.IsNumber(value) || f != math.Trunc(f) || f < 0 || f > 1<<53 {
				o.fail("scheduling", true, "type", "scheduling.costEstimateUs must be an integer that is not negative, not %s", "write scheduling: { costEstimateUs: 50 }", plainWords(value))
				continue
			}
			o.node.hints["cost_estimate_us"] = value.ToInteger()
		default:
			near, _ := nearest.Name(name, []string{"inline", "costEstimateUs"})
			o.fail("scheduling", true, "unknown-option", "scheduling has no option %s", "did you mean "+near+"?", quote(name))
		}
	}
}

// definition is what definePlan returns. It implements goja.DynamicObject. One goroutine at a time.
type definition struct {
	members
	plan    string
	nameAt  int
	at      int
	build   goja.Callable
	outputs []*node
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// planNameMax bounds a plan's name, which becomes part of a file's name.
const planNameMax = 200

// definePlan is definePlan({ name, build }).
func (h *host) definePlan(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	d := &definition{at: site.at, members: members{
		host: h, name: "the plan", miss: "unknown-method",
		get: func(string) goja.Value { return nil }, all: func() []string { return nil },
	}}
	h.definitions = append(h.definitions, d)
	place := func(name string) int {
		if s, ok := site.options[name]; ok {
			return s.to
		}
		return site.at
	}
	object, ok := c.Argument(0).(*goja.Object)
	if !ok || object.ClassName() != "Object" || len(c.Arguments) != 1 {
		h.u.failAt(site.at, "definition", "definePlan takes one object", "write definePlan({ name: \"my_plan\", build: (ctx) => ... })")
		return h.wrap(d)
	}
	for _, name := range object.Keys() {
		if name != "name" && name != "build" {
			near, _ := nearest.Name(name, []string{"name", "build"})
			at := site.at
			if s, ok := site.options[name]; ok {
				at = s.from
			}
			h.u.failAt(at, "unknown-option", "definePlan has no option "+quote(name), "did you mean "+near+"?")
		}
	}
	name := object.Get("name")
	d.nameAt = place("name")
	switch {
	case name == nil || goja.IsUndefined(name):
		h.u.failAt(site.at, "missing-option", "definePlan needs the option name", "write definePlan({ name: \"my_plan\", build: (ctx) => ... })")
	case !goja.IsString(name):
		h.u.failAt(d.nameAt, "plan-name", "name must be a string, not "+plainWords(name), `write name: "my_plan"`)
	case !validName.MatchString(name.String()) || len(name.String()) > planNameMax:
		h.u.failAt(d.nameAt, "plan-name", fmt.Sprintf("the plan's name %s must consist of letters, digits and _, at most %d", quote(name.String()), planNameMax),
			"the name becomes the artifact's file name and what requests ask for")
	default:
		d.plan = name.String()
	}
	build := object.Get("build")
	if d.build, ok = goja.AssertFunction(build); !ok {
		if build == nil || goja.IsUndefined(build) {
			h.u.failAt(site.at, "missing-option", "definePlan needs the option build", "write build: (ctx) => ctx.viewer({ ... })")
		} else {
			h.u.failAt(place("build"), "type", "build must be a function, not "+plainWords(build), "write build: (ctx) => ctx.viewer({ ... })")
		}
	}
	return h.wrap(d)
}

// defined returns the one plan that the source defines. It returns false after it has reported a
// fault.
func (h *host) defined(exported goja.Value) (*definition, bool) {
	d, ok := export[*definition](exported)
	switch {
	case len(h.definitions) > 1:
		h.u.failAt(h.definitions[1].at, "definition", "the source defines a second plan", "write one plan per file")
		return nil, false
	case !ok && len(h.definitions) == 1:
		h.u.failAt(h.definitions[0].at, "definition", "the plan is not exported", "write export default definePlan({ ... })")
		return nil, false
	case !ok:
		h.u.fail("definition", h.u.folder.entry, 1, 1, "the source defines no plan", "write export default definePlan({ name, build })")
		return nil, false
	}
	if file, line, column := h.u.place(d.at); file != h.u.folder.entry {
		h.u.fail("import-plan", file, line, column, file+" holds a plan of its own", "move what both plans use into a file of its own")
		return nil, false
	}
	if d.plan != "" {
		h.u.answer.Plan = d.plan
		file, line, column := h.u.place(d.nameAt)
		h.u.answer.NameLine, h.u.answer.NameCol, h.u.answer.NameText = line, column, h.u.folder.line(file, line)
	}
	return d, d.build != nil
}

// define runs the plan's code and its build function. The definition is nil after it has reported a
// fault.
func (h *host) define(main goja.Callable) (*definition, error) {
	exports, err := main(goja.Undefined(), h.object)
	if err != nil {
		return nil, err
	}
	exported := goja.Undefined()
	if object, ok := exports.(*goja.Object); ok {
		exported = object.Get("default")
	}
	d, ok := h.defined(exported)
	if !ok {
		return nil, nil
	}
	result, err := d.build(goja.Undefined(), h.wrap(&node{host: h}))
	if err != nil {
		return nil, err
	}
	h.outputs(d, result)
	return d, nil
}

// outputs reads what build has returned.
func (h *host) outputs(d *definition, result goja.Value) {
	at := d.at
	if n, ok := export[*node](result); ok && n.method != nil {
		d.outputs = []*node{n}
		return
	}
	array, ok := result.(*goja.Object)
	if h.isBroken(result) {
		return
	}
	if isPromise(result) {
		h.u.failAt(at, "outputs", "build must not be async: it returned a promise, and nothing waits for that",
			"build runs once, from start to end, when the plan is compiled: leave out async and await")
		return
	}
	if !ok || array.ClassName() != "Array" {
		h.u.failAt(at, "outputs", "build must return a candidate set or an array of them, not "+plainWords(result),
			"an arrow function with braces needs a return")
		return
	}
	length := array.Get("length").ToInteger()
	if length > nodesMax {
		h.u.failAt(at, "too-large", fmt.Sprintf("build returned an array of %d elements, more than %d", length, nodesMax), "look for a loop that makes outputs")
		return
	}
	for i := range length {
		item := array.Get(itoa(int(i)))
		if item == nil {
			item = goja.Undefined()
		}
		n, ok := export[*node](item)
		switch {
		case h.isBroken(item):
		case !ok || n.method == nil:
			h.u.failAt(at, "outputs", fmt.Sprintf("build must return candidate sets, but element %d is %s", i, plainWords(item)), "return [a, b] with a and b from ctx.viewer(...) and its methods")
		default:
			d.outputs = append(d.outputs, n)
		}
	}
}
