package rankd_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/trace/record"
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
	with := o
	with.Served = io.Discard
	require.Zero(b, compareWith(b, onTheLoop, o, with, 2000).ServedLines().Dropped)
}

// noRecords drops records.
type noRecords struct{}

func (noRecords) Add(*record.Request, record.Source) error { return nil }
func (noRecords) Flush() error                             { return nil }

// inProcess runs requests one after the other, and returns the processor time of the process, and its allocations.
func inProcess(b *testing.B, e *rankd.Engine, requests int) (used time.Duration, allocs uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processTime(b)
	for range requests {
		_, err := e.Rank(b.Context(), rankd.Request{UserID: 1})
		require.NoError(b, err)
	}
	time.Sleep(20 * time.Millisecond) // Records wait for 10 ms.
	used = processTime(b) - began
	runtime.ReadMemStats(&after)
	return used, after.Mallocs - before.Mallocs
}

func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRecorded says what a record costs the process, of a plan that takes 3 × 100 values from memory, and how many allocations it makes
// more for it.
func BenchmarkRecorded(b *testing.B) {
	redis, err := rankdtest.StartRedis()
	require.NoError(b, err)
	b.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	b.Cleanup(client.Close)
	var batch resp.Batch
	for id := range 100 {
		batch.Cmd("RPUSH", "inbox:1", strconv.Itoa(id))
		batch.Cmd("HSET", "item:"+strconv.Itoa(id), "ti", "a title", "likes", strconv.Itoa(id), "quality", "0.5")
	}
	require.NoError(b, client.Do(&batch, 0, func(resp.Replies) error { return nil }))
	lookup := `{"node_id": "%s", "op": "lookup", "inputs": ["%s"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["%s"], "missing": "null"}}`
	o := rankd.Options{Redis: redis.Addr(), Plan: "p", Registry: enginetest.CacheTables(enginetest.CacheForAnHour), Plans: fstest.MapFS{"p.plan.json": {Data: fmt.Appendf(nil,
		`{"schema_version": 1, "plan_name": "p", "outputs": ["c"], "nodes": [
		{"node_id": "all", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}", "limit": 100}}, `+lookup+`, `+lookup+`, `+lookup+`]}`,
		"a", "all", "title", "b", "a", "likes", "c", "b", "quality")}}}
	o.Scheduling.Mode = rankd.InlineAll
	with := o
	with.Record, with.RecordUsers = noRecords{}, 100
	require.Zero(b, compareWith(b, inProcess, o, with, 500).Records().Dropped)
}

// compareWith reports what answers cost more with the second options, as run measures it. It returns the engine of those.
func compareWith(b *testing.B, run func(b *testing.B, e *rankd.Engine, requests int) (time.Duration, uint64), o, more rankd.Options, chunk int) *rankd.Engine {
	without, with := enginetest.Open(b, o), enginetest.Open(b, more)
	for range 100 { // A goroutine that is bound to its thread, as in onTheLoop, cannot wait for Redis.
		for _, e := range [...]*rankd.Engine{without, with} {
			_, err := e.Rank(b.Context(), rankd.Request{UserID: 1})
			require.NoError(b, err)
		}
	}
	run(b, with, chunk)
	run(b, without, chunk)
	var times, allocs, plain []float64
	n := float64(chunk)
	for b.Loop() {
		t0, a0 := run(b, without, chunk)
		t1, a1 := run(b, with, chunk)
		plain = append(plain, float64(t0)/n)
		times = append(times, float64(t1-t0)/n)
		allocs = append(allocs, (float64(a1)-float64(a0))/n)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(plain), "without-ns/answer")
	b.ReportMetric(median(times), "more-ns/answer")
	b.ReportMetric(median(allocs), "more-allocs/answer")
	return with
}

func median(of []float64) float64 {
	slices.SortFunc(of, cmp.Compare)
	return of[len(of)/2]
}
