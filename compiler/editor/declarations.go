package editor

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// DeclarationsFile is the name of the file with the declarations.
const DeclarationsFile = "rankd.d.ts"

//go:embed rankd.d.ts.tmpl
var declarationsText string

var declarations = template.Must(template.New(DeclarationsFile).Funcs(template.FuncMap{
	"keyType": keyType, "paramType": paramType, "name": propertyName, "comment": comment,
	"options": optionsType, "optional": allOptional, "byKind": endpointsByKind, "string": strconv.Quote,
	"functions": functions, "builders": builders, "value": valueType,
}).Parse(declarationsText))

// Declarations returns the type declarations of the language: the module @ranking-dsl/runtime and
// the globals Key, P, EP and the functions of expressions. The same language gives the same bytes. Any goroutine.
func Declarations(l *compiler.Language) []byte {
	var b strings.Builder
	if err := declarations.Execute(&b, l); err != nil {
		panic(err) // the template is a constant, and writing to memory cannot fail
	}
	return []byte(b.String())
}

// keyTypes are the TypeScript types of keys whose values expressions read. Plan code only passes others on.
var keyTypes = map[registry.Type]string{
	registry.Int: "IntKey", registry.Float: "FloatKey", registry.String: "StringKey", registry.Bool: "BoolKey",
	registry.StringSet: "StringSetKey", registry.Vector: "VectorKey",
}

func keyType(k registry.Key) string {
	if k.Writable {
		return keyTypeName(k.Type) + " & Rankd.Writable"
	}
	return keyTypeName(k.Type)
}

func keyTypeName(t registry.Type) string { return "Rankd." + cmp.Or(keyTypes[t], "FeatureBundleKey") }

func paramType(p registry.Param) string {
	switch p.Type {
	case registry.Int:
		return "Rankd.IntParam"
	case registry.Float:
		return "Rankd.NumberParam"
	case registry.String:
		return "Rankd.StringParam"
	case registry.IntList:
		return "Rankd.IntList"
	case registry.FloatList:
		return "Rankd.FloatList"
	case registry.StringList:
		return "Rankd.StringSet"
	case registry.Vector:
		return "Rankd.VectorParam"
	default:
		return "Rankd.BoolParam"
	}
}

// valueType returns the TypeScript type of a value in a request or an answer.
func valueType(t registry.Type) string {
	switch t {
	case registry.Int:
		return "number | bigint"
	case registry.Float:
		return "number"
	case registry.Bool:
		return "boolean"
	case registry.String:
		return "string"
	case registry.IntList:
		return "readonly (number | bigint)[]"
	case registry.StringList, registry.StringSet:
		return "readonly string[]"
	case registry.FloatList:
		return "readonly (number | null)[]"
	case registry.Vector:
		return "readonly number[]"
	default:
		return "unknown"
	}
}

// optionsType returns the type of a method's options. An option with two names, one of which a plan
// gives, makes it an intersection.
func optionsType(m compiler.Method) string {
	plain, choices := properties(m.Options)
	if m.InputsMax > 1 {
		mark := "?"
		if m.InputsMin > 1 {
			mark = ""
		}
		plain += fmt.Sprintf(" /** The inputs after the first, in order. */ %s%s: readonly CandidateSet[];", task.InputsOption, mark)
	}
	if plain == "" {
		return "Rankd.NodeOptions" + choices
	}
	return "Rankd.NodeOptions & {" + plain + " }" + choices
}

// fieldsType returns the type of an Object.
func fieldsType(fields []compiler.Option) string {
	plain, choices := properties(fields)
	return "{" + plain + " }" + choices
}

// filled returns a key and the expression that makes its column, by the types of the key.
func filled(key, value compiler.Option) string {
	makes := map[registry.Type]string{registry.Float: "Rankd.Expr", registry.Int: "Rankd.Expr", registry.String: "string", registry.Bool: "Rankd.Predicate"}
	var forms []string
	for _, typ := range key.Source.KeyTypes {
		rule := key.Source
		rule.KeyTypes = []registry.Type{typ}
		forms = append(forms, fmt.Sprintf("{%s %s: %s;%s %s: %s; }", optionDoc(key), propertyName(key.Names[0]), optionKeyType(rule),
			optionDoc(value), propertyName(value.Names[0]), makes[typ]))
	}
	return strings.Join(forms, " | ")
}

// properties returns options as properties of an object type, and as intersections those that have two
// names.
func properties(options []compiler.Option) (string, string) {
	var plain, choices strings.Builder
	for _, o := range options {
		mark := "?"
		if o.Required {
			mark = ""
		}
		doc := optionDoc(o)
		if slices.ContainsFunc(options, func(other compiler.Option) bool { return other.Fills == o.Name }) {
			continue // It stands beside what fills it.
		}
		if o.Fills != "" {
			key := options[slices.IndexFunc(options, func(other compiler.Option) bool { return other.Name == o.Fills })]
			choices.WriteString(" & (" + filled(key, o) + ")")
			continue
		}
		if len(o.Names) == 1 {
			fmt.Fprintf(&plain, "%s %s%s: %s;", doc, propertyName(o.Names[0]), mark, optionType(o))
			continue
		}
		var forms []string
		for _, given := range o.Names {
			form := fmt.Sprintf("{%s %s%s: %s;", doc, propertyName(given), mark, optionType(o))
			for _, other := range o.Names {
				if other != given {
					form += fmt.Sprintf(" %s?: never;", propertyName(other))
				}
			}
			forms = append(forms, form+" }")
		}
		choices.WriteString(" & (" + strings.Join(forms, " | ") + ")")
	}
	return plain.String(), choices.String()
}

// optionType returns the TypeScript type of an option's value.
func optionType(o compiler.Option) string {
	if o.List {
		return "readonly (" + itemType(o) + ")[]"
	}
	return itemType(o)
}

// itemType returns the type of an option's value, or of one item of a List.
func itemType(o compiler.Option) string {
	switch {
	case o.TakesKey():
		return optionKeyType(o.Source)
	case o.IsParam:
		types := make([]string, len(o.Source.ParamTypes))
		for i, t := range o.Source.ParamTypes {
			types[i] = paramType(registry.Param{Type: t})
		}
		return strings.Join(types, " | ")
	case o.Argument:
		return "Rankd.Argument"
	case o.PerRequest:
		return "Rankd.PlainNumber | " + fieldsType(o.Fields)
	}
	switch o.Type {
	case plan.Int, plan.Float:
		return "Rankd.PlainNumber"
	case plan.Bool:
		return "Rankd.PlainBoolean"
	case plan.Endpoint:
		return "Rankd.Endpoint<" + strconv.Quote(string(o.KindOfEndpoint())) + ">"
	case plan.Object:
		return fieldsType(o.Fields)
	case plan.ExprID:
		return "Rankd.Expr"
	case plan.PredID:
		return "Rankd.Predicate"
	case plan.NodeRef:
		return "CandidateSet"
	}
	if o.Source.OneOf == nil {
		return "Rankd.PlainString"
	}
	values := make([]string, len(o.Source.OneOf))
	for i, value := range o.Source.OneOf {
		values[i] = strconv.Quote(value)
	}
	return strings.Join(values, " | ")
}

func optionKeyType(rule plan.SourceRule) string {
	types := rule.KeyTypes
	if types == nil {
		types = slices.Sorted(maps.Keys(keyTypes))
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = keyTypeName(t)
	}
	union := strings.Join(names, " | ")
	if !rule.Writes {
		return union
	}
	if len(names) > 1 {
		union = "(" + union + ")"
	}
	return union + " & Rankd.Writable"
}

// optionDoc returns what an editor shows about an option besides its type, as a comment.
func optionDoc(o compiler.Option) string {
	var notes []string
	if o.Doc != "" {
		notes = append(notes, comment(strings.TrimSuffix(o.Doc, ".")))
	}
	switch low, high := o.Source.Min, o.Source.Max; {
	case low != nil && high != nil:
		notes = append(notes, fmt.Sprintf("from %d to %d", *low, *high))
	case low != nil:
		notes = append(notes, fmt.Sprintf("at least %d", *low))
	case high != nil:
		notes = append(notes, fmt.Sprintf("at most %d", *high))
	}
	switch low, high := o.Source.FloatMin, o.Source.FloatMax; {
	case low != nil && high != nil:
		notes = append(notes, fmt.Sprintf("from %v to %v", *low, *high))
	case low != nil:
		notes = append(notes, fmt.Sprintf("at least %v", *low))
	case high != nil:
		notes = append(notes, fmt.Sprintf("at most %v", *high))
	}
	if o.Source.Default != nil {
		notes = append(notes, fmt.Sprintf("%d if left out", *o.Source.Default))
	}
	if len(notes) == 0 {
		return ""
	}
	return " /** " + strings.Join(notes, "; ") + " */"
}

// allOptional returns "?" if a plan may leave all options out.
func allOptional(m compiler.Method) string {
	if m.InputsMin > 1 || slices.ContainsFunc(m.Options, func(o compiler.Option) bool { return o.Required }) {
		return ""
	}
	return "?"
}

// endpointsByKind groups endpoints as EP does.
func endpointsByKind(all []compiler.EndpointName) map[registry.EndpointKind][]compiler.EndpointName {
	kinds := make(map[registry.EndpointKind][]compiler.EndpointName)
	for _, e := range all {
		kinds[e.Kind] = append(kinds[e.Kind], e)
	}
	return kinds
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// propertyName returns a name as a property name of TypeScript.
func propertyName(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// comment returns a text that cannot end the comment around it.
func comment(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "*/", "* /")
}
