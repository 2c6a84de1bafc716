package reload_test

import (
	"errors"
	"fmt"
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
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/rankdtest"
)

// The plans of these tests: items has rows that an engine may keep. near and straight rank them
// for a user: near reads the kept rows, straight reads them for each request.
const (
	itemsNodes = `{"node_id": "all", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "items"}},
		{"node_id": "%s", "op": "lookup", "inputs": ["all"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": [10, 11, 12, 13]}}`
	keptNodes = `{"node_id": "items", "op": "resident", "inputs": [], "params": {"plan": "items", "fields": [10, 11, 12, 13], "refresh": %s}}`
	nearNodes = `,
		{"node_id": "seen", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "seen:{user}", "limit": 10}},
		{"node_id": "read", "op": "lookup", "inputs": ["seen"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": [10]}},
		{"node_id": "taste", "op": "aggregate", "inputs": ["read"], "params": {"values": [{"method": "mean", "column": 10, "out_key": 10}], "keep": "first"}},
		{"node_id": "cheap", "op": "filter", "inputs": ["items"], "params": {"pred_id": "cheap"}},
		{"node_id": "out", "op": "nearest", "inputs": ["cheap"], "params": {"to": "taste", "vector": 10, "by": "cosine", "out_key": 14, "count": 7}}`
)

func residentPlan(name, nodes, out string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, "nodes": [%s], "outputs": [%q],
		"pred_table": {"cheap": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 12}, "b": {"op": "const_number", "value": 5}}}}`, name, nodes, out)}
}

// residentPlans are the plans. Their rows are read again after the time refresh.
func residentPlans(refresh string) fstest.MapFS {
	kept := fmt.Sprintf(keptNodes, refresh)
	return fstest.MapFS{
		"items.plan.json":    residentPlan("items", fmt.Sprintf(itemsNodes, "out"), "out"),
		"near.plan.json":     residentPlan("near", kept+nearNodes, "out"),
		"straight.plan.json": residentPlan("straight", fmt.Sprintf(itemsNodes, "items")+nearNodes, "out"),
		"all.plan.json":      residentPlan("all", kept, "items"),
	}
}

// item returns the command that stores a random item. Each value may be missing or malformed.
func item(rng *rand.Rand, id int) []string {
	command := []string{"HSET", "item:" + strconv.Itoa(id), "other", "1"}
	add := func(field string, texts ...string) {
		if i := rng.IntN(len(texts) + 1); i < len(texts) {
			command = append(command, field, texts[i])
		}
	}
	n := func() int { return rng.IntN(3) - 1 }
	vector := fmt.Sprintf("[%d,%d,%d,%d]", n(), n(), n(), n())
	add("embedding", vector, vector, vector, "[1,2]", "[0,0,0,0]")
	add("title", "a", "b", "c")
	add("price", "1.5", "2", "7", "nan", "x")
	add("tags", "x,y", "y", "")
	return command
}

func fillItems(t *testing.T, addr string, rng *rand.Rand, items, users int) {
	commands := [][]string{{"DEL", "items"}}
	for id := range items {
		commands = append(commands, []string{"RPUSH", "items", strconv.Itoa(id)}, []string{"DEL", "item:" + strconv.Itoa(id)}, item(rng, id))
	}
	for user := range users {
		commands = append(commands, []string{"DEL", "seen:" + strconv.Itoa(user)})
		for range rng.IntN(4) {
			commands = append(commands, []string{"RPUSH", "seen:" + strconv.Itoa(user), strconv.Itoa(rng.IntN(items + 2))})
		}
	}
	enginetest.Store(t, addr, commands...)
}

// answerOf returns the JSON of an answer without the ids of the request and without times.
func answerOf(t *testing.T, e *rankd.Engine, plan string, user int64) (string, error) {
	t.Helper()
	a, err := e.Rank(t.Context(), rankd.Request{Plan: plan, UserID: user, ID: "r"})
	if err != nil {
		return "", err
	}
	return enginetest.JSONMember(t, string(a.AppendJSON(nil, rankd.FormatFields)), "candidates"), nil
}

// TestKeptRowsAreThoseOfThePlan: one plan reads kept rows, another one reads the same rows for
// each request. Both have the same answers on all models and in all modes.
func TestKeptRowsAreThoseOfThePlan(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	defer redis.Close()
	rng := rand.New(rand.NewPCG(26, 4))
	rows := 0
	for range 12 {
		fillItems(t, redis.Addr(), rng, rng.IntN(80)+1, 7)
		for _, model := range enginetest.Models {
			e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Model: model, Registry: enginetest.ResidentTables("").FS(), Plans: residentPlans("60"), AllowRequestScheduling: true})
			for user := int64(1); user < 7; user++ {
				want, err := answerOf(t, e, "straight", user)
				require.NoError(t, err)
				for _, mode := range []rankd.SchedulingMode{"", rankd.OffloadAll, rankd.InlineAll} {
					a, err := e.Rank(t.Context(), rankd.Request{Plan: "near", UserID: user, Scheduling: mode})
					require.NoError(t, err)
					require.Equal(t, want, enginetest.JSONMember(t, string(a.AppendJSON(nil, rankd.FormatFields)), "candidates"), "%s %s", model, mode)
					rows += a.Len()
				}
			}
			of := e.Residents()
			require.Len(t, of, 1)
			assert.Equal(t, "items", of[0].Plan)
			assert.EqualValues(t, 1, of[0].Runs, "all requests have shared one run")
			assert.Positive(t, of[0].Bytes)
			require.NoError(t, e.Close())
		}
	}
	assert.Greater(t, rows, 500)
}

// eventually waits for an answer that differs from was, and returns it.
func eventually(t *testing.T, e *rankd.Engine, plan, was string) (now string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		now, err = answerOf(t, e, plan, 1)
		return err == nil && now != was
	}, 30*time.Second, 5*time.Millisecond)
	return now
}

// TestKeptRowsAreReadAgain: kept rows change with the data, stay while Redis is away, and
// change when it is back. With a cache, the engine reads only what the cache lacks.
func TestKeptRowsAreReadAgain(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	defer redis.Close()
	enginetest.Store(t, redis.Addr(), []string{"RPUSH", "items", "1", "2"}, []string{"HSET", "item:1", "title", "one"})
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.ResidentTables("").FS(), Plans: residentPlans("0.1")})
	first, err := answerOf(t, e, "all", 1)
	require.NoError(t, err)
	assert.Equal(t, `[{"id":1,"fields":{"title":"one"}},{"id":2,"fields":{}}]`, first)
	enginetest.Store(t, redis.Addr(), []string{"HSET", "item:2", "title", "two"})
	second := eventually(t, e, "all", first)
	assert.Contains(t, second, `"title":"two"`)
	enginetest.Store(t, redis.Addr(), []string{"DEL", "items"}, []string{"SET", "items", "no list"})
	require.Eventually(t, func() bool { return e.Residents()[0].Failures > 1 }, 30*time.Second, 5*time.Millisecond)
	now, err := answerOf(t, e, "all", 1)
	require.NoError(t, err, "the rows of the last run stay")
	assert.Equal(t, second, now)
	of := e.Residents()[0]
	require.ErrorContains(t, of.Err, "WRONGTYPE")
	assert.Equal(t, 2, of.Rows)
	require.NoError(t, e.Ready(), "it has rows")
	enginetest.Store(t, redis.Addr(), []string{"DEL", "items"}, []string{"RPUSH", "items", "2"})
	assert.NotContains(t, eventually(t, e, "all", second), "one")
	require.Eventually(t, func() bool { return e.Residents()[0].Err == nil }, 30*time.Second, 5*time.Millisecond)
}

// TestKeptRowsThatAreMissing: while there are no kept rows, requests say why, the engine is not
// ready, and it tries again.
func TestKeptRowsThatAreMissing(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			redis, err := rankdtest.StartRedisWith(nil)
			require.NoError(t, err)
			defer redis.Close()
			enginetest.Store(t, redis.Addr(), []string{"SET", "items", "no list"})
			e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Model: model, Registry: enginetest.ResidentTables("").FS(), Plans: residentPlans("60")})
			require.NoError(t, e.Ready(), "no plan reads them yet")
			_, err = answerOf(t, e, "all", 1)
			require.ErrorContains(t, err, "there are no rows of plan items yet")
			require.ErrorContains(t, err, "WRONGTYPE")
			var failed *rankd.Error
			require.True(t, errors.As(err, &failed))
			assert.Equal(t, "items", failed.Node)
			require.ErrorContains(t, e.Ready(), "there are no rows of plan items yet, which the engine keeps")
			enginetest.Store(t, redis.Addr(), []string{"DEL", "items"}, []string{"RPUSH", "items", "2"})
			require.Eventually(t, func() bool { return e.Ready() == nil }, 30*time.Second, 5*time.Millisecond)
			_, err = answerOf(t, e, "all", 1)
			require.NoError(t, err)
		})
	}
}

// TestPlansWhoseRowsCannotBeKept: an error says what makes a plan depend on its request.
func TestPlansWhoseRowsCannotBeKept(t *testing.T) {
	tables := enginetest.ResidentTables("")
	tables.Keys += registrytest.Key(20, "country", "string", registrytest.Nullable, registrytest.Writable)
	tables.Params = registrytest.Param(1, "shop", "string", registrytest.Nullable) + registrytest.Param(2, "many", "int", registrytest.Nullable)
	const rows = `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": %s}}`
	for name, c := range map[string]struct{ nodes, want string }{
		"the user":    {fmt.Sprintf(rows, `"inbox:{user}"`), "depends on the user"},
		"the context": {fmt.Sprintf(rows, `"shop:{shop}"`), "depends on the context of the request (shop)"},
		"a command": {`{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "command": ["SINTER", "a", "b:{shop}"]}}`,
			"depends on the context of the request (shop)"},
		"a draw": {`{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "command": ["SRANDMEMBER", "a", 3]}}`,
			"depends on a reply of SRANDMEMBER, which no two requests may share"},
		"the viewer":       {`{"node_id": "out", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}`, "node out (core::viewer) of plan items depends on the user"},
		"a number":         {fmt.Sprintf(rows, `"items", "limit": {"param_id": 2, "default": 5, "max": 10}`), "takes many from requests"},
		"kept rows":        {`{"node_id": "out", "op": "resident", "inputs": [], "params": {"plan": "other"}}`, "reads the rows of plan other"},
		"not a column":     {`{"node_id": "out", "op": "fixed_source", "inputs": []}`, "returns no column embedding of type vector(4)"},
		"not such a plan":  {"", `unknown plan "items"`},
		"not a sound plan": {`{"node_id": "out", "op": "nothing", "inputs": []}`, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := residentPlans("60")
			if delete(folder, "items.plan.json"); c.nodes != "" {
				folder["items.plan.json"] = residentPlan("items", c.nodes, "out")
			}
			e := enginetest.Open(t, rankd.Options{Registry: tables.FS(), Plans: folder})
			_, err := answerOf(t, e, "all", 1)
			require.ErrorContains(t, err, c.want)
		})
	}
	folder := fstest.MapFS{"items.plan.json": residentPlan("items", fmt.Sprintf(keptNodes, "60"), "items"), "bad.plan.json": residentPlan("bad", strings.Replace(fmt.Sprintf(keptNodes, "60"), `"plan": "items"`, `"plan": "../items"`, 1), "items")}
	e := enginetest.Open(t, rankd.Options{Registry: tables.FS(), Plans: folder})
	_, err := e.PlanInfo("items")
	require.ErrorContains(t, err, "is the plan itself")
	_, err = e.PlanInfo("bad")
	require.ErrorContains(t, err, "a plan name consists of letters, digits and _")
}

// TestKeptRowsOfTexts: kept rows whose ids are strings equal those that each request reads.
func TestKeptRowsOfTexts(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	defer redis.Close()
	enginetest.Store(t, redis.Addr(), []string{"RPUSH", "items", "shoe", "hat", "sock"}, []string{"SADD", "seen:1", "hat", "tie"}, []string{"RPUSH", "first:1", "tie", "sock"},
		[]string{"RPUSH", "shown", "sock", "belt"})
	tables := enginetest.ResidentTables("").FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n")}
	const kept = `{"node_id": "kept", "op": "resident", "inputs": [], "params": {"plan": "items", "entity": "product"}}`
	folder := fstest.MapFS{
		"items.plan.json": residentPlan("items", `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "items", "entity": "product"}}`, "out"),
		"new.plan.json": residentPlan("new", `{"node_id": "first", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "first:{user}", "entity": "product"}},
			`+kept+`, {"node_id": "both", "op": "union", "inputs": ["first", "kept"]}, {"node_id": "once", "op": "dedupe", "inputs": ["both"]},
			{"node_id": "out", "op": "exclude", "inputs": ["once"], "params": {"endpoint": "ep_0001", "key": "seen:{user}"}}`, "out"),
		"odd.plan.json": residentPlan("odd", strings.Replace(kept, `, "entity": "product"`, "", 1), "kept"),
		// Rows of several plans, whose ids agree.
		"seen.plan.json":    residentPlan("seen", `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "shown", "entity": "product"}}`, "out"),
		"numbers.plan.json": residentPlan("numbers", `{"node_id": "out", "op": "fixed_source", "inputs": [], "params": {"row_count": 2}}`, "out"),
		"two.plan.json": residentPlan("two", kept+`, {"node_id": "shown", "op": "resident", "inputs": [], "params": {"plan": "seen", "entity": "product"}},
			{"node_id": "first", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "first:{user}", "entity": "product"}},
			{"node_id": "both", "op": "union", "inputs": ["shown", "first", "kept"]}, {"node_id": "out", "op": "dedupe", "inputs": ["both"]}`, "out"),
		"count.plan.json": residentPlan("count", `{"node_id": "kept", "op": "resident", "inputs": [], "params": {"plan": "numbers"}}`, "kept"),
	}
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Model: model, Registry: tables, Plans: folder})
		for range 2 {
			got, err := answerOf(t, e, "new", 1)
			require.NoError(t, err)
			assert.Equal(t, `[{"id":"sock","fields":{}},{"id":"shoe","fields":{}}]`, got)
		}
		for _, before := range []string{"count", "two", "new"} { // "count" has integers as ids.
			_, err := answerOf(t, e, before, 1)
			require.NoError(t, err)
			got, err := answerOf(t, e, "two", 1)
			require.NoError(t, err)
			assert.Equal(t, `[{"id":"sock","fields":{}},{"id":"belt","fields":{}},{"id":"tie","fields":{}},{"id":"shoe","fields":{}},{"id":"hat","fields":{}}]`, got)
		}
		_, err := answerOf(t, e, "odd", 1)
		require.ErrorContains(t, err, "plan items returns rows of entity product, and the node is for no entity")
	}
}

// TestReloadKeepsRows: a reload runs a plan again only if it has changed, and is refused if the
// plan has no rows. After Back, the former rows are there.
func TestReloadKeepsRows(t *testing.T) {
	p := enginetest.OpenProject(t, rankd.Options{})
	plan := func(name, nodes, out string) string { return string(residentPlan(name, nodes, out).Data) }
	items := func(n int) string {
		return plan("items", fmt.Sprintf(`{"node_id": "out", "op": "fixed_source", "inputs": [], "params": {"row_count": %d}}`, n), "out")
	}
	reader := func(limit int) string {
		return plan("all", fmt.Sprintf(`{"node_id": "items", "op": "resident", "inputs": [], "params": {"plan": "items", "refresh": 3600, "limit": %d}}`, limit), "items")
	}
	rows := func() int {
		a, err := p.Rank(t.Context(), rankd.Request{Plan: "all", UserID: 1})
		require.NoError(t, err)
		return a.Len()
	}
	p.Write("plans/items.plan.json", items(3))
	p.Write("plans/all.plan.json", reader(10))
	_, err := p.Plans()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.Ready() == nil }, 30*time.Second, time.Millisecond, "Plans has begun it")
	assert.Equal(t, 3, rows())

	p.Write("plans/all.plan.json", reader(2))
	_, err = p.Reload(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, rows())
	assert.EqualValues(t, 1, p.Residents()[0].Runs, "the plan is the same")

	p.Write("plans/items.plan.json", items(1))
	_, err = p.Reload(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, rows())

	p.Write("plans/items.plan.json", plan("items", `{"node_id": "out", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}`, "out"))
	before := p.Generation()
	_, err = p.Reload(t.Context())
	require.ErrorContains(t, err, "plan items, whose rows the engine keeps: node out (core::viewer) of plan items depends on the user")
	assert.Equal(t, before, p.Generation())
	assert.Equal(t, 1, rows())

	_, err = p.Back(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, rows())
}

// BenchmarkKeptRows ranks 10,000 items with vectors of 64 numbers by what a user has seen last.
// It does so with rows that the engine keeps, and with rows that it reads for each request.
func BenchmarkKeptRows(b *testing.B) {
	const items, dims = 10_000, 64
	tables := registrytest.Tables{Endpoints: registrytest.Redis, Keys: registrytest.ID}
	for i, k := range [][2]string{{"embedding", fmt.Sprintf("vector(%d)", dims)}, {"title", "string"}, {"price", "float"}, {"tags", "string_set"}, {"near", "float"}} {
		tables.Keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable)
	}
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(b, err)
	defer redis.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	commands := [][]string{{"RPUSH", "seen:1", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}}
	for id := range items {
		numbers := make([]string, dims)
		for i := range numbers {
			numbers[i] = strconv.FormatFloat(rng.Float64()-0.5, 'f', 4, 32)
		}
		commands = append(commands, []string{"RPUSH", "items", strconv.Itoa(id)}, []string{"HSET", "item:" + strconv.Itoa(id), "embedding", "[" + strings.Join(numbers, ",") + "]", "price", "1"})
	}
	for part := range slices.Chunk(commands, 1000) {
		enginetest.Store(b, redis.Addr(), part...)
	}
	folder := fstest.MapFS{}
	for name, file := range residentPlans("60") {
		text := strings.ReplaceAll(string(file.Data), `"key": "items"`, `"key": "items", "limit": 10000`)
		folder[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, `"count": 7`, `"count": 100`))}
	}
	e := enginetest.Open(b, rankd.Options{Redis: redis.Addr(), Registry: tables.FS(), Plans: folder})
	for _, plan := range []string{"near", "straight"} {
		b.Run(plan, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, err := e.Rank(b.Context(), rankd.Request{Plan: plan, UserID: 1})
				if err != nil || a.Len() != 100 {
					b.Fatal(err, a)
				}
			}
		})
	}
}

// TestKeptRowsAreReadFromMemory: with a cache, a later run asks Redis only for what has
// changed.
func TestKeptRowsAreReadFromMemory(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	defer redis.Close()
	fillItems(t, redis.Addr(), rand.New(rand.NewPCG(26, 5)), 50, 1)
	e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.ResidentTables(enginetest.CacheForAnHour).FS(), Plans: residentPlans("0.1")})
	_, err = answerOf(t, e, "all", 1)
	require.NoError(t, err)
	sent := e.Metrics().Redis[0].Commands
	assert.EqualValues(t, 51, sent)
	require.Eventually(t, func() bool { return e.Residents()[0].Runs > 2 }, 30*time.Second, 5*time.Millisecond)
	assert.Equal(t, sent, e.Metrics().Redis[0].Commands)
}
