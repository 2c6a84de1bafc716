package rankd_test

import (
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/registry/registrytest"
)

// TestKeysOfTheContext: a key takes fields of the context. A request that lacks one is at fault, unless the registry has a default.
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
		forModels(t, rankd.Options{Registry: tables.FS(), Plans: plan, Redis: redis.Addr(), Cache: cache}, func(t *testing.T, e *rankd.Engine) {
			for range 2 { // The second time, rows come from memory.
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
