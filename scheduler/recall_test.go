package scheduler_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
)

// A movedClock is a real clock that can be put forward. Any goroutine.
type movedClock struct {
	*clock.Real
	moved atomic.Int64
}

func (c *movedClock) Now() clock.Time           { return c.Real.Now().Add(time.Duration(c.moved.Load())) }
func (c *movedClock) put(forward time.Duration) { c.moved.Add(int64(forward)) }

// A recallWorld is an engine that keeps the lists sim:1, sim:2 and so on in memory, and a Redis that has them.
type recallWorld struct {
	t       *testing.T
	engine  *scheduler.Async
	reg     *registry.Registry
	clock   *movedClock
	version atomic.Int64 // of all lists: the last digits of their entries
	asked   atomic.Int64 // lists that Redis was asked for
	answers atomic.Pointer[func(id int) (entries int)]
}

func newRecallWorld(t *testing.T) *recallWorld {
	w := &recallWorld{t: t, clock: &movedClock{Real: clock.NewReal()}}
	w.answer(func(int) int { return 1 })
	redis, err := resptest.NewServer(func(args []string) []byte {
		if args[0] != "LRANGE" {
			return redcon.AppendOK(nil)
		}
		w.asked.Add(1)
		id, err := strconv.Atoi(strings.TrimPrefix(args[1], "sim:"))
		require.NoError(t, err)
		n, version := (*w.answers.Load())(id), w.version.Load()
		list := redcon.AppendArray(nil, n)
		for i := range n {
			list = redcon.AppendBulkString(list, strconv.FormatInt(entryOf(id, i, version), 10))
		}
		return list
	})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	w.reg = registryAt(t, redis.Addr(), "cache = \"ttl\"\ncache_max_bytes = 1048576\ncache_max_age_ms = 3600000\nrequest_timeout_ms = 60000\n")
	w.engine = openAsync(t, scheduler.Config{Registry: w.reg, Clock: w.clock, MaxRows: 1 << 16, Placement: scheduler.Placement{Mode: plan.InlineAll}}) // A node asks for 65,536 entries at a time.
	return w
}

// answer sets how many entries a list has from now on. Any goroutine.
func (w *recallWorld) answer(entries func(id int) int) { w.answers.Store(&entries) }

// entryOf returns entry i of a list.
func entryOf(id, i int, version int64) int64 { return 1<<40*int64(id) + 1000*int64(i) + version }

// execution returns a request that reads the lists of the ids 1 to n, up or down, each of at most limit entries.
func (w *recallWorld) execution(n int, order string, limit int, more string) *scheduler.Execution {
	artifact := schedulertest.PlanJSON("lists", schedulertest.Source(n),
		schedulertest.Node("sorted", "sort", "src", fmt.Sprintf(`"by": 1, "order": %q`, order), ""),
		schedulertest.Node("lists", "candidates", "sorted", fmt.Sprintf(`"endpoint": "ep_0001", "key": "sim:{id}", "limit": %d%s`, limit, more), `"on_error": "partial"`))
	artifact = strings.Replace(artifact, `"schema_version"`, `"capabilities_required": ["cap.rankd.on_error.v1"], "schema_version"`, 1)
	g, err := plan.Load("lists", []byte(artifact), builtins(w.t), w.reg)
	require.NoError(w.t, err)
	return &scheduler.Execution{Graph: g, UserID: 1}
}

// lists runs a request. It returns the ids, how many lists Redis was asked for, and what the node took from memory.
func (w *recallWorld) lists(n int, order string, limit int, more string) (ids []int64, asked int64, use rowcache.Use) {
	w.t.Helper()
	before := w.asked.Load()
	r := runOn(w.engine, w.execution(n, order, limit, more))
	require.NoError(w.t, r.Err)
	require.False(w.t, r.Degraded())
	for i := range r.Outputs[0].Len() {
		ids = append(ids, r.Outputs[0].ID(i))
	}
	return ids, w.asked.Load() - before, r.Completeness()[0].Cached
}

// longest makes a node read six lists at a time.
const longest = 10_000

// cache_age counts in seconds, from the read of a value to its use.
func TestCacheAge(t *testing.T) {
	const age = `, "cache_age": 5`
	t.Run("in seconds", func(t *testing.T) {
		w := newRecallWorld(t)
		for _, c := range []struct {
			forward        time.Duration
			version, asked int64
		}{{0, 0, 3}, {4 * time.Second, 0, 0}, {2 * time.Second, 2, 3}, {4 * time.Second, 2, 0}} {
			w.clock.put(c.forward)
			ids, asked, use := w.lists(3, "asc", longest, age)
			assert.Equal(t, []int64{entryOf(1, 0, c.version), entryOf(2, 0, c.version), entryOf(3, 0, c.version)}, ids)
			assert.Equal(t, [2]int64{c.asked, 3 - c.asked}, [2]int64{asked, int64(use.Values)})
			w.version.Add(1)
		}
	})
	t.Run("at its use", func(t *testing.T) { // which is after a wait for other lists
		w := newRecallWorld(t)
		w.lists(6, "asc", longest, age)
		w.clock.put(3 * time.Second)
		w.version.Store(1)
		w.answer(func(id int) int {
			if id == 12 {
				w.clock.put(3 * time.Second)
			}
			return 1
		})
		ids, asked, use := w.lists(12, "desc", longest, age)
		assert.EqualValues(t, 12, asked)
		assert.Zero(t, use)
		assert.Equal(t, entryOf(1, 0, 1), ids[11])
	})
}

// An answer says how old the oldest value is that its node took from memory, in whatever order the node takes them.
func TestAgeOfTheOldest(t *testing.T) {
	w := newRecallWorld(t)
	w.lists(6, "asc", longest, "")
	w.clock.put(10 * time.Second)
	_, asked, _ := w.lists(12, "asc", longest, "")
	require.EqualValues(t, 6, asked)
	w.clock.put(time.Second)
	for _, order := range []string{"asc", "desc"} {
		_, asked, use := w.lists(12, order, longest, "")
		assert.Zero(t, asked)
		assert.Equal(t, 12, use.Values)
		assert.GreaterOrEqual(t, use.Age, 11*time.Second, order)
	}
}

// A node that finds many lists in memory lets other requests have their turns in between.
func TestListsFromMemoryTakeTurns(t *testing.T) {
	w := newRecallWorld(t)
	w.lists(30, "asc", longest, "")
	ended := make(chan string, 2)
	long, short := w.execution(30, "asc", longest, ""), w.execution(6, "asc", longest, "")
	before := w.asked.Load()
	require.True(t, w.engine.Post(func() {
		w.engine.Submit(long, func(*scheduler.Result) { ended <- "long" })
		w.engine.Submit(short, func(*scheduler.Result) { ended <- "short" })
	}))
	assert.Equal(t, []string{"short", "long"}, []string{<-ended, <-ended})
	assert.Equal(t, before, w.asked.Load(), "all was in memory")
}

// What a node has found stays as it was while the node waits for the rest, though the table uses the memory again.
func TestValuesFoundOutlastAWait(t *testing.T) {
	w := newRecallWorld(t)
	want, _, _ := w.lists(8, "asc", 2000, "")
	w.answer(func(int) int { return 2000 }) // Some 16 KB each: the table has room for few that are new.
	ids, asked, use := w.lists(32, "asc", 2000, "")
	require.Equal(t, [2]int64{24, 8}, [2]int64{asked, int64(use.Values)})
	assert.Equal(t, want, ids[:8])
	assert.Equal(t, entryOf(32, 1999, 0), ids[len(ids)-1])
}
