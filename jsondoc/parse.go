package jsondoc

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxDepth bounds how deep arrays and objects nest. Readers of the tree may
	// recurse, so this also bounds their stacks. Plans nest up to some hundred
	// levels; encoding/json draws its line at 10,000 too.
	MaxDepth = 10_000

	// MaxValues bounds the values of one document, names not counted. A value
	// takes about 100 bytes in the tree but may take 2 in the document ("0,"), so
	// without a bound a document of 16 MiB would fill a gigabyte.
	MaxValues = 1 << 20
)

// byteOrderMark is tolerated before a document.
const byteOrderMark = "\ufeff"

// Parse reads exactly one document, with nothing but white space around it
// (a leading byte order mark is tolerated). Errors are *SyntaxError.
//
// The tree shares no memory with doc, which may be reused at once.
func Parse(doc []byte) (Value, error) {
	p := parser{text: string(doc)}
	body := bytes.TrimPrefix(doc, []byte(byteOrderMark))
	p.base = len(doc) - len(body)
	// Given a bytes.Buffer, the decoder reads its bytes in place.
	p.dec = jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))

	var root Value
	if err := p.value(&root, 0); err != nil {
		return Value{}, err
	}
	if err := p.end(); err != nil {
		return Value{}, err
	}
	return root, nil
}

// parser builds the tree of one document. The children of the containers that
// are open wait on two stacks, so that each container gets one exact slice.
type parser struct {
	dec  *jsontext.Decoder
	text string // the document; strings without escapes are cut out of it
	base int    // offset of the decoder's first byte in text

	count   int // values begun so far
	items   []Value
	members []Member
}

// value reads the next value into v. depth counts the containers around it.
func (p *parser) value(v *Value, depth int) error {
	switch p.dec.PeekKind() {
	case jsontext.KindBeginArray:
		return p.array(v, depth+1)
	case jsontext.KindBeginObject:
		return p.object(v, depth+1)
	}
	raw, err := p.scalar(v)
	if err != nil {
		return err
	}
	switch raw[0] {
	case 'n':
		v.Kind = Null
	case 't', 'f':
		v.Kind, v.Bool = Bool, raw[0] == 't'
	case '"':
		v.Kind = String
		v.Str, err = unquote(raw)
	default:
		err = p.number(v, raw)
	}
	return err
}

func (p *parser) array(v *Value, depth int) error {
	v.Kind = Array
	if err := p.open(v, depth); err != nil {
		return err
	}
	mark := len(p.items)
	for p.dec.PeekKind() != jsontext.KindEndArray {
		var item Value
		if err := p.value(&item, depth); err != nil {
			return err
		}
		p.items = append(p.items, item)
	}
	v.Items = slices.Clone(p.items[mark:])
	clear(p.items[mark:])
	p.items = p.items[:mark]
	return p.delimiter()
}

func (p *parser) object(v *Value, depth int) error {
	v.Kind = Object
	if err := p.open(v, depth); err != nil {
		return err
	}
	mark := len(p.members)
	for p.dec.PeekKind() != jsontext.KindEndObject {
		var member Member
		var err error
		if member.Name, err = p.name(); err != nil {
			return err
		}
		if err = p.value(&member.Value, depth); err != nil {
			return err
		}
		p.members = append(p.members, member)
	}
	v.Members = slices.Clone(p.members[mark:])
	clear(p.members[mark:])
	p.members = p.members[:mark]
	return p.delimiter()
}

// open reads the bracket that begins v.
func (p *parser) open(v *Value, depth int) error {
	if err := p.delimiter(); err != nil {
		return err
	}
	v.Offset = p.offset() - 1
	if depth > MaxDepth {
		return p.fail(v.Offset, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
	}
	return p.admit(v)
}

// admit counts v, whose offset is set.
func (p *parser) admit(v *Value) error {
	if p.count++; p.count > MaxValues {
		return p.fail(v.Offset, fmt.Sprintf("more than %d values", MaxValues))
	}
	return nil
}

// delimiter reads one of []{}.
func (p *parser) delimiter() error {
	if _, err := p.dec.ReadToken(); err != nil {
		return p.syntaxError(err)
	}
	return nil
}

// scalar reads the text of a string, a number or a literal, and sets v's offset.
func (p *parser) scalar(v *Value) (string, error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return "", p.syntaxError(err)
	}
	end := p.offset()
	v.Offset = end - len(raw)
	return p.text[v.Offset:end], p.admit(v)
}

// name reads the name of a member.
func (p *parser) name() (string, error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return "", p.syntaxError(err)
	}
	end := p.offset()
	return unquote(p.text[end-len(raw) : end])
}

// offset returns the offset of the first byte of text that is not read yet.
func (p *parser) offset() int { return p.base + int(p.dec.InputOffset()) }

// unquote returns the string that the literal raw denotes.
func unquote(raw string) (string, error) {
	body := raw[1 : len(raw)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return body, nil
	}
	// The tokenizer has checked the escapes: this cannot fail.
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(body)), raw)
	return string(b), err
}

// number sets v from the literal raw, whose grammar is checked already.
func (p *parser) number(v *Value, raw string) error {
	if strings.IndexAny(raw, ".eE") < 0 {
		if raw[0] == '-' {
			if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
				v.Kind, v.Int, v.Float = Int, i, float64(i)
				return nil
			}
		} else if u, err := strconv.ParseUint(raw, 10, 64); err == nil {
			v.Kind, v.Uint, v.Float = Uint, u, float64(u)
			return nil
		}
		// An integer beyond 64 bits is read like a float.
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return p.fail(v.Offset, "number beyond the range of a double")
	}
	v.Kind, v.Float = Float, f
	return nil
}

// end checks that only white space follows the document.
func (p *parser) end() error {
	if tail := trimSpace(p.text[p.offset():]); tail != "" {
		return p.fail(len(p.text)-len(tail), "unexpected data after the document")
	}
	return nil
}

func (p *parser) fail(offset int, msg string) error {
	return &SyntaxError{Offset: int64(offset), Msg: msg}
}
