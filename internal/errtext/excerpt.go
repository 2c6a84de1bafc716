// Package errtext has what errors say about an input: an excerpt, so that no input makes an error long, and the
// nearest of the possible names. An excerpt shows at most [Limit] bytes of a text, which take at most twice as many
// where characters are escaped. It ends with a whole character, an ellipsis and the length of the text.
//
// Requests, plans, registries, command lines and Redis replies are input. The package
// has functions only; any goroutine may call them.
package errtext

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limit is how many bytes of a text an error shows.
const Limit = 200

// Quote returns s as a Go string literal: `"abc"`. If s is too long it shows
// the beginning and the length: `"abc…" (15000000 bytes)`.
func Quote(s string) string {
	if shown := head(s); len(shown) < len(s) {
		return strconv.Quote(shown+ellipsis) + length(s)
	}
	return strconv.Quote(s)
}

// Text returns s on one line, without quotes. It escapes characters that are not
// printable, as in a Go string literal. If s is too long it shows the beginning
// and the length: `abc… (15000000 bytes)`.
func Text(s string) string {
	if shown := head(s); len(shown) < len(s) {
		return escape(shown) + ellipsis + length(s)
	}
	return escape(s)
}

// Cut returns s as it is. If s is too long it shows the beginning and the
// length. Use it where a text stands alone and is escaped already, as in JSON.
func Cut(s string) string {
	if shown := head(s); len(shown) < len(s) {
		return shown + ellipsis + length(s)
	}
	return s
}

// Name returns the name of a file as it is if it is short and printable, otherwise
// like Quote.
func Name(s string) string {
	if len(s) <= Limit && printable(s) {
		return s
	}
	return Quote(s)
}

const ellipsis = "…"

// head returns as much of s as an excerpt shows.
func head(s string) string {
	escaped := 0
	for end := 0; end < len(s); {
		_, size := utf8.DecodeRuneInString(s[end:])
		escaped += len(strconv.Quote(s[end:end+size])) - len(`""`)
		if end+size > Limit || escaped > 2*Limit {
			return s[:end]
		}
		end += size
	}
	return s
}

func length(s string) string { return " (" + strconv.Itoa(len(s)) + " bytes)" }

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}

// escape escapes each character of s that is not printable.
func escape(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && !(r == utf8.RuneError && size == 1) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Count returns a number of things, whose plural ends in s: "1 row", "0 rows".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
