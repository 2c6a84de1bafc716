package compiler

import (
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/errtext"
)

func quote(s string) string { return errtext.Quote(s) }

func itoa(n int) string { return strconv.Itoa(n) }

// utf16Len returns how many UTF-16 units s has. Columns are counted in these.
func utf16Len(s string) int {
	units := 0
	for _, r := range s {
		units += max(1, utf16.RuneLen(r))
	}
	return units
}

// lowerFirst makes a message of a library start in lower case, like ours. It leaves names alone.
func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	next, _ := utf8.DecodeRuneInString(s[size:])
	if !unicode.IsUpper(r) || unicode.IsUpper(next) {
		return s
	}
	return string(unicode.ToLower(r)) + s[size:]
}

// cutText shortens a text of a plan for a message and keeps it on one line.
func cutText(s string) string { return errtext.Text(s) }
