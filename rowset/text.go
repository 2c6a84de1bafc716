package rowset

import (
	"math"
	"strconv"
)

// ParseInt reads an integer from an outside text, such as a field of a Redis hash: an optional minus and decimal
// digits, nothing else. ok is false for any other text, and for a number beyond int64. ParseInt never allocates,
// since a million texts may not be integers.
func ParseInt(text []byte) (value int64, ok bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var n uint64
	for i, c := range digits {
		digit := uint64(c) - '0'
		if digit > 9 || i >= 18 && n > (1<<63-digit)/10 { // eighteen digits fit
			return 0, false
		}
		n = n*10 + digit
	}
	if negative {
		return int64(-n), true
	}
	return int64(n), n < 1<<63
}

// exactPowers are the powers of ten that a double holds exactly, as far as ParseFloat needs them.
var exactPowers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// ParseFloat reads a number that comes as text from outside, in decimal notation: "1", "-0.5", "1e3". ok is
// false for another text ("nan", "inf", "0x1p3"), and for a number beyond the range of doubles.
func ParseFloat(text []byte) (value float64, ok bool) {
	i := 0
	signed := len(text) > 0 && (text[0] == '-' || text[0] == '+')
	if signed {
		i = 1
	}
	mantissa, digits, fraction, point := uint64(0), 0, 0, false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			mantissa = mantissa*10 + uint64(c-'0')
			digits++
			if point {
				fraction++
			}
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	switch {
	case digits == 0, i < len(text) && !isExponent(text[i:]):
		return 0, false
	case i == len(text) && digits < len(exactPowers):
		// Both are exact, so their quotient is the nearest double, which strconv returns, too.
		value = float64(mantissa) / exactPowers[fraction]
		if signed && text[0] == '-' {
			value = -value
		}
		return value, true
	}
	value, err := strconv.ParseFloat(string(text), 64)
	return value, err == nil && !math.IsInf(value, 0)
}

// isExponent reports whether a text is "e5", "E-12" and so on.
func isExponent(text []byte) bool {
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	text = text[1:]
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
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
