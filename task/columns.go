package task

import (
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// Columns returns the Reads or Writes of a task whose columns are the same for every node.
func Columns(keys ...registry.KeyID) plan.ColumnsOf {
	return func(*plan.Node, *registry.Registry) []registry.KeyID { return keys }
}

// ColumnParam returns the Reads or Writes of a task of one column, whose key is the
// value of an Int parameter. A value that cannot be a key means no column.
func ColumnParam(name string) plan.ColumnsOf {
	return func(n *plan.Node, _ *registry.Registry) []registry.KeyID {
		id, ok := keyID(n.Params.Int(name))
		if !ok {
			return nil
		}
		return []registry.KeyID{id}
	}
}

// KeyParams returns the Reads or Writes of a task whose columns are the values of Key parameters and of
// Lists of them, or in the marks of Template parameters. "rules.key" stands for the field key of the Object, or of all Objects of the List, rules.
// KeyParams leaves out parameters that are not given.
func KeyParams(names ...string) plan.ColumnsOf {
	return func(n *plan.Node, _ *registry.Registry) (keys []registry.KeyID) {
		for _, name := range names {
			keys = appendKeys(keys, &n.Params, name)
		}
		return keys
	}
}

func appendKeys(keys []registry.KeyID, params *plan.NodeParams, name string) []registry.KeyID {
	if object, field, nested := strings.Cut(name, "."); nested {
		if fields := params.Object(object); fields != nil {
			keys = appendKeys(keys, fields, field)
		}
		objects := params.Objects(object)
		for i := range objects {
			keys = appendKeys(keys, &objects[i], field)
		}
		return keys
	}
	if key := params.Key(name); key != nil {
		keys = append(keys, key.ID)
	}
	for _, key := range params.Keys(name) {
		keys = append(keys, key.ID)
	}
	templates := params.Templates(name)
	if template := params.Template(name); template != nil {
		templates = []*plan.KeyTemplate{template}
	}
	for _, template := range templates {
		keys = append(keys, template.Columns()...)
	}
	return keys
}

// ExprKeys is the Reads of a task that evaluates the expressions and predicates of its parameters.
func ExprKeys(n *plan.Node, _ *registry.Registry) (keys []registry.KeyID) {
	for _, e := range n.Exprs {
		keys = append(keys, e.Keys()...)
	}
	for _, p := range n.Preds {
		keys = append(keys, p.Keys()...)
	}
	return keys
}

// Union returns the columns of all these functions.
func Union(all ...plan.ColumnsOf) plan.ColumnsOf {
	return func(n *plan.Node, reg *registry.Registry) (keys []registry.KeyID) {
		for _, of := range all {
			keys = append(keys, of(n, reg)...)
		}
		return keys
	}
}

func (c *Ctx) writes(spec *Spec, key registry.KeyID) bool {
	return spec.Writes != nil && slices.Contains(spec.Writes(c.Node, c.Registry), key)
}
