package reference

import (
	"encoding/json"
	"fmt"
	"strings"
)

// spaced returns JSON on one line, with a blank after each comma and colon.
func spaced(doc json.RawMessage) string {
	var b strings.Builder
	inString, escaped := false, false
	for _, c := range []byte(doc) {
		switch {
		case inString:
			inString = escaped || c != '"'
			escaped = !escaped && c == '\\'
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			continue
		case c == '"':
			inString = true
		case c == ',' || c == ':':
			b.WriteByte(c)
			c = ' '
		}
		b.WriteByte(c)
	}
	return b.String()
}

// comma returns the comma before an element, if it is not the first.
func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// candidateLines returns an array of candidates with one candidate a line.
func candidateLines(answer json.RawMessage) string {
	var rows []json.RawMessage
	if err := json.Unmarshal(answer, &rows); err != nil {
		panic(err) // the engine has written it
	}
	if len(rows) == 0 {
		return "[]"
	}
	var b strings.Builder
	b.WriteString("[")
	for i, row := range rows {
		fmt.Fprintf(&b, "%s\n  %s", comma(i), spaced(row))
	}
	b.WriteString("\n]")
	return b.String()
}
