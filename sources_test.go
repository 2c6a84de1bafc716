package rankd_test

import (
	"io/fs"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/redisclient"
	"github.com/rankd/rankd/internal/redistest"
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
		{"node_id": "joined", "op": "join", "inputs": ["fresh"], "params": {"right": "scored", "columns": ["score"]}},
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
func store(t *testing.T, addr string, commands ...[]string) {
	require.NoError(t, redisclient.With(t.Context(), addr, func(c *blocking.Client) error {
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
				addr = redistest.Start(t).Addr
				require.NoError(t, devredis.Load(t.Context(), addr))
			}
			store(t, addr, []string{"SADD", "seen:1", "4", "8", "15", "16", "23", "42"},
				[]string{"ZADD", "shown:1", "0", "108", "inf", "111", "4e9", "200"})
			for _, model := range models {
				for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
					t.Run(string(model)+" "+string(mode), func(t *testing.T) {
						e := open(t, rankd.Options{Redis: addr, Model: model, Registry: sourceTables(t), PlanText: []byte(sourcesPlan), Scheduling: rankd.Scheduling{Mode: mode}})
						for i := range 8 {
							a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, ID: "r" + strconv.Itoa(i), Context: map[string]any{"seen": []int64{77, 88}}})
							require.NoError(t, err)
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
