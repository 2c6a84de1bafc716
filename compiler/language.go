package compiler

import (
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// Language is the vocabulary of plans: the methods, with their options, and the names of keys,
// parameters and endpoints. It is plain data, so that a child process can receive it as JSON.
// Immutable once built; any goroutine.
type Language struct {
	Methods   []Method         // ascending by Op
	Keys      []registry.Key   // ascending by id
	Params    []registry.Param // ascending by id
	Endpoints []EndpointName   // ascending by id
	Registry  string           // says where keys, params and endpoints come from; empty: unknown
	TextIDs   bool             // rows of some entity have text ids, so plans may compare Key.id with texts
}

// Method is a task as a method. Immutable once built; any goroutine.
type Method struct {
	Op      string   // "test::fixed_source"
	Names   []string // as plans write it: "fixed_source" and, if it differs, "fixedSource"
	Doc     string   // one sentence
	Source  bool     // it is a method of the context
	Options []Option // in the order of the task's parameters, without CommonOptions

	// InputsMin and InputsMax bound the inputs. If there may be inputs, it is a method of a candidate set, which is
	// the first input; the option task.InputsOption lists the others.
	InputsMin, InputsMax int
}

// Option is a parameter of a task as an option. Immutable once built; any goroutine.
type Option struct {
	plan.ParamSchema          // a plan must write it
	Names            []string // as plans write it: "outKey"; sort's "by" is also "key"
	Fields           []Option // of a plan.Object, or of the object in place of an Int that is PerRequest

	ofNode bool // it is a member of the node, outside of params
}

// The members of a node in the artifact to which options lead.
const (
	inputsField     = "inputs"
	onErrorField    = "on_error"
	shareField      = "timeout"
	optionalField   = "optional"
	schedulingField = "scheduling"
)

// commonOptions are the options of every method. A task's own parameter of the same name takes precedence.
var commonOptions = func() []Option {
	scheduling := plan.ParamSchema{Name: schedulingField, Type: plan.Object, Fields: []plan.ParamSchema{
		{Name: "inline", Type: plan.Bool}, {Name: "cost_estimate_us", Type: plan.Int},
	}}
	share := plan.SourceRule{OneOf: []string{"40%"}}                      // an example
	empty := plan.SourceRule{OneOf: []string{plan.OnErrorEmpty.String()}} // an example
	all := newOptions([]plan.ParamSchema{
		{Name: "trace", Type: plan.String}, scheduling, {Name: "timeout_ms", Type: plan.Int}, {Name: shareField, Type: plan.Enum, Source: share},
		{Name: onErrorField, Type: plan.Enum, Source: empty}, {Name: optionalField, Type: plan.Bool},
	})
	for i := range all {
		all[i].ofNode = all[i].Name != "trace"
	}
	return all
}()

// withOption lists the inputs after the first.
var withOption = Option{ParamSchema: plan.ParamSchema{Name: inputsField, Type: plan.NodeRef, List: true}, Names: []string{task.InputsOption}, ofNode: true}

// all returns the options of the method with those that every method has.
func (m *Method) all() []Option {
	all := slices.Clone(m.Options)
	if m.InputsMax > 1 {
		all = append(all, withOption)
	}
	return append(all, commonOptions...)
}

// EndpointName names an endpoint as EP.kind.name. Immutable once built; any goroutine.
type EndpointName struct {
	ID   string
	Name string
	Kind registry.EndpointKind
}

// NewLanguage returns the language for these tasks and this registry.
func NewLanguage(catalog *task.Catalog, reg *registry.Registry) *Language {
	l := &Language{Registry: reg.Name(), TextIDs: reg.TextIDs()}
	for _, spec := range catalog.Specs() {
		l.Methods = append(l.Methods, newMethod(spec))
	}
	for _, key := range reg.Keys() {
		l.Keys = append(l.Keys, *key)
	}
	for _, param := range reg.Params() {
		l.Params = append(l.Params, *param)
	}
	for _, endpoint := range reg.Endpoints() {
		l.Endpoints = append(l.Endpoints, EndpointName{endpoint.ID, endpoint.Name, endpoint.Kind})
	}
	return l
}

func newMethod(spec *task.Spec) Method {
	_, bare, _ := strings.Cut(spec.Op, "::")
	m := Method{Op: spec.Op, Names: spellings(bare), Doc: spec.Doc, Source: spec.Inputs == 0, Options: newOptions(spec.Params)}
	m.InputsMin, m.InputsMax = spec.Inputs, max(spec.Inputs, spec.InputsMax)
	return m
}

func newOptions(params []plan.ParamSchema) []Option {
	options := make([]Option, len(params))
	for i := range params {
		options[i] = newOption(&params[i])
	}
	return options
}

func newOption(p *plan.ParamSchema) Option {
	name := p.Name
	if p.Type == plan.ExprID || p.Type == plan.PredID || p.IsParam {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_param_id"), "_id") // plans write the expression, or the parameter, itself
	}
	o := Option{ParamSchema: *p, Names: []string{CamelCase(name)}, Fields: newOptions(p.Fields)}
	if p.PerRequest {
		o.Fields = newOptions(plan.RequestIntFields)
	}
	o.Required = p.Required && p.Source.Default == nil
	if p.Source.Alias != "" {
		o.Names = append(o.Names, p.Source.Alias)
	}
	return o
}

// spellings returns name, and its camelCase if that differs.
func spellings(name string) []string { return slices.Compact([]string{name, CamelCase(name)}) }

// CamelCase turns "out_key" into "outKey".
func CamelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// method returns the method of that name.
func (l *Language) method(name string) *Method {
	for i := range l.Methods {
		if slices.Contains(l.Methods[i].Names, name) {
			return &l.Methods[i]
		}
	}
	return nil
}
