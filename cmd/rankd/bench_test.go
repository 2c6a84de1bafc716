package main

import (
	"encoding/json"
	"strings"
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

// One user makes all reads equal, so --bench shares none unless it is told to.
func TestBenchSharesReadsOnlyIfAsked(t *testing.T) {
	for flag, want := range map[string]string{
		"": `"coalesce_reads":false`, "--coalesce_reads=true": `"coalesce_reads":true`, "--coalesce_reads=false": `"coalesce_reads":false`,
	} {
		args := []string{"--plan_name", "simple_viewer", "--bench", "5"}
		if flag != "" {
			args = append(args, flag)
		}
		o := run(t, nil, args...)
		require.Equal(t, exitOK, o.status, o.stderr)
		assert.Contains(t, o.stdout, want)
		words := "equal reads not shared"
		if strings.HasSuffix(want, "true") {
			words = "equal reads shared"
		}
		assert.Contains(t, o.stderr, words)
	}
}

func TestBenchCountsErrorsAndGoesOn(t *testing.T) {
	o := run(t, nil, "--plan_name", "simple_viewer", "--redis", "127.0.0.1:1", "--bench", "5", "--bench_concurrency", "9")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stdout, `"iterations":5`)
	assert.Contains(t, o.stdout, `"errors":5`)
	assert.Equal(t, 1, strings.Count(o.stderr, "first error: "))
	assert.Contains(t, o.stderr, "127.0.0.1:1")
}
