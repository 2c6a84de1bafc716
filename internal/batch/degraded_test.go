package batch

import (
	"bufio"
	"cmp"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// A job counts what answers lack, and keeps its output back if that is too much.
func TestBounds(t *testing.T) {
	w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
	w.flaky.Store(4)  // 10 of 40 are degraded
	w.empty.Store(10) // 4 of 40 are empty, and 2 of these are degraded, whose rows another node gives
	w.fails.Store(39) // 1 of 40 fails
	for bounds, want := range map[Bounds]string{
		{100, 24, 100, 100, 100}: "10 of 40 degraded, and --max_degraded is 24 in a hundred",
		{100, 100, 4, 100, 100}:  "2 of 40 empty, and --max_empty is 4 in a hundred",
		{2, 0, 100, 100, 100}:    "1 of 40 failed, and --max_failed is 2 in a hundred; 10 of 40 degraded",
	} {
		w.seen.Clear()
		j := w.job(t, numbers(40), out)
		j.Restart, j.Bounds = true, &bounds
		sum, err := j.Run(t.Context())
		require.ErrorIs(t, err, ErrTooMany)
		assert.ErrorContains(t, err, want)
		require.NoFileExists(t, out)
		assert.Equal(t, "of 40 that were ranked: 10 degraded (one/out fallback 10), 2 empty", sum.Lacking())
	}
	w.ran.Store(0)
	j := w.job(t, numbers(40), out)
	j.Bounds = &Bounds{3, 25, 5, 0, 0}
	sum, err := j.Run(t.Context())
	require.NoError(t, err)
	assert.Zero(t, w.ran.Load(), "nobody is ranked again")
	assert.Equal(t, map[string]int{"one/out fallback": 10}, sum.Lacks)
	assert.Len(t, answered(t, out), 39)
	assert.Equal(t, FailedFile(out), sum.FailedFile)
}

// Degraded users run again at the end. Their answers come in their place.
func TestDegradedUsersRunAgain(t *testing.T) {
	w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
	w.flaky.Store(3) // of the 13 users 6, 12 … are degraded again
	w.fails.Store(10)
	j := w.job(t, numbers(40), out)
	j.RetryDegraded = true
	sum, err := j.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 12, sum.Retried, "all but 30, who fails")
	assert.Equal(t, 5, sum.Degraded)
	assert.Equal(t, 5, sum.Errors["degraded"].Count)
	assert.Equal(t, 9, sum.Failed)
	assert.Equal(t, 40, sum.Users)
	users := answered(t, out)
	assert.Len(t, users, 31)
	last := 0
	for _, user := range users {
		id, err := strconv.Atoi(user)
		require.NoError(t, err)
		require.Greater(t, id, last)
		last = id
	}
	text, err := os.ReadFile(FailedFile(out))
	require.NoError(t, err)
	assert.Equal(t, 9, strings.Count(string(text), "\n"))
	left, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	assert.Len(t, left, 2)
}

// slowRedis answers commands one after the other, each after a pause. More than a few at a time are late.
func slowRedis(t *testing.T, pause time.Duration) (addr string) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var conns sync.WaitGroup
	var turn sync.Mutex
	var open sync.Map
	t.Cleanup(func() {
		_ = server.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		conns.Wait()
	})
	conns.Go(func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			open.Store(c, true)
			conns.Go(func() {
				in := bufio.NewReader(c)
				for {
					var words []string
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					n := 0
					for _, digit := range strings.TrimSpace(line[1:]) {
						n = 10*n + int(digit-'0')
					}
					for range n {
						_, _ = in.ReadString('\n') // the length
						word, err := in.ReadString('\n')
						if err != nil {
							return
						}
						words = append(words, strings.TrimSpace(word))
					}
					reply := "+OK\r\n"
					switch words[0] {
					case "LRANGE":
						turn.Lock()
						time.Sleep(pause) // the work of this server
						turn.Unlock()
						reply = "*1\r\n$1\r\n7\r\n"
					case "HELLO":
						reply = "-ERR unknown command\r\n"
					}
					if _, err := io.WriteString(c, reply); err != nil {
						return
					}
				}
			})
		}
	})
	return server.Addr().String()
}

// With a Redis that bears some users at a time, a batch comes down to their number.
func TestARedisThatSlowsDown(t *testing.T) {
	const users, pause, timeout = 1500, 2 * time.Millisecond, "40"
	plan := `{"schema_version": 1, "plan_name": "p", "capabilities_required": ["cap.rankd.on_error.v1"], "outputs": ["rows"], "nodes": [
		{"node_id": "rows", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}", "limit": 9}, "on_error": "empty", "timeout_ms": ` + timeout + `}]}`
	open := func() *rankd.Engine {
		e, err := rankd.Open(rankd.Options{Plan: "p", Plans: fstest.MapFS{"p.plan.json": {Data: []byte(plan)}}, Redis: slowRedis(t, pause), Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, e.Close()) })
		return e
	}
	var all Summary
	line, begun := NewLine(open(), DefaultInFlight), 0
	go line.Read(func(p *Entry) (join, more bool) {
		begun++
		p.Request.UserID = int64(begun)
		return true, begun < 500
	})
	for p := line.Next(t.Context(), func() {}); p != nil; p = line.Next(t.Context(), func() {}) {
		require.NoError(t, p.Err)
		all.Users++
		all.Add(p.Answer)
		p.Empty()
		line.Free(p)
	}
	t.Logf("64 at a time: %s", all.Lacking())
	e := open()
	u, err := NewUsers(strings.NewReader(numbers(users)), "", e.Registry())
	require.NoError(t, err)
	few, err := (&Job{Engine: e, Users: u, Out: filepath.Join(t.TempDir(), "answers.jsonl")}).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, users, few.Users)
	t.Logf("a window: %s", few.Lacking())
	assert.Greater(t, all.Degraded, all.Users*9/10)
	assert.Less(t, few.Degraded, users/2) // The machine may be slow, too.
	assert.Equal(t, few.Degraded, few.Lacks["p/rows timeout"])
}

// plays has a server that does one thing after the other, in virtual time, and users who wait for it for so long. It
// returns how many of the users are late.
func (w *window) plays(users int, work, patience time.Duration) (late int) {
	type outcome struct {
		at   time.Duration
		late bool
	}
	var under []outcome // ascending
	now, free := time.Duration(0), time.Duration(0)
	for users > 0 || len(under) > 0 {
		for ; users > 0 && len(under) < w.limit; users-- {
			free = max(free, now) + work
			one := outcome{min(free, now+patience), free > now+patience}
			i, _ := slices.BinarySearchFunc(under, one.at+1, func(o outcome, at time.Duration) int { return cmp.Compare(o.at, at) })
			under = slices.Insert(under, i, one)
		}
		now = under[0].at
		if under[0].late {
			late++
		}
		w.saw(under[0].late)
		under = under[1:]
	}
	return late
}

// At a fixed number of users a time, all but the first are late. With the window, few are: the promise is one in twenty.
func TestAWindowComesDownToWhatAServerBears(t *testing.T) {
	for _, bears := range []int{2, 5, 20, 40} {
		const patience = 40 * time.Millisecond
		work := patience / time.Duration(bears)
		assert.Greater(t, (&window{most: 64, limit: 64, blind: 1 << 20}).plays(500, work, patience), 400, bears)
		assert.LessOrEqual(t, newWindow(64).plays(3000, work, patience), 150, bears)
	}
	assert.Zero(t, newWindow(64).plays(1500, time.Microsecond, time.Second))
}

// If users run out of time alone, too, the window opens, and looks again later.
func TestAWindowThatDoesNotHelp(t *testing.T) {
	w := newWindow(64)
	at64, n := 0, 20_000
	for range n {
		if w.limit == 64 {
			at64++
		}
		w.saw(true)
	}
	assert.Greater(t, at64, n*9/10)
	for range 100_000 {
		w.saw(false)
	}
	assert.Equal(t, 64, w.limit)
}
