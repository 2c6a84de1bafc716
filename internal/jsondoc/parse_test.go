package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseNumbersKeepTheirLiteralKind(t *testing.T) {
	tests := []struct {
		doc  string
		want Value
	}{
		{"0", Value{Kind: Uint}},
		{"7", Value{Kind: Uint, Uint: 7, Float: 7}},
		{"9223372036854775808", Value{Kind: Uint, Uint: 1 << 63, Float: 1 << 63}},
		{"18446744073709551615", Value{Kind: Uint, Uint: math.MaxUint64, Float: math.MaxUint64}},
		{"18446744073709551616", Value{Kind: Float, Float: 1 << 64}},
		{"-0", Value{Kind: Int}},
		{"-5", Value{Kind: Int, Int: -5, Float: -5}},
		{"-9223372036854775808", Value{Kind: Int, Int: math.MinInt64, Float: math.MinInt64}},
		{"-9223372036854775809", Value{Kind: Float, Float: math.MinInt64}},
		{"1.0", Value{Kind: Float, Float: 1, Whole: true}},
		{"0.3E1", Value{Kind: Float, Float: 3, Whole: true}},
		{"4e0", Value{Kind: Float, Float: 4, Whole: true}},
		{"1.7976931348623157e308", Value{Kind: Float, Float: math.MaxFloat64}},
		{"1e-400", Value{Kind: Float}},
	}
	for _, test := range tests {
		t.Run(test.doc, func(t *testing.T) {
			got, err := Parse([]byte(test.doc))
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			assert.True(t, got.IsNumber())
		})
	}

	negativeZero, err := Parse([]byte("-0.0"))
	require.NoError(t, err)
	assert.True(t, math.Signbit(negativeZero.Float), "the sign of a float zero is kept")
	integerZero, err := Parse([]byte("-0"))
	require.NoError(t, err)
	assert.False(t, math.Signbit(integerZero.Float), "an integer zero has no sign")
}

func TestParseTree(t *testing.T) {
	doc := "\ufeff \t{\"a\": [null, true, false, \"x\"], \"\\u00e9\\n\\ud83c\\uddeb\": {}, \"a\": [], \"A\": \"é\"}\r\n"
	got, err := Parse([]byte(doc))
	require.NoError(t, err)

	want := Value{Kind: Object, Offset: 5, Members: []Member{
		{"a", Value{Kind: Array, Offset: 11, Items: []Value{
			{Kind: Null, Offset: 12},
			{Kind: Bool, Bool: true, Offset: 18},
			{Kind: Bool, Offset: 24},
			{Kind: String, Str: "x", Offset: 31},
		}}},
		{"é\n\U0001f1eb", Value{Kind: Object, Offset: 61, Members: []Member{}}},
		{"a", Value{Kind: Array, Offset: 70, Items: []Value{}}},
		{"A", Value{Kind: String, Str: "é", Offset: 79}},
	}}
	assert.Equal(t, want, got)

	assert.Equal(t, 70, got.Get("a").Offset, "the last of two duplicates counts")
	assert.Equal(t, "é", got.Get("A").Str, "names are case-sensitive")
	assert.Nil(t, got.Get("b"))
	assert.Nil(t, got.Get("A").Get("a"), "a string has no members")
	assert.Nil(t, (*Value)(nil).Get("a"))
	for _, kind := range []Kind{Null, Bool, String, Array, Object} {
		assert.False(t, (&Value{Kind: kind}).IsNumber(), "kind %d", kind)
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"null", "null"}, {"true", "true"}, {"false", "false"},
		{"18446744073709551615", "the integer 18446744073709551615"}, {"-1", "the integer -1"}, {"-0", "the integer 0"},
		{"1.50", "the number 1.5"}, {"1.0", "the number 1.0"}, {"-0.0", "the number -0.0"},
		{"1e300", "the number 1e+300"}, {"4294967295.0", "the number 4294967295.0"}, {"18446744073709551616", "the number 1.8446744073709552e+19"},
		{`""`, `""`}, {`"a\n\u001b"`, `"a\n\x1b"`},
		{`"` + strings.Repeat("x", 40) + `"`, `"` + strings.Repeat("x", 40) + `"`}, {`"` + strings.Repeat("x", 41) + `"`, "a string"},
		{"[]", "an array"}, {"{}", "an object"},
	} {
		v, err := Parse([]byte(c.doc))
		require.NoError(t, err)
		assert.Equal(t, c.want, v.Describe())
	}
	assert.Equal(t, "nothing", (*Value)(nil).Describe())
}

func TestParseDoesNotKeepTheDocument(t *testing.T) {
	doc := []byte(`{"name": ["plain", "esc\u0061ped"]}`)
	got, err := Parse(doc)
	require.NoError(t, err)
	for i := range doc {
		doc[i] = 'X'
	}
	assert.Equal(t, "plain", got.Get("name").Items[0].Str)
	assert.Equal(t, "escaped", got.Get("name").Items[1].Str)
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		doc    string
		offset int
		msg    string
	}{
		{"", 0, "empty document"},
		{" \n ", 3, "empty document"},
		{"\ufeff", 3, "empty document"},
		{"\ufeff\ufeff1", 3, `unexpected '\ufeff'`},
		{"\ufeff[1, x]", 7, "unexpected 'x'"},
		{"[", 1, "document ends too early"},
		{"[1,", 3, "document ends too early"},
		{`{"a"`, 4, "document ends too early"},
		{`{"a":1`, 6, "document ends too early"},
		{`"abc`, 4, "document ends too early"},
		{`"a\`, 3, "document ends too early"},
		{"\"\xc3", 2, "document ends too early"},
		{"nul", 3, "document ends too early"},
		{"1.", 2, "document ends too early"},
		{"[1,]", 2, "unexpected ','"},
		{"[,1]", 1, "unexpected ','"},
		{`{"a":1,}`, 6, "unexpected ','"},
		{`{"a" 1}`, 5, "unexpected '1'"},
		{`{"a": }`, 6, "unexpected '}'"},
		{`{"a"::1}`, 5, "unexpected ':'"},
		{`["a":1]`, 4, "unexpected ':'"},
		{"{1:2}", 1, "unexpected '1'"},
		{`{"a":1 "b":2}`, 7, `unexpected '"'`},
		{"[1 2]", 3, "unexpected '2'"},
		{"[}", 1, "unexpected '}'"},
		{"{]", 1, "unexpected ']'"},
		{"]", 0, "unexpected ']'"},
		{"nulx", 3, "unexpected 'x'"},
		{"NaN", 0, "unexpected 'N'"},
		{"-Infinity", 1, "unexpected 'I'"},
		{"+1", 0, "unexpected '+'"},
		{".5", 0, "unexpected '.'"},
		{"'a'", 0, `unexpected '\''`},
		{"/**/1", 0, "unexpected '/'"},
		{"[1.]", 3, "unexpected ']'"},
		{"01", 1, "unexpected data after the document"},
		{"1 2", 2, "unexpected data after the document"},
		{"{}\n{}", 3, "unexpected data after the document"},
		{"1\x00", 1, "unexpected data after the document"},
		{"[\x01]", 1, "control character 0x01"},
		{"[\"a\tb\"]", 3, "control character 0x09"},
		{"{\"a\n\":1}", 3, "control character 0x0a"},
		{"\"a\xff\"", 2, "invalid UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "invalid UTF-8"},
		{`"\x"`, 1, "invalid escape sequence"},
		{`"\u12"`, 1, "invalid escape sequence"},
		{`"\ud800"`, 1, "invalid escape sequence"},
		{`"\udc00"`, 1, "invalid escape sequence"},
		{`"\ud83c\ud83c"`, 1, "invalid escape sequence"},
		{`"\ud800\u0041"`, 1, "invalid escape sequence"},
		{"[1e999]", 1, "number beyond the range of a double"},
		{"[0, -1e999]", 4, "number beyond the range of a double"},
		{"1" + strings.Repeat("0", 400), 0, "number beyond the range of a double"},
	}
	for _, test := range tests {
		t.Run(test.doc, func(t *testing.T) {
			_, err := Parse([]byte(test.doc))
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
			assert.Equal(t, SyntaxError{Offset: int64(test.offset), Msg: test.msg}, *syntax)
		})
	}
	assert.EqualError(t, &SyntaxError{Offset: 17, Msg: "unexpected 'x'"}, "unexpected 'x' at byte 17")
}

func TestParseBoundsNesting(t *testing.T) {
	nest := func(open, leaf, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + leaf + strings.Repeat(end, n))
	}
	for _, form := range [][3]string{{"[", "", "]"}, {`{"a":`, "1", "}"}} {
		open, leaf, end := form[0], form[1], form[2]
		_, err := Parse(nest(open, leaf, end, MaxDepth))
		assert.NoError(t, err)

		_, err = Parse(nest(open, leaf, end, MaxDepth+1))
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax)
		assert.Equal(t, "nested deeper than 8192 levels", syntax.Msg)
		assert.Equal(t, int64(MaxDepth*len(open)), syntax.Offset)
	}
}

func TestParseBoundsValues(t *testing.T) {
	const limit = 5
	for _, doc := range []string{`[1,2,3,4]`, `{"a":1,"b":[2,{}]}`, `[[[[[]]]]]`} {
		_, err := new(Parser).parse([]byte(doc), limit)
		assert.NoError(t, err, doc)
	}
	for doc, offset := range map[string]int64{`[1,2,3,4, 5]`: 10, `{"a":1,"b":[2,{"c":3}]}`: 19, `[[[[[[]]]]]]`: 5} {
		_, err := new(Parser).parse([]byte(doc), limit)
		assert.Equal(t, &SyntaxError{Offset: offset, Msg: "more than 5 values"}, err, doc)
	}
}

// FuzzParse compares with encoding/json. What Parse accepts, the standard library accepts with
// the same content. What Parse refuses, the standard library refuses as well, unless one of the
// documented stricter rules applies.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{
		`{"user_id": 1, "param_overrides": {"weight": 0.5}}`, `[1,-2,3.5e-7,"x\u00e9\ud83c\uddeb",null,true,{}]`,
		"\ufeff0", `"\ud800"`, "\"\xff\"", "1e999", "-0", `{"a":1,"a":2}`, "[1,]", "{}{}", `{"a":{"b":[[]]}}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := Parse(doc)
		body := bytes.TrimPrefix(doc, []byte(byteOrderMark))
		want, wantErr := decodeStandard(body)
		if err == nil {
			require.NoError(t, wantErr)
			assertSame(t, want, &got)
			return
		}
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.True(t, syntax.Offset >= 0 && syntax.Offset <= int64(len(doc)), "offset %d of %d", syntax.Offset, len(doc))
		require.NotContains(t, err.Error(), "\n")
		if wantErr == nil {
			lower := bytes.ToLower(body)
			stricter := !utf8.Valid(body) || bytes.Contains(lower, []byte(`\ud`)) ||
				strings.HasPrefix(syntax.Msg, "number beyond") || strings.HasPrefix(syntax.Msg, "nested deeper") ||
				strings.HasPrefix(syntax.Msg, "more than")
			require.True(t, stricter, "only Parse refuses %q: %v", doc, err)
		}
	})
}

// decodeStandard reads exactly one document with encoding/json.
func decodeStandard(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	return v, nil
}

func assertSame(t *testing.T, want any, got *Value) {
	t.Helper()
	switch want := want.(type) {
	case nil:
		require.Equal(t, Null, got.Kind)
	case bool:
		require.Equal(t, Bool, got.Kind)
		require.Equal(t, want, got.Bool)
	case string:
		require.Equal(t, String, got.Kind)
		require.Equal(t, want, got.Str)
	case json.Number:
		require.True(t, got.IsNumber())
		f, err := want.Float64()
		require.NoError(t, err)
		require.Equal(t, f, got.Float+0) // +0: an Int zero has no sign
	case []any:
		require.Equal(t, Array, got.Kind)
		require.Len(t, got.Items, len(want))
		for i := range want {
			assertSame(t, want[i], &got.Items[i])
		}
	case map[string]any:
		require.Equal(t, Object, got.Kind)
		for name, value := range want {
			require.NotNil(t, got.Get(name))
			assertSame(t, value, got.Get(name))
		}
		for _, member := range got.Members {
			require.Contains(t, want, member.Name)
		}
	}
}

func BenchmarkParseRequest(b *testing.B) {
	doc := []byte(`{"user_id": 123456, "request_id": "9f1c2f", "param_overrides": {"media_age_penalty_weight": 0.25}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParserRequest(b *testing.B) {
	doc := []byte(`{"user_id": 123456, "request_id": "9f1c2f", "param_overrides": {"media_age_penalty_weight": 0.25}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	var p Parser
	for b.Loop() {
		if _, err := p.Parse(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseStandardRequest(b *testing.B) {
	doc := []byte(`{"user_id": 123456, "request_id": "9f1c2f", "param_overrides": {"media_age_penalty_weight": 0.25}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWhole(t *testing.T) {
	for literal, want := range map[string]bool{
		"5.0": true, "5e3": true, "-0.0": true, "0e-7": true, "0E99999999999999999999": true, "1.50e1": true, "12e-1": false, "120e-1": true, "1.000000000000000005": false,
		"9007199254740991.0": true, "-9007199254740991.000": true, "9007199254740992.0": false, "9007199254740993.0": false, "9.007199254740993e15": false,
		"9007199254740990.5": false, "9007199254740990.999999999": false, "1e-400": false, "10e-400": false, "1e-99999999999999999999": false,
		"1e15": true, "1e16": false, "18446744073709551616": false, "0.1e1": true, "100000000000000000000e-20": true, "1e300": false,
	} {
		v, err := Parse([]byte(literal))
		require.NoError(t, err, literal)
		assert.Equal(t, want, v.Whole, literal)
		assert.Equal(t, want, Whole([]byte(literal), v.Float), literal)
	}
}
