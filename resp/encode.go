package resp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// batchKeepBytes is the largest buffer that Reset keeps. One odd batch of many
// megabytes must not pin its memory in a call that is reused for small ones; 1 MiB
// is some 25,000 HGETALL commands.
const batchKeepBytes = 1 << 20

// A Batch is a reusable buffer of encoded commands, sent together and answered
// together. The zero value is empty and ready. It belongs
// to its owner, who changes it only while no call carries it.
//
// A command with too few or too many arguments is a bug of the caller and panics: on the wire it would shift every
// later reply.
type Batch struct {
	buf    []byte
	starts []int // starts[i] is where command i begins in buf; ascending.
	// missing counts the arguments that the last command still lacks.
	missing int
	// replyBytes is how long a reply may be; 0: not known.
	replyBytes int
}

// Reset empties the batch and keeps its memory, up to 1 MiB of it.
func (b *Batch) Reset() { b.Shrink(batchKeepBytes) }

// Shrink empties the batch and keeps its memory if that is at most so many bytes.
func (b *Batch) Shrink(keepBytes int) {
	if cap(b.buf) > keepBytes {
		b.buf, b.starts = nil, nil
	}
	b.buf, b.starts, b.missing, b.replyBytes = b.buf[:0], b.starts[:0], 0, 0
}

// ExpectReplies sets the caller's estimate of the longest reply to each command, in bytes. A client sends a call
// whose replies may be long in parts. The first part is small, so that other calls need not wait long behind it. Zero
// means unknown.
func (b *Batch) ExpectReplies(bytes int) { b.replyBytes = bytes }

// Len returns the number of commands, which is the number of replies to expect.
func (b *Batch) Len() int { return len(b.starts) }

// Size returns the length of the encoded commands in bytes.
func (b *Batch) Size() int { return len(b.buf) }

// Encoded returns the commands as they go on the wire: a view, valid until the batch
// changes. It is for code that answers a batch without a Client.
func (b *Batch) Encoded() []byte { return b.buf }

// Begin starts a command of nargs arguments, its name included; exactly nargs
// calls of the Arg methods follow.
func (b *Batch) Begin(nargs int) {
	if nargs < 1 {
		panic("resp: a command needs at least its name")
	}
	b.start(nargs)
	b.buf = redcon.AppendArray(b.buf, nargs)
}

// begun begins a command of nargs arguments, which its caller appends encoded.
func (b *Batch) begun(nargs int) {
	b.start(0)
	b.buf = redcon.AppendArray(b.buf, nargs)
}

// ArgString appends an argument, which may hold any bytes.
func (b *Batch) ArgString(s string) {
	b.arg()
	b.buf = redcon.AppendBulkString(b.buf, s)
}

// ArgBytes appends an argument, which may hold any bytes. It is copied.
func (b *Batch) ArgBytes(p []byte) {
	b.arg()
	b.buf = redcon.AppendBulk(b.buf, p)
}

// ArgInt appends n in decimal as one argument.
func (b *Batch) ArgInt(n int64) { b.ArgKey("", n) }

// ArgKey appends one argument made of prefix and id in decimal: "user:" and 42 give user:42. redcon's AppendBulkInt
// would allocate the digits first.
func (b *Batch) ArgKey(prefix string, id int64) {
	b.arg()
	buf := append(b.buf, '$')
	buf = strconv.AppendInt(buf, int64(len(prefix)+decimalLen(id)), 10)
	buf = append(buf, '\r', '\n')
	buf = append(buf, prefix...)
	buf = strconv.AppendInt(buf, id, 10)
	b.buf = append(buf, '\r', '\n')
}

// Cmd appends one whole command.
func (b *Batch) Cmd(args ...string) {
	b.Begin(len(args))
	for _, a := range args {
		b.ArgString(a)
	}
}

// CmdID appends one whole command: t with id in its place.
func (b *Batch) CmdID(t *Template, id int64) {
	b.start(0)
	buf := append(b.buf, t.heads[decimalLen(id)]...)
	buf = strconv.AppendInt(buf, id, 10)
	b.buf = append(buf, t.tail...)
}

// CmdText appends one whole command: t with a text, of any bytes, in place of its number.
func (b *Batch) CmdText(t *Template, text string) {
	b.start(0)
	var buf []byte
	if n := len(text); 0 < n && n < len(t.heads) {
		buf = append(b.buf, t.heads[n]...)
	} else {
		buf = t.head(b.buf, n)
	}
	b.buf = append(append(buf, text...), t.tail...)
}

// start notes where a command begins, and that nargs arguments are to come.
func (b *Batch) start(nargs int) {
	b.MustBeWhole()
	b.starts = append(b.starts, len(b.buf))
	b.missing = nargs
}

// arg accounts for one argument of the last command.
func (b *Batch) arg() {
	if b.missing == 0 {
		panic("resp: more arguments than Begin announced")
	}
	b.missing--
}

// MustBeWhole panics unless the last command is complete. A client calls it before it sends anything.
func (b *Batch) MustBeWhole() {
	if b.missing > 0 {
		panic(fmt.Sprintf("resp: command %d lacks %d arguments", len(b.starts)-1, b.missing))
	}
}

// Copy appends command i of another batch, and expects as long a reply as that batch.
func (b *Batch) Copy(from *Batch, i int) {
	b.start(0)
	b.buf = append(b.buf, from.buf[from.begin(i):from.begin(i+1)]...)
	b.replyBytes = from.replyBytes
}

// Span returns commands from to to-1 as they go on the wire: a view, valid until the batch
// changes.
func (b *Batch) Span(from, to int) []byte { return b.buf[b.begin(from):b.begin(to)] }

// begin returns where command i begins, or the end of the last.
func (b *Batch) begin(i int) int {
	if i < len(b.starts) {
		return b.starts[i]
	}
	return len(b.buf)
}

// idMark is where a Template's id goes.
const idMark = "{id}"

// maxDecimalLen is the length of the longest int64, -9223372036854775808.
const maxDecimalLen = 20

// A Template is a command that differs from call to call in one number only, such as HGETALL user:{id}. Everything
// but the number is encoded once, for each length that the number can have (the length of an argument precedes it on
// the wire). Immutable once built; any goroutine.
type Template struct {
	heads [maxDecimalLen + 1][]byte // heads[n]: all that precedes a number of n characters; heads[0] is unused.
	tail  []byte                    // all that follows the number

	front  []byte // all that precedes the argument with the number
	before string // what precedes the number in that argument
	around int    // how many bytes of the argument are not the number
}

// head appends all that precedes a number, or a text, of n bytes.
func (t *Template) head(dst []byte, n int) []byte {
	dst = append(append(dst, t.front...), '$')
	dst = strconv.AppendInt(dst, int64(t.around+n), 10)
	return append(append(dst, '\r', '\n'), t.before...)
}

// NewTemplate encodes a command in whose arguments the mark {id} occurs exactly once. Otherwise it panics, since that
// is a bug of the caller.
func NewTemplate(args ...string) *Template {
	marked := -1
	for i, a := range args {
		switch n := strings.Count(a, idMark); {
		case n > 1 || n == 1 && marked >= 0:
			panic("resp: " + idMark + " occurs twice in " + strings.Join(args, " "))
		case n == 1:
			marked = i
		}
	}
	if marked < 0 {
		panic("resp: " + idMark + " does not occur in " + strings.Join(args, " "))
	}
	before, after, _ := strings.Cut(args[marked], idMark)
	return newTemplate(args[:marked], before, after, args[marked+1:])
}

// NewKeyTemplate encodes a command whose first argument is a key made of prefix, the number and suffix:
// NewKeyTemplate("HMGET", "user:", "", "age") encodes HMGET user:{id} age. No text is a mark here.
func NewKeyTemplate(command, prefix, suffix string, args ...string) *Template {
	return newTemplate([]string{command}, prefix, suffix, args)
}

// newTemplate encodes a command of these arguments around the one with the number.
func newTemplate(front []string, before, after string, back []string) *Template {
	t := &Template{tail: append([]byte(after), '\r', '\n'), before: before, around: len(before) + len(after)}
	for _, a := range back {
		t.tail = redcon.AppendBulkString(t.tail, a)
	}
	t.front = redcon.AppendArray(nil, len(front)+1+len(back))
	for _, a := range front {
		t.front = redcon.AppendBulkString(t.front, a)
	}
	heads := make([]byte, 0, maxDecimalLen*(len(t.front)+len(before)+len("$100\r\n"))) // one allocation: a key with {user} has a template for each request
	for n := 1; n <= maxDecimalLen; n++ {
		from := len(heads)
		heads = t.head(heads, n)
		t.heads[n] = heads[from:len(heads):len(heads)]
	}
	return t
}

// decimalLen returns the number of characters of n in decimal.
func decimalLen(n int64) int {
	sign := 0
	u := uint64(n)
	if n < 0 {
		sign, u = 1, -u
	}
	digits := 1
	for u >= 10_000 {
		u /= 10_000
		digits += 4
	}
	switch {
	case u >= 1000:
		digits += 3
	case u >= 100:
		digits += 2
	case u >= 10:
		digits++
	}
	return sign + digits
}
