package jsondoc

import (
	"math"
	"strconv"
	"strings"
)

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of JSON value. The literal of a number decides its kind: Uint is an
// integer without sign that fits uint64. Int is an integer with a minus sign (-0
// too) that fits int64. Float is any other number that fits a double.
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

// Value is one JSON value. Immutable once built; any goroutine.
type Value struct {
	Kind    Kind
	Bool    bool
	Uint    uint64   // if Kind is Uint
	Int     int64    // if Kind is Int
	Float   float64  // if Kind is Float, Uint or Int: the value as a double
	Whole   bool     // if Kind is Float: Whole says so of the literal
	Str     string   // if Kind is String
	Items   []Value  // if Kind is Array
	Members []Member // if Kind is Object, in order of appearance, duplicates kept
	Offset  int      // byte offset in the document
}

// Member is one name-value pair of an object. Immutable once built; any goroutine.
type Member struct {
	Name  string
	Value Value
}

// Get returns the value of the last member with that name. It returns nil if there
// is none, if v is not an object, or if v is nil.
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

// Whole reports whether a number is an integer below 2^53 although its literal has a point or an exponent, as 5.0 and 5e3 have. The
// digits decide, not the double nearest to them: 1.000000000000000005 and 9007199254740993.0 are none.
func Whole[T string | []byte](literal T, value float64) bool {
	exponent, fraction, zeros, points, zero := 0, 0, 0, false, true
	for i := 0; i < len(literal); i++ {
		switch c := literal[i]; {
		case c == 'e' || c == 'E':
			var err error
			if exponent, err = strconv.Atoi(string(literal[i+1:])); err != nil {
				return zero
			}
			i = len(literal)
		case c == '.':
			points = true
		case '0' <= c && c <= '9':
			if zeros++; c != '0' {
				zeros, zero = 0, false
			}
			if points {
				fraction++
			}
		}
	}
	return math.Abs(value) < 1<<53 && (zero || exponent+zeros >= fraction)
}

// IsNumber reports whether v is a number of any kind.
func (v *Value) IsNumber() bool { return v.Kind == Uint || v.Kind == Int || v.Kind == Float }

// quoteMax is the longest string that Describe quotes, in bytes.
const quoteMax = 40

// Describe says what v is, for an error that expected something else: "an array",
// "the integer 5", "the number 1.0", "true". It quotes short strings only. Nil, as
// returned by Get, is "nothing".
func (v *Value) Describe() string {
	if v == nil {
		return "nothing"
	}
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return strconv.FormatBool(v.Bool)
	case Uint:
		return "the integer " + strconv.FormatUint(v.Uint, 10)
	case Int:
		return "the integer " + strconv.FormatInt(v.Int, 10)
	case Float:
		format := byte('g')
		if size := math.Abs(v.Float); 1e-4 <= size && size < 1e15 {
			format = 'f'
		}
		text := strconv.FormatFloat(v.Float, format, -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0" // or it would look like an integer literal
		}
		return "the number " + text
	case String:
		if len(v.Str) <= quoteMax {
			return strconv.Quote(v.Str)
		}
		return "a string"
	case Array:
		return "an array"
	default:
		return "an object"
	}
}

// SyntaxError says what is wrong with a document, and where. Immutable once
// built; any goroutine.
type SyntaxError struct {
	Offset int64 // bytes from the start of the document, byte order mark included
	Msg    string
}
