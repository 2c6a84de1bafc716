package jsondoc

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendComma appends a comma unless position i is the first of an object or array.
func AppendComma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// AppendName appends the name of the member at position i of an object, with its comma and colon.
func AppendName(dst []byte, i int, name string) []byte {
	return append(AppendString(AppendComma(dst, i), name), ':')
}

// AppendString appends a JSON string. U+FFFD replaces invalid UTF-8, which Redis may
// hold. AppendQuote reports that by an error, which AppendString ignores.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// AppendStrings appends an array of strings.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		dst = AppendString(AppendComma(dst, i), s)
	}
	return append(dst, ']')
}

// AppendInts appends an array of integers.
func AppendInts(dst []byte, list []int64) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		dst = strconv.AppendInt(AppendComma(dst, i), v, 10)
	}
	return append(dst, ']')
}

// AppendNumbers appends an array of finite numbers as AppendNumber does, and null for NaN.
func AppendNumbers(dst []byte, list []float64) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if dst = AppendComma(dst, i); math.IsNaN(v) {
			dst = append(dst, "null"...)
		} else {
			dst = AppendNumber(dst, v)
		}
	}
	return append(dst, ']')
}

// AppendFloat appends the shortest decimal that reads back as f. A fraction or an
// exponent tells readers that it is a double. JSON has no infinities and no NaN, and tasks
// return none. If one came it would be null.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(dst, "null"...)
	}
	// The plain form is used from 1e-5 up to where its last digits are no longer significant. Beyond that, the
	// exponent form is shorter and as exact.
	if abs := math.Abs(f); abs != 0 && (abs < 1e-5 || abs >= 1e15) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	if whole := int64(f); float64(whole) == f && (whole != 0 || !math.Signbit(f)) {
		return append(strconv.AppendInt(dst, whole, 10), ".0"...)
	}
	if fast, ok := appendDecimal(dst, f); ok {
		return fast
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if f == 0 { // -0
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendDecimal appends a number that is not whole, with up to six digits behind the point, such as a price: in a third of the time that
// any double takes. The whole number m has at most 15 digits, so no other decimal of 15 digits reads back as the same double, and the one
// without the last zeros is the shortest.
func appendDecimal(dst []byte, f float64) ([]byte, bool) {
	const scale = 1e6
	abs := math.Abs(f)
	if abs >= 1e15/scale {
		return dst, false
	}
	scaled := abs * scale
	m := uint64(scaled + 0.5)
	// A product that is not near an integer is none of such a number. That is cheaper to see than by a division.
	if math.Abs(scaled-float64(m)) > scaled*0x1p-50 || float64(m)/scale != abs || m%scale == 0 {
		return dst, false
	}
	if f < 0 {
		dst = append(dst, '-')
	}
	dst = append(strconv.AppendUint(dst, m/scale, 10), ".000000"...)
	end := len(dst)
	for at, rest := end-1, m%scale; rest > 0; at, rest = at-1, rest/10 {
		dst[at] = '0' + byte(rest%10)
	}
	for dst[end-1] == '0' {
		end--
	}
	return dst[:end], true
}

// AppendNumber appends the shortest decimal that reads back as the same double, which is finite. A whole number has no
// fraction, as ECMAScript writes it.
func AppendNumber(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}
