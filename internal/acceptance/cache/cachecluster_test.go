package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/resp/clusterclient"
)

// A clusterWriter writes to a Redis Cluster on its own loop.
type clusterWriter struct {
	host   *reactor.Reactor
	client *clusterclient.Client
}

func newClusterWriter(t *testing.T, c *testworld.Cluster) *clusterWriter {
	w := &clusterWriter{host: reactor.New(reactor.Config{})}
	require.NoError(t, w.host.Start())
	w.client = clusterclient.New(w.host.Loop(), w.host, resp.Options{Addr: strings.TrimPrefix(c.Addr(), "redis+cluster://")})
	t.Cleanup(func() {
		w.host.Loop().Post(w.client.Close)
		w.host.Stop()
		<-w.host.Loop().Done()
	})
	return w
}

// do sends a command. It returns an error if the command may not have been run.
func (w *clusterWriter) do(args ...string) (err error) {
	done := make(chan struct{})
	call := &resp.Call{Done: func(call *resp.Call) {
		if err = call.Err; err == nil {
			err = call.Replies.At(0).Err()
		}
		close(done)
	}}
	call.Batch.Cmd(args...)
	w.host.Loop().Post(func() {
		if err = w.client.Do(call); err != nil {
			close(done)
		}
	})
	<-done
	return err
}

// Slots of a real cluster move back and forth, also to a master that has joined. At last a
// master is killed. Meanwhile users are read from memory and written. No request fails while
// slots move. Each gets at least the version whose writer had its OK silenceMax before the
// request began.
func TestCacheOnARedisCluster(t *testing.T) {
	for _, mode := range enginetest.TrackedModes {
		t.Run(mode, func(t *testing.T) { playCacheOnCluster(t, mode) })
	}
}

func playCacheOnCluster(t *testing.T, mode string) {
	const users = 60
	c := testworld.StartRedisCluster(t, 3)
	joined := c.AddMaster(t)
	writer := newClusterWriter(t, c)
	key := func(user int) string { return fmt.Sprint("user:", user) }
	var mu sync.Mutex
	var acked [users + 1]struct {
		version int
		at      time.Time
		before  int // the version before that
	}
	write := func(user, version int) error {
		err := writer.do("HSET", key(user), "country", strconv.Itoa(version))
		if err == nil {
			mu.Lock()
			a := &acked[user]
			a.before, a.version, a.at = a.version, version, time.Now()
			mu.Unlock()
		}
		return err
	}
	for user := 1; user <= users; user++ {
		require.NoError(t, write(user, 1))
	}
	v := openCachedViewer(t, c.Addr(), "cache = \""+mode+"\"\ncache_require = true\ntracking_max_silence_ms = "+strconv.FormatInt(silenceMax.Milliseconds(), 10)+"\n")
	require.Eventually(t, func() bool { return v.e.Metrics().Caches[0].Hits > 0 || v.read() }, 10*time.Second, time.Millisecond)
	require.NoError(t, v.e.Ready())
	var stop, killed atomic.Bool
	var failed, requests atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for version := 2; !stop.Load(); version++ {
			if err := write(1+rng.IntN(users), version); err != nil && !killed.Load() {
				t.Errorf("write: %v", err)
				return
			}
		}
	})
	for reader := range 3 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(reader)))
			for !stop.Load() {
				user := 1 + rng.IntN(users)
				mu.Lock()
				least := acked[user]
				mu.Unlock()
				if time.Since(least.at) < silenceMax {
					least.version = least.before
				}
				requests.Add(1)
				a, err := v.e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: int64(user)})
				if err != nil {
					failed.Add(1)
					if !killed.Load() {
						t.Errorf("request: %v", err)
						return
					}
					continue
				}
				for candidate := range a.Candidates() {
					country, _ := candidate.String("country")
					version, _ := strconv.Atoi(country)
					if version < least.version && time.Since(least.at) > silenceMax {
						t.Errorf("user %d has %d, and %d had its OK %v ago", user, version, least.version, time.Since(least.at))
						return
					}
				}
			}
		})
	}
	end := func() { stop.Store(true); all.Wait() }
	defer end()
	for _, way := range [][2]int{{0, 1}, {1, joined}, {joined, 2}, {2, 0}} {
		c.Agree(t)
		for user := 1; user <= users; user++ {
			slot := cluster.Slot([]byte(key(user)))
			if c.Owner(slot) == 0 {
				c.Move(t, slot, way[0], way[1])
			}
		}
		if t.Failed() {
			return
		}
	}
	before := v.e.Metrics().Caches[0]
	killed.Store(true)
	c.Nodes[2].Kill()
	require.Eventually(t, func() bool { return failed.Load() > 5 }, 20*time.Second, time.Millisecond, "its keys are not served")
	hits := v.e.Metrics().Caches[0].Hits
	require.Eventually(t, func() bool { return v.e.Metrics().Caches[0].Hits > hits+20 }, 20*time.Second, time.Millisecond, "those of others are")
	end()
	cache := v.e.Metrics().Caches[0]
	t.Logf("%d requests, %d failed; %d hits, %d before the kill, %d misses, %d dropped by their keys", requests.Load(), failed.Load(), cache.Hits, before.Hits, cache.Misses, cache.Invalidated)
	assert.Positive(t, before.Hits)
	assert.Positive(t, cache.Invalidated)
}

// BenchmarkOnARedisCluster compares three masters with one server. It also compares reads from
// the masters' replicas with reads from the masters. It reports requests, and the processor
// time per request of the engine and of the servers.
func BenchmarkOnARedisCluster(b *testing.B) {
	one := &testworld.Cluster{Nodes: []*testworld.Redis{testworld.StartRedis(b)}}
	three := testworld.StartRedisCluster(b, 3)
	for master := range 3 {
		three.AddReplica(b, master)
	}
	for _, plan := range []string{"concat_plan", "complex_dag"} {
		for _, of := range []struct {
			name, addr string
			servers    *testworld.Cluster
		}{
			{"one", one.Nodes[0].Addr, one}, {"cluster", three.Addr(), three},
			{"replicas", three.Addr() + "?read_from=replica", three}, {"nearest", three.Addr() + "?read_from=nearest", three},
		} {
			require.NoError(b, devredis.Load(b.Context(), of.addr))
			e := enginetest.Open(b, rankd.Options{Redis: of.addr})
			b.Run(plan+"/"+of.name, func(b *testing.B) {
				rankInFlight(b, e, plan, 64, 2000) // warm
				before, servers := load.ReadUsage(), serverTime(b, of.servers)
				b.ResetTimer()
				rankInFlight(b, e, plan, 64, b.N)
				b.StopTimer()
				used := load.ReadUsage().Since(before)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
				b.ReportMetric(float64(used.CPU.Microseconds())/float64(b.N), "cpu-µs/op")
				b.ReportMetric((serverTime(b, of.servers)-servers)*1e6/float64(b.N), "redis-cpu-µs/op")
			})
		}
	}
}

// serverTime returns the processor time of all nodes in seconds.
func serverTime(b *testing.B, c *testworld.Cluster) (seconds float64) {
	for i := range c.Nodes {
		for line := range strings.SplitSeq(c.Do(b, i, "INFO", "cpu"), "\r\n") {
			if name, value, _ := strings.Cut(line, ":"); name == "used_cpu_sys" || name == "used_cpu_user" {
				n, err := strconv.ParseFloat(value, 64)
				require.NoError(b, err)
				seconds += n
			}
		}
	}
	return seconds
}
