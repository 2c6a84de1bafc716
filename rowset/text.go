package rowset

import (
	"bytes"
	"math"
	"strconv"

	"github.com/rankd/rankd/internal/jsondoc"
)

// ParseInt reads an integer that comes as text from outside, such as a field of a Redis hash: an optional
// minus and decimal digits, nothing else. ok is false for another text, or beyond int64.
func ParseInt(text []byte) (value int64, ok bool) {
	if len(text) > 0 && text[0] == '+' {
		return 0, false
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	return value, err == nil
}

// ParseFloat reads a number that comes as text from outside, in decimal notation: "1", "-0.5", "1e3". ok is
// false for another text ("nan", "inf", "0x1p3"), and for a number beyond the range of doubles.
func ParseFloat(text []byte) (value float64, ok bool) {
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+' {
			return 0, false
		}
	}
	value, err := strconv.ParseFloat(string(text), 64)
	return value, err == nil && !math.IsInf(value, 0)
}

// ParseBool reads a truth value that comes as text from outside: "1" and "true", or "0" and "false".
func ParseBool(text []byte) (value, ok bool) {
	switch string(text) {
	case "1", "true":
		return true, true
	case "0", "false":
		return false, true
	}
	return false, false
}

// AppendText adds a row with the set that comes as text from outside: members with commas between them,
// or a JSON array of strings. Blanks around a member between commas do not count, nor do empty members,
// so an empty text is the empty set. ok is false for a text that begins with "[" and is not such an array.
// Nothing is appended then.
func (b *SetBuilder) AppendText(text []byte) (ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '[' {
		return b.appendArray(text)
	}
	for member := range bytes.SplitSeq(text, []byte{','}) {
		if member = bytes.TrimSpace(member); len(member) > 0 {
			b.Add(member)
		}
	}
	b.Append()
	return true
}

func (b *SetBuilder) appendArray(text []byte) bool {
	array, err := jsondoc.Parse(text)
	if err != nil {
		return false
	}
	for i := range array.Items {
		if array.Items[i].Kind != jsondoc.String {
			return false
		}
	}
	for i := range array.Items {
		b.Add([]byte(array.Items[i].Str))
	}
	b.Append()
	return true
}
