package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/load"
)

// benchUser is the user for whom benchmarks rank.
const benchUser = 1

// benchReport is what --bench prints. Times are wall times; those of requests
// run from submission to completion, of those that succeeded, with three significant
// digits.
type benchReport struct {
	Plan        string  `json:"plan"`
	Iterations  int     `json:"iterations"` // requests completed
	Concurrency int     `json:"concurrency"`
	Engine      string  `json:"engine"`
	CPUThreads  int     `json:"cpu_threads"`
	TotalMS     float64 `json:"total_ms"`
	Throughput  float64 `json:"throughput_rps"`
	AvgUS       float64 `json:"avg_us"`
	P50US       float64 `json:"p50_us"`
	P90US       float64 `json:"p90_us"`
	P99US       float64 `json:"p99_us"`
	P999US      float64 `json:"p999_us"`
	MinUS       float64 `json:"min_us"`
	MaxUS       float64 `json:"max_us"`
	Errors      int     `json:"errors"`

	// As the original engine names the choice of engine.
	WithinRequestParallelism bool `json:"within_request_parallelism"`
	AsyncScheduler           bool `json:"async_scheduler"`
}

// bench runs the chosen plan in a closed loop: each of --bench_concurrency
// clients starts its next request when its last one completes. It ends early
// with ctx. The error is errFailed if a request failed.
func (a *app) bench(ctx context.Context, stdout, stderr io.Writer) error {
	o := a.opts
	fmt.Fprintf(stderr, "rankd: %d requests of plan %s for user %d, %d in flight, engine %s\n",
		o.bench, a.plan.Name, benchUser, o.benchConcurrency, o.engine)
	result, err := load.Driver{Clock: a.clock}.Run(ctx, engines.NewTarget(a.engine, a.plan).WithTimeout(a.clock, o.deadline), load.Load{
		Users: []int64{benchUser}, Concurrency: min(o.benchConcurrency, o.bench), Requests: int64(o.bench),
	})
	if err != nil {
		return err
	}
	if result.FirstError != nil {
		fmt.Fprintf(stderr, "rankd: first error: %v\n", result.FirstError)
	}
	report := summarize(result)
	report.Plan, report.Concurrency, report.CPUThreads, report.Engine = a.plan.Name, o.benchConcurrency, o.cpuThreads, o.engine
	report.AsyncScheduler = o.engine == engineReactor
	report.WithinRequestParallelism = o.engine != engineSequential
	line, err := json.Marshal(report)
	if err != nil {
		return err
	}
	if _, err := stdout.Write(append(line, '\n')); err != nil {
		return &runtimeError{fmt.Errorf("writing the report: %w", err)}
	}
	switch {
	case report.Errors > 0:
		return errFailed
	case report.Iterations < o.bench:
		return &runtimeError{errors.New("interrupted; the report covers what was completed")}
	}
	return nil
}

// summarize computes the figures of a load.
func summarize(r *load.Result) benchReport {
	quantile := func(percent float64) float64 { return rounded(micros(r.Latency.ValueAtPercentile(percent))) }
	report := benchReport{
		Iterations: int(r.Answered), Errors: int(r.Errors),
		TotalMS: rounded(float64(r.Elapsed) / float64(time.Millisecond)),
		AvgUS:   rounded(r.Latency.Mean() / float64(time.Microsecond)),
		P50US:   quantile(50), P90US: quantile(90), P99US: quantile(99), P999US: quantile(99.9),
		MinUS: rounded(micros(r.Latency.Min())), MaxUS: rounded(micros(r.Latency.Max())),
	}
	if r.Elapsed > 0 {
		report.Throughput = rounded(float64(r.Answered) / r.Elapsed.Seconds())
	}
	return report
}

func micros(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }

// rounded keeps three decimals: what lies below is noise.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
