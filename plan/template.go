package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/registry"
)

// Bounds of a key template.
const (
	templateBytesMax = 512
	templateMarksMax = 16
)

// The names of marks that do not name a field of the context.
const (
	markUser = "user"
	markRow  = "id"
)

// KeyTemplate is the pattern of a Redis key: "inbox:{user}", "sim:{id}". Immutable once built; any
// goroutine.
type KeyTemplate struct {
	// Before and After are what stands before and after {id}. All of a template without {id} stands in
	// Before.
	Before, After []TemplatePart
	perRow        bool
}

// TemplatePart is a piece of a KeyTemplate. Immutable; any goroutine.
type TemplatePart struct {
	Text  string          // if Param is nil and User is false
	User  bool            // {user}: the user of the request
	Param *registry.Param // {name}: a field of the request's context
}

// PerRow reports whether the template has {id}, so that it makes a key for each row.
func (t *KeyTemplate) PerRow() bool { return t.perRow }

// Start returns the text with which all keys begin, whatever the request and the row.
func (t *KeyTemplate) Start() string {
	if len(t.Before) == 0 || t.Before[0].User || t.Before[0].Param != nil {
		return ""
	}
	return t.Before[0].Text
}

// Literal returns what stands before and after {id}, if no mark but {id} is in the template, so that its keys are the same
// for all requests.
func (t *KeyTemplate) Literal() (before, after string, ok bool) {
	for _, side := range [...]struct {
		parts []TemplatePart
		text  *string
	}{{t.Before, &before}, {t.After, &after}} {
		for _, part := range side.parts {
			if part.User || part.Param != nil {
				return "", "", false
			}
			*side.text = part.Text // neighbouring texts are one part
		}
	}
	return before, after, true
}

// ParseKeyTemplate parses a template. A mark is {user}, {id}, or a field of the request's context that
// is an int, a string or a bool. Two braces stand for one. The error says what is wrong, in one line.
func ParseKeyTemplate(text string, reg *registry.Registry) (*KeyTemplate, error) {
	switch {
	case text == "":
		return nil, errors.New("must not be empty")
	case len(text) > templateBytesMax:
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), templateBytesMax)
	}
	t := new(KeyTemplate)
	marks := 0
	var literal strings.Builder
	parts := &t.Before
	flush := func() {
		if literal.Len() > 0 {
			*parts = append(*parts, TemplatePart{Text: literal.String()})
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
			return nil, fmt.Errorf("%s has a single %c; write %c%c for a brace", excerpt.Quote(text), brace, brace, brace)
		}
		name := rest[:end]
		rest = rest[end+1:]
		flush()
		if marks++; marks > templateMarksMax {
			return nil, fmt.Errorf("has more than %d marks", templateMarksMax)
		}
		if name == markRow {
			if t.perRow {
				return nil, fmt.Errorf("%s has {id} twice", excerpt.Quote(text))
			}
			t.perRow = true
			parts = &t.After
			continue
		}
		part, err := templateMark(name, reg)
		if err != nil {
			return nil, err
		}
		*parts = append(*parts, part)
	}
	flush()
	return t, nil
}

// templateMark returns the part for a mark other than {id}.
func templateMark(name string, reg *registry.Registry) (TemplatePart, error) {
	if name == markUser {
		return TemplatePart{User: true}, nil
	}
	param, ok := reg.ParamByName(name)
	if !ok {
		fields := []string{markUser, markRow}
		for _, p := range reg.Params() {
			fields = append(fields, p.Name)
		}
		near, _ := nearest.Name(name, fields)
		return TemplatePart{}, fmt.Errorf("{%s} is neither {user}, {id} nor a field of the context; the nearest is {%s}", excerpt.Text(name), near)
	}
	switch param.Type {
	case registry.Int, registry.String, registry.Bool:
		return TemplatePart{Param: param}, nil
	}
	return TemplatePart{}, fmt.Errorf("{%s} has type %s; a key takes an int, a string or a bool", name, param.Type)
}
