package reference

import (
	"fmt"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// A Task is the description of one task. Immutable once built; any goroutine.
type Task struct {
	Op      string   `json:"op"`      // with its namespace: "core::vm"
	Methods []string `json:"methods"` // its names in TypeScript
	Source  bool     `json:"source"`  // a method of the context, not of a candidate set
	Doc     string   `json:"doc"`
	Text    string   `json:"text,omitempty"`

	Params []Param `json:"params"`
	Inputs [2]int  `json:"inputs"` // the least and the most that a node lists
	Output string  `json:"output"` // the shape of the result
	Shape  string  `json:"shape"`  // the shape in words

	Partial bool `json:"partial"` // takes "on_error": "partial"

	Reads      string `json:"reads,omitempty"`
	Writes     string `json:"writes,omitempty"`
	Redis      string `json:"redis,omitempty"`
	Order      string `json:"order,omitempty"`
	Nulls      string `json:"nulls,omitempty"`
	Empty      string `json:"empty,omitempty"`
	Duplicates string `json:"duplicates,omitempty"`
	Failures   string `json:"failures,omitempty"`

	Example *Example `json:"example,omitempty"` // nil if the task has none
}

// A Param is the description of one parameter of a task. Immutable once built; any goroutine.
type Param struct {
	Name     string   `json:"name"`              // in artifacts
	Options  []string `json:"options"`           // its names in TypeScript
	Type     string   `json:"type"`              // in words: "integer", "key of type float", "list of strings"
	Required bool     `json:"required"`          // artifacts have to state it
	Default  any      `json:"default,omitempty"` // of an optional parameter
	Assumed  any      `json:"assumed,omitempty"` // the value that the compiler writes for a required one
	Min      any      `json:"min,omitempty"`
	Max      any      `json:"max,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	Fields   []Param  `json:"fields,omitempty"` // of an object
	Doc      string   `json:"doc,omitempty"`
}

// Tasks returns the descriptions of a catalog's tasks, ascending by op.
func Tasks(catalog *task.Catalog) []Task {
	// No registry: methods and options come from the specs alone.
	language := compiler.NewLanguage(catalog, new(registry.Registry))
	examples := Examples()
	tasks := make([]Task, len(language.Methods))
	for i, spec := range catalog.Specs() {
		tasks[i] = describe(spec, &language.Methods[i])
		if e, ok := examples[spec.Op]; ok {
			tasks[i].Example = &e
		}
	}
	return tasks
}

// Find returns the task of that op, with or without its namespace, or of that method.
func Find(tasks []Task, name string) (*Task, bool) {
	for i := range tasks {
		for _, own := range tasks[i].names() {
			if own == name {
				return &tasks[i], true
			}
		}
	}
	return nil, false
}

// Nearest returns the name of a task that somebody may have meant.
func Nearest(tasks []Task, name string) (near string, found bool) {
	var all []string
	for i := range tasks {
		all = append(all, tasks[i].names()...)
	}
	return errtext.Nearest(name, all)
}

// names returns all names of t, its bare op first.
func (t *Task) names() []string { return append([]string{t.Name(), t.Op}, t.Methods...) }

// Name returns the op without its namespace.
func (t *Task) Name() string {
	_, bare, _ := strings.Cut(t.Op, "::")
	return bare
}

func describe(spec *task.Spec, m *compiler.Method) Task {
	ref := &spec.Reference
	t := Task{
		Op: spec.Op, Methods: m.Names, Source: m.Source, Doc: spec.Doc, Text: ref.Text,
		Params: describeParams(spec.Params, m.Options), Inputs: [2]int{m.InputsMin, m.InputsMax}, Output: spec.Output.String(), Shape: shapes[spec.Output],
		Partial: spec.Partial, Reads: ref.Reads, Writes: ref.Writes, Redis: ref.Redis,
		Order: ref.Order, Nulls: ref.Nulls, Empty: ref.Empty, Duplicates: ref.Duplicates, Failures: ref.Failures,
	}
	return t
}

// shapes has the shapes of results in words.
var shapes = map[task.Output]string{
	task.Source:      "New rows, from nothing.",
	task.Expand:      "New rows in place of the input's. The columns of the input are lost.",
	task.SameRows:    "The rows of the input in the same order, with columns added or replaced.",
	task.Subset:      "Some rows of the input, in the same order, with all columns.",
	task.Permutation: "The rows of the input in another order, with all columns.",
	task.Prefix:      "The first rows of the input, with all columns.",
	task.Window:      "Consecutive rows of the input, with all columns.",
	task.Append:      "New rows: the rows of all inputs and further nodes, one after the other, with the columns of all.",
	task.PassThrough: "The input itself.",
	task.Pick:        "Some rows of the input, in any order, with columns added or replaced.",
	task.Merge:       "Some rows of the inputs and further nodes, in any order, with the columns of all and more.",
}

func describeParams(params []plan.ParamSchema, options []compiler.Option) []Param {
	all := make([]Param, len(params))
	for i := range params {
		all[i] = describeParam(&params[i], &options[i])
	}
	return all
}

func describeParam(p *plan.ParamSchema, o *compiler.Option) Param {
	d := Param{
		Name: p.Name, Options: o.Names, Type: typeOf(p), Required: p.Required, Default: defaultOf(p), Enum: p.Source.OneOf, Doc: p.Doc,
		Fields: describeParams(p.Fields, o.Fields),
	}
	if p.Required && p.Source.Default != nil {
		d.Assumed = *p.Source.Default
	}
	switch rule := &p.Source; {
	case p.Type == plan.Float:
		d.Min, d.Max = bound(rule.FloatMin), bound(rule.FloatMax)
	default:
		d.Min, d.Max = bound(rule.Min), bound(rule.Max)
	}
	return d
}

// bound returns the bound that p points to, or nil.
func bound[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// defaultOf returns the value of an optional parameter that a plan leaves out, or nil if it then has none. A default of
// zero cannot be told from none, so the parameter's Doc says it.
func defaultOf(p *plan.ParamSchema) any {
	switch {
	case p.Required || p.List:
		return nil
	case p.StrValue != "":
		return p.StrValue
	case p.IntValue != 0:
		return p.IntValue
	case p.FloatValue != 0:
		return p.FloatValue
	case p.Type == plan.Bool:
		return p.BoolValue
	}
	return nil
}

// typeNames has the types of parameters in words, one and several.
var typeNames = map[plan.ParamType][2]string{
	plan.Int: {"integer", "integers"}, plan.Bool: {"boolean", "booleans"}, plan.String: {"string", "strings"},
	plan.Endpoint: {"endpoint", "endpoints"}, plan.ExprID: {"expression", "expressions"}, plan.PredID: {"predicate", "predicates"},
	plan.NodeRef: {"node", "nodes"}, plan.Float: {"number", "numbers"}, plan.Key: {"key", "keys"}, plan.Enum: {"string", "strings"},
	plan.Template: {"key template", "key templates"}, plan.Object: {"object", "objects"},
}

// typeOf returns the type of a parameter in words, "" if it has no name.
func typeOf(p *plan.ParamSchema) string {
	names, known := typeNames[p.Type]
	if !known {
		return ""
	}
	if p.IsKey {
		names = typeNames[plan.Key]
	}
	if p.IsParam {
		return strings.TrimPrefix(p.Source.Param(), "a ")
	}
	if p.Argument {
		names = [2]string{"argument", "arguments"}
	}
	name := names[0]
	if p.List {
		name = names[1]
	}
	if p.Type == plan.Endpoint {
		name += " of kind " + string(p.KindOfEndpoint())
	}
	if p.PerRequest {
		name += ", [or of each request](../../writing-a-plan.md#integers-that-requests-give)"
	}
	if p.Source.KeyTypes != nil {
		types := make([]string, len(p.Source.KeyTypes))
		for i, t := range p.Source.KeyTypes {
			types[i] = t.String()
		}
		name += " of type " + oneOf(types)
	}
	if p.List {
		items := fmt.Sprintf("up to %d", p.ItemsMax())
		if p.MinItems > 0 {
			items = fmt.Sprintf("%d to %d", p.MinItems, p.ItemsMax())
		}
		name = fmt.Sprintf("list of %s %s", items, name)
	}
	return name
}

// oneOf returns "a", "a or b", "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
