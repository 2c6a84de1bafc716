package caller

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	benchmarkOut = `WARNING: Could not fetch server CONFIG
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"RANK concat_plan 1","12345.67","0.500","0.100","0.455","0.700","0.900","1.200"
`
	wrkOut = `Running 2s test @ http://127.0.0.1:8080/v1/rank/concat_plan
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.50ms    0.20ms   5.00ms   90.00%
    Req/Sec    40.00k     1.00k   42.00k    70.00%
  Latency Distribution
     50%  850.00us
     75%    1.10ms
     90%    1.20ms
     99%    2.25ms
  80000 requests in 2.00s, 100.00MB read
Requests/sec:  40000.12
Transfer/sec:     50.00MB
`
	abOut = `Concurrency Level:      64
Time taken for tests:   2.000 seconds
Complete requests:      30000
Failed requests:        0
Keep-Alive requests:    30000
Requests per second:    15000.25 [#/sec] (mean)
`
	abFile = "Percentage served,Time in ms\n0,0.100\n1,0.120\n50,3.855\n99,9.125\n100,20.0\n"
)

func TestForeignFigures(t *testing.T) {
	c := &Call{Requests: 25_000}
	for _, tc := range []struct {
		name, out string
		says      *patterns
		want      Seen
	}{
		{"redis-benchmark", benchmarkOut, &redisBenchmarkSays, Seen{25_000, 12345.67, 455, 900}},
		{"wrk", wrkOut, &wrkSays, Seen{80_000, 40000.12, 850, 2250}},
		{"ab", abOut + abFile, &abSays, Seen{30_000, 15000.25, 3855, 9125}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seen, err := tc.says.find(c, tc.out)
			require.NoError(t, err)
			assert.Equal(t, tc.want, seen)
			_, err = tc.says.find(c, "")
			assert.ErrorContains(t, err, "missing")
		})
	}
	for _, tc := range []struct {
		out, want string
		says      *patterns
	}{
		{"Error from server: TIMEOUT\n" + benchmarkOut, "Error from server: TIMEOUT", &redisBenchmarkSays},
		{wrkOut + "  Non-2xx or 3xx responses: 12\n", "Non-2xx or 3xx responses: 12", &wrkSays},
		{wrkOut + "  Socket errors: connect 0, read 3, write 0, timeout 0\n", "Socket errors", &wrkSays},
		{abOut + "Non-2xx responses:      3\n" + abFile, "Non-2xx", &abSays},
		{"Failed requests:        2\n" + abOut + abFile, "Failed requests", &abSays},
		{abOut, "missing", &abSays},
	} {
		_, err := tc.says.find(c, tc.out)
		assert.ErrorContains(t, err, tc.want)
	}
}

func FuzzForeignFigures(f *testing.F) {
	for _, out := range []string{benchmarkOut, wrkOut, abOut + abFile} {
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, out string) {
		for _, says := range []*patterns{&redisBenchmarkSays, &wrkSays, &abSays} {
			if seen, err := says.find(&Call{Requests: 1}, out); err == nil {
				assert.Positive(t, seen.Requests)
				assert.Positive(t, seen.PerSecond)
				assert.Positive(t, seen.P50)
			}
		}
	})
}

// A script takes the place of a client: it writes down its arguments.
func TestForeignIsCalled(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700))
	c := Call{Addr: "127.0.0.1:7", Plan: "p", User: 3, InFlight: 64, Duration: 1500 * time.Millisecond, Requests: 9, Folder: folder}
	for _, f := range Foreigners() {
		f.Program, f.file = program, ""
		_, err := f.Run(t.Context(), &c)
		want := map[string]string{
			"redis-benchmark":       "-h 127.0.0.1 -p 7 -n 9 -c 64 -P 1 -e --csv RANK p 3\n",
			"redis-benchmark -P 16": "-h 127.0.0.1 -p 7 -n 9 -c 4 -P 16 -e --csv RANK p 3\n",
			"wrk":                   "-t 1 -c 64 -d 2s --latency -s " + folder + "/post.lua http://127.0.0.1:7/v1/rank/p\n",
			"ab": "-q -k -l -c 64 -t 2 -n 1000000 -p " + folder + "/body.json -T application/json -e " + folder +
				"/quantiles.csv http://127.0.0.1:7/v1/rank/p\n",
		}
		assert.ErrorContains(t, err, "figures are missing: "+want[f.Name])
	}
	script, err := os.ReadFile(filepath.Join(folder, "post.lua"))
	require.NoError(t, err)
	assert.Contains(t, string(script), `wrk.body = '{"user_id": 3}'`)

	broken := Foreigners()[0]
	broken.Program = "/nowhere/redis-benchmark"
	_, err = broken.Run(t.Context(), &c)
	assert.ErrorContains(t, err, "/nowhere/redis-benchmark")
	c.Addr = "nowhere"
	_, err = broken.Run(t.Context(), &c)
	assert.Error(t, err)
	assert.Equal(t, RESP, broken.Front)
}
