package compiler

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// check adds the faults that the loader finds in the child's artifact for r. If faults at one place follow from each
// other, for example when a loop makes the same node many times, it adds only the first.
func (c *Compiler) check(r *Result, a *answer) {
	source := plan.Source{Words: make(map[string]plan.Word)}
	check := func(artifact []byte) error {
		return plan.Check(a.Plan, artifact, &source, c.config.Tasks, c.config.Registry)
	}
	if a.Artifact != nil && a.Draft == nil && !a.Foreign && check(a.Artifact) == nil {
		return // The rest is for faults alone.
	}
	places := make(map[string]place)
	_ = json.Unmarshal(a.Places, &places) // There are none if the child could not make them.
	for path, p := range places {
		if p.Word != nil {
			source.Words[path] = *p.Word
		}
	}
	reported := make(map[string]bool)
	for i := range a.Errors {
		reported[a.Errors[i].Place()] = true
	}
	report := func(artifact []byte) {
		var first *plan.Error
		if !errors.As(check(artifact), &first) {
			return
		}
		files, err := openFolder(r.Source)
		if err == nil {
			defer files.close()
		}
		for _, bad := range first.All() {
			d, news := c.refusal(places, bad)
			_, in, _ := strings.Cut(bad.Field, "]")
			if !news || reported[d.Place()] || reported[d.Place()+in] {
				continue
			}
			reported[d.Place()+in] = true
			if err == nil {
				if file, fault := files.read(d.File); fault == nil {
					d.Excerpt = file.line(d.Line)
				}
			}
			r.Errors = append(r.Errors, d)
		}
		if len(r.Errors) == 0 && !source.Draft { // The compiler does not know the place, so the fault is the compiler's own.
			r.Errors = append(r.Errors, Diagnostic{Severity: Error, Code: "internal", File: filepath.ToSlash(r.File), Line: 1, Column: 1,
				Message: fmt.Sprintf("the engine refuses the artifact: %v", first), Hint: internalHint})
		}
	}
	if source.Draft = a.Draft != nil; source.Draft {
		report(a.Draft)
	}
	if source.Draft = false; len(r.Errors) == 0 {
		report(a.Artifact)
	}
	if len(r.Errors) > 0 {
		r.Artifact = nil
	}
}

// errorCodes has the codes of Diagnostics for those of plan.Error.
var errorCodes = map[string]string{"": "refused", plan.FaultMissing: "missing-option"}

// refusal returns the diagnostic for a fault that the loader finds: at the value, or at the object that should have
// it, in a file of the folder. It returns false if the fault follows from a reported one, or has no place.
func (c *Compiler) refusal(places map[string]place, bad *plan.Error) (d Diagnostic, news bool) {
	at := bad.Field
	for ; places[at].Line == 0; at = above(at) {
		if places[at].Broken || at == "" {
			return d, false
		}
	}
	p := places[at]
	if p.Broken || bad.Code == plan.FaultMissing && places[above(bad.Field)+unknownMember].Broken { // it may be the misspelled one
		return d, false
	}
	d = Diagnostic{Severity: Error, Code: cmp.Or(errorCodes[bad.Code], bad.Code), File: p.File, Line: p.Line, Column: p.Column,
		Hint: "rankd checks a plan when it loads it"}

	node, in, _ := strings.Cut(bad.Field, "].")
	m := c.language.method(places[node+"]"].Name)
	if m == nil { // a whole node, or an expression
		d.Message = p.Name + ": " + bad.Msg
		return d, true
	}
	name, option := m.named(in)
	name = cmp.Or(places[bad.Field].Name, name, p.Name)
	word := ""
	if places[bad.Field].Word != nil {
		word = places[bad.Field].Word.Text
	}
	switch {
	case option == nil:
	case strings.HasPrefix(word, "P.") && option.PerRequest:
		param, _, _ := strings.Cut(word, ",")
		d.Hint = fmt.Sprintf("write %s: { param: %s, max: 100 }", name, param)
	case option.IsParam:
		d.Hint = "write " + name + ": P.… with " + option.Source.Param()
	case strings.HasPrefix(word, "P."):
		param, _, _ := strings.Cut(word, ",")
		d.Hint = param + " has a value only when the plan runs; this option is fixed when the plan is built"
	case bad.Code == plan.FaultMissing && at == node+"]":
		d.Hint = fmt.Sprintf("write %s({ %s })", p.Name, c.language.example(m.Options))
	case bad.Code != "" && option.TakesKey():
		d.Hint = c.language.keyHint(option, name, word)
	case bad.Code != "" && strings.HasSuffix(name, "]"):
		d.Hint = "write " + c.language.itemExample(option)
	case bad.Code != "":
		d.Hint = "write " + name + ": " + c.language.optionExample(option)
	}
	if option != nil && option.Type == plan.NodeRef && bad.Code == plan.FaultType {
		d.Hint += " with const other = ctx.viewer(...)"
	}
	separator := ": "
	if bad.Code != "" {
		separator = " "
	}
	d.Message = name + separator + m.inSource(bad.Msg)
	return d, true
}

// above returns the path of what a value is part of, or "".
func above(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// named returns the source's name for a path in the node of a method, and its option; "" and nil if no option leads
// there.
func (m *Method) named(path string) (name string, option *Option) {
	options := m.all()
	for _, part := range pathParts.FindAllString(strings.TrimPrefix(path, "params."), -1) {
		if part[0] == '[' {
			name += part
			continue
		}
		i := slices.IndexFunc(options, func(o Option) bool { return o.Name == part })
		if i < 0 {
			break
		}
		if option = &options[i]; name != "" {
			name += "."
		}
		name += option.Names[0]
		options = option.Fields
	}
	return name, option
}

var (
	pathParts = regexp.MustCompile(`\[\d+\]|\w+`)
	// words matches quoted texts, which belong to the plan's author, and names.
	words = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\w+`)
)

// inSource writes the parameters in a message as sources name them.
func (m *Method) inSource(message string) string {
	return words.ReplaceAllStringFunc(message, func(word string) string {
		if i := slices.IndexFunc(m.Options, func(o Option) bool { return o.Name == word }); i >= 0 {
			return m.Options[i].Names[0]
		}
		return word
	})
}

// example writes the required ones of the options, or else the first.
func (l *Language) example(options []Option) string {
	var all []string
	for i := range options {
		if o := &options[i]; o.Required {
			all = append(all, o.Names[0]+": "+l.optionExample(o))
		}
	}
	if len(all) == 0 && len(options) > 0 {
		all = append(all, options[0].Names[0]+": "+l.optionExample(&options[0]))
	}
	return strings.Join(all, ", ")
}

// optionExample shows how an option is written.
func (l *Language) optionExample(o *Option) string {
	if o.List {
		return "[" + l.itemExample(o) + "]"
	}
	return l.itemExample(o)
}

// itemExample shows how a value of an option is written, or an item of it.
func (l *Language) itemExample(o *Option) string {
	switch {
	case o.TakesKey():
		return "Key.…"
	case o.IsParam:
		return "P.…"
	case len(o.Source.OneOf) > 0:
		return quote(o.Source.OneOf[0])
	}
	switch o.Type {
	case plan.Int:
		return "10"
	case plan.Float:
		return "0.5"
	case plan.Bool:
		return "true"
	case plan.Endpoint:
		return fmt.Sprintf("EP.%s.%s", o.KindOfEndpoint(), l.someEndpoint(o.KindOfEndpoint()))
	case plan.ExprID:
		return "Key.id * 2"
	case plan.PredID:
		return "Key.id > 5"
	case plan.NodeRef:
		return "other"
	case plan.Template:
		return `"prefix:{id}"`
	case plan.Object:
		return "{ " + l.example(o.Fields) + " }"
	}
	return `"..."`
}

// someEndpoint returns the name of an endpoint of that kind.
func (l *Language) someEndpoint(kind registry.EndpointKind) string {
	for _, e := range l.Endpoints {
		if e.Kind == kind {
			return e.Name
		}
	}
	return "name"
}

// keyHint proposes the key that the option takes and whose name is near the word that the plan has, or says which keys the option takes.
func (l *Language) keyHint(option *Option, name, word string) string {
	var all []string
	for i := range l.Keys {
		key := &l.Keys[i]
		if (option.Source.KeyTypes == nil || slices.Contains(option.Source.KeyTypes, key.Type)) && (key.Writable || !option.Source.Writes) {
			all = append(all, key.Name)
		}
	}
	given, isKey := strings.CutPrefix(word, "Key.")
	if near, ok := errtext.NearestWithin(len(given)/2, given, all); ok && isKey {
		if strings.HasSuffix(name, "]") {
			return "write Key." + near
		}
		return "write " + name + ": Key." + near
	}
	hint := name + " takes a key"
	if option.Source.Writes {
		hint = name + " takes a writable key"
	}
	var types []string
	for _, t := range option.Source.KeyTypes {
		types = append(types, t.String())
	}
	if len(types) > 0 {
		hint += " of type " + strings.Join(types, " or ")
	}
	return hint
}
