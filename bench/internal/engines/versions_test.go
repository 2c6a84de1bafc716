package engines

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/registry"
)

const emptyPlan = `{"schema_version": 1, "plan_name": "p", "outputs": ["me"], "nodes": [{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}]}`

// An engine that keeps nothing is never stale. An engine that goes by age is stale, but no
// longer than values are kept. An engine that hears of changes is stale for as long as the
// message takes.
func TestStaleness(t *testing.T) {
	for _, mode := range []registry.CacheMode{registry.CacheOff, registry.CacheTTL, registry.CacheBroadcast, registry.CacheTrack} {
		t.Run(string(mode), func(t *testing.T) {
			server := testworld.StartRedis(t)
			target, err := Open(WithVersions(rankd.Options{Redis: server.Addr, PlanFile: "p.plan.json", PlanText: []byte(emptyPlan), Cache: mode}))
			require.NoError(t, err)
			defer target.Close()
			probe := worker.BeginProbe(t.Context(), server.Addr, target)
			began := time.Now()
			require.Eventually(t, func() bool { return time.Since(began) > 500*time.Millisecond }, time.Minute, 10*time.Millisecond)
			seen, err := probe.End()
			require.NoError(t, err)
			assert.Positive(t, seen.Answers)
			cache := target.Traffic().Cache
			switch mode {
			case registry.CacheOff:
				assert.Zero(t, seen.Stale)
				return
			case registry.CacheTTL:
				assert.Greater(t, seen.Stale, seen.Answers/2)
			default:
				assert.Less(t, seen.Stale, seen.Answers/2)
				assert.Positive(t, cache.Invalidated)
			}
			assert.Positive(t, cache.Hits, "versions are read as lists are")
		})
	}
}

// Users whose ids are strings also have versions. An engine without a Redis has no versions.
func TestVersionsOfOtherTables(t *testing.T) {
	named := &Target{users: &userName{"u-", ""}}
	assert.Equal(t, "bench_versions:u-7", named.VersionKey(7))
	assert.Equal(t, "bench_versions:7", new(Target).VersionKey(7))
	o := WithVersions(rankd.Options{Registry: fstest.MapFS{"keys.toml": {Data: []byte("?")}}})
	assert.Nil(t, o.Plans, "opening the engine says what is wrong")
	target, err := Open(rankd.Options{Redis: "127.0.0.1:1", Plan: "simple_viewer"})
	require.NoError(t, err)
	defer target.Close()
	failed := make(chan error, 1)
	target.ReadVersion(1, func(_ int64, err error) { failed <- err })
	assert.Error(t, <-failed, "an engine that was opened without versions")
}
