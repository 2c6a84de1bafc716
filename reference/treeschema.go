package reference

import (
	"math"
	"slices"

	"github.com/rankd/rankd/plan/expr"
)

// trees returns the rule for the tables of expressions and predicates, and adds the schemas of their trees, made from the
// table of operators. Only an artifact with expr.Capability may use the operators of typed trees.
func (s *schemaMaker) trees() object {
	for _, typed := range []bool{false, true} {
		var expressions, predicates []expr.Operator
		for _, o := range expr.Operators() {
			switch {
			case o.Typed && !typed:
			case o.Makes == expr.Predicate:
				predicates = append(predicates, o)
			default:
				expressions = append(expressions, o)
			}
		}
		s.definitions[treeName("expression", typed)] = treeOf(expressions, typed)
		s.definitions[treeName("predicate", typed)] = treeOf(predicates, typed)
	}
	return object{"if": listing(expr.Capability), "then": treeTables(true), "else": treeTables(false)}
}

// treeName names the definition of the trees of one kind.
func treeName(kind string, typed bool) string {
	if typed {
		return "typed_" + kind
	}
	return kind
}

func treeTables(typed bool) object {
	table := func(kind string) object {
		return object{"type": "object", "additionalProperties": ref(treeName(kind, typed))}
	}
	return object{"properties": object{"expr_table": table("expression"), "pred_table": table("predicate")}}
}

// treeOf returns the schema of a tree whose root is one of these operators.
func treeOf(operators []expr.Operator, typed bool) object {
	var ops []string
	var rules []object
	for i := range operators {
		o := &operators[i]
		if slices.Contains(ops, o.Name) {
			continue // a further comparison, which the first one admits
		}
		ops = append(ops, o.Name)
		rules = append(rules, object{
			"if":   object{"properties": object{"op": object{"const": o.Name}}, "required": []string{"op"}},
			"then": operator(o, typed),
		})
	}
	return object{
		"type": "object", "required": []string{"op"},
		"properties": object{"op": object{"enum": ops}}, "allOf": rules,
	}
}

// operator returns the schema of the members of one operator.
func operator(o *expr.Operator, typed bool) object {
	all, required := object{}, []string{}
	for _, operand := range o.Operands {
		kind := "expression"
		if operand.Takes == expr.TakesPredicate {
			kind = "predicate"
		}
		all[operand.Member] = ref(treeName(kind, typed))
		required = append(required, operand.Member)
	}
	for _, m := range o.Members {
		value := object{"type": m.Type}
		switch {
		case m.Values != nil:
			value = object{"enum": m.Values}
		case m.Type == "integer":
			value = object{"type": "integer", "minimum": 0, "maximum": uint64(math.MaxUint64)}
		case o.Name == "in":
			value = object{"anyOf": []object{arrayOf("number"), arrayOf("string")}}
		case o.Name == "regex" && m.Name == "pattern":
			value = patternSchema()
		}
		all[m.Name] = described(value, m.Doc)
		if !m.Optional {
			required = append(required, m.Name)
		}
	}
	return described(object{"properties": all, "required": required}, o.Doc)
}

// patternSchema returns the schema of a regex's pattern.
func patternSchema() object {
	of := func(kind, member string, value object) object {
		return object{
			"type": "object", "required": []string{"kind", member},
			"properties": object{"kind": object{"const": kind}, member: value},
		}
	}
	return object{"oneOf": []object{
		of("literal", "value", object{"type": "string"}),
		of("param", "param_id", object{"type": "integer", "minimum": 0}),
	}}
}
