package expr

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A patternScan walks over the text of a pattern before package regexp parses it. It
// knows enough of the grammar to tell groups and classes from other text. Its findings
// about a malformed text mean nothing, but the parser refuses such a text.
type patternScan struct {
	text  string
	folds bool // some part of the pattern may ignore case

	plain  strings.Builder // text[:copied] without captures
	copied int

	foreign    string // the first Unicode class that Go knows and RE2 does not; "" if none
	classSteps int    // estimated steps of the parser to build classes, see below
}

// The parser builds a class out of ranges of characters. It copies and sorts the ranges
// of a Unicode class. Where it ignores case it looks at each character of a range from
// firstFolding to lastFolding, the first and the last that have another case.
// The weights are measured: some 25 ns a step.
const (
	firstFolding = 'A'
	lastFolding  = 0x1e943

	stepsPerTableRange = 8
)

func scanPattern(text string, ignoreCase bool) *patternScan {
	s := &patternScan{text: text, folds: ignoreCase}
	for i := 0; i < len(text); {
		switch text[i] {
		case '\\':
			i = s.escape(i)
		case '[':
			i = s.class(i + 1)
		case '(':
			i = s.group(i + 1)
		default:
			i++
		}
	}
	s.plain.WriteString(text[s.copied:])
	return s
}

// escape passes the escape sequence at i, outside of a class.
func (s *patternScan) escape(i int) int {
	switch {
	case strings.HasPrefix(s.text[i:], `\Q`): // literal text up to \E
		end := strings.Index(s.text[i:], `\E`)
		if end < 0 {
			return len(s.text)
		}
		return i + end + len(`\E`)
	case s.isUnicodeClass(i):
		return s.unicodeClass(i)
	default:
		return i + len(`\x`) // the rest of a longer escape looks like plain text
	}
}

// group passes the opening of a group, whose '(' is before i, and removes its capture.
func (s *patternScan) group(i int) int {
	rest := s.text[i:]
	switch {
	case !strings.HasPrefix(rest, "?"):
		s.openGroup(i, i)
		return i
	case strings.HasPrefix(rest, "?P<"), strings.HasPrefix(rest, "?<"):
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return len(s.text)
		}
		s.openGroup(i, i+end+1)
		return i + end + 1
	default:
		flags := rest[:max(0, strings.IndexAny(rest, ":)"))]
		s.folds = s.folds || strings.Contains(flags, "i")
		return i + 1 + len(flags)
	}
}

// openGroup replaces text[from:to] in plain by the opening of a group without capture.
func (s *patternScan) openGroup(from, to int) {
	s.plain.WriteString(s.text[s.copied:from])
	s.plain.WriteString("?:")
	if strings.HasPrefix(s.text[to:], "]") {
		s.plain.WriteByte('\\') // otherwise the ":]" could end an earlier "[:"
	}
	s.copied = to
}

// class passes a class in brackets, whose '[' is before i.
func (s *patternScan) class(i int) int {
	i += len(s.text[i:]) - len(strings.TrimPrefix(s.text[i:], "^"))
	for first := true; i < len(s.text); first = false {
		named, isNamed := strings.CutPrefix(s.text[i:], "[:")
		switch {
		case s.text[i] == ']' && !first:
			return i + 1
		case isNamed && strings.Contains(named, ":]"):
			i += len("[:") + strings.Index(named, ":]") + len(":]")
		case s.isUnicodeClass(i):
			i = s.unicodeClass(i)
		case len(s.text)-i > 1 && s.text[i] == '\\' && strings.IndexByte("dDsSwW", s.text[i+1]) >= 0:
			i += len(`\d`)
		default:
			i = s.classRange(i)
		}
	}
	return i
}

// classRange passes a character of a class, or the range that it begins.
func (s *patternScan) classRange(i int) int {
	lo, i := s.classRune(i)
	if len(s.text)-i < 2 || s.text[i] != '-' || s.text[i+1] == ']' {
		return i
	}
	hi, i := s.classRune(i + 1)
	if s.folds && (lo > firstFolding || hi < lastFolding) { // the parser skips a range that has them all
		s.classSteps += max(0, int(min(hi, lastFolding)-max(lo, firstFolding))+1)
	}
	return i
}

// classRune returns the character at i, which may be an escape sequence, and its end. For
// the escape of a control character it returns the letter: as ends of a range they cost
// the same.
func (s *patternScan) classRune(i int) (rune, int) {
	rest := s.text[i:]
	digits, base := "", 0
	switch {
	case strings.HasPrefix(rest, `\x{`):
		hex, _, _ := strings.Cut(rest[len(`\x{`):], "}")
		digits, base, i = hex, 16, i+len(`\x{`)+len(hex)+len("}")
	case strings.HasPrefix(rest, `\x`):
		digits, base = rest[2:min(4, len(rest))], 16
		i += 2 + len(digits)
	case len(rest) > 1 && rest[0] == '\\' && isOctal(rest[1]):
		n := 2
		for n < min(4, len(rest)) && isOctal(rest[n]) {
			n++
		}
		digits, base, i = rest[1:n], 8, i+n
	default:
		if rest[0] == '\\' {
			rest, i = rest[1:], i+1
		}
		r, size := utf8.DecodeRuneInString(rest)
		return r, i + size
	}
	code, _ := strconv.ParseUint(digits, base, 31)
	return rune(code), min(i, len(s.text))
}

func isOctal(c byte) bool { return '0' <= c && c <= '7' }

// isUnicodeClass reports whether a Unicode class such as \pL begins at i.
func (s *patternScan) isUnicodeClass(i int) bool {
	return strings.HasPrefix(s.text[i:], `\p`) || strings.HasPrefix(s.text[i:], `\P`)
}

// unicodeClass passes the Unicode class at i. RE2 knows general categories by their
// short names, scripts, and Any, in exact spelling. Go also knows long names and a few
// more categories, and is lax about case, spaces, hyphens and underscores. Go's rules
// hold for the other differences: RE2 accepts more (\C) and reads invalid UTF-8.
func (s *patternScan) unicodeClass(i int) int {
	rest := s.text[i+len(`\p`):]
	_, size := utf8.DecodeRuneInString(rest)
	name := rest[:size]
	if strings.HasPrefix(rest, "{") {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return len(s.text)
		}
		name, size = strings.TrimPrefix(rest[1:end], "^"), end+1
	}
	table := re2Class(name)
	switch {
	case table != nil:
		s.classSteps += stepsPerTableRange * (len(table.R16) + len(table.R32))
	case s.foreign == "" && name != "":
		s.foreign = name
	}
	return i + len(`\p`) + size
}

// re2Class returns the Unicode class of that name in RE2, or nil.
func re2Class(name string) *unicode.RangeTable {
	switch name {
	case "Any":
		return &unicode.RangeTable{R32: []unicode.Range32{{Lo: 0, Hi: unicode.MaxRune, Stride: 1}}}
	case "Cn", "LC": // categories that only Go has
		return nil
	}
	if table := unicode.Categories[name]; table != nil {
		return table
	}
	return unicode.Scripts[name]
}
