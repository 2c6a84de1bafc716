package compiler

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
)

// host is what plan code can reach besides the language itself. One goroutine at a time.
type host struct {
	u          *unit
	vm         *goja.Runtime
	prototype  *goja.Object // of everything that the host makes
	object     *goja.Object // the object at hostName: the calls of rewritten code and the exports of the runtime
	broken     goja.Value   // what a fault left
	brokenCall goja.Value   // a member of it, or a member that does not exist: gives broken
	refused    *goja.Object // what plan code was last thrown for what it may not do; already reported

	definitions []*definition
	nodes       []*node // in the order of their making
	trying      bool    // plan code runs a side behind a token, which another row would skip
	defaults    []takenDefault
}

func newHost(u *unit) *host {
	return &host{u: u, vm: u.vm}
}

// install makes the sandbox: it removes what plans must not reach and adds the language.
func (h *host) install() error {
	mathObject := h.vm.GlobalObject().Get("Math").ToObject(h.vm)
	if err := h.installMath(mathObject); err != nil {
		return err
	}
	mathNames := mathObject.GetOwnPropertyNames()
	slices.Sort(mathNames)
	made, err := h.vm.RunProgram(prelude())
	if err != nil {
		return err
	}
	function, _ := goja.AssertFunction(made)
	calls := h.vm.NewObject()
	for name, f := range map[string]func(goja.FunctionCall) goja.Value{
		"isToken": func(c goja.FunctionCall) goja.Value { return h.vm.ToValue(tokenOf(c.Argument(0)) != nil) },
		"infix":   h.infix, "prefix": h.prefix, "test": h.test, "choose": h.choose, "value": h.value, "each": h.each,
		"resolve": h.resolve, "look": h.look, "replaceAdder": h.replaceAdder, "condition": h.condition, "changed": h.changed, "refuse": h.refuse, "forgets": func(c goja.FunctionCall) goja.Value { return h.vm.ToValue(forgets(c.Argument(0).String())) },
		"given": h.given, "taken": h.taken, "asks": h.asks, "varies": h.varies, "isSet": h.isSet, "fixed": h.fixed, "quiet": h.quiet, "halves": func(c goja.FunctionCall) goja.Value {
			return h.vm.ToValue(halves(c.Argument(0).ToString().(goja.String)))
		},
		"builtIn": func(c goja.FunctionCall) goja.Value {
			return h.vm.ToValue(c.Argument(0).ToObject(h.vm).ClassName() != "Object")
		}, "trying": h.try, "math": h.math, "includes": h.includes, "at": h.at,
		"convert": func(c goja.FunctionCall) goja.Value { return h.convertObject(c.Argument(0), c.Argument(1).String()) },
		"iterate": func(c goja.FunctionCall) goja.Value { h.iterate(c.Argument(0), h.site()); return h.empty() },
	} {
		if err := calls.Set(name, f); err != nil {
			return err
		}
	}
	built, err := function(goja.Undefined(), calls, h.vm.ToValue(mathNames))
	if err != nil {
		return err
	}
	parts := built.ToObject(h.vm)
	h.prototype = parts.Get("prototype").ToObject(h.vm)
	h.broken = h.make(&value{kind: broken})
	h.brokenCall = h.vm.ToValue(func(goja.FunctionCall) goja.Value { return h.broken })

	h.object = h.vm.NewObject()
	for name, v := range map[string]any{
		"calls": parts.Get("calls"), "module": parts.Get("module"), "link": parts.Get("link"), "definePlan": h.definePlan,
		"E": h.members("E", h.numberBuilders()), "Pred": h.members("Pred", h.predicateBuilders()),
	} {
		if err := h.object.Set(name, v); err != nil {
			return err
		}
	}
	if err := h.seal(); err != nil {
		return err
	}
	return h.globals()
}

// resolve returns the name of the file that an import means, or the exports of a module of the host.
func (h *host) resolve(c goja.FunctionCall) goja.Value {
	importer, specifier := c.Argument(0).String(), c.Argument(1).String()
	exports, ok := moduleExports[specifier]
	if !ok {
		return h.vm.ToValue(h.u.imports[[2]string{importer, specifier}])
	}
	module := h.vm.NewObject()
	_ = module.Set("__esModule", true)
	for _, name := range exports {
		_ = module.Set(name, h.object.Get(name))
	}
	return module
}

//go:embed sandbox.js
var sandboxSource string

var sandbox = sync.OnceValue(func() *goja.Program { return goja.MustCompile("sandbox", sandboxSource, true) })

// seal takes away every way to make code from text, clock and randomness.
func (h *host) seal() error {
	sealed, err := h.vm.RunProgram(sandbox())
	if err != nil {
		return err
	}
	function, _ := goja.AssertFunction(sealed)
	_, err = function(goja.Undefined(), h.vm.ToValue(h.refuse))
	if err != nil || h.u.testing != nil { // a test that fails says so
		return err
	}
	global := h.vm.GlobalObject()
	referenceError := global.Get("ReferenceError")
	for _, name := range missed {
		get := func(goja.FunctionCall) goja.Value {
			thrown, err := h.vm.New(referenceError, h.vm.ToValue(name+" is not defined"))
			if err != nil {
				panic(err)
			}
			panic(h.refusal("plans have no "+name, absent[name], thrown))
		}
		if err := global.DefineAccessorProperty(name, h.vm.ToValue(get), nil, goja.FLAG_TRUE, goja.FLAG_FALSE); err != nil {
			return err
		}
	}
	return nil
}

// refuse is called by the host's own scripts with what plan code may not do, and perhaps a hint.
func (h *host) refuse(c goja.FunctionCall) goja.Value {
	why, hint := c.Argument(0).String(), "write what the code needs as a constant"
	if given := c.Argument(1); !goja.IsUndefined(given) {
		hint = given.String()
	}
	panic(h.refusal(why, hint, h.vm.NewTypeError("%s", why)))
}

// refusal reports what plan code may not do, and returns what the code gets thrown. A plan that catches it is refused
// all the same: elsewhere its code would not have failed. A test fails by the exception alone.
func (h *host) refusal(message, hint string, thrown *goja.Object) *goja.Object {
	if h.u.testing == nil {
		h.u.failAt(h.u.here(), "exception", message, hint)
		h.refused = thrown
	}
	return thrown
}

// site returns the offset in the bundle of the name of the function that plan code has called.
func (h *host) site() int {
	return h.callSite().at
}

// callSite returns the call of the host that runs.
func (h *host) callSite() *callSite {
	at := h.u.here()
	if site := h.u.rewritten.calls[at]; site != nil {
		return site
	}
	return &callSite{start: at, at: at}
}

// arg returns the offset of an argument.
func (c *callSite) arg(i int) int {
	if i < len(c.args) {
		return c.args[i]
	}
	return c.at
}

// option returns the offset of an option: of its value or its name, or of the call if the options are not written
// there.
func (c *callSite) option(name string, value bool) int {
	if inside := strings.IndexAny(name, ".["); inside > 0 {
		name, value = name[:inside], true // an item of a list, or a field of an object
	}
	s, ok := c.options[name]
	switch {
	case !ok:
		return c.at
	case value:
		return s.to
	}
	return s.from
}

// members is an object with names that are looked up, such as Key. It implements
// goja.DynamicObject. One goroutine at a time.
type members struct {
	host   *host
	name   string
	get    func(string) goja.Value // nil: the name does not exist
	all    func() []string
	miss   string // code of the error for an unknown name
	tokens bool   // the members are tokens: Key and P
}

func (h *host) members(name string, values map[string]func(goja.FunctionCall) goja.Value) goja.Value {
	made := make(map[string]goja.Value, len(values))
	names := make([]string, 0, len(values))
	for name, f := range values {
		made[name] = h.vm.ToValue(f)
		names = append(names, name)
	}
	slices.Sort(names)
	return h.wrap(&members{
		host: h, name: name, miss: "unknown-builder",
		get: func(name string) goja.Value { return made[name] },
		all: func() []string { return names },
	})
}

// tokens is an object of tokens, each made on first use, so that Key.id === Key.id.
func (h *host) tokens(name, miss string, all []string, token func(i int) *value) *members {
	made := make(map[string]goja.Value)
	return &members{host: h, name: name, miss: miss, tokens: true, all: func() []string { return all }, get: func(name string) goja.Value {
		if i := slices.Index(all, name); i >= 0 && made[name] == nil {
			made[name] = h.make(token(i))
		}
		return made[name]
	}}
}

// Get implements goja.DynamicObject. It reports an unknown name.
func (m *members) Get(name string) goja.Value {
	if v := m.get(name); v != nil {
		return v
	}
	switch name {
	case "then", "toJSON", "constructor", "toString", "valueOf", "__esModule":
		return nil
	}
	hint := m.hint(name)
	m.host.u.failAt(m.host.u.hereName(name), m.miss, fmt.Sprintf("%s has no %s", m.name, quote(name)), hint)
	if m.miss == "unknown-builder" {
		return m.host.brokenCall
	}
	return m.host.broken
}

// hint proposes a member with a similar name. If there is none, or if the name may be of another registry, it says
// which registry was searched.
func (m *members) hint(name string) string {
	hint := ""
	near, ok := errtext.NearestLike(name, m.all())
	switch {
	case ok:
		hint = fmt.Sprintf("did you mean %s.%s?", m.name, near)
	case len(m.all()) == 0:
		hint = "there are none"
	case m.miss == "unknown-builder":
		hint = m.name + " has " + strings.Join(m.all(), ", ")
	}
	from := m.host.u.language.Registry
	if from == "" || m.miss == "unknown-builder" {
		return hint
	}
	from = "names come from " + from
	if m.host.u.language.Registry == registry.BuiltIn {
		from += "; --registry_dir, or rankd.toml, gives yours"
	}
	if hint == "" {
		return from
	}
	return hint + " (" + from + ")"
}

// Set implements goja.DynamicObject.
func (m *members) Set(string, goja.Value) bool { return m.host.refuseSet(m.name) }

// Has implements goja.DynamicObject. Who asks for a member of P gets the same answer for all requests.
func (m *members) Has(name string) bool {
	if !slices.Contains(m.all(), name) {
		return false
	}
	if m.tokens {
		if t := tokenOf(m.get(name)); t.mayLack() {
			m.host.lookAt(isThere, t, m.host.u.here())
		}
	}
	return true
}

// Delete implements goja.DynamicObject.
func (m *members) Delete(string) bool { return false }

// Keys implements goja.DynamicObject. In { a: 1, ...P } the members of P would be there, whether a request has them or not.
func (m *members) Keys() []string {
	if m.tokens {
		m.host.u.failAt(m.host.u.here(), "look", fmt.Sprintf("a list of members looks at %s, whose values are there only when the plan runs", m.name),
			fmt.Sprintf("name each: { a: %s.a ?? 1 }", m.name))
	}
	return m.all()
}

// endpoint is EP.redis.name. It implements goja.DynamicObject.
type endpoint struct {
	members
	EndpointName
}

func (e *endpoint) describe() string { return fmt.Sprintf("EP.%s.%s", e.Kind, e.Name) }

// globals adds the names that plans need not import.
func (h *host) globals() error {
	l := h.u.language
	key := h.tokens("Key", "unknown-key", names(l.Keys, func(i int) string { return l.Keys[i].Name }), func(i int) *value { return h.keyValue(&l.Keys[i]) })
	param := h.tokens("P", "unknown-param", names(l.Params, func(i int) string { return l.Params[i].Name }), func(i int) *value { return h.paramValue(&l.Params[i]) })

	kinds := make(map[string]map[string]goja.Value)
	var kindNames []string
	for _, e := range l.Endpoints {
		kind := string(e.Kind)
		if kinds[kind] == nil {
			kinds[kind] = make(map[string]goja.Value)
			kindNames = append(kindNames, kind)
		}
		kinds[kind][e.Name] = h.wrap(&endpoint{EndpointName: e, members: members{
			host: h, name: "EP." + kind + "." + e.Name, miss: "unknown-method",
			get: func(string) goja.Value { return nil }, all: func() []string { return nil },
		}})
	}
	ofKind := make(map[string]goja.Value)
	for kind, endpoints := range kinds {
		var all []string
		for _, e := range l.Endpoints {
			if string(e.Kind) == kind {
				all = append(all, e.Name)
			}
		}
		ofKind[kind] = h.wrap(&members{
			host: h, name: "EP." + kind, miss: "unknown-endpoint",
			get: func(name string) goja.Value { return endpoints[name] }, all: func() []string { return all },
		})
	}
	ep := &members{
		host: h, name: "EP", miss: "unknown-endpoint",
		get: func(name string) goja.Value { return ofKind[name] }, all: func() []string { return kindNames },
	}

	values := map[string]any{"Key": h.wrap(key), "P": h.wrap(param), "EP": h.wrap(ep), "regex": h.regex, "table": h.table}
	for _, name := range globalFunctions() {
		if o := functionOperator(name); o != nil {
			values[name] = func(c goja.FunctionCall) goja.Value { return h.apply(o, name, c.Arguments, h.callSite()) }
		}
	}
	for name, v := range values {
		if err := h.vm.GlobalObject().DefineDataProperty(name, h.vm.ToValue(v), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE); err != nil {
			return err
		}
	}
	return nil
}

// globalHint returns the nearest global name, as a hint.
func (u *unit) globalHint(name string) string {
	all := append([]string{"Key", "P", "EP"}, globalFunctions()...)
	if slices.Contains(runtimeExports, name) {
		return fmt.Sprintf("import { %s } from %q", name, runtimeModule)
	}
	if near, ok := errtext.Nearest(name, all); ok && (len(name) > 2 || strings.EqualFold(near, name)) {
		return "did you mean " + near + "?"
	}
	return ""
}

func names[T any](list []T, name func(int) string) []string {
	all := make([]string, len(list))
	for i := range list {
		all[i] = name(i)
	}
	return all
}

// empty returns a function that makes an iterator of nothing.
func (h *host) empty() goja.Value {
	return h.vm.ToValue(func(goja.FunctionCall) goja.Value {
		iterator := h.vm.NewObject()
		_ = iterator.Set("next", func(goja.FunctionCall) goja.Value {
			end := h.vm.NewObject()
			_ = end.Set("done", true)
			return end
		})
		return iterator
	})
}
