package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/rankd/rankd/internal/jsondoc"
)

// DefaultMaxBytes is the default bound of a document in a Stream: 16 MiB.
const DefaultMaxBytes = 16 << 20

// readBufferBytes is the size of one read: a pipe's capacity on Linux.
const readBufferBytes = 64 << 10

// A Stream cuts a byte stream into JSON documents. One goroutine at a time.
//
// Line ends separate documents. A document may span lines, and only white space may
// follow it on its last line. The stream skips blank lines between documents.
//
// The stream reports a fault of the grammar as an *Error and goes on with the line after the faulty byte, with one
// exception. If the faulty byte is a '{' that begins a later line of the document, the document was cut off on the
// line before. That '{' begins the next document, so a truncated line does not swallow the next one. (A document cut
// off where a value may follow does swallow it: the two are then one valid text.)
//
// Each line of a line stream (JSON Lines) is one document: a line end within a document
// is a fault, and no line affects another.
//
// The longest accepted document bounds the memory. Time is linear in the input, however
// it is split. Next returns a document as soon as its line has ended.
type Stream struct {
	r        io.Reader
	maxBytes int

	buf      []byte
	pos, end int    // Invariant: mark <= pos <= end <= len(buf); buf[pos:end] is unread
	mark     int    // first byte of buf that belongs to the document but is not in doc
	doc      []byte // earlier part of a document that did not fit into buf
	scan     jsondoc.Scanner
	line     int   // number of the line at pos, from 1
	begun    int   // number of the line on which the last returned document begins
	answered bool  // Next has returned a document or an error
	readErr  error // the end of the input: io.EOF or a failed read
}

// NewStream returns a stream over r. It refuses documents, and lines, longer than
// maxBytes. Zero means DefaultMaxBytes.
func NewStream(r io.Reader, maxBytes int) *Stream {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	maxBytes = min(maxBytes, math.MaxInt/2) // keeps sums from overflowing
	return &Stream{r: r, maxBytes: maxBytes, line: 1}
}

// NewLineStream returns a stream like NewStream's in which each line that is not
// blank is one document.
func NewLineStream(r io.Reader, maxBytes int) *Stream {
	s := NewStream(r, maxBytes)
	s.scan.OneLine = true
	return s
}

// Next returns the next document, which is valid until the following call. The document
// begins with the line of its first token, and offsets count from there.
//
// An *Error answers for a broken document; call Next again to go on. Input without any
// document gives one *Error. The error after the last document is io.EOF, or the error
// that ended reading.
func (s *Stream) Next() ([]byte, error) {
	doc, err := s.next()
	if err != nil {
		var refused *Error
		if !errors.As(err, &refused) {
			return nil, err
		}
	}
	s.answered = true
	return doc, err
}

// Line is Next for a caller that itself reads the input of a line stream and splits it into lines. text is the line
// of that number, with its line end if it has one. The error of a blank line is io.EOF. The document is valid as long
// as text.
func (s *Stream) Line(text []byte, number int) ([]byte, error) {
	answered := s.answered
	s.buf, s.end, s.readErr, s.line, s.answered = text, len(text), io.EOF, number, true
	s.begin(0)
	doc, err := s.Next()
	s.answered = answered || err != io.EOF
	return doc, err
}

// End returns the *Error for an input whose lines were all blank. Otherwise it returns nil.
func (s *Stream) End() error {
	if s.answered {
		return nil
	}
	return emptyInput()
}

// Locate adds the line of the input to the detail of err, a syntax error of Parse. doc is
// the document that Next returned last. Locate returns other errors as they are.
func (s *Stream) Locate(err error, doc []byte) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeInvalidJSON || refused.Offset < 0 {
		return err
	}
	located := *refused
	before := doc[:min(int(refused.Offset), len(doc))]
	located.Detail += fmt.Sprintf(", line %d of the input", s.begun+bytes.Count(before, []byte("\n")))
	return &located
}

// Locate returns the error that a stream reports for an input with only this document. err is the syntax error that
// Parse has returned. The error keeps its RequestID. Any goroutine.
func Locate(err *Error, input []byte) error {
	s := &Stream{maxBytes: len(input) + 1, buf: input, end: len(input), line: 1, readErr: io.EOF}
	doc, fault := s.Next()
	if fault == nil {
		return s.Locate(err, doc)
	}
	if refused := (*Error)(nil); errors.As(fault, &refused) {
		located := *refused
		located.RequestID = err.RequestID
		return &located
	}
	return err // The input is blank.
}

func (s *Stream) next() ([]byte, error) {
	s.begin(s.pos)
	for {
		if s.pos == s.end && !s.fill() {
			return s.finish()
		}
		// Scan one byte more than allowed, because only the next byte ends a number.
		stop := min(s.end, s.mark+s.maxBytes+1-len(s.doc))
		taken, ev := s.scan.Run(s.buf[s.pos:stop])
		s.pos += taken
		switch {
		case ev == jsondoc.ScanBlank:
			s.line++
			s.begin(s.pos)
		case ev == jsondoc.ScanFault:
			return nil, s.fault()
		case ev == jsondoc.ScanDone:
			return s.complete()
		case len(s.doc)+s.pos-s.mark > s.maxBytes:
			return nil, s.tooLarge()
		}
	}
}

// begin starts a document at index i of buf.
func (s *Stream) begin(i int) {
	s.scan.Reset()
	if cap(s.doc) > 1<<20 {
		s.doc = nil // free the memory of a rare giant
	}
	s.doc = s.doc[:0]
	s.mark, s.pos = i, i
}

// fill saves the document's bytes in buf and reads more. It returns false at the end of
// the input.
func (s *Stream) fill() bool {
	s.doc = append(s.doc, s.buf[s.mark:s.end]...)
	s.mark, s.pos, s.end = 0, 0, 0
	if s.readErr != nil {
		return false
	}
	if s.buf == nil {
		s.buf = make([]byte, readBufferBytes)
	}
	for range 100 {
		n, err := s.r.Read(s.buf)
		s.end = n
		s.readErr = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	s.readErr = io.ErrNoProgress
	return false
}

// complete returns the document that has just ended, if the rest of its line is blank.
func (s *Stream) complete() ([]byte, error) {
	size := len(s.doc) + s.pos - s.mark
	if size > s.maxBytes {
		return nil, s.tooLarge()
	}
	s.begun = s.line
	doc := s.buf[s.mark:s.pos]
	if len(s.doc) > 0 {
		s.doc = append(s.doc, doc...)
		doc = s.doc
	}
	line := s.line + s.scan.Lines
	for offset := size; ; offset++ {
		if s.pos == s.end {
			// Reading overwrites buf, so move the document out of it.
			if len(s.doc) == 0 {
				s.doc = append(s.doc, doc...)
				doc = s.doc
			}
			s.mark = s.end
			if !s.fill() {
				return doc, nil
			}
		}
		c := s.buf[s.pos]
		if c == '\n' {
			s.pos++
			s.line = line + 1
			return doc, nil
		}
		if !jsondoc.IsSpace(c) {
			s.skipLine(line)
			return nil, faultError(c, int64(offset), line, s.scan.Expected())
		}
		s.pos++
	}
}

// fault reports the byte at pos and moves to the place where the stream goes on.
func (s *Stream) fault() *Error {
	c, line := s.buf[s.pos], s.line+s.scan.Lines
	err := faultError(c, int64(s.scan.Bytes), line, s.scan.Expected())
	if c == '{' && s.scan.LineFresh {
		// The blanks before it may no longer be in buf, but they mean nothing.
		s.line = line
		return err
	}
	s.skipLine(line)
	return err
}

// finish returns the last document or the error for the end of the input.
func (s *Stream) finish() ([]byte, error) {
	end := s.readErr
	switch s.scan.Finish() {
	case jsondoc.ScanDone:
		s.begun = s.line
		return s.doc, nil
	case jsondoc.ScanFault:
		detail := "the input ends in the middle of a document"
		if end != io.EOF {
			detail = fmt.Sprintf("reading failed in the middle of a document: %v", end)
		}
		err := &Error{RequestID: NewID(), Code: CodeInvalidJSON, Offset: int64(s.scan.Bytes),
			Detail: fmt.Sprintf("%s, at byte offset %d of the document, line %d of the input; expected %s",
				detail, s.scan.Bytes, s.line+s.scan.Lines, s.scan.Expected())}
		s.begin(s.end)
		return nil, err
	}
	if !s.answered {
		if end != io.EOF {
			return nil, end
		}
		return nil, emptyInput()
	}
	return nil, end
}

func emptyInput() *Error {
	return &Error{RequestID: NewID(), Code: CodeInvalidJSON, Detail: "empty input", Offset: 0}
}

func (s *Stream) tooLarge() *Error {
	err := &Error{RequestID: NewID(), Code: CodeTooLarge, Offset: int64(s.maxBytes),
		Detail: fmt.Sprintf("the document that begins on line %d of the input is longer than %d bytes", s.line, s.maxBytes)}
	// The byte scanned beyond the limit may have been a line end.
	if s.pos > 0 && s.scan.LineStart == s.scan.Bytes && s.scan.Lines > 0 {
		s.line += s.scan.Lines
		return err
	}
	s.skipLine(s.line + s.scan.Lines)
	return err
}

// skipLine moves past the end of the line at pos. line is the number of that line.
func (s *Stream) skipLine(line int) {
	s.doc = s.doc[:0]
	s.line = line
	for {
		s.mark = s.end // nothing to save
		if i := bytes.IndexByte(s.buf[s.pos:s.end], '\n'); i >= 0 {
			s.pos += i + 1
			s.line++
			return
		}
		s.pos = s.end
		if !s.fill() {
			return
		}
	}
}

func faultError(c byte, offset int64, line int, expected string) *Error {
	what := fmt.Sprintf("%q", rune(c))
	switch {
	case c == '\n':
		what = "line end"
	case c >= 0x80:
		what = fmt.Sprintf("byte 0x%02x", c)
	}
	return &Error{RequestID: NewID(), Code: CodeInvalidJSON, Offset: offset,
		Detail: fmt.Sprintf("unexpected %s at byte offset %d of the document, line %d of the input; expected %s",
			what, offset, line, expected)}
}
