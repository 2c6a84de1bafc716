package reference

import (
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/nearest"
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
	Inputs int     `json:"inputs"` // how many a node lists
	Output string  `json:"output"` // the shape of the result
	Shape  string  `json:"shape"`  // the shape in words

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
	Type     string   `json:"type"`              // in words: "integer", "key of type float"
	Required bool     `json:"required"`          // artifacts have to state it
	Default  any      `json:"default,omitempty"` // of an optional parameter
	Assumed  any      `json:"assumed,omitempty"` // the value that the compiler writes for a required one
	Min      any      `json:"min,omitempty"`
	Max      any      `json:"max,omitempty"`
	Enum     []string `json:"enum,omitempty"`
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
	return nearest.Name(name, all)
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
		Params: make([]Param, len(spec.Params)), Inputs: spec.Inputs, Output: spec.Output.String(), Shape: shapes[spec.Output],
		Reads: ref.Reads, Writes: ref.Writes, Redis: ref.Redis,
		Order: ref.Order, Nulls: ref.Nulls, Empty: ref.Empty, Duplicates: ref.Duplicates, Failures: ref.Failures,
	}
	for i := range spec.Params {
		t.Params[i] = describeParam(&spec.Params[i], m.Options[i].Names)
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
	task.Append:      "The rows of the input, then the rows of each further node, with the columns of all.",
	task.PassThrough: "The input itself.",
}

func describeParam(p *plan.ParamSchema, options []string) Param {
	d := Param{Name: p.Name, Options: options, Type: typeOf(p), Required: p.Required, Enum: p.Source.OneOf, Doc: p.Doc}
	if p.Source.Min != nil {
		d.Min = *p.Source.Min
	}
	if p.Source.Max != nil {
		d.Max = *p.Source.Max
	}
	switch {
	case p.Required && p.Source.Default != nil:
		d.Assumed = *p.Source.Default
	case p.Required:
	case p.Type == plan.Int:
		d.Default = p.IntValue
	case p.Type == plan.Bool:
		d.Default = false
	case p.Type == plan.String && p.StrValue != "":
		d.Default = p.StrValue
	}
	return d
}

// typeNames has the types of parameters in words.
var typeNames = map[plan.ParamType]string{
	plan.Int: "integer", plan.Bool: "boolean", plan.String: "string", plan.Endpoint: "endpoint",
	plan.ExprID: "expression", plan.PredID: "predicate", plan.NodeRef: "node",
}

func typeOf(p *plan.ParamSchema) string {
	if !p.IsKey {
		return typeNames[p.Type]
	}
	if p.Source.KeyTypes == nil {
		return "key"
	}
	names := make([]string, len(p.Source.KeyTypes))
	for i, t := range p.Source.KeyTypes {
		names[i] = t.String()
	}
	return "key of type " + oneOf(names)
}

// oneOf returns "a", "a or b", "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
