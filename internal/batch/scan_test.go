package batch

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// keyed starts a Redis with these keys.
func keyed(t *testing.T, keys ...string) *devredis.Server {
	var commands []devredis.Command
	for _, key := range keys {
		commands = append(commands, devredis.Command{Name: "SET", Key: key, Args: []string{"x"}})
	}
	redis, err := devredis.StartWith(commands)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

// scan returns a job for the users that a Redis has.
func (w *world) scan(t *testing.T, redis, template, out string) *Job {
	s, err := NewScan(redis, template, w.Engine)
	require.NoError(t, err)
	return &Job{Engine: w.Engine, Scan: s, InFlight: 4, CheckpointUsers: 10, Out: out}
}

func TestUsersOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		keys     []string
		want     []string
		skipped  int
	}{
		"numbers":            {"user:{user}", []string{"user:10", "user:9", "user:2", "other:7"}, []string{"2", "9", "10"}, 0},
		"one user twice":     {"user:{user}", []string{"user:7", "user:007"}, []string{"7"}, 0},
		"longer keys":        {"user:{user}", []string{"user:7", "user:7:seen", "user:x", "user:", "user:0", "user:-1"}, []string{"7"}, 5},
		"an end":             {"u:{user}:profile", []string{"u:7:profile", "u:8", "u::profile"}, []string{"7"}, 1},
		"a hash tag":         {"{{u:{user}}}", []string{"{u:7}", "{u:8"}, []string{"7"}, 0},
		"marks of a pattern": {"a*?[b]\\{user}", []string{"a*?[b]\\7", "axyb8", "a*?b9"}, []string{"7"}, 0},
		"nobody":             {"user:{user}", nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
			sum, err := w.scan(t, keyed(t, c.keys...).Addr(), c.template, out).Run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, c.want, answered(t, out))
			assert.Equal(t, c.skipped, sum.Skipped)
			left, err := os.ReadDir(filepath.Dir(out))
			require.NoError(t, err)
			assert.Len(t, left, 1, "only the answers")
		})
	}
	w := newWorld(t)
	for _, template := range []string{"user:", "user:{id}", "{user}:{user}", "user:{nothing}", "user:{user", ""} {
		_, err := NewScan("127.0.0.1:1", template, w.Engine)
		assert.ErrorContains(t, err, "the key of the users", template)
	}
}

// A batch that goes on has the users that it began with, whatever the keys are now.
func TestAScanGoesOn(t *testing.T) {
	var keys []string
	for i := range 57 {
		keys = append(keys, fmt.Sprint("user:", i+1))
	}
	w, out, redis := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl"), keyed(t, keys...)
	j := w.scan(t, redis.Addr(), "user:{user}", out)
	j.Bounds = &Bounds{Failed: 100, Degraded: 100} // it cannot end, since a user has no rows
	w.empty.Store(5)
	_, err := j.Run(t.Context())
	require.ErrorIs(t, err, ErrTooMany)
	require.NoError(t, redis.Replace([]devredis.Command{{Name: "SET", Key: "user:999", Args: []string{"x"}}}))
	sum, err := w.scan(t, redis.Addr(), "user:{user}", out).Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 57, sum.Kept)
	assert.Zero(t, sum.PerSecond)
	assert.Len(t, answered(t, out), 57)
	assert.EqualValues(t, 57, w.ran.Load())
}

// The list has each user once, in order, also if it does not fit into memory.
func TestUsersAreWrittenOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, memory := range []int{1 << 10, 1 << 20} {
		path := filepath.Join(t.TempDir(), "list")
		users := fileio.NewSorter(filepath.Dir(path), memory, byLength)
		var want []string
		for range 5000 {
			line := fmt.Sprint(random.IntN(3000))
			want = append(want, line)
			require.NoError(t, users.Add([]byte(line)))
		}
		require.NoError(t, writeOnce(users, disk{}, path))
		users.Close()
		slices.SortFunc(want, func(a, b string) int { return byLength([]byte(a), []byte(b)) })
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, strings.Join(slices.Compact(want), "\n")+"\n", string(text))
		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	}
}

// Users of a real Redis Cluster are on all masters. A real server returns keys twice while its
// table grows.
func TestUsersOfARealCluster(t *testing.T) {
	const users = 5000
	c := testworld.StartRedisCluster(t, 3)
	require.NoError(t, devredis.Write(t.Context(), c.Addr(), func(write func(command ...string) error) error {
		for i := range users {
			if err := write("SET", fmt.Sprint("user:", i+1), "x"); err != nil {
				return err
			}
		}
		return nil
	}))
	w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
	j := w.scan(t, c.Addr(), "user:{user}", out)
	j.CheckpointUsers = 1000
	sum, err := j.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, users, sum.Users)
	assert.Equal(t, numbers(users), strings.Join(append(answered(t, out), ""), "\n"))

	// Slots that move during the first visit: the scan visits all masters again, and counts a key without a user once.
	var move int
	_, err = fmt.Sscan(c.Do(t, 0, "CLUSTER", "KEYSLOT", "user:2"), &move)
	require.NoError(t, err)
	moved := false
	s, err := NewScan(c.Addr(), "user:{user}", w.Engine)
	require.NoError(t, err)
	require.NoError(t, devredis.Write(t.Context(), c.Addr(), func(write func(command ...string) error) error { return write("SET", "user:x", "x") }))
	skipped, _, err := s.find(t.Context(), disk{}, filepath.Join(t.TempDir(), "users"), w.Engine, func(found int) {
		if !moved && found > users*9/10 {
			moved = true
			from := c.Owner(move)
			c.Move(t, move, from, (from+1)%3)
		}
	})
	require.NoError(t, err)
	assert.True(t, moved)
	assert.Equal(t, 1, skipped)

	// A slot that is moving may hide a key, so the batch does not begin.
	slot := c.Do(t, 0, "CLUSTER", "KEYSLOT", "user:1")
	owner := 0
	for c.Do(t, owner, "CLUSTER", "COUNTKEYSINSLOT", slot) == "0" {
		owner++
	}
	c.Do(t, owner, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.Do(t, (owner+1)%3, "CLUSTER", "MYID"))
	_, err = w.scan(t, c.Addr(), "user:{user}", filepath.Join(t.TempDir(), "x")).Run(t.Context())
	assert.ErrorIs(t, err, devredis.ErrSlotsMove)
}

// FuzzScan parses any template. A scan matches the key that the template makes for a user.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{"user:{user}", "{{u:{user}}}", "a*{user}[b]", "{user", "{user}{user}"} {
		f.Add(seed)
	}
	e, err := rankd.Open(rankd.Options{Redis: "127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(f, err)
	f.Cleanup(func() { _ = e.Close() })
	f.Fuzz(func(t *testing.T, template string) {
		s, err := NewScan("127.0.0.1:1", template, e)
		if err != nil {
			return
		}
		doc, ok := s.user([]byte(s.before+"7"+s.after), e)
		if ok {
			assert.Equal(t, `{"user_id": "7"}`, string(doc))
		} else {
			assert.NotEqual(t, strings.ToValidUTF8(template, ""), template, "only of a text that is not UTF-8")
		}
	})
}
