package compiler

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
)

// node is a node of the plan and, in plan code, the candidate set that it makes; without a method it
// is the context. It implements goja.DynamicObject. One goroutine at a time.
type node struct {
	host   *host
	method *Method // nil for the context
	input  *node   // the first one; nil for a source
	refs   []*node // further inputs, node references and the fallback
	// The members of the node in the artifact, and its parameters, by name: JSON values, *node, placedTree, lists and
	// objects of them.
	fields, params map[string]any
	places         map[string]place // by path in the node: "params.count"

	at   int    // offset in the bundle of the method's name
	call string // the method as the plan writes it

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
		hint = "is it a task of a program of your own?"
		if near, ok := errtext.Nearest(name, n.Keys()); ok {
			hint = "did you mean " + near + ", or a task of a program of your own?"
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
	n := &node{host: h, method: m, fields: make(map[string]any), params: make(map[string]any), places: make(map[string]place), at: site.at, call: name}
	if input.method != nil {
		n.input = input
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
	o := optionReader{host: h, node: n, site: site}
	o.read(c.Argument(0))
	return h.wrap(n)
}

// nodesMax bounds the nodes of a plan.
const nodesMax = 10_000

// definition is what definePlan returns. It implements goja.DynamicObject. One goroutine at a time.
type definition struct {
	members
	plan    string
	nameAt  int
	at      int
	build   goja.Callable
	outputs []*node
	names   []string         // of the outputs; nil: they have none
	given   map[string]any   // returns, lenient, min_rows, below and log, as the artifact has them
	places  map[string]place // of their members
	least   goja.Value       // minRows; nil: not given
	leastAt int
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// planNameMax bounds a plan's name, which becomes part of a file's name.
const planNameMax = 200

// definePlan is definePlan({ name, build }).
func (h *host) definePlan(c goja.FunctionCall) goja.Value {
	site := h.callSite()
	d := &definition{at: site.at, given: make(map[string]any), places: make(map[string]place), members: members{
		host: h, name: "the plan", miss: "unknown-method",
		get: func(string) goja.Value { return nil }, all: func() []string { return nil },
	}}
	h.definitions = append(h.definitions, d)
	object, ok := c.Argument(0).(*goja.Object)
	if !ok || object.ClassName() != "Object" || len(c.Arguments) != 1 {
		h.u.failAt(site.at, "definition", "definePlan takes one object", "write definePlan({ name: \"my_plan\", build: (ctx) => ... })")
		return h.wrap(d)
	}
	options := []string{"name", "returns", "lenient", "minRows", "below", "log", "build"}
	for _, name := range object.Keys() {
		if !slices.Contains(options, name) {
			near, _ := errtext.Nearest(name, options)
			h.u.failAt(site.option(name, false), "unknown-option", "definePlan has no option "+quote(name), "did you mean "+near+"?")
		}
	}
	name := object.Get("name")
	d.nameAt = site.option("name", true)
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
	for _, option := range [...]struct {
		name string
		read func(v goja.Value, at int)
	}{
		{"returns", func(v goja.Value, at int) { d.given["returns"] = h.keys(v, "returns", at) }},
		{"lenient", func(v goja.Value, at int) { h.lenient(d, v, at) }},
		{"minRows", func(v goja.Value, at int) { d.least, d.leastAt = v, at }},
		{"below", func(v goja.Value, at int) { h.below(d, v, at) }},
		{"log", func(v goja.Value, at int) { h.log(d, v, at) }},
	} {
		if v := object.Get(option.name); v != nil && !goja.IsUndefined(v) {
			option.read(v, site.option(option.name, true))
		}
	}
	build := object.Get("build")
	if d.build, ok = goja.AssertFunction(build); !ok {
		if build == nil || goja.IsUndefined(build) {
			h.u.failAt(site.at, "missing-option", "definePlan needs the option build", "write build: (ctx) => ctx.viewer({ ... })")
		} else {
			h.u.failAt(site.option("build", true), "type", "build must be a function, not "+plainWords(build), "write build: (ctx) => ctx.viewer({ ... })")
		}
	}
	return h.wrap(d)
}

// keys reads the keys of an option: returns, or log.columns.
func (h *host) keys(list goja.Value, option string, at int) (keys []registry.KeyID) {
	array := arrayOf(list)
	example := "write " + option + ": [Key.title, Key.price]"
	switch {
	case h.isBroken(list):
		return nil
	case array == nil:
		h.u.failAt(at, "type", option+" must be an array of keys, not "+plainWords(list), example)
		return nil
	case array.Get("length").ToInteger() > nodesMax:
		h.u.failAt(at, "too-large", fmt.Sprintf("%s has more than %d elements", option, nodesMax), "look for a loop that makes them")
		return nil
	}
	keys = []registry.KeyID{}
	for i := range array.Get("length").ToInteger() {
		item := array.Get(itoa(int(i)))
		if item == nil {
			item = goja.Undefined()
		}
		t := tokenOf(item)
		switch {
		case h.isBroken(item):
		case t == nil || t.key == nil:
			h.u.failAt(at, "type", fmt.Sprintf("element %d of %s must be a key, not %s", i, option, plainWords(item)), example)
		case t.key.ID == registry.IDKey:
			h.u.failAt(at, option, option+" need not have Key.id", "each row has its id")
		case slices.Contains(keys, t.key.ID):
			h.u.failAt(at, option, option+" has "+short(t)+" twice", "leave one out")
		default:
			keys = append(keys, t.key.ID)
		}
	}
	return keys
}

// log reads what the log of served rows has. The loader checks the values.
func (h *host) log(d *definition, log goja.Value, at int) {
	const example = `write log: { columns: [Key.price], at: "candidates", rows: { answer: true, others: 20 } }`
	object, members := h.section(d, log, "log", at, example)
	for _, name := range object.Keys() {
		switch v := object.Get(name); {
		case name != "columns" && name != "at" && name != "rows":
			h.u.failAt(at, "unknown-option", "log has no member "+quote(name), example)
		case v == nil || goja.IsUndefined(v) || h.isBroken(v):
		case name == "columns":
			members["columns"] = h.keys(v, "log.columns", at)
			d.places["log.columns"] = h.u.placed(at, "log.columns")
		case name == "at":
			if !goja.IsString(v) {
				h.u.failAt(at, "type", "log.at must be the label of a node, its trace, not "+plainWords(v), example)
				continue
			}
			members["at"] = v.String()
			d.places["log.at"] = h.u.placed(at, "log.at")
		default:
			h.logRows(d, members, v, at)
		}
	}
}

// logRows reads which rows the log has: "answer", or { answer: true, others: 20 }.
func (h *host) logRows(d *definition, members map[string]any, rows goja.Value, at int) {
	const example = `write rows: "answer" or rows: { answer: true, others: 20 }`
	object := objectOf(rows)
	if goja.IsString(rows) && rows.String() == "answer" {
		return
	}
	if object == nil {
		h.u.failAt(at, "type", `log.rows must be "answer" or an object, not `+plainWords(rows), example)
		return
	}
	answer := object.Get("answer")
	if answer == nil || answer.Export() != true {
		h.u.failAt(at, "type", "log.rows must have answer: true", example)
	}
	for _, name := range object.Keys() {
		switch v := object.Get(name); {
		case name == "answer" || h.isBroken(v):
		case name != "others":
			h.u.failAt(at, "unknown-option", "log.rows has no member "+quote(name), example)
		case !goja.IsNumber(v):
			h.u.failAt(at, "type", "log.rows.others must be a number, not "+plainWords(v), example)
		default:
			members["others"] = v.Export()
			d.places["log.others"] = h.u.placed(at, "log.rows.others")
		}
	}
}

// section returns an option that must be an object, and the object of the artifact that it becomes.
func (h *host) section(d *definition, v goja.Value, option string, at int, example string) (object *goja.Object, members map[string]any) {
	if object = objectOf(v); object == nil {
		if !h.isBroken(v) {
			h.u.failAt(at, "type", option+" must be an object, not "+plainWords(v), example)
		}
		return h.vm.NewObject(), nil
	}
	members = make(map[string]any)
	d.given[option], d.places[option] = members, h.u.placed(at, option)
	return object, members
}

// below reads what happens with too few rows. The loader checks the value.
func (h *host) below(d *definition, v goja.Value, at int) {
	if !goja.IsString(v) {
		h.u.failAt(at, "type", "below must be a string, not "+plainWords(v), `write below: "error"`)
		return
	}
	d.given["below"], d.places["below"] = v.String(), h.u.placed(at, "below")
}

// minimum reads how few rows each output should have: a number for all, or numbers by name. The outputs are known.
func (h *host) minimum(d *definition) {
	if d.least == nil || h.isBroken(d.least) {
		return
	}
	const example = "write minRows: 5, or minRows: { home: 5 } if the outputs have names"
	minRows, named := make([]any, len(d.outputs)), objectOf(d.least)
	d.given["min_rows"] = minRows
	for i := range minRows {
		if minRows[i] = 0; goja.IsNumber(d.least) {
			minRows[i] = d.least.Export()
		}
		d.places[fmt.Sprintf("min_rows[%d]", i)] = h.u.placed(d.leastAt, "minRows")
	}
	if named == nil {
		if !goja.IsNumber(d.least) {
			h.u.failAt(d.leastAt, "type", "minRows must be a number or an object, not "+plainWords(d.least), example)
		}
		return
	}
	for _, name := range named.Keys() {
		switch at, v := slices.Index(d.names, name), named.Get(name); {
		case at < 0:
			h.u.failAt(d.leastAt, "unknown-option", "minRows names "+quote(name)+", and build returns no output of that name", example)
		case !goja.IsNumber(v):
			h.u.failAt(d.leastAt, "type", "minRows."+name+" must be a number, not "+plainWords(v), example)
		default:
			minRows[at] = v.Export()
		}
	}
}

// lenientMembers are the members of the policy of a plan, as artifacts name them.
var lenientMembers = []string{"on_error", "timeout", "timeout_ms", "answer_by"}

// lenient reads the policy of the plan. The loader checks the values.
func (h *host) lenient(d *definition, policy goja.Value, at int) {
	const example = `write lenient: { onError: "auto", timeout: "40%", answerBy: "80%" }`
	object, members := h.section(d, policy, "lenient", at, example)
	faults := len(h.u.answer.Errors)
	for _, name := range object.Keys() {
		v := object.Get(name)
		member := slices.IndexFunc(lenientMembers, func(m string) bool { return CamelCase(m) == name })
		switch {
		case member < 0:
			h.u.failAt(at, "unknown-option", "lenient has no member "+quote(name), example)
		case v == nil || goja.IsUndefined(v) || h.isBroken(v):
		case !goja.IsString(v) && !goja.IsNumber(v):
			h.u.failAt(at, "type", "lenient."+name+" must be a string or a number, not "+plainWords(v), example)
		default:
			members[lenientMembers[member]], d.places["lenient."+lenientMembers[member]] = v.Export(), h.u.placed(at, "lenient."+name)
		}
	}
	if len(h.u.answer.Errors) > faults {
		delete(d.given, "lenient") // The loader need not say that it is empty.
	}
}

// defined returns the only plan that the source defines. It returns false after it has reported a fault.
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
	bad := h.vm.Try(func() { // a getter
		h.outputs(d, result)
		h.minimum(d)
	})
	if bad != nil {
		return nil, bad
	}
	return d, nil
}

// outputs reads what build has returned.
func (h *host) outputs(d *definition, result goja.Value) {
	at := d.at
	if n, ok := export[*node](result); ok && n.method != nil {
		d.outputs = []*node{n}
		return
	}
	array, named := arrayOf(result), objectOf(result)
	if named != nil {
		d.names = named.Keys()
	}
	switch {
	case h.isBroken(result):
		return
	case isPromise(result):
		h.u.failAt(at, "outputs", "build must not be async: it returned a promise, and nothing waits for that",
			"build runs once, from start to end, when the plan is compiled: leave out async and await")
		return
	case array == nil && len(d.names) == 0:
		h.u.failAt(at, "outputs", "build must return a candidate set, or an array or object of them, not "+plainWords(result),
			"an arrow function with braces needs a return")
		return
	}
	length := int64(len(d.names))
	if named == nil {
		length = array.Get("length").ToInteger()
	}
	if length > nodesMax {
		h.u.failAt(at, "too-large", fmt.Sprintf("build returned %d outputs, more than %d", length, nodesMax), "look for a loop that makes outputs")
		return
	}
	for i := range length {
		var item goja.Value
		var of, hint string
		if named != nil {
			item, of, hint = named.Get(d.names[i]), quote(d.names[i]), "return { home: a, deals: b } with a and b from ctx.viewer(...) and its methods"
		} else {
			item, of, hint = array.Get(itoa(int(i))), fmt.Sprintf("element %d", i), "return [a, b] with a and b from ctx.viewer(...) and its methods"
		}
		if item == nil {
			item = goja.Undefined()
		}
		n, ok := export[*node](item)
		switch {
		case h.isBroken(item):
		case !ok || n.method == nil:
			h.u.failAt(at, "outputs", fmt.Sprintf("build must return candidate sets, but %s is %s", of, plainWords(item)), hint)
		default:
			d.outputs = append(d.outputs, n)
		}
	}
}
