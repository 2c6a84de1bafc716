package compiler

// kind is what a value that is known only at run time stands for.
type kind uint8

const (
	number    kind = iota + 1 // an expression: a double or null per row
	predicate                 // true or false per row
	text                      // a key of type string, for in, == and regex
	textParam                 // a parameter of type string, for regex
	opaque                    // a key or parameter that expressions cannot read
	broken                    // the result of a fault that has been reported
)

// String returns the kind as errors name it.
func (k kind) String() string {
	return [...]string{"nothing", "a number", "a predicate", "a string key", "a string parameter",
		"a key that expressions cannot read", "a fault"}[k]
}

// operator is one operation of the IR and how plans write it. A new operation of the IR with
// operands of these kinds is one line in operators.
type operator struct {
	ir       string   // op in artifacts
	cmp      string   // the member cmp, for comparisons
	operands []string // the members that hold the operands: its arity
	takes    kind     // of each operand
	makes    kind
	nulls    bool // operands may be the constant null

	infix    string // "+"; "" if there is none
	prefix   string // "!"
	function string // a global function, "coalesce", or one of Math, "Math.max"
	builder  string // "E.add"; and and or take more than two operands too
}

var (
	pair   = []string{"a", "b"}
	single = []string{"x"}
)

// operators is the table of the language's operators. in, regex and the null tests have operands
// of their own; see builders.go.
var operators = []operator{
	{ir: "add", operands: pair, takes: number, makes: number, infix: "+", builder: "E.add"},
	{ir: "sub", operands: pair, takes: number, makes: number, infix: "-", builder: "E.sub"},
	{ir: "mul", operands: pair, takes: number, makes: number, infix: "*", builder: "E.mul"},
	{ir: "neg", operands: single, takes: number, makes: number, prefix: "-", builder: "E.neg"},
	{ir: "coalesce", operands: pair, takes: number, makes: number, nulls: true, function: "coalesce", builder: "E.coalesce"},
	{ir: "cmp", cmp: "==", operands: pair, takes: number, makes: predicate, nulls: true, infix: "=="},
	{ir: "cmp", cmp: "!=", operands: pair, takes: number, makes: predicate, nulls: true, infix: "!="},
	{ir: "cmp", cmp: "<", operands: pair, takes: number, makes: predicate, infix: "<"},
	{ir: "cmp", cmp: "<=", operands: pair, takes: number, makes: predicate, infix: "<="},
	{ir: "cmp", cmp: ">", operands: pair, takes: number, makes: predicate, infix: ">"},
	{ir: "cmp", cmp: ">=", operands: pair, takes: number, makes: predicate, infix: ">="},
	{ir: "and", operands: pair, takes: predicate, makes: predicate, infix: "&&", builder: "Pred.and"},
	{ir: "or", operands: pair, takes: predicate, makes: predicate, infix: "||", builder: "Pred.or"},
	{ir: "not", operands: single, takes: predicate, makes: predicate, prefix: "!", builder: "Pred.not"},
}

// foreign are the operators and functions of JavaScript that have no counterpart, each with the
// nearest thing to write. An operator that enters the table above counts from there.
var foreign = map[string]string{
	"/":       "multiply by the inverse: x * 0.5 for x / 2",
	"%":       "there is none; a task written in Go can compute it",
	"**":      "write the product: x * x",
	"??":      "write coalesce(x, y)",
	"?:":      "combine predicates with && and ||, or filter twice and concat",
	"in":      "write x.in([1, 2])",
	"&":       "write && between predicates",
	"|":       "write || between predicates",
	"^":       "write (a || b) && !(a && b)",
	"<<":      "write x * 2 for x << 1",
	">>":      "multiply by the inverse: x * 0.5",
	">>>":     "multiply by the inverse: x * 0.5",
	"~":       "write ! before a predicate, - before a number",
	"++":      "write x + 1",
	"--":      "write x - 1",
	"unary +": "leave it out: expressions are numbers already",

	"Math.max":   "filter with x >= y, and concat the two branches",
	"Math.min":   "filter with x <= y, and concat the two branches",
	"Math.abs":   "x * x orders rows as |x| does",
	"Math.pow":   "write the product: x * x",
	"Math.round": "the language computes with fractions: compare with x >= 0.5",
	"Math.floor": "the language computes with fractions: compare with x >= 1",
	"Math.ceil":  "the language computes with fractions: compare with x > 0",
	"Math.trunc": "the language computes with fractions: compare with x >= 1",
	"Math.sign":  "compare with 0: x > 0",
}

// find returns the operator for which match is true, or nil.
func find(match func(*operator) bool) *operator {
	for i := range operators {
		if match(&operators[i]) {
			return &operators[i]
		}
	}
	return nil
}

// infixOperator returns the operator that is written so between two operands, or nil. The strict
// equalities of JavaScript are the plain ones.
func infixOperator(written string) *operator {
	switch written {
	case "===":
		written = "=="
	case "!==":
		written = "!="
	}
	return find(func(o *operator) bool { return o.infix == written })
}

func prefixOperator(written string) *operator {
	return find(func(o *operator) bool { return o.prefix == written })
}

func functionOperator(name string) *operator {
	return find(func(o *operator) bool { return o.function == name })
}

func comparison(cmp string) *operator {
	return find(func(o *operator) bool { return o.cmp == cmp && cmp != "" })
}
