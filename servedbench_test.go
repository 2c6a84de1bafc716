package rankd_test

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/loop/clock"
)

// onTheLoop runs requests one after the other, each begun by the answer to the former one on the loop, and returns the
// processor time of the loop's thread, and how many allocations the process has made.
func onTheLoop(b *testing.B, e *rankd.Engine, requests int) (used time.Duration, allocs uint64) {
	read := clock.NewThreadCPU()
	var before, after runtime.MemStats
	ended := make(chan error, 1)
	left, began := requests, time.Duration(0)
	var next func(*rankd.Answer, error)
	next = func(_ *rankd.Answer, err error) {
		switch {
		case err != nil:
			ended <- err
			return
		case left == requests:
			runtime.LockOSThread()
			_, began = read()
		case left == 0:
			_, now := read()
			used = now - began
			runtime.UnlockOSThread()
			ended <- nil
			return
		}
		left--
		if err := e.Intake().Start(context.Background(), rankd.Request{UserID: 1, ID: "visit"}, next); err != nil {
			ended <- err
		}
	}
	runtime.ReadMemStats(&before)
	require.NoError(b, e.Intake().Start(b.Context(), rankd.Request{UserID: 1, ID: "visit"}, next))
	require.NoError(b, <-ended)
	runtime.ReadMemStats(&after)
	return used, after.Mallocs - before.Mallocs
}

// BenchmarkServedOnTheLoop says what the log costs the loop for an answer of 50 rows, and how many allocations all goroutines make
// more for it. Engines with and without a log take turns, and the median of the differences counts.
func BenchmarkServedOnTheLoop(b *testing.B) {
	plans := fstest.MapFS{"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["rows"],
		"nodes": [{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 50}}]}`)}}
	o := rankd.Options{Plans: plans, Plan: "p"}
	o.Scheduling.Mode = rankd.InlineAll
	without := enginetest.Open(b, o)
	o.Served = io.Discard
	with := enginetest.Open(b, o)
	const chunk = 2000
	onTheLoop(b, with, chunk)
	onTheLoop(b, without, chunk)
	var times, allocs, plain []float64
	for b.Loop() {
		t0, a0 := onTheLoop(b, without, chunk)
		t1, a1 := onTheLoop(b, with, chunk)
		plain = append(plain, float64(t0)/chunk)
		times = append(times, float64(t1-t0)/chunk)
		allocs = append(allocs, (float64(a1)-float64(a0))/chunk)
	}
	require.Zero(b, with.ServedLines().Dropped)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(plain), "without-ns/answer")
	b.ReportMetric(median(times), "more-ns/answer")
	b.ReportMetric(median(allocs), "more-allocs/answer")
}

func median(of []float64) float64 {
	slices.SortFunc(of, cmp.Compare)
	return of[len(of)/2]
}
