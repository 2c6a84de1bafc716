package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// params checks the parameters of n against the op's schema and fills in defaults.
func (c *compiler) params(n *Node, v *jsondoc.Value, path string) {
	if v == nil || v.Kind == jsondoc.Null {
		v = &jsondoc.Value{Kind: jsondoc.Object}
	}
	if v.Kind != jsondoc.Object {
		c.report(c.wrongKind(n.ID, path, "an object", v))
		return
	}
	for i := range v.Members {
		if name := v.Members[i].Name; name != "trace" && !has(n.Schema.Params, name) {
			c.report(c.fail(n.ID, member(path, name), "%s has no such parameter", n.Op))
		}
	}
	if trace := v.Get("trace"); !c.source.absent(member(path, "trace"), trace) {
		if trace.Kind != jsondoc.String {
			c.report(c.wrongKind(n.ID, member(path, "trace"), "a string or null", trace))
		}
		n.Trace = trace.Str
	}
	r := paramReader{compiler: c, node: n}
	n.Params = r.fields(n.Schema.Params, v, path)
}

func has(schemas []ParamSchema, name string) bool {
	return slices.ContainsFunc(schemas, func(s ParamSchema) bool { return s.Name == name })
}

// paramReader reads the parameters of one node. One goroutine at a time.
type paramReader struct {
	*compiler
	node *Node
}

// ruled reports whether the rules of the schemas hold for the node.
func (r *paramReader) ruled() bool { return r.node.Schema.Strict || r.source != nil }

// refuse returns the error for a fault of a value, or nil if nothing is wrong.
func (r *paramReader) refuse(path string, f fault) *Error {
	return r.compiler.refuse(r.node.ID, path, f)
}

func (r *paramReader) fail(path, format string, args ...any) *Error {
	return r.compiler.fail(r.node.ID, path, format, args...)
}

// fields reads the members of an object, one value for each schema.
func (r *paramReader) fields(schemas []ParamSchema, v *jsondoc.Value, path string) NodeParams {
	p := NodeParams{values: make([]paramValue, len(schemas))}
	for i := range schemas {
		schema := &schemas[i]
		value, bad := r.param(schema, v.Get(schema.Name), member(path, schema.Name))
		r.report(bad)
		p.values[i] = value
	}
	return p
}

// param checks one parameter; v is nil if it is absent.
func (r *paramReader) param(schema *ParamSchema, v *jsondoc.Value, path string) (paramValue, *Error) {
	absent := r.source.absent(path, v)
	switch {
	case absent && schema.Required:
		return paramValue{}, r.wrongKind(r.node.ID, path, r.want(schema), v)
	case absent && schema.StrValue != "" && !schema.List:
		value, bad := r.item(schema, &jsondoc.Value{Kind: jsondoc.String, Str: schema.StrValue}, path)
		value.stated = false
		return value, bad
	case absent:
		return paramValue{schema: schema, i: schema.IntValue, f: schema.FloatValue, b: schema.BoolValue}, nil
	case schema.List:
		return r.list(schema, v, path)
	default:
		return r.item(schema, v, path)
	}
}

// list reads the items of a List.
func (r *paramReader) list(schema *ParamSchema, v *jsondoc.Value, path string) (paramValue, *Error) {
	value := paramValue{schema: schema, stated: true, given: true}
	if v.Kind != jsondoc.Array {
		return value, r.wrongKind(r.node.ID, path, r.want(schema), v)
	}
	if bad := r.refuse(path, itemsFault(schema.MinItems, schema.ItemsMax(), len(v.Items))); bad != nil {
		return value, bad
	}
	value.items = make([]paramValue, len(v.Items))
	for i := range v.Items {
		var bad *Error
		value.items[i], bad = r.item(schema, &v.Items[i], element(path, i))
		r.report(bad)
	}
	return value, nil
}

// item reads a value of the schema's type.
func (r *paramReader) item(schema *ParamSchema, v *jsondoc.Value, path string) (paramValue, *Error) {
	value := paramValue{schema: schema, stated: true, given: true}
	wrong := func() (paramValue, *Error) {
		return value, r.wrongKind(r.node.ID, path, r.wantItem(schema), v)
	}
	var bad *Error
	switch schema.Type {
	case Int:
		if schema.PerRequest && v.Kind == jsondoc.Object {
			if given := r.requestInt(schema, v, path); given != nil {
				value.i, value.object = given.Most, given
			}
			return value, nil
		}
		i, ok := integer(v)
		if !ok {
			return wrong()
		}
		value.i = i
		return value, r.checkInt(schema, v, i, path)
	case Float:
		if !v.IsNumber() || math.IsInf(v.Float, 0) {
			return wrong()
		}
		value.f = v.Float
		shown := r.source.shown(path, fmt.Sprint(v.Float))
		return value, r.refuse(path, boundsFault(schema.Source.FloatMin, schema.Source.FloatMax, v.Float, shown))
	case Bool:
		if v.Kind != jsondoc.Bool {
			return wrong()
		}
		value.b = v.Bool
	case Key:
		value.object, bad = r.key(schema, v, path)
		value.s = v.Str
		return value, bad
	case Object:
		if v.Kind != jsondoc.Object {
			return wrong()
		}
		fields := r.object(schema.Fields, v, path)
		value.object = &fields
	default:
		if schema.Argument && v.IsNumber() {
			v = &jsondoc.Value{Kind: jsondoc.String, Str: numberText(v)}
		}
		isText := v.Kind == jsondoc.String
		switch choice := schema.Source.OneOf != nil && (schema.Type == Enum || schema.Type == String && r.ruled()); {
		case choice && isText && !slices.Contains(schema.Source.OneOf, v.Str):
			return value, r.refuse(path, schema.Source.textFault(errtext.Quote(v.Str)))
		case choice && !isText:
			return value, r.refuse(path, schema.Source.textFault(r.source.shown(path, v.Describe())))
		case !isText:
			return wrong()
		}
		value.s = v.Str
		return value, r.checkText(schema, &value, path)
	}
	return value, nil
}

// object reads the members of an object, and refuses others.
func (r *paramReader) object(schemas []ParamSchema, v *jsondoc.Value, path string) NodeParams {
	for i := range v.Members {
		if name := v.Members[i].Name; !has(schemas, name) {
			r.report(r.fail(member(path, name), "there is no such field; there are %s", names(schemas)))
		}
	}
	return r.fields(schemas, v, path)
}

// names lists the names of fields.
func names(fields []ParamSchema) string {
	all := make([]string, len(fields))
	for i := range fields {
		all[i] = fields[i].Name
	}
	return strings.Join(all, ", ")
}

// checkInt checks the range of an Int.
func (r *paramReader) checkInt(schema *ParamSchema, v *jsondoc.Value, i int64, path string) *Error {
	if schema.IsKey && i > math.MaxUint32 {
		return r.fail(path, "must be a key id, and those end at %d", uint32(math.MaxUint32))
	}
	if schema.IsParam {
		if p, ok := r.registry.Param(registry.ParamID(min(uint64(i), math.MaxUint32))); !ok || !slices.Contains(schema.Source.ParamTypes, p.Type) {
			return r.refuse(path, fault{FaultType, "must be " + schema.Source.Param() + ", not " + r.source.shown(path, v.Describe())})
		}
		return nil
	}
	if !r.ruled() {
		return nil
	}
	if schema.IsKey {
		_, bad := r.key(schema, v, path)
		return bad
	}
	wraps := v.Kind == jsondoc.Uint && v.Uint > math.MaxInt64
	if wraps {
		i = math.MaxInt64
	}
	bad := r.refuse(path, boundsFault(schema.Source.Min, schema.Source.Max, i, r.source.shown(path, v.Describe())))
	if bad == nil && wraps {
		return r.wrongKind(r.node.ID, path, schema.Type.describe(), v)
	}
	return bad
}

// checkText checks a value that is a string, and parses a Template.
func (r *paramReader) checkText(schema *ParamSchema, value *paramValue, path string) *Error {
	switch schema.Type {
	case Template:
		parse := ParseKeyTemplate
		if schema.Argument {
			parse = ParseArgument
		}
		t, err := parse(value.s, r.registry, schema.Columns)
		if err != nil {
			return r.fail(path, "%v", err)
		}
		value.object = t
	case Enum, String:
		if len(value.s) > MaxTextBytes && (schema.Type == Enum || r.node.Schema.Strict) {
			return r.fail(path, "has %d bytes, more than %d", len(value.s), MaxTextBytes)
		}
	}
	return nil
}

// numberText writes a number as an argument of Redis.
func numberText(v *jsondoc.Value) string {
	if i, ok := integer(v); ok {
		return strconv.FormatInt(i, 10)
	}
	return strconv.FormatFloat(v.Float, 'g', -1, 64)
}

// key returns the key with a name or an id.
func (r *paramReader) key(schema *ParamSchema, v *jsondoc.Value, path string) (*registry.Key, *Error) {
	var key *registry.Key
	known := false
	switch id, isID := integer(v); {
	case v.Kind == jsondoc.String:
		if key, known = r.registry.KeyByName(v.Str); !known {
			return nil, r.fail(path, "%s has no key %s%s", r.registryName(), errtext.Quote(v.Str), r.nearestKey(v.Str))
		}
	case isID:
		if 0 < id && id <= math.MaxUint32 {
			key, known = r.registry.Key(registry.KeyID(id))
		}
		if !known {
			return nil, r.fail(path, "%s has no key %s", r.registryName(), v.Describe())
		}
	default:
		return nil, r.wrongKind(r.node.ID, path, Key.describe(), v)
	}
	if bad := r.refuse(path, schema.Source.keyFault(key, r.source.shown(path, fmt.Sprintf("key %d (%s)", key.ID, key.Name)))); bad != nil {
		return nil, bad
	}
	return key, nil
}

// registryName says which registry was asked.
func (r *paramReader) registryName() string { return cmp.Or(r.registry.Name(), "the registry") }

func (r *paramReader) nearestKey(name string) string {
	all := make([]string, len(r.registry.Keys()))
	for i, key := range r.registry.Keys() {
		all[i] = key.Name
	}
	if near, ok := errtext.NearestLike(name, all); ok {
		return "; the nearest is " + errtext.Quote(near)
	}
	return ""
}

// want says what a parameter must be.
func (r *paramReader) want(p *ParamSchema) string {
	if p.List {
		return fmt.Sprintf("an array of %d to %d items", p.MinItems, p.ItemsMax())
	}
	return r.wantItem(p)
}

// wantItem says what a value of a parameter must be, or an item of it.
func (r *paramReader) wantItem(p *ParamSchema) string {
	switch {
	case p.Argument:
		return "a text, a number or a parameter"
	case r.source == nil: // An artifact has the ids.
	case p.IsKey:
		return Key.describe()
	case p.IsParam:
		return p.Source.Param()
	}
	return p.Type.describe()
}

// describe says what a value of this type must be.
func (t ParamType) describe() string {
	return [...]string{
		Int: "an integer of 64 bits", Bool: "true or false", String: "a string", Endpoint: "an endpoint id", ExprID: "an id in expr_table",
		PredID: "an id in pred_table", NodeRef: "a node id", Float: "a finite number", Key: "the name or the id of a key", Enum: "a string",
		Template: "a key template", Object: "an object",
	}[t]
}

// references resolves the references in the parameters of n: first those inside the
// plan, then endpoints. It skips an optional reference that is not given.
func (c *compiler) references(n *Node, path string) {
	n.Params.each(path, func(v *paramValue, path string) { c.report(c.reference(n, v, path)) })
	n.Params.each(path, func(v *paramValue, path string) { c.report(c.endpoint(n, v, path)) })
	n.Params.each(path, func(v *paramValue, path string) { c.report(c.fits(n, v, path)) })
	if len(n.Exprs) > 0 {
		n.Expr = n.Exprs[0]
	}
	if len(n.Preds) > 0 {
		n.Pred = n.Preds[0]
	}
	n.Params.collect()
}

// fits checks the type of an expression.
func (c *compiler) fits(n *Node, v *paramValue, path string) *Error {
	e, ok := v.object.(*expr.Expr)
	if !ok || !e.Typed() {
		return nil // Without types all expressions make numbers.
	}
	typ := registry.Float
	if v.schema.Fills != "" {
		key, ok := c.registry.Key(registry.KeyID(n.Params.Int(v.schema.Fills)))
		if !ok {
			return nil // That fault is another one.
		}
		typ = key.Type
	}
	if e.Fits(typ) {
		return nil
	}
	hint := ""
	if typ == registry.Bool {
		hint = ": write a predicate, such as Key.likes > 3"
	}
	if v.schema.Fills == "" {
		return c.fail(n.ID, path, "want a number, have %s", e.Type())
	}
	return c.fail(n.ID, path, "a key of type %s does not take %s%s", typ, e.Type(), hint)
}

// reference resolves a reference inside the plan.
func (c *compiler) reference(n *Node, v *paramValue, path string) *Error {
	missing := func(where string) *Error { return c.fail(n.ID, path, "%s %s", where, errtext.Quote(v.s)) }
	switch v.schema.Type {
	case Int:
		if given, ok := v.object.(*RequestInt); ok {
			c.graph.RequestRules = append(c.graph.RequestRules, given)
		}
	case ExprID:
		e, ok := c.doc.exprs[v.s]
		if !ok || v.s == "" && n.Schema.Strict {
			return missing("expr_table has no entry")
		}
		if v.s != "" { // the entry "" loads but cannot run, as in the original engine
			v.object, n.Exprs = e, append(n.Exprs, e)
		}
	case PredID:
		p, ok := c.doc.preds[v.s]
		if !ok || v.s == "" && n.Schema.Strict {
			return missing("pred_table has no entry")
		}
		if v.s != "" {
			v.object, n.Preds = p, append(n.Preds, p)
		}
	case NodeRef:
		ref, ok := c.byID[v.s]
		if !ok {
			return missing("there is no node")
		}
		v.i = int64(len(n.Refs))
		n.Refs = append(n.Refs, ref)
	}
	return nil
}

// endpoint resolves a reference to an endpoint.
func (c *compiler) endpoint(n *Node, v *paramValue, path string) *Error {
	if v.schema.Type != Endpoint {
		return nil
	}
	want := v.schema.KindOfEndpoint()
	endpoint, ok := c.registry.Endpoint(v.s)
	switch {
	case !ok:
		return c.fail(n.ID, path, "there is no endpoint %s", errtext.Quote(v.s))
	case endpoint.Kind != want:
		shown := c.source.shown(path, fmt.Sprintf("endpoint %s of kind %s", endpoint.ID, endpoint.Kind))
		return c.refuse(n.ID, path, fault{FaultType, fmt.Sprintf("must be an endpoint of kind %s, not %s", want, shown)})
	}
	v.object = endpoint
	if n.Endpoint == nil {
		n.Endpoint = endpoint
	}
	return nil
}
