package bench

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/scheduler"
)

// ClosedLoop is a load in which each of Concurrency clients sends its next
// request when the last one is answered. The zero value is not ready.
type ClosedLoop struct {
	Engine      scheduler.Engine
	Request     *scheduler.Request // sent again and again
	Concurrency int                // requests in flight
	Requests    int                // in all
}

// Run is what a load has measured.
type Run struct {
	Elapsed   time.Duration
	Latencies []time.Duration // one per request, ascending
	Errors    int
	FirstErr  error
}

// Run sends all requests and waits for all answers.
//
// The clients are no goroutines: each answer's callback submits the next
// request, so that what is measured is the engine and not the switching
// between goroutines around it.
func (l *ClosedLoop) Run() *Run {
	var sent, recorded, answered, errors atomic.Int64
	var firstErr atomic.Pointer[error]
	latencies := make([]time.Duration, l.Requests)
	finished := make(chan struct{})
	start := time.Now()
	client := func() {
		var began time.Time
		var answer func(*scheduler.Result)
		next := func() {
			if sent.Add(1) > int64(l.Requests) {
				return
			}
			began = time.Now()
			l.Engine.Submit(l.Request, answer)
		}
		answer = func(r *scheduler.Result) {
			took := time.Since(began)
			if r.Err != nil {
				errors.Add(1)
				firstErr.CompareAndSwap(nil, &r.Err)
			}
			latencies[recorded.Add(1)-1] = took
			// Counted after it is recorded: the last to be counted finds all recorded.
			if answered.Add(1) == int64(l.Requests) {
				close(finished)
				return
			}
			next()
		}
		next()
	}
	for range min(l.Concurrency, l.Requests) {
		client()
	}
	if l.Requests > 0 {
		<-finished
	}
	run := &Run{Elapsed: time.Since(start), Latencies: latencies, Errors: int(errors.Load())}
	if err := firstErr.Load(); err != nil {
		run.FirstErr = *err
	}
	slices.Sort(run.Latencies)
	return run
}

// PerSecond returns requests answered per second.
func (r *Run) PerSecond() float64 { return float64(len(r.Latencies)) / r.Elapsed.Seconds() }

// Quantile returns the latency that a share q of the requests did not exceed.
func (r *Run) Quantile(q float64) time.Duration { return Quantile(r.Latencies, q) }

// Mean returns the mean latency.
func (r *Run) Mean() time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	var sum time.Duration
	for _, l := range r.Latencies {
		sum += l
	}
	return sum / time.Duration(len(r.Latencies))
}

// Quantile returns the q-quantile of an ascending list, by the nearest-rank
// method; 0 of an empty one.
func Quantile[T any](ascending []T, q float64) T {
	if len(ascending) == 0 {
		var zero T
		return zero
	}
	return ascending[min(len(ascending)-1, int(q*float64(len(ascending))))]
}
