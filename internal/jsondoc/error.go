package jsondoc

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Error implements error: one line, with the offset.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset) }

// syntaxError translates an error of the tokenizer. It keeps the offset. It replaces
// the words, because they may change and name parts of the library.
func (p *Parser) syntaxError(err error) error {
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		// Only io.EOF remains; reading memory cannot fail.
		return p.fail(len(p.text), "empty document")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return p.fail(len(p.text), "document ends too early")
	}
	offset := p.base + int(syn.ByteOffset)
	if p.endsName(offset) {
		// The tokenizer reports the colon, but the fault comes after it.
		offset = len(p.text) - len(trimSpace(p.text[offset+1:]))
	}
	return p.fail(offset, p.unexpected(offset))
}

// endsName reports whether the byte at offset is the colon between a name and its value.
func (p *Parser) endsName(offset int) bool {
	kind, length := p.dec.StackIndex(p.dec.StackDepth())
	return kind == jsontext.KindBeginObject && length%2 == 1 && strings.HasPrefix(p.text[offset:], ":") &&
		strings.HasSuffix(strings.TrimRight(p.text[:offset], whiteSpace), `"`)
}

// whiteSpace lists the bytes that JSON allows between tokens.
const whiteSpace = " \t\r\n"

// trimSpace returns s without the white space of JSON at its start.
func trimSpace(s string) string { return strings.TrimLeft(s, whiteSpace) }

// unexpected says what is wrong with the faulty byte at offset.
func (p *Parser) unexpected(offset int) string {
	if offset >= len(p.text) {
		return "document ends too early"
	}
	switch r, size := utf8.DecodeRuneInString(p.text[offset:]); {
	case r == utf8.RuneError && size == 1:
		return "invalid UTF-8"
	case r == '\\':
		return "invalid escape sequence"
	case r < ' ':
		return fmt.Sprintf("control character 0x%02x", r)
	default:
		return fmt.Sprintf("unexpected %q", r)
	}
}
