package rankd_test

import (
	"io/fs"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// sourcesPlan joins two sources, leaves out what was seen, joins a score, and blends the two sources again. Its second output are the
// rows that only the second source gave.
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

// store runs commands on a server.
func store(t testing.TB, addr string, commands ...[]string) {
	require.NoError(t, devredis.WithClient(t.Context(), addr, func(c *blocking.Client) error {
		var b resp.Batch
		for _, command := range commands {
			b.Cmd(command...)
		}
		return c.Do(&b, 0, func(replies resp.Replies) error {
			for _, reply := range replies.All() {
				if err := reply.Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}))
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
			store(t, addr, []string{"SADD", "seen:1", "444", "1000", "8"}, []string{"ZADD", "shown:1", "0", "168", "inf", "599", "4e9", "30"},
				[]string{"MSET", "count:1:168", "2", "count:1:737", "2.9", "count:1:461", "3"})
			for _, model := range models {
				for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
					t.Run(string(model)+" "+string(mode), func(t *testing.T) {
						e := open(t, rankd.Options{Redis: addr, Model: model, Registry: sourceTables(t), PlanText: []byte(sourcesPlan), Scheduling: rankd.Scheduling{Mode: mode}})
						for i := range 8 {
							a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, ID: "r" + strconv.Itoa(i), Context: map[string]any{"seen": []int64{875, 9}}})
							require.NoError(t, err)
							ids := idsOf(a.Output(0))
							for id, there := range map[int64]bool{737: true, 168: true, 461: false, 444: false, 875: false, 599: false, 30: false} {
								assert.Equal(t, there, slices.Contains(ids, id), "id %d", id)
							}
							got := withoutEngineID(t, a.AppendJSON(nil, rankd.FormatFlat))["candidates"]
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

// idsOf returns the ids of an output.
func idsOf(o rankd.Output) []int64 {
	ids := make([]int64, o.Len())
	for i := range ids {
		ids[i] = o.ID(i)
	}
	return ids
}

// A failure of an exclude that fails open stands in the answer, unless the request requires the node.
func TestExcludeFailsOpen(t *testing.T) {
	const nodes = `{"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "out", "op": "exclude", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "follow:{user}", "fail_open": true}}`
	forModels(t, rankd.Options{Plans: plans(map[string]string{"open": nodes})}, func(t *testing.T, e *rankd.Engine) {
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
