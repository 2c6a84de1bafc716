package loop

import "time"

// Metrics says what a loop has done. Counts are since it was built.
type Metrics struct {
	Iterations      uint64        // begun
	Events          uint64        // I/O callbacks
	Idle            time.Duration // spent waiting in the poll, including the present wait
	LongestCallback time.Duration // one callback, or up to 8 posts that ran back to back
	PostsPending    int           // accepted and not yet taken up by an iteration
	PostsPendingMax int           // the most that an iteration has taken up
	LateTimers      uint64        // fired later than Config.LateAfter after their due time
	Panics          uint64        // contained
}

// Metrics returns the loop's counts as of the last time that it fell asleep or
// woke; PostsPending and Idle are of this moment. Any goroutine.
func (l *Loop) Metrics() Metrics {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mu.count
	m.PostsPending = len(l.mu.inbox)
	if l.mu.waiting {
		m.Idle += l.clock.Now().Sub(l.mu.since)
	}
	return m
}
