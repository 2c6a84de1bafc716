package session

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/serve"
)

// script is a codec whose lines say what it does: "=text" is a reply, "?" a request that the test answers, "+text" a request
// that waits until Proceed begins it, "." ends the session, "," leaves what follows unread, and "!" ends it with a farewell.
// It checks what a session promises to each codec.
type script struct {
	*Session
	t       *testing.T
	pending []string
	stops   int    // calls of Stop(EOF)
	want    string // that the client gets, "?" for each request
	unread  bool   // what the client has sent may not have been read
}

func (c *script) Begin(data []byte) (consumed int) {
	assert.Equal(c.t, open, c.phase, "no request begins behind the end")
	assert.Empty(c.t, c.pending, "none begins before those that wait")
	line, _, whole := strings.Cut(string(data), "\n")
	if !whole {
		return 0
	}
	switch line[0] {
	case '=':
		c.reply(line[1:])
	case '?':
		c.Request()
		c.want += "?"
	case '+':
		c.pending = append(c.pending, line[1:])
		c.Pend(true)
	case '.':
		c.End()
	case ',':
		c.unread = true
		c.EndUnread()
		return len(data)
	default:
		c.unread = true
		c.EndWith([]byte("bye"))
		return len(data)
	}
	return len(line) + 1
}

func (c *script) reply(text string) {
	c.Reply([]byte(text))
	c.want += text
}

func (c *script) Proceed() {
	for len(c.pending) > 0 && c.MayAsk() {
		c.reply(c.pending[0])
		c.pending = c.pending[1:]
	}
	c.Pend(len(c.pending) > 0)
}

func (c *script) Stop(why Stop) {
	assert.NotEqual(c.t, closed, c.phase)
	if why == EOF {
		c.stops++
		assert.Equal(c.t, 1, c.stops)
		assert.Empty(c.t, c.pending, "all that has come has begun")
		assert.True(c.t, !c.backlog || c.phase >= ending, "all that has come has begun")
	}
}

func (c *script) Fail(*serve.Reply) { c.EndWith(nil) }

func (c *script) Encode(buf []byte, _ *serve.Reply, _ []byte, _ bool) (reply, memory []byte) {
	return append(buf[:0], '?'), buf
}

// far is the connection of a script: it has bytes that its session has not taken, and unsent ones that leave later.
type far struct {
	c        *script
	out      bytes.Buffer
	left     []byte // that the session has not taken
	unsent   int
	resumes  bool // OnData is due
	finishes int  // calls of Finish and FinishWriting
	ended    bool // the client sends no more
	ends     bool // OnEOF of a session that has finished is on the stack
	closed   bool
}

func (f *far) Write(p []byte) error {
	assert.False(f.c.t, f.closed, "nothing leaves behind the end")
	f.out.Write(p)
	f.unsent += len(p)
	return nil
}

func (f *far) Unsent() int { return f.unsent }
func (f *far) Resume()     { f.resumes = true }
func (f *far) AwaitDrain() {}
func (f *far) Finish() {
	if !f.ends { // OnEOF may finish again what has finished.
		assert.False(f.c.t, f.c.unread && f.c.input == reading, "a client that may be sending has time to read")
		f.FinishWriting()
	}
}
func (f *far) FinishWriting() {
	f.finishes++
	assert.Equal(f.c.t, 1, f.finishes, "a session finishes once")
	assert.Zero(f.c.t, f.c.owed, "no reply is owed")
	assert.Nil(f.c.t, f.c.farewell)
	assert.Empty(f.c.t, f.c.pending)
}
func (f *far) Close(error) { f.closed = true }

// eof ends what the client sends, once.
func (f *far) eof() {
	if !f.ended {
		f.ended, f.ends = true, f.finishes > 0
		f.closed = !f.c.OnEOF()
		f.ends = false
	}
}

// data gives the session what has come.
func (f *far) data(more string) {
	f.left = append(f.left, more...)
	if f.resumes = false; len(f.left) > 0 {
		f.left = f.left[f.c.OnData(f.left):]
	}
}

// TestStatesOfASession: random clients, codecs and answers, in any order. The phase and the input of a session never go back,
// replies leave in order, and whatever happens all that began is answered before the connection ends.
func TestStatesOfASession(t *testing.T) {
	w := newWorld(t, Options{MaxPipeline: 4, MaxUnsentBytes: 64})
	for seed := range uint64(2000) {
		w.onLoop(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			f := &far{}
			s := w.Enter(f, "nowhere")
			f.c = &script{Session: s, t: t}
			s.codec = f.c
			s.OnConnect(nil)
			var phases phase
			var inputs input
			check := func() {
				assert.GreaterOrEqual(t, s.phase, phases, "a phase never goes back")
				assert.GreaterOrEqual(t, s.input, inputs, "an input never goes back")
				phases, inputs = s.phase, s.input
			}
			answer := func() {
				var due []*slot
				for p := s.first; p != nil; p = p.next {
					if p.state == awaited {
						due = append(due, p)
					}
				}
				if len(due) > 0 {
					due[rng.IntN(len(due))].answered()
				}
			}
			drained := func() {
				f.unsent = 0
				s.OnDrain()
			}
			for range 1 + rng.IntN(30) {
				switch rng.IntN(8) {
				case 0, 1, 2:
					if !f.ended {
						var text strings.Builder
						for range 1 + rng.IntN(6) {
							fmt.Fprintf(&text, "%c%d\n", "===???++,.!"[rng.IntN(7+rng.IntN(5))], rng.IntN(100))
						}
						f.data(text.String())
					}
				case 3, 4:
					answer()
				case 5:
					drained()
				case 6:
					if f.resumes {
						f.data("")
					}
				default:
					if rng.IntN(3) == 0 {
						f.eof()
					}
					if rng.IntN(3) == 0 {
						s.Revoked()
					}
				}
				check()
				if f.closed {
					break
				}
			}
			whole := rng.IntN(4) > 0 // or the client goes in the middle
			for i := 0; whole && !f.closed && f.finishes == 0 && i < 200; i++ {
				f.eof()
				answer()
				drained()
				if f.resumes {
					f.data("")
				}
				check()
			}
			if whole {
				assert.True(t, f.closed || f.finishes == 1, "seed %d: the session ends: %+v", seed, s.State())
				want := f.c.want
				if strings.HasSuffix(f.out.String(), "bye") {
					want += "bye"
				}
				assert.Equal(t, want, f.out.String(), "seed %d", seed)
			}
			s.OnClose(io.EOF)
			check()
		})
		require.False(t, t.Failed(), "seed %d", seed)
	}
}
