package editor

import (
	"fmt"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/plan/expr"
)

// function is an operator that plans write as a function. Immutable once built.
type function struct {
	Name, Params, Result string
	Doc, Null            string
}

// functions returns the global functions of the language that are operators of the table.
func functions() []function {
	return written(func(o *expr.Operator) string {
		if strings.Contains(o.Function, ".") { // of Math, which TypeScript declares
			return ""
		}
		return o.Function
	})
}

// builders returns the members of E or Pred that are operators of the table.
func builders(object string) []function {
	return written(func(o *expr.Operator) string {
		name, _ := strings.CutPrefix(o.Builder, object)
		if name == o.Builder || len(o.Operands) == 0 {
			return ""
		}
		return name
	})
}

// written returns the operators that have a name, if their operands are numbers, predicates, strings and vectors alone.
func written(name func(*expr.Operator) string) []function {
	var all []function
	for _, o := range expr.Operators() {
		f := function{Name: name(&o), Result: "Expr", Doc: o.Doc, Null: o.Null}
		params, ok := parameters(&o)
		if f.Name == "" || !ok {
			continue
		}
		switch f.Params = params; o.Makes {
		case expr.Predicate:
			f.Result = "Predicate"
		case expr.String:
			f.Result = "StringParam"
		}
		all = append(all, f)
	}
	return all
}

// parameters returns the parameters of an operator as a function. It returns false if they are not numbers,
// predicates, strings and vectors alone.
func parameters(o *expr.Operator) (string, bool) {
	types := map[expr.Takes]string{expr.TakesNumber: "Rankd.Expr", expr.TakesNullable: "Rankd.Expr | null", expr.TakesPredicate: "Rankd.Predicate",
		expr.TakesElement: "Rankd.Expr | string", expr.TakesVector: "Rankd.VectorParam",
		expr.TakesText: "string"}
	var list []string
	last := ""
	for _, operand := range o.Operands {
		if last = types[operand.Takes]; last == "" {
			return "", false
		}
		name := compiler.CamelCase(operand.Member)
		if name == "else" { // a word of the language
			name = "otherwise"
		}
		list = append(list, name+": "+last)
	}
	if o.Variadic {
		list = append(list, fmt.Sprintf("...more: (%s)[]", last))
	}
	return strings.Join(list, ", "), len(o.Members) == 0
}
