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

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/looptest"
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

// got is the text of the answers to get.
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

// requireError checks that the call failed once with an error of a kind that names the
// server and holds some text.
func (o *outcome) requireError(t testing.TB, kind error, text string) {
	t.Helper()
	require.Equal(t, 1, o.done)
	require.ErrorIs(t, o.err, kind)
	require.ErrorContains(t, o.err, addr)
	require.ErrorContains(t, o.err, text)
	require.Empty(t, o.text)
}

// checkInvariants compares the client's counters and lists with each other.
func checkInvariants(t testing.TB, c *Client) {
	t.Helper()
	inflight, ready := 0, 0
	onTheWire := map[*Call]int{}
	for _, cn := range c.conns {
		if cn.state == connReady {
			ready++
		}
		if cn.state == connDown || cn.state == connDialing {
			require.Zero(t, cn.slots.len)
		}
		for i := range cn.slots.len {
			s := cn.slots.ring[(cn.slots.first+i)&(len(cn.slots.ring)-1)]
			require.Positive(t, s.n)
			inflight += s.n
			if s.wanted() {
				onTheWire[s.call] += s.n
				require.Same(t, cn, s.call.conn)
				require.Contains(t, []*callList{&c.waiting, &c.sent}, s.call.list)
			}
		}
	}
	require.Equal(t, inflight, c.inflight)
	require.LessOrEqual(t, c.inflight, c.opts.MaxInflight)
	require.Equal(t, ready, c.ready)
	for _, l := range []*callList{&c.waiting, &c.sent, &c.finished} {
		n := 0
		for call := l.first; call != nil; call = call.next {
			n++
			require.Same(t, l, call.list)
			require.LessOrEqual(t, call.sent, call.Batch.Len())
			require.Equal(t, call.sent-call.answered, onTheWire[call], "what was sent and not answered has slots")
			if call.conn != nil {
				require.Contains(t, []connState{connReady, connClosing}, call.conn.state)
			}
			switch l {
			case &c.waiting:
				require.Less(t, call.sent, call.Batch.Len())
				require.True(t, call.sent == 0 || call == l.first, "only the first may have been sent in part")
			case &c.sent:
				require.Equal(t, call.sent, call.Batch.Len())
				require.Less(t, call.answered, call.sent)
			}
			if l != &c.finished && !c.closed {
				require.LessOrEqual(t, c.armed, call.by, "the timer is set for this call, or before")
			}
		}
		require.Equal(t, n, l.len)
	}
	if call := c.waiting.first; call != nil && ready > 0 && (call.conn == nil || call.conn.state == connReady) {
		n := c.opts.partSize(call.Batch.Len(), call.Batch.Len()-call.sent)
		require.Greater(t, c.inflight+n, c.opts.MaxInflight, "what fits has been sent")
	}
}

func TestDoDeliversTheRepliesOfABatch(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call := &Call{}
	call.Batch.Cmd("GET", "a")
	call.Batch.Cmd("ERR", "b")
	call.Batch.Cmd("LIST", "c", "d")
	var text string
	inside := true
	call.Done = func(got *Call) {
		require.False(t, inside, "never inside Do")
		require.Same(t, call, got)
		require.NoError(t, got.Err)
		text = showAll(t, got.Replies)
	}
	require.NoError(t, c.Do(call))
	inside = false
	n.settle()
	assert.Equal(t, `bulk string "a"; error "ERR b"; [bulk string "c" bulk string "d"]`, text)
	stats := c.Stats()
	assert.Equal(t, uint64(call.Batch.Size()), stats.BytesSent)
	assert.Equal(t, uint64(len("$1\r\na\r\n-ERR b\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n")), stats.BytesReceived)
	stats.BytesSent, stats.BytesReceived = 0, 0
	assert.Equal(t, Stats{Batches: 1, Commands: 3, RoundTrips: 1, Connects: 1, Ready: 1}, stats)
	assert.Equal(t, addr, c.Addr())
}

func TestCommandsOfAnIterationLeaveInOneWrite(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	warm, _ := get(t, "warm", 1)
	require.NoError(t, c.Do(warm))
	n.settle()
	writes := n.last().writes
	var outcomes []*outcome
	for i := range 10 {
		call, o := get(t, strconv.Itoa(i), 3)
		require.NoError(t, c.Do(call))
		outcomes = append(outcomes, o)
	}
	n.settle()
	for i, o := range outcomes {
		o.requireReplies(t, got(strconv.Itoa(i), 3))
	}
	assert.Equal(t, writes+1, n.last().writes)
	assert.Equal(t, uint64(2), c.Stats().RoundTrips)
	assert.Len(t, n.conns, 1)
}

func TestEmptyBatchIsDoneLaterWithNoReplies(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "x", 0)
	require.NoError(t, c.Do(call))
	require.Zero(t, o.done)
	n.settle()
	o.requireReplies(t, "")
	assert.Empty(t, n.conns, "it needs no connection")
}

func TestCallIsReusedInsideDone(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call := &Call{}
	var texts []string
	call.Batch.Cmd("GET", "0")
	call.Done = func(call *Call) {
		texts = append(texts, showAll(t, call.Replies))
		if len(texts) < 4 {
			call.Batch.Reset()
			call.Batch.Cmd("GET", strconv.Itoa(len(texts)))
			require.NoError(t, c.Do(call))
		}
	}
	require.NoError(t, c.Do(call))
	n.settle()
	assert.Equal(t, []string{`bulk string "0"`, `bulk string "1"`, `bulk string "2"`, `bulk string "3"`}, texts)
}

func TestDoMisusePanics(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, _ := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	assert.Panics(t, func() { _ = c.Do(call) }, "under way")
	half := &Call{Done: func(*Call) {}}
	half.Batch.Begin(2)
	assert.Panics(t, func() { _ = c.Do(half) }, "unfinished batch")
	n.settle()
}

func TestRepliesSplitAtEveryByte(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{})
	for round := range 3 {
		a, oa := get(t, "a", 2)
		b, ob := get(t, "b", 1)
		require.NoError(t, c.Do(a))
		require.NoError(t, c.Do(b))
		n.settle()
		p := n.last()
		all := bytes.Join(p.answers, nil)
		p.answers = nil
		for i := range all {
			require.Zero(t, ob.done, "round %d", round)
			p.arrive(all[i : i+1])
			n.settle()
			checkInvariants(t, c)
		}
		oa.requireReplies(t, got("a", 2))
		ob.requireReplies(t, got("b", 1))
	}
}

func TestMaxInflightMakesCallsWaitInOrder(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 10})
	var order []string
	add := func(name string, size int) {
		call, _ := get(t, name, size)
		done := call.Done
		call.Done = func(call *Call) { done(call); order = append(order, name) }
		require.NoError(t, c.Do(call))
	}
	add("a", 6)
	add("b", 4)
	add("c", 8) // waits, and holds up
	add("d", 1) // this one, although it would fit
	n.settle()
	checkInvariants(t, c)
	p := n.last()
	assert.Equal(t, 10, p.commands)
	assert.Equal(t, Stats{Inflight: 10, Waiting: 2}, Stats{Inflight: c.Stats().Inflight, Waiting: c.Stats().Waiting})
	p.answer(6)
	n.settle()
	assert.Equal(t, 10, p.commands, "4 free slots do not hold c")
	p.answer(4)
	n.settle()
	assert.Equal(t, 19, p.commands, "c and d leave as soon as they fit")
	p.answer(9)
	n.settle()
	assert.Equal(t, []string{"a", "b", "c", "d"}, order)
	assert.Zero(t, c.Stats().Inflight)
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
					for mute && onext.done == 0 {
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

func TestPartsOverlap(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 8})
	call, _ := get(t, "big", 20)
	require.NoError(t, c.Do(call))
	n.settle()
	assert.Equal(t, 8, n.last().commands, "four parts of two")
	n.last().answer(2)
	n.settle()
	assert.Equal(t, 10, n.last().commands, "a part answered is a part sent")
}

func TestPartsBeyondUnreadMaxBytesFail(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{MaxInflight: 4, UnreadMaxBytes: 100})
	call, o := get(t, "0123456789", 20)
	require.NoError(t, c.Do(call))
	n.settle()
	o.requireError(t, ErrTooLarge, "")
	next, onext := get(t, "x", 1)
	require.NoError(t, c.Do(next))
	n.settle()
	onext.requireReplies(t, got("x", 1))
	assert.Len(t, n.conns, 1, "the connection is unharmed")
	checkInvariants(t, c)
}

// TestUnreadMaxBytesFitsATape: its offsets have 32 bits, whatever the options say.
func TestUnreadMaxBytesFitsATape(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{UnreadMaxBytes: math.MaxInt})
	call, _ := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	assert.Equal(t, math.MaxInt32, n.last().opts.UnreadMaxBytes)
	n.settle()
}

func TestQueueFull(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 1, MaxWaiting: 2})
	var outcomes []*outcome
	for i := range 3 {
		call, o := get(t, strconv.Itoa(i), 1)
		outcomes = append(outcomes, o)
		require.NoError(t, c.Do(call))
		n.settle()
	}
	refused, o := get(t, "refused", 1)
	err := c.Do(refused)
	require.ErrorIs(t, err, ErrQueueFull)
	require.ErrorContains(t, err, addr)
	for range 3 {
		n.last().answer(1)
		n.settle()
	}
	for i, o := range outcomes {
		o.requireReplies(t, got(strconv.Itoa(i), 1))
	}
	assert.Zero(t, o.done)
	require.NoError(t, c.Do(refused), "a refused call can be tried again")
	n.settle()
	n.last().answer(1)
	n.settle()
	o.requireReplies(t, got("refused", 1))
}

func TestRequestTimeout(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{RequestTimeout: 100 * time.Millisecond})
	call, o := get(t, "late", 2)
	require.NoError(t, c.Do(call))
	n.settle()
	n.advance(99 * time.Millisecond)
	require.Zero(t, o.done)
	n.advance(time.Millisecond)
	o.requireError(t, ErrTimeout, "not done within 100ms: 2 of 2 replies missing")

	// The call is used again at once; the late replies must not reach it.
	again, oagain := get(t, "again", 2)
	call.Batch, call.Done = again.Batch, again.Done
	require.NoError(t, c.Do(call))
	n.settle()
	p := n.last()
	p.answer(2)
	n.settle()
	require.Zero(t, oagain.done)
	p.answer(2)
	n.settle()
	oagain.requireReplies(t, got("again", 2))
	stats := c.Stats()
	assert.Equal(t, uint64(2), stats.Dropped)
	assert.Equal(t, uint64(1), stats.TimedOut)
	assert.Len(t, n.conns, 1, "the connection lived on")
}

func TestDeadlineComesBeforeRequestTimeout(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	call.Deadline = n.h.Clock.Now().Add(5 * time.Millisecond)
	slow, oslow := get(t, "b", 1)
	require.NoError(t, c.Do(slow))
	require.NoError(t, c.Do(call))
	n.settle()
	n.advance(5 * time.Millisecond)
	o.requireError(t, ErrTimeout, "the deadline of the call has passed")
	require.Zero(t, oslow.done)
	n.last().answer(2)
	n.settle()
	oslow.requireReplies(t, got("b", 1))
}

func TestDeadlineBeyondRequestTimeoutDoesNotExtendIt(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{RequestTimeout: 100 * time.Millisecond})
	call, o := get(t, "a", 1)
	call.Deadline = n.h.Clock.Now().Add(time.Hour)
	require.NoError(t, c.Do(call))
	n.settle()
	n.advance(100 * time.Millisecond)
	o.requireError(t, ErrTimeout, "not done within 100ms")
}

func TestDeadlineThatHasPassedIsRefused(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	call.Deadline = n.h.Clock.Now()
	require.ErrorIs(t, c.Do(call), ErrTimeout)
	n.settle()
	assert.Zero(t, o.done)
	assert.Empty(t, n.conns)
}

func TestWaitingCallTimesOutUnsent(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 1})
	first, _ := get(t, "first", 1)
	second, o := get(t, "second", 1)
	third, othird := get(t, "third", 1)
	second.Deadline = n.h.Clock.Now().Add(10 * time.Millisecond)
	require.NoError(t, c.Do(first))
	require.NoError(t, c.Do(second))
	require.NoError(t, c.Do(third))
	n.settle()
	n.advance(10 * time.Millisecond)
	o.requireError(t, ErrTimeout, "not sent, 1 commands are in flight")
	n.last().answer(1)
	n.settle()
	n.last().answer(1)
	n.settle()
	othird.requireReplies(t, got("third", 1))
	assert.Zero(t, n.executed["second:0"])
}

func TestTimeoutOfABatchInParts(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 4, RequestTimeout: 100 * time.Millisecond})
	big, o := get(t, "big", 10)
	require.NoError(t, c.Do(big))
	n.settle()
	n.last().answer(2)
	n.settle()
	n.advance(100 * time.Millisecond)
	o.requireError(t, ErrTimeout, "8 of 10 replies missing")
	next, onext := get(t, "next", 1)
	require.NoError(t, c.Do(next))
	n.settle()
	require.Equal(t, 6, n.last().commands, "the rest of the batch is not sent")
	n.last().answer(4)
	n.settle()
	n.last().answer(1)
	n.settle()
	onext.requireReplies(t, got("next", 1))
	checkInvariants(t, c)
}

func TestCancel(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 2})
	sent, osent := get(t, "sent", 2)
	waiting, owaiting := get(t, "waiting", 1)
	last, olast := get(t, "last", 1)
	for _, call := range []*Call{sent, waiting, last} {
		require.NoError(t, c.Do(call))
	}
	n.settle()
	assert.True(t, c.Cancel(sent))
	assert.True(t, c.Cancel(waiting))
	assert.False(t, c.Cancel(waiting), "a second time")
	checkInvariants(t, c)
	require.NoError(t, c.Do(sent), "the call can be used again at once")
	n.settle()
	assert.Equal(t, 2, n.last().commands, "the slots are taken until the replies have come")
	for olast.done == 0 || osent.done == 0 {
		n.last().answer(1)
		n.settle()
	}
	olast.requireReplies(t, got("last", 1))
	osent.requireReplies(t, got("sent", 2))
	assert.Zero(t, owaiting.done)
	assert.False(t, c.Cancel(last), "one that is done")
	assert.Equal(t, uint64(2), c.Stats().Dropped)
}

func TestCancelTheCallThatHoldsUpOthers(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 4})
	first, _ := get(t, "first", 2)
	large, _ := get(t, "large", 3)
	small, osmall := get(t, "small", 2)
	for _, call := range []*Call{first, large, small} {
		require.NoError(t, c.Do(call))
	}
	n.settle()
	require.Equal(t, 2, n.last().commands)
	c.Cancel(large)
	n.settle()
	n.last().answer(4)
	n.settle()
	osmall.requireReplies(t, got("small", 2))
}

func TestCancelBeforeTheDeferredDone(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "x", 0)
	require.NoError(t, c.Do(call))
	require.True(t, c.Cancel(call))
	n.settle()
	assert.Zero(t, o.done)
}

func TestConnectionLostFailsWhatWasSentAndRetriesWhatWasNot(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 3})
	answered, oanswered := get(t, "answered", 1)
	sent, osent := get(t, "sent", 2)
	waiting, owaiting := get(t, "waiting", 2)
	for _, call := range []*Call{answered, sent, waiting} {
		require.NoError(t, c.Do(call))
	}
	n.settle()
	n.last().answer(2) // and the first reply of the second call
	n.settle()
	n.last().hangUp()
	n.advance(firstPause)
	oanswered.requireReplies(t, got("answered", 1))
	osent.requireError(t, ErrConnectionLost, "connection lost: EOF")
	assert.ErrorIs(t, osent.err, io.EOF)
	require.Len(t, n.conns, 2, "it reconnects for the call that waits")
	n.last().answer(2)
	n.settle()
	owaiting.requireReplies(t, got("waiting", 2))
	for text, times := range n.executed {
		assert.Equal(t, 1, times, text)
	}
	assert.Equal(t, uint64(1), c.Stats().Reconnects)
	checkInvariants(t, c)
}

func TestConnectionLostBetweenParts(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 4})
	big, o := get(t, "big", 10)
	require.NoError(t, c.Do(big))
	n.settle()
	n.last().answer(1)
	n.settle()
	n.last().hangUp()
	n.settle()
	o.requireError(t, ErrConnectionLost, "EOF")
	assert.Len(t, n.conns, 1, "nobody needs another connection")
	checkInvariants(t, c)
}

// TestConnectionLostWithNothingOnTheWire: all parts sent so far are answered, and bytes
// behind the last answer end the connection before the next part leaves.
func TestConnectionLostWithNothingOnTheWire(t *testing.T) {
	n := newNetwork(t)
	n.greet = func([]string) ([]byte, bool) { return []byte("+OK\r\n+OK\r\n"), true }
	c := newClient(n, Options{MaxInflight: 1})
	call, o := get(t, "a", 3)
	require.NoError(t, c.Do(call))
	n.settle()
	o.requireError(t, ErrConnectionLost, "reply to no command")
	assert.Equal(t, 1, n.last().commands)
	checkInvariants(t, c)
}

// TestFailedAttemptSparesWhatWasSentElsewhere: of two connections one is ending, and then
// the attempt to make the other fails. The call sent in part on the first is not "nothing
// was sent".
func TestFailedAttemptSparesWhatWasSentElsewhere(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{Connections: 2, MaxInflight: 4})
	c.conns[1].pace.retryAt = clock.Never // it makes its attempt by hand, below
	sent, osent := get(t, "sent", 10)
	unsent, ounsent := get(t, "unsent", 1)
	require.NoError(t, c.Do(sent))
	require.NoError(t, c.Do(unsent))
	n.settle()
	n.last().arrive([]byte("garbage"))
	n.refuse = errors.New("refused")
	c.conns[1].dial(n.h.Loop.Now())
	n.settle()
	osent.requireError(t, ErrConnectionLost, "protocol error")
	ounsent.requireError(t, ErrConnect, "refused")
	assert.False(t, errors.Is(osent.err, ErrConnect))
	checkInvariants(t, c)
}

// TestLateOnClose: a call sent in part is lost with its connection, however long the
// transport takes to say so; it does not fail for want of a connection.
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

// TestConnectedAfterGivingUp: a transport may report an outcome that was on its way when the
// attempt was given up, and then the end.
func TestConnectedAfterGivingUp(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	c.conns[0].shut(io.ErrUnexpectedEOF)
	p := n.last()
	p.connected = true // So the event of shut is OnClose.
	p.handler.OnConnect(nil)
	require.Zero(t, c.Stats().Ready)
	n.settle()
	o.requireError(t, ErrConnect, "unexpected EOF")
	checkInvariants(t, c)
}

func TestUnreachableFailsPromptlyWithTheReason(t *testing.T) {
	n := newNetwork(t)
	refused := errors.New("connection refused")
	n.refuse = refused
	c := newClient(n, Options{})
	a, oa := get(t, "a", 1)
	b, ob := get(t, "b", 1)
	require.NoError(t, c.Do(a))
	require.NoError(t, c.Do(b))
	n.settle()
	for _, o := range []*outcome{oa, ob} {
		o.requireError(t, ErrConnect, "redis redis.test:6379: cannot connect: connection refused")
		require.ErrorIs(t, o.err, refused)
	}

	// A call in the pause waits for the next attempt, and fails with that.
	require.NoError(t, c.Do(a))
	n.settle()
	require.Len(t, n.conns, 1)
	n.advance(10 * time.Millisecond)
	n.settle()
	require.Len(t, n.conns, 2)
	require.Equal(t, 2, oa.done)

	// The pauses grow to BackoffMax, and the server is found within that.
	for range 10 {
		require.NoError(t, c.Do(a))
		n.advance(250 * time.Millisecond)
		n.settle()
	}
	require.Equal(t, 12, oa.done)
	n.refuse = nil
	require.NoError(t, c.Do(a))
	n.advance(250 * time.Millisecond)
	n.settle()
	require.Equal(t, 13, oa.done)
	require.NoError(t, oa.err)
	require.Equal(t, got("a", 1), oa.text)
}

// TestServerGoneFailsCallsPromptly: an attempt that fails after the loss of a connection
// fails what waits for it, as the first one does.
func TestServerGoneFailsCallsPromptly(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.settle()
	o.requireReplies(t, got("a", 1))
	n.last().hangUp()
	n.settle()
	n.refuse = errors.New("refused")
	require.NoError(t, c.Do(call))
	n.advance(firstPause)
	require.Len(t, n.conns, 2)
	require.Equal(t, 2, o.done)
	require.ErrorIs(t, o.err, ErrConnect)
	require.ErrorIs(t, o.err, n.refuse)
}

func TestConnectTimeout(t *testing.T) {
	for _, c := range []struct {
		name  string
		setUp func(n *network)
	}{
		{"no answer to the dial", func(n *network) { n.silent = true }},
		{"no answer to the greeting", func(n *network) { n.mute = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			c.setUp(n)
			client := newClient(n, Options{
				ClientName: "rankd", ConnectTimeout: 300 * time.Millisecond, RequestTimeout: time.Hour,
			})
			call, o := get(t, "a", 1)
			require.NoError(t, client.Do(call))
			n.settle()
			n.advance(299 * time.Millisecond)
			require.Zero(t, o.done)
			n.advance(time.Millisecond)
			n.settle()
			o.requireError(t, ErrConnect, "connect timeout")
			require.ErrorIs(t, o.err, transport.ErrConnectTimeout)

			n.silent, n.mute = false, false
			require.NoError(t, client.Do(call))
			n.advance(10 * time.Millisecond)
			n.settle()
			require.Equal(t, 2, o.done)
			require.NoError(t, o.err)
		})
	}
}

// TestWaitingForAConnectionIsBounded: a call that comes in the middle of an attempt and is
// held up by the next pause still fails ConnectTimeout after its own start.
func TestWaitingForAConnectionIsBounded(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{
		ClientName: "x", ConnectTimeout: 300 * time.Millisecond, RequestTimeout: time.Hour,
		BackoffMin: 200 * time.Millisecond, BackoffMax: 200 * time.Millisecond,
	})
	first, ofirst := get(t, "first", 1)
	require.NoError(t, c.Do(first))
	n.advance(300 * time.Millisecond)
	n.settle()
	require.Equal(t, 1, ofirst.done)
	second, o := get(t, "second", 1)
	require.NoError(t, c.Do(second)) // waits for the pause, then for an attempt that hangs too
	n.advance(299 * time.Millisecond)
	n.settle()
	require.Zero(t, o.done)
	n.advance(time.Millisecond)
	n.settle()
	o.requireError(t, ErrConnect, "connect timeout")
}

// TestWaitForAConnectionEndsWithinAPause: a pause may be longer than ConnectTimeout, and no
// other timer is due before its end.
func TestWaitForAConnectionEndsWithinAPause(t *testing.T) {
	open := func(n *network) *Client {
		return newClient(n, Options{
			MaxInflight: 1, ConnectTimeout: 100 * time.Millisecond, BackoffMin: time.Minute, BackoffMax: time.Minute,
			RequestTimeout: time.Hour, StallTimeout: time.Hour,
		})
	}
	endsInTime := func(n *network, o *outcome, reason string) {
		t.Helper()
		n.advance(99 * time.Millisecond)
		require.Zero(t, o.done)
		n.advance(time.Millisecond)
		o.requireError(t, ErrConnect, reason)
	}
	t.Run("a call that comes in the pause", func(t *testing.T) {
		n := newNetwork(t)
		n.refuse = errors.New("refused")
		c := open(n)
		first, ofirst := get(t, "first", 1)
		require.NoError(t, c.Do(first))
		n.settle()
		ofirst.requireError(t, ErrConnect, "refused")
		n.advance(time.Second) // The timer of the attempt is over.
		call, o := get(t, "a", 1)
		require.NoError(t, c.Do(call))
		endsInTime(n, o, "refused")
	})
	t.Run("a call that waits when the connection is lost", func(t *testing.T) {
		n := newNetwork(t)
		n.mute = true
		c := open(n)
		sent, osent := get(t, "sent", 1)
		waiting, owaiting := get(t, "waiting", 1)
		require.NoError(t, c.Do(sent))
		require.NoError(t, c.Do(waiting))
		n.advance(time.Second)
		n.last().hangUp()
		n.settle()
		osent.requireError(t, ErrConnectionLost, "EOF")
		endsInTime(n, owaiting, "EOF")
	})
}

// TestConnectTimeoutHoldsWithoutCalls: the attempt outlives the call that made it.
func TestConnectTimeoutHoldsWithoutCalls(t *testing.T) {
	n := newNetwork(t)
	n.mute = true // The greeting has no answer; a transport does not time that.
	c := newClient(n, Options{ClientName: "rankd", ConnectTimeout: 300 * time.Millisecond})
	call, o := get(t, "a", 1)
	call.Deadline = n.h.Clock.Now().Add(50 * time.Millisecond)
	require.NoError(t, c.Do(call))
	n.advance(299 * time.Millisecond)
	o.requireError(t, ErrTimeout, "")
	require.False(t, n.last().closed)
	n.advance(time.Millisecond)
	require.True(t, n.last().closed)
}

// TestConnectTimeoutHoldsBesideAReadyConnection: no call waits for the attempt, and the timers
// of those under way are far off.
func TestConnectTimeoutHoldsBesideAReadyConnection(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{
		ClientName: "rankd", Connections: 2, ConnectTimeout: 300 * time.Millisecond, RequestTimeout: time.Hour,
	})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.advance(time.Second)
	require.Equal(t, 2, c.Stats().Ready)
	n.last().hangUp()
	n.advance(firstPause)
	n.mute = true
	require.NoError(t, c.Do(call))
	n.advance(299 * time.Millisecond)
	require.Len(t, n.conns, 3)
	require.False(t, n.last().closed)
	n.advance(time.Millisecond)
	require.True(t, n.last().closed)
	require.Equal(t, 1, c.Stats().Ready)
	require.Equal(t, 1, o.done)
}

func TestTimeoutWhileNotConnectedSaysWhy(t *testing.T) {
	n := newNetwork(t)
	n.refuse = errors.New("connection refused")
	c := newClient(n, Options{BackoffMin: 200 * time.Millisecond})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.settle()
	call.Deadline = n.h.Clock.Now().Add(20 * time.Millisecond)
	require.NoError(t, c.Do(call))
	n.advance(20 * time.Millisecond)
	require.Equal(t, 2, o.done)
	require.ErrorIs(t, o.err, ErrTimeout)
	require.ErrorContains(t, o.err, "not connected: connection refused")
}

func TestGreeting(t *testing.T) {
	answerTo := func(command, answer string) func([]string) ([]byte, bool) {
		return func(args []string) ([]byte, bool) {
			return []byte("-" + answer + "\r\n"), answer != "" && strings.HasPrefix(strings.Join(args, " "), command)
		}
	}
	for _, c := range []struct {
		name     string
		opts     Options
		greet    func([]string) ([]byte, bool)
		commands []string // that reach the server
		fails    string
	}{
		{"nothing to say", Options{}, nil, nil, ""},
		{"all", Options{Username: "u", Password: "p", Database: 3, ClientName: "n"}, nil,
			[]string{"AUTH u p", "SELECT 3", "CLIENT SETNAME n"}, ""},
		{"default user", Options{Password: "p"}, nil, []string{"AUTH p"}, ""},
		{"username without password", Options{Username: "u"}, nil, nil, ""},
		{"wrong password", Options{Password: "p", ClientName: "n"}, answerTo("AUTH", "WRONGPASS invalid"),
			[]string{"AUTH p", "CLIENT SETNAME n"}, "cannot connect: WRONGPASS invalid"},
		{"no such database", Options{Database: 99}, answerTo("SELECT", "ERR DB index is out of range"),
			[]string{"SELECT 99"}, "cannot connect: ERR DB index is out of range"},
		{"name unknown", Options{ClientName: "n"}, answerTo("CLIENT", "ERR unknown command 'CLIENT'"),
			[]string{"CLIENT SETNAME n"}, ""},
		{"password wanted", Options{ClientName: "n"}, answerTo("CLIENT", "NOAUTH Authentication required."),
			[]string{"CLIENT SETNAME n"}, "cannot connect: NOAUTH Authentication required."},
		{"server full", Options{ClientName: "n"}, answerTo("CLIENT", "ERR max number of clients reached"),
			[]string{"CLIENT SETNAME n"}, "cannot connect: ERR max number of clients reached"},
		{"garbage", Options{ClientName: "n"}, func([]string) ([]byte, bool) { return []byte("HTTP/1.1 400\r\n"), true },
			[]string{"CLIENT SETNAME n"}, "protocol error at byte 0 of the reply"},
		{"an answer too many", Options{ClientName: "n"},
			func([]string) ([]byte, bool) { return []byte("+OK\r\n+OK\r\n"), true },
			[]string{"CLIENT SETNAME n"}, "reply to no command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			var commands []string
			n.greet = func(args []string) ([]byte, bool) {
				if args[0] == "GET" {
					return nil, false
				}
				commands = append(commands, strings.Join(args, " "))
				if c.greet == nil {
					return nil, false
				}
				return c.greet(args)
			}
			client := newClient(n, c.opts)
			call, o := get(t, "a", 1)
			require.NoError(t, client.Do(call))
			n.settle()
			assert.Equal(t, c.commands, commands)
			if c.fails == "" {
				o.requireReplies(t, got("a", 1))
				return
			}
			o.requireError(t, ErrConnect, c.fails)
			assert.Zero(t, n.executed["a:0"], "no command before the greeting is answered")
		})
	}
}

func TestStalledConnectionIsReplaced(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{RequestTimeout: 100 * time.Millisecond, MaxInflight: 1})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.settle()
	n.advance(100 * time.Millisecond)
	o.requireError(t, ErrTimeout, "")
	n.advance(99 * time.Millisecond)
	n.settle()
	require.False(t, n.last().closed)
	require.NoError(t, c.Do(call)) // waits for the slot that the hung server holds
	n.advance(time.Millisecond)
	n.settle()
	require.True(t, n.conns[0].closed, "the command is twice as old as a call can be")
	n.mute = false
	n.advance(10 * time.Millisecond) // It never answered, so there is a pause.
	n.settle()
	require.Len(t, n.conns, 2)
	require.Equal(t, 2, o.done)
	require.NoError(t, o.err)
	checkInvariants(t, c)
}

// TestStallTimeoutBeforeTheTimeoutOfTheCall: it counts from the first command in flight, and
// no call's own timer is due at its end.
func TestStallTimeoutBeforeTheTimeoutOfTheCall(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{RequestTimeout: time.Hour, StallTimeout: 100 * time.Millisecond})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.advance(10 * time.Second) // The timer of the attempt to connect is over.
	o.requireReplies(t, got("a", 1))
	n.mute = true
	require.NoError(t, c.Do(call))
	n.advance(99 * time.Millisecond)
	require.Equal(t, 1, o.done)
	n.advance(time.Millisecond)
	require.Equal(t, 2, o.done)
	require.ErrorIs(t, o.err, ErrConnectionLost)
	require.ErrorIs(t, o.err, errStalled)
}

func TestBytesThatAnswerNothingEndTheConnection(t *testing.T) {
	for _, c := range []struct{ name, bytes, reason string }{
		{"garbage", "!?\r\n", "unknown type byte"},
		{"a reply too many", "$3\r\na:0\r\n+OK\r\n", "reply to no command"},
		{"part of a reply too many", "$3\r\na:0\r\n+", "reply to no command"},
		{"too large", "$600000000\r\n", "bulk string of 600000000 bytes; the limit is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.greet = func(args []string) ([]byte, bool) { return []byte(c.bytes), args[1] == "a:0" }
			client := newClient(n, Options{})
			call, o := get(t, "a", 1)
			next, onext := get(t, "next", 1)
			done := call.Done
			call.Done = func(call *Call) {
				done(call)
				// What is read already cannot be the answer to this.
				require.NoError(t, client.Do(next))
			}
			require.NoError(t, client.Do(call))
			n.settle()
			n.advance(time.Second)
			n.settle()
			require.Equal(t, 1, o.done)
			require.Equal(t, 1, onext.done)
			if strings.HasPrefix(c.bytes, "$3") {
				require.NoError(t, o.err)
				onext.requireError(t, ErrProtocol, c.reason)
				require.ErrorIs(t, onext.err, ErrConnectionLost)
			} else {
				o.requireError(t, ErrProtocol, c.reason)
				require.ErrorIs(t, o.err, ErrConnectionLost)
				onext.requireReplies(t, got("next", 1))
			}
			assert.True(t, n.conns[0].closed)
			checkInvariants(t, client)
		})
	}
}

func TestUnsolicitedBytesWhileIdleEndTheConnection(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.settle()
	n.last().arrive([]byte("+hello\r\n"))
	n.settle()
	require.True(t, n.last().closed)
	require.NoError(t, c.Do(call))
	n.advance(firstPause)
	require.Equal(t, 2, o.done)
	require.Equal(t, got("a", 1), o.text)
	require.Len(t, n.conns, 2)
}

func TestUnsentLimitFailsTheCall(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{UnsentMaxBytes: 200})
	warm, _ := get(t, "w", 1)
	require.NoError(t, c.Do(warm))
	n.settle()
	large, o := get(t, strings.Repeat("x", 300), 1)
	require.NoError(t, c.Do(large))
	n.settle()
	o.requireError(t, ErrConnectionLost, "too many unsent bytes")
	require.ErrorIs(t, o.err, transport.ErrUnsentLimit)
	assert.Equal(t, 1, n.conns[0].commands)
	checkInvariants(t, c)
}

// TestWriteToAConnectionThatIsGone: between the end of a connection and OnClose a call
// that was not sent yet waits for the next connection.
func TestWriteToAConnectionThatIsGone(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	n.settle()
	n.last().hangUp()
	require.NoError(t, c.Do(call))
	n.advance(firstPause)
	require.Equal(t, 2, o.done)
	require.NoError(t, o.err)
	require.Len(t, n.conns, 2)
}

func TestConnectionsShareTheLoad(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{Connections: 3, MaxInflight: 100})
	var outcomes []*outcome
	for i := range 30 {
		call, o := get(t, strconv.Itoa(i), 1)
		require.NoError(t, c.Do(call))
		outcomes = append(outcomes, o)
	}
	n.settle()
	require.Len(t, n.conns, 3)
	// The first to be ready takes what waits; the next ones go to the others.
	for i := range 30 {
		call, o := get(t, strconv.Itoa(30+i), 1)
		require.NoError(t, c.Do(call))
		outcomes = append(outcomes, o)
	}
	n.settle()
	commands := 0
	for _, p := range n.conns {
		assert.Positive(t, p.commands)
		commands += p.commands
	}
	assert.Equal(t, 60, commands)

	// One of them ends: its calls fail, the others go on.
	lost := n.conns[1].commands
	n.conns[1].hangUp()
	n.settle()
	checkInvariants(t, c)
	for _, p := range n.conns {
		if !p.closed {
			p.answer(len(p.answers))
		}
	}
	n.settle()
	failed := 0
	for _, o := range outcomes {
		require.Equal(t, 1, o.done)
		if o.err != nil {
			require.ErrorIs(t, o.err, ErrConnectionLost)
			failed++
		}
	}
	assert.Equal(t, lost, failed)
}

// TestOneBadConnectionOfTwoDoesNotFailCalls: what waits is failed only when no attempt is
// left that could serve it.
func TestOneBadConnectionOfTwoDoesNotFailCalls(t *testing.T) {
	for _, row := range []struct {
		name  string
		opts  Options
		state connState // of the good one when the bad one fails
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
			bad.pace.retryAt = clock.Never // makes its attempt by hand, below
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

func TestCloseFailsEverythingLater(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 1})
	sent, osent := get(t, "sent", 1)
	waiting, owaiting := get(t, "waiting", 1)
	cancelled, ocancelled := get(t, "cancelled", 1)
	for _, call := range []*Call{sent, waiting, cancelled} {
		require.NoError(t, c.Do(call))
	}
	n.settle()
	c.Close()
	c.Close()
	require.Zero(t, osent.done+owaiting.done, "never inside Close")
	require.True(t, c.Cancel(cancelled))
	require.ErrorIs(t, c.Do(cancelled), ErrClosed)
	n.settle()
	osent.requireError(t, ErrClosed, "client closed")
	owaiting.requireError(t, ErrClosed, "client closed")
	assert.Zero(t, ocancelled.done)
	assert.True(t, n.last().closed)
	n.advance(time.Hour)
	n.settle()
	assert.Len(t, n.conns, 1)
	checkInvariants(t, c)
}

func TestCloseWhileConnecting(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	require.NoError(t, c.Do(call))
	c.Close()
	n.settle()
	o.requireError(t, ErrClosed, "")
	assert.True(t, n.last().closed)
}

// TestDoOnAStoppingLoop: nothing can be timed any more, so the client closes itself.
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

func TestCloseInsideDone(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{})
	a, oa := get(t, "a", 1)
	b, ob := get(t, "b", 1)
	done := a.Done
	a.Done = func(call *Call) { c.Close(); done(call) }
	require.NoError(t, c.Do(a))
	require.NoError(t, c.Do(b))
	n.settle()
	n.last().answer(2)
	n.settle()
	oa.requireReplies(t, got("a", 1))
	ob.requireError(t, ErrClosed, "")
}

// TestPanicInDone: the host contains the panic, but what the client would have said about
// consumed bytes is lost with it. The connection is not trusted any more.
func TestPanicInDone(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	bad, _ := get(t, "bad", 1)
	bad.Done = func(*Call) { panic("no") }
	require.NoError(t, c.Do(bad))
	n.h.Settle()
	require.Panics(t, func() { n.settle() })
	next, o := get(t, "next", 1)
	require.NoError(t, c.Do(next))
	n.settle()
	o.requireError(t, ErrConnectionLost, "panicked")
	require.NoError(t, c.Do(next))
	n.advance(firstPause)
	require.Equal(t, 2, o.done)
	require.Equal(t, got("next", 1), o.text)
	checkInvariants(t, c)
}

// TestCallsThatFinishAtOnceDoNotStarveTheLoop: a Done that starts a call which ends without
// the network, again and again, has one turn of the loop for each.
func TestCallsThatFinishAtOnceDoNotStarveTheLoop(t *testing.T) {
	const turns = 10
	n := newNetwork(t)
	c := newClient(n, Options{})
	done, going := 0, true
	for range 3 {
		call := &Call{Done: func(call *Call) {
			if done++; going && done < 100*turns { // An unbounded run ends too.
				require.NoError(t, c.Do(call))
			}
		}}
		require.NoError(t, c.Do(call))
	}
	for turn := range turns {
		n.h.Iterate()
		require.Equal(t, 3*(turn+1), done)
	}
	going = false
}

// TestDoneCancelsACallThatHasFinished: it may be the last of the run.
func TestDoneCancelsACallThatHasFinished(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	first, ofirst := get(t, "first", 0)
	second, osecond := get(t, "second", 0)
	done := first.Done
	first.Done = func(call *Call) { done(call); require.True(t, c.Cancel(second)) }
	require.NoError(t, c.Do(first))
	require.NoError(t, c.Do(second))
	n.settle()
	ofirst.requireReplies(t, "")
	require.Zero(t, osecond.done)
}

// TestPanicInDoneOfAFailure: the others are told all the same.
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
	c.finishFn = func() {
		defer func() {
			if recover() != nil {
				contained++
			}
		}()
		c.runFinished()
	}
	c.Close()
	n.settle()
	require.Equal(t, 1, contained)
	o.requireError(t, ErrClosed, "")
}

func TestDoDoesNotAllocate(t *testing.T) {
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
	w.reply = bytes.Repeat(userHash(), 10*len(calls))
	round := func() {
		for i := range calls {
			calls[i].Batch.Reset()
			for id := range int64(10) {
				calls[i].Batch.CmdID(tmpl, id)
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
}

// A wire is the least transport: one connection that swallows what is written and has the
// answer ready.
type wire struct {
	handler transport.Handler
	reply   []byte
	unsent  int
}

// newWire returns a client that is connected to a wire.
func newWire(t testing.TB) (*Client, *wire) {
	w := &wire{reply: []byte("+PONG\r\n")}
	c := NewClient(looptest.New(t).Loop, w, Options{Addr: addr})
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

// answer stands for the end of an iteration and the reply to all that left with it.
func (w *wire) answer() {
	w.unsent = 0
	if n := w.handler.OnData(w.reply); n != len(w.reply) {
		panic("not all replies were consumed")
	}
}
