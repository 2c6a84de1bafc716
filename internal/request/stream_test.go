package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/jsondoc"
)

// frames reads a whole stream. An answer is either the document, trimmed, or "! code" for an
// *Error.
func frames(t testing.TB, s *Stream) []string {
	t.Helper()
	var got []string
	for {
		doc, err := s.Next()
		var refused *Error
		switch {
		case err == nil:
			got = append(got, strings.TrimSpace(string(doc)))
		case errors.As(err, &refused):
			assert.NotEmpty(t, refused.RequestID)
			assert.NotEmpty(t, refused.Detail)
			assert.NotContains(t, refused.Detail, "\n", "an error is one line")
			got = append(got, "! "+refused.Code)
		default:
			require.ErrorIs(t, err, io.EOF)
			_, again := s.Next()
			require.ErrorIs(t, again, io.EOF, "the end stays the end")
			return got
		}
	}
}

const broken = "! " + CodeInvalidJSON

var streamCases = []struct {
	name string
	in   string
	want []string
}{
	{"OneDocument", `{"user_id":1}`, []string{`{"user_id":1}`}},
	{"OneDocumentWithLineEnd", "{\"user_id\":1}\n", []string{`{"user_id":1}`}},
	{"CarriageReturns", "{\"a\":1}\r\n\r\n{\"b\":2}\r\n", []string{`{"a":1}`, `{"b":2}`}},
	{"SeveralLines", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}},
	{"BlankLinesAreSkipped", "\n \t\n{\"a\":1}\n\n\r\n  {\"b\":2}  \n\n", []string{`{"a":1}`, `{"b":2}`}},
	{"DocumentSpansLines", "{\n \"a\"\n:\n1\n\n}\n[\n]\n", []string{"{\n \"a\"\n:\n1\n\n}", "[\n]"}},
	{"Scalars", "1\n-0.5e+3\n\"x\"\ntrue\nfalse\nnull\n12", []string{"1", "-0.5e+3", `"x"`, "true", "false", "null", "12"}},
	{"ByteOrderMark", "\ufeff{\"a\":1}\n\ufeff[]", []string{"\ufeff{\"a\":1}", "\ufeff[]"}},
	{"Escapes", `["\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"]`, []string{`["\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"]`}},
	{"EmptyInput", "", []string{broken}},
	{"BlankInput", " \n\t\r\n", []string{broken}},
	{"Garbage", "hello\n{\"a\":1}\n", []string{broken, `{"a":1}`}},
	{"SecondDocumentOnTheLine", "{\"a\":1} {\"b\":2}\n{\"c\":3}\n", []string{broken, `{"c":3}`}},
	{"CommentAfterDocument", "{\"a\":1} // x\n{\"c\":3}\n", []string{broken, `{"c":3}`}},
	{"SecondDocumentOnTheLastLine", "{\n\"a\":1} {}\n{\"c\":3}\n", []string{broken, `{"c":3}`}},
	{"TruncatedLineSparesItsNeighbour", "{\"a\":1\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"TruncatedAfterComma", "{\"a\":1,\n\n  {\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"TruncatedInString", "{\"a\":\"x\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"TruncatedInLiteral", "{\"a\":tr\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"TruncatedInNumber", "{\"a\":1.\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"TruncatedAfterNumber", "[1\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"TruncatedAtValueTakesOneNeighbour", "{\"a\":\n{\"b\":2}\n{\"c\":3}\n", []string{broken, `{"c":3}`}},
	{"FaultOnLaterLineResumesAfterIt", "{\n\"a\":1,\n]\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"LinesAfterTheFaultAreTriedAlone", "{\"a\":x\n\"b\":2}\n{\"c\":3}\n", []string{broken, broken, `{"c":3}`}},
	{"BraceNotFirstOnItsLineIsNoNewDocument", "{\"a\":1\n1 {\"b\":2}\n{\"c\":3}\n", []string{broken, `{"c":3}`}},
	{"BraceAfterAValueOnALaterLineIsNoNewDocument", "{\"a\":\n1 {\"b\":2}\n{\"c\":3}\n", []string{broken, `{"c":3}`}},
	{"EndsInTheMiddle", "{\"a\":1}\n{\"b\":", []string{`{"a":1}`, broken}},
	{"EndsInString", `"abc`, []string{broken}},
	{"EndsInLiteral", `nul`, []string{broken}},
	{"EndsAfterMinus", `-`, []string{broken}},
	{"EndsAfterByteOrderMark", "\ufeff", []string{broken}},
	{"HalfAByteOrderMark", "\xef\xbb\n{}", []string{broken, "{}"}},
	{"LateByteOrderMark", " \ufeff{}\n{}", []string{broken, "{}"}},
	{"LeadingZero", "01\n[01]\n-01\n0\n", []string{broken, broken, broken, "0"}},
	{"BadNumbers", "1.\n.5\n1e\n1e+\n+1\n--1\n1.5.5\n0x1\n", []string{broken, broken, broken, broken, broken, broken, broken, broken}},
	{"BadLiterals", "tru\nnulL\nNaN\nInfinity\n'a'\n", []string{broken, broken, broken, broken, broken}},
	{"BadEscapes", "\"\\x\"\n\"\\u12g4\"\n\"\\\n{}\n", []string{broken, broken, broken, "{}"}},
	{"ControlCharacterInString", "\"a\x01b\"\n{}\n", []string{broken, "{}"}},
	{"BadContainers", "[1,]\n{\"a\":1,}\n{\"a\"}\n{1:2}\n[1 2]\n{]\n[}\n]\n}\n{,}\n[,]\n",
		[]string{broken, broken, broken, broken, broken, broken, broken, broken, broken, broken, broken}},
	{"InvalidUTF8IsLeftToParse", "\"\xff\"\n", []string{"\"\xff\""}},
}

func TestStreamFrames(t *testing.T) {
	for _, tc := range streamCases {
		t.Run(tc.name, func(t *testing.T) {
			for how, r := range readersOf(tc.in, 1) {
				assert.Equal(t, tc.want, frames(t, NewStream(r, 0)), how)
			}
		})
	}
}

var lineStreamCases = []struct {
	name string
	in   string
	want []string
}{
	{"OneDocument", `{"user_id":1}`, []string{`{"user_id":1}`}},
	{"SeveralLines", "{\"a\":1}\n {\"b\":2} \r\n[3]\n4\n", []string{`{"a":1}`, `{"b":2}`, "[3]", "4"}},
	{"BlankLinesAreSkipped", "\n \t\n{}\n\r\n\n[]\n\n", []string{"{}", "[]"}},
	{"EmptyInput", "", []string{broken}},
	{"BlankInput", " \n\n", []string{broken}},
	{"ByteOrderMarks", "\ufeff{}\n\ufeff[]\n", []string{"\ufeff{}", "\ufeff[]"}},
	{"CutOffAtAValue", "{\"a\":\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"CutOffInAnArray", "[1,\n2\n]\n{}\n", []string{broken, "2", broken, "{}"}},
	{"CutOffAfterAComma", "{\"a\":1,\n\"b\":2}\n{}\n", []string{broken, broken, "{}"}},
	{"CutOffAfterAName", "{\"a\"\n:1}\n{}\n", []string{broken, broken, "{}"}},
	{"CutOffAfterANumber", "[1\n]\n{}\n", []string{broken, broken, "{}"}},
	{"CutOffAfterTheBracket", "{\n}\n{}\n", []string{broken, broken, "{}"}},
	{"CutOffInAString", "{\"a\":\"x\n{\"b\":2}\n", []string{broken, `{"b":2}`}},
	{"CutOffAfterTheMark", "\ufeff\n{}\n", []string{broken, "{}"}},
	{"SecondDocumentOnTheLine", "{} {}\n[]\n", []string{broken, "[]"}},
	{"EndsInTheMiddle", "{}\n{\"a\":", []string{"{}", broken}},
	{"EndsWithANumber", "12", []string{"12"}},
}

func TestLineStreamTakesEachLineAlone(t *testing.T) {
	for _, tc := range lineStreamCases {
		t.Run(tc.name, func(t *testing.T) {
			for how, r := range readersOf(tc.in, 1) {
				assert.Equal(t, tc.want, frames(t, NewLineStream(r, 0)), how)
			}
		})
	}
}

func TestLineStreamSizeLimit(t *testing.T) {
	const limit = 16
	large := "! " + CodeTooLarge
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"ExactlyTheLimit":           {"[1,2,3,4,5,6,7]\n" + `{"a":"34567890"}` + "\n{}", []string{"[1,2,3,4,5,6,7]", `{"a":"34567890"}`, "{}"}},
		"ExactlyTheLimitCutOff":     {"[1,2,3,4,5,6,7,8\n{}", []string{broken, "{}"}},
		"OneMore":                   {`{"a":"345678901"}` + "\n{}", []string{large, "{}"}},
		"OneMoreCutOff":             {"[1,2,3,4,5,6,7,8,\n{}", []string{large, "{}"}},
		"ShortLinesAreNotAddedUp":   {"[\n1,\n2,\n3,\n4,\n5,\n6\n]\n{}", []string{broken, broken, broken, broken, broken, broken, "6", broken, "{}"}},
		"BlanksBeforeTheLineFarOff": {strings.Repeat("\n", 300) + "{}\n" + strings.Repeat(" ", 300) + "\n{}", []string{"{}", large, "{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range readersOf(tc.in, 1) {
				assert.Equal(t, tc.want, frames(t, NewLineStream(r, limit)), how)
			}
		})
	}
}

func TestLineStreamErrorsNameThePlace(t *testing.T) {
	s := NewLineStream(strings.NewReader("{}\n\n{\"a\":\n{\"b\":1e999}\n"), 0)
	_, err := s.Next()
	require.NoError(t, err)
	_, err = s.Next()
	assert.ErrorContains(t, err, "unexpected line end at byte offset 5 of the document, line 3 of the input; expected a value")
	doc, err := s.Next()
	require.NoError(t, err)
	_, err = Parse(doc, builtin(t))
	assert.ErrorContains(t, s.Locate(err, doc), "at byte offset 5 of the document, line 4 of the input")
}

// readersOf returns readers of in that split it in many ways.
func readersOf(in string, seed uint64) map[string]io.Reader {
	return map[string]io.Reader{
		"whole":        strings.NewReader(in),
		"byte by byte": iotest.OneByteReader(strings.NewReader(in)),
		"data and EOF": iotest.DataErrReader(strings.NewReader(in)),
		"random":       &randomReader{strings.NewReader(in), rand.New(rand.NewPCG(seed, 2))},
	}
}

// randomReader returns 0 to 7 bytes at a time.
type randomReader struct {
	r   io.Reader
	rnd *rand.Rand
}

func (r *randomReader) Read(p []byte) (int, error) {
	return r.r.Read(p[:min(len(p), r.rnd.IntN(8))])
}

func TestStreamSizeLimit(t *testing.T) {
	const limit = 16
	large := "! " + CodeTooLarge
	for _, tc := range []struct {
		name string
		in   string
		want []string
	}{
		{"ExactlyTheLimit", `{"a":"34567890"}` + "\n{}", []string{`{"a":"34567890"}`, "{}"}},
		{"ExactlyTheLimitWithBlanksAfter", `{"a":"34567890"}` + "      \n{}", []string{`{"a":"34567890"}`, "{}"}},
		{"OneMore", `{"a":"345678901"}` + "\n{}", []string{large, "{}"}},
		{"NumberOfExactlyTheLimit", "1234567890123456\n{}", []string{"1234567890123456", "{}"}},
		{"NumberOfExactlyTheLimitAtTheEnd", "1234567890123456", []string{"1234567890123456"}},
		{"NumberOfOneMore", "12345678901234567\n{}", []string{large, "{}"}},
		{"NumberOfOneMoreAtTheEnd", "12345678901234567", []string{large}},
		{"LineFarBeyond", `"` + strings.Repeat("x", 300_000) + "\"\n{}", []string{large, "{}"}},
		{"BlanksFarBeyond", strings.Repeat(" ", 300_000) + "\n{}", []string{large, "{}"}},
		{"SeveralLines", "[\n1,\n2,\n3,\n4,\n5,\n6\n]\n{}", []string{large, "6", broken, "{}"}},
		{"BeyondAtALineEnd", "[1,2,3,4,5,6,7,8\n{}\n[]", []string{large, "{}", "[]"}},
		{"BeyondAfterALineEnd", "[1,2,3,4,5,6,7,\n{}\n[]", []string{large, "[]"}},
		{"FaultBeforeTheLimit", "x" + strings.Repeat("y", 300_000) + "\n{}", []string{broken, "{}"}},
		{"TrailingFarBeyond", "{} x" + strings.Repeat("y", 300_000) + "\n{}", []string{broken, "{}"}},
		{"EndsBeyond", strings.Repeat("[", 40), []string{large}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, frames(t, NewStream(strings.NewReader(tc.in), limit)))
			assert.Equal(t, tc.want, frames(t, NewStream(iotest.OneByteReader(strings.NewReader(tc.in)), limit)), "byte by byte")
		})
	}
}

func TestStreamErrorsNameThePlace(t *testing.T) {
	for _, tc := range []struct {
		name   string
		in     string
		skip   int // documents before the error
		offset int64
		detail string
	}{
		{"First", `{user_id: 1}`, 0, 1, `unexpected 'u' at byte offset 1 of the document, line 1 of the input; expected a member name or '}'`},
		{"LaterLine", "{}\n\n{\n\"a\" 1}", 1, 6, `unexpected '1' at byte offset 6 of the document, line 4 of the input; expected ':'`},
		{"AfterError", "x\n[1 1]\n", 1, 3, `unexpected '1' at byte offset 3 of the document, line 2 of the input; expected ',' or the end of the object or array`},
		{"AfterResumeAtBrace", "[1\n{]\n", 1, 1, `unexpected ']' at byte offset 1 of the document, line 2 of the input; expected a member name or '}'`},
		{"LineEndInString", "\"a\n", 0, 2, `unexpected line end at byte offset 2 of the document, line 1 of the input; expected the rest of a string (control characters must be escaped)`},
		{"NotASCII", "é", 0, 0, `unexpected byte 0xc3 at byte offset 0 of the document, line 1 of the input; expected a value`},
		{"Trailing", `{"a":1} {}`, 0, 8, `unexpected '{' at byte offset 8 of the document, line 1 of the input; expected the end of the line`},
		{"Truncated", "{}\n{\"a\"", 1, 4, `the input ends in the middle of a document, at byte offset 4 of the document, line 2 of the input; expected ':'`},
		{"LeadingZero", `{"a":01}`, 0, 6, `unexpected '1' at byte offset 6 of the document, line 1 of the input; expected the end of the number (leading zeros are not allowed)`},
		{"NoDigit", `{"a":-}`, 0, 6, `unexpected '}' at byte offset 6 of the document, line 1 of the input; expected a digit`},
		{"TruncatedAfterNumber", `{"a":12`, 0, 7, `the input ends in the middle of a document, at byte offset 7 of the document, line 1 of the input; expected the rest of a number, ',' or the end of the object or array`},
		{"Empty", "", 0, 0, `empty input`},
		{"TooDeep", strings.Repeat("[", jsondoc.ScanDepthMax+1), 0, jsondoc.ScanDepthMax, `unexpected '[' at byte offset 10000 of the document, line 1 of the input; expected no more than 10000 levels of nesting`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewStream(strings.NewReader(tc.in), 0)
			for range tc.skip {
				_, _ = s.Next()
			}
			_, err := s.Next()
			var refused *Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, tc.detail, refused.Detail)
			assert.Equal(t, tc.offset, refused.Offset)
			assert.Equal(t, CodeInvalidJSON, refused.Code)
		})
	}
}

// A fault that only Parse finds also has a line: its own, wherever the document began.
func TestStreamLocatesWhatParseRefuses(t *testing.T) {
	reg := builtin(t)
	for _, tc := range []struct {
		name, in string
		skip     int
		detail   string
	}{
		{"Surrogate", `{"a": "\ud800"}`, 0, "invalid escape sequence at byte offset 7 of the document, line 1 of the input"},
		{"UTF8", "\n{}\r\n\n{\n\"a\":\n\"\xff\"}\n{}", 1, "invalid UTF-8 at byte offset 8 of the document, line 6 of the input"},
		{"Range", "x\n[1,\n1e400,\n2]", 1, "number beyond the range of a double at byte offset 4 of the document, line 3 of the input"},
		{"BareNumber", "{}\n1e400", 1, "number beyond the range of a double at byte offset 0 of the document, line 2 of the input"},
		{"NoSyntax", "{\n\"user_id\": 0}", 0, "user_id must be an integer from 1 to 4294967295, got 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewStream(iotest.OneByteReader(strings.NewReader(tc.in)), 0)
			for range tc.skip {
				_, _ = s.Next()
			}
			doc, err := s.Next()
			require.NoError(t, err)
			_, plain := Parse(doc, reg)
			var refused *Error
			require.ErrorAs(t, s.Locate(plain, doc), &refused)
			assert.Equal(t, tc.detail, refused.Detail)
			require.ErrorAs(t, plain, &refused)
			assert.NotContains(t, refused.Detail, "of the input", "an Error does not change")
		})
	}
	s := NewStream(strings.NewReader(""), 0)
	assert.Equal(t, io.ErrUnexpectedEOF, s.Locate(io.ErrUnexpectedEOF, nil))
}

func TestStreamHandsOutADocumentWhenItsLineEnds(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	s := NewStream(r, 0)
	for i := range 3 {
		go fmt.Fprintf(w, "{\"user_id\":%d}\n", i)
		doc, err := s.Next() // would block forever if it waited for more
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf(`{"user_id":%d}`, i), string(doc))
	}
}

// A broken document is answered when the line of the fault has ended, however many brackets are
// open. Each of many faults costs only its own line.
func TestStreamReportsAFaultWhenItsLineEnds(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	s := NewStream(r, 0)
	for range 3 {
		go fmt.Fprint(w, "{\"a\": [[[{\"b\": x\n")
		_, err := s.Next() // would block forever if it waited for the brackets
		require.ErrorContains(t, err, "unexpected 'x' at byte offset 15 of the document")
	}
	const faults = 100_000 // which would take minutes if each read all that follows
	assert.Len(t, frames(t, NewStream(strings.NewReader(strings.Repeat("{\"a\": [[[x\n", faults)), 0)), faults)
}

func TestStreamReportsAFailedRead(t *testing.T) {
	boom := errors.New("boom")
	s := NewStream(io.MultiReader(strings.NewReader("{}\n{\"a\":"), iotest.ErrReader(boom)), 0)
	doc, err := s.Next()
	require.NoError(t, err)
	assert.Equal(t, "{}", string(doc))
	var refused *Error
	_, err = s.Next()
	require.ErrorAs(t, err, &refused, "the document cut off gets its answer")
	assert.Contains(t, refused.Detail, "boom")
	_, err = s.Next()
	assert.ErrorIs(t, err, boom)

	_, err = NewStream(stuckReader{}, 0).Next()
	assert.ErrorIs(t, err, io.ErrNoProgress)
}

type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

func TestStreamMemoryIsBounded(t *testing.T) {
	const limit = 1 << 20
	endless := io.MultiReader(strings.NewReader(`{"a":"`), io.LimitReader(xs{}, 100<<20), strings.NewReader("\"}\n{}\n"))
	s := NewStream(endless, limit)
	_, err := s.Next()
	var refused *Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, CodeTooLarge, refused.Code)
	assert.Less(t, cap(s.doc), 4*limit)
	doc, err := s.Next()
	require.NoError(t, err)
	assert.Equal(t, "{}", string(doc))
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// FuzzScanner compares the scanner with the standard library on single lines.
func FuzzScanner(f *testing.F) {
	for _, tc := range streamCases {
		f.Add([]byte(tc.in))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var s jsondoc.Scanner
		taken, ev := s.Run(doc)
		if ev == jsondoc.ScanMore {
			ev = s.Finish()
		}
		rest := bytes.Trim(doc[taken:], " \t\r\n")
		valid := ev == jsondoc.ScanDone && len(rest) == 0
		body := bytes.TrimPrefix(doc, []byte("\ufeff"))
		if s.Depth() < jsondoc.ScanDepthMax {
			assert.Equal(t, json.Valid(bytes.TrimLeft(body, "\n\r\t ")), valid || ev == jsondoc.ScanBlank && json.Valid(rest))
		}
	})
}

// FuzzStream checks on any input that there is an answer, that splits do not matter, and that
// sound lines around a broken one come out.
func FuzzStream(f *testing.F) {
	for _, tc := range streamCases {
		f.Add([]byte(tc.in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		const limit = 64
		whole := frames(t, NewStream(bytes.NewReader(in), limit))
		require.NotEmpty(t, whole)
		split := &randomReader{bytes.NewReader(in), rand.New(rand.NewPCG(seed, 0))}
		require.Equal(t, whole, frames(t, NewStream(split, limit)))

		// One line of any content is between sound documents. The document before it survives.
		// The documents after it also survive, except for the first, which the line may include
		// as a value.
		line := bytes.ReplaceAll(in, []byte("\n"), nil)
		stream := fmt.Sprintf("{\"before\":1}\n%s\n{\"next\":2}\n{\"after\":3}\n{\"last\":4}\n", line)
		got := frames(t, NewStream(strings.NewReader(stream), limit))
		require.GreaterOrEqual(t, len(got), 3)
		assert.Equal(t, `{"before":1}`, got[0])
		assert.Equal(t, []string{`{"after":3}`, `{"last":4}`}, got[len(got)-2:])
	})
}

// FuzzLineStream checks on any input that each line is answered as if it were alone, and that
// splits do not matter.
func FuzzLineStream(f *testing.F) {
	for _, tc := range streamCases {
		f.Add([]byte(tc.in), uint64(1))
	}
	for _, tc := range lineStreamCases {
		f.Add([]byte(tc.in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		const limit = 64
		var want []string
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			if len(bytes.Trim(line, " \t\r")) == 0 && len(line) <= limit {
				continue
			}
			alone := frames(t, NewLineStream(bytes.NewReader(append(bytes.Clone(line), '\n')), limit))
			require.Len(t, alone, 1)
			want = append(want, alone[0])

			// A line that is a whole document is a document in either kind of stream.
			if !strings.HasPrefix(alone[0], "!") {
				require.Equal(t, alone, frames(t, NewStream(bytes.NewReader(line), limit)))
			}
		}
		if len(want) == 0 {
			want = []string{broken}
		}
		require.Equal(t, want, frames(t, NewLineStream(bytes.NewReader(in), limit)))
		split := &randomReader{bytes.NewReader(in), rand.New(rand.NewPCG(seed, 0))}
		require.Equal(t, want, frames(t, NewLineStream(split, limit)))
	})
}

func BenchmarkStream(b *testing.B) {
	line := `{"user_id": 123456, "request_id": "0b1f8f8e-4d0c-4f66-9e8e-1d0c4f669e8e", "param_overrides": {"weight": 0.25}}` + "\n"
	in := strings.Repeat(line, 1000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewStream(strings.NewReader(in), 0)
		for {
			if _, err := s.Next(); err != nil {
				break
			}
		}
	}
}
