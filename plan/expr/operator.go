package expr

import (
	"slices"
	"time"
)

// Type is the type of a value.
type Type uint8

// The types of values. Each but Predicate has nulls.
const (
	Null      Type = iota + 1 // the literal null, which has any type
	Number                    // a double
	Int                       // an integer of 64 bits: a key, a parameter or a constant
	String                    // a string
	Ints                      // a list of integers: a parameter
	Strings                   // strings: a key of type string_set, or a parameter with a list
	Predicate                 // true or false
	Vector                    // a vector: a key
)

// String returns the type as errors name it.
func (t Type) String() string {
	return [...]string{"nothing", "null", "a number", "an integer", "a string", "a list of integers", "a set of strings", "a predicate", "a vector"}[t]
}

// isNumber reports whether arithmetic takes values of this type.
func (t Type) isNumber() bool { return t == Number || t == Int || t == Null }

// Takes says which values an operand may have.
type Takes uint8

// The operands.
const (
	TakesNumber    Takes = iota + 1 // numbers and integers, which become doubles
	TakesNullable                   // the same or strings, and plans may write null
	TakesPredicate                  // predicates
	TakesEqual                      // two numbers, two integers (exactly) or two strings
	TakesOrdered                    // two numbers or two integers (exactly)
	TakesAny                        // values of each type
	TakesElement                    // a number, an integer or a string that the set may have
	TakesSet                        // a set of strings or a list
	TakesText                       // a string
	TakesValue                      // a number, a string or a predicate: the values of whole expressions
	TakesVector                     // a vector, as long as the operator's other one
)

// An Operand is a part of an operator that is a tree itself. Immutable; any goroutine.
type Operand struct {
	Member string // of the object in artifacts: "a"
	Takes  Takes
}

// A Member is a part of an operator that is not a tree. Immutable; any goroutine.
type Member struct {
	Name     string
	Type     string // of JSON: "number", "integer", "string", "boolean", "array", "object"
	Values   []string
	Optional bool
	Doc      string
}

// An Operator is one operation of expressions or predicates: one line of the table that the parser, the
// compiler of plans, the reference and the tests share. Immutable; any goroutine.
type Operator struct {
	Name     string    // op in artifacts; the table has cmp once for each comparison
	Cmp      string    // of cmp: the comparison
	Operands []Operand // in order
	Members  []Member  // besides op and the operands
	Makes    Type      // Number, String or Predicate; of key_ref and param_ref Number, though the registry decides
	Typed    bool      // an artifact needs Capability for it

	Group string // heading in the reference
	// For the reference, each a sentence or more. NonFinite is empty if the result is always finite.
	Doc, Null, NonFinite string
	Example              string // in TypeScript

	// How plans in TypeScript write it: between its operands, before one, as a function, as a method of
	// the operand with the number Self, or as a member of the builders E and Pred. Empty: not so.
	Infix, Prefix, Function, Method, Builder string
	// Variadic: a function, or a builder, takes further operands. f(a, b, c) is f(f(a, b), c).
	Variadic bool

	code    opcode                           // of an operator with a row function opCompute
	row     func(a, b, c float64) float64    // the value for one row whose operands are not null; nil: it needs more than numbers
	kernel  kernel                           // the same for a chunk; missing functions are made from row
	texts   func(s, part string) bool        // of a predicate of two strings, with opTexts: the value for two that are not null
	four    func(a, b, c, d float64) float64 // row, of an operator of four operands
	clock   func(time.Time) int              // of an operator with opClock: the value at a time in its zone
	vectors func(x, y []float32) float64     // of an operator with opVectors: the value for one vector or two, not null
	draw    func(uint64) float64             // of an operator with opHash: the value of a rowset.HashInt
}

// A kernel computes an operator for a chunk. All slices of a call have equal length, and dst may be one
// of the operands. Without a function for scalars the evaluator fills a register with the scalar first.
type kernel struct {
	one     func(dst, x []float64)            // of one operand
	two     func(dst, x, y []float64)         // of two
	scalar  func(dst, x []float64, c float64) // of two, the second a scalar
	before  func(dst []float64, c float64, y []float64)
	three   func(dst, x, y, z []float64)         // of three
	scalars func(dst, x []float64, b, c float64) // of three, the second and the third scalars
	four    func(dst, x, y, z, w []float64)      // of four
}

// withKernels returns the table, with a kernel for each row function. One that is written out is faster, since it
// calls no function for each row.
func withKernels(table []Operator) []Operator {
	for i := range table {
		row, four, k := table[i].row, table[i].four, &table[i].kernel
		switch n := len(table[i].Operands); {
		case four != nil:
			k.four = func(dst, x, y, z, w []float64) {
				for i, v := range x {
					dst[i] = four(v, y[i], z[i], w[i])
				}
			}
		case row == nil:
		case n == 1 && k.one == nil:
			k.one = func(dst, x []float64) {
				for i, v := range x {
					dst[i] = row(v, 0, 0)
				}
			}
		case n == 2 && k.two == nil:
			k.two = func(dst, x, y []float64) {
				for i, v := range x {
					dst[i] = row(v, y[i], 0)
				}
			}
		case n == 3 && k.three == nil:
			k.three = func(dst, x, y, z []float64) {
				for i, v := range x {
					dst[i] = row(v, y[i], z[i])
				}
			}
		}
	}
	return table
}

// Operators returns the table, in the order of the reference. Callers must not change it.
func Operators() []Operator { return operators }

// operatorNamed returns the operator of that name, or nil. For cmp it returns the first.
func operatorNamed(name string) *Operator { return byName[name] }

// comparison returns the operator of a comparison, or nil.
func comparison(cmp string) *Operator {
	if i := slices.IndexFunc(operators, func(o Operator) bool { return o.Cmp == cmp }); i >= 0 && cmp != "" {
		return &operators[i]
	}
	return nil
}

var byName = func() map[string]*Operator {
	names := make(map[string]*Operator, len(operators))
	for i := range operators {
		if o := &operators[i]; names[o.Name] == nil {
			names[o.Name] = o
		}
	}
	return names
}()
