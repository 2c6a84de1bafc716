package compiler

import (
	"slices"
	"strings"

	"github.com/rankd/rankd/plan/expr"
)

// kind is the kind of a value that is known only at run time.
type kind uint8

const (
	number    kind = iota + 1 // an expression: a number or null per row
	predicate                 // true or false per row
	text                      // a key of type string
	textParam                 // a parameter of type string
	set                       // a key of type string_set, or a parameter with a list
	madeText                  // a string that operators make
	vectorKey                 // a key of type vector
	opaque                    // a key or parameter that expressions cannot read
	broken                    // the result of a fault that has been reported
)

// String returns the kind as errors name it.
func (k kind) String() string {
	return [...]string{"nothing", "a number", "a predicate", "a string key", "a string parameter", "a set", "a string", "a vector",
		"a key that expressions cannot read", "a fault"}[k]
}

// isText reports whether a value of this kind is a string.
func (k kind) isText() bool { return k == text || k == textParam || k == madeText }

// foreign are the operators and functions of JavaScript without a counterpart, each with the nearest thing to write.
// An operator of the table takes precedence.
var foreign = map[string]string{
	"in":      "write x.in([1, 2]), or Key.tags.includes(x) for a set",
	"&":       "write && between predicates",
	"|":       "write || between predicates, and Math.trunc(x) for x | 0",
	"^":       "write (a || b) && !(a && b)",
	"<<":      "write x * 2 for x << 1",
	">>":      "write Math.floor(x / 2) for x >> 1",
	">>>":     "write Math.floor(x / 2) for x >>> 1",
	"~":       "write ! before a predicate, - before a number, and Math.trunc(x) for ~~x",
	"++":      "write x + 1",
	"--":      "write x - 1",
	"unary +": "leave it out: expressions are numbers already",

	"Math.hypot": "write Math.sqrt(x * x + y * y)",
	"Math.cbrt":  "write x ** (1 / 3)",
}

// find returns the operator of the engine's table for which match is true, or nil.
func find(match func(*expr.Operator) bool) *expr.Operator {
	operators := expr.Operators()
	for i := range operators {
		if match(&operators[i]) {
			return &operators[i]
		}
	}
	return nil
}

// infixOperator returns the operator that is written so between two operands, or nil. The strict
// equalities of JavaScript are the plain ones.
func infixOperator(written string) *expr.Operator {
	switch written {
	case "===":
		written = "=="
	case "!==":
		written = "!="
	}
	return find(func(o *expr.Operator) bool { return o.Infix == written })
}

func prefixOperator(written string) *expr.Operator {
	return find(func(o *expr.Operator) bool { return o.Prefix == written })
}

// functionOperator returns the operator that is written as a function of that name, or nil.
func functionOperator(name string) *expr.Operator {
	return find(func(o *expr.Operator) bool { return o.Function == name && len(o.Members) == 0 })
}

func comparison(cmp string) *expr.Operator {
	return find(func(o *expr.Operator) bool { return o.Cmp == cmp && cmp != "" })
}

// namedOperator returns the operator of that name in artifacts.
func namedOperator(name string) *expr.Operator {
	return find(func(o *expr.Operator) bool { return o.Name == name })
}

// globalFunctions returns the names of the functions that plans call without an object.
func globalFunctions() []string {
	var names []string
	for _, o := range expr.Operators() {
		if o.Function != "" && !isMath(o.Function) {
			names = append(names, o.Function)
		}
	}
	return names
}

func isMath(function string) bool { return strings.HasPrefix(function, "Math.") }

// memberNames returns the members of an artifact that hold the operands.
func memberNames(o *expr.Operator) []string {
	names := make([]string, len(o.Operands))
	for i := range o.Operands {
		names[i] = o.Operands[i].Member
	}
	return names
}

// spelled returns how the operators of the table are written, each once.
func spelled() []string {
	var all []string
	for _, o := range expr.Operators() {
		for _, written := range []string{o.Infix, o.Prefix, o.Function} {
			if written != "" && !slices.Contains(all, written) {
				all = append(all, written)
			}
		}
	}
	return all
}

// makes returns the kind of an operator's result.
func makes(o *expr.Operator) kind {
	switch o.Makes {
	case expr.Predicate:
		return predicate
	case expr.String:
		return madeText
	}
	return number
}
