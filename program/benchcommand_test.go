package program

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// measure runs the program with the test binary as its workers. The program cannot find a
// redis-server.
func measure(t *testing.T, args ...string) outcome {
	t.Helper()
	t.Setenv("RANKD_TEST_RUN_MAIN", "1")
	t.Setenv("PATH", t.TempDir())
	return run(t, nil, append([]string{"bench"}, args...)...)
}

// report is a report as --json prints it. A result has what compare, serve, overload or
// isolation print.
type report struct {
	Answer   string
	Facts    harness.Facts
	Settings struct {
		Scenario string
		Users    load.Users
		Unshared bool `json:"reads_unshared"`
	}
	Results []struct {
		Engine, Placement, Reads, Scenario, Front, Caller, Failure string
		Rows, Concurrency                                          int
		Rate                                                       float64
		RedisLatency                                               int64             `json:"redis_latency_ns"`
		ForeignWrites                                              int               `json:"foreign_writes"`
		Requests, Errors                                           float64           // sums
		FirstErrors                                                map[string]string `json:"first_errors"`
		Throughput                                                 harness.Estimate  `json:"throughput_rps"`
		CPU                                                        harness.Estimate  `json:"cpu_us"`
		RedisCPU                                                   harness.Estimate  `json:"redis_cpu_us"`
		Asked                                                      harness.Estimate  `json:"commands_asked"`
		Commands                                                   harness.Estimate
		Written                                                    harness.Estimate `json:"foreign_writes_per_second"`
		P50                                                        harness.Estimate `json:"p50_us"`
		Shed                                                       float64
		Stale                                                      *float64         `json:"answers_stale"`
		AgeMax                                                     float64          `json:"age_max_us"`
		PerSecond                                                  harness.Estimate `json:"requests_per_second"`
		P50AtOne                                                   harness.Estimate `json:"p50_at_one_us"`
		Capacity                                                   harness.Estimate `json:"capacity_rps"`
		Answered, Refused                                          float64
		CPURefusal                                                 harness.Estimate `json:"cpu_refusal_us"`
		RefusalP50                                                 harness.Estimate `json:"refusal_p50_us"`
		Small                                                      float64          `json:"small_answered"`
		Large                                                      float64          `json:"large_answered"`
		Rounds                                                     []map[string]float64
	}
	Verdicts []harness.Verdict
}

// reportOf decodes what a run printed.
func reportOf(t *testing.T, o outcome) (r report) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r), o.stdout+o.stderr)
	return r
}

func TestBenchCompare(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	o := measure(t, "compare", "--plan_name", "concat_plan", "--fanout", "7", "--users", "1-3", "--json", "--html", page,
		"--engines", "reactor:coalesce_reads=false,pool:redis_pool=2,sequential", "--concurrency", "8,1", "--redis-latency", "0,1ms", "--foreign-writes", "500",
		"--rounds", "2", "--duration", "20ms", "--warmup", "1ms")
	require.Equal(t, exitOK, o.status, o.stderr)
	c := reportOf(t, o)
	require.Len(t, c.Results, 3*2*2)
	for i, cell := range c.Results {
		assert.Equal(t, []string{"reactor:coalesce_reads=false", "pool:redis_pool=2", "sequential"}[i%3], cell.Engine)
		assert.Equal(t, []int{1, 8}[i/3%2], cell.Concurrency)
		assert.Positive(t, cell.Requests)
		assert.Zero(t, cell.Errors, cell.FirstErrors)
		assert.Positive(t, cell.Throughput.Median)
		assert.Positive(t, cell.CPU.Median)
		assert.InDelta(t, 17, cell.Commands.Median, 1, "the viewer, two lists, and up to two times seven users")
		assert.Len(t, cell.Rounds, 2)
		assert.Positive(t, cell.Written.Median)
		assert.Equal(t, 500, cell.ForeignWrites)
		if cell.RedisLatency > 0 {
			assert.GreaterOrEqual(t, cell.P50.Median, 3000.0, "three round trips of a millisecond")
		}
	}
	assert.Equal(t, load.Users{Spec: "1-3", Different: 3}, c.Settings.Users)
	assert.True(t, c.Facts.Embedded)
	assert.Contains(t, c.Facts.Command, "rankd bench compare --plan_name concat_plan")
	assert.Contains(t, o.stderr, "WARNING: Redis is the one inside this process")
	assert.Contains(t, o.stderr, "24/24")
	report, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(report), "pool:redis_pool=2")
}

// An engine with a cache tells how old its answers are while somebody writes.
func TestBenchCompareAges(t *testing.T) {
	o := measure(t, "compare", "--plan_name", "simple_viewer", "--users", "1-9", "--json", "--engines", "reactor,reactor:cache=ttl", "--concurrency", "2",
		"--foreign_writes", "0,100", "--rounds", "1", "--duration", "20ms", "--warmup", "1ms")
	require.Equal(t, exitOK, o.status, o.stderr)
	c := reportOf(t, o)
	require.Len(t, c.Results, 4)
	for _, cell := range c.Results[:3] {
		assert.Nil(t, cell.Stale)
	}
	require.NotNil(t, c.Results[3].Stale)
	assert.Positive(t, *c.Results[3].Stale)
	assert.Greater(t, c.Results[3].AgeMax, 5000.0, "in µs; it keeps values for a second")
}

// One user makes all reads equal, so engines do not share reads unless their names say so. With
// several users they share them.
func TestBenchCompareSharesReadsOfSeveralUsers(t *testing.T) {
	for _, c := range []struct {
		users, engines string
		shared         [2]bool // by engine
		unshared       bool
	}{
		{"1", "reactor,reactor:coalesce_reads=true", [2]bool{false, true}, true},
		{"zipf:5,1-1000", "reactor,reactor:coalesce_reads=false", [2]bool{true, false}, false},
	} {
		o := measure(t, "compare", "--plan_name", "concat_plan", "--users", c.users, "--json", "--concurrency", "64", "--rounds", "1", "--duration", "100ms",
			"--warmup", "0s", "--engines", c.engines)
		require.Equal(t, exitOK, o.status, o.stderr)
		found := reportOf(t, o)
		assert.Equal(t, c.unshared, found.Settings.Unshared)
		assert.Equal(t, c.engines, found.Results[0].Engine+","+found.Results[1].Engine, "as the command line names them")
		for i, cell := range found.Results {
			asked, sent := cell.Asked.Median, cell.Commands.Median
			assert.InDelta(t, 11, asked, 1, cell.Engine)
			if c.shared[i] {
				assert.Less(t, sent, 0.9*asked, "%s, users %s", cell.Engine, c.users)
			} else {
				assert.Equal(t, asked, sent, "%s, users %s", cell.Engine, c.users)
			}
		}
	}
}

// Engines on a Redis Cluster of three masters are compared with one on a server. The times of
// all redis-servers are shown.
func TestBenchCompareCluster(t *testing.T) {
	server := os.Getenv("RANKD_REDIS_SERVER")
	if server == "" {
		testworld.StartRedis(t) // skips, or fails if there must be one
	}
	o := measure(t, "compare", "--plan_name", "concat_plan", "--users", "1-1000", "--json", "--engines", "reactor,reactor:cluster=3,pool:cluster=3", "--concurrency", "8",
		"--rounds", "1", "--duration", "50ms", "--warmup", "10ms", "--redis_server", server, "--want", "cpu reactor:cluster=3 <= 1.5 reactor")
	require.Equal(t, exitOK, o.status, o.stderr)
	r := reportOf(t, o)
	require.Len(t, r.Results, 3)
	for i, cell := range r.Results {
		assert.Equal(t, []string{"reactor", "reactor:cluster=3", "pool:cluster=3"}[i], cell.Engine)
		assert.Positive(t, cell.Requests)
		assert.InDelta(t, 11, cell.Commands.Median, 2)
		assert.Positive(t, cell.RedisCPU.Median)
	}
	assert.Equal(t, "cpu of reactor:cluster=3 to reactor's, 8 in flight", r.Verdicts[0].Aim)
	assert.Positive(t, r.Verdicts[0].Estimate.Median)
	for _, flags := range [][]string{{"--redis", "h:1"}, {"--redis_latency", "0,1ms"}, {"--foreign_writes", "9"}} {
		o := measure(t, append([]string{"compare", "--plan_name", "concat_plan", "--engines", "reactor:cluster=3"}, flags...)...)
		assert.Equal(t, exitUsage, o.status)
		assert.Contains(t, o.stderr, "the engine reactor:cluster=3 asks a Redis Cluster")
	}
}

// A scenario brings its data and users, even to a Redis of the user. Each row names the modes
// of its engine.
func TestBenchScenario(t *testing.T) {
	redis := miniredis.RunT(t)
	args := []string{"compare", "--scenario", "concat_plan", "--engines", "reactor,pool", "--concurrency", "4", "--rounds", "1", "--duration", "30ms",
		"--warmup", "0s", "--json"}
	for users, args := range map[string][]string{
		"1-1000":          args,
		"zipf:1.1,1-1000": append(args, "--users", "zipf:1.1", "--redis", redis.Addr()),
	} {
		o := measure(t, args...)
		require.Equal(t, exitOK, o.status, o.stderr)
		c := reportOf(t, o)
		assert.Equal(t, "concat_plan", c.Settings.Scenario)
		assert.Equal(t, users, c.Settings.Users.Spec)
		require.Len(t, c.Results, 2)
		assert.Equal(t, [2]string{"adaptive", "shared"}, [2]string{c.Results[0].Placement, c.Results[0].Reads})
		assert.Equal(t, [2]string{"two pools", "each sent"}, [2]string{c.Results[1].Placement, c.Results[1].Reads})
		for _, cell := range c.Results {
			assert.InDelta(t, 11, cell.Commands.Median, 1, "users have lists")
		}
	}
	assert.True(t, redis.Exists("follow:1000"), "the data is written there, too")
}

func TestBenchOpenLoop(t *testing.T) {
	o := measure(t, "compare", "--plan_name", "simple_viewer", "--engines", "reactor", "--rate", "500", "--rounds", "1",
		"--duration", "100ms", "--warmup", "0s", "--json")
	require.Equal(t, exitOK, o.status, o.stderr)
	c := reportOf(t, o)
	assert.EqualValues(t, 50, c.Results[0].Requests+c.Results[0].Shed)
	assert.Equal(t, 500.0, c.Results[0].Rate)
}

func TestBenchComparesAPlanOfYourOwn(t *testing.T) {
	path := writePlan(t, t.TempDir(), "mine", fixedPlan("mine"))
	o := measure(t, "compare", "--plan", path, "--engines", "sequential", "--concurrency", "1", "--rounds", "1", "--duration", "5ms", "--env", "test")
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stdout, "Engines compared: mine")
}

// Another build of rankd is another engine to compare with. In this test it is the same build.
func TestBenchComparesWithAnotherBuild(t *testing.T) {
	other := "binary:" + os.Args[0] + ":sequential"
	o := measure(t, "compare", "--plan_name", "simple_viewer", "--engines", "reactor,"+other, "--concurrency", "1", "--rounds", "1",
		"--duration", "5ms", "--warmup", "0s", "--json")
	require.Equal(t, exitOK, o.status, o.stderr)
	c := reportOf(t, o)
	require.Len(t, c.Results, 2)
	assert.Equal(t, other, c.Results[1].Engine)
	assert.Positive(t, c.Results[1].Requests)
	o = measure(t, "compare", "--plan_name", "simple_viewer", "--engines", "binary:/nowhere/rankd")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "/nowhere/rankd")
}

// An aim is judged for each load, and no outcome changes the exit status. redis-benchmark runs
// in each round, and here a script replaces it.
func TestBenchJudgesAims(t *testing.T) {
	yardstick := filepath.Join(t.TempDir(), "redis-benchmark")
	require.NoError(t, os.WriteFile(yardstick, []byte(`#!/bin/sh
case "$1" in
--version) echo "redis-benchmark 7.9.9" ;;
*) echo '"test","rps"'; echo '"HGETALL user:1","1000000000.00"' ;;
esac
`), 0o700))
	o := measure(t, "compare", "--plan_name", "simple_viewer", "--engines", "reactor,sequential", "--concurrency", "1,2", "--rounds", "6",
		"--duration", "1ms", "--warmup", "0s", "--redis_benchmark", yardstick, "--want", "requests reactor >= 0.000001 sequential",
		"--want", "commands reactor >= 0.9 redis-benchmark at 2")
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stdout, "  met          requests of reactor to sequential's, 1 in flight: ")
	assert.Contains(t, o.stdout, "  met          requests of reactor to sequential's, 2 in flight: ")
	assert.Contains(t, o.stdout, "  not met      commands of reactor to redis-benchmark's, 2 in flight: ")
	assert.Contains(t, o.stdout, "  2 in flight: 1000000000 commands/s (±0%) from redis-benchmark 7.9.9 -P 64 -c 4 HGETALL; of these: reactor 0.0")

	o = measure(t, "compare", "--plan_name", "simple_viewer", "--redis_benchmark", "/nowhere/redis-benchmark")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "/nowhere/redis-benchmark")
}

func TestBenchPlacement(t *testing.T) {
	flags := []string{"placement", "--rounds", "1", "--duration", "2ms", "--warmup", "1ms", "--base", os.Args[0], "--scenario", "five_nodes"}
	o := measure(t, flags...)
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stdout, "Against offload_all, adaptive is better by: five_nodes ")
	assert.Contains(t, o.stdout, " Against the other build: five_nodes ")
	assert.Regexp(t, `  not decided  five_nodes: adaptive better than offload_all at p50: .* \(±∞\), wanted >= 6×\n`, o.stdout, "of one round")
	assert.Contains(t, o.stderr, "round 1 of 1, base")

	o = measure(t, append(flags, "--json")...)
	require.Equal(t, exitOK, o.status, o.stderr)
	r := reportOf(t, o)
	assert.Len(t, r.Results, 5, "variants")
	require.Len(t, r.Verdicts, 1)
	assert.Equal(t, harness.Undecided, r.Verdicts[0].Outcome())
	assert.Contains(t, r.Verdicts[0].Aim, "five_nodes")
}

func TestBenchSaysThatRequestsFailed(t *testing.T) {
	path := writePlan(t, t.TempDir(), "fails", `{"schema_version": 1, "plan_name": "fails", "nodes": [
		{"node_id": "s", "op": "fixed_source", "inputs": []},
		{"node_id": "z", "op": "sleep", "inputs": ["s"], "params": {"duration_ms": 0, "fail_after_sleep": true}}], "outputs": ["z"]}`)
	o := measure(t, "compare", "--plan", path, "--engines", "reactor", "--concurrency", "1", "--rounds", "1", "--duration", "5ms")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stdout, "requests failed, the first with: ")
	assert.Contains(t, o.stdout, "injected failure")
}

func TestPeersThatAreNotThere(t *testing.T) {
	for name, args := range map[string][]string{
		"Program": {"--peers", "/nowhere/peer"},
		"Folder":  {"--peers_dir", "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			o := measure(t, append([]string{"compare", "--plan_name", "concat_plan", "--engines", "reactor,peer:rueidis"}, args...)...)
			assert.Equal(t, exitFailed, o.status)
			assert.Contains(t, o.stderr, "/nowhere")
		})
	}
}

// objects returns the objects that a run printed.
func objects(t *testing.T, o outcome) (objects []map[string]any) {
	require.Equal(t, exitOK, o.status, o.stderr)
	for _, line := range o.lines() {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		objects = append(objects, object)
	}
	return objects
}

func TestBenchEventLoop(t *testing.T) {
	o := run(t, nil, "--bench_eventloop", "--bench_n", "500", "--bench_producers", "2", "--bench_sleep_ms", "1", "--bench_tasks", "8", "--bench_json")
	latency := []string{"min_us", "max_us", "mean_us", "p50_us", "p90_us", "p99_us", "count"}
	modes := objects(t, o)
	require.Len(t, modes, 3)
	for i, want := range []struct {
		mode            string
		keys, latencies []string
	}{
		{"posts", []string{"total_posts", "producers", "wall_ms", "posts_per_sec"}, nil},
		{"timers", []string{"total_timers", "timer_ms", "wall_ms", "timers_per_sec"}, []string{"latency"}},
		{"sleep_vs_pool", []string{"tasks", "sleep_ms", "coro_wall_ms", "pool_wall_ms", "speedup_ratio"}, []string{"coro_latency", "pool_latency"}},
	} {
		assert.Equal(t, want.mode, modes[i]["mode"])
		for _, key := range append(want.keys, "rss_start_kb", "rss_end_kb") {
			assert.Contains(t, modes[i], key)
		}
		for _, l := range want.latencies {
			for _, key := range latency {
				assert.Contains(t, modes[i][l], key)
			}
		}
	}
	assert.EqualValues(t, 500, modes[0]["total_posts"])
	assert.EqualValues(t, 2, modes[0]["producers"])

	o = run(t, nil, "--bench-eventloop", "--bench_eventloop_mode", "posts", "--bench_n", "500")
	assert.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stdout, "500 posts")
	assert.NotContains(t, o.stdout, "timers")
	o = run(t, nil, "--bench_eventloop", "--bench_eventloop_mode", "offload")
	assert.Equal(t, exitUsage, o.status, "not of the original's modes")
}

func TestBenchLoop(t *testing.T) {
	args := []string{"loop", "--n", "200", "--producers", "1,2", "--tasks", "4", "--sleep_ms", "1"}
	var modes []string
	for _, object := range objects(t, measure(t, append(args, "--json")...)) {
		modes = append(modes, object["mode"].(string))
	}
	assert.Equal(t, []string{"posts", "posts", "timers", "sleep_vs_pool"}, modes)
	o := measure(t, args...)
	assert.Equal(t, exitOK, o.status, o.stderr)
	for _, want := range []string{"2 producer(s)", "timers", "speedup"} {
		assert.Contains(t, o.stdout, want)
	}
}

func TestBenchInterruptedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{
		{"bench", "loop", "--mode", "posts", "--n", "10"}, {"--bench_eventloop", "--bench_n", "10"},
	} {
		var stdout, stderr bytes.Buffer
		p := program{stdout: &stdout, stderr: &stderr, tune: func(int) {}}
		assert.Equal(t, exitFailed, p.run(ctx, args), args)
		assert.Contains(t, stderr.String(), "rankd: interrupted\n", args)
		assert.NotContains(t, stderr.String(), "context", args)
	}
}

func TestBenchWithoutAModeHelps(t *testing.T) {
	o := measure(t)
	assert.Equal(t, exitOK, o.status)
	assert.Contains(t, o.stdout, "compare")
	assert.NotContains(t, o.stdout, "worker", "it is not for people")
}

// This test runs the whole of bench isolation, on its own redis-server.
func TestBenchIsolation(t *testing.T) {
	server := os.Getenv("RANKD_REDIS_SERVER")
	if server == "" {
		testworld.StartRedis(t) // skips, or fails if there must be one
	}
	o := measure(t, "isolation", "--scenario", "many_rows", "--rounds", "1", "--duration", "400ms", "--large", "1", "--share", "0.05", "--redis_server", server, "--json")
	require.NotEmpty(t, o.stdout, o.stderr)
	r := reportOf(t, o).Results[0]
	assert.Equal(t, "many_rows", r.Scenario)
	assert.Empty(t, r.Failure)
	assert.Positive(t, r.Capacity.Median)
	assert.Positive(t, r.Small)
	assert.EqualValues(t, 1, r.Large)
	assert.Contains(t, o.stdout, `"aim": "many_rows, reactor: p99 of small requests"`)
	assert.Contains(t, []int{exitOK, exitFailed}, o.status)
	assert.Contains(t, o.stderr, "beside large ones")
}

func TestBenchIsolationNeedsARedisServer(t *testing.T) {
	o := measure(t, "isolation", "--scenario", "many_rows", "--rounds", "1", "--duration", "1ms")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "the data set needs a redis-server")
}
