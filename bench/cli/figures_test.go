package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
)

func TestSummarize(t *testing.T) {
	r := &load.Result{Elapsed: 2 * time.Second, Answered: 1001, Errors: 1, Latency: load.NewHistogram()}
	for i := range int64(1000) {
		require.NoError(t, r.Latency.RecordValue((i+1)*int64(time.Microsecond)))
	}
	report := summarize(r)
	assert.Equal(t, []any{1001, 1, 2000.0, 500.5}, []any{report.Iterations, report.Errors, report.TotalMS, report.Throughput})
	for want, got := range map[float64]float64{
		500.5: report.AvgUS, 500: report.P50US, 900: report.P90US, 990: report.P99US, 999: report.P999US, 1: report.MinUS, 1000: report.MaxUS,
	} {
		assert.InEpsilon(t, want, got, 0.001)
	}
	assert.Zero(t, summarize(&load.Result{Latency: load.NewHistogram()}).Throughput)
}

func TestBenchReport(t *testing.T) {
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		o := rankd(t, nil, "--plan_name", "concat_plan", "--bench", "50", "--bench_concurrency", "8", "--cpu_threads", "2", "--engine", engine)
		require.Equal(t, exitOK, o.status, o.stderr)
		require.Len(t, o.lines(), 1)
		var report map[string]any
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &report))
		for _, key := range []string{"total_ms", "throughput_rps", "avg_us", "p50_us", "p90_us", "p99_us", "p999_us", "min_us", "max_us"} {
			assert.Positive(t, report[key], key)
		}
		for key, want := range map[string]any{
			"plan": "concat_plan", "iterations": 50.0, "concurrency": 8.0, "engine": engine, "cpu_threads": 2.0, "errors": 0.0,
			"async_scheduler": engine == "reactor", "within_request_parallelism": engine != "sequential",
		} {
			assert.Equal(t, want, report[key], key)
		}
		assert.LessOrEqual(t, report["min_us"], report["p50_us"])
		assert.LessOrEqual(t, report["p999_us"], report["max_us"])
	}
}

func TestBenchCountsErrorsAndGoesOn(t *testing.T) {
	o := rankd(t, nil, "--plan_name", "simple_viewer", "--redis", "127.0.0.1:1", "--bench", "5", "--bench_concurrency", "9")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stdout, `"iterations":5`)
	assert.Contains(t, o.stdout, `"errors":5`)
	assert.Equal(t, 1, strings.Count(o.stderr, "first error: "))
	assert.Contains(t, o.stderr, "127.0.0.1:1")
}

func TestBenchKeepsItsConcurrencyAndItsCount(t *testing.T) {
	a, e := heldApp(t, 1)
	manual := a.clock.(*clock.Manual)
	a.opts.bench, a.opts.benchConcurrency, a.opts.engine = 10, 3, engineReactor
	var stdout, stderr bytes.Buffer
	finished := make(chan error, 1)
	go func() { finished <- a.bench(context.Background(), &stdout, &stderr) }()
	for range 10 {
		r := <-e.submitted
		assert.EqualValues(t, benchUser, r.UserID)
		assert.Less(t, len(e.submitted), 3, "this one and two more")
		manual.Advance(time.Millisecond)
		r.succeed()
	}
	require.NoError(t, <-finished)
	assert.Empty(t, e.submitted)
	var report benchReport
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
	assert.Equal(t, 10, report.Iterations)
	assert.Equal(t, 1000.0, report.Throughput)
	assert.Equal(t, 10.0, report.TotalMS)
}

func TestBenchInterrupted(t *testing.T) {
	a, e := heldApp(t, 1)
	a.opts.bench, a.opts.benchConcurrency, a.opts.engine = 10, 2, engineReactor
	ctx, cancel := context.WithCancel(context.Background())
	var stdout, stderr bytes.Buffer
	finished := make(chan error, 1)
	go func() { finished <- a.bench(ctx, &stdout, &stderr) }()
	first, second := <-e.submitted, <-e.submitted
	cancel()
	first.succeed()
	second.done(&scheduler.Result{Err: errBroken})
	assert.ErrorIs(t, <-finished, errFailed)
	assert.Contains(t, stdout.String(), `"iterations":2`)
	assert.Contains(t, stdout.String(), `"errors":1`)
	assert.Contains(t, stderr.String(), "first error: broken")
}
