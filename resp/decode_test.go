package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// show writes a reply as text, which tests compare and people read. It walks the reply by All
// and compares the other methods with that.
func show(t testing.TB, r Reply) string {
	t.Helper()
	switch r.Kind() {
	case Null:
		require.Nil(t, r.Bytes())
		return "null"
	case Array, Push:
		require.Nil(t, r.Bytes())
		var parts []string
		for e := range r.All() {
			require.Equal(t, e, r.At(len(parts)))
			parts = append(parts, show(t, e))
		}
		require.Len(t, parts, r.Len())
		pairs := 0
		for a, b := range r.Pairs() {
			require.Equal(t, r.At(2*pairs), a)
			require.Equal(t, r.At(2*pairs+1), b)
			first, ok := r.Field(string(a.Bytes()))
			require.True(t, ok)
			for before := range pairs + 1 {
				if bytes.Equal(r.At(2*before).Bytes(), a.Bytes()) {
					require.Equal(t, r.At(2*before+1), first)
					break
				}
			}
			pairs++
		}
		require.Equal(t, r.Len()/2, pairs)
		_, ok := r.Field("no such name")
		require.False(t, ok)
		if r.Kind() == Push {
			return "push [" + strings.Join(parts, " ") + "]"
		}
		return "[" + strings.Join(parts, " ") + "]"
	default:
		require.NotNil(t, r.Bytes())
		require.Zero(t, r.Len())
		return fmt.Sprintf("%s %q", r.Kind(), r.Bytes())
	}
}

func showAll(t testing.TB, r Replies) string {
	t.Helper()
	var parts []string
	for i, e := range r.All() {
		require.Equal(t, e, r.At(i))
		parts = append(parts, show(t, e))
	}
	require.Len(t, parts, r.Len())
	return strings.Join(parts, "; ")
}

// reference is the simplest decoder: it reads one whole reply, recursively, without limits. It
// returns the same text as show and the data after the reply, or false.
func reference(data []byte) (text string, rest []byte, ok bool) { return referenceOf(data, false) }

// reference3 does the same for RESP3.
func reference3(data []byte) (text string, rest []byte, ok bool) {
	if len(data) > 0 && data[0] == '>' {
		text, rest, ok = referenceOf(append([]byte("*"), data[1:]...), true)
		return "push " + text, rest, ok && strings.HasPrefix(text, "[") && text != "[]"
	}
	return referenceOf(data, true)
}

func referenceOf(data []byte, resp3 bool) (text string, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(data, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return "", nil, false
	}
	body := string(line[1:])
	integer, err := strconv.ParseInt(body, 10, 64)
	n := int(integer)
	switch line[0] {
	case '+':
		return fmt.Sprintf("simple string %q", body), rest, true
	case '-':
		return fmt.Sprintf("error %q", body), rest, true
	case ':':
		return fmt.Sprintf("integer %q", body), rest, err == nil
	case '$', '*':
		if err != nil || n < -1 {
			return "", nil, false
		}
		if n == -1 {
			return "null", rest, true
		}
	case '_':
		return "null", rest, resp3 && body == ""
	case '#':
		return fmt.Sprintf("simple string %q", body), rest, resp3 && (body == "t" || body == "f")
	case ',':
		_, err := strconv.ParseFloat(body, 64)
		return fmt.Sprintf("bulk string %q", body), rest, resp3 && err == nil
	case '(':
		_, ok := new(big.Int).SetString(body, 10)
		return fmt.Sprintf("bulk string %q", body), rest, resp3 && ok
	case '=', '!':
		format := strings.IndexByte("!   =", line[0])
		if !resp3 || err != nil || n < format || len(rest) < n+2 {
			return "", nil, false
		}
		kind := map[byte]Kind{'=': Bulk, '!': Error}[line[0]]
		return fmt.Sprintf("%s %q", kind, rest[format:n]), rest[n+2:], string(rest[n:n+2]) == "\r\n"
	case '%', '~':
		if !resp3 || err != nil || n < 0 {
			return "", nil, false
		}
		if line[0] == '%' {
			n *= 2
		}
	default:
		return "", nil, false
	}
	if line[0] == '$' {
		if len(rest) < n+2 {
			return "", nil, false
		}
		return fmt.Sprintf("bulk string %q", rest[:n]), rest[n+2:], string(rest[n:n+2]) == "\r\n"
	}
	var parts []string
	for range n {
		var part string
		if part, rest, ok = referenceOf(rest, resp3); !ok {
			return "", nil, false
		}
		parts = append(parts, part)
	}
	return "[" + strings.Join(parts, " ") + "]", rest, true
}

// feed gives data to d up to each of the cuts in turn, and then whole. So does a connection
// that keeps what is not consumed. Each time the bytes are elsewhere in memory, as when a
// buffer grows.
func feed(d *Decoder, data []byte, n int, cuts ...int) (consumed int, done bool, err error) {
	d.Reset(n)
	for _, cut := range append(cuts, len(data)) {
		consumed, done, err = d.Decode(bytes.Clone(data[:cut]))
		if done || err != nil {
			return consumed, done, err
		}
	}
	return consumed, done, err
}

// everyByte cuts after each byte.
func everyByte(data []byte) (cuts []int) {
	for i := range data {
		cuts = append(cuts, i)
	}
	return cuts
}

var wellFormed = []struct {
	name string
	data string
	n    int
	want string
}{
	{"simple string", "+OK\r\n", 1, `simple string "OK"`},
	{"empty simple string", "+\r\n", 1, `simple string ""`},
	{"CR in a simple string", "+a\rb\r\n", 1, `simple string "a\rb"`},
	{"error", "-ERR no\r\n", 1, `error "ERR no"`},
	{"integer", ":42\r\n", 1, `integer "42"`},
	{"negative integer", ":-9223372036854775808\r\n", 1, `integer "-9223372036854775808"`},
	{"bulk string", "$5\r\nhello\r\n", 1, `bulk string "hello"`},
	{"empty bulk string", "$0\r\n\r\n", 1, `bulk string ""`},
	{"bulk string of CR LF", "$4\r\n\r\n\r\n\r\n", 1, `bulk string "\r\n\r\n"`},
	{"null bulk string", "$-1\r\n", 1, "null"},
	{"null array", "*-1\r\n", 1, "null"},
	{"empty array", "*0\r\n", 1, "[]"},
	{"array", "*3\r\n:1\r\n$1\r\na\r\n$-1\r\n", 1, `[integer "1" bulk string "a" null]`},
	{"nested", "*3\r\n*2\r\n:1\r\n*0\r\n*1\r\n*1\r\n+x\r\n:2\r\n", 1,
		`[[integer "1" []] [[simple string "x"]] integer "2"]`},
	{"error in an array", "*2\r\n-ERR a\r\n+b\r\n", 1, `[error "ERR a" simple string "b"]`},
	{"batch", "+a\r\n*1\r\n:1\r\n$1\r\nb\r\n*0\r\n-E\r\n", 5,
		`simple string "a"; [integer "1"]; bulk string "b"; []; error "E"`},
	{"no reply", "", 0, ""},
}

var wellFormed3 = []struct {
	name string
	data string
	n    int
	want string
}{
	{"null", "_\r\n", 1, "null"},
	{"booleans", "#t\r\n#f\r\n", 2, `simple string "t"; simple string "f"`},
	{"doubles", "~4\r\n,1.5\r\n,-2e10\r\n,inf\r\n,nan\r\n", 1, `[bulk string "1.5" bulk string "-2e10" bulk string "inf" bulk string "nan"]`},
	{"big number", "(-3492890328409238509324850943850943825024385\r\n", 1, `bulk string "-3492890328409238509324850943850943825024385"`},
	{"verbatim string", "=9\r\ntxt:a\r\nbc\r\n", 1, `bulk string "a\r\nbc"`},
	{"empty verbatim string", "=4\r\ntxt:\r\n", 1, `bulk string ""`},
	{"error with a length", "!6\r\nERR\r\nx\r\n", 1, `error "ERR\r\nx"`},
	{"map", "%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n_\r\n", 1, `[simple string "a" integer "1" bulk string "b" [null]]`},
	{"empty map and set", "*2\r\n%0\r\n~0\r\n", 1, "[[] []]"},
	{"push", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n+OK\r\n", 2,
		`push [bulk string "invalidate" [bulk string "a"]]; simple string "OK"`},
	{"push of null", ">2\r\n$10\r\ninvalidate\r\n_\r\n", 1, `push [bulk string "invalidate" null]`},
}

func TestDecodeSplitAtEveryByte(t *testing.T) { testSplits(t, NewDecoder) }

// TestDecode3SplitAtEveryByte shows that a decoder of RESP3 also decodes RESP2.
func TestDecode3SplitAtEveryByte(t *testing.T) { testSplits(t, NewDecoder3) }

func testSplits(t *testing.T, newDecoder func(Limits) *Decoder) {
	cases := wellFormed
	if newDecoder(Limits{}).resp3 {
		cases = append(slices.Clone(wellFormed), wellFormed3...)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := newDecoder(Limits{})
			data := []byte(c.data + "+next")
			check := func(cuts ...int) {
				t.Helper()
				consumed, done, err := feed(d, data, c.n, cuts...)
				require.NoError(t, err)
				require.True(t, done)
				require.Equal(t, len(c.data), consumed)
				require.Equal(t, c.want, showAll(t, d.Replies()))
			}
			check()
			check(everyByte(data)...)
			for cut := range data {
				check(cut)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				var cuts []int
				for cut := range data {
					if rng.IntN(3) == 0 {
						cuts = append(cuts, cut)
					}
				}
				check(cuts...)
			}
		})
	}
}

// TestDecodeWaitsForTheLastByte also shows that a batch is never reported early.
func TestDecodeWaitsForTheLastByte(t *testing.T) {
	for _, c := range wellFormed {
		if c.n == 0 {
			continue
		}
		d := NewDecoder(Limits{})
		consumed, done, err := feed(d, []byte(c.data[:len(c.data)-1]), c.n)
		require.NoError(t, err, c.name)
		require.False(t, done, c.name)
		require.Zero(t, consumed, c.name)
	}
}

func TestDecodeRejects(t *testing.T) {
	limits := Limits{MaxDepth: 2, MaxElements: 5, MaxBulkBytes: 10, MaxLineBytes: 8}
	for _, c := range []struct {
		name, data, reason string
		offset             int
	}{
		{"unknown type", "?x\r\n", `unknown type byte '?'`, 0},
		{"RESP3 map", "%1\r\n+a\r\n+b\r\n", `unknown type byte '%'`, 0},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n", `unknown type byte 'H'`, 0},
		{"in the second reply", "+a\r\n!", `unknown type byte '!'`, 4},
		{"600 MB bulk string", "$629145600\r\n", "bulk string of 629145600 bytes; the limit is 10", 0},
		{"one byte too large", "$11\r\n", "bulk string of 11 bytes", 0},
		{"negative bulk string", "$-2\r\n", "bulk string of -2 bytes", 0},
		{"negative array", "*-2\r\n", "array of -2 elements", 0},
		{"array too long", "*6\r\n", "array of 6 elements, after 0 in this reply; the limit is 5", 0},
		{"arrays too long together", "*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n", "array of 2 elements, after 4", 16},
		{"too deep", "*1\r\n*1\r\n*1\r\n", "nested deeper than 2", 8},
		{"endless length", "$0000000000000000000000", "length", 0},
		{"length that overflows to 1", "$18446744073709551617\r\na\r\n", "length", 0},
		{"array length that overflows to 1", "*18446744073709551617\r\n+a\r\n", "length", 0},
		{"no length", "$\r\n", "length", 0},
		{"minus alone", "*-\r\n", "length", 0},
		{"length with a letter", "$1x", "length", 0},
		{"length with a space", "$ 1", "length", 0},
		{"length with a plus", "*+1\r\n", "length", 0},
		{"CR without LF after a length", "$1\rx", "length", 0},
		{"LF without CR after a length", "$1\nx", "length", 0},
		{"bulk string too long for its length", "$1\r\nabc", "does not end there", 0},
		{"bulk string ends in LF alone", "$1\r\na\n\n", "does not end there", 0},
		{"line too long", "+123456789\r\n", "line longer than 8 bytes", 0},
		{"endless line", "+" + strings.Repeat("x", 10), "line longer than 8 bytes", 0},
		{"LF alone", "+OK\n", "LF without CR", 0},
		{"LF at once", "+\n", "LF without CR", 0},
		{"integer with a letter", ":1a\r\n", "integer", 0},
		{"no integer", ":\r\n", "integer", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cuts := range [][]int{nil, everyByte([]byte(c.data))} {
				d := NewDecoder(limits)
				_, done, err := feed(d, []byte(c.data), 9, cuts...)
				require.Error(t, err)
				assert.False(t, done)
				assert.ErrorContains(t, err, c.reason)
				assert.ErrorIs(t, err, ErrProtocol)
				var protocol *ProtocolError
				require.ErrorAs(t, err, &protocol)
				assert.Equal(t, c.offset, protocol.Offset)

				_, done, again := d.Decode([]byte("+OK\r\n"))
				assert.False(t, done)
				assert.Equal(t, err, again, "the error stays")
				_, done, err = feed(d, []byte("+OK\r\n"), 1)
				assert.True(t, done && err == nil, "Reset ends it")
			}
		})
	}
}

func TestDecode3Rejects(t *testing.T) {
	limits := Limits{MaxDepth: 2, MaxElements: 5, MaxBulkBytes: 10, MaxLineBytes: 8}
	for _, c := range []struct{ name, data, reason string }{
		{"attribute", "|1\r\n+a\r\n+b\r\n", "unknown type byte '|'"},
		{"string in chunks", "$?\r\n", "length"},
		{"null with text", "_x\r\n", "value \"x\" of type '_'"},
		{"boolean", "#y\r\n", "of type '#'"},
		{"double", ",1.x\r\n", "of type ','"},
		{"big number", "(1.5\r\n", "of type '('"},
		{"no digits", "(-\r\n", "of type '('"},
		{"line too long", ",0.12345678\r\n", "line longer than 8"},
		{"verbatim string without a format", "=3\r\ntxt\r\n", "string of 3 bytes"},
		{"verbatim string too long", "=11\r\n", "string of 11 bytes; the limit is 10"},
		{"null error", "!-1\r\n", "string of -1 bytes"},
		{"error too long for its length", "!1\r\nabc", "does not end there"},
		{"map too long", "%3\r\n", "array of 6 elements"},
		{"map of a length that overflows", "%9223372036854775\r\n", "array of"},
		{"null map", "%-1\r\n", "array of -2 elements"},
		{"set too long", "~6\r\n", "array of 6 elements"},
		{"too deep", "%1\r\n~1\r\n~1\r\n", "nested deeper than 2"},
		{"push in an array", "*1\r\n>1\r\n", "push of 1 elements inside 1 arrays"},
		{"empty push", ">0\r\n", "push of 0 elements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cuts := range [][]int{nil, everyByte([]byte(c.data))} {
				_, done, err := feed(NewDecoder3(limits), []byte(c.data), 9, cuts...)
				assert.False(t, done)
				assert.ErrorContains(t, err, c.reason)
				assert.ErrorIs(t, err, ErrProtocol)
			}
		})
	}
}

func TestDecodeOverflowingIntegerIsAnError(t *testing.T) {
	_, _, err := feed(NewDecoder(Limits{}), []byte(":9223372036854775808\r\n"), 1)
	assert.ErrorIs(t, err, ErrProtocol)
}

func TestDecodeAcceptsWhatIsAtTheLimits(t *testing.T) {
	d := NewDecoder(Limits{MaxDepth: 2, MaxElements: 5, MaxBulkBytes: 10, MaxLineBytes: 8})
	for _, data := range []string{
		"*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
		"$10\r\n0123456789\r\n",
		"+12345678\r\n",
		"*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
	} {
		// Twice, because the count of elements begins again with each reply.
		for _, cuts := range [][]int{nil, everyByte([]byte(data + data))} {
			_, done, err := feed(d, []byte(data+data), 2, cuts...)
			assert.NoError(t, err, data)
			assert.True(t, done, data)
		}
	}
}

// TestResetForgetsHalfABatch: a batch that never ended has announced and opened something. That
// does not count against the next batch.
func TestResetForgetsHalfABatch(t *testing.T) {
	d := NewDecoder(Limits{MaxDepth: 2, MaxElements: 5})
	for _, data := range []string{"*5\r\n*0\r\n:1\r\n", "*1\r\n*3\r\n:1\r\n", "*5\r\n"} {
		for range 3 {
			_, done, err := feed(d, []byte(data), 1)
			require.NoError(t, err)
			require.False(t, done)
		}
	}
	_, done, err := feed(d, []byte("*1\r\n*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n"), 1)
	require.NoError(t, err)
	require.True(t, done)
	assert.Equal(t, `[[integer "1" integer "2" integer "3" integer "4"]]`, showAll(t, d.Replies()))
}

// TestDecodeAnnouncedLengthsCostNothing: the decoder does not allocate what a header promises.
func TestDecodeAnnouncedLengthsCostNothing(t *testing.T) {
	d := NewDecoder(Limits{})
	_, done, err := feed(d, []byte("*4000000\r\n$33000000\r\nx"), 1)
	require.NoError(t, err)
	require.False(t, done)
	assert.Less(t, cap(d.vals), 100)
}

// TestDecodeInPiecesKeepsWhatItUnderstood feeds a large array in small pieces and checks what
// each adds to the tape. The tape would show if a decoder began again.
func TestDecodeInPiecesKeepsWhatItUnderstood(t *testing.T) {
	const elements = 20_000
	data := redcon.AppendArray(nil, elements)
	for i := range elements {
		data = redcon.AppendBulkString(data, "element "+strconv.Itoa(i))
	}
	d := NewDecoder(Limits{})
	d.Reset(1)
	for end := 64; ; end = min(end+64, len(data)) {
		posBefore, valsBefore := d.pos, len(d.vals)
		n, done, err := d.Decode(data[:end])
		require.NoError(t, err)
		if done {
			require.Equal(t, len(data), n)
			break
		}
		require.GreaterOrEqual(t, d.pos, posBefore)
		require.Greater(t, d.pos, end-64, "an element is shorter than a piece, so all but the last is understood")
		require.LessOrEqual(t, len(d.vals)-valsBefore, 10, "only what is new is put on the tape")
	}
	require.Equal(t, elements, d.Replies().At(0).Len())
	require.Equal(t, "element 19999", string(d.Replies().At(0).At(elements-1).Bytes()))
}

// TestDecodeSkipsUselessWork: the decoder does not look at pieces of a long string that is
// incomplete. It does not search a line again from its start.
func TestDecodeSkipsUselessWork(t *testing.T) {
	d := NewDecoder(Limits{})
	d.Reset(1)
	_, _, err := d.Decode([]byte("$1000\r\nabc"))
	require.NoError(t, err)
	assert.Equal(t, len("$1000\r\n")+1000+2, d.need)

	d.Reset(1)
	_, _, err = d.Decode([]byte("+" + strings.Repeat("x", 99)))
	require.NoError(t, err)
	assert.Equal(t, 100, d.scanned)
	_, done, err := d.Decode([]byte("+\r\n"))
	assert.False(t, done || err != nil, "fewer bytes than before change nothing")
}

// TestDecodeLooksAtALineOnce: the decoder searches only the new piece for the end of the line.
// The test breaks the rules and overwrites the earlier pieces with line ends, which a decoder
// that looks again would find.
func TestDecodeLooksAtALineOnce(t *testing.T) {
	line := []byte("+" + strings.Repeat("x", 300) + "\r\n")
	for _, piece := range []int{1, 7, 100} {
		d := NewDecoder(Limits{})
		d.Reset(1)
		done := false
		for end := piece; !done; end += piece {
			data := bytes.Clone(line[:min(end, len(line))])
			for i := 1; i < end-piece-1; i++ { // The last byte of a piece may be the CR.
				data[i] = '\n'
			}
			var err error
			_, done, err = d.Decode(data)
			require.NoError(t, err)
			require.Equal(t, end >= len(line), done)
		}
		require.Equal(t, len(line)-3, len(d.Replies().At(0).Bytes()))
	}
}

// TestReplyAtGoesStraightToTheElement: in an array without arrays, At looks at no other
// element. The test spoils the others, which would lead a walk over them astray.
func TestReplyAtGoesStraightToTheElement(t *testing.T) {
	d := NewDecoder(Limits{})
	_, done, err := feed(d, []byte("*2\r\n*4\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n"), 1)
	require.True(t, done && err == nil)
	inner := d.Replies().At(0).At(0)
	first := inner.i + 1
	for i := range uint32(3) {
		d.vals[first+i] = value{kind: Array, off: 0}
	}
	assert.Equal(t, Reply{&d.tape, first + 3}, inner.At(3))
	assert.Equal(t, "3", string(inner.At(3).Bytes()))
}

func TestRepliesAreViewsIntoTheData(t *testing.T) {
	d := NewDecoder(Limits{})
	data := []byte("$3\r\nabc\r\n")
	d.Reset(1)
	_, done, err := d.Decode(data)
	require.True(t, done && err == nil)
	got := d.Replies().At(0).Bytes()
	assert.Same(t, &data[4], &got[0])
	assert.Equal(t, 3, cap(got), "an append must not write over what follows")
}

func TestReplyNumbers(t *testing.T) {
	for _, c := range []struct {
		data   string
		int    int64
		parsed int64
		ok     bool
	}{
		{":42\r\n", 42, 42, true},
		{":-9223372036854775808\r\n", -1 << 63, -1 << 63, true},
		{"$3\r\n-17\r\n", 0, -17, true},
		{"+8\r\n", 0, 8, true},
		{"$3\r\n1.5\r\n", 0, 0, false},
		{"$0\r\n\r\n", 0, 0, false},
		{"$-1\r\n", 0, 0, false},
		{"-5\r\n", 0, 0, false},
		{"*1\r\n:5\r\n", 0, 0, false},
	} {
		d := NewDecoder(Limits{})
		_, done, err := feed(d, []byte(c.data), 1)
		require.True(t, done && err == nil, c.data)
		r := d.Replies().At(0)
		assert.Equal(t, c.int, r.Int(), c.data)
		n, ok := r.ParseInt()
		assert.Equal(t, c.ok, ok, c.data)
		if ok {
			assert.Equal(t, c.parsed, n, c.data)
		}
	}
}

func TestParseIntEqualsStrconv(t *testing.T) {
	texts := []string{"", "-", "+", "+1", "--1", "1-", " 1", "1 ", "00", "-0", "0x1", "1_000", "1.0", "a",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"92233720368547758070", "99999999999999999999", "00000000000000000000000001"}
	rng := rand.New(rand.NewPCG(7, 7))
	for range 10_000 {
		texts = append(texts, strconv.FormatInt(rng.Int64()>>rng.IntN(64)*(1-2*rng.Int64N(2)), 10))
	}
	for _, text := range texts {
		want, err := strconv.ParseInt(text, 10, 64)
		got, ok := parseInt([]byte(text))
		require.Equal(t, err == nil, ok, "%q", text)
		if ok {
			require.Equal(t, want, got, "%q", text)
		}
	}
}

func TestReplyErr(t *testing.T) {
	d := NewDecoder(Limits{})
	data := []byte("-WRONGTYPE Operation against a key\r\n+fine\r\n-PLAIN\r\n")
	d.Reset(3)
	_, done, err := d.Decode(data)
	require.True(t, done && err == nil)
	failed := d.Replies().At(0).Err()
	assert.NoError(t, d.Replies().At(1).Err())
	var plain *ServerError
	require.ErrorAs(t, d.Replies().At(2).Err(), &plain)
	assert.Equal(t, "PLAIN", plain.Code())
	clear(data)
	var server *ServerError
	require.True(t, errors.As(failed, &server))
	assert.Equal(t, "WRONGTYPE", server.Code())
	assert.Equal(t, "WRONGTYPE Operation against a key", server.Error(), "it owns its text")
}

func TestReplyAtOutOfRangePanics(t *testing.T) {
	d := NewDecoder(Limits{})
	_, _, err := feed(d, []byte("*1\r\n:1\r\n:2\r\n"), 2)
	require.NoError(t, err)
	assert.Panics(t, func() { d.Replies().At(0).At(1) })
	assert.Panics(t, func() { d.Replies().At(0).At(-1) })
	assert.Panics(t, func() { d.Replies().At(1).At(0) })
	assert.Panics(t, func() { d.Replies().At(2) })
	assert.Zero(t, Replies{}.Len())
	assert.Zero(t, Reply{}.Kind())
}

func TestKindNames(t *testing.T) {
	names := map[string]bool{}
	for k := Kind(0); k <= Push; k++ {
		names[k.String()] = true
	}
	assert.Len(t, names, int(Push)+1, "each has its own")
	assert.Contains(t, names, "bulk string")
}

func TestIterationStopsEarly(t *testing.T) {
	d := NewDecoder(Limits{})
	_, _, err := feed(d, []byte("*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n+x\r\n"), 2)
	require.NoError(t, err)
	seen := 0
	for range d.Replies().All() {
		seen++
		break
	}
	for range d.Replies().At(0).All() {
		seen++
		break
	}
	for range d.Replies().At(0).Pairs() {
		seen++
		break
	}
	assert.Equal(t, 3, seen)
}

func TestGatheredJoinsBatches(t *testing.T) {
	var all Gathered
	var want []string
	d := NewDecoder(Limits{})
	for _, c := range wellFormed {
		_, done, err := feed(d, []byte(c.data), c.n)
		require.True(t, done && err == nil)
		all.Add(d.Replies())
		if c.n > 0 {
			want = append(want, c.want)
		}
	}
	assert.Equal(t, strings.Join(want, "; "), showAll(t, all.Replies()))
	all.Reset()
	assert.Zero(t, all.Replies().Len())
}

func TestDecodingDoesNotAllocate(t *testing.T) {
	data := bytes.Repeat(append(userHash(), "*2\r\n*1\r\n:1\r\n+x\r\n"...), 32)
	d := NewDecoder(Limits{})
	total := 0
	decode := func() {
		d.Reset(64)
		_, _, _ = d.Decode(data[:len(data)/2])
		if _, done, err := d.Decode(data); !done || err != nil {
			panic("not decoded")
		}
		for _, r := range d.Replies().All() {
			for e := range r.All() {
				total += len(e.Bytes())
				n, _ := e.ParseInt()
				total += int(n)
			}
			for field, value := range r.Pairs() {
				total += len(field.Bytes()) + value.Len()
			}
		}
	}
	decode()
	assert.Zero(t, testing.AllocsPerRun(100, decode))
	assert.NotZero(t, total)
}

func TestDecoderShedsAnOddGiant(t *testing.T) {
	d := NewDecoder(Limits{})
	data := bytes.Repeat([]byte("+\r\n"), 2*tapeKeepValues)
	_, done, err := feed(d, data, 2*tapeKeepValues)
	require.True(t, done && err == nil)
	d.Reset(1)
	assert.Zero(t, cap(d.vals))
}

// randomReply appends a random reply with nested arrays, down to depth.
func randomReply(rng *rand.Rand, b []byte, depth int) []byte {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rng.IntN(kinds) {
	case 0:
		return redcon.AppendString(b, strings.Repeat("s", rng.IntN(12)))
	case 1:
		return redcon.AppendError(b, "ERR "+strings.Repeat("e", rng.IntN(12)))
	case 2:
		return redcon.AppendInt(b, rng.Int64()>>rng.IntN(64)-rng.Int64N(100))
	case 3:
		bulk := make([]byte, rng.IntN(20))
		for i := range bulk {
			bulk[i] = "\r\n$*+-:0a"[rng.IntN(9)]
		}
		return redcon.AppendBulk(b, bulk)
	case 4:
		return append(b, []string{"$-1\r\n", "*-1\r\n"}[rng.IntN(2)]...)
	default:
		n := rng.IntN(5)
		b = redcon.AppendArray(b, n)
		for range n {
			b = randomReply(rng, b, depth-1)
		}
		return b
	}
}

func TestDecodeEqualsTheReference(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 1 + rng.IntN(6)
		var data []byte
		for range n {
			data = randomReply(rng, data, 4)
		}
		var want []string
		for rest := data; len(rest) > 0; {
			text, next, ok := reference(rest)
			require.True(t, ok, "seed %d", seed)
			want, rest = append(want, text), next
		}
		d := NewDecoder(Limits{})
		var cuts []int
		for cut := range data {
			if rng.IntN(8) == 0 {
				cuts = append(cuts, cut)
			}
		}
		consumed, done, err := feed(d, data, n, cuts...)
		require.NoError(t, err, "seed %d", seed)
		require.True(t, done, "seed %d", seed)
		require.Equal(t, len(data), consumed, "seed %d", seed)
		require.Equal(t, strings.Join(want, "; "), showAll(t, d.Replies()), "seed %d", seed)
	}
}

// FuzzDecode feeds arbitrary data, whole and in pieces. Both must agree, a result must be what
// the reference finds, and memory must stay in proportion to the input.
func FuzzDecode(f *testing.F) {
	for _, c := range wellFormed {
		f.Add([]byte(c.data), uint8(c.n), uint64(0))
	}
	f.Add([]byte("*1000000\r\n*1000000\r\n$33000000\r\n"), uint8(1), uint64(1))
	f.Add([]byte("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), uint8(1), uint64(2))
	f.Add([]byte("+\n$1\r\na\n\n:--1\r\n"), uint8(3), uint64(3))
	fuzzDecode(f, NewDecoder, reference)
}

// FuzzDecode3 does the same for RESP3.
func FuzzDecode3(f *testing.F) {
	for _, c := range append(slices.Clone(wellFormed), wellFormed3...) {
		f.Add([]byte(c.data), uint8(c.n), uint64(0))
	}
	f.Add([]byte("*1\r\n%1000\r\n>1\r\n"), uint8(2), uint64(3))
	fuzzDecode(f, NewDecoder3, reference3)
}

func fuzzDecode(f *testing.F, newDecoder func(Limits) *Decoder, reference func([]byte) (string, []byte, bool)) {
	f.Fuzz(func(t *testing.T, data []byte, n uint8, seed uint64) {
		limits := Limits{MaxDepth: 8, MaxElements: 1000, MaxBulkBytes: 1000, MaxLineBytes: 100}
		whole, pieces := newDecoder(limits), newDecoder(limits)
		n = n%8 + 1
		size, done, err := feed(whole, data, int(n))
		rng := rand.New(rand.NewPCG(seed, 0))
		var cuts []int
		for cut := range data {
			if rng.IntN(4) == 0 {
				cuts = append(cuts, cut)
			}
		}
		size2, done2, err2 := feed(pieces, data, int(n), cuts...)
		require.Equal(t, done, done2)
		require.Equal(t, size, size2)
		require.Equal(t, err, err2)
		require.LessOrEqual(t, len(whole.vals), len(data)/3+1, "a value has three bytes at least")
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
		}
		if !done {
			require.Zero(t, size)
			return
		}
		got := showAll(t, whole.Replies())
		require.Equal(t, got, showAll(t, pieces.Replies()))
		var want []string
		rest := data[:size]
		for range n {
			text, next, ok := reference(rest)
			require.True(t, ok, "the reference rejects %q", data[:size])
			want, rest = append(want, text), next
		}
		require.Empty(t, rest)
		require.Equal(t, strings.Join(want, "; "), got)
	})
}
