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

// String returns the kind as one reads it in an error: "null", "integer", ...
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Uint, Int:
		return "integer"
	case Float:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return "unknown kind"
}

// Value is one JSON value. Immutable once built; any goroutine.
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

// SyntaxError says what is wrong with a document, and where. Immutable once
// built; any goroutine.
type SyntaxError struct {
	Offset int64 // in bytes from the start of the document, byte order mark included
	Msg    string
}
