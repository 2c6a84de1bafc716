package blocking

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/resp"
)

// A burst makes memory grow, and the client gives it back. Each test here makes something grow
// far beyond its bound, uses it once more for little or nothing, and checks how much is held.

// burstValues makes a burst of several times readBytesKeep.
const burstValues = readBytesKeep / 4

// burst is a reply of burstValues values.
func burst() []byte {
	reply := redcon.AppendArray(nil, burstValues)
	for range burstValues {
		reply = redcon.AppendBulkString(reply, "0123456789")
	}
	return reply
}

func TestClientKeepsLittle(t *testing.T) {
	large := string(burst())
	// Many callers hold replies at the same time.
	c := openClient(t, resp.Options{Addr: serve(t, echo).addr(), RequestTimeout: time.Minute})
	const callers = 4 * buffersKeep
	var holding, all sync.WaitGroup
	holding.Add(callers)
	for range callers {
		all.Go(func() {
			var b resp.Batch
			b.Cmd("GET", "a")
			assert.NoError(t, c.Do(&b, 0, func(resp.Replies) error {
				holding.Done()
				holding.Wait()
				return nil
			}))
		})
	}
	all.Wait()
	assert.Len(t, c.spare, buffersKeep)

	// A reply is large.
	c = openClient(t, resp.Options{Addr: serve(t, say(large), echo).addr(), RequestTimeout: time.Minute})
	var b resp.Batch
	b.Cmd("GET", "large")
	require.NoError(t, c.Do(&b, 0, func(r resp.Replies) error {
		require.Equal(t, burstValues, r.At(0).Len())
		return nil
	}))
	require.Len(t, c.spare, 1)
	assertSmallBuffer(t, <-c.spare)

	// A large batch is sent in parts.
	c = openClient(t, resp.Options{Addr: serve(t, echoIn(readBytes)).addr(), RequestTimeout: time.Minute, MaxInflight: 2})
	b.Reset()
	const commands = 2 * readBytesKeep / (20 << 10)
	for range commands {
		b.Cmd("GET", strings.Repeat("x", 20<<10))
	}
	held := 0
	require.NoError(t, c.Do(&b, 0, func(r resp.Replies) error {
		for _, reply := range r.All() {
			held += len(reply.Bytes())
		}
		return nil
	}))
	require.Greater(t, held, readBytesKeep)
	assertSmallBuffer(t, <-c.spare)
}

// TestReplyBufferKeepsLittle: a buffer holds the replies of one exchange until the next.
func TestReplyBufferKeepsLittle(t *testing.T) {
	large := string(burst())
	answer := func(s *session) {
		s.command()
		_, _ = s.Write([]byte(large))
		echo(s)
	}
	c := openClient(t, resp.Options{Addr: serve(t, answer).addr(), RequestTimeout: time.Minute})
	var b resp.Batch
	var buf ReplyBuffer
	b.Cmd("GET", "a")
	r, err := c.Exchange(&b, 0, &buf)
	require.NoError(t, err)
	require.Equal(t, burstValues, r.At(0).Len())
	r, err = c.Exchange(&b, 0, &buf)
	require.NoError(t, err)
	require.Equal(t, "a", text(t, r))
	assertSmallBuffer(t, &buf)
}

// assertSmallBuffer checks an idle buffer. Tests of package resp check that an empty Decoder
// and an empty Gathered keep little.
func assertSmallBuffer(t *testing.T, r *ReplyBuffer) {
	t.Helper()
	assert.LessOrEqual(t, cap(r.buf), readBytesKeep)
	assert.Zero(t, r.parts.Size()+r.parts.Replies().Len())
}
