package compiler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// placedTree is an expression or a predicate as the value of an option. Immutable once built.
type placedTree struct {
	*tree
	want kind
	pred bool // it stands in pred_table
	at   int  // offset in the bundle
}

// unknown replaces, in an artifact, what has no counterpart there, so that the loader does not take incomplete
// objects for complete. No parameter and no node has this name.
const unknown = "?"

// optionReader reads the options of one call. It reports unknown names and malformed expressions. plan.Check judges the values. One
// goroutine at a time.
type optionReader struct {
	host   *host
	node   *node
	site   *callSite
	filled registry.Type // of the key whose column the present option makes
}

func (o *optionReader) read(v goja.Value) {
	m := o.node.method
	object := objectOf(v)
	switch {
	case v == nil || goja.IsUndefined(v):
		object = o.host.vm.NewObject()
	case object == nil:
		if !o.host.isBroken(v) {
			o.host.u.failAt(o.site.arg(0), "type", fmt.Sprintf("%s takes an object of options, not %s", o.node.call, plainWords(v)),
				fmt.Sprintf("write %s({ %s })", o.node.call, o.host.u.language.example(m.Options)))
		}
		object = o.host.vm.NewObject()
		o.lose("params", o.node.params)
	}
	o.members(m.all(), object, o.node.call, "params", "", o.node.params)
}

// members reads the members of an object into a map. of names the object in errors, in is its path in the node, and prefix stands
// before the names of the members.
func (o *optionReader) members(options []Option, object *goja.Object, of, in, prefix string, into map[string]any) {
	given := make(map[*Option]string) // to the name in the source
	names := object.Keys()
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(fillsKey(options, a), fillsKey(options, b)) })
	for _, name := range names {
		value, option := object.Get(name), optionNamed(options, name)
		o.filled = registry.Float
		if fillsKey(options, name) == 1 {
			keys := o.host.u.language.Keys
			if at := slices.IndexFunc(keys, func(k registry.Key) bool { return k.ID == into[option.Fills] }); at >= 0 {
				o.filled = keys[at].Type
			}
		}
		switch {
		case option == nil:
			hint := ""
			if near, ok := errtext.Nearest(name, optionNames(options)); ok {
				hint = "did you mean " + near + "?"
			}
			o.fail(prefix+name, false, "unknown-option", "%s has no option %s", hint, of, quote(name))
			o.lose(in, into)
		case given[option] != "":
			o.fail(prefix+name, false, "option", "%s and %s are the same option of %s", "keep one of them", given[option], name, of)
		case value == nil || goja.IsUndefined(value): // as if it were left out
		default:
			given[option] = name
			path, into := in+"."+option.Name, into
			if option.ofNode {
				path, into = option.Name, o.node.fields
			}
			o.node.places[path] = o.host.u.placed(o.site.option(prefix+name, true), prefix+name)
			if v := o.value(option, path, prefix+name, value); isParam(path) || !o.node.places[path].Broken {
				into[option.Name] = v
			}
		}
	}
	for i := range options {
		if option := &options[i]; option.Source.Default != nil && given[option] == "" {
			into[option.Name] = *option.Source.Default
		}
	}
}

// fillsKey returns 1 for an option whose type another one decides, which is read before.
func fillsKey(options []Option, name string) int {
	if option := optionNamed(options, name); option != nil && option.Fills != "" {
		return 1
	}
	return 0
}

// lose notes that an object of the artifact lacks a part of the source.
func (o *optionReader) lose(path string, object map[string]any) {
	if isParam(path) {
		object[unknown] = nil
	}
	o.node.places[path+unknownMember] = place{Broken: true}
}

// isParam reports whether a path in a node leads into its parameters. Outside of them, broken values are left out.
// For the loader they would be faults of the artifact's shape, which hide all faults of the parameters.
func isParam(path string) bool { return strings.HasPrefix(path, "params") }

// unknownMember ends the path of a member of the name unknown.
const unknownMember = `["` + unknown + `"]`

// word notes how the source writes a value.
func (o *optionReader) word(path, name string, w plan.Word) {
	p := o.node.places[path]
	p.Name, p.Word = name, &w
	o.node.places[path] = p
}

// foreign notes a value that no artifact can hold.
func (o *optionReader) foreign(path, name, text string) any {
	o.word(path, name, plan.Word{Text: text, Foreign: true})
	return nil
}

// broken notes a value whose fault has been reported.
func (o *optionReader) broken(path string) any {
	o.node.places[path] = place{Word: &plan.Word{Foreign: true}, Broken: true}
	return nil
}

// value returns the value of an option as the artifact has it: JSON, nodes and trees. path is its place in the node,
// and name is its name in the source.
func (o *optionReader) value(option *Option, path, name string, v goja.Value) any {
	n, isNode := export[*node](v)
	isNode = isNode && n.method != nil
	switch array := arrayOf(v); {
	case option.Name == inputsField && o.node.input == nil:
		o.fail(name, false, "option", "%s of the context has no inputs", "call it on a candidate set", o.node.call)
		return o.broken(path)
	case option.Name == onErrorField && isNode:
		o.node.refs = append(o.node.refs, n)
		return map[string]any{"fallback": n}
	case option.List && array != nil:
		length := array.Get("length").ToInteger()
		if length > plan.MaxItemsLimit {
			return o.foreign(path, name, fmt.Sprintf("an array of %d items", length))
		}
		items := make([]any, length)
		for i := range items {
			at := "[" + itoa(i) + "]"
			inPath := at
			if option.Name == inputsField { // where the first one stands before them
				inPath = "[" + itoa(i+1) + "]"
				o.node.places[path+inPath] = place{Name: name + at}
			}
			items[i] = o.item(option, path+inPath, name+at, array.Get(itoa(i)))
		}
		return items
	case option.List && !goja.IsNull(v) && !o.host.isBroken(v):
		return o.foreign(path, name, plainWords(v))
	}
	return o.item(option, path, name, v)
}

// item returns a value of the option's type, or another that JSON has.
func (o *optionReader) item(option *Option, path, name string, v goja.Value) any {
	switch {
	case o.host.isBroken(v) && option.Type == plan.NodeRef:
		o.broken(path)
		return unknown
	case o.host.isBroken(v):
		return o.broken(path)
	case goja.IsNull(v):
		return nil
	case option.TakesKey():
		if t := tokenOf(v); t != nil && t.key != nil {
			o.word(path, name, plan.Word{Text: t.name})
			return t.key.ID
		}
	case option.IsParam:
		if t := tokenOf(v); t != nil && t.param != nil {
			o.word(path, name, plan.Word{Text: t.name})
			return t.param.ID
		}
	case option.Argument && tokenOf(v) != nil:
		if t := tokenOf(v); t.key != nil || t.param != nil {
			o.word(path, name, plan.Word{Text: t.name})
			return "{" + strings.TrimPrefix(strings.Replace(t.name, "Key.id", "id", 1), "P.") + "}"
		}
	case option.Type == plan.Endpoint:
		if e, ok := export[*endpoint](v); ok {
			o.word(path, name, plan.Word{Text: e.describe()})
			return e.ID
		}
	case option.Type == plan.ExprID || option.Type == plan.PredID:
		return o.tree(option, path, name, v)
	case option.Type == plan.NodeRef:
		if n, ok := export[*node](v); ok && n.method != nil {
			o.node.refs = append(o.node.refs, n)
			return n
		}
	case option.Type == plan.Object, option.PerRequest && objectOf(v) != nil:
		if object := objectOf(v); object != nil {
			fields := make(map[string]any)
			o.members(option.Fields, object, name, path, name+".", fields)
			return fields
		}
	case goja.IsNumber(v) && option.Type == plan.Int && math.Abs(v.ToFloat()) >= 1<<53 && math.Abs(v.ToFloat()) < 1<<63: // which a double may not have exactly
		o.wrong(name, "an integer above -2^53 and below 2^53", v, "write "+name+": "+o.host.u.language.optionExample(option))
		return o.broken(path)
	case goja.IsString(v):
		return v.String()
	case goja.IsNumber(v) && !math.IsNaN(v.ToFloat()) && !math.IsInf(v.ToFloat(), 0):
		if f := v.ToFloat(); option.Type == plan.Int && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f) // -0 is 0
		}
		return v.ToFloat()
	default:
		if b, ok := boolean(v); ok {
			return b
		}
	}
	return o.foreign(path, name, plainWords(v))
}

// tree reads an expression or a predicate.
func (o *optionReader) tree(option *Option, path, name string, v goja.Value) any {
	want := number
	switch {
	case option.Type == plan.PredID || o.filled == registry.Bool:
		want = predicate
	case o.filled == registry.String:
		want = text
	}
	at := o.site.option(name, true)
	t := o.host.tree(v, want, false, at, name)
	if t == nil {
		return o.broken(path)
	}
	if o.filled != registry.Float && option.Fills != "" && !t.typed { // The artifact has the types of the registry then.
		typed := *t
		t = needsTypes(&typed)
	}
	if made := tokenOf(v); made != nil && made.at > 0 {
		at = made.at // where the expression is written, which may be elsewhere
	}
	return placedTree{tree: t, want: want, pred: option.Type == plan.PredID, at: at}
}

// arrayOf returns v if it is an array, or nil.
func arrayOf(v goja.Value) *goja.Object {
	if object, ok := v.(*goja.Object); ok && object.ClassName() == "Array" {
		return object
	}
	return nil
}

// objectOf returns v if it is an object of the plan's own, or nil.
func objectOf(v goja.Value) *goja.Object {
	if object, ok := v.(*goja.Object); ok && object.ClassName() == "Object" && !hosted(v) {
		return object
	}
	return nil
}

// fail reports a fault of an option, at its value or at its name.
func (o *optionReader) fail(name string, value bool, code, format, hint string, args ...any) {
	o.host.u.failAt(o.site.option(name, value), code, fmt.Sprintf(format, args...), hint)
}

// wrong reports a value of a wrong type.
func (o *optionReader) wrong(name, want string, v goja.Value, hint string) {
	o.fail(name, true, "type", "%s must be %s, not %s", hint, name, want, plainWords(v))
}

// optionNamed returns the option of that name, or nil.
func optionNamed(options []Option, name string) *Option {
	for i := range options {
		if slices.Contains(options[i].Names, name) {
			return &options[i]
		}
	}
	return nil
}

func optionNames(options []Option) (all []string) {
	for i := range options {
		all = append(all, options[i].Names...)
	}
	return all
}
