package resp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop"
)

// The client gives back the memory of a burst. Each test here makes something grow far beyond
// its bound, uses it once more for little or nothing, and checks how much it holds.

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
			// In its next use, for little, the batch does not hold more than it needs.
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

// TestIdleCallHoldsNoReplies: a call that is sent in parts gathers copies of its replies.
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
		{"cancelled", func(_ *network, c *Client, call *Call) { _ = c.Cancel(call) }, loop.ErrCancelled},
		{"closed", func(_ *network, c *Client, _ *Call) { c.Close() }, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			client := newClient(n, Options{MaxInflight: 4})
			call, o := get(t, strings.Repeat("x", 1000), 10)
			require.NoError(t, client.Do(call))
			n.settle()
			for range 3 {
				n.last().answer(1)
				n.settle()
			}
			require.True(t, call.has(0))
			c.end(n, client, call)
			n.settle()
			require.True(t, errors.Is(o.err, c.err), o.err)
			assert.Nil(t, call.pieces.kept)
			assert.Equal(t, Replies{}, call.Replies)
		})
	}
}

// TestCallReusedInsideDoneKeepsItsNewReplies: an idle call lets go of its replies, but not of
// those of its next use.
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
	const calls = 3 * ringKeep
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: calls, NoCoalesceReads: true})
	for range 2 {
		outcomes := make([]*outcome, calls)
		for i := range outcomes {
			var call *Call
			call, outcomes[i] = get(t, "a", 1)
			require.NoError(t, c.Do(call))
		}
		n.settle()
		require.Equal(t, calls, c.Stats().Inflight)
		require.Greater(t, len(c.conns[0].parts.items), ringKeep)
		n.last().answer(calls)
		n.settle()
		for _, o := range outcomes {
			o.requireReplies(t, got("a", 1))
		}
		assert.LessOrEqual(t, len(c.conns[0].parts.items), ringKeep)
	}
}
