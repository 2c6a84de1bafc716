package data_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// pageTables have integers that requests give, and a Redis whose replies the engine keeps.
func pageTables() fstest.MapFS {
	params := registrytest.Param(1, "page_size", "int", registrytest.Nullable, "context = true")
	params += registrytest.Param(2, "skip", "int", registrytest.Nullable, "context = true")
	params += registrytest.Param(3, "most", "int", registrytest.Nullable)
	params += registrytest.Param(4, "weight", "float", registrytest.Nullable)
	return registrytest.Tables{Keys: registrytest.ID + registrytest.Key(10, "score", "float", registrytest.Nullable, registrytest.Writable),
		Params: params, Endpoints: registrytest.Redis + "[endpoint.policy]\n" + enginetest.CacheForAnHour}.FS()
}

// pagePlan reads candidates, ranks them and makes a page, in one of three ways. limit, count,
// size and offset are integers or references to parameters.
func pagePlan(name string, way int, limit, count, size, offset string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": [%q], "nodes": [
		{"node_id": "c", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}", "limit": %s}},
		{"node_id": "top", "op": "top", "inputs": ["c"], "params": {"expr_id": "e", "out_key": "score", "count": %s}},
		{"node_id": "sorted", "op": "sort", "inputs": ["top"], "params": {"by": 1, "order": "desc"}},
		{"node_id": "all", "op": "union", "inputs": ["c", "top"], "params": {}},
		{"node_id": "p0", "op": "take", "inputs": ["sorted"], "params": {"count": %s, "offset": %s}},
		{"node_id": "p1", "op": "take", "inputs": ["top"], "params": {"count": %[5]s, "offset": %[6]s}},
		{"node_id": "p2", "op": "take", "inputs": ["all"], "params": {"count": %[5]s, "offset": %[6]s}}],
		"expr_table": {"e": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": -0.5}}}}`,
		name, fmt.Sprint("p", way), limit, count, size, offset)
}

// pageOf has references in the places where a plan may leave the integers to requests.
var pageOf = [...]string{`{"param_id": 1, "max": 20, "default": 12}`, `{"param_id": 3, "max": 40}`, `{"param_id": 1, "max": 20, "default": 12}`, `{"param_id": 2, "max": 30, "default": 0}`}

// A request that gives the limit, the count and the offset gets the rows of a plan with these
// numbers. This holds on each engine in each mode, even if the engine has kept the replies to
// other requests.
func TestRequestsGiveIntegers(t *testing.T) {
	const cases = 24
	redis, err := rankdtest.StartRedisWith(map[string]any{"inbox:1": inbox(60), "inbox:2": inbox(7)})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	rng := rand.New(rand.NewPCG(8, 8))
	folder := fstest.MapFS{}
	type asked struct{ way, size, skip, most, user int }
	var all []asked
	for way := range 3 {
		name := fmt.Sprint("asks", way)
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(pagePlan(name, way, pageOf[0], pageOf[1], pageOf[2], pageOf[3]))}
	}
	for i := range cases {
		a := asked{rng.IntN(3), 1 + rng.IntN(20), rng.IntN(31), 1 + rng.IntN(40), 1 + rng.IntN(3)}
		if all = append(all, a); i%4 == 0 {
			all[i].size, all[i].skip = 12, 0 // the defaults
		}
		a = all[i]
		name := fmt.Sprint("states", i)
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(pagePlan(name, a.way, fmt.Sprint(a.size), fmt.Sprint(a.most), fmt.Sprint(a.size), fmt.Sprint(a.skip)))}
	}
	enginetest.ForModels(t, rankd.Options{Plans: folder, Registry: pageTables(), Redis: redis.Addr(), AllowRequestScheduling: true}, func(t *testing.T, e *rankd.Engine) {
		rows := 0
		for i, a := range all {
			for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
				want, err := e.Rank(t.Context(), rankd.Request{Plan: fmt.Sprint("states", i), UserID: int64(a.user), Scheduling: mode})
				require.NoError(t, err)
				context := map[string]any{"page_size": a.size, "skip": a.skip}
				if i%4 == 0 {
					context = nil
				}
				got, err := e.Rank(t.Context(), rankd.Request{Plan: fmt.Sprint("asks", a.way), UserID: int64(a.user), Scheduling: mode,
					Context: context, Params: map[string]any{"most": a.most}})
				require.NoError(t, err)
				require.Equal(t, enginetest.JSONMember(t, string(want.AppendJSON(nil, rankd.FormatFlat)), "candidates"),
					enginetest.JSONMember(t, string(got.AppendJSON(nil, rankd.FormatFlat)), "candidates"), "%+v in mode %s", a, mode)
				rows += got.Len()
			}
		}
		require.Greater(t, rows, cases)
	})
}

// inbox returns that many ids.
func inbox(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i*37%101 + 1)
	}
	return ids
}

// A request is refused that gives a wrong integer, or none if the plan has no default. The
// error names the parameter.
func TestRequestsGiveWrongIntegers(t *testing.T) {
	folder := fstest.MapFS{"p.plan.json": {Data: []byte(pagePlan("p", 0, pageOf[0], pageOf[1], pageOf[2], pageOf[3]))}}
	enginetest.OnReactor(t, rankd.Options{Plans: folder, Registry: pageTables()}, func(t *testing.T, e *rankd.Engine) {
		for document, want := range map[string]string{
			`"param_overrides": {"most": 40}, "context": {"page_size": 20, "skip": 30}`: "",
			`"param_overrides": {"most": 1}, "context": {"page_size": 1, "skip": 0}`:    "",
			`"param_overrides": {"most": 1}, "context": {"page_size": null}`:            "",
			`"context": {}`:                                                 `Invalid param_overrides: parameter "most" must be 1 to 40, and is missing`,
			`"param_overrides": {"most": 41}`:                               `Invalid param_overrides: parameter "most" must be 1 to 40, got 41`,
			`"param_overrides": {"most": 0}`:                                `Invalid param_overrides: parameter "most" must be 1 to 40, got 0`,
			`"param_overrides": {"most": 2.5}`:                              `Invalid param_overrides: parameter "most" must be`,
			`"param_overrides": {"most": 1}, "context": {"page_size": 21}`:  `Invalid request: context member "page_size" must be 1 to 20, got 21`,
			`"param_overrides": {"most": 1}, "context": {"skip": -1}`:       `Invalid request: context member "skip" must be 0 to 30, got -1`,
			`"param_overrides": {"most": 1}, "context": {"page_size": "5"}`: `Invalid request: context member "page_size" must be`,
		} {
			r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "p", ` + document + `}`))
			if err == nil {
				_, err = e.Rank(t.Context(), r)
			}
			if want == "" {
				assert.NoError(t, err, document)
				continue
			}
			require.ErrorIs(t, err, rankd.ErrInvalidRequest, document)
			assert.ErrorContains(t, err, want, document)
		}
	})
}

// A plan that leaves an integer to requests says which parameter holds it, and its bounds.
func TestPlansLeaveIntegersToRequests(t *testing.T) {
	reg, err := registry.Load(pageTables(), "dev")
	require.NoError(t, err)
	for count, want := range map[string]string{
		`{"param_id": 1, "max": 20}`:                  "",
		`{"param_id": 1, "max": 1, "default": 1}`:     "",
		`{"param_id": 1, "max": 20, "default": null}`: "",
		`{"max": 20}`:                             "params.count.param_id: is missing, must be an integer",
		`{"param_id": 1}`:                         "params.count.max: is missing, must be an integer",
		`{"param_id": "page_size", "max": 20}`:    "params.count.param_id: must be an integer",
		`{"param_id": 4, "max": 20}`:              "params.count.param_id: must be a parameter of type int, not the integer 4",
		`{"param_id": 77, "max": 20}`:             "params.count.param_id: must be a parameter of type int, not the integer 77",
		`{"param_id": 4294967297, "max": 20}`:     "params.count.param_id: must be a parameter of type int, not",
		`{"param_id": -1, "max": 20}`:             "params.count.param_id: must be a parameter of type int, not the integer -1",
		`{"param_id": 1, "max": 0}`:               "params.count.max: must be at least 1, not 0",
		`{"param_id": 1, "max": 5, "default": 6}`: "params.count.default: must be 1 to 5, not 6",
		`{"param_id": 1, "max": 5, "default": 0}`: "params.count.default: must be 1 to 5, not 0",
		`{"param_id": 1, "max": 5, "min": 2}`:     "params.count.min: there is no such field; there are param_id, max, default",
		`[{"param_id": 1, "max": 5}]`:             "params.count: must be an integer of 64 bits, not an array",
	} {
		_, err := plan.Load("p.plan.json", []byte(pagePlan("p", 0, "5", "5", count, "0")), builtin.Catalog(), reg)
		if want == "" {
			assert.NoError(t, err, count)
			continue
		}
		assert.ErrorContains(t, err, want, count)
	}
	_, err = plan.Load("p.plan.json", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "p", "outputs": ["s"], "nodes": [
		{"node_id": "s", "op": "fixed_source", "inputs": [], "params": {"row_count": %s}}]}`, pageOf[0]), builtin.Catalog(), reg)
	require.ErrorContains(t, err, "params.row_count: must be an integer of 64 bits, not an object")
}

// TestKeysOfTheContext: a Redis key contains fields of the context. A request without one is at
// fault, unless the registry has a default.
func TestKeysOfTheContext(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{
		"top:DE": []int64{1, 2, 3}, "top:PL": []int64{2}, "seen:DE:7": rankdtest.Set([]string{"3"}), "seen:PL:7": rankdtest.Set([]string{"9"}),
		"item:1": map[string]any{"category": "shoes"}, "item:2": map[string]any{"category": "hats"},
		"stat:7:shoes:web": map[string]any{"bought": 4}, "stat:7:hats:app": map[string]any{"bought": 5}, "user:7": map[string]any{"age": 30},
	})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	tables := registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis}
	for i, key := range [][2]string{{"category", "string"}, {"bought", "int"}, {"age", "int"}} {
		tables.Keys += registrytest.Key(10+i, key[0], key[1], registrytest.Nullable, registrytest.Writable)
	}
	tables.Params = registrytest.Param(1, "country", "string", registrytest.Nullable, "context = true") +
		registrytest.Param(2, "channel", "string", registrytest.Nullable, "context = true", "override = true", "default = \"web\"")
	plan := fstest.MapFS{"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["age"], "nodes": [
		{"node_id": "top", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "top:{country}"}},
		{"node_id": "new", "op": "exclude", "inputs": ["top"], "params": {"endpoint": "ep_0001", "key": "seen:{country}:{user}"}},
		{"node_id": "item", "op": "lookup", "inputs": ["new"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["category"]}},
		{"node_id": "stat", "op": "lookup", "inputs": ["item"], "params": {"endpoint": "ep_0001", "key": "stat:{user}:{category}:{channel}", "fields": ["bought"]}},
		{"node_id": "age", "op": "lookup", "inputs": ["stat"], "params": {"endpoint": "ep_0001", "key": "user:{user}", "fields": ["age"]}}]}`)}}
	for _, cache := range []registry.CacheMode{"", "ttl"} {
		enginetest.OnReactor(t, rankd.Options{Registry: tables.FS(), Plans: plan, Redis: redis.Addr(), Cache: cache}, func(t *testing.T, e *rankd.Engine) {
			for range 2 { // The second time, the rows come from memory.
				for _, c := range []struct {
					context, params map[string]any
					want            string
				}{
					{map[string]any{"country": "DE"}, nil, `[{"id":1,"category":"shoes","bought":4,"age":30},{"id":2,"category":"hats","age":30}]`},
					{map[string]any{"country": "DE", "channel": "app"}, nil, `[{"id":1,"category":"shoes","age":30},{"id":2,"category":"hats","bought":5,"age":30}]`},
					{map[string]any{"country": "PL", "channel": nil}, map[string]any{"channel": "app"}, `[{"id":2,"category":"hats","bought":5,"age":30}]`},
					{map[string]any{"country": "PL", "channel": nil}, nil, `[{"id":2,"category":"hats","age":30}]`},
				} {
					answer, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 7, Context: c.context, Params: c.params})
					require.NoError(t, err)
					assert.Contains(t, string(answer.AppendJSON(nil, rankd.FormatFlat)), c.want)
				}
				for _, context := range []map[string]any{nil, {"country": nil}, {"channel": "app"}} {
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 7, Context: context})
					require.ErrorIs(t, err, rankd.ErrInvalidRequest)
					var failed *rankd.Error
					require.ErrorAs(t, err, &failed)
					assert.Equal(t, http.StatusBadRequest, failed.Class.Status())
					assert.Equal(t, `context member "country": there is no value, and a key template of the plan needs one`, failed.Detail)
				}
			}
		})
	}
}
