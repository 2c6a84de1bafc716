package resp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// commands decodes all commands of a batch with redcon's server-side parser.
func commands(t testing.TB, b *Batch) [][]string {
	t.Helper()
	var all [][]string
	for rest := b.buf; len(rest) > 0; {
		complete, args, _, left, err := redcon.ReadNextCommand(rest, nil)
		require.NoError(t, err)
		require.True(t, complete, "incomplete command: %q", rest)
		var command []string
		for _, a := range args {
			command = append(command, string(a))
		}
		all = append(all, command)
		rest = left
	}
	return all
}

func TestBatchEncodesWhatRedconParses(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *Batch)
		want  [][]string
	}{
		{"no command", func(*Batch) {}, nil},
		{"whole command", func(b *Batch) { b.Cmd("GET", "a b\r\nc") }, [][]string{{"GET", "a b\r\nc"}}},
		{"empty argument", func(b *Batch) { b.Cmd("ECHO", "") }, [][]string{{"ECHO", ""}}},
		{"each kind of argument", func(b *Batch) {
			b.Begin(5)
			b.ArgString("X")
			b.ArgBytes([]byte{0, 255, '\n'})
			b.ArgInt(-7)
			b.ArgKey("user:", 42)
			b.ArgKey("", math.MinInt64)
		}, [][]string{{"X", "\x00\xff\n", "-7", "user:42", "-9223372036854775808"}}},
		{"long argument", func(b *Batch) { b.Cmd("SET", "k", strings.Repeat("v", 1000)) },
			[][]string{{"SET", "k", strings.Repeat("v", 1000)}}},
		{"template alone", func(b *Batch) { b.CmdID(NewTemplate("HGETALL", "user:{id}"), 42) },
			[][]string{{"HGETALL", "user:42"}}},
		{"template in the middle", func(b *Batch) {
			b.CmdID(NewTemplate("LRANGE", "follow:{id}:out", "0", "99"), -123)
		}, [][]string{{"LRANGE", "follow:-123:out", "0", "99"}}},
		{"several", func(b *Batch) {
			b.Cmd("PING")
			b.CmdID(NewTemplate("GET", "{id}"), 0)
			b.Cmd("PING")
		}, [][]string{{"PING"}, {"GET", "0"}, {"PING"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Batch
			b.Cmd("LEFT", "OVER")
			b.Reset()
			c.build(&b)
			assert.Equal(t, c.want, commands(t, &b))
			assert.Equal(t, len(c.want), b.Len())
			assert.Equal(t, len(b.buf), b.Size())
		})
	}
}

func TestTemplateEqualsArguments(t *testing.T) {
	tmpl := NewTemplate("LRANGE", "a{id}b", "0", "9")
	ids := []int64{math.MinInt64, math.MaxInt64, 0}
	for p := int64(1); p < math.MaxInt64/10; p *= 10 {
		ids = append(ids, p, p-1, p+1, -p, 1-p)
	}
	for _, id := range ids {
		var want, got Batch
		want.Cmd("LRANGE", fmt.Sprintf("a%db", id), "0", "9")
		got.CmdID(tmpl, id)
		require.Equal(t, string(want.buf), string(got.buf), "id %d", id)
		require.Equal(t, len(strconv.FormatInt(id, 10)), decimalLen(id), "id %d", id)
	}
}

func TestTemplateOfTextEqualsArguments(t *testing.T) {
	for _, args := range [][]string{{"GET", "{id}"}, {"HMGET", "item:{id}:n", "a", "b"}} {
		tmpl := NewTemplate(args...)
		for n := range 300 {
			text := strings.Repeat("é\n", n)[:n]
			filled := slices.Clone(args)
			filled[1] = strings.Replace(args[1], "{id}", text, 1)
			var want, got Batch
			want.Cmd(filled...)
			got.CmdText(tmpl, text)
			require.Equal(t, string(want.buf), string(got.buf), "length %d", n)
		}
	}
}

func TestSpanCutsBetweenCommands(t *testing.T) {
	var b Batch
	var each []string
	for i := range 5 {
		b.Cmd("ECHO", strings.Repeat("x", i*7))
		var one Batch
		one.Cmd("ECHO", strings.Repeat("x", i*7))
		each = append(each, string(one.buf))
	}
	for from := 0; from <= 5; from++ {
		for to := from; to <= 5; to++ {
			assert.Equal(t, strings.Join(each[from:to], ""), string(b.Span(from, to)), "from %d to %d", from, to)
		}
	}
}

func TestBatchMisusePanics(t *testing.T) {
	for name, misuse := range map[string]func(b *Batch){
		"no arguments":            func(b *Batch) { b.Begin(0) },
		"argument before a begin": func(b *Batch) { b.ArgInt(1) },
		"argument too many":       func(b *Batch) { b.Cmd("PING"); b.ArgInt(1) },
		"argument after template": func(b *Batch) { b.CmdID(NewTemplate("GET", "{id}"), 1); b.ArgInt(1) },
		"begin too early":         func(b *Batch) { b.Begin(2); b.ArgString("GET"); b.Begin(1) },
		"template too early":      func(b *Batch) { b.Begin(2); b.CmdID(NewTemplate("GET", "{id}"), 1) },
		"unfinished":              func(b *Batch) { b.Begin(2); b.MustBeWhole() },
		"template without mark":   func(*Batch) { NewTemplate("GET", "user:") },
		"template with two marks": func(*Batch) { NewTemplate("GET", "{id}:{id}") },
		"marks in two arguments":  func(*Batch) { NewTemplate("MGET", "{id}", "{id}") },
	} {
		t.Run(name, func(t *testing.T) { assert.Panics(t, func() { misuse(new(Batch)) }) })
	}
}

func TestBatchResetShedsAnOddGiant(t *testing.T) {
	var b Batch
	b.Cmd("SET", "k", strings.Repeat("v", 2*batchKeepBytes))
	b.Reset()
	assert.Zero(t, cap(b.buf))
	b.Cmd("PING")
	b.Reset()
	assert.NotZero(t, cap(b.buf))
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	var b Batch
	tmpl := NewTemplate("HGETALL", "user:{id}")
	encode := func() {
		b.Reset()
		for id := range int64(100) {
			b.CmdID(tmpl, id)
			b.Begin(3)
			b.ArgString("HGET")
			b.ArgKey("user:", id*1_000_003)
			b.ArgBytes([]byte("name"))
			b.Cmd("LRANGE", "follow", "0", "9")
		}
	}
	encode()
	assert.Zero(t, testing.AllocsPerRun(100, encode))
}

// FuzzEncode checks that redcon's parser returns any arguments unchanged.
func FuzzEncode(f *testing.F) {
	f.Add("GET", "key", []byte("value"), int64(1), uint8(3))
	f.Add("", "\r\n$5\r\n", []byte{}, int64(math.MinInt64), uint8(1))
	f.Fuzz(func(t *testing.T, name, prefix string, arg []byte, id int64, repeat uint8) {
		var b Batch
		var want [][]string
		for range repeat%5 + 1 {
			b.Begin(4)
			b.ArgString(name)
			b.ArgBytes(arg)
			b.ArgKey(prefix, id)
			b.ArgInt(id)
			digits := strconv.FormatInt(id, 10)
			want = append(want, []string{name, string(arg), prefix + digits, digits})
		}
		require.Equal(t, want, commands(t, &b))
	})
}
