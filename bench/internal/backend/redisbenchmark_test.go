package backend

import (
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseBenchmark(t *testing.T) {
	rate, err := parseBenchmark("\"test\",\"rps\",\"avg_latency_ms\"\n\"HGETALL user:1\",\"1320132.00\",\"0.17\"\n")
	require.NoError(t, err)
	assert.Equal(t, 1320132.0, rate)
	for _, bad := range []string{"", "\"test\",\"rps\"\n", "\"HGETALL user:1\"\n", "\"HGETALL\",\"many\"\n", "\"HGETALL\",\"NaN\"\n"} {
		_, err := parseBenchmark(bad)
		assert.Error(t, err, bad)
	}
}

func FuzzParseBenchmark(f *testing.F) {
	f.Add("\"HGETALL user:1\",\"1320132.00\",\"0.17\"\n")
	f.Fuzz(func(t *testing.T, csv string) {
		if rate, err := parseBenchmark(csv); err == nil {
			assert.Positive(t, rate)
			assert.False(t, math.IsNaN(rate))
		}
	})
}

func TestRedisBenchmarkErrors(t *testing.T) {
	_, err := RedisBenchmark(t.Context(), "/nowhere/redis-benchmark", "127.0.0.1:1")
	assert.ErrorContains(t, err, "/nowhere/redis-benchmark")
	_, err = RedisBenchmark(t.Context(), "redis-benchmark", "nowhere")
	assert.Error(t, err)
	_, err = RedisBenchmarkVersion(t.Context(), "/nowhere/redis-benchmark")
	assert.ErrorContains(t, err, "/nowhere/redis-benchmark")
}

// Any installed version says its name, and its output can be parsed.
func TestRedisBenchmarkAsInstalled(t *testing.T) {
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		require.Empty(t, os.Getenv("RANKD_REQUIRE_REDIS"), "redis-benchmark comes with redis-server")
		t.Skip("redis-benchmark is not installed")
	}
	version, err := RedisBenchmarkVersion(t.Context(), program)
	require.NoError(t, err)
	assert.Regexp(t, `^redis-benchmark \d.* -P 64 -c 4 HGETALL$`, version)
	server := os.Getenv("RANKD_REDIS_SERVER")
	if server == "" {
		t.Skip("RANKD_REDIS_SERVER names no redis-server")
	}
	b, err := Start(t.Context(), Options{Server: server})
	require.NoError(t, err)
	defer b.Close()
	rate, err := RedisBenchmark(t.Context(), program, b.Addr(0))
	require.NoError(t, err)
	assert.Greater(t, rate, 100.0)
}
