package batch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/resp"
)

// lists returns a job that writes lists of a version.
func (w *world) lists(t *testing.T, users, redis, dir string, version int64) *Job {
	j := w.job(t, users, "")
	j.Checkpoints, j.Failed = filepath.Join(dir, "home.checkpoints"), filepath.Join(dir, "home.failed.jsonl")
	j.Lists = &Lists{Redis: redis, Key: "home*", Version: version, TTL: time.Hour}
	j.Bounds = &Bounds{Failed: 20, Degraded: 1, Empty: 100}
	return j
}

// ask returns the reply to a command as texts.
func ask(t *testing.T, redis string, command ...string) (texts []string) {
	t.Helper()
	require.NoError(t, devredis.WithAny(t.Context(), redis, func(c devredis.Caller) error {
		var b resp.Batch
		b.Cmd(command...)
		return c.Do(&b, 0, func(replies resp.Replies) error {
			r := replies.At(0)
			if r.Kind() != resp.Array {
				texts = append(texts, string(r.Bytes()))
			}
			for entry := range r.All() {
				texts = append(texts, string(entry.Bytes()))
			}
			return r.Err()
		})
	}))
	return texts
}

// listed checks that all users from one on, except those that fail, have lists of a version.
func listed(t *testing.T, redis string, version, users, fails int) {
	t.Helper()
	for user := 1; user <= users; user++ {
		var want []string
		if fails == 0 || user%fails != 0 {
			want = []string{fmt.Sprint(user)}
		}
		assert.Equal(t, want, ask(t, redis, "LRANGE", fmt.Sprintf("home*:%d:%d", version, user), "0", "-1"))
	}
}

func TestListsHaveAVersion(t *testing.T) {
	const users = 25
	w, redis, dir := newWorld(t), keyed(t, "home*x:1:1", "homeward:1:1").Addr(), t.TempDir()
	for version := int64(1); version <= 4; version++ {
		sum, err := w.lists(t, numbers(users), redis, dir, version).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, users, sum.Users)
		assert.Equal(t, version, sum.Version)
		assert.True(t, sum.Current)
		listed(t, redis, int(version), users, 0)
	}
	assert.Equal(t, []string{"4", "3"}, ask(t, redis, "ZREVRANGE", "home*", "0", "-1"), "the last version stays")
	listed(t, redis, 3, users, 0)
	assert.Len(t, ask(t, redis, "KEYS", "*"), 2*users+2+1+2, "two versions and their shares, the pointer, and two other keys")
	for _, key := range []string{"home*", "home*:4:7", "home*:shares:4"} {
		assert.Equal(t, []string{"3600"}, ask(t, redis, "TTL", key))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)

	_, err = w.lists(t, numbers(users), redis, dir, 3).Run(t.Context())
	assert.ErrorContains(t, err, "version 3 of home* is below the one that is there, 4")
	sum, err := w.lists(t, "7\n", redis, dir, 4).Run(t.Context()) // one that had failed
	require.NoError(t, err)
	assert.True(t, sum.Current)
	before := time.Now().UnixMilli()
	sum, err = w.lists(t, numbers(1), redis, dir, 0).Run(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, sum.Version, before)
}

// Lists can be interrupted like files. An interrupted job does not move the pointer, and in the
// end its version has each user once.
func TestListsGoOn(t *testing.T) {
	const users = 57
	for at := int64(1); at <= users; at += 8 {
		w, redis, dir := newWorld(t), keyed(t).Addr(), t.TempDir()
		w.fails.Store(7)
		ctx, cancel := context.WithCancel(t.Context())
		w.stop = func(user int64) {
			if user == at {
				cancel()
			}
		}
		_, err := w.lists(t, numbers(users), redis, dir, 0).Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, ask(t, redis, "ZREVRANGE", "home*", "0", "-1"))
		w.stop = func(int64) {}
		w.ran.Store(0)
		sum, err := w.lists(t, numbers(users), redis, dir, 0).Run(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, users-sum.Kept, w.ran.Load())
		assert.Equal(t, []string{fmt.Sprint(sum.Version)}, ask(t, redis, "ZREVRANGE", "home*", "0", "-1"))
		assert.Len(t, ask(t, redis, "KEYS", "*"), users-users/7+2, "no second version")
		listed(t, redis, int(sum.Version), users, 7)
		failed, err := os.ReadFile(filepath.Join(dir, "home.failed.jsonl"))
		require.NoError(t, err)
		assert.Equal(t, users/7, strings.Count(string(failed), "\n"))
	}
}

func TestThePointerStays(t *testing.T) {
	w, redis, dir := newWorld(t), keyed(t).Addr(), t.TempDir()
	w.fails.Store(3)
	for range 2 { // the second time, everything is kept
		sum, err := w.lists(t, numbers(30), redis, dir, 1).Run(t.Context())
		require.ErrorIs(t, err, ErrTooMany)
		assert.Equal(t, 10, sum.Failed)
		assert.False(t, sum.Current)
		assert.Empty(t, ask(t, redis, "ZREVRANGE", "home*", "0", "-1"))
	}
	j := w.lists(t, numbers(30), redis, dir, 1)
	j.Bounds = &Bounds{50, 1, 100, 100, 100}
	sum, err := j.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 30, sum.Kept)
	assert.True(t, sum.Current)

	_, err = w.lists(t, "", redis, dir, 2).Run(t.Context())
	require.ErrorIs(t, err, ErrTooMany, "nobody was ranked")
}

// The pointer moves when the last share is done.
func TestSharesOfAVersion(t *testing.T) {
	const shards, users = 3, 60
	w, redis := newWorld(t), keyed(t).Addr()
	for shard := range shards {
		for range 2 { // a share that runs twice still counts as one
			j := w.lists(t, numbers(users), redis, t.TempDir(), 5)
			j.Shard, j.Shards = shard, shards
			sum, err := j.Run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, shard == shards-1, sum.Current)
		}
	}
	listed(t, redis, 5, users, 0)
	j := w.lists(t, numbers(users), redis, t.TempDir(), 0)
	j.Shards = 2
	_, err := j.Run(t.Context())
	assert.ErrorContains(t, err, "need its number")
}

// A job ends with an error if a Redis cannot keep its lists. The job can go on later.
func TestListsThatRedisRefuses(t *testing.T) {
	s := testworld.StartRedis(t)
	w, dir := newWorld(t), t.TempDir()
	redis := s.Addr
	w.stop = func(user int64) {
		if user == 25 {
			s.Kill()
		}
	}
	_, err := w.lists(t, numbers(40), redis, dir, 1).Run(t.Context())
	var failed *resp.OpError
	require.ErrorAs(t, err, &failed)
	s.Restart(t) // Redis has lost everything.
	w.stop = func(int64) {}
	_, err = w.lists(t, numbers(40), redis, dir, 1).Run(t.Context())
	require.ErrorContains(t, err, "lists of version 1 of home* are lost in Redis")
	dir = t.TempDir()
	w.stop = func(user int64) {
		if user == 25 {
			ask(t, redis, "CONFIG", "SET", "maxmemory", "1")
		}
	}
	_, err = w.lists(t, numbers(40), redis, dir, 1).Run(t.Context())
	require.ErrorContains(t, err, "OOM")
	w.stop = func(int64) {}
	ask(t, redis, "CONFIG", "SET", "maxmemory", "0")
	sum, err := w.lists(t, numbers(40), redis, dir, 1).Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 20, sum.Kept)
	assert.True(t, sum.Current)
}

// Lists are on all masters of a real Redis Cluster, and old versions are removed from all of
// them.
func TestListsOfARealCluster(t *testing.T) {
	const users = 300
	c := testworld.StartRedisCluster(t, 3)
	w := newWorld(t)
	for version := int64(1); version <= 3; version++ {
		j := w.lists(t, numbers(users), c.Addr(), t.TempDir(), version)
		j.CheckpointUsers = 100
		sum, err := j.Run(t.Context())
		require.NoError(t, err)
		assert.True(t, sum.Current)
	}
	assert.Equal(t, []string{"3", "2"}, ask(t, c.Addr(), "ZREVRANGE", "home*", "0", "-1"))
	listed(t, c.Addr(), 2, 50, 0)
	keys := 0
	for i := range c.Nodes {
		var n int
		_, err := fmt.Sscan(c.Do(t, i, "DBSIZE"), &n)
		require.NoError(t, err)
		assert.Greater(t, n, users/3)
		keys += n
	}
	assert.Equal(t, 2*users+2*clusterCopies+1, keys)
}
