package cache_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

var cacheFaults = flag.Duration("cache_faults", 2*time.Second, "how long TestCacheUnderFaults plays each mode")

// silenceMax is the value in the endpoint of TestCacheUnderFaults.
const silenceMax = 300 * time.Millisecond

// In TestCacheUnderFaults one client writes at full speed. Meanwhile the test kills
// connections, flushes, stops the server, and starts it again without data. Each request gets
// at least the version whose writer had its OK silenceMax before the request began.
func TestCacheUnderFaults(t *testing.T) {
	for _, mode := range enginetest.TrackedModes {
		t.Run(mode, func(t *testing.T) {
			w := &faultWorld{t: t, redis: testworld.StartRedis(t, "--tracking-table-max-keys", "50")}
			v := openCachedViewer(t, w.redis.Addr, "cache = \""+mode+"\"\ncache_max_age_ms = 60000\nrequest_timeout_ms = 10000\ntracking_max_silence_ms = "+strconv.FormatInt(silenceMax.Milliseconds(), 10)+"\n")
			var all sync.WaitGroup
			end := time.Now().Add(*cacheFaults)
			until := func(step func(rng *rand.Rand)) {
				rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
				all.Go(func() {
					for time.Now().Before(end) && !t.Failed() {
						step(rng)
					}
				})
			}
			w.writer, w.killer = w.client(), w.client()
			until(w.write)
			until(w.disturb)
			for range 4 {
				until(func(rng *rand.Rand) { w.read(v, rng) })
			}
			all.Wait()
			cache := v.e.Metrics().Caches[0]
			w.ages.report(t)
			t.Logf("%d requests, %d failed, %d writes, %d hits, %d dropped by their keys, %d times all", w.reads.Load(), w.failed.Load(), w.writes.Load(), cache.Hits, cache.Invalidated, cache.Dropped)
			assert.Positive(t, cache.Hits)
			assert.Positive(t, cache.Invalidated)
			assert.Greater(t, w.reads.Load(), 2*w.failed.Load())
		})
	}
}

const faultUsers = 200

// A faultWorld is a server with users whose country is a version, and the clients that write
// there.
type faultWorld struct {
	t              *testing.T
	redis          *testworld.Redis
	writer, killer *blocking.Client
	reads, failed  atomic.Int64
	writes         atomic.Int64
	flush, restart atomic.Bool // tell the writer to flush, and to start the server again
	ages           ages

	mu      sync.Mutex
	version int64                // the last that was written
	acked   [faultUsers][]change // of each user, ascending, noted before they are sent; old ones are removed
}

// A change of a user has had its OK at that time. The time is far in the future if nobody
// knows.
type change struct {
	at      time.Time
	version int64
	absent  bool
}

func (w *faultWorld) client() *blocking.Client {
	c := blocking.NewClient(clock.NewReal(), resp.Options{Addr: w.redis.Addr, RequestTimeout: time.Minute})
	w.t.Cleanup(c.Close)
	return c
}

// do sends commands, and reports whether they had an OK.
func do(c *blocking.Client, fill func(b *resp.Batch)) (text string, ok bool) {
	var b resp.Batch
	fill(&b)
	err := c.Do(&b, 0, func(replies resp.Replies) error {
		text = string(replies.At(0).Bytes())
		return replies.At(0).Err()
	})
	return text, err == nil
}

// write changes some users, or all.
func (w *faultWorld) write(rng *rand.Rand) {
	var users []int
	flush, restart := w.flush.Swap(false), w.restart.Swap(false)
	all := flush || restart
	for i := range faultUsers {
		if all || rng.IntN(faultUsers) < 8 {
			users = append(users, i)
		}
	}
	w.version++
	absent := all || rng.IntN(8) == 0
	w.mu.Lock()
	for _, user := range users {
		list := w.acked[user]
		if old := len(list) - 1000; old > 0 && time.Since(list[old].at) > time.Minute {
			list = slices.Delete(list, 0, old)
		}
		w.acked[user] = append(list, change{time.Now().Add(time.Hour), w.version, absent})
	}
	w.mu.Unlock()
	ok := false
	if restart {
		ok = w.redis.Again() == nil // The server's data are gone with it.
	} else {
		ok = w.change(users, flush, absent)
	}
	if !ok {
		return
	}
	w.writes.Add(int64(len(users)))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, user := range users {
		list := w.acked[user]
		list[len(list)-1].at = time.Now()
	}
}

// change sends the commands of write.
func (w *faultWorld) change(users []int, flush, absent bool) (ok bool) {
	_, ok = do(w.writer, func(b *resp.Batch) {
		b.Cmd("PING")
		for _, user := range users {
			switch key := "user:" + strconv.Itoa(user+1); {
			case flush:
			case absent:
				b.Cmd("DEL", key)
			default:
				b.Cmd("HSET", key, "country", strconv.FormatInt(w.version, 10))
			}
		}
		if flush {
			b.Cmd("FLUSHALL")
		}
	})
	return ok
}

// read asks for a user, and compares the answer with what was promised.
func (w *faultWorld) read(v cachedViewer, rng *rand.Rand) {
	user := rng.IntN(faultUsers)
	began := time.Now()
	a, err := v.e.Rank(w.t.Context(), rankd.Request{Plan: "me", UserID: int64(user + 1)})
	now := time.Now()
	w.reads.Add(1)
	if err != nil {
		w.failed.Add(1)
		return
	}
	var country string
	for c := range a.Candidates() {
		country, _ = c.String("country")
	}
	version, _ := strconv.ParseInt(country, 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.acked[user]
	for i := len(list) - 1; i >= 0; i-- {
		switch c := list[i]; {
		case country != "" && c.version <= version, country == "" && c.absent:
			return // The answer is as new as this change.
		case c.at.Before(began):
			w.ages.add(now.Sub(c.at))
			assert.LessOrEqual(w.t, began.Sub(c.at), silenceMax, "user %d: %q after %v", user+1, country, list[max(0, len(list)-3):])
		}
	}
}

// disturb does one of the things that go wrong rarely.
func (w *faultWorld) disturb(rng *rand.Rand) {
	switch rng.IntN(7) {
	case 0:
		_, _ = do(w.killer, func(b *resp.Batch) { b.Cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
	case 1, 2: // Any connection may be hit: the writer's, one that reads, or the one that hears of changes.
		list, _ := do(w.killer, func(b *resp.Batch) { b.Cmd("CLIENT", "LIST", "TYPE", "normal") })
		lines := strings.Split(strings.TrimSpace(list), "\n")
		id, _, _ := strings.Cut(strings.TrimPrefix(lines[rng.IntN(len(lines))], "id="), " ")
		_, _ = do(w.killer, func(b *resp.Batch) { b.Cmd("CLIENT", "KILL", "ID", id, "SKIPME", "yes") })
	case 3:
		w.flush.Store(true)
	case 4:
		p := w.redis.Process()
		if p != nil && p.Signal(syscall.SIGSTOP) == nil {
			time.Sleep(time.Duration(rng.IntN(int(2 * silenceMax))))
			_ = p.Signal(syscall.SIGCONT)
		}
	case 5:
		w.restart.Store(true)
	default:
		_, _ = do(w.killer, func(b *resp.Batch) { b.Cmd("CLIENT", "PAUSE", strconv.Itoa(rng.IntN(400)), "ALL") })
	}
	time.Sleep(time.Duration(rng.IntN(int(300 * time.Millisecond))))
}

// ages count answers that lack a change, by how long after the change's OK they came, in powers
// of two of microseconds.
type ages struct {
	counts [40]int
	most   time.Duration
}

func (a *ages) add(d time.Duration) {
	i := 0
	for u := d.Microseconds(); u > 0; u >>= 1 {
		i++
	}
	a.counts[i]++
	a.most = max(a.most, d)
}

func (a *ages) report(t *testing.T) {
	total, sum := 0, 0
	for _, n := range a.counts {
		total += n
	}
	for i, n := range a.counts {
		before := sum
		sum += n
		for _, p := range []int{50, 99} {
			if before < total*p/100 && sum >= total*p/100 {
				t.Logf("of %d answers that lacked a change, %d %% were within %v of its OK", total, p, time.Duration(1<<i)*time.Microsecond)
			}
		}
	}
	t.Logf("the most: %v", a.most)
}

// A key may change on the server by itself, or the server may go away. Both are changes like
// any other: the value is dropped.
func TestCacheAfterEventsOfTheServer(t *testing.T) {
	modes := map[string]string{
		"ttl": "cache = \"ttl\"\ncache_max_age_ms = 200\n", "broadcast": "cache = \"broadcast\"\n", "track": "cache = \"track\"\n",
	}
	for _, event := range []struct {
		name string
		play func(t *testing.T, v cachedViewer, server *testworld.Redis, do func(args ...string))
	}{
		{"the key expires", func(_ *testing.T, v cachedViewer, _ *testworld.Redis, do func(args ...string)) {
			do("PEXPIRE", "user:1", "600")
			v.becomes("DE", "") // It may have expired already.
			v.becomes("")
		}},
		{"the key is evicted", func(_ *testing.T, v cachedViewer, _ *testworld.Redis, do func(args ...string)) {
			do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
			do("CONFIG", "SET", "maxmemory", "1")
			v.becomes("")
			do("CONFIG", "SET", "maxmemory", "0")
			do("HSET", "user:1", "country", "FR")
			v.becomes("FR")
		}},
		{"the server starts again with other data", func(t *testing.T, v cachedViewer, server *testworld.Redis, do func(args ...string)) {
			server.Restart(t)
			do("HSET", "user:1", "country", "FR")
			v.becomes("FR")
			do("HSET", "user:1", "country", "PL")
			v.becomes("PL")
		}},
		{"the server becomes a replica of another with other data, and a primary again", func(t *testing.T, v cachedViewer, _ *testworld.Redis, do func(args ...string)) {
			other := testworld.StartRedis(t, "--repl-diskless-sync-delay", "0")
			client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: other.Addr})
			defer client.Close()
			write := func(country string) {
				_, ok := doOne(client, "HSET", "user:1", "country", country)
				require.True(t, ok)
			}
			write("FR")
			do("REPLICAOF", "127.0.0.1", strconv.Itoa(other.Port))
			v.becomes("FR")
			write("PL")
			v.becomes("PL")
			do("REPLICAOF", "NO", "ONE")
			do("HSET", "user:1", "country", "IT")
			v.becomes("IT")
		}},
	} {
		for mode, policy := range modes {
			t.Run(event.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				server := testworld.StartRedis(t)
				client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: server.Addr})
				defer client.Close()
				do := func(args ...string) {
					t.Helper()
					require.Eventually(t, func() bool { // tried again after the server was gone
						_, ok := doOne(client, args...)
						return ok
					}, 10*time.Second, 5*time.Millisecond, args)
				}
				do("HSET", "user:1", "country", "DE")
				v := openCachedViewer(t, server.Addr, policy)
				v.becomes("DE")
				event.play(t, v, server, do)
			})
		}
	}
}

func doOne(c *blocking.Client, args ...string) (text string, ok bool) {
	return do(c, func(b *resp.Batch) { b.Cmd(args...) })
}
