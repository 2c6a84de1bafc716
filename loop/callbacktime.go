package loop

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/latency"
)

// CallbackTimes count how long callbacks ran. One measurement covers one callback, or up to 8
// posts that ran back to back. The loop counts; any goroutine reads the histograms.
type CallbackTimes struct {
	// Wall counts the elapsed time, including time when another program had the processor.
	Wall latency.Histogram
	// CPU counts the callbacks' own time: processor time of the loop's thread. It is never too low, and at most
	// cpuGrain too high. A callback in which the loop changed threads counts with its wall time. CPU is empty where
	// the system has no such clock.
	CPU latency.Histogram

	counted uint64 // the latest measurement for which CountIn was called; loop only
}

// cpuGrain is how far apart the readings of the processor clock are. A reading costs as much as
// ten of the wall clock, so a callback that is shorter than this usually goes without one. A
// busy loop then spends at most 0.25 % of its time on readings. It is also the default budget for
// computing in one iteration.
//
// Locking the loop to a thread would make every reading exact. It cost a quarter of the throughput of concat_plan on
// a busy machine, because the kernel must then wake that one thread. So each iteration begins with a reading, which
// covers changes of thread while the loop slept. Changes within a callback remain: they happen in one of ten
// callbacks that last over a millisecond.
const cpuGrain = 200 * time.Microsecond

// meter measures the callbacks of a loop. Loop only, except the histograms.
type meter struct {
	all  CallbackTimes
	also []*CallbackTimes // of CountIn, for the present measurement
	n    uint64           // of the present measurement
	mark clock.Time       // when the present measurement began

	cpu    clock.ThreadCPU // nil: unknown
	thread int             // at the last reading
	used   time.Duration   // at the last reading
	readAt clock.Time      // of the last reading
}

// CountIn counts the present callback in t, too, and only once however often it is called.
func (l *Loop) CountIn(t *CallbackTimes) {
	if m := &l.meter; t.counted != m.n {
		t.counted = m.n
		m.also = append(m.also, t)
	}
}

// Began returns when the present callback began, or the present batch of posts. Loop only.
func (l *Loop) Began() clock.Time { return l.meter.mark }

// begin begins the measurement of the first callback of an iteration. The loop may have slept, and
// changed threads meanwhile.
func (m *meter) begin(now clock.Time) {
	m.mark = now
	if m.cpu != nil && now.Sub(m.readAt) >= cpuGrain {
		m.thread, m.used = m.cpu()
		m.readAt = now
	}
}

// measure ends the measurement of one callback and begins the next one.
func (l *Loop) measure() {
	now, m := l.clock.Now(), &l.meter
	took := now.Sub(m.mark)
	m.mark = now
	l.count.LongestCallback = max(l.count.LongestCallback, took)
	m.all.Wall.Add(took)
	for _, t := range m.also {
		t.Wall.Add(took)
	}
	if m.cpu != nil {
		own := m.ownTime(took, now)
		m.all.CPU.Add(own)
		for _, t := range m.also {
			t.CPU.Add(own)
		}
	}
	clear(m.also)
	m.also = m.also[:0]
	m.n++
}

// ownTime returns the processor time of a callback that took so long and has ended now. The time
// since the last reading bounds it from above, and so does the wall time.
func (m *meter) ownTime(took time.Duration, now clock.Time) time.Duration {
	if now.Sub(m.readAt) < cpuGrain {
		return took
	}
	thread, used := m.cpu()
	own := used - m.used
	if thread != m.thread {
		own = took // The goroutine has changed threads since, as the Go scheduler may do.
	}
	m.thread, m.used, m.readAt = thread, used, now
	return min(own, took)
}
