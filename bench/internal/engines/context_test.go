package engines

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// TestACacheIsCounted reads a user twice. The second read comes from memory. An engine without
// a cache counts nothing.
func TestACacheIsCounted(t *testing.T) {
	redis := miniredis.RunT(t)
	for _, mode := range []registry.CacheMode{registry.CacheOff, registry.CacheTTL} {
		target, err := Open(rankd.Options{Redis: redis.Addr(), Plan: "simple_viewer", Cache: mode})
		require.NoError(t, err)
		answered := make(chan error, 2)
		client := target.NewClient(func(err error) { answered <- err })
		for range 2 {
			client.Send(7)
			require.NoError(t, <-answered)
		}
		cache := target.Traffic().Cache
		target.Close()
		if mode == registry.CacheOff {
			assert.Nil(t, cache)
			continue
		}
		require.NotNil(t, cache)
		assert.Equal(t, [2]uint64{1, 1}, [2]uint64{cache.Hits, cache.Misses})
		assert.Positive(t, cache.HitAge)
		assert.Positive(t, cache.Bytes)
	}
}

func TestEachRequestHasTheContext(t *testing.T) {
	tables := fstest.MapFS{}
	for _, file := range []string{"keys.toml", "params.toml", "endpoints.dev.toml"} {
		text, err := fs.ReadFile(registry.DefaultTables(), file)
		require.NoError(t, err)
		tables[file] = &fstest.MapFile{Data: text}
	}
	tables["params.toml"].Data = append(tables["params.toml"].Data, "\n[[param]]\nid = 9\nname = \"hour\"\ntype = \"int\"\ncontext = true\n"...)
	seen := make(chan [2]int64, 2)
	target, err := Open(rankd.Options{
		Redis: "127.0.0.1:1", Registry: tables, PlanFile: "p.plan.json", Model: rankd.Sequential,
		PlanText: []byte(`{"schema_version": 1, "plan_name": "p", "nodes": [{"node_id": "n", "op": "test::hour", "inputs": []}], "outputs": ["n"]}`),
		Tasks: []task.Spec{{Op: "test::hour", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			hour, _ := c.Params.Int(9)
			seen <- [2]int64{c.UserID, hour}
			return rowset.Dense(&rowset.Batch{}), nil
		}}},
	})
	require.NoError(t, err)
	defer target.Close()
	assert.ErrorContains(t, target.SetContext(`{"hour": "x"}`), `context member "hour" must be an integer of 64 bits`)
	require.NoError(t, target.SetContext(`{"hour": 18}`))
	answered := make(chan error, 2)
	client := target.NewClient(func(err error) { answered <- err })
	for _, user := range []int64{7, 8} {
		client.Send(user)
		assert.NoError(t, <-answered)
		assert.Equal(t, [2]int64{user, 18}, <-seen)
	}
}

func TestUsersThatAreStrings(t *testing.T) {
	tables := fstest.MapFS{"entities.toml": &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n")}}
	for _, file := range []string{"keys.toml", "params.toml", "endpoints.dev.toml"} {
		text, err := fs.ReadFile(registry.DefaultTables(), file)
		require.NoError(t, err)
		tables[file] = &fstest.MapFile{Data: text}
	}
	o := rankd.Options{
		Redis: "127.0.0.1:1", Registry: tables, PlanFile: "p.plan.json", Model: rankd.Sequential,
		PlanText: []byte(`{"schema_version": 1, "plan_name": "p", "nodes": [{"node_id": "n", "op": "test::user", "inputs": []}], "outputs": ["n"]}`),
	}
	seen := make(chan string, 1)
	o.Tasks = []task.Spec{{Op: "test::user", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		seen <- c.UserIDText()
		return rowset.Dense(&rowset.Batch{}), nil
	}}}
	for _, c := range []struct {
		name, context, want string
		json                bool
	}{{"", "", "7", false}, {"", "", "7", true}, {"u-{}\"", "", `u-7"`, false}, {"u-{}\"", "", `u-7"`, true}, {"{}@b", "{}", "7@b", false}} {
		target, err := Open(o)
		require.NoError(t, err)
		if c.json {
			target.PassJSON()
		}
		if c.context != "" {
			require.NoError(t, target.SetContext(c.context))
		}
		if c.name != "" {
			require.NoError(t, target.SetUserName(c.name))
		}
		answered := make(chan error, 1)
		target.NewClient(func(err error) { answered <- err }).Send(7)
		assert.NoError(t, <-answered)
		assert.Equal(t, c.want, <-seen)
		target.Close()
	}
	delete(tables, "entities.toml")
	target, err := Open(o)
	require.NoError(t, err)
	defer target.Close()
	assert.ErrorContains(t, target.SetUserName("u-{}"), "the ids of users are integers in")
	assert.ErrorContains(t, target.SetUserName("u-{}"), "not strings such as u-1")
}

func TestRequestsAndAnswersAsJSON(t *testing.T) {
	target, err := Open(rankd.Options{
		Redis: "127.0.0.1:1", PlanFile: "p.plan.json", Model: rankd.Sequential,
		PlanText: []byte(`{"schema_version": 1, "plan_name": "p", "nodes": [{"node_id": "n", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}}], "outputs": ["n"]}`),
	})
	require.NoError(t, err)
	defer target.Close()
	target.PassJSON()
	answered := make(chan error, 1)
	asking := target.NewClient(func(err error) { answered <- err })
	asking.Send(7)
	require.NoError(t, <-answered)
	assert.Contains(t, string(asking.(*client).text), `"candidates":[{"id":1},{"id":2}]`)
	asking.Send(-1)
	assert.ErrorContains(t, <-answered, "user_id")
}
