package reference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/task"
)

// A fact is one line about a task: a title and a sentence.
type fact struct{ title, text string }

// facts returns what a task says about rows and columns. It leaves out facts that a program's task does not state.
func (t *Task) facts() (all []fact) {
	inputs := fact{"Inputs", "None: the task starts a plan."}
	switch least, most := t.Inputs[0], t.Inputs[1]; {
	case most == 1 && least == 1:
		inputs.text = "One node."
	case most > 0:
		inputs.text = fmt.Sprintf("%d to %d nodes. In TypeScript the first is the candidate set with the method, and the option `%s` lists the others.",
			least, most, task.InputsOption)
	}
	partial := ""
	if t.Partial {
		partial = "With `\"on_error\": \"partial\"` the node leaves out the rows whose keys failed."
	}
	for _, f := range []fact{
		inputs,
		{"Result", t.Shape},
		{"Columns read", sentence(t.Reads)},
		{"Columns written", sentence(t.Writes)},
		{"Redis", t.Redis},
		{"Order and ties", t.Order},
		{"Nulls", t.Nulls},
		{"Empty inputs", t.Empty},
		{"Duplicate ids", t.Duplicates},
		{"Failures", t.Failures},
		{"Partial results", partial},
	} {
		if f.text != "" {
			all = append(all, f)
		}
	}
	return all
}

// sentence returns a phrase as a sentence.
func sentence(phrase string) string {
	if phrase == "" {
		return ""
	}
	return strings.ToUpper(phrase[:1]) + strings.TrimSuffix(phrase[1:], ".") + "."
}

// Rules returns the type of a parameter with its range and default: "integer from 1 to 100, required".
func (p *Param) Rules() string {
	text := p.Type
	if p.Enum != nil {
		quoted := make([]string, len(p.Enum))
		for i, value := range p.Enum {
			quoted[i] = fmt.Sprintf("%q", value)
		}
		if text == "string" {
			text = oneOf(quoted)
		} else {
			text += " among " + strings.Join(quoted, ", ")
		}
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
	if t.Inputs[1] > 1 {
		options = append([]string{task.InputsOption + "?: [rows, …]"}, options...)
	}
	name := t.Methods[len(t.Methods)-1]
	if len(options) == 0 {
		return fmt.Sprintf("%s.%s()", object, name)
	}
	return fmt.Sprintf("%s.%s({ %s })", object, name, strings.Join(options, ", "))
}

// setting says on which data an example runs, which data lists.
func (e *Example) setting() string {
	switch {
	case e.Service != "" && e.Redis == nil:
		return "On the demo data, with a service that answers"
	case e.Service != "":
		return "On the data of these commands, with a service that answers the last line"
	case e.Redis == nil:
		return "On the demo data"
	default:
		return "On the data of these commands"
	}
}

// data returns the commands that fill Redis, and the answer of the service. Nil: there are neither.
func (e *Example) data() []string {
	if e.Service == "" {
		return e.Redis
	}
	return append(slices.Clone(e.Redis), e.Service)
}
