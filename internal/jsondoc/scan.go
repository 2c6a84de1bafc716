package jsondoc

import "fmt"

// A Scanner follows the grammar of one JSON document byte by byte, in any split, to
// find its end or its first fault. It checks structure, literals, numbers and escapes.
// Parse checks surrogate pairs, UTF-8 and the range of numbers; a document that fails
// there still ends where its brackets do.
//
// It knows the grammar, although brackets and strings alone would find where a sound document ends. A stream must
// report a broken document at its faulty byte, and go on after it. Brackets alone show no fault until they close,
// perhaps many documents later, and then everything after the fault would have to be read again.
//
// The zero Scanner is ready to use. One goroutine at a time.
type Scanner struct {
	OneLine bool // the document must not span lines

	state   scanState
	stack   []bool // open containers, outermost first; true is an object
	key     bool   // the string being read is a member name
	literal string // missing rest of true, false, null or a byte order mark
	hex     int    // missing hex digits of a \u escape

	Bytes     int  // scanned
	Lines     int  // line ends passed inside the document
	LineStart int  // offset of the first byte of the current line
	LineFresh bool // the current line is not the first, and only blanks are on it so far
}

// ScanDepthMax bounds nesting, so that a line of brackets cannot make the stack as
// large as the document. Real requests stay far below.
const ScanDepthMax = 10_000

type scanState uint8

const (
	atStart      scanState = iota // before the document
	atValue                       // a value must follow
	atValueOrEnd                  // a value or ']' (array just opened)
	atKeyOrEnd                    // a member name or '}' (object just opened)
	atKey                         // a member name
	atColon
	atCommaOrEnd // ',' or the end of the open container
	inString
	inEscape  // after '\'
	inHex     // within \uXXXX
	inLiteral // within true, false or null
	inMark    // within a byte order mark at the very start
	numMinus  // after '-'
	numZero   // after a leading 0
	numInt
	numDot // after '.', a digit must follow
	numFraction
	numExp     // after 'e', a sign or a digit must follow
	numExpSign // after the sign, a digit must follow
	numExpDigits
	complete // the document has ended
)

// Expected completes "expected ..." for a fault in the current state.
func (s *Scanner) Expected() string {
	if len(s.stack) == ScanDepthMax && (s.state == atValue || s.state == atValueOrEnd) {
		return fmt.Sprintf("no more than %d levels of nesting", ScanDepthMax)
	}
	switch s.state {
	case atStart, atValue:
		return "a value"
	case atValueOrEnd:
		return "a value or ']'"
	case atKeyOrEnd:
		return "a member name or '}'"
	case atKey:
		return "a member name"
	case atColon:
		return "':'"
	case atCommaOrEnd:
		return "',' or the end of the object or array"
	case inString:
		return "the rest of a string (control characters must be escaped)"
	case inEscape, inHex:
		return "the rest of an escape sequence"
	case inLiteral:
		return "the rest of true, false or null"
	case inMark:
		return "the rest of a byte order mark"
	case numZero:
		return "the end of the number (leading zeros are not allowed)"
	case numInt, numFraction, numExpDigits: // the input ends here
		return "the rest of a number, ',' or the end of the object or array"
	case complete:
		return "the end of the line"
	default:
		return "a digit"
	}
}

// ScanEvent says why a scan stopped. Immutable.
type ScanEvent uint8

// The reasons.

const (
	ScanMore  ScanEvent = iota // all bytes taken, the document goes on
	ScanDone                   // the document ended with the last byte taken
	ScanFault                  // the byte after those taken is not allowed there
	ScanBlank                  // a blank line ended before any document began
)

// Run scans p, which follows the bytes of earlier calls. It returns how many bytes it
// took and why it stopped.
func (s *Scanner) Run(p []byte) (taken int, ev ScanEvent) {
	base := s.Bytes
	for i := 0; i < len(p); i++ {
		c := p[i]
		if s.state == inString && c != '"' && c != '\\' && c >= ' ' {
			continue // the bulk of most documents
		}
		if s.state.betweenTokens() && IsSpace(c) {
			if c == '\n' {
				if s.state == atStart {
					s.Bytes = base + i + 1
					return i + 1, ScanBlank
				}
				if s.OneLine {
					s.Bytes = base + i
					return i, ScanFault
				}
				s.Lines++
				s.LineStart = base + i + 1
				s.LineFresh = true
			}
			continue
		}
		switch s.step(c, base+i) {
		case stepFault:
			s.Bytes = base + i
			return i, ScanFault
		case stepAgain: // a number ended before c
			if len(s.stack) == 0 {
				s.state = complete
				s.Bytes = base + i
				return i, ScanDone
			}
			s.state = atCommaOrEnd
			i--
			continue
		}
		s.LineFresh = false
		if s.state == complete {
			s.Bytes = base + i + 1
			return i + 1, ScanDone
		}
	}
	s.Bytes = base + len(p)
	return len(p), ScanMore
}

// Finish ends the input. It returns ScanDone if the end completes the document (a bare
// number), ScanBlank if none had begun, ScanFault otherwise.
func (s *Scanner) Finish() ScanEvent {
	switch {
	case s.state == atStart:
		return ScanBlank
	case len(s.stack) == 0 && s.state.numberMayEnd():
		s.state = complete
		return ScanDone
	default:
		return ScanFault
	}
}

// Depth returns how many objects and arrays are open.
func (s *Scanner) Depth() int { return len(s.stack) }

// Reset makes s ready for the next document.
func (s *Scanner) Reset() { *s = Scanner{OneLine: s.OneLine, stack: s.stack[:0]} }

type stepResult uint8

const (
	stepOK stepResult = iota
	stepFault
	stepAgain // c comes after a number that just ended: scan c again
)

// step takes one byte, which is not white space between tokens.
func (s *Scanner) step(c byte, offset int) stepResult {
	switch s.state {
	case atStart:
		if c == byteOrderMark[0] && offset == 0 {
			s.state, s.literal = inMark, byteOrderMark[1:]
			return stepOK
		}
		return s.beginValue(c)
	case atValue:
		return s.beginValue(c)
	case atValueOrEnd:
		if c == ']' {
			return s.pop()
		}
		return s.beginValue(c)
	case atKeyOrEnd, atKey:
		switch {
		case c == '"':
			s.state, s.key = inString, true
			return stepOK
		case c == '}' && s.state == atKeyOrEnd:
			return s.pop()
		}
		return stepFault
	case atColon:
		if c == ':' {
			s.state = atValue
			return stepOK
		}
		return stepFault
	case atCommaOrEnd:
		object := s.stack[len(s.stack)-1]
		switch {
		case c == ',' && object:
			s.state = atKey
		case c == ',':
			s.state = atValue
		case c == '}' && object, c == ']' && !object:
			return s.pop()
		default:
			return stepFault
		}
		return stepOK
	case inString:
		return s.stringByte(c)
	case inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.state = inString
			return stepOK
		case 'u':
			s.state, s.hex = inHex, 4
			return stepOK
		}
		return stepFault
	case inHex:
		if !isHex(c) {
			return stepFault
		}
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
		return stepOK
	case inLiteral, inMark:
		if c != s.literal[0] {
			return stepFault
		}
		switch s.literal = s.literal[1:]; {
		case s.literal == "" && s.state == inMark:
			s.state = atValue
		case s.literal == "":
			s.endValue()
		}
		return stepOK
	default:
		return s.numberByte(c)
	}
}

func (s *Scanner) beginValue(c byte) stepResult {
	switch {
	case c == '{' || c == '[':
		if len(s.stack) == ScanDepthMax {
			return stepFault
		}
		s.stack = append(s.stack, c == '{')
		s.state = atValueOrEnd
		if c == '{' {
			s.state = atKeyOrEnd
		}
	case c == '"':
		s.state, s.key = inString, false
	case c == '-':
		s.state = numMinus
	case c == '0':
		s.state = numZero
	case isDigit(c):
		s.state = numInt
	case c == 't':
		s.state, s.literal = inLiteral, "rue"
	case c == 'f':
		s.state, s.literal = inLiteral, "alse"
	case c == 'n':
		s.state, s.literal = inLiteral, "ull"
	default:
		return stepFault
	}
	return stepOK
}

func (s *Scanner) stringByte(c byte) stepResult {
	switch {
	case c == '"' && s.key:
		s.state = atColon
	case c == '"':
		s.endValue()
	case c == '\\':
		s.state = inEscape
	default: // a raw control character
		return stepFault
	}
	return stepOK
}

func (s *Scanner) numberByte(c byte) stepResult {
	switch {
	case isDigit(c):
		switch s.state {
		case numMinus:
			s.state = numInt
			if c == '0' {
				s.state = numZero
			}
		case numZero:
			return stepFault // no leading zeros
		case numDot:
			s.state = numFraction
		case numExp, numExpSign:
			s.state = numExpDigits
		}
	case c == '.' && (s.state == numZero || s.state == numInt):
		s.state = numDot
	case (c == 'e' || c == 'E') && (s.state == numZero || s.state == numInt || s.state == numFraction):
		s.state = numExp
	case (c == '+' || c == '-') && s.state == numExp:
		s.state = numExpSign
	case s.state.numberMayEnd():
		return stepAgain
	default:
		return stepFault
	}
	return stepOK
}

// pop closes the innermost container.
func (s *Scanner) pop() stepResult {
	s.stack = s.stack[:len(s.stack)-1]
	s.endValue()
	return stepOK
}

func (s *Scanner) endValue() {
	s.state = atCommaOrEnd
	if len(s.stack) == 0 {
		s.state = complete
	}
}

// betweenTokens reports whether white space is allowed in this state.
func (st scanState) betweenTokens() bool { return st <= atCommaOrEnd }

func (st scanState) numberMayEnd() bool {
	return st == numZero || st == numInt || st == numFraction || st == numExpDigits
}

// IsSpace reports whether c is white space of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
