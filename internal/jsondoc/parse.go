package jsondoc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxDepth bounds how deep arrays and objects nest. Readers of the tree may
	// recurse, so MaxDepth also bounds their stacks. Plans nest up to some hundred
	// levels. The tokenizer's own bound is 10,000; a lower one keeps the error ours.
	MaxDepth = 8192

	// MaxValues bounds the values of one document, without names. A value takes about
	// 100 bytes in the tree but may take 2 in the document ("0,"), so without a bound a
	// document of 16 MiB would fill a gigabyte.
	MaxValues = 1 << 20
)

// byteOrderMark may precede a document.
const byteOrderMark = "\ufeff"

// Parse reads exactly one document. Only white space may surround it, and a byte order
// mark may precede it. The error is a *SyntaxError. Any goroutine.
//
// The tree shares no memory with doc, so the caller may reuse doc at once.
func Parse(doc []byte) (Value, error) { return new(Parser).Parse(doc) }

// A Parser is Parse with memory that it uses again: some 2 KB. The zero value is ready. One goroutine at a time.
type Parser struct {
	dec  *jsontext.Decoder // nil before the first document
	body bytes.Buffer      // what dec reads
	text string            // the document; strings without escapes are parts of it
	base int               // offset of the decoder's first byte in text

	left, maxValues int // left of the maxValues values may still begin
	// pending is a stack of the children of the open containers. A container pops its own
	// at its end, so that it gets one slice of exact length. Children of arrays have no
	// name.
	pending []Member
	room    [8]Member // pending starts here; a request seldom needs more
}

// Parse reads one document, as the function does.
func (p *Parser) Parse(doc []byte) (Value, error) { return p.parse(doc, MaxValues) }

func (p *Parser) parse(doc []byte, maxValues int) (Value, error) {
	defer p.release()
	p.text, p.left, p.maxValues = string(doc), maxValues, maxValues
	p.pending = p.room[:0]
	body := WithoutMark(doc)
	p.base = len(doc) - len(body)
	// The decoder reads the bytes of a bytes.Buffer in place.
	p.body = *bytes.NewBuffer(body)
	p.decode()

	root, err := p.value(0)
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return Value{}, err
	}
	return root, nil
}

// decode has the decoder begin at the start of body.
func (p *Parser) decode() {
	if p.dec == nil {
		p.dec = jsontext.NewDecoder(&p.body, jsontext.AllowDuplicateNames(true))
	} else {
		p.dec.Reset(&p.body, jsontext.AllowDuplicateNames(true))
	}
}

// release lets go of the document and of what the tree holds.
func (p *Parser) release() {
	clear(p.room[:])
	p.text, p.pending, p.body = "", nil, bytes.Buffer{}
	p.decode()
}

// value reads the next value. depth counts the containers around it. Filling a pointer
// instead of returning the value would move each value to the heap.
func (p *Parser) value(depth int) (Value, error) {
	switch p.dec.PeekKind() {
	case jsontext.KindBeginArray:
		return p.array(depth + 1)
	case jsontext.KindBeginObject:
		return p.object(depth + 1)
	}
	offset, raw, err := p.scalar()
	if err != nil {
		return Value{}, err
	}
	if err := p.admit(offset); err != nil {
		return Value{}, err
	}
	switch raw[0] {
	case 'n':
		return Value{Kind: Null, Offset: offset}, nil
	case 't', 'f':
		return Value{Kind: Bool, Bool: raw[0] == 't', Offset: offset}, nil
	case '"':
		text, err := unquote(raw)
		return Value{Kind: String, Str: text, Offset: offset}, err
	default:
		return p.number(offset, raw)
	}
}

func (p *Parser) array(depth int) (Value, error) {
	offset, err := p.open(depth)
	if err != nil {
		return Value{}, err
	}
	mark := len(p.pending)
	for p.dec.PeekKind() != jsontext.KindEndArray {
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.pending = append(p.pending, Member{Value: item})
	}
	items := make([]Value, len(p.pending)-mark)
	for i := range items {
		items[i] = p.pending[mark+i].Value
	}
	p.pending = p.pending[:mark]
	return Value{Kind: Array, Items: items, Offset: offset}, p.delimiter()
}

func (p *Parser) object(depth int) (Value, error) {
	offset, err := p.open(depth)
	if err != nil {
		return Value{}, err
	}
	mark := len(p.pending)
	for p.dec.PeekKind() != jsontext.KindEndObject {
		_, raw, err := p.scalar()
		if err != nil {
			return Value{}, err
		}
		name, err := unquote(raw)
		if err != nil {
			return Value{}, err
		}
		value, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.pending = append(p.pending, Member{name, value})
	}
	members := make([]Member, len(p.pending)-mark)
	copy(members, p.pending[mark:])
	p.pending = p.pending[:mark]
	return Value{Kind: Object, Members: members, Offset: offset}, p.delimiter()
}

// open reads the bracket that begins a container and returns its offset.
func (p *Parser) open(depth int) (int, error) {
	if err := p.delimiter(); err != nil {
		return 0, err
	}
	offset := p.offset() - 1
	if depth > MaxDepth {
		return 0, p.fail(offset, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
	}
	return offset, p.admit(offset)
}

// admit counts the value at offset.
func (p *Parser) admit(offset int) error {
	if p.left--; p.left < 0 {
		return p.fail(offset, fmt.Sprintf("more than %d values", p.maxValues))
	}
	return nil
}

// delimiter reads one of []{}.
func (p *Parser) delimiter() error {
	if _, err := p.dec.ReadToken(); err != nil {
		return p.syntaxError(err)
	}
	return nil
}

// scalar reads a string (a name, too), a number or a literal. It returns its offset and
// its text.
func (p *Parser) scalar() (int, string, error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return 0, "", p.syntaxError(err)
	}
	end := p.offset()
	offset := end - len(raw)
	return offset, p.text[offset:end], nil
}

// offset returns the offset of the first unread byte of text.
func (p *Parser) offset() int { return p.base + int(p.dec.InputOffset()) }

// unquote returns the string that a literal denotes.
func unquote(raw string) (string, error) {
	body := raw[1 : len(raw)-1]
	if !strings.Contains(body, `\`) {
		return body, nil
	}
	// This cannot fail, because the tokenizer has checked the escapes.
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(body)), raw)
	return string(b), err
}

// number returns the number of a literal. The tokenizer has checked its grammar.
func (p *Parser) number(offset int, raw string) (Value, error) {
	if !strings.ContainsAny(raw, ".eE") {
		if raw[0] == '-' {
			if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
				return Value{Kind: Int, Int: i, Float: float64(i), Offset: offset}, nil
			}
		} else if u, err := strconv.ParseUint(raw, 10, 64); err == nil {
			return Value{Kind: Uint, Uint: u, Float: float64(u), Offset: offset}, nil
		}
		// An integer beyond 64 bits becomes a Float.
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return Value{}, p.fail(offset, "number beyond the range of a double")
	}
	return Value{Kind: Float, Float: f, Whole: Whole(raw, f), Offset: offset}, nil
}

// end checks that only white space follows the document.
func (p *Parser) end() error {
	if tail := trimSpace(p.text[p.offset():]); tail != "" {
		return p.fail(len(p.text)-len(tail), "unexpected data after the document")
	}
	return nil
}

func (p *Parser) fail(offset int, msg string) error {
	return &SyntaxError{Offset: int64(offset), Msg: msg}
}
