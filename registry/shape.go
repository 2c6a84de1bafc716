package registry

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/rankd/rankd/internal/errtext"
)

// A shapeCheck compares the text of one table with the struct that it will be decoded into. It reports each field
// that the struct lacks and each value of another type than its field. It works on the syntax tree because the
// decoder stops at the first wrong value, and its errors name Go types. A field of type any takes every value; its
// reader checks it. One goroutine at a time.
type shapeCheck struct {
	parser unstable.Parser
	text   []byte
	report func(line int, format string, args ...any)

	// Keys are visited in the order of the text, so lines are counted as the check goes along.
	offset, line int // text[:offset] has line-1 line ends
}

// A place is a table or a value in the text, and the type that it is decoded into.
type place struct {
	path string       // "endpoint.policy"; "" is the root
	typ  reflect.Type // nil if there is nothing to compare with: the struct lacks the field, or its type is any
}

// checkShape reports why text cannot be decoded into rows, a pointer to a struct. It leaves two faults to the
// decoder: names that are defined twice, and integers beyond 64 bits.
func checkShape(text []byte, rows any, report func(line int, format string, args ...any)) {
	c := shapeCheck{text: text, report: report, line: 1}
	c.parser.Reset(text)
	root := place{typ: reflect.TypeOf(rows).Elem()}
	table := root // the table that key-value pairs belong to
	for c.parser.NextExpression() {
		switch e := c.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = c.header(root, e)
		default:
			c.keyValue(table, e)
		}
	}
	var malformed *unstable.ParserError
	if errors.As(c.parser.Error(), &malformed) {
		c.advance(int(c.parser.Range(malformed.Highlight).Offset))
		c.report(c.line, "%s", errtext.Text(malformed.Message))
	}
}

// header checks [a.b] or [[a.b]] and returns the table that it opens.
func (c *shapeCheck) header(root place, e *unstable.Node) place {
	p := c.field(root, e.Key())
	switch {
	case p.typ == nil:
	case p.typ.Kind() == reflect.Interface:
		return place{}
	case p.typ.Kind() == reflect.Map && e.Kind == unstable.Table:
	case e.Kind == unstable.Table && tableType(p.typ) == nil, e.Kind == unstable.ArrayTable && p.typ.Kind() != reflect.Slice:
		c.mismatch(p, e.Kind)
		return place{}
	}
	return p
}

// keyValue checks "a.b = value" in a table.
func (c *shapeCheck) keyValue(table place, e *unstable.Node) {
	if p := c.field(table, e.Key()); p.typ != nil {
		c.value(p, e.Value())
	}
}

// field follows a dotted key from a table. The place has no type after field has reported a fault, if the table
// itself was faulty, or within an any.
func (c *shapeCheck) field(table place, key unstable.Iterator) place {
	if table.typ == nil {
		return place{}
	}
	p := table
	for first := true; key.Next(); first = false {
		if p.typ != nil && p.typ.Kind() == reflect.Interface {
			return place{}
		}
		if first {
			c.advance(int(key.Node().Raw.Offset))
		}
		name := string(key.Node().Data)
		path := strings.TrimPrefix(p.path+"."+name, ".")
		if p.typ != nil && p.typ.Kind() == reflect.Map {
			p = place{path, p.typ.Elem()}
			continue
		}
		fields := tableType(p.typ)
		if fields == nil && p.typ != nil {
			c.mismatch(p, unstable.Table)
			return place{}
		}
		p = place{path, fieldType(fields, name)}
	}
	if p.typ == nil {
		c.report(c.line, "unknown field %s", errtext.Text(p.path))
	}
	return p
}

// value checks the value of the field at p.
func (c *shapeCheck) value(p place, v *unstable.Node) {
	items := v.Children()
	switch {
	case v.Kind == unstable.Array && p.typ.Kind() == reflect.Slice:
		for items.Next() {
			if item := items.Node(); item.Kind == unstable.InlineTable {
				c.value(place{p.path, p.typ.Elem()}, item)
			} else {
				c.mismatch(p, item.Kind)
			}
		}
	case v.Kind == unstable.String && isShorthand(p.typ):
	case v.Kind == unstable.InlineTable && (p.typ.Kind() == reflect.Struct || p.typ.Kind() == reflect.Map):
		for items.Next() {
			c.keyValue(p, items.Node())
		}
	case !takes(p.typ, v.Kind):
		c.mismatch(p, v.Kind)
	}
}

func (c *shapeCheck) mismatch(p place, given unstable.Kind) {
	if p.typ.Kind() == reflect.Map { // other maps are values
		c.report(c.line, "unknown field %s", errtext.Text(p.path))
		return
	}
	c.report(c.line, "%s must be %s, not %s", errtext.Text(p.path), typeWords(p.typ), kindWords(given))
}

// advance moves to an offset in the text that is not before the current one.
func (c *shapeCheck) advance(offset int) {
	c.line += bytes.Count(c.text[c.offset:offset], []byte("\n"))
	c.offset = offset
}

// tableType returns the struct that t is or is a slice of, or nil.
func tableType(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// fieldType returns the type of the struct's field of that name in TOML, or nil. Like the decoder
// it ignores case, and a pointer counts as what it points to. The field named * takes all other names.
func fieldType(fields reflect.Type, name string) reflect.Type {
	if fields == nil {
		return nil
	}
	var other reflect.Type
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Tag.Get("toml") {
		case strings.ToLower(name):
			if f.Type.Kind() == reflect.Pointer {
				return f.Type.Elem()
			}
			return f.Type
		case otherNames:
			other = f.Type
		}
	}
	return other
}

// takes reports whether a field of type t takes a value of that kind.
func takes(t reflect.Type, kind unstable.Kind) bool {
	switch t.Kind() {
	case reflect.Int64:
		return kind == unstable.Integer
	case reflect.Float64:
		return kind == unstable.Float || kind == unstable.Integer
	case reflect.Bool:
		return kind == unstable.Bool
	case reflect.String:
		return kind == unstable.String
	case reflect.Interface:
		return true
	}
	return false
}

// typeWords says which values of TOML t takes.
func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array of tables"
	default:
		if isShorthand(t) {
			return "the name of a type or a table"
		}
		return "a table"
	}
}

// kindWords says what a value of TOML is.
func kindWords(kind unstable.Kind) string {
	switch kind {
	case unstable.String:
		return "a string"
	case unstable.Bool:
		return "a boolean"
	case unstable.Float:
		return "a float"
	case unstable.Integer:
		return "an integer"
	case unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		return "a date or time"
	case unstable.Array:
		return "an array"
	case unstable.InlineTable:
		return "an inline table"
	case unstable.ArrayTable:
		return "an array table"
	default:
		return "a table"
	}
}
