package rowset_test

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "007": 7, "9007199254740993": 1<<53 + 1,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		got, ok := rowset.ParseInt([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1_000", "nan", "9223372036854775808", "-9223372036854775809", "١"} {
		_, ok := rowset.ParseInt([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "1": 1, "-0.5": -0.5, ".5": 0.5, "5.": 5, "1e3": 1000, "+1": 1, "1E-3": 0.001, "1e-999": 0, "1.7976931348623157e308": math.MaxFloat64,
	} {
		got, ok := rowset.ParseFloat([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "-", ".", "e", "1e", "1e+", "1e5.", "1.2.3", "--1", "1-", "nan", "NaN", "inf", "-Inf", "Infinity", "+infinity", "0x1p3", "1_000", " 1", "1 ", "1e999", "-1e999", "1.8e308", "1,5", "١",
	} {
		_, ok := rowset.ParseFloat([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestParseBool(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "true": true, "0": false, "false": false} {
		got, ok := rowset.ParseBool([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "TRUE", "t", "yes", "2", " 1", "01"} {
		_, ok := rowset.ParseBool([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	i, f, bad := []byte("-9223372036854775808"), []byte("-1.7976931348623157e308"), []byte("nan")
	beyond, half := []byte("9223372036854775808"), []byte("12x")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		rowset.ParseInt(i)
		rowset.ParseFloat(f)
		rowset.ParseFloat(bad)
		rowset.ParseInt(beyond)
		rowset.ParseInt(half)
		rowset.ParseFloat(half)
		rowset.ParseBool(bad)
	}))
}

func TestSetOfText(t *testing.T) {
	for text, want := range map[string][]string{
		"": {}, "a": {"a"}, "b, a ,,b": {"a", "b"}, " ": {}, "a b": {"a b"}, `"a"`: {`"a"`},
		"[]": {}, ` ["b","a,c","b",""] `: {"", "a,c", "b"}, `["ä\n"]`: {"ä\n"},
	} {
		b := rowset.NewSetBuilder(5201, 1)
		require.True(t, b.AppendText([]byte(text)), text)
		c := b.Column().(*rowset.SetColumn)
		got, ok := c.AppendValues([]string{}, 0)
		assert.True(t, ok)
		assert.Equal(t, want, got, text)
	}
	b := rowset.NewSetBuilder(5201, 1)
	for _, text := range []string{"[", "[1]", `["a",null]`, `["a"]x`, `["a","b"`, "[a]", "[[]]"} {
		assert.False(t, b.AppendText([]byte(text)), text)
	}
	assert.Zero(t, b.Len())
	b.Append()
	got, _ := b.Column().(*rowset.SetColumn).AppendValues(nil, 0)
	assert.Empty(t, got, "nothing of a refused text is left")
}

var (
	intText   = regexp.MustCompile(`^-?[0-9]+$`)
	floatText = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
)

// FuzzTexts compares with a grammar and with arbitrary precision. A text is either a value or
// not, and a value is the nearest one.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"1", "-9223372036854775808", "1e308", "1e309", "nan", "0x1p3", "+", "1_0", "a, b", `["a"]`, "[", ".5", "5."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, ok := rowset.ParseInt([]byte(text))
		exact, isInt := new(big.Int).SetString(text, 10)
		require.Equal(t, intText.MatchString(text) && isInt && exact.IsInt64(), ok)
		if ok {
			require.Equal(t, exact.Int64(), i)
		}
		v, ok := rowset.ParseFloat([]byte(text))
		require.False(t, math.IsNaN(v) && ok || math.IsInf(v, 0) && ok)
		if floatText.MatchString(text) {
			want, err := strconv.ParseFloat(text, 64)
			require.Equal(t, err == nil, ok)
			if ok {
				require.Equal(t, want, v)
			}
		} else {
			require.False(t, ok)
		}
		b := rowset.NewSetBuilder(1, 1)
		if b.AppendText([]byte(text)) {
			require.Equal(t, 1, b.Len())
		} else {
			require.Zero(t, b.Len())
			require.True(t, strings.HasPrefix(strings.TrimSpace(text), "["))
		}
		b.Append()
		c := b.Column().(*rowset.SetColumn)
		require.NoError(t, rowset.NewBatch(make([]int64, len(c.Codes)), c).Validate())
	})
}
