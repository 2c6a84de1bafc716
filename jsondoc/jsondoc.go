// Package jsondoc reads one strict JSON document into a tree that keeps what
// the plan and request formats distinguish and encoding/json does not: integer
// literals from floats, signed from unsigned ones, case-sensitive names, and
// the byte offset of the first fault.
package jsondoc

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of JSON value. Numbers are told apart by their literal: Uint is an
// integer without sign that fits uint64, Int an integer with a minus sign
// (-0 too) that fits int64, Float everything else that fits a double.
const (
	Null Kind = iota
	Bool
	Uint
	Int
	Float
	String
	Array
	Object
)

// Value is one JSON value. Immutable once built.
type Value struct {
	Kind    Kind
	Bool    bool
	Uint    uint64  // if Kind is Uint
	Int     int64   // if Kind is Int
	Float   float64 // if Kind is Float, Uint or Int: the value as a double
	Str     string
	Items   []Value  // of an Array
	Members []Member // of an Object, in order of appearance, duplicates kept
	Offset  int      // byte offset in the document
}

// Member is one name-value pair of an object.
type Member struct {
	Name  string
	Value Value
}

// Get returns the last member with that name (duplicates: the last one
// counts), or nil if there is none or v is no object.
func (v *Value) Get(name string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	for i := len(v.Members) - 1; i >= 0; i-- {
		if v.Members[i].Name == name {
			return &v.Members[i].Value
		}
	}
	return nil
}

// IsNumber reports whether v is a number of any literal kind.
func (v *Value) IsNumber() bool { return v.Kind == Uint || v.Kind == Int || v.Kind == Float }

// Parse reads exactly one document, with nothing but white space around it
// (a leading byte order mark is tolerated). Errors are *SyntaxError.
func Parse(doc []byte) (Value, error) { panic("stub") }

// SyntaxError says what is wrong with a document, and where.
type SyntaxError struct {
	Offset int64 // in bytes from the start of the document
	Msg    string
}

// Error implements error.
func (e *SyntaxError) Error() string { return e.Msg }
