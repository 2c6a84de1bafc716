package peers

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/load"
)

// BenchmarkPlans runs plans in a closed loop against its own redis-server (RANKD_REDIS_SERVER).
// A fixed number of clients have one request in flight each. To compare peers and engines, use
// "rankd bench compare" instead, which interleaves them.
func BenchmarkPlans(b *testing.B) {
	server := startRedis(b)
	for _, c := range []struct {
		plan   string
		fanout int
	}{{"concat_plan", 0}, {"concat_plan", 100}} {
		for _, spec := range []string{"rueidis", "go-redis"} {
			for _, inFlight := range []int{1, 64, 256} {
				b.Run(fmt.Sprintf("%s/fanout=%d/%s/inflight=%d", c.plan, c.fanout, spec, inFlight), func(b *testing.B) {
					plan, store := openPlan(b, spec, server.Addr, c.plan, c.fanout)
					target := NewTarget(plan, store, Context{})
					b.ReportAllocs()
					b.ResetTimer()
					result, err := load.Driver{}.Run(context.Background(), target,
						load.Load{Users: []int64{1}, Concurrency: inFlight, Requests: int64(b.N)})
					require.NoError(b, err)
					require.Empty(b, result.FirstError)
					b.ReportMetric(result.PerSecond(), "req/s")
					b.ReportMetric(float64(result.Latency.ValueAtQuantile(99))/1e3, "p99-us")
				})
			}
		}
	}
}
