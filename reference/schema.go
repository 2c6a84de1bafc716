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
		"expr_table": object{"type": "object"},
		"pred_table": object{"type": "object"},
		"built_by":   object{},
	})
	root["allOf"] = []object{s.trees(), onErrorRule(), needs("output_names", plan.OutputNamesCapability), needs("returns", plan.ReturnsCapability)}
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

// listing returns the schema of a plan that requires a capability.
func listing(capability string) object {
	return object{
		"properties": object{"capabilities_required": object{"contains": object{"const": capability}}},
		"required":   []string{"capabilities_required"},
	}
}

// onErrorRule returns the rule that only plans with the capability say what happens to a node that fails.
func onErrorRule() object {
	silent := object{"properties": object{"on_error": false, "optional": false}}
	return object{"if": listing(plan.OnErrorCapability), "else": object{"properties": object{"nodes": object{"items": silent}}}}
}

// needs returns the rule that only plans with the capability have a member.
func needs(name, capability string) object {
	return object{"if": listing(capability), "else": object{"properties": object{name: false}}}
}

func ref(definition string) object { return object{"$ref": "#/$defs/" + definition} }

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
	all, required := s.params(spec.Params)
	all["trace"] = object{"type": []string{"string", "null"}, "description": labelDoc}
	params := object{"properties": all, "required": required, "additionalProperties": false, "description": spec.Doc}
	node := object{"properties": object{
		"params": ref(paramsOf(spec)),
		"inputs": object{"minItems": spec.Inputs, "maxItems": max(spec.Inputs, spec.InputsMax)},
	}}
	if !spec.Partial {
		node["properties"].(object)["on_error"] = object{"not": object{"const": plan.OnErrorPartial.String()}}
	}
	if len(required) > 0 {
		params["type"] = "object"
		node["required"] = []string{"params"}
	} else {
		params["type"] = []string{"object", "null"}
	}
	s.definitions[paramsOf(spec)] = params
	return node
}

// params returns the schemas of parameters by name, and the names of those that an artifact must state.
func (s *schemaMaker) params(params []plan.ParamSchema) (all object, required []string) {
	all, required = object{}, []string{}
	for i := range params {
		p := &params[i]
		value := s.value(p)
		if p.List {
			value = object{"type": "array", "items": value, "minItems": p.MinItems, "maxItems": p.ItemsMax()}
		}
		if p.Required {
			required = append(required, p.Name)
		} else {
			value = object{"anyOf": []object{value, {"type": "null"}}}
			if d := defaultOf(p); d != nil {
				value["default"] = d
			}
		}
		all[p.Name] = described(value, p.Doc)
	}
	return all, required
}

// value returns the schema of one value of a parameter.
func (s *schemaMaker) value(p *plan.ParamSchema) object {
	switch p.Type {
	case plan.Int:
		if p.IsKey {
			return s.keys(&p.Source, false)
		}
		whole := ranged("integer", bound(p.Source.Min), bound(p.Source.Max))
		if p.PerRequest {
			all, required := s.params(plan.RequestIntFields)
			return object{"anyOf": []object{whole, {"type": "object", "properties": all, "required": required, "additionalProperties": false}}}
		}
		return whole
	case plan.Float:
		return ranged("number", bound(p.Source.FloatMin), bound(p.Source.FloatMax))
	case plan.Key:
		return s.keys(&p.Source, true)
	case plan.Bool:
		return object{"type": "boolean"}
	case plan.String, plan.Enum:
		if p.Source.OneOf != nil {
			return object{"enum": p.Source.OneOf}
		}
		return object{"type": "string"}
	case plan.Endpoint:
		return s.endpoints(p.KindOfEndpoint())
	case plan.ExprID, plan.PredID, plan.NodeRef, plan.Template:
		return object{"type": "string"}
	case plan.Object:
		all, required := s.params(p.Fields)
		return object{"type": "object", "properties": all, "required": required, "additionalProperties": false}
	default:
		panic(fmt.Sprintf("reference: parameter %s has an unknown type", p.Name)) // TestEveryTaskIsDocumented sees each
	}
}

func ranged(kind string, least, most any) object {
	value := object{"type": kind}
	if least != nil {
		value["minimum"] = least
	}
	if most != nil {
		value["maximum"] = most
	}
	return value
}

// keys returns the schema of a key, by its id or, if named, by its name as well.
func (s *schemaMaker) keys(rule *plan.SourceRule, named bool) object {
	all := []object{}
	for _, key := range s.registry.Keys() {
		if rule.KeyTypes != nil && !slices.Contains(rule.KeyTypes, key.Type) || rule.Writes && !key.Writable {
			continue
		}
		if named {
			all = append(all, object{"const": key.Name, "description": key.Type.String()})
		}
		all = append(all, object{"const": key.ID, "title": key.Name, "description": key.Type.String()})
	}
	return choice(all)
}

// choice returns the schema of one of these values.
func choice(values []object) object {
	if len(values) == 0 { // the registry has none
		return object{"not": object{}}
	}
	return object{"oneOf": values}
}

func (s *schemaMaker) endpoints(kind registry.EndpointKind) object {
	ids := []object{}
	for _, e := range s.registry.Endpoints() {
		if e.Kind == kind {
			ids = append(ids, object{"const": e.ID, "title": e.Name})
		}
	}
	return choice(ids)
}

// paramsOf names the definition of a task's parameters.
func paramsOf(spec *task.Spec) string { return "params_" + strings.ReplaceAll(spec.Op, "::", "_") }
