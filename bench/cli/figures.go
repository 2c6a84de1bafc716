package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/loop/clock"
)

// benchUser is the user for whom benchmarks rank.
const benchUser = 1

// benchReport is the line that --bench prints. Times are wall times. The time of a request
// runs from submission to completion, and counts only if the request succeeded. It has three
// significant digits.
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
	Users       string  `json:"users"`          // as in rankd bench compare --users
	Coalesce    bool    `json:"coalesce_reads"` // equal reads share a command

	// The choice of engine, as the original engine names it.
	WithinRequestParallelism bool `json:"within_request_parallelism"`
	AsyncScheduler           bool `json:"async_scheduler"`
}

// Bench says how --bench measures. Immutable.
type Bench struct {
	Requests, Concurrency int
	Plan                  string // as the report names it
	Model                 rankd.Model
	CPUThreads            int
	CoalesceReads         bool // the engine shares equal reads
}

// Bench runs the engine's own plan in a closed loop: each of b.Concurrency clients starts its
// next request when its last one completes. It prints the figures as one line of JSON. It ends
// early with ctx. The error is cmdline.ErrFailed if a request failed.
func (p *Program) Bench(ctx context.Context, e *rankd.Engine, b Bench) error {
	sharing := ""
	if b.Model == rankd.Reactor {
		sharing = ", equal reads not shared"
		if b.CoalesceReads {
			sharing = ", equal reads shared"
		}
	}
	fmt.Fprintf(p.Stderr, "rankd: %d requests of plan %s for user %d, %d in flight, engine %s%s\n",
		b.Requests, b.Plan, benchUser, b.Concurrency, b.Model, sharing)
	return p.bench(ctx, engines.NewTarget(e), clock.NewReal(), b)
}

// bench measures target on c.
func (p *Program) bench(ctx context.Context, target load.Target, c clock.Clock, b Bench) error {
	result, err := load.Driver{Clock: c}.Run(ctx, target, load.Load{
		Users: []int64{benchUser}, Concurrency: min(b.Concurrency, b.Requests), Requests: int64(b.Requests),
	})
	if err != nil {
		return err
	}
	if result.FirstError != "" {
		fmt.Fprintf(p.Stderr, "rankd: first error: %s\n", result.FirstError)
	}
	report := summarize(result)
	report.Plan, report.Concurrency, report.CPUThreads, report.Engine = b.Plan, b.Concurrency, b.CPUThreads, string(b.Model)
	report.Users, report.Coalesce = strconv.Itoa(benchUser), b.CoalesceReads
	report.AsyncScheduler = b.Model == rankd.Reactor
	report.WithinRequestParallelism = b.Model != rankd.Sequential
	if err := json.NewEncoder(p.Stdout).Encode(report); err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the report: %w", err)}
	}
	switch {
	case report.Errors > 0:
		return cmdline.ErrFailed
	case report.Iterations < b.Requests:
		return &cmdline.RuntimeError{Err: errors.New("interrupted; the report covers what was completed")}
	}
	return nil
}

// summarize computes the figures of a load.
func summarize(r *load.Result) benchReport {
	quantile := func(percent float64) float64 { return rounded(r.Latency.Micros(percent)) }
	report := benchReport{
		Iterations: int(r.Answered), Errors: int(r.Errors),
		TotalMS: rounded(float64(r.Elapsed) / float64(time.Millisecond)),
		AvgUS:   rounded(r.Latency.Mean() / float64(time.Microsecond)),
		P50US:   quantile(50), P90US: quantile(90), P99US: quantile(99), P999US: quantile(99.9),
		MinUS: rounded(harness.InMicros(r.Latency.Min())), MaxUS: rounded(harness.InMicros(r.Latency.Max())),
	}
	if r.Elapsed > 0 {
		report.Throughput = rounded(float64(r.Answered) / r.Elapsed.Seconds())
	}
	return report
}

// rounded keeps three decimals; the rest is noise.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
