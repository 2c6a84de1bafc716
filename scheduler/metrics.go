package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowcache"
	"github.com/rankd/rankd/task"
)

// Metrics are the counters of an engine and of everything that it drives. A copy; any goroutine.
type Metrics struct {
	Loop loop.Metrics
	Lag  time.Duration // until the loop came to read these counters
	// Stuck counts the times that one callback held up the loop for over a second, and StuckFor is how long one does
	// now. What the loop counts is then of the last reading before.
	Stuck    uint64
	StuckFor time.Duration
	CPU      cpupool.Stats    // zero if the CPU given to NewAsync does not count
	Redis    []resp.Stats     // by endpoint index; zero for an endpoint that is not a Redis
	Caches   []rowcache.Stats // by endpoint index; zero for an endpoint whose reads are not kept
	Remote   []remote.Stats   // by endpoint index; zero for an endpoint of another kind than http
	Counts
	Live      int            // requests in flight
	Bodies    int            // of nodes that run now, on the loop or the pool, and orphans; zero with the blocking engines
	Admission AdmissionStats // of requests before they run
	Malformed uint64         // texts from Redis that did not parse and failed no node: see task.Ctx.CountMalformed
	// Values counts values from outside by what they were for: the name of a key, or a word such as "id".
	Values    map[string]task.Values
	Awaits    AwaitStats                // functions of task.Ctx.Await
	Placement PlacementStats            // of all plans
	Plans     map[string]PlacementStats // by name of the plan
	Ops       map[string]OpStats        // by op of the tasks that ran
}

// Metrics implements Engine. It returns the counters as they are between two callbacks, or as they
// were when the loop stopped. While the loop is stuck it returns the last copy. Any goroutine but the loop.
func (e *Async) Metrics() Metrics {
	asked := e.loop.Clock().Now()
	read := make(chan Metrics, 1)
	var m Metrics
	if e.loop.Post(func() { read <- e.readMetrics(e.loop.Clock().Now().Sub(asked)) }) {
		select {
		case m = <-read:
			e.watchdog.keep(&m)
		case <-e.watchdog.frozen():
			m = e.lastMetrics()
		}
	} else {
		<-e.loop.Done() // nothing touches the counters any more
		m = e.readMetrics(0)
	}
	m.Loop = e.loop.Metrics()
	if counting, ok := e.cpu.(interface{ Stats() cpupool.Stats }); ok {
		m.CPU = counting.Stats()
	}
	m.Malformed, m.Values, m.Awaits = uint64(e.outside.Malformed()), e.outside.ByKey(), e.awaits.Stats()
	e.watchdog.count(&m)
	return m
}

// lastMetrics returns what Metrics has read last, zeros if it has read nothing, of a loop that is stuck.
func (e *Async) lastMetrics() (m Metrics) {
	if last := e.watchdog.last.Load(); last != nil {
		m = *last
		m.Redis, m.Caches, m.Remote, m.Plans = slices.Clone(m.Redis), slices.Clone(m.Caches), slices.Clone(m.Remote), maps.Clone(m.Plans)
		m.Ops = maps.Clone(m.Ops)
	} else {
		m.Redis, m.Caches, m.Remote = make([]resp.Stats, len(e.clients)), make([]rowcache.Stats, len(e.clients)), make([]remote.Stats, len(e.remotes))
	}
	m.Lag = e.watchdog.StuckFor()
	return m
}

// StatsOf returns the counters of what there is for each endpoint, by its index; zero for an endpoint for which there is nothing.
func StatsOf[C interface {
	comparable
	Stats() S
}, S any](all []C) []S {
	stats := make([]S, len(all))
	var none C
	for i, c := range all {
		if c != none {
			stats[i] = c.Stats()
		}
	}
	return stats
}

// readMetrics reads what the loop owns. Loop only.
func (e *Async) readMetrics(lag time.Duration) Metrics {
	m := Metrics{Lag: lag, Redis: StatsOf(e.clients), Caches: StatsOf(e.givenOnLoop.Tables), Remote: StatsOf(e.remotes)}
	if e.givenOnLoop.Tables == nil {
		m.Caches = make([]rowcache.Stats, len(e.clients))
	}
	m.Counts, m.Live, m.Admission = e.counts, e.runs.Len(), e.admission.Stats()
	m.Counts.Orphans, m.Bodies = e.orphans.Len(), e.orphans.Len()
	for r := e.runs.First(); r != nil; r = r.link.Next() {
		m.Bodies += r.active.Len()
	}
	m.Placement, m.Plans = e.placementMetrics()
	m.NodeTimeouts, m.LateCompletions, m.Cancelled = m.Placement.NodeTimeouts, m.Placement.LateCompletions, m.Placement.Cancelled
	m.Ops = e.opMetrics()
	return m
}

// StuckFor returns for how long one callback has held up the loop, such as a body that never returns. Zero means that the
// loop goes round. The watchdog of OpenAsync sees it after one or two seconds; other engines have none. Any goroutine.
func (e *Async) StuckFor() time.Duration { return e.watchdog.StuckFor() }
