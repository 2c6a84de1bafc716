package compiler

import (
	"regexp"
	"strings"
)

// The engine matches regular expressions of plan code by RE2 or by a matcher that backtracks. Both keep what a group
// captured in an earlier round of a repeated group, and what a round captured that matched nothing. JavaScript
// forgets both.

// forgets reports whether a pattern of JavaScript has a capturing group whose result depends on that. A pattern that JavaScript
// refuses gives any answer.
func forgets(pattern string) bool {
	s := patternScanner{text: pattern}
	s.alternatives()
	return s.forgets
}

// part is what a piece of a pattern may do.
type part struct {
	captures bool // it has a capturing group
	skips    bool // a match of it may leave a capturing group without a result
	empty    bool // it may match nothing
}

type patternScanner struct {
	text    string
	at      int
	forgets bool
}

func (s *patternScanner) alternatives() (all part) {
	for n := 0; ; n++ {
		one := s.sequence()
		all = part{captures: all.captures || one.captures, skips: all.skips || one.skips, empty: all.empty || one.empty}
		if !s.take("|") {
			all.skips = all.skips || n > 0 && all.captures
			return all
		}
	}
}

func (s *patternScanner) sequence() part {
	all := part{empty: true}
	for s.at < len(s.text) && s.text[s.at] != '|' && s.text[s.at] != ')' {
		one := s.atom()
		optional, repeated := s.quantifier()
		s.forgets = s.forgets || repeated && one.skips || optional && one.captures && one.empty
		if optional {
			one.skips, one.empty = one.captures, true
		}
		all = part{captures: all.captures || one.captures, skips: all.skips || one.skips, empty: all.empty && one.empty}
	}
	return all
}

func (s *patternScanner) atom() (one part) {
	switch {
	case s.take(`\b`), s.take(`\B`), s.take("^"), s.take("$"):
		return part{empty: true}
	case s.take(`\`):
		one.empty = s.at < len(s.text) && s.text[s.at] >= '1' && s.text[s.at] <= '9' || strings.HasPrefix(s.text[s.at:], "k<") // what a group captured
		s.at = min(s.at+1, len(s.text))
	case s.take("["):
		for s.at < len(s.text) && !s.take("]") {
			s.take(`\`)
			s.at = min(s.at+1, len(s.text))
		}
	case s.take("(?:"):
		one = s.alternatives()
		s.take(")")
	case s.take("(?!"), s.take("(?<!"):
		s.alternatives()
		s.take(")")
		one.empty = true
	case s.take("(?="), s.take("(?<="):
		one = s.alternatives()
		s.take(")")
		one.empty = true
	case s.take("("):
		if s.take("?<") {
			s.at += strings.IndexByte(s.text[s.at:]+">", '>')
			s.take(">")
		}
		one = s.alternatives()
		s.take(")")
		one.captures = true
	default:
		s.at++
	}
	return one
}

// quantifier passes over a quantifier, and reports whether it allows none, and more than one.
func (s *patternScanner) quantifier() (optional, repeated bool) {
	switch {
	case s.take("*"):
		optional, repeated = true, true
	case s.take("+"):
		repeated = true
	case s.take("?"):
		optional = true
	default:
		bounds := quantified.FindStringSubmatch(s.text[s.at:])
		if bounds == nil {
			return false, false
		}
		s.at += len(bounds[0])
		optional = strings.Trim(bounds[1], "0") == ""
		repeated = strings.TrimLeft(bounds[1], "0") != "1" && !optional || bounds[2] != "" && strings.TrimLeft(bounds[2], ",0") != "1" && strings.Trim(bounds[2], ",0") != "" || bounds[2] == ","
	}
	s.take("?")
	return optional, repeated
}

// quantified matches {2}, {2,} and {2,3}.
var quantified = regexp.MustCompile(`^\{(\d+)(,\d*)?\}`)

func (s *patternScanner) take(text string) bool {
	if !strings.HasPrefix(s.text[min(s.at, len(s.text)):], text) {
		return false
	}
	s.at += len(text)
	return true
}
