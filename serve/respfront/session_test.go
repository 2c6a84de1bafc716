package respfront

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve/session"
)

// A wire is a connection without a socket. Loop only.
type wire struct {
	session  *session.Session
	in       []byte // left by the session
	out      bytes.Buffer
	unsent   int // as the session is told
	fill     int // unsent grows to that with the next write
	awaited  bool
	resumed  bool
	finished bool
	closed   error
}

func (c *wire) Write(p []byte) error {
	if c.finished || c.closed != nil {
		return transport.ErrClosed
	}
	c.out.Write(p)
	c.unsent = max(c.unsent, c.fill)
	return nil
}

func (c *wire) Unsent() int    { return c.unsent }
func (c *wire) Resume()        { c.resumed = true }
func (c *wire) AwaitDrain()    { c.awaited = true }
func (c *wire) Finish()        { c.finished = true }
func (c *wire) FinishWriting() { c.finished = true }
func (c *wire) Close(reason error) {
	if c.closed == nil {
		c.closed = reason
	}
}

// receive hands bytes to the session. It hands over what the session has left for as long as
// the session asks for that.
func (c *wire) receive(data []byte) {
	c.in = append(c.in, data...)
	for {
		c.resumed = false
		// A copy, so that the session cannot keep what it is lent.
		c.in = c.in[c.session.OnData(bytes.Clone(c.in)):]
		if !c.resumed || len(c.in) == 0 {
			return
		}
	}
}

// wire opens a session without a socket.
func (w *world) wire() *wire {
	c := new(wire)
	w.onLoop(func() {
		c.session = w.Enter(c, "nowhere")
		c.session.OnConnect(nil)
	})
	return c
}

// hangUp ends a session.
func (w *world) hangUp(c *wire) {
	w.onLoop(func() {
		c.closed = io.EOF
		c.session.OnClose(io.EOF)
	})
}

// rest waits until the session has answered everything. It hands over what the session has left
// whenever the session asks for that.
func (w *world) rest(t testing.TB, c *wire) {
	for over := false; !over; {
		w.onLoop(func() {
			if c.resumed {
				c.receive(nil)
			}
			over = !c.resumed && idle(c.session.State())
		})
	}
}

// idle reports whether a session has answered everything.
func idle(s session.State) bool { return s.Owed == 0 && !s.Pending }

// TestUnsentBytesHoldCommandsBack has a socket that takes nothing for a while.
func TestUnsentBytesHoldCommandsBack(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxUnsentBytes: 1000}}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.unsent = 999
		c.receive(commands("ECHO a"))
		assert.Equal(t, "$1\r\na\r\n", c.out.String())
		assert.False(t, c.awaited)
		c.unsent = 1000
		c.receive(commands("ECHO b", "ECHO c"))
		assert.Equal(t, "$1\r\na\r\n", c.out.String())
		assert.True(t, c.awaited)
		c.unsent, c.awaited = 0, false
		c.session.OnDrain()
		assert.True(t, c.resumed)
		c.receive(nil)
		assert.Equal(t, "$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", c.out.String())
		assert.False(t, c.session.State().Held)
		assert.Empty(t, c.in)
	})
	w.hangUp(c)
}

// TestUnsentBytesHoldBackTheRestOfRankMany does the same with one command.
func TestUnsentBytesHoldBackTheRestOfRankMany(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxUnsentBytes: 1000}}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive(commands("RANK.MANY gated 1 2 3 4", "ECHO x"))
		assert.Equal(t, 5, c.session.State().Owed)
	})
	w.hangUp(c)
	c = w.wire()
	w.onLoop(func() {
		c.fill = 1000
		c.receive(commands("RANK.MANY three 1 22 x"))
		c.session.OnEOF()
		assert.True(t, c.awaited)
		assert.False(t, c.finished)
		assert.Equal(t, "*3\r\n", c.out.String())
		c.unsent, c.fill = 0, 0
		c.session.OnDrain()
	})
	w.rest(t, c)
	assert.Contains(t, readable(c.out.String()), answerOfThree+" "+answerOfThree+" -BADREQ ")
	assert.True(t, c.finished)
	w.hangUp(c)
}

// TestUnsentBytesHoldRepliesBack has requests end while the socket takes nothing.
func TestUnsentBytesHoldRepliesBack(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxUnsentBytes: 1000}}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive(commands("RANK gated 1", "RANK gated 2", "ECHO x"))
		c.unsent = 1000
	})
	w.gate.passAll()
	w.await(t, func() bool { return c.session.State().Ready == 3 }, "both requests end")
	w.onLoop(func() {
		assert.Empty(t, c.out.String())
		assert.True(t, c.awaited)
		c.unsent = 0
		c.session.OnDrain()
		assert.Contains(t, readable(c.out.String()), `"candidates":[{"id":1}]} $1 x`)
	})
	w.hangUp(c)
}

// TestTextsThatWaitAreBounded has finished replies wait for a slow request.
func TestTextsThatWaitAreBounded(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxUnsentBytes: 1000}}, nil)
	c := w.wire()
	echo := "ECHO " + strings.Repeat("x", 600)
	w.onLoop(func() {
		c.receive(commands("RANK gated 1", echo, echo, echo, "PING"))
		assert.Equal(t, 3, c.session.State().Owed)
		assert.True(t, c.session.State().Held)
	})
	w.gate.passAll()
	w.rest(t, c)
	assert.Equal(t, 3, strings.Count(c.out.String(), "$600"))
	assert.True(t, strings.HasSuffix(c.out.String(), "+PONG\r\n"))
	assert.Zero(t, c.session.State().Texts)
	w.hangUp(c)
}

// TestEndOfAnIdleClient: the session closes at once, unless bytes are unsent.
func TestEndOfAnIdleClient(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := w.wire()
	w.onLoop(func() {
		c.receive(commands("ECHO a"))
		assert.False(t, c.session.OnEOF())
		c.unsent = 1
		assert.True(t, c.session.OnEOF())
		assert.True(t, c.finished)
	})
	w.hangUp(c)
}

// A conversation is the result of an input. Immutable.
type conversation struct {
	out      string
	finished bool // the session closed after its last reply
	cut      bool // it closed at once: replies to requests that ran then are missing
}

// converse hands data to a session in two pieces.
func (w *world) converse(t testing.TB, data []byte, split int) conversation {
	c := w.wire()
	w.onLoop(func() { c.receive(data[:split]) })
	w.onLoop(func() { c.receive(data[split:]) })
	w.rest(t, c)
	result := conversation{stable(readable(c.out.String())), c.finished, c.closed != nil}
	w.hangUp(c)
	return result
}

// FuzzSession compares the replies to a whole input with those to the same input in two pieces.
func FuzzSession(f *testing.F) {
	for _, lines := range [][]string{
		{"PING", "ECHO hi", "RANK three 1", "NOPE"}, {"RANK.MANY three 1 x 3", "PING"}, {"HELLO 3 SETNAME me", "CLIENT GETNAME", "QUIT", "PING"},
		{"RANK three 1 {\"user_id\":1}", "RANK three 1 {"}, {"COMMAND COUNT", "COMMAND INFO ping", "CONFIG GET x", "RESET"},
		{"AUTH x", "SELECT 0", "PLANS", "RANK private 1", "CLIENT TRACKING ON"},
	} {
		f.Add(commands(lines...))
	}
	f.Add([]byte("PING\r\nRANK three 1\r\n*1\r\n$4\r\nPING\r\nECHO \"a b\"\r\n*1\r\n:1\r\n"))
	f.Add([]byte("RANK three 7 '{\"require\": [\"out\"]}'\r\nPOST / HTTP/1.1\r\n"))
	w := newWorld(f, everybody(f), Options{Options: session.Options{MaxPipeline: 3, MaxRequestBytes: 512, MaxBacklogBytes: 1 << 20}, MaxArguments: 8}, nil)
	w.gate.passAll()
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := w.converse(t, data, 0)
		for split := 1; split < len(data); split++ {
			pieces := w.converse(t, data, split)
			if pieces.cut && whole.cut && (strings.HasPrefix(pieces.out, whole.out) || strings.HasPrefix(whole.out, pieces.out)) {
				continue
			}
			assert.Equal(t, whole, pieces, "split at %d", split)
		}
	})
}

var unstable = regexp.MustCompile(`\$2 id :\d+|:\d+|id=\d+|uptime_in_seconds:\d+|connected_clients:\d+|total_\w+:\d+|\$\d+`)

// stable leaves out what differs each time: the number of the connection, and the counters of
// INFO.
func stable(replies string) string {
	return unstable.ReplaceAllString(replies, "")
}
