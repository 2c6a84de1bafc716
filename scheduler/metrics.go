package scheduler

import (
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
)

// Metrics are the counters of an engine and of everything that it drives. A copy; any goroutine.
type Metrics struct {
	Loop   loop.Metrics
	Lag    time.Duration  // until the loop came to read these counters
	CPU    cpupool.Stats  // zero if the CPU given to NewAsync does not count
	Redis  []resp.Stats   // by endpoint index; zero for an endpoint that is not a Redis
	Remote []remote.Stats // by endpoint index; zero for an endpoint of another kind than http
	Counts
	Live      int                       // requests in flight
	Admission AdmissionStats            // of requests before they run
	Malformed uint64                    // texts from Redis that did not parse and failed no node: see task.Ctx.CountMalformed
	Placement PlacementStats            // of all plans
	Plans     map[string]PlacementStats // by name of the plan
}

// Metrics implements Engine. It returns the counters as they are between two callbacks, or as they
// were when the loop stopped. Any goroutine but the loop.
func (e *Async) Metrics() Metrics {
	m := Metrics{Loop: e.loop.Metrics(), Redis: make([]resp.Stats, len(e.clients)), Remote: make([]remote.Stats, len(e.remotes))}
	if counting, ok := e.cpu.(interface{ Stats() cpupool.Stats }); ok {
		m.CPU = counting.Stats()
	}
	read := func() {
		m.Malformed = uint64(e.outside.Malformed())
		for i, c := range e.clients {
			if c != nil {
				m.Redis[i] = c.Stats()
			}
		}
		for i, c := range e.remotes {
			if c != nil {
				m.Remote[i] = c.Stats()
			}
		}
		m.Counts, m.Live, m.Admission = e.counts, e.runs.len(), e.admission.Stats()
		m.Counts.Orphans = e.orphans.len()
		m.Placement, m.Plans = e.placementMetrics()
	}
	done := make(chan struct{})
	asked := e.loop.Clock().Now()
	if e.loop.Post(func() {
		defer close(done)
		m.Lag = e.loop.Clock().Now().Sub(asked)
		read()
	}) {
		<-done
	} else {
		<-e.loop.Done() // nothing touches the counters any more
		read()
	}
	return m
}
