package reference

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A fact is one line about a task: a title and a sentence.
type fact struct{ title, text string }

// facts returns what a task says about rows and columns. It leaves out facts that a program's task does not state.
func (t *Task) facts() (all []fact) {
	inputs := fact{"Inputs", "None: the task starts a plan."}
	if t.Inputs > 0 {
		inputs.text = "One node."
	}
	for _, f := range []fact{
		inputs,
		{"Result", t.Shape},
		{"Columns read", t.Reads},
		{"Columns written", t.Writes},
		{"Redis", t.Redis},
		{"Order and ties", t.Order},
		{"Nulls", t.Nulls},
		{"Empty inputs", t.Empty},
		{"Duplicate ids", t.Duplicates},
		{"Failures", t.Failures},
	} {
		if f.text != "" {
			all = append(all, f)
		}
	}
	return all
}

// Rules returns the type of a parameter with its range and default: "integer from 1 to 100, required".
func (p *Param) Rules() string {
	text := p.Type
	if p.Enum != nil {
		quoted := make([]string, len(p.Enum))
		for i, value := range p.Enum {
			quoted[i] = fmt.Sprintf("%q", value)
		}
		text = oneOf(quoted)
	}
	switch {
	case p.Min != nil && p.Max != nil:
		text += fmt.Sprintf(" from %v to %v", p.Min, p.Max)
	case p.Min != nil:
		text += fmt.Sprintf(" of at least %v", p.Min)
	case p.Max != nil:
		text += fmt.Sprintf(" of at most %v", p.Max)
	}
	switch {
	case p.Required && p.Assumed != nil:
		text += fmt.Sprintf(", required; TypeScript may leave it out, then %s", jsonText(p.Assumed))
	case p.Required:
		text += ", required"
	case p.Default != nil:
		text += ", default " + jsonText(p.Default)
	default:
		text += ", optional"
	}
	return text
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a default is a number, a string or a boolean
	}
	return string(text)
}

// call returns the method call with its required options: `rows.sort({ by: … })`.
func (t *Task) call() string {
	object := "rows"
	if t.Source {
		object = "ctx"
	}
	var options []string
	for i := range t.Params {
		p := &t.Params[i]
		mark := ""
		if !p.Required || p.Assumed != nil {
			mark = "?"
		}
		options = append(options, p.Options[0]+mark+": …")
	}
	name := t.Methods[len(t.Methods)-1]
	if len(options) == 0 {
		return fmt.Sprintf("%s.%s()", object, name)
	}
	return fmt.Sprintf("%s.%s({ %s })", object, name, strings.Join(options, ", "))
}

// setting says on which data an example runs.
func (e *Example) setting() string {
	if e.Redis == nil {
		return "On the demo data"
	}
	return "On the data of these commands"
}

// artifactText returns the artifact with one node a line.
func (e *Example) artifactText() string {
	var a struct {
		SchemaVersion int                        `json:"schema_version"`
		PlanName      string                     `json:"plan_name"`
		Nodes         []json.RawMessage          `json:"nodes"`
		Outputs       json.RawMessage            `json:"outputs"`
		ExprTable     map[string]json.RawMessage `json:"expr_table"`
		PredTable     map[string]json.RawMessage `json:"pred_table"`
		Capabilities  []string                   `json:"capabilities_required"`
	}
	if err := json.Unmarshal(e.Artifact, &a); err != nil {
		panic(err) // a test has loaded the artifact
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"schema_version\": %d,\n  \"plan_name\": %q,\n", a.SchemaVersion, a.PlanName)
	if len(a.Capabilities) > 0 {
		fmt.Fprintf(&b, "  \"capabilities_required\": %s,\n", jsonText(a.Capabilities))
	}
	b.WriteString("  \"nodes\": [")
	for i, n := range a.Nodes {
		fmt.Fprintf(&b, "%s\n    %s", comma(i), spaced(n))
	}
	fmt.Fprintf(&b, "\n  ],\n  \"outputs\": %s", spaced(a.Outputs))
	writeTable(&b, "expr_table", a.ExprTable)
	writeTable(&b, "pred_table", a.PredTable)
	b.WriteString("\n}")
	return b.String()
}
