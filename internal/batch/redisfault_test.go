package batch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
)

const listUsers, listFails = 25, 7

// faultyRedis has two versions that are whole, and a fault at a command of a job.
type faultyRedis struct {
	*miniredis.Miniredis
	commands atomic.Int64
	at       atomic.Int64
	fault    func(p *server.Peer, command string) (ends bool)
}

func startFaultyRedis(t *testing.T, w *world) *faultyRedis {
	f := &faultyRedis{Miniredis: miniredis.RunT(t)}
	for version := int64(1); version <= 2; version++ {
		_, err := f.job(t, w, t.TempDir(), version).Run(t.Context())
		require.NoError(t, err)
	}
	f.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
		if command == "HELLO" || command == "CLIENT" {
			return false
		}
		at := f.at.Load()
		return at > 0 && f.commands.Add(1) >= at && f.fault(p, command)
	})
	return f
}

func (f *faultyRedis) job(t *testing.T, w *world, dir string, version int64) *Job {
	w.fails.Store(listFails)
	return w.lists(t, numbers(listUsers), f.Addr(), dir, version)
}

// whole checks that the pointer is at a version whose lists are all there, and that no others are.
func (f *faultyRedis) whole(t *testing.T, version int64) {
	t.Helper()
	versions, err := f.SortedSet("home*")
	require.NoError(t, err)
	require.Contains(t, versions, fmt.Sprint(version))
	prefix := fmt.Sprintf("home*:%d:", version)
	lists := 0
	for _, key := range f.Keys() {
		if user, ours := strings.CutPrefix(key, prefix); ours {
			rows, err := f.List(key)
			require.NoError(t, err)
			require.Equal(t, []string{user}, rows)
			lists++
		}
	}
	require.Equal(t, listUsers-listUsers/listFails, lists)
}

// TestListsAtEachCommand ends a job at each of its commands, with a Redis that refuses writes from then on, one that closes the connection, and one that closes it behind the command. Then the
// same job gives each user one list, and the pointer is at its version only when they are there.
func TestListsAtEachCommand(t *testing.T) {
	reads := map[string]bool{"HGET": true, "HVALS": true, "ZREVRANGE": true, "SCAN": true}
	for name, fault := range map[string]func(p *server.Peer, command string) bool{
		"writes are refused": func(p *server.Peer, command string) bool {
			if reads[command] {
				return false
			}
			p.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
			return true
		},
		"connections close": func(p *server.Peer, _ string) bool { p.Close(); return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := startFaultyRedis(t, w)
			f.fault = func(*server.Peer, string) bool { return false }
			f.at.Store(1 << 40)
			_, err := f.job(t, w, t.TempDir(), 3).Run(t.Context())
			require.NoError(t, err)
			commands := int(f.commands.Load())
			require.Greater(t, commands, 100)
			f.fault = fault
			ended := 0
			for at := 1; at <= commands; at += 3 {
				dir, version := t.TempDir(), int64(3+at)
				f.commands.Store(0)
				f.at.Store(int64(at))
				_, err := f.job(t, w, dir, version).Run(t.Context())
				f.at.Store(0)
				if err != nil {
					ended++
					sum, err := f.job(t, w, dir, version).Run(t.Context())
					require.NoError(t, err, "command %d", at)
					require.True(t, sum.Current)
				}
				f.whole(t, version)
			}
			assert.Greater(t, ended, commands/6)
		})
	}
}

// TestListsThatRedisLoses has Redis lose all data before each command of a job. The pointer never leads to a version without its lists.
func TestListsThatRedisLoses(t *testing.T) {
	w := newWorld(t)
	f := startFaultyRedis(t, w)
	lost := false
	f.fault = func(*server.Peer, string) bool {
		if !lost {
			lost = true
			f.FlushAll()
		}
		return false
	}
	failed := 0
	for at := int64(1); ; at++ {
		dir, version := t.TempDir(), 10+at
		lost = false
		f.commands.Store(0)
		f.at.Store(at)
		_, err := f.job(t, w, dir, version).Run(t.Context())
		f.at.Store(0)
		if err == nil && f.commands.Load() < at {
			break // beyond the last command
		}
		versions, _ := f.SortedSet("home*") // There may be no key.
		if _, current := versions[fmt.Sprint(version)]; err == nil && current {
			f.whole(t, version)
		} else if err != nil {
			failed++
			require.NotContains(t, versions, fmt.Sprint(version), "command %d", at)
			require.ErrorContains(t, err, "are lost in Redis")
			_, err = f.job(t, w, dir, version).Run(t.Context())
			require.ErrorContains(t, err, "--restart ranks all again")
			j := f.job(t, w, dir, version)
			j.Restart = true
			_, err = j.Run(t.Context())
			require.NoError(t, err)
			f.whole(t, version)
		}
	}
	assert.Greater(t, failed, 70)
}

// A write that Redis refuses in the middle of a checkpoint's users ends the job.
func TestAWriteThatIsRefusedInTheMiddle(t *testing.T) {
	s := testworld.StartRedis(t)
	w := newWorld(t)
	w.stop = func(user int64) {
		switch user {
		case 1000:
			ask(t, s.Addr, "CONFIG", "SET", "maxmemory", "1")
		case 3500:
			ask(t, s.Addr, "CONFIG", "SET", "maxmemory", "0")
		}
	}
	j := w.lists(t, numbers(8000), s.Addr, t.TempDir(), 1)
	j.CheckpointUsers = 8000
	_, err := j.Run(t.Context())
	require.ErrorContains(t, err, "OOM")
	assert.Empty(t, ask(t, s.Addr, "ZREVRANGE", "home*", "0", "-1"))
}

// Two jobs do not write the same share of a version, although they have other files of checkpoints.
func TestOneJobForAShare(t *testing.T) {
	w, redis, dir := newWorld(t), keyed(t).Addr(), t.TempDir()
	w.interrupt(t, w.lists(t, numbers(40), redis, dir, 5), 27)
	other := filepath.Join(dir, "other")
	_, err := w.lists(t, numbers(30), redis, other, 5).Run(t.Context())
	require.ErrorContains(t, err, fmt.Sprintf("share 0/1 of version 5 of home* is that of another batch, process %d on ", os.Getpid()))
	j := w.lists(t, numbers(30), redis, other, 5)
	j.Restart = true
	_, err = j.Run(t.Context())
	require.NoError(t, err)
	_, err = w.lists(t, numbers(40), redis, dir, 5).Run(t.Context())
	require.ErrorContains(t, err, "is that of another batch now")
}

// A job that begins anew leaves no list of the one before in its version.
func TestARestartLeavesNoLists(t *testing.T) {
	for _, shards := range []int{1, 2} {
		w, redis, dir := newWorld(t), keyed(t, "home*:5:own").Addr(), t.TempDir()
		job := func(users int, shard int) *Job {
			j := w.lists(t, numbers(users), redis, filepath.Join(dir, fmt.Sprint(shard)), 5)
			j.Shard, j.Shards = shard, shards
			return j
		}
		if shards == 2 {
			_, err := job(40, 1).Run(t.Context())
			require.NoError(t, err)
		}
		j := job(40, 0)
		j.disk.step = func(change, path string, do func() error) error {
			if change == "remove" {
				return errKilled
			}
			return do()
		}
		j.Bounds = &Bounds{} // The pointer does not move.
		w.empty.Store(40)
		_, err := j.Run(t.Context())
		require.Error(t, err)
		w.empty.Store(0)
		j = job(10, 0)
		j.Restart = true
		sum, err := j.Run(t.Context())
		require.NoError(t, err)
		want := sum.Users
		if shards == 2 {
			want += 40 - sharesOf(40, 2)
		} else {
			want += 0
		}
		keys := ask(t, redis, "KEYS", `home\*:5:*`)
		if shards == 1 {
			assert.Len(t, keys, want)
		} else {
			assert.GreaterOrEqual(t, len(keys), want)
			assert.LessOrEqual(t, len(keys), want+1, "the key that is no list of ours is of one share")
		}
	}
}

// sharesOf returns how many of the users are in the first share.
func sharesOf(users, shards int) (n int) {
	r := &running{Job: &Job{Shards: shards}}
	for user := range users {
		if r.shareOf(fmt.Sprint(user+1)) == 0 {
			n++
		}
	}
	return n
}

// A version with many more empty answers than the one before is told.
func TestEmptyAnswersOfAVersion(t *testing.T) {
	w, redis := newWorld(t), keyed(t).Addr()
	for version, c := range []struct {
		empty int64 // users that are multiples of it have no rows
		told  bool
	}{{0, false}, {20, true}, {10, false}, {4, true}, {4, false}} {
		w.empty.Store(c.empty)
		var told []string
		j := w.lists(t, numbers(40), redis, t.TempDir(), int64(version+1))
		j.Warn = func(text string) { told = append(told, text) }
		_, err := j.Run(t.Context())
		require.NoError(t, err)
		if c.told {
			require.Len(t, told, 1)
			assert.Contains(t, told[0], fmt.Sprintf("of 40 users have no rows; in version %d it was ", version))
		} else {
			assert.Empty(t, told)
		}
	}
}

// Slots that move while lists are written, and while old ones are removed, harm nothing. A master that loses its data ends the job.
func TestListsOfAClusterThatChanges(t *testing.T) {
	const users = 300
	c := testworld.StartRedisCluster(t, 3)
	w := newWorld(t)
	job := func(version int64) *Job {
		j := w.lists(t, numbers(users), c.Addr(), t.TempDir(), version)
		j.CheckpointUsers = 50
		return j
	}
	slotOf := func(key string) (slot int) {
		_, err := fmt.Sscan(c.Do(t, 0, "CLUSTER", "KEYSLOT", key), &slot)
		require.NoError(t, err)
		return slot
	}
	for version := int64(1); version <= 2; version++ {
		moved := false
		w.stop = func(user int64) {
			if user == 170 && !moved {
				moved = true
				for n := range 40 {
					slot := slotOf(fmt.Sprintf("home*:%d:%d", version, 100+n*5))
					if from := c.Owner(slot); from != int(version) { // all to one master
						c.Move(t, slot, from, int(version))
					}
				}
			}
		}
		_, err := job(version).Run(t.Context())
		require.NoError(t, err)
		c.Agree(t)
		listed(t, c.Addr(), int(version), users, 0)
	}
	w.stop = func(int64) {}
	slot := slotOf("home*:1:7") // on its way while version 1 is removed
	from := c.Owner(slot)
	id := c.Do(t, (from+1)%3, "CLUSTER", "MYID")
	c.Do(t, from, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", id)
	sum, err := job(3).Run(t.Context())
	require.NoError(t, err)
	assert.True(t, sum.Current)
	assert.Equal(t, []string{"3", "2"}, ask(t, c.Addr(), "ZREVRANGE", "home*", "0", "-1"))
	c.Do(t, from, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "STABLE")

	for node := range 3 {
		w.stop = func(user int64) {
			if user == 170 {
				c.Do(t, node, "FLUSHALL")
			}
		}
		_, err := job(4 + int64(node)).Run(t.Context())
		require.ErrorContains(t, err, "are lost in Redis")
		assert.NotContains(t, ask(t, c.Addr(), "ZREVRANGE", "home*", "0", "-1"), fmt.Sprint(4+node))
	}
}

// The pace of commands is as the bound says, and a pause is made up for only in part.
func TestPace(t *testing.T) {
	for _, perSecond := range []int{1000, 4000} {
		sent := uint64(0)
		p := pace{sent: func() uint64 { return sent }, perSecond: perSecond, due: time.Now()}
		start := time.Now()
		for range 10 {
			sent += uint64(perSecond / 50)
			p.hold(t.Context())
		}
		took := time.Since(start)
		assert.GreaterOrEqual(t, took, 10*time.Second/50-paceCredit)
		assert.Less(t, took, 2*time.Second, "all commands count once")
		p.due = time.Now().Add(-time.Hour)
		sent += uint64(perSecond / 5)
		start = time.Now()
		p.hold(t.Context())
		assert.GreaterOrEqual(t, time.Since(start), time.Second/5-paceCredit-time.Millisecond)
	}
}
