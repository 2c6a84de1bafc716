// Package excerpt shortens texts that errors quote, so that no input makes an
// error long. An excerpt shows at most [Limit] bytes of a text. It ends with a whole
// character, an ellipsis and the length of the text.
//
// Requests, plans, registries, command lines and Redis replies are input. The package
// has functions only; any goroutine may call them.
package excerpt

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limit is how many bytes of a text an error shows.
const Limit = 200

// Quote returns s as a Go string literal: `"abc"`. If s is longer than Limit it shows
// the beginning and the length: `"abc…" (15000000 bytes)`.
func Quote(s string) string {
	if len(s) <= Limit {
		return strconv.Quote(s)
	}
	return strconv.Quote(head(s)+ellipsis) + length(s)
}

// Text returns s on one line, without quotes. It escapes characters that are not
// printable, as in a Go string literal. If s is longer than Limit it shows the beginning
// and the length: `abc… (15000000 bytes)`.
func Text(s string) string {
	if len(s) <= Limit {
		return escape(s)
	}
	return escape(head(s)) + ellipsis + length(s)
}

// Cut returns s as it is. If s is longer than Limit it shows the beginning and the
// length. Use it where a text stands alone and is escaped already, as in JSON.
func Cut(s string) string {
	if len(s) <= Limit {
		return s
	}
	return head(s) + ellipsis + length(s)
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

// head returns the first Limit bytes of s, or a few less so that it ends with a whole
// character.
func head(s string) string {
	end := Limit
	for end > Limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
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
