package builtin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// A documentPath is a place in a JSON document on the way to values that become columns. Immutable once built; any goroutine.
type documentPath struct {
	columns []int                    // that have the value at this place
	next    map[string]*documentPath // by the name of a member, or the index of an element in decimal
}

// newDocumentPaths returns the root of the places that the fields of these keys name.
func newDocumentPaths(keys []*registry.Key) (*documentPath, error) {
	root := new(documentPath)
	for i, key := range keys {
		names, err := pointerNames(key.Field)
		if err != nil {
			return nil, plan.ParamErrorf(plan.ItemPath("fields", i), "key %s: %v", key.Name, err)
		}
		at := root
		for _, name := range names {
			if at.next == nil {
				at.next = make(map[string]*documentPath)
			}
			if at.next[name] == nil {
				at.next[name] = new(documentPath)
			}
			at = at.next[name]
		}
		at.columns = append(at.columns, i)
	}
	return root, root.check(keys)
}

// check refuses a value inside another one.
func (p *documentPath) check(keys []*registry.Key) error {
	if len(p.columns) > 0 && p.next != nil {
		return plan.ParamErrorf(plan.ItemPath("fields", p.columns[0]), "key %s has an object or an array for its value: another key is inside it", keys[p.columns[0]].Name)
	}
	for _, next := range p.next {
		if err := next.check(keys); err != nil {
			return err
		}
	}
	return nil
}

// pointerNames returns the names on the way that a field states: a JSON pointer (RFC 6901), or else the name of a member.
func pointerNames(field string) ([]string, error) {
	if !strings.HasPrefix(field, "/") {
		return []string{field}, nil
	}
	names := strings.Split(field[1:], "/")
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, fmt.Errorf("the JSON pointer %s has a single ~; write ~0", task.Quote(field))
		}
		names[i] = strings.NewReplacer("~0", "~", "~1", "/").Replace(name)
	}
	return names, nil
}

// documentReader finds the values at the places of a documentPath. Only the body uses it.
type documentReader struct {
	jsondoc.Reader
	text   []byte
	values [][]byte // by column, as the document has them; nil: it has none
}

// read reads a document. The values are views of text. What is wrong inside of one value costs no other one: see
// jsondoc.NewLenientReader. Of a name that stands twice the last value counts.
func (r *documentReader) read(text []byte, paths *documentPath) error {
	clear(r.values)
	r.text = jsondoc.WithoutMark(text)
	if r.Decoder == nil {
		r.Reader = jsondoc.NewLenientReader(text, r)
	} else {
		r.Begin(text)
	}
	if err := r.take(paths); err != nil {
		return err
	}
	if !r.AtEnd() {
		return errTrailing
	}
	return nil
}

var errTrailing = errors.New("something follows the JSON document")

// take reads the next value, which is at that place; nil: of no interest.
func (r *documentReader) take(at *documentPath) error {
	switch kind := r.PeekKind(); {
	case at == nil:
		return r.Skip()
	case len(at.columns) > 0:
		value, err := r.ReadValue()
		if err != nil {
			return err
		}
		end := int(r.InputOffset())
		for _, column := range at.columns {
			r.values[column] = r.text[end-len(value) : end]
		}
		return nil
	case kind == jsontext.KindBeginObject:
		return r.Object("", func(name string) error {
			r.forget(at.next[name])
			return r.take(at.next[name])
		})
	case kind == jsontext.KindBeginArray:
		return r.Array("", func(i int) error { return r.take(at.next[strconv.Itoa(i)]) })
	}
	return r.Skip()
}

// forget drops the values at a place and inside of it.
func (r *documentReader) forget(at *documentPath) {
	if at == nil {
		return
	}
	for _, column := range at.columns {
		r.values[column] = nil
	}
	for _, next := range at.next {
		r.forget(next)
	}
}

// Syntax implements jsondoc.Faults.
func (*documentReader) Syntax(err error) error { return err }

// Wrong implements jsondoc.Faults. Any valid document is accepted.
func (*documentReader) Wrong(_, want string) error { return errors.New("is not " + want) }
