package jsondoc

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Faults says what a Reader's document must be, in the words of its format. One goroutine at a time.
type Faults interface {
	// Syntax translates an error of the tokenizer. It returns nil for nil.
	Syntax(err error) error
	// Wrong returns the error for the value at path that Reader would read next: it is not what is wanted there, or not JSON.
	Wrong(path, want string) error
}

// A Reader pulls values out of one document, for documents too large for a tree. A type of document embeds it. It
// passes over a byte order mark. One goroutine at a time.
type Reader struct {
	*jsontext.Decoder
	faults  Faults
	options []jsontext.Options
}

// NewReader returns a reader of text, which must not change while it is read. It is strict: no name may come twice in
// an object, and strings are UTF-8.
func NewReader(text []byte, faults Faults) Reader { return newReader(text, faults) }

// NewLenientReader is NewReader for documents of which as much as possible counts: a name may come twice, and its last
// value counts if member sees to that; a string may hold what is no text, such as half of a pair of surrogates.
func NewLenientReader(text []byte, faults Faults) Reader {
	return newReader(text, faults, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func newReader(text []byte, faults Faults, options ...jsontext.Options) Reader {
	return Reader{jsontext.NewDecoder(bytes.NewBuffer(WithoutMark(text)), options...), faults, options}
}

// Begin goes on with another document, in the way in which the Reader was made.
func (r *Reader) Begin(text []byte) {
	r.Decoder.Reset(bytes.NewBuffer(WithoutMark(text)), r.options...)
}

// WithoutMark returns text without the byte order mark that it may begin with. Offsets of a Reader count from there.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(byteOrderMark)) }

// Object reads an object and calls member for each name. member reads or skips the value.
func (r *Reader) Object(path string, member func(name string) error) error {
	if r.PeekKind() != jsontext.KindBeginObject {
		return r.faults.Wrong(path, "an object")
	}
	if _, err := r.ReadToken(); err != nil {
		return r.faults.Syntax(err)
	}
	for r.PeekKind() != jsontext.KindEndObject {
		name, err := r.ReadToken()
		if err != nil {
			return r.faults.Syntax(err)
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return r.faults.Syntax(err)
}

// Array reads an array and calls item for each element, which reads it.
func (r *Reader) Array(path string, item func(i int) error) error {
	if r.PeekKind() != jsontext.KindBeginArray {
		return r.faults.Wrong(path, "an array")
	}
	if _, err := r.ReadToken(); err != nil {
		return r.faults.Syntax(err)
	}
	for i := 0; r.PeekKind() != jsontext.KindEndArray; i++ {
		if err := item(i); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return r.faults.Syntax(err)
}

// Values reads an array and hands over each element as it is written, valid during the call.
func (r *Reader) Values(path string, take func(i int, value jsontext.Value) error) error {
	return r.Array(path, func(i int) error {
		value, err := r.ReadValue()
		if err != nil {
			return r.faults.Syntax(err)
		}
		return take(i, value)
	})
}

// Skip skips one value.
func (r *Reader) Skip() error { return r.faults.Syntax(r.SkipValue()) }

// AtEnd reports whether nothing but blanks follows.
func (r *Reader) AtEnd() bool {
	_, err := r.ReadToken()
	return err == io.EOF
}
