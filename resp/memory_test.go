package resp

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// What a burst has made to grow is given back: each test here makes something grow far
// beyond its bound, uses it once more for little or not at all, and looks at what it holds.

// burstValues is far more than tapeKeepValues.
const burstValues = 4 * tapeKeepValues

// burst is a reply of burstValues values and several times tapeKeepBytes.
func burst() []byte {
	reply := redcon.AppendArray(nil, burstValues)
	for range burstValues {
		reply = redcon.AppendBulkString(reply, "0123456789")
	}
	return reply
}

func assertSmallTape(t *testing.T, tp *tape) {
	t.Helper()
	assert.LessOrEqual(t, cap(tp.vals), tapeKeepValues)
	assert.LessOrEqual(t, cap(tp.roots), tapeKeepValues)
	assert.LessOrEqual(t, cap(tp.data), tapeKeepBytes)
}

func TestBatchKeepsLittle(t *testing.T) {
	for _, c := range []struct {
		name string
		keep int
		end  func(b *Batch)
	}{
		{"Reset", batchKeepBytes, (*Batch).Reset},
		{"Shrink", 1000, func(b *Batch) { b.Shrink(1000) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Batch
			fill := func(bytes int) {
				for b.Size() < bytes {
					b.Cmd("PING")
				}
			}
			fill(c.keep / 2)
			c.end(&b)
			assert.GreaterOrEqual(t, cap(b.buf), c.keep/2, "the memory of a usual batch is kept")
			assert.NotZero(t, cap(b.starts))
			assert.Zero(t, b.Len()+b.Size())
			fill(8 * c.keep)
			c.end(&b)
			// Used again for little, the batch says nothing about what it holds.
			b.Cmd("PING")
			c.end(&b)
			assert.LessOrEqual(t, cap(b.buf), c.keep)
			assert.LessOrEqual(t, 8*cap(b.starts), 2*c.keep)
			assert.Zero(t, b.Len()+b.Size())
		})
	}
}

func TestIdleConnectionHoldsNoReplies(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(n *network, client *Client)
	}{
		{"answered", func(*network, *Client) {}},
		{"ended", func(n *network, _ *Client) { n.last().hangUp() }},
		{"closed", func(_ *network, client *Client) { client.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			client := newClient(n, Options{})
			call, o := get(t, "a", 1)
			values := 0
			call.Done = func(call *Call) { o.done++; values = call.Replies.At(0).Len() }
			require.NoError(t, client.Do(call))
			n.settle()
			n.last().arrive(burst())
			n.settle()
			require.Equal(t, burstValues, values)
			c.end(n, client)
			n.settle()
			require.Equal(t, 1, o.done)
			d := client.conns[0].decoder
			assertSmallTape(t, &d.tape)
			assert.Nil(t, d.data, "the transport's buffer")
			assert.Equal(t, Replies{}, call.Replies)
		})
	}
	t.Run("ended in the middle of the replies", func(t *testing.T) {
		n := newNetwork(t)
		n.mute = true
		client := newClient(n, Options{})
		call, o := get(t, "a", 1)
		require.NoError(t, client.Do(call))
		n.settle()
		all := burst()
		n.last().arrive(all[:len(all)-1])
		n.settle()
		require.Greater(t, cap(client.conns[0].decoder.vals), tapeKeepValues)
		n.last().hangUp()
		n.settle()
		o.requireError(t, ErrConnectionLost, "EOF")
		assertSmallTape(t, &client.conns[0].decoder.tape)
	})
}

// TestIdleCallHoldsNoReplies: a call sent in parts gathers copies of its replies.
func TestIdleCallHoldsNoReplies(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(n *network, c *Client, call *Call)
		err  error
	}{
		{"answered", func(n *network, _ *Client, _ *Call) {
			for range 7 {
				n.last().answer(1)
				n.settle()
			}
		}, nil},
		{"timed out", func(n *network, _ *Client, _ *Call) { n.advance(time.Second) }, ErrTimeout},
		{"lost", func(n *network, _ *Client, _ *Call) { n.last().hangUp() }, ErrConnectionLost},
		{"cancelled", func(_ *network, c *Client, call *Call) { c.Cancel(call) }, nil},
		{"closed", func(_ *network, c *Client, _ *Call) { c.Close() }, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			client := newClient(n, Options{MaxInflight: 4})
			call, o := get(t, strings.Repeat("x", 1000), 10)
			require.NoError(t, client.Do(call))
			n.settle()
			n.last().answer(3)
			n.settle()
			require.Len(t, call.kept.roots, 3)
			c.end(n, client, call)
			n.settle()
			require.True(t, errors.Is(o.err, c.err), o.err)
			assert.Nil(t, call.kept)
			assert.Equal(t, Replies{}, call.Replies)
		})
	}
}

// TestCallReusedInsideDoneKeepsItsNewReplies: what an idle call lets go of is not that of
// its next use.
func TestCallReusedInsideDoneKeepsItsNewReplies(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{MaxInflight: 4})
	call := new(Call)
	uses := 0
	call.Done = func(call *Call) {
		require.NoError(t, call.Err)
		require.Equal(t, got("a", 9), showAll(t, call.Replies))
		if uses++; uses < 3 {
			require.NoError(t, c.Do(call))
		}
	}
	fresh, _ := get(t, "a", 9)
	call.Batch = fresh.Batch
	require.NoError(t, c.Do(call))
	n.settle()
	assert.Equal(t, 3, uses)
}

func TestInflightQueueKeepsLittle(t *testing.T) {
	const calls = 3 * slotsKeep
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: calls})
	for range 2 {
		outcomes := make([]*outcome, calls)
		for i := range outcomes {
			var call *Call
			call, outcomes[i] = get(t, "a", 1)
			require.NoError(t, c.Do(call))
		}
		n.settle()
		require.Equal(t, calls, c.Stats().Inflight)
		require.Greater(t, len(c.conns[0].slots.ring), slotsKeep)
		n.last().answer(calls)
		n.settle()
		for _, o := range outcomes {
			o.requireReplies(t, got("a", 1))
		}
		assert.LessOrEqual(t, len(c.conns[0].slots.ring), slotsKeep)
	}
}

func TestSyncClientKeepsLittle(t *testing.T) {
	large := string(burst())
	// Many callers hold replies at a time.
	c := openSyncClient(t, Options{Addr: serve(t, echo).addr(), RequestTimeout: time.Minute})
	const callers = 4 * readersKeep
	var holding, all sync.WaitGroup
	holding.Add(callers)
	for range callers {
		all.Go(func() {
			var b Batch
			b.Cmd("GET", "a")
			assert.NoError(t, c.Do(&b, 0, func(Replies) error {
				holding.Done()
				holding.Wait()
				return nil
			}))
		})
	}
	all.Wait()
	assert.Len(t, c.mu.readers, readersKeep)

	// A reply is large.
	c = openSyncClient(t, Options{Addr: serve(t, say(large), echo).addr(), RequestTimeout: time.Minute})
	var b Batch
	b.Cmd("GET", "large")
	require.NoError(t, c.Do(&b, 0, func(r Replies) error {
		require.Equal(t, burstValues, r.At(0).Len())
		return nil
	}))
	require.Len(t, c.mu.readers, 1)
	assertSmallReader(t, c.mu.readers[0])

	// A large batch goes in parts.
	c = openSyncClient(t, Options{Addr: serve(t, echo).addr(), RequestTimeout: time.Minute, MaxInflight: 2})
	b.Reset()
	const commands = 2 * tapeKeepBytes / (20 << 10)
	for range commands {
		b.Cmd("GET", strings.Repeat("x", 20<<10))
	}
	kept := 0
	var reader *reader
	require.NoError(t, c.Do(&b, 0, func(r Replies) error {
		kept = cap(r.t.data)
		return nil
	}))
	reader = c.mu.readers[0]
	require.Greater(t, kept, tapeKeepBytes)
	assertSmallReader(t, reader)
}

// TestReplyBufferKeepsLittle: it holds what it was given until the next exchange.
func TestReplyBufferKeepsLittle(t *testing.T) {
	large := string(burst())
	answer := func(s *session) {
		s.command()
		_, _ = s.Write([]byte(large))
		echo(s)
	}
	c := openSyncClient(t, Options{Addr: serve(t, answer).addr(), RequestTimeout: time.Minute})
	var b Batch
	var buf ReplyBuffer
	b.Cmd("GET", "a")
	r, err := c.Exchange(&b, 0, &buf)
	require.NoError(t, err)
	require.Equal(t, burstValues, r.At(0).Len())
	r, err = c.Exchange(&b, 0, &buf)
	require.NoError(t, err)
	require.Equal(t, got("a", 1), strings.ReplaceAll(showAll(t, r), `"a"`, `"a:0"`))
	assertSmallReader(t, buf.reader)
}

func assertSmallReader(t *testing.T, r *reader) {
	t.Helper()
	assert.LessOrEqual(t, cap(r.buf), tapeKeepBytes)
	assert.LessOrEqual(t, cap(r.decoder.vals), tapeKeepValues)
	assertSmallTape(t, &r.kept)
}
