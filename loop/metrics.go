package loop

import (
	"time"

	"github.com/rankd/rankd/loop/latency"
)

// Metrics counts the work of a loop since it was built. Immutable.
type Metrics struct {
	Iterations      uint64            // begun
	Events          uint64            // I/O callbacks
	Idle            time.Duration     // spent waiting in the poll, including the present wait
	LongestCallback time.Duration     // one callback, or up to 8 posts that ran back to back
	PostsPending    int               // accepted, and not yet taken by an iteration
	PostsPendingMax int               // the most posts that one iteration has taken
	CallbackTime    latency.Quantiles // of the same measurements
	CallbackBuckets latency.Buckets   // of the same measurements
	CallbackCPU     latency.Quantiles // their processor time: CallbackTimes.CPU; empty where unknown
	LateTimers      uint64            // fired later than Config.LateAfter after their due time
	Panics          uint64            // contained
}

// Metrics returns the counts as of the last time that the loop fell asleep or woke.
// PostsPending, Idle and the times of callbacks are up to date. Any goroutine.
func (l *Loop) Metrics() Metrics {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mu.count
	m.CallbackTime, m.CallbackCPU = latency.Of(&l.meter.all.Wall), latency.Of(&l.meter.all.CPU)
	m.CallbackBuckets = l.meter.all.Wall.Buckets()
	m.PostsPending = len(l.mu.inbox)
	if l.mu.waiting {
		m.Idle += l.clock.Now().Sub(l.mu.since)
	}
	return m
}

// Progress returns a number that grows with each iteration and each measured callback, and whether the loop has nothing
// to do: it waits in its poll, or has ended. A watchdog that sees the same number twice, and no wait, knows that one
// callback runs. Any goroutine.
func (l *Loop) Progress() (n uint64, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.count.Iterations + latency.Of(&l.meter.all.Wall).Count, l.mu.waiting || l.phase.Load() == stopped
}
