package cache_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/draw"
)

// cacheData fills a Redis with what random plans read. There are values of each kind, malformed
// values and keys of wrong kinds. Some keys are missing.
func cacheData(rng *rand.Rand, do func(args ...string)) {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	id := func() string { return one("x", "12y", "") + strconv.Itoa(rng.IntN(40)) }
	for n := range 40 {
		key := strconv.Itoa(n)
		switch rng.IntN(8) {
		case 0:
		case 1:
			do("SET", "item:"+key, "no hash")
		default:
			hash := []string{"HSET", "item:" + key}
			for _, field := range [][]string{{"ti", "rain", "", "snow " + key}, {"likes", "12", "many", key}, {"quality", "0.5", "nan", "1e3"},
				{"premium", "1", "false", "maybe"}, {"tags", "a,b", "", "[1]", `["c"]`}, {"author_id", "3", key, "4.5"}} {
				if rng.IntN(5) > 0 {
					hash = append(hash, field[0], one(field[1:]...))
				}
			}
			if len(hash) > 2 {
				do(hash...)
			}
		}
		for _, prefix := range []string{"follow:", "media:", "sim:", "inbox:", "recommendation:"} {
			switch entries := rng.IntN(7); {
			case entries == 0 && rng.IntN(3) == 0:
				do("SET", prefix+key, "no list")
			case entries > 0:
				list := []string{"RPUSH", prefix + key}
				for range entries {
					list = append(list, id())
				}
				do(list...)
			}
		}
		for range rng.IntN(6) {
			do("SADD", "set:"+key, id())
			do("ZADD", "sorted:"+key, one("1", "2.5", "inf", "-3"), id())
			do("XADD", "stream:"+key, "*", "item", id(), one("score", "inbox_score"), one("1", "2.5", "inf"))
		}
		switch rng.IntN(6) {
		case 0:
			do("SET", "user:"+key, "no hash")
		case 1, 2, 3, 4:
			do("HSET", "user:"+key, one("country", "name"), one("", "DE", "FR"))
		}
		if rng.IntN(3) > 0 {
			do("SET", "author:"+key+":n", one("7", "seven", key))
		}
	}
}

// mayBeKept reports whether a node with this command, if any, may say how old a value from memory may be.
func mayBeKept(command any) bool {
	args, ok := command.([]any)
	switch {
	case !ok:
		return true
	case args[0] == "ZRANK" || args[0] == "ZUNION":
		return args[1] == 1
	}
	return !slices.Contains(args[2:], any("{user}"))
}

// cachePlan returns a random plan of the nodes that keep what they read. Candidates are read from keys of one of kinds.
func cachePlan(rng *rand.Rand, name string, kinds []string) string {
	var nodes []map[string]any
	add := func(op, key string, params map[string]any) {
		node := map[string]any{"node_id": "n" + strconv.Itoa(len(nodes)), "op": op, "inputs": []string{}, "params": params}
		if len(nodes) > 0 {
			node["inputs"] = []string{nodes[len(nodes)-1]["node_id"].(string)}
		}
		params["endpoint"] = "ep_0001"
		if key != "" {
			params["key"] = key
		}
		switch rng.IntN(6) {
		case 0:
			params["fresh"] = true
		case 1:
			if mayBeKept(params["command"]) {
				params["cache_age"] = 1800.5
			}
		}
		if rng.IntN(2) > 0 {
			node["on_error"] = "partial"
		}
		nodes = append(nodes, node)
	}
	some := func(prefix, mark string) {
		if rng.IntN(3) == 0 {
			two := []any{"ZUNION", 2, "sorted:" + mark, "sorted:1"}
			if !slices.Contains(kinds, "set") { // a cluster, on which the keys of a command share a slot
				two = []any{"ZUNION", 1, "sorted:" + mark}
			}
			stated := []map[string]any{
				{"command": []any{"SMEMBERS", "set:" + mark}, "limit": 1 + rng.IntN(3)},
				{"command": two, "limit": 3},
				{"command": []any{"ZRANGEBYSCORE", "sorted:" + mark, 0, "+inf", "WITHSCORES", "LIMIT", 0, 1 + rng.IntN(3)}, "score": "inbox_score"},
				{"command": []any{"ZREVRANGEBYSCORE", "sorted:" + mark, "{user}", "-inf", "LIMIT", 0, 3}}, // by request
				{"command": []any{"ZUNION", 1, "sorted:" + mark, "WITHSCORES"}, "score": "inbox_score", "reverse": true, "limit": 1 + rng.IntN(3)},
				{"command": []any{"XREVRANGE", "stream:" + mark, "+", "-", "COUNT", 1 + rng.IntN(3)}, "id_field": []string{"item", "by"}[rng.IntN(2)], "score": "inbox_score"},
				{"command": []any{"SMEMBERS", "set:" + mark}, "id_prefix": "1"},
			}
			if !slices.Contains(kinds, "set") {
				stated = slices.DeleteFunc(stated, func(params map[string]any) bool { return params["command"].([]any)[0] == "SMEMBERS" })
			}
			add("candidates", "", stated[rng.IntN(len(stated))])
			return
		}
		params := map[string]any{"limit": 1 + rng.IntN(6)}
		kind := kinds[rng.IntN(len(kinds))]
		params["kind"] = kind
		key := map[string]string{"list": prefix, "set": "set:", "sorted_set": "sorted:"}[kind]
		if kind != "set" && rng.IntN(2) == 0 {
			params["reverse"] = true
		}
		switch {
		case kind == "sorted_set" && rng.IntN(2) == 0:
			params["score"] = "inbox_score"
		case kind == "sorted_set" && rng.IntN(2) == 0:
			params["min_member"], params["max_member"] = "1", []string{"5", "{user}"}[rng.IntN(2)] // The second depends on the request.
		}
		add("candidates", key+mark, params)
	}
	if rng.IntN(2) == 0 {
		add("viewer", "", map[string]any{})
		add([]string{"follow", "recommendation"}[rng.IntN(2)], "", map[string]any{"fanout": 1 + rng.IntN(6)})
		if rng.IntN(2) == 0 {
			add("media", "", map[string]any{"fanout": 1 + rng.IntN(6)})
		}
	} else {
		some("inbox:", "{user}")
	}
	if rng.IntN(2) == 0 {
		some("sim:", "{id}")
	}
	for range rng.IntN(3) {
		params := map[string]any{"missing": []string{"null", "drop", "fail", "null"}[rng.IntN(4)]}
		if rng.IntN(4) == 0 {
			params["value"], params["missing"] = "followers", []string{"default", "drop", "fail"}[rng.IntN(3)]
			if kind := []string{"", "counter", "string_length"}[rng.IntN(3)]; kind != "" {
				params["kind"] = kind
			}
			add("lookup", "author:{id}:n", params)
			continue
		}
		if rng.IntN(4) == 0 {
			if rng.IntN(2) == 0 {
				params["command"], params["fields"] = []any{"HGETALL", "item:{id}"}, [][]string{{"title"}, {"likes", "tags"}}[rng.IntN(2)]
			} else {
				params["value"], params["missing"] = "followers", []string{"default", "drop", "fail"}[rng.IntN(3)]
				params["command"] = [][]any{{"ZCOUNT", "sorted:{id}", 0, "+inf"}, {"ZCOUNT", "sorted:{id}", 0, "{user}"}, {"ZRANK", "sorted:{user}", "{id}"}, {"HGET", "item:{id}", "c_likes"}}[rng.IntN(4)]
			}
			add("lookup", "", params)
			continue
		}
		params["fields"] = [][]string{{"title"}, {"likes"}, {"quality", "tags"}, {"premium", "author_id", "title", "likes"}}[rng.IntN(4)] // few, so that nodes share entries
		if rng.IntN(3) == 0 {
			params["fields"] = []string{"likes", "title"}
			params["timestamp"], params["max_age"] = "likes", float64(1+rng.IntN(2))*1e9
		}
		add("lookup", "item:{id}", params)
	}
	if rng.IntN(3) == 0 {
		add("frequency_cap", "author:{id}:n", map[string]any{"max": 1 + rng.IntN(3)})
		last := nodes[len(nodes)-1]
		delete(last, "on_error")
		last["params"].(map[string]any)["fresh"] = false
	}
	document, err := json.Marshal(map[string]any{
		"schema_version": 1, "plan_name": name, "nodes": nodes, "outputs": []any{nodes[len(nodes)-1]["node_id"]},
		"capabilities_required": []string{"cap.rankd.on_error.v1"},
	})
	if err != nil {
		panic(err)
	}
	return string(document)
}

var cacheSeeds = flag.Uint64("seeds", 1, "number of worlds of random data and plans with and without a cache")

// On data that does not change, random plans have the same answers, errors and counts with a
// cache and without.
func TestAnswersFromMemoryAreTheSame(t *testing.T) {
	one := func(t *testing.T, addr string) {
		client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
		defer client.Close()
		compareWithCache(t, addr, enginetest.CacheForAnHour, func(args ...string) {
			var b resp.Batch
			b.Cmd(args...)
			require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
		})
	}
	t.Run("embedded", func(t *testing.T) {
		redis, err := rankdtest.StartRedis()
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		one(t, redis.Addr())
	})
	t.Run("redis-server", func(t *testing.T) { one(t, testworld.StartRedis(t).Addr) })
	t.Run("cluster whose slots move", compareOnCluster)
}

// compareOnCluster compares while slots of a Redis Cluster move back and forth. Requests run before a slot's first key has moved,
// after each key, and before the nodes know the new owner. Sets are left out: a node lists the members of one in an order of its own.
func compareOnCluster(t *testing.T) {
	for seed := range *cacheSeeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := testworld.StartRedisCluster(t, 3)
			w := newClusterWriter(t, c)
			world := cacheWorld{c.Addr(), enginetest.CacheForAnHour, []string{"list", "sorted_set"}, func(args ...string) { require.NoError(t, w.do(args...)) }}
			plain := world.compare(t, rand.New(rand.NewPCG(24, 4+seed)), func(rng *rand.Rand, requests func(n int)) {
				owner := map[int]int{}
				for range 70 {
					slot := cluster.Slot([]byte(fmt.Sprint([]string{"item:", "inbox:", "follow:", "sim:"}[rng.IntN(4)], rng.IntN(40))))
					from, moved := owner[slot]
					if !moved {
						from = c.Owner(slot)
					}
					to := (from + 1 + rng.IntN(2)) % 3
					c.Agree(t)
					c.Move(t, slot, from, to, func() { requests(10) })
					owner[slot] = to
				}
			})
			assert.Greater(t, plain.Metrics().Redis[0].Redirected, uint64(5))
		})
	}
}

// compareWithCache compares answers with a cache of that policy to those without.
func compareWithCache(t *testing.T, addr, policy string, do func(args ...string)) {
	for seed := range *cacheSeeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			do("FLUSHALL")
			world := cacheWorld{addr, policy, []string{"list", "set", "sorted_set"}, do}
			world.compare(t, rand.New(rand.NewPCG(24, 4+seed)), func(_ *rand.Rand, requests func(n int)) { requests(2000) })
		})
	}
}

// A cacheWorld is a Redis, and which plans read it.
type cacheWorld struct {
	addr, policy string
	kinds        []string
	do           func(args ...string)
}

// compare fills the world, and has play send requests to two engines, of which one has a cache. It returns the other one.
func (w cacheWorld) compare(t *testing.T, rng *rand.Rand, play func(rng *rand.Rand, requests func(n int))) (plain *rankd.Engine) {
	cacheData(rng, w.do)
	folder, names := fstest.MapFS{}, []string{}
	for i := range 150 {
		name := fmt.Sprintf("random%d", i)
		names = append(names, name)
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(cachePlan(rng, name, w.kinds))}
	}
	plain = enginetest.Open(t, rankd.Options{Redis: w.addr, Registry: enginetest.CacheTables(""), Plans: folder})
	cached := enginetest.Open(t, rankd.Options{Redis: w.addr, Registry: enginetest.CacheTables(w.policy), Plans: folder})
	failed := 0
	play(rng, func(n int) {
		for range n {
			req := rankd.Request{Plan: names[rng.IntN(len(names))], UserID: int64(rng.IntN(12))}
			want, wantErr := plain.Rank(t.Context(), req)
			got, gotErr := cached.Rank(t.Context(), req)
			plan := string(folder[req.Plan+".plan.json"].Data)
			if wantErr != nil {
				require.NotErrorIs(t, wantErr, rankd.ErrInvalidPlan)
				require.EqualError(t, gotErr, wantErr.Error(), plan)
				failed++
				continue
			}
			require.NoError(t, gotErr, plan)
			require.Equal(t, enginetest.RowsOf(want), enginetest.RowsOf(got), plan)
			require.Equal(t, string(enginetest.AnswerJSON(t, want)["completeness"]), enginetest.CachedMember.ReplaceAllString(string(enginetest.AnswerJSON(t, got)["completeness"]), ""), plan)
		}
	})
	require.Greater(t, failed, 20)
	require.Less(t, failed, 1500)
	assert.Equal(t, plain.Metrics().Values, cached.Metrics().Values)
	assert.Less(t, cached.Metrics().Redis[0].Commands, plain.Metrics().Redis[0].Commands*2/3)
	return plain
}

// Traces, explanations and completeness say what came from memory, and how old it was.
func TestAnswersSayWhatIsCached(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	plans := fstest.MapFS{"me.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "me", "outputs": ["follows"], "capabilities_required": ["cap.rankd.on_error.v1"], "nodes": [
		{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "follows", "op": "follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 3}, "on_error": "partial"}]}`)}}
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.CacheTables(enginetest.CacheForAnHour), Plans: plans, AllowRequestExplain: true, AllowRequestTrace: true})
	rank := func() *rankd.Answer {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1, Trace: true, Explain: rankd.Explain{All: true}})
		require.NoError(t, err)
		return a
	}

	first := rank()
	require.NotZero(t, first.Len())
	assert.NotContains(t, string(first.AppendJSON(nil, rankd.FormatFields)), "cached")

	second := rank()
	node := second.Trace().Nodes[1]
	assert.Positive(t, node.Cached)
	assert.Positive(t, node.CachedAge)
	assert.Zero(t, first.Trace().Nodes[1].Cached)
	of := second.Completeness()[0].Cached
	assert.Equal(t, node.Cached, of.Values)
	assert.Equal(t, node.CachedAge, of.Age)
	var text strings.Builder
	require.NoError(t, explain.Text(&text, second.Explanation()))
	assert.Regexp(t, `source  follows \(core::follow\), rank 1 of \d+, cached, \d+ ms old`, text.String())
	assert.Regexp(t, `written by follows \(core::follow\), cached, \d+ ms old`, text.String())
	assert.Regexp(t, `"completeness":\{"follows":\{"op":"core::follow","status":"ok","cached":\{"values":\d+,"age_ms":\d+\}\}\}`,
		string(second.AppendJSON(nil, rankd.FormatFields)))
	text.Reset()
	require.NoError(t, draw.Text(&text, draw.Options{}, draw.Run{Trace: second.Trace()}))
	assert.Regexp(t, `Cached: me \(1 value, [\d.]+ (µs|ms) old\), follows \(\d+ values, [\d.]+ (µs|ms) old\)\.`, text.String())
}

// cachedViewer is an engine that keeps users in memory.
type cachedViewer struct {
	t *testing.T
	e *rankd.Engine
}

func openCachedViewer(t *testing.T, addr, policy string) cachedViewer {
	return cachedViewer{t, enginetest.Open(t, rankd.Options{Redis: addr, Registry: enginetest.CacheTables(policy), Plans: enginetest.ViewerPlan})}
}

// country returns the country of user 1, and the number of commands that this took.
func (v cachedViewer) country() (country string, commands uint64) {
	country, commands, err := v.ask()
	require.NoError(v.t, err)
	return country, commands
}

func (v cachedViewer) ask() (country string, commands uint64, err error) {
	before := v.e.Metrics().Redis[0].Asked
	a, err := v.e.Rank(v.t.Context(), rankd.Request{Plan: "me", UserID: 1})
	if err != nil {
		return "", 0, err
	}
	for c := range a.Candidates() {
		country, _ = c.String("country")
	}
	return country, v.e.Metrics().Redis[0].Asked - before, nil
}

// becomes waits until the country is one of these and comes from memory. Requests may fail
// until then.
func (v cachedViewer) becomes(want ...string) {
	v.t.Helper()
	require.Eventually(v.t, func() bool {
		country, commands, err := v.ask()
		return err == nil && slices.Contains(want, country) && commands == 0
	}, 10*time.Second, 5*time.Millisecond, want)
}

// The keys of a server that tells of changes are served from memory. The old value is not
// served any more after a change was told, whatever happens to connections.
func TestTracking(t *testing.T) {
	for _, mode := range enginetest.TrackedModes {
		t.Run(mode, func(t *testing.T) { playTracking(t, mode) })
	}
}

func playTracking(t *testing.T, mode string) {
	addr := testworld.StartRedis(t).Addr
	writer := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer writer.Close()
	do := func(args ...string) {
		var b resp.Batch
		b.Cmd(args...)
		require.NoError(t, writer.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
	}
	do("HSET", "user:1", "country", "DE")
	v := openCachedViewer(t, addr, "cache = \""+mode+"\"\ncache_require = true\n")
	v.becomes("DE")
	do("HSET", "user:1", "country", "FR")
	v.becomes("FR")
	do("FLUSHALL")
	v.becomes("")
	do("HSET", "user:1", "country", "PL")
	v.becomes("PL")
	do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	do("HSET", "user:1", "country", "IT")
	v.becomes("IT")
	cache := v.e.Metrics().Caches[0]
	assert.Positive(t, cache.Invalidated)
	assert.Positive(t, cache.Dropped)
}

// The embedded Redis does not report changes. So values are kept by their age, or not at all.
func TestAServerThatDoesNotTell(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	v := openCachedViewer(t, redis.Addr(), "cache = \"broadcast\"\n")
	country, _ := v.country()
	v.becomes(country)
	assert.NoError(t, v.e.Ready(), "nothing requires that it tells")
	v = openCachedViewer(t, redis.Addr(), "cache = \"broadcast\"\ncache_require = true\n")
	require.Eventually(t, func() bool { return v.e.Ready() != nil }, 10*time.Second, time.Millisecond, "without a request")
	assert.ErrorContains(t, v.e.Ready(), "has cache_require, and its Redis does not report changes: ")
	assert.ErrorIs(t, v.e.Ready(), resp.ErrTrackingRefused)
	require.Eventually(t, func() bool { return v.e.Metrics().Caches[0].Untrusted > 3 || v.read() }, 10*time.Second, time.Millisecond)
	_, commands := v.country()
	assert.EqualValues(t, 1, commands)
}

// read reads, and returns false.
func (v cachedViewer) read() bool {
	v.country()
	return false
}

// BenchmarkFromMemory measures whole requests whose reads are all in memory. The time runs from
// Submit to the callback that submits the next request. Several requests are in flight, each of
// another user.
func BenchmarkFromMemory(b *testing.B) {
	redis, err := rankdtest.StartRedis()
	require.NoError(b, err)
	b.Cleanup(redis.Close)
	e := enginetest.Open(b, rankd.Options{Redis: redis.Addr(), Cache: registry.CacheTTL})
	for _, name := range []string{"concat_plan", "complex_dag"} {
		for _, inflight := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/inflight=%d", name, inflight), func(b *testing.B) {
				b.ReportAllocs()
				rankInFlight(b, e, name, inflight, b.N)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			})
		}
	}
}

// rankInFlight makes n requests, each of another user, with that many in flight.
func rankInFlight(b *testing.B, e *rankd.Engine, plan string, inflight, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	ended := make(chan error)
	for client := range inflight {
		var submit func(*rankd.Answer, error)
		submit = func(_ *rankd.Answer, err error) {
			if err != nil || left.Add(-1) < 0 {
				go func() { ended <- err }()
				return
			}
			e.Submit(context.Background(), rankd.Request{Plan: plan, UserID: int64(client) + 1}, submit)
		}
		submit(nil, nil)
	}
	for range inflight {
		require.NoError(b, <-ended)
	}
}

// A lookup that fails for a missing value takes from memory what is there, and counts each row once.
func TestLookupsThatFailCountEachRowOnce(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	var b resp.Batch
	for i, id := range []string{"1", "2", "3", "4"} {
		b.Cmd("HSET", "item:"+id, "likes", id)
		b.Cmd("RPUSH", "inbox:"+[]string{"1", "1", "2", "2"}[i], id)
	}
	b.Cmd("RPUSH", "inbox:3", "1", "2", "3")
	require.NoError(t, client.Do(&b, 0, func(resp.Replies) error { return nil }))
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.CacheTables(enginetest.CacheForAnHour), AllowRequestTrace: true, Plans: fstest.MapFS{"mine.plan.json": {Data: []byte(`{
		"schema_version": 1, "plan_name": "mine", "outputs": ["items"], "nodes": [
		{"node_id": "ids", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}", "limit": 10, "fresh": true}},
		{"node_id": "items", "op": "lookup", "inputs": ["ids"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["likes"], "missing": "fail"}}]}`)}}})
	for _, c := range []struct {
		name         string
		user         int64
		hits, misses uint64 // so far
		cached       int    // as the answer says
	}{
		{"none is there", 1, 0, 2, 0},
		{"all are there", 1, 2, 2, 2},
		{"and again", 1, 4, 2, 2},
		{"one is not", 3, 6, 3, 2},
		{"now it is", 3, 9, 3, 3},
	} {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "mine", UserID: c.user, Trace: true})
		require.NoError(t, err, c.name)
		cache := e.Metrics().Caches[0]
		assert.Equal(t, [2]uint64{c.hits, c.misses}, [2]uint64{cache.Hits, cache.Misses}, c.name)
		assert.Equal(t, c.cached, a.Trace().Nodes[1].Cached, c.name)
		assert.NotZero(t, a.Len(), c.name)
	}
}

// A node whose reads are all in memory runs inline. Otherwise it runs in a coroutine, and
// what it has found counts once.
func TestNodesInMemoryRunInline(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	do := func(args ...string) {
		var b resp.Batch
		b.Cmd(args...)
		require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
	}
	do("FLUSHALL")
	do("RPUSH", "follow:1", "2", "3", "4")
	do("RPUSH", "follow:5", "2", "3", "6")
	for _, hint := range []string{"", `, "scheduling": {"inline": false}`} {
		e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.CacheTables(enginetest.CacheForAnHour), AllowRequestTrace: true, MaxRows: 4, Timeout: time.Minute,
			Plans: fstest.MapFS{"me.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "me", "outputs": ["follows"], "nodes": [
				{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}` + hint + `},
				{"node_id": "follows", "op": "follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 3}` + hint + `}]}`)}}})
		for i, c := range []struct {
			user         int64
			places       [2]trace.Place
			ids          []int64
			hits, misses uint64 // of this request
		}{
			{user: 1, places: [2]trace.Place{trace.OnLoop, trace.OnLoop}, ids: []int64{2, 3, 4}, misses: 5},
			{user: 1, places: [2]trace.Place{trace.OnLoop, trace.OnLoop}, ids: []int64{2, 3, 4}, hits: 5},
			{user: 1, places: [2]trace.Place{trace.OnLoop, trace.OnLoop}, ids: []int64{2, 3, 4}, hits: 5},
			{user: 1, places: [2]trace.Place{trace.Inline, trace.Inline}, ids: []int64{2, 3, 4}, hits: 5},
			{user: 1, places: [2]trace.Place{trace.Inline, trace.Inline}, ids: []int64{2, 3, 4}, hits: 5},
			{user: 5, places: [2]trace.Place{trace.OnLoop, trace.OnLoop}, ids: []int64{2, 3, 6}, hits: 2, misses: 3}, // Both nodes were tried, the second with its input.
			{user: 5, places: [2]trace.Place{trace.Inline, trace.Inline}, ids: []int64{2, 3, 6}, hits: 5},
		} {
			before := e.Metrics().Caches[0]
			a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: c.user, Trace: true})
			require.NoError(t, err, i)
			var ids []int64
			for candidate := range a.Candidates() {
				ids = append(ids, candidate.ID())
			}
			after := e.Metrics().Caches[0]
			nodes := a.Trace().Nodes
			if hint != "" {
				c.places = [2]trace.Place{trace.OnLoop, trace.OnLoop}
			}
			assert.Equal(t, c.places, [2]trace.Place{nodes[0].Place, nodes[1].Place}, "%d%s", i, hint)
			assert.Equal(t, c.ids, ids, i)
			assert.Equal(t, [2]uint64{c.hits, c.misses}, [2]uint64{after.Hits - before.Hits, after.Misses - before.Misses}, i)
		}
		assert.Zero(t, e.Metrics().Placement.Inline, "no node computes")
	}
}

// A node whose many keys are all in memory lets other requests have their turns between the parts.
func TestALongReadFromMemoryTakesTurns(t *testing.T) {
	const parts = 3
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	var b resp.Batch
	b.Cmd("DEL", "items")
	b.Cmd("RPUSH", "like:1", "7")
	for id := range (parts-1)*task.PartCommands + 1 {
		b.Cmd("RPUSH", "items", strconv.Itoa(id+1))
	}
	require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
	for name, c := range map[string]struct {
		second string
		rows   int
	}{
		"lists":  {`{"node_id": "looked", "op": "candidates", "inputs": ["items"], "params": {"endpoint": "ep_0001", "key": "like:{id}"}}`, 1},
		"lookup": {`{"node_id": "looked", "op": "lookup", "inputs": ["items"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["title"]}}`, (parts-1)*task.PartCommands + 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.CacheTables(enginetest.CacheForAnHour), AllowRequestTrace: true, Timeout: time.Minute,
				Plans: fstest.MapFS{"long.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "long", "outputs": ["looked"], "nodes": [
					{"node_id": "items", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "items", "limit": 100000}},
					` + c.second + `]}`)}}})
			for i := range 2 { // The first request puts all that it has read into memory.
				before := e.Metrics().Caches[0]
				a, err := e.Rank(t.Context(), rankd.Request{Plan: "long", UserID: 1, Trace: true})
				require.NoError(t, err)
				assert.Equal(t, c.rows, a.Len())
				assert.Equal(t, i == 1, e.Metrics().Caches[0].Misses == before.Misses)
				sleeps := 0
				for _, f := range a.Trace().Flows {
					if f.Kind == trace.TimerFlow && f.Node == 1 {
						sleeps++
					}
				}
				assert.GreaterOrEqual(t, sleeps, parts-1, i) // It also takes turns after some time.
			}
		})
	}
}

// stock is a read of a task that is not built in: the float in the string at stock:{id}, for each row. Only the body uses it.
type stock struct {
	c      *task.Ctx
	in     rowset.RowSet
	values []float64
	memo   *task.Memo
}

func (s *stock) Keys() int          { return s.in.Len() }
func (s *stock) Batch(from int) int { return min(s.in.Len(), from+task.PartCommands) }
func (s *stock) Key(dst []byte, k int) []byte {
	return strconv.AppendInt(append(dst, "stock:"...), s.in.ID(k), 10)
}
func (s *stock) Recall(value []byte, _ int) error {
	s.values = append(s.values, float64(value[0]))
	return nil
}

func (s *stock) Ask(b *resp.Batch, from, to int) {
	for k := from; k < to; k++ {
		b.Cmd("GET", string(s.Key(nil, k)))
	}
}

func (s *stock) Take(replies resp.Replies, at, to, k int) error {
	for ; at < to; at, k = at+1, k+1 {
		reply := replies.At(at)
		if err := s.c.Redis(s.c.Node.Endpoint).CheckKind(reply, resp.Bulk, "GET", "stock:", s.in.ID(k)); err != nil {
			return err
		}
		n, _ := rowset.ParseInt(reply.Bytes())
		s.values = append(s.values, float64(n))
		if s.memo != nil {
			s.memo.Bytes = append(s.memo.Bytes, byte(n))
			s.memo.Keep()
		}
	}
	return nil
}

// A task of a program's own that says what it asks is kept in memory as a built-in one is.
func TestATaskOfAProgramsOwnReadsFromMemory(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	var b resp.Batch
	b.Cmd("RPUSH", "inbox:1", "1", "2", "3")
	b.Cmd("RPUSH", "inbox:2", "3", "1", "9")
	for i, n := range []string{"10", "20", "30"} {
		b.Cmd("SET", "stock:"+strconv.Itoa(i+1), n)
	}
	b.Cmd("SET", "stock:9", "90")
	require.NoError(t, client.Do(&b, 0, func(resp.Replies) error { return nil }))
	rule := task.Recall{Shape: "GET stock", Prefix: "stock:"}
	inStock := task.Spec{
		Op: "test::in_stock", Inputs: 1, Output: task.SameRows, Place: task.Waits, Writes: task.Columns(2001),
		Params: []plan.ParamSchema{{Name: "endpoint", Type: plan.Endpoint, Required: true}},
		Ask: func(c *task.Ctx, r *task.Reads, _ int) error {
			s := &stock{c: c, in: c.Inputs[0]}
			s.memo = r.Add(c, c.Node.Endpoint, &rule, s)
			return nil
		},
		Make: func(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) {
			s := r.At(0).(*stock)
			return rowset.Scatter(c.Memory, s.in, &rowset.FloatColumn{Key: 2001, Values: s.values}), nil
		},
	}
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.CacheTables(enginetest.CacheForAnHour), Tasks: []task.Spec{inStock}, Plans: fstest.MapFS{"mine.plan.json": {Data: []byte(`{
		"schema_version": 1, "plan_name": "mine", "outputs": ["items"], "nodes": [
		{"node_id": "ids", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}", "limit": 10, "fresh": true}},
		{"node_id": "items", "op": "test::in_stock", "inputs": ["ids"], "params": {"endpoint": "ep_0001"}}]}`)}}})
	for _, c := range []struct {
		user         int64
		want         []any
		hits, misses uint64 // so far
	}{{1, []any{10.0, 20.0, 30.0}, 0, 3}, {1, []any{10.0, 20.0, 30.0}, 3, 3}, {2, []any{30.0, 10.0, 90.0}, 5, 4}} {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "mine", UserID: c.user})
		require.NoError(t, err)
		assert.Equal(t, c.want, rankdtest.Values(a.Output(0).Rows(), 2001))
		cache := e.Metrics().Caches[0]
		assert.Equal(t, [2]uint64{c.hits, c.misses}, [2]uint64{cache.Hits, cache.Misses})
	}
}
