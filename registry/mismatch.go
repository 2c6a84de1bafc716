package registry

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// The decoder's words for a value of the wrong type. They quote the Go type it was to
// be decoded into, which is nothing for whoever wrote the table.
var (
	wrongValue = regexp.MustCompile(`^cannot decode TOML (.+?) into `)
	wrongTable = regexp.MustCompile(`^cannot store an? (.+?) in `)
	wrongField = regexp.MustCompile(`\.(\w+) of type [^.]+$`)
)

// describe returns the text of err, which is about decoding into rows, a pointer to
// the struct that a table is read into. Of a value of the wrong type it says the field, what
// it has to be and what it is: "key.id must be an integer, not a string".
func describe(err *toml.DecodeError, rows any) string {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	given := wrongValue.FindStringSubmatch(text)
	if given == nil {
		given = wrongTable.FindStringSubmatch(text)
	}
	if given == nil {
		return text
	}
	path, field := err.Key(), reflect.StructField{Type: reflect.TypeOf(rows)}
	for _, name := range path {
		field = fieldOf(field.Type, func(f reflect.StructField) bool { return tomlName(f) == name })
	}
	// Inside an inline table the key is that of the table; the text knows the field.
	if inner := wrongField.FindStringSubmatch(text); inner != nil && inner[1] != field.Name {
		if f := fieldOf(field.Type, func(f reflect.StructField) bool { return f.Name == inner[1] }); f.Type != nil {
			path, field = append(path, tomlName(f)), f
		}
	}
	if field.Type == nil {
		return text
	}
	return strings.Join(path, ".") + " must be " + typeWords(field.Type) + ", not " + article(given[1])
}

// fieldOf returns the first field that suits of the struct that t is, points to or is a
// slice of; the zero field if there is none.
func fieldOf(t reflect.Type, suits func(reflect.StructField) bool) reflect.StructField {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	if t != nil && t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if f := t.Field(i); suits(f) {
				return f
			}
		}
	}
	return reflect.StructField{}
}

func tomlName(f reflect.StructField) string { return f.Tag.Get("toml") }

// typeWords says which values of TOML t takes.
func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeWords(t.Elem())
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array of tables"
	case reflect.Struct:
		return "a table"
	default:
		return "a " + t.Kind().String()
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
