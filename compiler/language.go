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
}

// Method is a task as a method. Immutable once built; any goroutine.
type Method struct {
	Op      string   // "test::fixed_source"
	Names   []string // as plans write it: "fixed_source" and, if it differs, "fixedSource"
	Doc     string   // one sentence
	Source  bool     // it is a method of the context
	Options []Option // in the order of the task's parameters, without CommonOptions

	// InputsMin and InputsMax bound the inputs. If there may be some, it is a method of a candidate set,
	// which is the first input; the option task.InputsOption lists the others.
	InputsMin, InputsMax int
}

// Option is a parameter of a task as an option. Immutable once built; any goroutine.
type Option struct {
	Param    string         // the parameter's name in artifacts: "out_key"; "" for trace and scheduling
	Names    []string       // as plans write it: "outKey"; sort's "by" is also "key"
	Type     plan.ParamType // of the parameter
	Key      bool           // plans write it as Key.name
	Required bool           // a plan must write it
	Doc      string         // Markdown
	Rule     plan.SourceRule

	List               bool // an array of MinItems to MaxItems values
	MinItems, MaxItems int
	Fields             []Option              // of a plan.Object
	EndpointKind       registry.EndpointKind // of a plan.Endpoint

	ofNode bool // Param is a member of the node, beside params
}

// The members of a node in the artifact to which options lead.
const (
	inputsField     = "inputs"
	onErrorField    = "on_error"
	optionalField   = "optional"
	schedulingField = "scheduling"
)

// commonOptions are the options of every method. A task's own parameter of the same name counts instead.
var commonOptions = []Option{
	{Param: "trace", Names: []string{"trace"}, Type: plan.String},
	{Param: schedulingField, Names: []string{"scheduling"}, Type: plan.Object, ofNode: true, Fields: []Option{
		{Param: "inline", Names: []string{"inline"}, Type: plan.Bool},
		{Param: "cost_estimate_us", Names: []string{"costEstimateUs"}, Type: plan.Int},
	}},
	{Param: "timeout_ms", Names: []string{"timeoutMs"}, Type: plan.Int, ofNode: true},
	{Param: onErrorField, Names: []string{"onError"}, Type: plan.Enum, Rule: plan.SourceRule{OneOf: []string{plan.OnErrorEmpty.String()}}, ofNode: true},
	{Param: optionalField, Names: []string{"optional"}, Type: plan.Bool, ofNode: true},
}

// withOption lists the inputs after the first.
var withOption = Option{Param: inputsField, Names: []string{task.InputsOption}, Type: plan.NodeRef, List: true, ofNode: true}

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
	l := &Language{}
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
	if p.Type == plan.ExprID || p.Type == plan.PredID {
		name = strings.TrimSuffix(name, "_id") // plans write the expression itself
	}
	o := Option{
		Param: p.Name, Names: []string{CamelCase(name)}, Type: p.Type, Key: p.IsKey || p.Type == plan.Key,
		Required: p.Required && p.Source.Default == nil, Doc: p.Doc, Rule: p.Source,
		List: p.List, MinItems: p.MinItems, MaxItems: p.ItemsMax(), Fields: newOptions(p.Fields), EndpointKind: p.KindOfEndpoint(),
	}
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
