package compiler

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// placedTree is an expression or a predicate as the value of an option. Immutable once built.
type placedTree struct {
	*tree
	want kind
	at   int // offset in the bundle
}

// example shows how an option is written.
func (o *Option) example() string {
	if o.List {
		return "[" + o.itemExample() + "]"
	}
	return o.itemExample()
}

func (o *Option) itemExample() string {
	switch {
	case o.Key:
		return "Key.score"
	case len(o.Rule.OneOf) > 0:
		return quote(o.Rule.OneOf[0])
	}
	switch o.Type {
	case plan.Int:
		return "10"
	case plan.Float:
		return "0.5"
	case plan.Bool:
		return "true"
	case plan.Endpoint:
		if o.EndpointKind != registry.Redis {
			return fmt.Sprintf("EP.%s.name", o.EndpointKind)
		}
		return "EP.redis.redis_default"
	case plan.ExprID:
		return "Key.id * 2"
	case plan.PredID:
		return "Key.id > 5"
	case plan.NodeRef:
		return "other"
	case plan.Template:
		return `"prefix:{id}"`
	case plan.Object:
		return "{ " + requiredExample(o.Fields) + " }"
	}
	return `"..."`
}

// requiredExample writes the required ones of the options.
func requiredExample(options []Option) string {
	var all []string
	for i := range options {
		if o := &options[i]; o.Required {
			all = append(all, o.Names[0]+": "+o.example())
		}
	}
	return strings.Join(all, ", ")
}

// param reads the option of a parameter. It returns false after it has reported a fault. A name inside
// a List or an Object is a path: "rules[2].weight".
func (o *optionReader) param(option *Option, name string, v goja.Value) (any, bool) {
	switch {
	case o.host.isBroken(v):
		return nil, false
	case v != nil && goja.IsNull(v) && !option.Required && !option.Key && option.Rule.Default == nil:
		return nil, true
	case option.List:
		return o.list(option, name, v)
	default:
		return o.item(option, name, v)
	}
}

// array returns the elements of an array of at most so many.
func (o *optionReader) array(name string, least, most int, v goja.Value, hint string) ([]goja.Value, bool) {
	array, ok := v.(*goja.Object)
	if !ok || array.ClassName() != "Array" {
		o.wrong(name, "an array", v, hint)
		return nil, false
	}
	length := array.Get("length").ToInteger()
	if fault := plan.ItemsFault(least, most, int(length)); fault != "" {
		o.fail(name, true, "range", "%s %s", hint, name, fault)
		return nil, false
	}
	elements := make([]goja.Value, length)
	for i := range elements {
		if elements[i] = array.Get(itoa(i)); elements[i] == nil {
			elements[i] = goja.Undefined()
		}
	}
	return elements, true
}

// list reads the option of a List.
func (o *optionReader) list(option *Option, name string, v goja.Value) (any, bool) {
	elements, ok := o.array(name, option.MinItems, option.MaxItems, v, o.advice(option, name))
	if !ok {
		return nil, false
	}
	items := make([]any, len(elements))
	all := true
	for i, element := range elements {
		if o.host.isBroken(element) {
			all = false
			continue
		}
		item, ok := o.item(option, fmt.Sprintf("%s[%d]", name, i), element)
		items[i], all = item, all && ok
	}
	return items, all
}

// with reads the inputs after the first.
func (o *optionReader) with(v goja.Value) {
	m := o.node.method
	if goja.IsUndefined(v) || o.host.isBroken(v) {
		return
	}
	if len(o.node.inputs) == 0 {
		o.fail(task.InputsOption, false, "option", "%s of the context has no inputs", "call it on a candidate set", o.name)
		return
	}
	hint := "write " + task.InputsOption + ": [other]"
	elements, ok := o.array(task.InputsOption, max(0, m.InputsMin-1), m.InputsMax-1, v, hint)
	if !ok {
		return
	}
	for i, element := range elements {
		if o.host.isBroken(element) {
			continue
		}
		if n, ok := o.candidates(fmt.Sprintf("%s[%d]", task.InputsOption, i), element); ok {
			o.node.inputs = append(o.node.inputs, n)
		}
	}
}

// item reads one value of the option's type.
func (o *optionReader) item(option *Option, name string, v goja.Value) (any, bool) {
	if option.Key {
		return o.key(option, name, v)
	}
	switch option.Type {
	case plan.Int:
		return o.integer(option, name, v)
	case plan.Float:
		return o.float(option, name, v)
	case plan.Bool:
		b, ok := boolean(v)
		if !ok {
			o.wrong(name, "true or false", v, o.hint(option, name))
		}
		return b, ok
	case plan.Endpoint:
		return o.endpoint(option, name, v)
	case plan.ExprID, plan.PredID:
		return o.tree(option, name, v)
	case plan.NodeRef:
		n, ok := o.candidates(name, v)
		if ok {
			o.node.refs = append(o.node.refs, n)
		}
		return n, ok
	case plan.Object:
		return o.object(option, name, v)
	default:
		return o.text(option, name, v)
	}
}

// hint shows how one value is written.
func (o *optionReader) hint(option *Option, name string) string {
	if strings.HasSuffix(name, "]") {
		return "write " + option.itemExample()
	}
	return o.advice(option, name)
}

// text reads the option of a String, an Enum or a Template.
func (o *optionReader) text(option *Option, name string, v goja.Value) (any, bool) {
	var text *string
	if goja.IsString(v) {
		text = new(v.String())
	}
	if fault := option.Rule.TextFault(text, plainWords(v)); fault != "" {
		o.fail(name, true, "enum", "%s %s", o.hint(option, name), name, fault)
		return nil, false
	}
	if text == nil {
		o.wrong(name, "a string", v, o.hint(option, name))
		return nil, false
	}
	return *text, true
}

// endpoint reads the option of an Endpoint.
func (o *optionReader) endpoint(option *Option, name string, v goja.Value) (any, bool) {
	e, ok := export[*endpoint](v)
	hint := fmt.Sprintf("write EP.%s.%s", option.EndpointKind, o.host.u.language.someEndpoint(option.EndpointKind))
	switch {
	case !ok:
		o.wrong(name, "an endpoint", v, hint)
		return nil, false
	case e.Kind != option.EndpointKind:
		o.wrong(name, "an endpoint of kind "+string(option.EndpointKind), v, hint)
		return nil, false
	}
	return e.ID, true
}

// someEndpoint returns the name of an endpoint of that kind, for a hint.
func (l *Language) someEndpoint(kind registry.EndpointKind) string {
	for _, e := range l.Endpoints {
		if e.Kind == kind {
			return e.Name
		}
	}
	return "name"
}

// candidates reads a candidate set.
func (o *optionReader) candidates(name string, v goja.Value) (*node, bool) {
	n, ok := export[*node](v)
	if !ok || n.method == nil {
		o.wrong(name, "a candidate set", v, "write "+name+": v with const v = ctx.viewer(...)")
		return nil, false
	}
	return n, true
}

// integer reads the option of an Int.
func (o *optionReader) integer(option *Option, name string, v goja.Value) (any, bool) {
	if !goja.IsNumber(v) {
		o.wrong(name, "an integer", v, o.hint(option, name))
		return nil, false
	}
	f := v.ToFloat()
	switch {
	case f != math.Trunc(f):
		o.wrong(name, "an integer", v, o.hint(option, name))
		return nil, false
	case math.Abs(f) > 1<<53: // which a double may not have exactly
		o.wrong(name, "an integer from -2^53 to 2^53", v, o.hint(option, name))
		return nil, false
	}
	i := int64(f)
	return i, o.inBounds(option, name, option.Rule.IntFault(i, strconv.FormatInt(i, 10)))
}

// float reads the option of a Float.
func (o *optionReader) float(option *Option, name string, v goja.Value) (any, bool) {
	if !goja.IsNumber(v) || math.IsNaN(v.ToFloat()) || math.IsInf(v.ToFloat(), 0) {
		o.wrong(name, "a finite number", v, o.hint(option, name))
		return nil, false
	}
	f := v.ToFloat()
	return f, o.inBounds(option, name, option.Rule.FloatFault(f))
}

// inBounds reports a fault, if there is one.
func (o *optionReader) inBounds(option *Option, name, fault string) bool {
	if fault != "" {
		o.fail(name, true, "range", "%s %s", o.hint(option, name), name, fault)
	}
	return fault == ""
}

// key reads the option of a key.
func (o *optionReader) key(option *Option, name string, v goja.Value) (any, bool) {
	t := tokenOf(v)
	hint := o.host.u.language.someKey(option)
	if !strings.HasSuffix(name, "]") {
		hint = name + ": " + hint
	}
	hint = "write " + hint
	if t == nil || t.key == nil {
		o.wrong(name, "a key", v, hint)
		return nil, false
	}
	if fault := option.Rule.KeyFault(t.key, t.name); fault != "" {
		o.fail(name, true, "key", "%s %s", hint, name, fault)
		return nil, false
	}
	return int64(t.key.ID), true
}

// someKey returns the last key that the option takes, for a hint.
func (l *Language) someKey(option *Option) string {
	for i := len(l.Keys) - 1; i >= 0; i-- {
		key := &l.Keys[i]
		if (option.Rule.KeyTypes == nil || slices.Contains(option.Rule.KeyTypes, key.Type)) && (key.Writable || !option.Rule.Writes) {
			return "Key." + key.Name
		}
	}
	return "Key.name"
}

// tree reads the option of an expression or a predicate.
func (o *optionReader) tree(option *Option, name string, v goja.Value) (any, bool) {
	want := number
	if option.Type == plan.PredID {
		want = predicate
	}
	at := o.place(name, true)
	t := o.host.tree(v, want, false, at, name)
	if t == nil {
		return nil, false
	}
	if made := tokenOf(v); made != nil && made.at > 0 {
		at = made.at // where the expression is written, which may be elsewhere
	}
	return placedTree{tree: t, want: want, at: at}, true
}

// object reads the option of an Object.
func (o *optionReader) object(option *Option, name string, v goja.Value) (any, bool) {
	object, ok := v.(*goja.Object)
	if !ok || object.ClassName() != "Object" || hosted(v) {
		o.wrong(name, "an object", v, o.hint(option, name))
		return nil, false
	}
	fields := make(map[string]any)
	all := true
	for _, given := range object.Keys() {
		path := name + "." + given
		field := optionNamed(option.Fields, given)
		value := object.Get(given)
		switch {
		case field == nil:
			near, _ := nearest.Name(given, optionNames(option.Fields))
			o.fail(path, true, "unknown-option", "%s has no field %s", "did you mean "+near+"?", name, quote(given))
			all = false
		case value == nil || goja.IsUndefined(value):
		default:
			v, ok := o.param(field, path, value)
			if _, twice := fields[field.Param]; twice {
				o.fail(path, true, "option", "%s gives the field %s twice", "keep one name of it", name, field.Names[0])
				ok = false
			}
			fields[field.Param], all = v, all && ok
		}
	}
	for i := range option.Fields {
		field := &option.Fields[i]
		if _, given := fields[field.Param]; given {
			continue
		}
		switch {
		case field.Rule.Default != nil:
			fields[field.Param] = *field.Rule.Default
		case field.Required && all:
			o.fail(name, true, "missing-option", "%s needs the field %s", o.hint(option, name), name, field.Names[0])
			all = false
		}
	}
	return fields, all
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
