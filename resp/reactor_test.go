package resp_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// onLoop runs fn on the reactor's loop and waits for it.
func onLoop(t testing.TB, r *reactor.Reactor, fn func()) {
	t.Helper()
	done := make(chan struct{})
	require.True(t, r.Loop().Post(func() {
		defer close(done)
		fn()
	}))
	<-done
}

func startReactor(t testing.TB) *reactor.Reactor {
	t.Helper()
	r := reactor.New(reactor.Config{OnPanic: func(recovered any, stack []byte) {
		t.Errorf("panic on the loop: %v\n%s", recovered, stack)
	}})
	require.NoError(t, r.Start())
	t.Cleanup(func() {
		r.Stop()
		<-r.Loop().Done()
	})
	return r
}

// result is a call's outcome, copied out of its Done.
type result struct {
	replies []string
	err     error
}

// do runs one batch and waits for it.
func do(t testing.TB, r *reactor.Reactor, c *resp.Client, fill func(*resp.Batch)) result {
	t.Helper()
	results := make(chan result, 1)
	onLoop(t, r, func() {
		call := &resp.Call{}
		fill(&call.Batch)
		call.Done = func(call *resp.Call) {
			res := result{err: call.Err}
			for _, reply := range call.Replies.All() {
				res.replies = append(res.replies, text(reply))
			}
			results <- res
		}
		if err := c.Do(call); err != nil {
			results <- result{err: err}
		}
	})
	return <-results
}

func text(r resp.Reply) string {
	if r.Kind() == resp.Array {
		s := "["
		for e := range r.All() {
			s += " " + text(e)
		}
		return s + " ]"
	}
	return string(r.Bytes())
}

func TestClientsOnMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireUserAuth("ranker", "secret")
	m.DB(2).HSet("user:1", "name", "Ada", "country", "GB")
	for i := range 3000 {
		_, err := m.DB(2).Push("list", strconv.Itoa(i))
		require.NoError(t, err)
	}
	opts := resp.Options{
		Addr: m.Addr(), Username: "ranker", Password: "secret", Database: 2, ClientName: "rankd",
		MaxInflight: 64, RequestTimeout: time.Minute,
	}
	fill := func(b *resp.Batch) {
		hgetall := resp.NewTemplate("HGETALL", "user:{id}")
		for id := range int64(500) {
			b.CmdID(hgetall, id)
		}
		b.Cmd("GET", "list")
		b.Cmd("LRANGE", "list", "0", "-1")
	}
	check := func(t *testing.T, replies []string) {
		require.Len(t, replies, 502)
		assert.Equal(t, "[ ]", replies[0])
		assert.Contains(t, []string{"[ name Ada country GB ]", "[ country GB name Ada ]"}, replies[1])
		assert.Contains(t, replies[500], "WRONGTYPE")
		assert.Contains(t, replies[501], " 1500 1501 ")
	}
	t.Run("on the loop", func(t *testing.T) {
		r := startReactor(t)
		c := resp.NewClient(r.Loop(), r, opts)
		for range 3 {
			res := do(t, r, c, fill)
			require.NoError(t, res.err)
			check(t, res.replies)
		}
		onLoop(t, r, c.Close)
	})
	t.Run("blocking", func(t *testing.T) {
		c := blocking.NewClient(clock.NewReal(), opts)
		defer c.Close()
		var b resp.Batch
		fill(&b)
		for range 3 {
			var replies []string
			require.NoError(t, c.Do(&b, 0, func(r resp.Replies) error {
				for _, reply := range r.All() {
					replies = append(replies, text(reply))
				}
				return nil
			}))
			check(t, replies)
		}
	})
}

func TestClientSurvivesARestartOfTheServer(t *testing.T) {
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.Start())
	addr := m.Addr()
	r := startReactor(t)
	c := resp.NewClient(r.Loop(), r, resp.Options{Addr: addr, ClientName: "rankd"})
	ping := func(b *resp.Batch) { b.Cmd("PING") }
	require.Equal(t, []string{"PONG"}, do(t, r, c, ping).replies)

	m.Close()
	// The first call may find the old connection. Later ones find no server.
	do(t, r, c, ping)
	err := do(t, r, c, ping).err
	require.ErrorIs(t, err, resp.ErrConnect)
	require.ErrorContains(t, err, addr)

	require.NoError(t, m.Restart())
	defer m.Close()
	// A call waits for the next attempt, so the first new call finds the server.
	require.Equal(t, []string{"PONG"}, do(t, r, c, ping).replies)
	onLoop(t, r, c.Close)
}

func TestClientCannotLogIn(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireAuth("secret")
	r := startReactor(t)
	c := resp.NewClient(r.Loop(), r, resp.Options{Addr: m.Addr(), Password: "wrong"})
	err := do(t, r, c, func(b *resp.Batch) { b.Cmd("PING") }).err
	require.ErrorIs(t, err, resp.ErrConnect)
	require.ErrorContains(t, err, "WRONGPASS")
	onLoop(t, r, c.Close)
}

func TestClientUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	require.NoError(t, ln.Close())
	r := startReactor(t)
	c := resp.NewClient(r.Loop(), r, resp.Options{Addr: addr})
	err = do(t, r, c, func(b *resp.Batch) { b.Cmd("PING") }).err
	require.ErrorIs(t, err, resp.ErrConnect)
	require.ErrorContains(t, err, addr)
	onLoop(t, r, c.Close)
}

// BenchmarkRedis runs HGETALL against a real server at RANKD_REDIS=host:port, in a closed loop
// with several batches in flight.
func BenchmarkRedis(b *testing.B) {
	addr := os.Getenv("RANKD_REDIS")
	if addr == "" {
		b.Skip("RANKD_REDIS=host:port names no server")
	}
	for _, in := range []struct{ calls, commands int }{{1, 1}, {1, 64}, {64, 1}, {64, 10}} {
		name := fmt.Sprintf("calls=%d/commands=%d", in.calls, in.commands)
		b.Run("loop/"+name, func(b *testing.B) { benchmarkLoop(b, addr, in.calls, in.commands) })
		if in.calls == 1 {
			b.Run("blocking/"+name, func(b *testing.B) { benchmarkBlocking(b, addr, in.commands) })
		}
	}
}

func seedHash(b *testing.B, addr string) {
	c := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer c.Close()
	var batch resp.Batch
	batch.Cmd("HSET", "rankd:bench:1", "name", "Ada", "country", "GB", "age", "36", "status", "active")
	require.NoError(b, c.Do(&batch, 0, func(r resp.Replies) error { return r.At(0).Err() }))
}

func fillHash(batch *resp.Batch, commands int) {
	t := resp.NewTemplate("HGETALL", "rankd:bench:{id}")
	for range commands {
		batch.CmdID(t, 1)
	}
}

func checkHash(r resp.Replies) error {
	for _, reply := range r.All() {
		if reply.Len() != 8 {
			return fmt.Errorf("%d elements, %v", reply.Len(), reply.Err())
		}
	}
	return nil
}

func benchmarkLoop(b *testing.B, addr string, calls, commands int) {
	seedHash(b, addr)
	r := startReactor(b)
	c := resp.NewClient(r.Loop(), r, resp.Options{Addr: addr})
	finished := make(chan error, 1)
	b.ReportAllocs()
	b.ResetTimer()
	onLoop(b, r, func() {
		left, open := max(1, b.N/commands), 0
		next := func(call *resp.Call) {
			if left == 0 {
				if open == 0 {
					finished <- nil
				}
				return
			}
			left--
			open++
			if err := c.Do(call); err != nil {
				finished <- err
			}
		}
		for range calls {
			call := &resp.Call{Done: func(call *resp.Call) {
				open--
				if call.Err == nil {
					call.Err = checkHash(call.Replies)
				}
				if call.Err != nil {
					finished <- call.Err
					return
				}
				next(call)
			}}
			fillHash(&call.Batch, commands)
			if left > 0 {
				next(call)
			}
		}
	})
	require.NoError(b, <-finished)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	onLoop(b, r, c.Close)
}

func benchmarkBlocking(b *testing.B, addr string, commands int) {
	seedHash(b, addr)
	c := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer c.Close()
	var batch resp.Batch
	fillHash(&batch, commands)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += commands {
		if err := c.Do(&batch, 0, checkHash); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
}
