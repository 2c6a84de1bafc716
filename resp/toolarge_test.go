package resp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// TestAReplyThatIsTooLargeIsDroppedAsItComes: the call fails as soon as its replies exceed the
// bound, or announce that they will. The transport keeps no more than the bound. The calls
// before and after it get their replies.
func TestAReplyThatIsTooLargeIsDroppedAsItComes(t *testing.T) {
	const bound, shed, piece = 10_000, 1000, 700
	array := redcon.AppendArray(nil, 20_000)
	for i := range 20_000 {
		array = redcon.AppendBulkString(array, fmt.Sprint(i))
	}
	for _, c := range []struct {
		name  string
		reply []byte
		most  int // bytes that are kept
	}{
		{"an array", array, bound + 2*piece},
		{"an array of arrays", append([]byte("*3\r\n:1\r\n"), append(array, "+end\r\n"...)...), bound + 2*piece},
		{"a bulk string", redcon.AppendBulkString(nil, strings.Repeat("x", 100_000)), 2 * piece},
		{"a bulk string in an array", append(redcon.AppendBulkString([]byte("*2\r\n"), strings.Repeat("x", 100_000)), ":1\r\n"...), 2 * piece},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			n.greet = func(args []string) ([]byte, bool) { return c.reply, args[1] == "large" }
			client := newClient(n, Options{MaxReplyBytes: bound})
			client.shedBytes = shed
			var outcomes []*outcome
			for _, key := range []string{"before", "large", "after"} {
				call, o := get(t, key, 1)
				if key == "large" {
					call.Batch.Reset()
					call.Batch.Cmd("GET", "large")
				}
				require.NoError(t, client.Do(call))
				outcomes = append(outcomes, o)
			}
			n.settle()
			all := append(append(append([]byte{}, n.last().answers[0]...), c.reply...), n.last().answers[2]...)
			failedAfter := 0
			for at := 0; at < len(all); at += piece {
				n.last().arrive(all[at:min(len(all), at+piece)])
				n.settle()
				checkInvariants(t, client)
				require.LessOrEqual(t, len(n.last().inbox), c.most)
				if failedAfter == 0 && outcomes[1].done > 0 {
					failedAfter = at
				}
			}
			outcomes[0].requireReplies(t, got("before", 1))
			outcomes[1].requireError(t, ErrTooLarge, "more than 10000 bytes (max_reply_bytes)")
			outcomes[2].requireReplies(t, got("after", 1))
			assert.Less(t, failedAfter, bound+2*piece)
			assert.Empty(t, n.last().inbox)
			assert.EqualValues(t, 1, client.Stats().TooLarge)
			assert.EqualValues(t, len(all), client.Stats().BytesReceived)
		})
	}
}

// TestNoPartLeavesPastTheDeadline: no part leaves, even if the timer that reports the deadline
// fires later in the same iteration.
func TestNoPartLeavesPastTheDeadline(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	c := newClient(n, Options{MaxInflight: 64})
	call, o := get(t, strings.Repeat("long", 200), 40) // Each part fills the outbox.
	call.Deadline = n.h.Clock.Now().Add(5 * time.Millisecond)
	require.NoError(t, c.Do(call))
	n.settle()
	require.Equal(t, 4, n.last().commands)
	n.last().answer(4)
	n.h.Clock.Advance(6 * time.Millisecond) // The replies come in the poll before these timers.
	n.settle()
	o.requireError(t, ErrTimeout, "36 of 40 replies missing")
	assert.Equal(t, 4, n.last().commands)
	assert.Zero(t, c.Stats().Inflight)
}

// FuzzDecoderSkip: a skipped reply ends where it would end if it were read, however it is cut.
// The replies after it are the same.
func FuzzDecoderSkip(f *testing.F) {
	for _, c := range wellFormed {
		f.Add([]byte(c.data), uint8(c.n), uint8(3))
	}
	f.Add(redcon.AppendBulkString(nil, strings.Repeat("x", 300)), uint8(1), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, replies, cut uint8) {
		if replies == 0 {
			return
		}
		n := int(replies)
		d := NewDecoder(Limits{})
		d.Reset(n)
		size, done, err := d.Decode(data)
		if err != nil || !done {
			return
		}
		want := make([]string, 0, n)
		for _, r := range d.Replies().All() {
			want = append(want, show(t, r))
		}
		s := NewDecoder(Limits{})
		s.Reset(n)
		s.skipNext()
		consumed, here := 0, 0
		for end := false; !end; {
			here = min(size, here+1+int(cut))
			k, finished, err := s.Decode(data[consumed:here])
			require.NoError(t, err)
			consumed += k
			end = finished
			require.True(t, end || here < size || k > 0, "no progress")
		}
		require.Equal(t, size, consumed)
		require.Equal(t, Null, s.Replies().At(0).Kind())
		for i := 1; i < n; i++ {
			require.Equal(t, want[i], show(t, s.Replies().At(i)))
		}
	})
}
