package rankd_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry/registrytest"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// ownTables are the tables of a team with data of its own.
func ownTables() fstest.MapFS {
	keys := registrytest.ID
	for i, k := range [][3]string{
		{"inbox_score", "float"}, {"title", "string", "field = \"ti\""}, {"likes", "int", "default = 2"}, {"quality", "float"}, {"premium", "bool"},
		{"tags", "string_set"}, {"author_id", "int"}, {"followers", "int", "default = 0"}, {"final", "float"}, {"country", "string"},
	} {
		keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable, k[2])
	}
	params := registrytest.Param(1, "country", "string", registrytest.Nullable, "context = true")
	return registrytest.Tables{Keys: keys, Params: params, Endpoints: registrytest.Redis}.FS()
}

// ownPlan reads an inbox, then items, then their authors, and ranks them.
var ownPlan = fstest.MapFS{"own.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "own", "outputs": ["top"], "nodes": [
	{"node_id": "inbox", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{country}:{user}", "kind": "sorted_set",
		"limit": 200, "score": "inbox_score"}},
	{"node_id": "sim", "op": "candidates", "inputs": ["inbox"], "params": {"endpoint": "ep_0001", "key": "sim:{id}", "limit": 3}},
	{"node_id": "all", "op": "concat", "inputs": ["inbox"], "params": {"rhs": "sim"}},
	{"node_id": "items", "op": "lookup", "inputs": ["all"], "params": {"endpoint": "ep_0001", "key": "item:{id}",
		"fields": ["title", "likes", "quality", "premium", "tags", "author_id"]}},
	{"node_id": "authors", "op": "lookup", "inputs": ["items"], "params": {"endpoint": "ep_0001", "key": "author:{id}:n", "value": "followers", "by": "author_id",
		"missing": "default"}},
	{"node_id": "known", "op": "lookup", "inputs": ["authors"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["likes"], "missing": "drop"}},
	{"node_id": "final", "op": "vm", "inputs": ["known"], "params": {"out_key": 18, "expr_id": "e"}},
	{"node_id": "sorted", "op": "sort", "inputs": ["final"], "params": {"by": 18, "order": "desc"}},
	{"node_id": "top", "op": "take", "inputs": ["sorted"], "params": {"count": 40}}],
	"expr_table": {"e": {"op": "add", "a": {"op": "key_ref", "key_id": 12}, "b": {"op": "mul", "a": {"op": "key_ref", "key_id": 17}, "b": {"op": "const_number", "value": 0.5}}}},
	"capabilities_required": ["cap.rankd.expressions.v1"]}`)}}

// ownData fills a Redis, and returns what the plan answers about user 7 in DE: id, title and final score.
func ownData(t *testing.T, addr string) []string {
	t.Helper()
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer client.Close()
	var b resp.Batch
	b.Cmd("FLUSHALL")
	rng := rand.New(rand.NewPCG(13, 13))
	type item struct {
		title, likes string
		author       int
	}
	items, sims, followers := make(map[int]item), make(map[int][]int), make(map[int]int)
	for author := range 20 {
		if author%4 > 0 {
			followers[author] = rng.IntN(1000)
			b.Cmd("SET", fmt.Sprintf("author:%d:n", author), strconv.Itoa(followers[author]))
		}
	}
	for id := range 300 {
		if id%7 == 0 {
			continue // no hash
		}
		it := item{fmt.Sprintf("title %d", id), strconv.Itoa(rng.IntN(500)), rng.IntN(20)}
		if id%11 == 0 {
			it.likes = "many"
		}
		items[id] = it
		b.Cmd("HSET", fmt.Sprintf("item:%d", id), "ti", it.title, "likes", it.likes, "quality", "0.25", "premium", "1", "tags", "a,b", "author_id", strconv.Itoa(it.author))
		for range id % 4 {
			sims[id] = append(sims[id], rng.IntN(300))
			b.Cmd("RPUSH", fmt.Sprintf("sim:%d", id), strconv.Itoa(sims[id][len(sims[id])-1]))
		}
	}
	inbox := rng.Perm(300)[:150]
	for i, id := range inbox {
		b.Cmd("ZADD", "inbox:DE:7", strconv.Itoa(1000-i), strconv.Itoa(id))
	}
	b.Cmd("ZADD", "inbox:DE:7", "2000", "draft")
	require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error {
		for i, r := range replies.All() {
			require.NoError(t, r.Err(), i)
		}
		return nil
	}))

	all := slices.Clone(inbox)
	for _, id := range inbox {
		all = append(all, sims[id]...)
	}
	type row struct {
		text  string
		final float64
	}
	var rows []row
	for _, id := range all {
		it, ok := items[id]
		likes, err := strconv.Atoi(it.likes)
		if !ok || err != nil {
			continue
		}
		final := float64(likes) + 0.5*float64(followers[it.author])
		rows = append(rows, row{fmt.Sprintf("%d %s %v", id, it.title, final), final})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return int(2 * (b.final - a.final)) })
	var want []string
	for _, r := range rows[:min(40, len(rows))] {
		want = append(want, r.text)
	}
	return want
}

// TestOwnData: candidates and lookup give the same rows on every engine, in every scheduling mode, on both kinds of Redis.
func TestOwnData(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) string{
		"embedded": func(t *testing.T) string {
			redis, err := rankdtest.StartRedis()
			require.NoError(t, err)
			t.Cleanup(redis.Close)
			return redis.Addr()
		},
		"redis-server": func(t *testing.T) string { return testworld.StartRedis(t).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			addr := start(t)
			want := ownData(t, addr)
			require.Len(t, want, 40)
			for _, model := range models {
				modes := []rankd.SchedulingMode{""}
				if model == rankd.Reactor {
					modes = []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll}
				}
				for _, mode := range modes {
					e := open(t, rankd.Options{Model: model, Redis: addr, Registry: ownTables(), Plans: ownPlan, Scheduling: rankd.Scheduling{Mode: mode}})
					for _, timeout := range []time.Duration{0, time.Minute} {
						answer, err := e.Rank(t.Context(), rankd.Request{Plan: "own", UserID: 7, Context: map[string]any{"country": "DE"}, Timeout: timeout})
						require.NoError(t, err, "%s %s", model, mode)
						var got []string
						for c := range answer.Candidates() {
							title, _ := c.String("title")
							final, _ := c.Float("final")
							got = append(got, fmt.Sprintf("%d %s %v", c.ID(), title, final))
						}
						assert.Equal(t, want, got, "%s %s", model, mode)
					}
					assert.Positive(t, e.Metrics().Malformed, "%s %s", model, mode)

					_, err := e.Rank(t.Context(), rankd.Request{Plan: "own", UserID: 7})
					assert.ErrorIs(t, err, rankd.ErrInvalidRequest, "no country, no inbox")
				}
			}
		})
	}
}

// The age of a hash counts from the request's arrival, by the engine's own clock.
func TestOwnDataAges(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	t.Cleanup(client.Close)
	var b resp.Batch
	b.Cmd("HSET", "item:1", "likes", strconv.FormatInt(time.Now().Unix(), 10))
	b.Cmd("HSET", "item:2", "likes", strconv.FormatInt(time.Now().Unix()-7200, 10))
	require.NoError(t, client.Do(&b, 0, func(resp.Replies) error { return nil }))
	folder := fstest.MapFS{"fresh.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "fresh", "outputs": ["x"], "nodes": [
		{"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "x", "op": "lookup", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["likes"],
			"missing": "drop", "max_age": 3600, "timestamp": "likes"}}]}`)}}
	for _, model := range models {
		e := open(t, rankd.Options{Model: model, Redis: redis.Addr(), Registry: ownTables(), Plans: folder})
		answer, err := e.Rank(t.Context(), rankd.Request{Plan: "fresh", UserID: 7})
		require.NoError(t, err)
		require.Equal(t, 1, answer.Len(), model)
		for c := range answer.Candidates() {
			assert.Equal(t, int64(1), c.ID())
		}
	}
}
