package program

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBenchReport(t *testing.T) {
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		o := run(t, nil, "--plan_name", "concat_plan", "--bench", "50", "--bench_concurrency", "8", "--cpu_threads", "2", "--engine", engine)
		require.Equal(t, exitOK, o.status, o.stderr)
		require.Len(t, o.lines(), 1)
		var report map[string]any
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &report))
		for _, key := range []string{"total_ms", "throughput_rps", "avg_us", "p50_us", "p90_us", "p99_us", "p999_us", "min_us", "max_us"} {
			assert.Positive(t, report[key], key)
		}
		for key, want := range map[string]any{
			"plan": "concat_plan", "iterations": 50.0, "concurrency": 8.0, "engine": engine, "cpu_threads": 2.0, "errors": 0.0,
			"users": "1", "coalesce_reads": false,
			"async_scheduler": engine == "reactor", "within_request_parallelism": engine != "sequential",
		} {
			assert.Equal(t, want, report[key], key)
		}
		assert.LessOrEqual(t, report["min_us"], report["p50_us"])
		assert.LessOrEqual(t, report["p999_us"], report["max_us"])
	}
}
