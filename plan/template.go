package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
)

// Bounds of a key template.
const (
	templateBytesMax = 512
	templateMarksMax = 16
)

// The marks that name neither a field of the context nor a column.
const (
	markUser = "user"
	markRow  = "id"
)

// markColumn begins the name of a column, as in the source of a plan: Key.category.
const markColumn = "Key."

// KeyTemplate is the pattern of a Redis key: "inbox:{user}", "sim:{id}", "stat:{user}:{category}". Immutable once built; any
// goroutine.
type KeyTemplate struct {
	// Before, Row and After are the parts in order. Row begins and ends with a mark that the row fills in. A template
	// without such a mark is all in Before.
	Before, Row, After []TemplatePart
}

// TemplatePart is a piece of a KeyTemplate. Immutable; any goroutine.
type TemplatePart struct {
	Text   string          // if the other fields are zero
	User   bool            // {user}: the user of the request
	Param  *registry.Param // {name}: a field of the request's context
	Column *registry.Key   // {name}: a column of the row; {id}: its id
}

// PerRow reports whether the row fills in a mark, so that the template makes a key for each row.
func (t *KeyTemplate) PerRow() bool { return len(t.Row) > 0 }

// AllParts returns the parts in order.
func (t *KeyTemplate) AllParts() []TemplatePart { return slices.Concat(t.Before, t.Row, t.After) }

// Columns returns the keys of the columns that the marks name. The id is not among them.
func (t *KeyTemplate) Columns() (keys []registry.KeyID) {
	for _, part := range t.Row {
		if part.Column != nil && part.Column.ID != registry.IDKey {
			keys = append(keys, part.Column.ID)
		}
	}
	return keys
}

// isText reports whether a part is the same in all keys.
func (p *TemplatePart) isText() bool { return !p.User && p.Param == nil && p.Column == nil }

// Start returns the text with which all keys begin, whatever the request and the row.
func (t *KeyTemplate) Start() string {
	if len(t.Before) == 0 || !t.Before[0].isText() {
		return ""
	}
	return t.Before[0].Text
}

// Literal returns the texts before and after what the row fills in. ok is false if they have marks.
func (t *KeyTemplate) Literal() (before, after string, ok bool) {
	for _, side := range [...]struct {
		parts []TemplatePart
		text  *string
	}{{t.Before, &before}, {t.After, &after}} {
		for _, part := range side.parts {
			if !part.isText() {
				return "", "", false
			}
			*side.text = part.Text // adjacent texts are one part
		}
	}
	return before, after, true
}

// ParseKeyTemplate parses a template. A mark is {user}, {id}, a field of the request's context that is an int, a
// string or a bool, or, if columns is true, a column that is an int or a string. If a field and a column have the
// same name, {name} is the field, and {Key.name} is the column. Two braces stand for one. The error says what is
// wrong, in one line.
func ParseKeyTemplate(text string, reg *registry.Registry, columns bool) (*KeyTemplate, error) {
	return parseTemplate(text, reg, columns, templateBytesMax, registry.Int, registry.String, registry.Bool)
}

// ParseArgument parses an argument of a command: a template as of ParseKeyTemplate, of up to MaxTextBytes. Its marks may
// also be parameters that are floats. One that is a vector is the whole argument.
func ParseArgument(text string, reg *registry.Registry, columns bool) (*KeyTemplate, error) {
	t, err := parseTemplate(text, reg, columns, MaxTextBytes, registry.Int, registry.String, registry.Bool, registry.Float, registry.Vector)
	if err != nil {
		return nil, err
	}
	for _, part := range t.AllParts() {
		if part.Param != nil && part.Param.Type == registry.Vector && len(t.AllParts()) > 1 {
			return nil, fmt.Errorf("{%s} is a vector, which is an argument by itself", part.Param.Name)
		}
	}
	return t, nil
}

// parseTemplate parses a template of so many bytes at most whose marks may be parameters of these types.
func parseTemplate(text string, reg *registry.Registry, columns bool, most int, types ...registry.Type) (*KeyTemplate, error) {
	switch {
	case text == "":
		return nil, errors.New("must not be empty")
	case len(text) > most:
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), most)
	}
	var parts []TemplatePart
	first, last := -1, -1 // of the marks that the row fills in
	marks, ids := 0, 0
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, TemplatePart{Text: literal.String()})
			literal.Reset()
		}
	}
	for rest := text; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			literal.WriteString(rest)
			break
		}
		literal.WriteString(rest[:at])
		brace := rest[at]
		rest = rest[at+1:]
		if rest != "" && rest[0] == brace {
			literal.WriteByte(brace)
			rest = rest[1:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if brace == '}' || end < 0 {
			return nil, fmt.Errorf("%s has a single %c; write %c%c for a brace", errtext.Quote(text), brace, brace, brace)
		}
		name := rest[:end]
		rest = rest[end+1:]
		flush()
		if marks++; marks > templateMarksMax {
			return nil, fmt.Errorf("has more than %d marks", templateMarksMax)
		}
		part, err := templateMark(name, reg, columns, types)
		if err != nil {
			return nil, err
		}
		if part.Column != nil {
			if last = len(parts); first < 0 {
				first = last
			}
			if part.Column.ID == registry.IDKey {
				ids++
			}
		}
		parts = append(parts, part)
	}
	flush()
	switch {
	case ids > 1:
		return nil, fmt.Errorf("%s has {id} twice", errtext.Quote(text))
	case first < 0:
		return &KeyTemplate{Before: parts}, nil
	}
	return &KeyTemplate{Before: parts[:first:first], Row: parts[first : last+1 : last+1], After: parts[last+1:]}, nil
}

// templateMark returns the part for a mark.
func templateMark(name string, reg *registry.Registry, columns bool, types []registry.Type) (TemplatePart, error) {
	switch name {
	case markUser:
		return TemplatePart{User: true}, nil
	case markRow:
		id, _ := reg.Key(registry.IDKey)
		return TemplatePart{Column: id}, nil
	}
	if param, ok := reg.ParamByName(name); ok {
		if slices.Contains(types, param.Type) {
			return TemplatePart{Param: param}, nil
		}
		return TemplatePart{}, fmt.Errorf("{%s} has type %s; a key takes an int, a string or a bool", name, param.Type)
	}
	if key, ok := reg.KeyByName(strings.TrimPrefix(name, markColumn)); ok {
		switch {
		case !columns:
			return TemplatePart{}, fmt.Errorf("{%s} is a column, and this key takes none", errtext.Text(name))
		case key.Type == registry.Int, key.Type == registry.String:
			return TemplatePart{Column: key}, nil
		}
		return TemplatePart{}, fmt.Errorf("{%s} is a column of type %s; a key takes an int or a string", errtext.Text(name), key.Type)
	}
	names := []string{markUser, markRow}
	for _, p := range reg.Params() {
		names = append(names, p.Name)
	}
	what := " nor a field of the context"
	if columns {
		what = ", a field of the context nor a column"
		for _, key := range reg.Keys() {
			names = append(names, key.Name, markColumn+key.Name)
		}
	}
	if near, ok := errtext.NearestLike(name, names); ok {
		what += "; did you mean {" + near + "}?"
	}
	return TemplatePart{}, fmt.Errorf("{%s} is neither {user}, {id}%s", errtext.Text(name), what)
}
