package resp_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/resp"
)

// heard notes what a tracker tells. Any goroutine.
type heard struct {
	keys    chan string
	changes chan error
	all     atomic.Int64
}

func (h *heard) Invalidate(key []byte)    { h.keys <- string(key) }
func (h *heard) InvalidateAll(clock.Time) { h.all.Add(1) }

// startTracker starts a tracker of prefixes, and returns what it tells.
func startTracker(t *testing.T, r *reactor.Reactor, o resp.Options, prefixes ...string) (*resp.Tracker, *heard) {
	h := &heard{keys: make(chan string, 100_000), changes: make(chan error, 100)}
	tracker := resp.NewTracker(r.Loop(), r, o, time.Second, h, func(err error) { h.changes <- err })
	onLoop(t, r, func() { tracker.Track(prefixes) })
	t.Cleanup(func() { onLoop(t, r, tracker.Close) })
	return tracker, h
}

// TestTrackerOnARealServer has a redis-server tell of changes.
func TestTrackerOnARealServer(t *testing.T) {
	redis := testworld.StartRedis(t)
	r := startReactor(t)
	options := resp.Options{Addr: redis.Addr, RequestTimeout: time.Minute}
	client := resp.NewClient(r.Loop(), r, options)
	t.Cleanup(func() { onLoop(t, r, client.Close) })
	command := func(args ...string) string {
		res := do(t, r, client, func(b *resp.Batch) { b.Cmd(args...) })
		require.NoError(t, res.err)
		return res.replies[0]
	}
	ask := func(tracker *resp.Tracker, prefix string) (covers, trusted bool) {
		onLoop(t, r, func() { covers, trusted = tracker.Covers([]byte(prefix)), tracker.Trusted() })
		return covers, trusted
	}

	tracker, told := startTracker(t, r, options, "user:1", "user:", "post:")
	require.NoError(t, <-told.changes)
	command("SET", "other:1", "x")
	command("HSET", "user:1", "age", "7")
	command("RPUSH", "post:1", "x")
	assert.Equal(t, []string{"user:1", "post:1"}, []string{<-told.keys, <-told.keys})

	// A message of many keys.
	do(t, r, client, func(b *resp.Batch) {
		b.Cmd("MULTI")
		for i := range 20_000 {
			b.Cmd("SET", fmt.Sprintf("post:%d", i), "x")
		}
		b.Cmd("EXEC")
	})
	named := map[string]bool{}
	for range 20_000 {
		named[<-told.keys] = true
	}
	assert.Len(t, named, 20_000)

	// A further prefix, and one that overlaps with another.
	all := told.all.Load()
	onLoop(t, r, func() { tracker.Track([]string{"user:", "post:", "list:"}) })
	require.Eventually(t, func() bool { covers, trusted := ask(tracker, "list:"); return covers && trusted }, 10*time.Second, time.Millisecond)
	assert.Greater(t, told.all.Load(), all)
	command("SET", "list:1", "x")
	assert.Equal(t, "list:1", <-told.keys)
	onLoop(t, r, func() { tracker.Track([]string{""}) })
	assert.ErrorIs(t, <-told.changes, resp.ErrConnectionLost)
	require.NoError(t, <-told.changes)
	command("SET", "other:1", "x")
	assert.Equal(t, "other:1", <-told.keys)

	all = told.all.Load()
	command("FLUSHALL")
	require.Eventually(t, func() bool { return told.all.Load() > all }, 10*time.Second, time.Millisecond)

	// The connection is killed, and it comes back.
	assert.Equal(t, "1", command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
	assert.ErrorIs(t, <-told.changes, resp.ErrConnectionLost)
	require.NoError(t, <-told.changes)

	// The server is stopped for longer than the tracker trusts it.
	command("CLIENT", "PAUSE", "1500", "ALL")
	require.Eventually(t, func() bool { covers, trusted := ask(tracker, ""); return covers && !trusted }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { _, trusted := ask(tracker, ""); return trusted }, 10*time.Second, time.Millisecond)

	// A user who may not use CLIENT.
	command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-client")
	barred := options
	barred.Username, barred.Password = "reader", "secret"
	barredTracker, toldBarred := startTracker(t, r, barred, "user:")
	assert.ErrorIs(t, <-toldBarred.changes, resp.ErrTrackingRefused)
	covers, trusted := ask(barredTracker, "user:")
	assert.False(t, covers || trusted)
	// The permissions that the page lists are enough.
	command("ACL", "SETUSER", "tracker", "on", ">secret", "+hello", "+ping", "+client|tracking")
	barred.Username = "tracker"
	_, toldTracker := startTracker(t, r, barred, "user:")
	require.NoError(t, <-toldTracker.changes)
	command("SET", "user:"+strconv.Itoa(1), "x")
	assert.Equal(t, "user:1", <-toldTracker.keys)
}

// TestTrackerOnAServerOfRESP2 meets a server that does not know HELLO 3.
func TestTrackerOnAServerOfRESP2(t *testing.T) {
	for name, answer := range map[string]string{
		"unknown":  "-ERR unknown command `HELLO`\r\n",
		"no proto": "-NOPROTO unsupported protocol version\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			server, err := resptest.NewServer(func([]string) []byte { return []byte(answer) })
			require.NoError(t, err)
			t.Cleanup(server.Close)
			_, told := startTracker(t, startReactor(t), resp.Options{Addr: server.Addr()}, "user:")
			assert.ErrorIs(t, <-told.changes, resp.ErrTrackingRefused)
		})
	}
}
