package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/loop/clock"
)

func TestSummarize(t *testing.T) {
	r := &load.Result{Elapsed: 2 * time.Second, Tally: load.Tally{Answered: 1001, Errors: 1, Latency: load.NewHistogram()}}
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
	assert.Zero(t, summarize(&load.Result{Tally: load.Tally{Latency: load.NewHistogram()}}).Throughput)
}

// held is a target whose requests the test answers. Any goroutine.
type held struct{ sent chan sentRequest }

type sentRequest struct {
	user   int64
	answer func(error)
}

func (h held) NewClient(answered func(error)) load.Client { return heldClient{h, answered} }
func (h held) Close()                                     {}

type heldClient struct {
	target   held
	answered func(error)
}

func (c heldClient) Send(user int64) { c.target.sent <- sentRequest{user, c.answered} }

// startBench begins a measurement of a held target on a manual clock.
func startBench(ctx context.Context, b Bench) (sent <-chan sentRequest, c *clock.Manual, finished <-chan error, stdout, stderr *bytes.Buffer) {
	target, c := held{make(chan sentRequest, b.Requests)}, clock.NewManual()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	p, ended := Program{Stdout: stdout, Stderr: stderr}, make(chan error, 1)
	go func() { ended <- p.bench(ctx, target, c, b) }()
	return target.sent, c, ended, stdout, stderr
}

func TestBenchKeepsItsConcurrencyAndItsCount(t *testing.T) {
	sent, c, finished, stdout, _ := startBench(context.Background(), Bench{Requests: 10, Concurrency: 3, Plan: "p", Model: rankd.Reactor, CPUThreads: 2})
	for range 10 {
		r := <-sent
		assert.EqualValues(t, benchUser, r.user)
		assert.Less(t, len(sent), 3, "this one and two more")
		c.Advance(time.Millisecond)
		r.answer(nil)
	}
	require.NoError(t, <-finished)
	assert.Empty(t, sent)
	var report benchReport
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
	assert.Equal(t, 10, report.Iterations)
	assert.Equal(t, 1000.0, report.Throughput)
	assert.Equal(t, 10.0, report.TotalMS)
	assert.Equal(t, "p", report.Plan)
	assert.True(t, report.AsyncScheduler)
}

func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	sent, _, finished, stdout, stderr := startBench(ctx, Bench{Requests: 10, Concurrency: 2})
	first, second := <-sent, <-sent
	cancel()
	first.answer(nil)
	second.answer(errors.New("broken"))
	assert.ErrorIs(t, <-finished, cmdline.ErrFailed)
	assert.Contains(t, stdout.String(), `"iterations":2`)
	assert.Contains(t, stdout.String(), `"errors":1`)
	assert.Contains(t, stderr.String(), "first error: broken")
}
