package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/clock"
	"github.com/rankd/rankd/scheduler"
)

// benchUser is the user for whom benchmarks rank.
const benchUser = 1

// benchReport is what --bench prints. Times are wall times; those of requests
// run from submission to completion, failed ones included.
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
	b := &closedLoop{
		engine: a.engine, clock: a.clock, ctx: ctx,
		request: scheduler.Request{Graph: a.plan, UserID: benchUser},
		samples: make([]time.Duration, o.bench),
	}
	began := a.clock.Now()
	b.run(min(o.benchConcurrency, o.bench))
	total := a.clock.Now().Sub(began)

	if b.firstError != nil {
		fmt.Fprintf(stderr, "rankd: first error: %v\n", b.firstError)
	}
	report := summarize(b.samples[:b.completed.Load()], total)
	report.Plan, report.Concurrency, report.CPUThreads = a.plan.Name, o.benchConcurrency, o.cpuThreads
	report.Engine, report.Errors = o.engine, int(b.errors.Load())
	report.AsyncScheduler = o.engine == engineReactor
	report.WithinRequestParallelism = o.engine == engineReactor
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

// closedLoop is a benchmark under way. Its callbacks run on a goroutine of the
// engine's choosing, so what they touch is atomic or their own.
type closedLoop struct {
	engine  scheduler.Engine
	clock   clock.Clock
	ctx     context.Context
	request scheduler.Request // shared by all: engines only read it

	started    atomic.Int64
	completed  atomic.Int64
	errors     atomic.Int64
	samples    []time.Duration // [i] is written by the i-th completion
	once       sync.Once
	firstError error // set within once
	clients    sync.WaitGroup
}

// run returns when all requests, or all in flight once ctx ended, are complete.
func (b *closedLoop) run(clients int) {
	b.clients.Add(clients)
	for range clients {
		c := &client{bench: b}
		c.done = c.completed
		c.next()
	}
	b.clients.Wait()
}

// client has one request in flight at a time.
type client struct {
	bench *closedLoop
	began clock.Time
	done  func(*scheduler.Result) // completed, made a func value once
}

func (c *client) next() {
	b := c.bench
	if b.ctx.Err() != nil || b.started.Add(1) > int64(len(b.samples)) {
		b.clients.Done()
		return
	}
	c.began = b.clock.Now()
	b.engine.Submit(&b.request, c.done)
}

func (c *client) completed(r *scheduler.Result) {
	b := c.bench
	b.samples[b.completed.Add(1)-1] = b.clock.Now().Sub(c.began)
	if r.Err != nil {
		b.errors.Add(1)
		b.once.Do(func() { b.firstError = r.Err })
	}
	c.next()
}

// summarize computes the figures of the samples, which it sorts.
func summarize(samples []time.Duration, total time.Duration) benchReport {
	r := benchReport{Iterations: len(samples), TotalMS: rounded(float64(total) / float64(time.Millisecond))}
	if len(samples) == 0 {
		return r
	}
	slices.Sort(samples)
	var sum time.Duration
	for _, s := range samples {
		sum += s
	}
	if total > 0 {
		r.Throughput = rounded(float64(len(samples)) / total.Seconds())
	}
	r.AvgUS = rounded(microseconds(sum) / float64(len(samples)))
	r.MinUS, r.MaxUS = microseconds(samples[0]), microseconds(samples[len(samples)-1])
	r.P50US = microseconds(percentile(samples, 0.5))
	r.P90US = microseconds(percentile(samples, 0.9))
	r.P99US = microseconds(percentile(samples, 0.99))
	r.P999US = microseconds(percentile(samples, 0.999))
	return r
}

// percentile returns the smallest of the sorted samples that at least the
// fraction p of them does not exceed (nearest rank).
func percentile(sorted []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// rounded keeps three decimals: what lies below is noise.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
