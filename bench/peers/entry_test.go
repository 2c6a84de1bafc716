package peers

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseID(t *testing.T) {
	for _, tc := range []struct {
		entry string
		want  int64
		ok    bool
	}{
		{"12", 12, true},
		{"12x", 12, true},
		{"-5", -5, true},
		{"-007", -7, true},
		{"0009abc", 9, true},
		{"3.9", 3, true},
		{"1e5", 1, true},
		{"0x1F", 0, true},
		{"-0", 0, true},
		{"44-45", 44, true},
		{"9223372036854775807", math.MaxInt64, true},
		{"-9223372036854775808", math.MinInt64, true},
		{"00000000000000000000000000012", 12, true},
		{"9223372036854775808", 0, false},
		{"-9223372036854775809", 0, false},
		{"18446744073709551617", 0, false},
		{"99999999999999999999999999x", 0, false},
		{"", 0, false},
		{"-", 0, false},
		{"+7", 0, false},
		{"--5", 0, false},
		{"- 5", 0, false},
		{" 7", 0, false},
		{"x12", 0, false},
		{"１２", 0, false},
	} {
		t.Run(strconv.Quote(tc.entry), func(t *testing.T) {
			id, ok := parseID(tc.entry)
			assert.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.want, id)
			id, ok = parseID([]byte(tc.entry))
			assert.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.want, id)
		})
	}
}

// FuzzParseID compares with a regular expression and the standard library.
func FuzzParseID(f *testing.F) {
	for _, entry := range []string{"12x", "-5", "", "-", "9223372036854775808", "-9223372036854775808", "+1"} {
		f.Add(entry)
	}
	number := regexp.MustCompile(`^-?[0-9]+`)
	f.Fuzz(func(t *testing.T, entry string) {
		want, err := strconv.ParseInt(number.FindString(entry), 10, 64)
		id, ok := parseID(entry)
		assert.Equal(t, err == nil, ok)
		if err != nil {
			want = 0 // where the library gives the nearest int64
		}
		assert.Equal(t, want, id)
	})
}
