package engines

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/registry"
)

func TestParseSpecs(t *testing.T) {
	for text, want := range map[string][]Spec{
		"reactor":                  {{Kind: Reactor}},
		"reactor,pool, sequential": {{Kind: Reactor}, {Kind: Pool}, {Kind: Sequential}},
		"pool:redis_pool=16":       {{Kind: Pool, RedisPool: 16}},
		"pool:io_threads=64,redis_pool=64,reactor":             {{Kind: Pool, IOThreads: 64, RedisPool: 64}, {Kind: Reactor}},
		"reactor:cpu_threads=4,sequential:redis_pool=2":        {{Kind: Reactor, CPUThreads: 4}, {Kind: Sequential, RedisPool: 2}},
		"reactor,reactor:scheduling=offload_all,cpu_threads=1": {{Kind: Reactor}, {Kind: Reactor, CPUThreads: 1, Scheduling: rankd.OffloadAll}},
		"binary:a:reactor:scheduling=inline_all":               {{Kind: Reactor, Binary: "a", Scheduling: rankd.InlineAll}},
		"pool:trace=1,io_threads=4,reactor:trace=1000":         {{Kind: Pool, Trace: 1, IOThreads: 4}, {Kind: Reactor, Trace: 1000}},
		"reactor:scheduling=adaptive,inline=false":             {{Kind: Reactor, Scheduling: rankd.Adaptive, NoInline: true}},
		"reactor:coalesce_reads=false,reactor:coalesce_reads=true,max_reply_bytes=5": {{Kind: Reactor, CoalesceReads: "false"},
			{Kind: Reactor, CoalesceReads: "true", MaxReplyBytes: 5}},
		"pool,pool:redis_pool=16":           {{Kind: Pool}, {Kind: Pool, RedisPool: 16}},
		"peer:rueidis:procs=2:conns=1,pool": {{Kind: Peer, Peer: "rueidis:procs=2:conns=1"}, {Kind: Pool}},
		"peer:rueidis,peer:go-redis":        {{Kind: Peer, Peer: "rueidis"}, {Kind: Peer, Peer: "go-redis"}},
		"reactor:cluster=3,peer:rueidis:cluster=3:procs=2,peer:go-redis:cluster=2": {{Kind: Reactor, Cluster: 3},
			{Kind: Peer, Peer: "rueidis:procs=2", Cluster: 3}, {Kind: Peer, Peer: "go-redis", Cluster: 2}},
		"binary:a:pool:cluster=3":                      {{Kind: Pool, Binary: "a", Cluster: 3}},
		"reactor,binary:/old/rankd":                    {{Kind: Reactor}, {Kind: Reactor, Binary: "/old/rankd"}},
		"reactor:registry=x/y=z,cache=ttl":             {{Kind: Reactor, Registry: "x/y=z", Cache: registry.CacheTTL}},
		"binary:a-b/c:pool:redis_pool=2,cpu_threads=3": {{Kind: Pool, Binary: "a-b/c", CPUThreads: 3, RedisPool: 2}},
	} {
		got, err := ParseSpecs(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		for _, s := range got {
			again, err := ParseSpec(s.String())
			require.NoError(t, err, s)
			assert.Equal(t, s, again)
		}
	}
}

func TestParseSpecsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "the kind is",
		"reactor,":                          "the kind is",
		"libuv":                             `"libuv"`,
		"redis_pool=3":                      "the kind is",
		"pool:":                             "no option",
		"pool:redis_pool":                   "redis_pool is a number",
		"pool:redis_pool=0":                 "from 1 to",
		"pool:redis_pool=many":              `"many"`,
		"pool:redis_pool=1,redis_pool=2":    "twice",
		"reactor:io_threads=4":              "there are cpu_threads, redis_pool, trace, max_reply_bytes, inline_threshold_ns, cluster, scheduling, inline, registry, busy_poll, cache, coalesce_reads",
		"reactor:inline":                    `inline is false, or left out, not ""`,
		"reactor:inline=true":               `not "true"`,
		"reactor:inline=false,inline=false": "twice",
		"reactor:scheduling=fast":           `adaptive, offload_all or inline_all, not "fast"`,
		"reactor:scheduling":                `not ""`,
		"reactor:scheduling=adaptive,scheduling=adaptive":  "twice",
		"reactor:coalesce_reads=no":                        "true or false",
		"reactor:coalesce_reads=true,coalesce_reads=false": "twice",
		"reactor:registry":                                 "registry is a folder", "pool:registry=a,registry=b": "twice",
		"pool:cache=ttl": "no option", "reactor:cache=lru": "ttl, broadcast or track", "reactor:cache=ttl,cache=broadcast": "twice",
		"pool:busy_poll=false": "no option", "reactor:busy_poll=true": "left out", "reactor:busy_poll=false,busy_poll=false": "twice",
		"pool:coalesce_reads=true":  "no option",
		"peer":                      "peer:<name>",
		"peer:":                     "peer:<name>",
		"peer:a=b":                  "peer:<name>",
		"peer:a:b":                  "peer:<name>",
		"peer:a:b=":                 "peer:<name>",
		"peer:a:b=c:":               "peer:<name>",
		"peer:a:cluster=many":       "cluster is a number from 1 to 100",
		"reactor:cluster=0":         "cluster is a number from 1 to 100",
		"reactor,reactor":           "listed twice",
		"binary":                    "the kind is",
		"binary:":                   "binary:<path>",
		"binary::pool":              "binary:<path>",
		"binary:a:libuv":            `"libuv"`,
		"binary:a:peer:b":           "an engine of its own",
		"binary:a:binary:b:pool":    "an engine of its own",
		"binary:a,binary:a:reactor": "listed twice",
	} {
		_, err := ParseSpecs(text)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := ParseSpecs("libuv,nginx")
	assert.ErrorContains(t, err, "libuv")
	assert.ErrorContains(t, err, "nginx", "all problems at once")
}

func TestSpecOptions(t *testing.T) {
	base := rankd.Options{CPUThreads: 5, RedisConnections: 6, Env: "test"}
	assert.Equal(t, rankd.Options{CPUThreads: 5, RedisConnections: 6, Env: "test", Model: rankd.Sequential}, Spec{Kind: Sequential}.Options(base))
	assert.Equal(t, rankd.Options{CPUThreads: 1, IOThreads: 2, RedisConnections: 3, Env: "test", Model: rankd.Pool},
		Spec{Kind: Pool, CPUThreads: 1, IOThreads: 2, RedisPool: 3}.Options(base))
	assert.Equal(t, os.DirFS("x"), Spec{Kind: Reactor, Registry: "x"}.Options(base).Registry)
	assert.True(t, Spec{Kind: Reactor, NoInline: true}.Options(base).Scheduling.NoInlineExecution)
	assert.Equal(t, rankd.OffloadAll, Spec{Kind: Reactor, Scheduling: rankd.OffloadAll}.Options(base).Scheduling.Mode)
}

func TestUnshared(t *testing.T) {
	for text, want := range map[string]string{
		"reactor": "reactor:coalesce_reads=false", "reactor:redis_pool=2": "reactor:redis_pool=2,coalesce_reads=false",
		"reactor:cache=broadcast":     "reactor:cache=broadcast,coalesce_reads=false",
		"reactor:coalesce_reads=true": "reactor:coalesce_reads=true", "reactor:busy_poll=false": "reactor:busy_poll=false,coalesce_reads=false",
		"pool": "pool", "sequential": "sequential", "peer:rueidis": "peer:rueidis",
		"binary:/old/rankd:reactor": "binary:/old/rankd:reactor",
	} {
		s, err := ParseSpec(text)
		require.NoError(t, err)
		assert.Equal(t, want, s.Unshared().String())
	}
	assert.True(t, Spec{Kind: Reactor}.Unshared().Options(rankd.Options{}).NoCoalesceReads)
	assert.False(t, Spec{Kind: Reactor, CoalesceReads: "true"}.Options(rankd.Options{}).NoCoalesceReads)
}

func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{"reactor", "pool:io_threads=64,redis_pool=64", "peer:go-redis", "pool:redis_pool=", "a:b=c", "binary:p:pool"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			return
		}
		again, err := ParseSpec(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, again)
	})
}

func TestWithFanout(t *testing.T) {
	const artifact = `{"schema_version": 1, "nodes": [
		{"node_id": "a", "params": {"fanout": 4, "endpoint": "ep_0001", "big": 12345678901234567890}},
		{"node_id": "b"}, {"node_id": "c", "params": {"count": 8}}], "x": [1.50, {"fanout": 1}]}`
	got, err := WithFanout([]byte(artifact), 100)
	require.NoError(t, err)
	assert.JSONEq(t, `{"schema_version": 1, "nodes": [
		{"node_id": "a", "params": {"fanout": 100, "endpoint": "ep_0001", "big": 12345678901234567890}},
		{"node_id": "b"}, {"node_id": "c", "params": {"count": 8}}], "x": [1.50, {"fanout": 1}]}`, string(got))
	assert.Contains(t, string(got), "12345678901234567890", "numbers stay as they are written")
	assert.True(t, json.Valid(got))
	for _, bad := range []string{``, `[]`, `{"nodes": 1}`, `{"nodes": [1]}`, `{"nodes": [{"params": 1}]}`} {
		_, err := WithFanout([]byte(bad), 1)
		assert.ErrorContains(t, err, "set fanout", bad)
	}
}

func TestModes(t *testing.T) {
	for text, want := range map[string][2]string{
		"reactor":                        {"adaptive", "shared"},
		"reactor:scheduling=offload_all": {"offload_all", "shared"},
		"reactor:inline=false,coalesce_reads=false":      {"adaptive, nothing inline", "each sent"},
		"pool:redis_pool=16":                             {"two pools", "each sent"},
		"sequential":                                     {"one at a time", "each sent"},
		"peer:rueidis":                                   {"by hand", "each sent"},
		"peer:rueidis-cache:procs=2":                     {"by hand", "each sent, kept"},
		"binary:/old/rankd":                              {"its default", "its default"},
		"binary:/old/rankd:reactor:scheduling=adaptive":  {"adaptive", "its default"},
		"binary:/old/rankd:reactor:coalesce_reads=false": {"its default", "each sent"},
	} {
		s, err := ParseSpec(text)
		require.NoError(t, err)
		assert.Equal(t, want, [2]string{s.Placement(), s.Reads()}, text)
	}
}
