package data_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// sourcesPlan joins two sources, leaves out what was seen, joins a score, and blends the two
// sources again. Its second output has the rows that only the second source made.
const sourcesPlan = `{"schema_version": 1, "plan_name": "sources",
	"nodes": [
		{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "follow", "op": "follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 100}},
		{"node_id": "recs", "op": "recommendation", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 100}},
		{"node_id": "scored", "op": "vm", "inputs": ["recs"], "params": {"out_key": 2002, "expr_id": "e"}},
		{"node_id": "all", "op": "union", "inputs": ["follow", "recs", "follow"],
			"params": {"source": "source", "rank": "source_rank", "names": ["follow", "recs", "again"]}},
		{"node_id": "once", "op": "dedupe", "inputs": ["all"], "params": {"sources": "source", "keep": "max", "column": "source_rank"}},
		{"node_id": "unseen", "op": "exclude", "inputs": ["once"], "params": {"endpoint": "ep_0001", "key": "seen:{user}", "context": "seen"}},
		{"node_id": "fresh", "op": "exclude", "inputs": ["unseen"],
			"params": {"endpoint": "ep_0001", "key": "shown:{user}", "kind": "sorted_set", "max_age": 3600}},
		{"node_id": "rare", "op": "frequency_cap", "inputs": ["fresh"], "params": {"endpoint": "ep_0001", "key": "count:{user}:{id}", "max": 3}},
		{"node_id": "joined", "op": "join", "inputs": ["rare"], "params": {"right": "scored", "columns": ["score"]}},
		{"node_id": "rest", "op": "join", "inputs": ["recs"], "params": {"right": "follow", "how": "anti"}},
		{"node_id": "out", "op": "blend", "inputs": ["joined", "rest"], "params": {"ratio": [3, 1]}}],
	"outputs": ["out", "rest"],
	"expr_table": {"e": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}}}, "pred_table": {}}`

// sourceTables returns the built-in tables with the keys and the context field of sourcesPlan.
func sourceTables(t *testing.T) fstest.MapFS {
	tables := fstest.MapFS{}
	for name, more := range map[string]string{
		"keys.toml": "\n[[key]]\nid = 5011\nname = \"source\"\ntype = \"string_set\"\nnullable = true\nwritable = true\n" +
			"\n[[key]]\nid = 5012\nname = \"source_rank\"\ntype = \"int\"\nnullable = true\nwritable = true\n",
		"params.toml":        "\n[[param]]\nid = 5011\nname = \"seen\"\ntype = \"int_list\"\nnullable = true\ncontext = true\n",
		"endpoints.dev.toml": "",
	} {
		text, err := fs.ReadFile(registry.DefaultTables(), name)
		require.NoError(t, err)
		tables[name] = &fstest.MapFile{Data: append(text, more...)}
	}
	return tables
}

// TestSourcesAnswerTheSameEverywhere runs the tasks that join sources on each model, in each scheduling mode, with both kinds of Redis.
func TestSourcesAnswerTheSameEverywhere(t *testing.T) {
	var want []any
	for _, server := range []string{"embedded", "redis-server"} {
		t.Run(server, func(t *testing.T) {
			var addr string
			if server == "embedded" {
				redis, err := rankdtest.StartRedis()
				require.NoError(t, err)
				t.Cleanup(redis.Close)
				addr = redis.Addr()
			} else {
				addr = testworld.StartRedis(t).Addr
				require.NoError(t, devredis.Load(t.Context(), addr))
			}
			enginetest.Store(t, addr, []string{"SADD", "seen:1", "444", "1000", "8"}, []string{"ZADD", "shown:1", "0", "168", "inf", "599", "4e9", "30"},
				[]string{"MSET", "count:1:168", "2", "count:1:737", "2.9", "count:1:461", "3"})
			for _, model := range enginetest.Models {
				for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
					t.Run(string(model)+" "+string(mode), func(t *testing.T) {
						e := enginetest.Open(t, rankd.Options{Redis: addr, Model: model, Registry: sourceTables(t), PlanText: []byte(sourcesPlan), Scheduling: rankd.Scheduling{Mode: mode}})
						for i := range 8 {
							a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, ID: "r" + strconv.Itoa(i), Context: map[string]any{"seen": []int64{875, 9}}})
							require.NoError(t, err)
							ids := enginetest.IDsOf(a.Output(0))
							for id, there := range map[int64]bool{737: true, 168: true, 461: false, 444: false, 875: false, 599: false, 30: false} {
								assert.Equal(t, there, slices.Contains(ids, id), "id %d", id)
							}
							got := enginetest.WithoutEngineID(t, a.AppendJSON(nil, rankd.FormatFlat))["candidates"]
							if len(want) <= i {
								want = append(want, got)
							}
							assert.Equal(t, want[i], got)
						}
					})
				}
			}
		})
	}
	require.Len(t, want, 8)
	assert.NotEqual(t, want[0], want[3], "the request's id shifts the turns")
}

// An answer says so if an exclude has failed open. The request fails if it requires that node.
func TestExcludeFailsOpen(t *testing.T) {
	const nodes = `{"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "out", "op": "exclude", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "follow:{user}", "fail_open": true}}`
	enginetest.OnReactor(t, rankd.Options{Plans: enginetest.Plans(map[string]string{"open": nodes})}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "open", UserID: 1}) // a list, not a set
		require.NoError(t, err)
		assert.Equal(t, 3, a.Len())
		assert.True(t, a.Degraded())
		require.Len(t, a.Completeness(), 1)
		got := a.Completeness()[0]
		assert.Equal(t, "out", got.Node)
		assert.Equal(t, rankd.NodeFailed, got.Status)
		assert.ErrorContains(t, got.Err, "SMISMEMBER follow:1: WRONGTYPE")
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "open", UserID: 1, Require: []string{"out"}})
		assert.ErrorContains(t, err, "WRONGTYPE")
	})
}

// rangeTables have parameters for bounds.
func rangeTables(policy string) fstest.MapFS {
	params := ""
	for i, p := range [][2]string{{"low", "float"}, {"high", "float"}, {"first", "string"}, {"last", "string"}} {
		params += registrytest.Param(1+i, p[0], p[1], registrytest.Nullable, "context = true")
	}
	return registrytest.Tables{Keys: registrytest.ID + registrytest.Key(10, "points", "float", registrytest.Nullable, registrytest.Writable), Params: params,
		Endpoints: registrytest.Redis + policy}.FS()
}

// rangeExprs are bounds of scores.
const rangeExprs = `"expr_table": {"low": {"op": "param_ref", "param_id": 1}, "high": {"op": "param_ref", "param_id": 2}, "two": {"op": "const_number", "value": 2},
	"ago": {"op": "sub", "a": {"op": "now"}, "b": {"op": "param_ref", "param_id": 1}}, 
	"square": {"op": "mul", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "param_ref", "param_id": 1}},
	"nan": {"op": "sub", "a": {"op": "mul", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "param_ref", "param_id": 1}},
		"b": {"op": "mul", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "param_ref", "param_id": 1}}}},
	"capabilities_required": ["cap.rankd.expressions.v1"]`

// rangePlan returns a plan of one node, which reads a part of a sorted set.
func rangePlan(key, params string) []byte {
	return []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "r", "outputs": ["r"], %s, "nodes": [{"node_id": "r", "op": "candidates", "inputs": [],
		"params": {"endpoint": "ep_0001", "key": %q, "kind": "sorted_set", %s}}]}`, rangeExprs, key, params))
}

// A range of a sorted set has the members that a check of each member selects.
func TestRangesHaveTheMembersWithinTheirBounds(t *testing.T) {
	enginetest.OnServers(t, func(t *testing.T, addr string) {
		type member struct {
			id    int64
			score float64
		}
		rng := rand.New(rand.NewPCG(25, 1))
		scores := []float64{math.Inf(-1), -2, -0.5, 0, 0.1, 2, 2.5, 1e300, math.Inf(1)}
		var members []member
		write, flat := []string{"ZADD", "z"}, []string{"ZADD", "flat"}
		for id := range int64(60) {
			m := member{id, scores[rng.IntN(len(scores))]}
			text := strconv.FormatInt(id, 10)
			members = append(members, m)
			write, flat = append(write, strconv.FormatFloat(m.score, 'g', -1, 64), text), append(flat, "0", text)
		}
		enginetest.Store(t, addr, write, flat)
		engines := make(map[string]*rankd.Engine)
		for range 300 {
			byMember, reverse, limit := rng.IntN(3) == 0, rng.IntN(2) == 0, 1+rng.IntN(30)
			given := []bool{rng.IntN(4) > 0, rng.IntN(4) > 0}
			if !given[0] && !given[1] {
				continue
			}
			exclusive := []bool{given[0] && rng.IntN(3) == 0, given[1] && rng.IntN(3) == 0}
			params := fmt.Sprintf(`"limit": %d, "reverse": %v, "exclusive": %q`, limit, reverse,
				map[[2]bool]string{{}: "none", {true, false}: "min", {false, true}: "max", {true, true}: "both"}[[2]bool(exclusive)])
			compare := func(a, b member) int {
				return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(strconv.FormatInt(a.id, 10), strconv.FormatInt(b.id, 10)))
			}
			context := map[string]any{}
			var in [2]func(m member) int // how a member compares with a bound
			for end, names := range [][3]string{{"min", "low", "first"}, {"max", "high", "last"}} {
				switch {
				case !given[end]:
				case byMember:
					text := strconv.Itoa(rng.IntN(99))
					params += fmt.Sprintf(`, "%s_member": "{%s}"`, names[0], names[2])
					context[names[2]] = text
					in[end] = func(m member) int { return cmp.Compare(strconv.FormatInt(m.id, 10), text) }
				default:
					bound := scores[1+rng.IntN(len(scores)-2)] // a request has no infinities
					params += fmt.Sprintf(`, %q: %q`, names[0], names[1])
					context[names[1]] = bound
					if end == 0 && rng.IntN(6) == 0 {
						params = strings.TrimSuffix(params, `"low"`) + `"square"`
						bound, context["low"] = math.Inf(1), 1e200
					}
					in[end] = func(m member) int { return cmp.Compare(m.score, bound) }
				}
			}
			key := "z"
			if byMember {
				key = "flat"
				compare = func(a, b member) int { return cmp.Compare(strconv.FormatInt(a.id, 10), strconv.FormatInt(b.id, 10)) }
			} else if rng.IntN(2) == 0 {
				params += `, "score": "points"`
			}
			var want []int64
			all := slices.SortedFunc(slices.Values(members), compare)
			if !reverse {
				slices.Reverse(all)
			}
			for _, m := range all {
				if in[0] != nil && (in[0](m) < 0 || exclusive[0] && in[0](m) == 0) || in[1] != nil && (in[1](m) > 0 || exclusive[1] && in[1](m) == 0) {
					continue
				}
				if limit--; limit < 0 {
					break
				}
				if !strings.Contains(params, "points") || !math.IsInf(m.score, 0) {
					want = append(want, m.id)
				}
			}
			plan := rangePlan(key, params)
			e := engines[string(plan)]
			if e == nil {
				e = enginetest.Open(t, rankd.Options{Redis: addr, Registry: rangeTables(""), PlanText: plan})
				engines[string(plan)] = e
			}
			a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: context})
			require.NoError(t, err, params)
			require.Equal(t, append([]int64{}, want...), enginetest.IDsOf(a.Output(0)), "%s %v", params, context)
		}
	})
}

// A bound may use the time of the request.
func TestARangeOfTheLastSeconds(t *testing.T) {
	enginetest.OnServers(t, func(t *testing.T, addr string) {
		enginetest.Store(t, addr, []string{"ZADD", "z", "1000", "1", "1990", "2", "1999", "3", "2000", "4"})
		e := enginetest.Open(t, rankd.Options{Redis: addr, Registry: rangeTables(""), PlanText: rangePlan("z", `"min": "ago"`), AllowRequestExplain: true,
			Now: func() time.Time { return time.Unix(2000, 0) }})
		a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: map[string]any{"low": 10.0}, Explain: rankd.Explain{All: true}})
		require.NoError(t, err)
		assert.Equal(t, []int64{4, 3, 2}, enginetest.IDsOf(a.Output(0)))
		var text strings.Builder
		require.NoError(t, explain.Text(&text, a.Explanation()))
		assert.Contains(t, text.String(), `min = "1990"`)
		assert.Contains(t, text.String(), `max = "+inf"`)
	})
}

// A bound without a value is an error that names it. It is the caller's error if a member of
// the context is missing.
func TestABoundWithoutAValue(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	for _, c := range []struct {
		params  string
		context map[string]any
		want    string
		caller  bool
	}{
		{`"min": "low"`, nil, `context member "low": min is null`, true},
		{`"max": "high", "min": "low"`, map[string]any{"low": 1.0, "high": nil}, `context member "high": max is null`, true},
		{`"min_member": "a{first}"`, nil, `context member "first": min_member is null`, true},
		{`"min": "nan"`, map[string]any{"low": 1e300}, "min is not a number", false},
	} {
		e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: rangeTables(""), PlanText: rangePlan("z", c.params)})
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: c.context})
		require.Error(t, err, c.params)
		assert.ErrorContains(t, err, c.want, c.params)
		assert.Equal(t, c.caller, errors.Is(err, rankd.ErrInvalidRequest), c.params)
	}
}

// A range that depends on the request is read each time. A range between constants comes from
// memory.
func TestRangesInMemory(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{"z": rankdtest.SortedSet{"1": 1, "2": 2, "3": 3}})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	for params, kept := range map[string]bool{
		`"min": "two"`: true, `"min_member": "2"`: true, `"min": "low"`: false, `"max": "ago"`: false, `"min_member": "2", "max_member": "{last}"`: false,
	} {
		e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: rangeTables("[endpoint.policy]\n" + enginetest.CacheForAnHour), PlanText: rangePlan("z", params)})
		for i := range 3 {
			before := e.Metrics().Redis[0].Asked
			a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: map[string]any{"low": 2.0, "last": "3"}})
			require.NoError(t, err)
			if params != `"max": "ago"` {
				assert.Equal(t, []int64{3, 2}, enginetest.IDsOf(a.Output(0)), params)
			}
			assert.Equal(t, kept && i > 0, e.Metrics().Redis[0].Asked == before, params)
		}
	}
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

// ownData fills a Redis. It returns the plan's answer for user 7 in DE: id, title and final
// score.
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

// TestOwnData: candidates and lookup make the same rows on every engine, in every scheduling
// mode, on both kinds of Redis.
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
			for _, model := range enginetest.Models {
				modes := []rankd.SchedulingMode{""}
				if model == rankd.Reactor {
					modes = []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll}
				}
				for _, mode := range modes {
					e := enginetest.Open(t, rankd.Options{Model: model, Redis: addr, Registry: enginetest.OwnTables(), Plans: ownPlan, Scheduling: rankd.Scheduling{Mode: mode}})
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

// The age of a hash counts to the request's arrival, by the engine's own clock.
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
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Model: model, Redis: redis.Addr(), Registry: enginetest.OwnTables(), Plans: folder})
		answer, err := e.Rank(t.Context(), rankd.Request{Plan: "fresh", UserID: 7})
		require.NoError(t, err)
		require.Equal(t, 1, answer.Len(), model)
		for c := range answer.Candidates() {
			assert.Equal(t, int64(1), c.ID())
		}
	}
}
