package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

const addr = "redis.test:6379"

// newClient returns a client on a network, with small bounds unless o says otherwise.
func newClient(n *network, o Options) *Client {
	o.Addr = addr
	return NewClient(n.h.Loop, n, o)
}

// An outcome records how a call ended.
type outcome struct {
	call *Call
	done int    // invocations of Done
	text string // the replies
	err  error
}

// get returns a call of commands GET prefix:0, GET prefix:1 and so on, and its outcome.
func get(t testing.TB, prefix string, n int) (*Call, *outcome) {
	o := &outcome{call: new(Call)}
	for i := range n {
		o.call.Batch.Cmd("GET", prefix+":"+strconv.Itoa(i))
	}
	o.call.Done = func(c *Call) {
		o.done++
		o.err = c.Err
		o.text = showAll(t, c.Replies)
	}
	return o.call, o
}

// got returns the text of the answers to get.
func got(prefix string, n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf("bulk string %q", prefix+":"+strconv.Itoa(i)))
	}
	return strings.Join(parts, "; ")
}

func (o *outcome) requireReplies(t testing.TB, want string) {
	t.Helper()
	require.Equal(t, 1, o.done)
	require.NoError(t, o.err)
	require.Equal(t, want, o.text)
}

// requireError checks that the call failed once, with an error that is kind, names the server
// and contains some text.
func (o *outcome) requireError(t testing.TB, kind error, text string) {
	t.Helper()
	require.Equal(t, 1, o.done)
	require.ErrorIs(t, o.err, kind)
	require.ErrorContains(t, o.err, addr)
	require.ErrorContains(t, o.err, text)
	require.Empty(t, o.text)
}

// checkInvariants checks what the client promises between two callbacks.
func checkInvariants(t testing.TB, c *Client) {
	t.Helper()
	require.NoError(t, c.CheckInvariants())
}

func TestDoMisusePanics(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	half := &Call{Done: func(*Call) {}}
	half.Batch.Begin(2)
	assert.Panics(t, func() { _ = c.Do(half) }, "unfinished batch")
	n.settle()
}

func TestBatchLargerThanMaxInflightGoesInParts(t *testing.T) {
	for _, mute := range []bool{false, true} {
		for _, size := range []int{9, 16, 17, 63} {
			t.Run(fmt.Sprintf("%d commands, mute %v", size, mute), func(t *testing.T) {
				n := newNetwork(t)
				n.mute = mute
				c := newClient(n, Options{MaxInflight: 8})
				call := &Call{}
				for range 2 { // The second use has the arena of the first.
					fresh, o := get(t, "big", size)
					call.Batch, call.Done = fresh.Batch, fresh.Done
					next, onext := get(t, "next", 3)
					require.NoError(t, c.Do(call))
					require.NoError(t, c.Do(next))
					n.settle()
					for mute && o.done+onext.done < 2 {
						checkInvariants(t, c)
						n.last().answer(1)
						n.settle()
					}
					o.requireReplies(t, got("big", size))
					onext.requireReplies(t, got("next", 3))
				}
				checkInvariants(t, c)
			})
		}
	}
}

// TestMaxReplyBytesFitsATape: a tape's offsets have 32 bits, whatever the options and the call
// say.
func TestMaxReplyBytesFitsATape(t *testing.T) {
	c := newClient(newNetwork(t), Options{MaxReplyBytes: math.MaxInt})
	assert.Equal(t, math.MaxInt32, c.maxReplyBytes(new(Call)))
	assert.Equal(t, math.MaxInt32, c.maxReplyBytes(&Call{MaxReplyBytes: math.MaxInt}))
}

// TestLateOnClose: a call that was sent in part is lost with its connection, however late the
// transport says so. It does not fail for want of a connection.
func TestLateOnClose(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 4, ConnectTimeout: 10 * time.Millisecond})
	call, o := get(t, "a", 10)
	require.NoError(t, c.Do(call))
	n.settle()
	c.conns[0].shut(io.ErrUnexpectedEOF)
	late := n.events
	n.events = nil
	n.advance(20 * time.Millisecond)
	require.Zero(t, o.done)
	n.events = late
	n.settle()
	o.requireError(t, ErrConnectionLost, "unexpected EOF")
}

// TestConnectedAfterGivingUp: an attempt is given up while its outcome is on its way. The
// transport may report that outcome, and then the end.
func TestConnectedAfterGivingUp(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	c.conns[0].shut(io.ErrUnexpectedEOF)
	p := n.last()
	p.connected = true // Then the event of shut is OnClose.
	p.handler.OnConnect(nil)
	require.Zero(t, c.Stats().Ready)
	n.settle()
	o.requireError(t, ErrConnect, "unexpected EOF")
	checkInvariants(t, c)
}

// TestOneBadConnectionOfTwoDoesNotFailCalls: waiting calls fail only when no attempt is left
// that could serve them.
func TestOneBadConnectionOfTwoDoesNotFailCalls(t *testing.T) {
	for _, row := range []struct {
		name  string
		opts  Options
		state connState // of the good connection when the bad one fails
	}{
		{"the other is being dialed", Options{}, connDialing},
		{"the other is being greeted", Options{ClientName: "rankd"}, connGreeting},
		{"the other is busy", Options{MaxInflight: 1}, connReady},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			row.opts.Connections = 2
			c := newClient(n, row.opts)
			good, bad := c.conns[0], c.conns[1]
			bad.backoff.retryAt = clock.Never // makes its attempt by hand, below
			sent, osent := get(t, "sent", 1)
			waiting, owaiting := get(t, "waiting", 1)
			require.NoError(t, c.Do(sent))
			require.NoError(t, c.Do(waiting))
			if row.state != connDialing {
				n.settle()
			}
			n.refuse = errors.New("refused")
			bad.dial(n.h.Loop.Now())
			refusal := n.events[len(n.events)-1]
			n.events = n.events[:len(n.events)-1]
			require.Equal(t, row.state, good.state)
			refusal()
			require.Equal(t, connDown, bad.state)
			n.mute = false
			n.conns[0].answer(len(n.conns[0].answers))
			n.settle()
			osent.requireReplies(t, got("sent", 1))
			owaiting.requireReplies(t, got("waiting", 1))
			assert.Equal(t, 1, c.Stats().Ready)
			checkInvariants(t, c)
		})
	}
}

// TestDoOnAStoppingLoop: there are no timers any more, so the client closes itself.
func TestDoOnAStoppingLoop(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{})
	first, ofirst := get(t, "first", 1)
	second, osecond := get(t, "second", 1)
	done := first.Done
	first.Done = func(call *Call) { done(call); require.NoError(t, c.Do(second)) }
	require.NoError(t, c.Do(first))
	n.settle()
	n.h.OnDrain = func() bool {
		n.last().Close(loop.ErrStopped)
		return len(n.events) > 0
	}
	n.silent = true
	n.h.Stop()
	ofirst.requireError(t, ErrConnectionLost, "loop stopped")
	require.Equal(t, 1, osecond.done)
	require.Error(t, osecond.err)
}

// TestCallsThatFinishAtOnceDoNotStarveTheLoop: a Done starts a call that ends without the
// network, again and again. There is one such call per iteration of the loop.
func TestCallsThatFinishAtOnceDoNotStarveTheLoop(t *testing.T) {
	const iterations = 10
	n := newNetwork(t)
	c := newClient(n, Options{})
	done, going := 0, true
	for range 3 {
		call := &Call{Done: func(call *Call) {
			if done++; going && done < 100*iterations { // This bound ends a run if the client does not.
				require.NoError(t, c.Do(call))
			}
		}}
		require.NoError(t, c.Do(call))
	}
	for i := range iterations {
		n.h.Iterate()
		require.Equal(t, 3*(i+1), done)
	}
	going = false
}

// TestPanicInDoneOfAFailure: the other calls still hear of the failure.
func TestPanicInDoneOfAFailure(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{})
	bad, _ := get(t, "bad", 1)
	bad.Done = func(*Call) { panic("no") }
	good, o := get(t, "good", 1)
	require.NoError(t, c.Do(bad))
	require.NoError(t, c.Do(good))
	n.settle()
	contained := 0
	c.deliverFn = func() {
		defer func() {
			if recover() != nil {
				contained++
			}
		}()
		c.deliverSettled()
	}
	c.Close()
	n.settle()
	require.Equal(t, 1, contained)
	o.requireError(t, ErrClosed, "")
}

func TestDoDoesNotAllocate(t *testing.T) {
	for _, row := range []struct {
		name    string
		every   int // that many calls ask for the same
		replies int
	}{
		{"all different", 1, 80},
		{"pairs ask for the same", 2, 40},
		{"all ask for the same", 8, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, w := newWire(t)
			tmpl := NewTemplate("HGETALL", "user:{id}")
			calls := make([]Call, 8)
			fields := 0
			for i := range calls {
				calls[i].Done = func(call *Call) {
					for _, r := range call.Replies.All() {
						fields += r.Len()
					}
				}
			}
			w.reply = bytes.Repeat(userHash(), row.replies)
			round := func() {
				for i := range calls {
					calls[i].Batch.Reset()
					for id := range int64(10) {
						calls[i].Batch.CmdID(tmpl, int64(i/row.every)*10+id)
					}
					if err := c.Do(&calls[i]); err != nil {
						panic(err)
					}
				}
				w.answer()
			}
			round()
			assert.Zero(t, testing.AllocsPerRun(50, round))
			assert.Equal(t, 52*8*10*10, fields)
		})
	}
}

// A wire is a minimal transport: one connection that swallows what is written and has the
// answer ready.
type wire struct {
	h       *looptest.Harness
	handler transport.Handler
	reply   []byte
	unsent  int
}

// newWire returns a client that is connected to a wire.
func newWire(t testing.TB) (*Client, *wire) {
	w := &wire{h: looptest.New(t), reply: []byte("+PONG\r\n")}
	c := NewClient(w.h.Loop, w, Options{Addr: addr})
	ping := &Call{Done: func(call *Call) { require.NoError(t, call.Err) }}
	ping.Batch.Cmd("PING")
	require.NoError(t, c.Do(ping))
	w.handler.OnConnect(nil)
	w.answer()
	return c, w
}

func (w *wire) Dial(_ string, _ transport.DialOptions, h transport.Handler) transport.Conn {
	w.handler = h
	return w
}
func (w *wire) Write(p []byte) error { w.unsent += len(p); return nil }
func (w *wire) Unsent() int          { return w.unsent }
func (w *wire) Close(error)          {}

// answer ends the iteration, and has the server answer all that has left in it.
func (w *wire) answer() {
	w.h.Iterate()
	w.unsent = 0
	if n := w.handler.OnData(w.reply); n != len(w.reply) {
		panic("not all replies were consumed")
	}
}
