package errtext_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/internal/errtext"
)

func TestShortTextsStandWhole(t *testing.T) {
	for _, c := range []struct{ in, quote, text, name string }{
		{"", `""`, "", ""},
		{"plain", `"plain"`, "plain", "plain"},
		{`a "b" \c`, `"a \"b\" \\c"`, `a "b" \c`, `a "b" \c`},
		{"été", `"été"`, "été", "été"},
		{"a\nb\x1b[2J", `"a\nb\x1b[2J"`, `a\nb\x1b[2J`, `"a\nb\x1b[2J"`},
		{"a\u2028b\xff", `"a\u2028b\xff"`, `a\u2028b\xff`, `"a\u2028b\xff"`},
		{strings.Repeat("x", 200), `"` + strings.Repeat("x", 200) + `"`, strings.Repeat("x", 200), strings.Repeat("x", 200)},
	} {
		assert.Equal(t, c.quote, errtext.Quote(c.in))
		assert.Equal(t, c.text, errtext.Text(c.in))
		assert.Equal(t, c.name, errtext.Name(c.in))
		assert.Equal(t, c.in, errtext.Cut(c.in))
	}
}

func TestLongTextsAreCutWhereACharacterEnds(t *testing.T) {
	for _, c := range []struct{ name, in, shown string }{
		{"ASCII", strings.Repeat("x", 201), strings.Repeat("x", 200)},
		{"TwoBytesEach", "x" + strings.Repeat("é", 1000), "x" + strings.Repeat("é", 99)},
		{"FourBytesEach", "xyz" + strings.Repeat("😀", 1000), "xyz" + strings.Repeat("😀", 49)},
		{"NoCharacterAnywhere", strings.Repeat("\x80", 300), strings.Repeat("\x80", 100)},
		{"EscapedAlone", strings.Repeat("\xff", 128), strings.Repeat("\xff", 100)},
		{"EscapedToTwice", strings.Repeat(`"`, 201), strings.Repeat(`"`, 200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytes := " (" + strconv.Itoa(len(c.in)) + " bytes)"
			assert.Equal(t, strconv.Quote(c.shown+"…")+bytes, errtext.Quote(c.in))
			assert.Equal(t, errtext.Quote(c.in), errtext.Name(c.in))
			assert.Equal(t, c.shown+"…"+bytes, errtext.Cut(c.in))
			if utf8.ValidString(c.in) {
				assert.Equal(t, c.shown+"…"+bytes, errtext.Text(c.in))
			}
		})
	}
}

// FuzzExcerpt checks on any input that what is shown is one short, printable line.
func FuzzExcerpt(f *testing.F) {
	for _, s := range []string{"", "a\nb", strings.Repeat("é", 500), strings.Repeat("\xff", 500)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, shown := range []string{errtext.Quote(s), errtext.Text(s), errtext.Name(s)} {
			assert.LessOrEqual(t, len(shown), 2*errtext.Limit+len(`"…" (9223372036854775807 bytes)`))
			for _, r := range shown {
				assert.True(t, strconv.IsPrint(r) || r == utf8.RuneError, "%q", shown)
			}
		}
		unquoted, err := strconv.Unquote(errtext.Quote(s))
		if len(s) <= errtext.Limit/2 && assert.NoError(t, err) {
			assert.Equal(t, s, unquoted)
		}
	})
}
