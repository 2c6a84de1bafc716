package reference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// Schema returns a JSON Schema (2020-12) of the plans that use these tasks and this registry. A plan that it refuses
// does not load, or fails each of its requests. It cannot say that names refer to something, that ids are unique and
// that the graph has no cycle.
func Schema(catalog *task.Catalog, reg *registry.Registry) []byte {
	s := schemaMaker{registry: reg, definitions: object{}}
	root := properties(documentMembers, object{
		"nodes":      object{"type": "array", "items": s.node(catalog)},
		"expr_table": tableOf("expression"),
		"pred_table": tableOf("predicate"),
		"built_by":   object{},
	})
	s.trees()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rankd plan"
	root["description"] = "A compiled plan of rankd."
	root["$defs"] = s.definitions
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it is made of strings, numbers, lists and maps
	}
	return append(text, '\n')
}

// A schemaMaker makes one schema.
type schemaMaker struct {
	registry    *registry.Registry
	definitions object
}

func ref(definition string) object { return object{"$ref": "#/$defs/" + definition} }

func tableOf(definition string) object {
	return object{"type": "object", "additionalProperties": ref(definition)}
}

// properties returns the schema of an object with these members. made has the schemas that the table leaves to
// its caller.
func properties(members []member, made object) object {
	all, required := object{}, []string{}
	for _, m := range members {
		own := m.schema
		if own == nil {
			own = made[m.name].(object)
		}
		all[m.name] = described(own, m.doc)
		if m.required {
			required = append(required, m.name)
		}
	}
	return object{"type": "object", "properties": all, "required": required}
}

// described returns a copy of a schema with a description.
func described(schema object, doc string) object {
	described := object{}
	for name, value := range schema {
		described[name] = value
	}
	if doc != "" {
		described["description"] = strings.ReplaceAll(plain(doc), "`", "")
	}
	return described
}

// node returns the schema of a node: what all have in common, and the parameters by op.
func (s *schemaMaker) node(catalog *task.Catalog) object {
	scheduling := properties(schedulingMembers, nil)
	scheduling["additionalProperties"] = false
	var ops []string
	var rules []object
	for _, spec := range catalog.Specs() {
		_, bare, _ := strings.Cut(spec.Op, "::")
		names := []string{bare, spec.Op}
		ops = append(ops, names...)
		rules = append(rules, object{
			"if":   object{"properties": object{"op": object{"enum": names}}, "required": []string{"op"}},
			"then": s.nodeOf(spec),
		})
	}
	slices.Sort(ops)
	node := properties(nodeMembers, object{
		"op": object{"enum": ops}, "params": object{"type": []string{"object", "null"}}, "scheduling": scheduling, "expr_span": object{},
	})
	node["allOf"] = rules
	s.definitions["node"] = node
	return ref("node")
}

// nodeOf returns the schema of the nodes of one task.
func (s *schemaMaker) nodeOf(spec *task.Spec) object {
	all := object{"trace": object{"type": []string{"string", "null"}, "description": "A label for people; it has no effect."}}
	required := []string{}
	for i := range spec.Params {
		p := &spec.Params[i]
		all[p.Name] = described(s.param(p), p.Doc)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	params := object{"properties": all, "required": required, "additionalProperties": false, "description": spec.Doc}
	node := object{"properties": object{
		"params": ref(paramsOf(spec)),
		"inputs": object{"minItems": spec.Inputs, "maxItems": spec.Inputs},
	}}
	if len(required) > 0 {
		params["type"] = "object"
		node["required"] = []string{"params"}
	} else {
		params["type"] = []string{"object", "null"}
	}
	s.definitions[paramsOf(spec)] = params
	return node
}

// param returns the schema of one parameter.
func (s *schemaMaker) param(p *plan.ParamSchema) object {
	value := s.value(p)
	if p.Required {
		return value
	}
	d := describeParam(p, nil)
	optional := object{"anyOf": []object{value, {"type": "null"}}}
	if d.Default != nil {
		optional["default"] = d.Default
	}
	return optional
}

func (s *schemaMaker) value(p *plan.ParamSchema) object {
	switch p.Type {
	case plan.Int:
		if p.IsKey {
			return s.keys(&p.Source)
		}
		value := object{"type": "integer"}
		if p.Source.Min != nil {
			value["minimum"] = *p.Source.Min
		}
		if p.Source.Max != nil {
			value["maximum"] = *p.Source.Max
		}
		return value
	case plan.Bool:
		return object{"type": "boolean"}
	case plan.String:
		if p.Source.OneOf != nil {
			return object{"enum": p.Source.OneOf}
		}
		return object{"type": "string"}
	case plan.Endpoint:
		return s.endpoints()
	case plan.ExprID, plan.PredID, plan.NodeRef:
		return object{"type": "string"}
	default:
		panic(fmt.Sprintf("reference: parameter %s has an unknown type", p.Name)) // TestEveryTaskIsDocumented sees each
	}
}

// keys returns the schema of the id of a key.
func (s *schemaMaker) keys(rule *plan.SourceRule) object {
	ids := []object{}
	for _, key := range s.registry.Keys() {
		if rule.KeyTypes != nil && !slices.Contains(rule.KeyTypes, key.Type) || rule.Writes && !key.Writable {
			continue
		}
		ids = append(ids, object{"const": key.ID, "title": key.Name, "description": key.Type.String()})
	}
	return object{"oneOf": ids}
}

func (s *schemaMaker) endpoints() object {
	ids := []object{}
	for _, e := range s.registry.Endpoints() {
		if e.Kind == registry.Redis {
			ids = append(ids, object{"const": e.ID, "title": e.Name})
		}
	}
	return object{"oneOf": ids}
}

// trees adds the schemas of expressions and predicates.
func (s *schemaMaker) trees() {
	s.definitions["expression"] = object{"type": "object", "required": []string{"op"}}
	s.definitions["predicate"] = object{"type": "object", "required": []string{"op"}}
}

// paramsOf names the definition of a task's parameters.
func paramsOf(spec *task.Spec) string { return "params_" + strings.ReplaceAll(spec.Op, "::", "_") }
