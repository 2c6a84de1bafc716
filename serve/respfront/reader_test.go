package respfront

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// readAll feeds data in pieces with the given ends, as a connection does: each time with the
// bytes that were left.
func readAll(argsMax, bytesMax int, data []byte, ends ...int) (commands []string, err error) {
	commands = []string{}
	r := reader{argsMax: argsMax, bytesMax: bytesMax}
	var argv [][]byte
	start := 0
	for _, end := range append(ends, len(data)) {
		for start < end {
			// A copy, so that the reader cannot look past the bytes that have come.
			args, size, err := r.next(bytes.Clone(data[start:end]), argv)
			if err != nil {
				return commands, err
			}
			if size == 0 {
				break
			}
			start += size
			if len(args) > 0 {
				commands = append(commands, fmt.Sprintf("%q", args))
			}
		}
	}
	return commands, nil
}

func TestReader(t *testing.T) {
	for name, test := range map[string]struct {
		data string
		want []string
		err  string
	}{
		"nothing":                    {"", nil, ""},
		"a command":                  {"*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n", []string{`["PING" "hi"]`}, ""},
		"two":                        {"*1\r\n$4\r\nPING\r\n*1\r\n$1\r\nx\r\n", []string{`["PING"]`, `["x"]`}, ""},
		"an argument of any bytes":   {"*2\r\n$0\r\n\r\n$5\r\na\r\n\x00b\r\n", []string{`["" "a\r\n\x00b"]`}, ""},
		"an empty array":             {"*0\r\n*1\r\n$1\r\nx\r\n", []string{`["x"]`}, ""},
		"half a command":             {"*2\r\n$4\r\nPING\r\n$2\r\nh", nil, ""},
		"a line":                     {"PING hi\r\n", []string{`["PING" "hi"]`}, ""},
		"a line of a terminal":       {"\n  PING  \"a \\n b\" 'c'\n", []string{`["PING" "a \n b" "c"]`}, ""},
		"a line and a command":       {"PING\r\n*1\r\n$1\r\nx\r\n", []string{`["PING"]`, `["x"]`}, ""},
		"an open quote":              {"PING \"hi\r\n", nil, "unbalanced quotes"},
		"a long line":                {strings.Repeat("x", inlineMax), nil, ""},
		"a line that is too long":    {strings.Repeat("x", inlineMax+1), nil, "too big inline request"},
		"a whole line too long":      {strings.Repeat("x", inlineMax) + "\n", nil, "too big inline request"},
		"the protocol of Tile38":     {"$4 PING\r\n", nil, "expected '*'"},
		"no number of arguments":     {"*\r\n", nil, "invalid multibulk length"},
		"a negative one":             {"*-1\r\n", nil, "invalid multibulk length"},
		"a letter":                   {"*1x\r\n", nil, "invalid multibulk length"},
		"no line end":                {"*1\rx", nil, "invalid multibulk length"},
		"an endless number":          {"*0000000001\r\n", nil, "invalid multibulk length"},
		"ten arguments":              {"*10\r\n", nil, ""},
		"eleven":                     {"*11\r\n", nil, errArgsMax.Error()},
		"no bulk string":             {"*1\r\n:1\r\n", nil, "expected '$'"},
		"a negative length":          {"*1\r\n$-2\r\n", nil, "invalid bulk length"},
		"a length that overflows":    {"*1\r\n$18446744073709551617\r\nx\r\n", nil, "invalid bulk length"},
		"no line end of a length":    {"*1\r\n$1\nx", nil, "invalid bulk length"},
		"a wrong end":                {"*1\r\n$1\r\nxyz", nil, "invalid bulk length"},
		"a long command":             {"*1\r\n$1989\r\n" + strings.Repeat("x", 1989) + "\r\n", []string{fmt.Sprintf("[%q]", strings.Repeat("x", 1989))}, ""},
		"a command that is too long": {"*1\r\n$1990\r\n", nil, errBytesMax.Error()},
		"too long with the second":   {"*2\r\n$990\r\n" + strings.Repeat("x", 990) + "\r\n$999\r\n", nil, errBytesMax.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			commands, err := readAll(10, 2000, []byte(test.data))
			assert.Equal(t, append([]string{}, test.want...), commands)
			if test.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.err)
			}
		})
	}
}

// plain reads commands as the protocol describes them, from input that has come whole, without
// limits. It stops at what is not an array of bulk strings. left says that something was left.
func plain(data string) (commands []string, left bool) {
	commands = []string{}
	for data != "" {
		count, rest, ok := plainNumber(data, '*')
		if !ok {
			return commands, true
		}
		args := [][]byte{}
		for range count {
			length, body, ok := plainNumber(rest, '$')
			if !ok || len(body) < length+2 || body[length:length+2] != "\r\n" {
				return commands, true
			}
			args = append(args, []byte(body[:length]))
			rest = body[length+2:]
		}
		if count > 0 {
			commands = append(commands, fmt.Sprintf("%q", args))
		}
		data = rest
	}
	return commands, false
}

func plainNumber(data string, mark byte) (n int, rest string, ok bool) {
	line, rest, found := strings.Cut(data, "\r\n")
	if !found || line == "" || line[0] != mark || len(line) > 1+digitsMax || strings.Trim(line[1:], "0123456789") != "" {
		return 0, "", false
	}
	n, err := strconv.Atoi(line[1:])
	return n, rest, err == nil
}

// FuzzReader reads the commands of an input whole and in pieces. It compares both with the
// commands that a plain parser finds.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n*1\r\n$1\r\nx\r\n", "PING hi\r\nRANK a \"b c\"\r\n", "*1\r\n$-2\r\n", "*-2\r\n", "*0\r\n\r\n\n*3\r\n$1\r\n",
		"*1\r\n$18446744073709551617\r\nx\r\n", "*1\r\n$9223372036854775807\r\n", "$4 PING\r\n", "*2\r\n$1\r\na\rb", "'a' \"\\n\" b\r\n", "*1\r\n$3\r\nabcd\r\n",
	} {
		f.Add([]byte(seed), uint8(10))
	}
	f.Fuzz(func(t *testing.T, data []byte, max uint8) {
		whole, wholeErr := readAll(int(max), 1<<12, data)
		for end := range data {
			commands, err := readAll(int(max), 1<<12, data, end)
			assert.Equal(t, whole, commands, "split at %d", end)
			assert.Equal(t, wholeErr, err, "split at %d", end)
		}
		ends := make([]int, len(data))
		for i := range ends {
			ends[i] = i
		}
		commands, err := readAll(int(max), 1<<12, data, ends...)
		assert.Equal(t, whole, commands, "byte by byte")
		assert.Equal(t, wholeErr, err, "byte by byte")

		expected, left := plain(string(data))
		common := min(len(expected), len(whole))
		assert.Equal(t, expected[:common], whole[:common])
		if wholeErr == nil {
			assert.Len(t, expected, common)
			assert.True(t, left || len(whole) == common)
		}
	})
}
