package data_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task/builtin"
)

const cardFunction = "#!lua name=cards\nredis.register_function{function_name='card', callback=function(keys, args) return redis.call('HGETALL', keys[1]) end, flags={'no-writes'}}"

// commandData fills a Redis, or a Redis Cluster: the keys that one command reads have one hash tag.
func commandData(t *testing.T, redis string) {
	client, err := devredis.NewCaller(redis)
	require.NoError(t, err)
	defer client.Close()
	lines := []string{
		"GEOADD shops 13.40 52.52 1 13.41 52.53 2 13.5 52.5 3 2.35 48.85 4",
		"SADD {tags}:new 1 2 3 9", "SADD {tags}:sale 9 3 4", "ZADD {tags}:hot 1 3 2.5 9 4 5", "ZADD {tags}:cold 2 9 3 3",
		"ZADD names 0 1 0 12 0 2", "SADD all 1 2 3 4 5 6 7 8", "ZADD visits:1 100 a 200 b 300 c", "ZADD visits:2 50 a",
		"XADD seen:1 1-1 item 7 score 0.5", "XADD seen:1 1-2 item 8 score 2", "XADD seen:1 1-3 other 8",
		"HSET card:1 title Rain likes 3", "HSET card:2 title Snow",
	}
	do := func(words ...string) {
		var b resp.Batch
		b.Cmd(words...)
		require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }), words)
	}
	for _, line := range lines {
		do(strings.Fields(line)...)
	}
}

// commandPlans are in TypeScript, with the rows that they answer.
var commandPlans = map[string]struct{ build, want string }{
	"geosearch": {`ctx.candidates({ endpoint: r, score: Key.score, command: ["GEOSEARCH", "shops", "FROMLONLAT", P.lon, P.lat, "BYRADIUS", 5, "km", "ASC", "COUNT", 100, "WITHDIST"] })
		.lookup({ endpoint: r, value: Key.likes, command: ["ZCOUNT", "visits:{id}", P.since, "+inf"] })`, `[{"id":1,"score":0.0002,"likes":2},{"id":2,"score":1.3021,"likes":0}]`},
	"sinter":      {`ctx.candidates({ endpoint: r, command: ["SINTER", "{{tags}}:new", "{{tags}}:{tag}"] })`, `[{"id":3},{"id":9}]`},
	"zinter":      {`ctx.candidates({ endpoint: r, score: Key.score, reverse: true, command: ["ZINTER", 2, "{{tags}}:hot", "{{tags}}:cold", "WITHSCORES"] })`, `[{"id":9,"score":4.5},{"id":3,"score":4.0}]`},
	"zrangebylex": {`ctx.candidates({ endpoint: r, command: ["ZRANGEBYLEX", "names", "[1", "(2", "LIMIT", 0, 5] })`, `[{"id":1},{"id":12}]`},
	"srandmember": {`ctx.candidates({ endpoint: r, command: ["SRANDMEMBER", "all", 100] }).sort({ by: Key.id, order: "asc" })`, `[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5},{"id":6},{"id":7},{"id":8}]`},
	"xrevrange":   {`ctx.candidates({ endpoint: r, idField: "item", score: Key.score, command: ["XREVRANGE", "seen:{user}", "+", "-", "COUNT", 3] })`, `[{"id":8,"score":2.0},{"id":7,"score":0.5}]`},
	"fcall": {`ctx.candidates({ endpoint: r, command: ["SMEMBERS", "all"], limit: 2 })
		.lookup({ endpoint: r, fields: [Key.title, Key.likes], reply: "map", command: ["FCALL_RO", "card", 1, "card:{id}"] })`, `[{"id":1,"title":"Rain","likes":3},{"id":2,"title":"Snow"}]`},
}

// compiledCommands returns the tables and the artifacts of commandPlans.
func compiledCommands(t *testing.T) (tables, plans fstest.MapFS) {
	own := registrytest.BuiltIn()
	own.Keys += registrytest.Key(9001, "likes", "int", registrytest.Nullable, registrytest.Writable)
	for i, param := range [][2]string{{"lon", "float"}, {"lat", "float"}, {"since", "int"}, {"tag", "string"}} {
		own.Params += registrytest.Param(9001+i, param[0], param[1], "context = true")
	}
	c, err := compiler.New(compiler.Config{Tasks: builtin.Catalog(), Registry: own.Load()})
	require.NoError(t, err)
	defer c.Close()
	plans = fstest.MapFS{}
	for name, p := range commandPlans {
		text := fmt.Sprintf("import { definePlan } from %q;\nconst r = EP.redis.redis_default;\nexport default definePlan({ name: %q, build: (ctx) => %s });", "@ranking-dsl/runtime", name, p.build)
		results, err := c.Compile(t.Context(), compiler.Source{Folder: t.TempDir(), File: name + ".plan.ts", Text: []byte(text)})
		require.NoError(t, err)
		require.Empty(t, results[0].Errors)
		plans[name+".plan.json"] = &fstest.MapFile{Data: results[0].Artifact}
	}
	return own.FS(), plans
}

// Commands of Redis that plans state have their rows on the embedded Redis, on redis-server and on a Redis Cluster.
func TestCommands(t *testing.T) {
	tables, plans := compiledCommands(t)
	context := map[string]any{"lon": 13.4, "lat": 52.52, "since": 150, "tag": "sale"}
	all := func(t *testing.T, redis string, functions bool) {
		commandData(t, redis)
		for _, model := range enginetest.Models {
			e := enginetest.Open(t, rankd.Options{Redis: redis, Model: model, Registry: tables, Plans: plans, AllowRequestExplain: true})
			for name, p := range commandPlans {
				if name == "fcall" && !functions {
					continue
				}
				a, err := e.Rank(t.Context(), rankd.Request{Plan: name, UserID: 1, Context: context})
				require.NoError(t, err, "%s %s", model, name)
				assert.Equal(t, p.want, string(enginetest.AnswerJSON(t, a)["candidates"]), "%s %s", model, name)
			}
			a, err := e.Rank(t.Context(), rankd.Request{Plan: "geosearch", UserID: 1, Context: context, Explain: rankd.Explain{All: true}})
			require.NoError(t, err)
			var text strings.Builder
			require.NoError(t, explain.Text(&text, a.Explanation()))
			assert.Contains(t, text.String(), `command = "GEOSEARCH shops FROMLONLAT 13.4 52.52 BYRADIUS 5 km ASC COUNT 100 WITHDIST"`)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		redis, err := rankdtest.StartRedis()
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		all(t, redis.Addr(), false)
	})
	t.Run("redis-server", func(t *testing.T) {
		addr := testworld.StartRedis(t).Addr
		enginetest.Command(t, addr, "FUNCTION", "LOAD", cardFunction)
		all(t, addr, true)
	})
	t.Run("cluster", func(t *testing.T) {
		c := testworld.StartRedisCluster(t, 3)
		for node := range 3 {
			c.Do(t, node, "FUNCTION", "LOAD", cardFunction)
		}
		all(t, c.Addr(), true)
		sinter := enginetest.Plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "command": ["SINTER", "a", "b"]}}`})
		_, err := rankd.Open(rankd.Options{Redis: c.Addr(), PlanText: sinter["p.plan.json"].Data})
		require.ErrorContains(t, err, "SINTER needs all keys in one slot of the Redis Cluster")
	})
}

// Nobody gets what was drawn for somebody else: neither a second node, nor a second request, nor a later one from memory.
func TestDrawsAreNotShared(t *testing.T) {
	tables := enginetest.CacheTables(enginetest.CacheForAnHour)
	draw := `{"node_id": %q, "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "command": ["SRANDMEMBER", "all", 1]}}`
	plans := enginetest.Plans(map[string]string{
		"one": fmt.Sprintf(draw, "out"),
		"two": fmt.Sprintf(draw, "a") + "," + fmt.Sprintf(draw, "b") + `, {"node_id": "out", "op": "union", "inputs": ["a", "b"]}`,
	})
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	enginetest.Command(t, redis.Addr(), "SADD", "all", "1", "2", "3", "4", "5", "6", "7", "8")
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: tables, Plans: plans})
	sent := func() uint64 { return e.Metrics().Redis[0].Commands }
	for range 10 {
		before := sent()
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "two", UserID: 1})
		require.NoError(t, err)
		require.Equal(t, before+2, sent())
	}
	before := sent()
	var all sync.WaitGroup
	for user := range 64 {
		all.Add(1)
		e.Submit(t.Context(), rankd.Request{Plan: "one", UserID: int64(user + 1)}, func(_ *rankd.Answer, err error) {
			assert.NoError(t, err)
			all.Done()
		})
	}
	all.Wait()
	assert.Equal(t, before+64, sent())
	assert.Zero(t, e.Metrics().Caches[0].Hits)
}

// Two lookups of one command share it for each row, unless it draws.
func TestLookupsShareCommands(t *testing.T) {
	addr := testworld.StartRedis(t).Addr
	enginetest.Command(t, addr, "FUNCTION", "LOAD", cardFunction)
	commandData(t, addr)
	tables := enginetest.OwnTables()
	for command, want := range map[string]uint64{`["HGETALL", "card:{id}"]`: 1 + 2, `["FCALL_RO", "card", 1, "card:{id}"], "reply": "map"`: 1 + 2 + 2} {
		look := `, {"node_id": %q, "op": "lookup", "inputs": [%q], "params": {"endpoint": "ep_0001", "fields": [%q], "command": ` + command + `}}`
		e := enginetest.Open(t, rankd.Options{Redis: addr, Registry: tables, Plans: enginetest.Plans(map[string]string{
			"p": `{"node_id": "ids", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "command": ["SMEMBERS", "all"], "limit": 2}}` +
				fmt.Sprintf(look, "a", "ids", "title") + fmt.Sprintf(look, "out", "a", "likes")})})
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.NoError(t, err)
		likes, none, _ := a.Output(0).Ints("likes")
		assert.Equal(t, []int64{3, 0}, likes)
		assert.Equal(t, []bool{false, true}, none)
		assert.Equal(t, want, e.Metrics().Redis[0].Commands, command)
	}
}

// A name with a space in it does not make two nodes share what memory has of a key.
func TestNodesWithOtherFieldsShareNoMemory(t *testing.T) {
	tables := enginetest.CacheTables(enginetest.CacheForAnHour)
	tables["keys.toml"].Data = append(tables["keys.toml"].Data, registrytest.Key(9001, "c", "float", registrytest.Nullable, registrytest.Writable, `field = "c"`)+
		registrytest.Key(9002, "b_c", "float", registrytest.Nullable, registrytest.Writable, `field = "b c"`)...)
	read := `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "id_field": %q, "score": %q, "command": ["XRANGE", "s", "-", "+", "COUNT", 5]}}`
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	enginetest.Command(t, redis.Addr(), "XADD", "s", "1-1", "a b", "1", "c", "0.5", "a", "2", "b c", "0.25")
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: tables, Plans: enginetest.Plans(map[string]string{
		"one": fmt.Sprintf(read, "a b", "c"), "two": fmt.Sprintf(read, "a", "b_c")})})
	for _, plan := range []string{"one", "two", "one", "two"} {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: plan, UserID: 1})
		require.NoError(t, err)
		want := map[string]string{"one": `[{"id":1,"c":0.5}]`, "two": `[{"id":2,"b_c":0.25}]`}[plan]
		assert.Equal(t, want, string(enginetest.AnswerJSON(t, a)["candidates"]))
	}
	assert.Equal(t, uint64(2), e.Metrics().Caches[0].Hits)
}
