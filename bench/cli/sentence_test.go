package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/eventloop"
	"github.com/rankd/rankd/bench/kernels"
)

func TestTablesOpenWithTheAnswer(t *testing.T) {
	late := func(us float64) eventloop.Latency { return eventloop.Latency{P99: us} }
	for want, results := range map[string][]any{
		"The loop runs 2.50 M posts/s from 1 producer(s).": {
			&eventloop.PostsResult{Producers: 1, PerSecond: 2.5e6}},
		"The loop runs 2.50 M posts/s from 2 producer(s) at best, and 1.00 M posts/s from 4 producer(s) at worst.": {
			&eventloop.PostsResult{Producers: 1, PerSecond: 2e6}, &eventloop.PostsResult{Producers: 2, PerSecond: 2.5e6},
			&eventloop.PostsResult{Producers: 4, PerSecond: 1e6}},
		"The loop fires 2.00 M timers/s, 99 % of them at most 1.5ms late.": {
			&eventloop.TimersResult{PerSecond: 2e6, Latency: late(1500)}},
		"The loop ends 1000 sleeping tasks 24.5× as fast as 4 blocked workers.": {
			&eventloop.SleepResult{Tasks: 1000, Workers: 4, Speedup: 24.5}},
		"The pool hands back 900 jobs/s with 0 bytes each and 64 in flight at best, and 100 jobs/s with 1024 bytes each and 1 in flight at worst.": {
			&eventloop.OffloadResult{InFlight: 64, PerSecond: 900}, &eventloop.OffloadResult{InFlight: 1, PayloadBytes: 1024, PerSecond: 100}},
		"A timer fires at most 20µs late (p99) beside 0 busy workers, and at most 10ms beside 4.": {
			&eventloop.InterferenceResult{Timer: late(20)}, &eventloop.InterferenceResult{Workers: 4, Timer: late(10_000)}},
	} {
		t.Run(want, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, writeLoopText(&out, "mode", results))
			first, _, _ := strings.Cut(out.String(), "\n")
			assert.Equal(t, "mode: "+want, first)
		})
	}
	assert.Equal(t, "On 100 rows take is the fastest kernel, with 0.5 ns a row, and sort the slowest, with 80 ns.",
		kernelsSentence([]*kernels.Result{
			{Kernel: "vm", Rows: 10, NsPerRow: 900}, {Kernel: "vm", Rows: 100, NsPerRow: 2},
			{Kernel: "sort", Rows: 100, NsPerRow: 80}, {Kernel: "take", Rows: 100, NsPerRow: 0.5},
		}))
}
