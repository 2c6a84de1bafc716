package plan

import (
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// NodeParams are the checked parameters of a node, or the fields of an Object among them, defaults
// filled in. Each method panics if the schema has no parameter of that name. Slices belong to the
// node: callers must not change them. Immutable once built; any goroutine.
type NodeParams struct {
	values []paramValue // in schema order
}

// paramValue is the value of one parameter, or one item of a List.
type paramValue struct {
	schema *ParamSchema
	stated bool // the plan gives a value
	given  bool // the plan or a default text gives a value; if not, a reference names nothing

	i      int64 // of an Int; of a NodeRef: its position in Node.Refs
	f      float64
	s      string
	b      bool
	object any // what a Key, Template, ExprID, PredID or Endpoint names; *NodeParams of an Object; *RequestInt of an Int, or nil

	items []paramValue // of a List
	list  any          // the items as a slice of the type that an accessor returns
}

func (p *NodeParams) get(name string) *paramValue {
	for i := range p.values {
		if p.values[i].schema.Name == name {
			return &p.values[i]
		}
	}
	panic("plan: parameter " + name + " is not in the op's schema")
}

// objectOf returns what a parameter names, or nil if it is not given.
func objectOf[T any](p *NodeParams, name string) *T {
	object, _ := p.get(name).object.(*T)
	return object
}

// listOf returns the items of a List.
func listOf[T any](p *NodeParams, name string) []T {
	list, _ := p.get(name).list.([]T)
	return list
}

// Given reports whether the plan gives a value other than null. A default does not count.
func (p *NodeParams) Given(name string) bool { return p.get(name).stated }

// Int returns an Int parameter, or its maximum if each request gives it: see IntIn.
func (p *NodeParams) Int(name string) int64 { return p.get(name).i }

// LeastInt returns an Int parameter, or its minimum if each request gives it.
func (p *NodeParams) LeastInt(name string) int64 {
	v := p.get(name)
	if given, ok := v.object.(*RequestInt); ok {
		return given.Least
	}
	return v.i
}

// IntIn returns an Int parameter in a request with these parameters. The error is that of RequestInt.Of.
func (p *NodeParams) IntIn(name string, params *expr.Params) (int64, error) {
	v := p.get(name)
	if v.object == nil {
		return v.i, nil
	}
	return v.object.(*RequestInt).Of(params)
}

// Float returns a Float parameter.
func (p *NodeParams) Float(name string) float64 { return p.get(name).f }

// Bool returns a Bool parameter.
func (p *NodeParams) Bool(name string) bool { return p.get(name).b }

// String returns the text of a String, Enum, Template, Endpoint, ExprID, PredID or NodeRef
// parameter.
func (p *NodeParams) String(name string) string { return p.get(name).s }

// Key returns the key of a Key parameter, or nil if it is not given.
func (p *NodeParams) Key(name string) *registry.Key { return objectOf[registry.Key](p, name) }

// Template returns a Template parameter, or nil if it is not given.
func (p *NodeParams) Template(name string) *KeyTemplate { return objectOf[KeyTemplate](p, name) }

// Expr returns the expression of an ExprID parameter, or nil if it is not given or "".
func (p *NodeParams) Expr(name string) *expr.Expr { return objectOf[expr.Expr](p, name) }

// Pred returns the predicate of a PredID parameter, or nil if it is not given or "".
func (p *NodeParams) Pred(name string) *expr.Pred { return objectOf[expr.Pred](p, name) }

// Endpoint returns the endpoint of an Endpoint parameter, or nil if it is not given.
func (p *NodeParams) Endpoint(name string) *registry.Endpoint {
	return objectOf[registry.Endpoint](p, name)
}

// Ref returns the position of a NodeRef parameter in Node.Refs, or -1 if it is not given.
func (p *NodeParams) Ref(name string) int {
	if v := p.get(name); v.given {
		return int(v.i)
	}
	return -1
}

// Object returns the fields of an Object parameter, or nil if it is not given.
func (p *NodeParams) Object(name string) *NodeParams { return objectOf[NodeParams](p, name) }

// Ints returns a List of Int.
func (p *NodeParams) Ints(name string) []int64 { return listOf[int64](p, name) }

// Floats returns a List of Float.
func (p *NodeParams) Floats(name string) []float64 { return listOf[float64](p, name) }

// Bools returns a List of Bool.
func (p *NodeParams) Bools(name string) []bool { return listOf[bool](p, name) }

// Strings returns a List of String or Enum.
func (p *NodeParams) Strings(name string) []string { return listOf[string](p, name) }

// Keys returns a List of Key.
func (p *NodeParams) Keys(name string) []*registry.Key { return listOf[*registry.Key](p, name) }

// Templates returns a List of Template.
func (p *NodeParams) Templates(name string) []*KeyTemplate { return listOf[*KeyTemplate](p, name) }

// Exprs returns a List of ExprID.
func (p *NodeParams) Exprs(name string) []*expr.Expr { return listOf[*expr.Expr](p, name) }

// Preds returns a List of PredID.
func (p *NodeParams) Preds(name string) []*expr.Pred { return listOf[*expr.Pred](p, name) }

// Refs returns the positions of a List of NodeRef in Node.Refs.
func (p *NodeParams) Refs(name string) []int { return listOf[int](p, name) }

// Objects returns a List of Object: the fields of each.
func (p *NodeParams) Objects(name string) []NodeParams { return listOf[NodeParams](p, name) }

// collect makes the slices of all Lists, once references are resolved.
func (p *NodeParams) collect() {
	for i := range p.values {
		v := &p.values[i]
		if fields, ok := v.object.(*NodeParams); ok {
			fields.collect()
		}
		for k := range v.items {
			if fields, ok := v.items[k].object.(*NodeParams); ok {
				fields.collect()
			}
		}
		if v.schema.List {
			v.list = v.slice()
		}
	}
}

// slice returns the items of a List as accessors return them.
func (v *paramValue) slice() any {
	switch v.schema.Type {
	case Int:
		return sliceOf(v.items, func(item *paramValue) int64 { return item.i })
	case NodeRef:
		return sliceOf(v.items, func(item *paramValue) int { return int(item.i) })
	case Float:
		return sliceOf(v.items, func(item *paramValue) float64 { return item.f })
	case Bool:
		return sliceOf(v.items, func(item *paramValue) bool { return item.b })
	case Key:
		return sliceOf(v.items, objectItem[*registry.Key])
	case Template:
		return sliceOf(v.items, objectItem[*KeyTemplate])
	case ExprID:
		return sliceOf(v.items, objectItem[*expr.Expr])
	case PredID:
		return sliceOf(v.items, objectItem[*expr.Pred])
	case Object:
		return sliceOf(v.items, func(item *paramValue) NodeParams { return *item.object.(*NodeParams) })
	default:
		return sliceOf(v.items, func(item *paramValue) string { return item.s })
	}
}

func sliceOf[T any](items []paramValue, of func(*paramValue) T) []T {
	list := make([]T, len(items))
	for i := range items {
		list[i] = of(&items[i])
	}
	return list
}

func objectItem[T any](item *paramValue) T {
	object, _ := item.object.(T)
	return object
}

// each calls visit for every given value that is neither a List nor an Object, at any depth, with
// its path.
func (p *NodeParams) each(path string, visit func(v *paramValue, path string)) {
	for i := range p.values {
		v := &p.values[i]
		at := member(path, v.schema.Name)
		if !v.schema.List {
			v.each(at, visit)
			continue
		}
		for k := range v.items {
			v.items[k].each(element(at, k), visit)
		}
	}
}

func (v *paramValue) each(path string, visit func(v *paramValue, path string)) {
	switch fields, ok := v.object.(*NodeParams); {
	case ok:
		fields.each(path, visit)
	case v.given:
		visit(v, path)
	}
}
