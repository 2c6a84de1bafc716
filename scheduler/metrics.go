package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// Metrics are the counters of an engine and of everything that it drives. A copy; any goroutine.
type Metrics struct {
	Loop loop.Metrics
	Lag  time.Duration // until the loop read these counters
	// Stuck counts the times that one callback held up the loop for over a second, and StuckFor is how long one does
	// so now. Meanwhile counters of the loop are those of the last reading.
	Stuck     uint64
	StuckFor  time.Duration
	CPU       cpupool.Stats    // zero if the CPU given to NewAsync does not count
	Redis     []resp.Stats     // by endpoint index; zero for an endpoint that is not a Redis
	Caches    []rowcache.Stats // by endpoint index; zero for an endpoint without a cache
	Remote    []remote.Stats   // by endpoint index; zero for an endpoint of another kind than http
	Counts                     // of all plans
	Orphans   int              // of orphans that have not ended yet
	Live      int              // requests in flight
	Bodies    int              // of nodes that run now, on the loop or the pool, and orphans; zero with the blocking engines
	Admission AdmissionStats   // of requests before they run
	Malformed uint64           // texts from Redis that did not parse and failed no node: see task.Ctx.CountMalformed
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

// lastMetrics returns the last reading of Metrics for a loop that is stuck, or zeros if there is none.
func (e *Async) lastMetrics() (m Metrics) {
	if last := e.watchdog.last.Load(); last != nil {
		m = last.clone()
	} else {
		m.ofEndpoints(len(e.reg.Endpoints()))
	}
	m.Lag = e.watchdog.StuckFor()
	return m
}

// ofEndpoints makes room for the counters of so many endpoints.
func (m *Metrics) ofEndpoints(n int) {
	m.Redis, m.Caches, m.Remote = make([]resp.Stats, n), make([]rowcache.Stats, n), make([]remote.Stats, n)
}

// clone returns a copy that shares nothing with m.
func (m *Metrics) clone() Metrics {
	c := *m
	c.Redis, c.Caches, c.Remote = slices.Clone(m.Redis), slices.Clone(m.Caches), slices.Clone(m.Remote)
	c.Plans, c.Ops = maps.Clone(m.Plans), maps.Clone(m.Ops)
	return c
}

// readMetrics reads what the loop owns. Loop only.
func (e *Async) readMetrics(lag time.Duration) Metrics {
	m := Metrics{Lag: lag, Live: e.runs.Len(), Orphans: e.orphans.Len(), Bodies: e.orphans.Len(), Admission: e.admission.Stats()}
	m.ofEndpoints(len(e.endpoints))
	for i := range e.endpoints {
		ep := &e.endpoints[i]
		if ep.redis != nil {
			m.Redis[i] = ep.redis.Stats()
		}
		if ep.service != nil {
			m.Remote[i] = ep.service.Stats()
		}
	}
	for i, table := range e.given.Tables {
		if table != nil {
			m.Caches[i] = table.Stats()
		}
	}
	for r := e.runs.First(); r != nil; r = r.link.Next() {
		m.Bodies += r.active.Len()
	}
	m.Placement, m.Plans = e.placementMetrics()
	m.Counts, m.Ops = m.Placement.Counts, e.opMetrics()
	return m
}

// placementMetrics returns the figures of all plans together, and those of each plan by name.
func (e *Async) placementMetrics() (all PlacementStats, plans map[string]PlacementStats) {
	var sum tally
	byName := map[string]*tally{}
	count := func(name string, t *tally) {
		sum.add(t)
		if name == "" {
			return
		}
		if byName[name] == nil {
			byName[name] = new(tally)
		}
		byName[name].add(t)
	}
	for name, t := range e.forgotten {
		count(name, t)
	}
	for g, p := range e.profiles {
		count(g.Name, &p.tally)
	}
	plans = make(map[string]PlacementStats, len(byName))
	for name, t := range byName {
		plans[name] = t.stats()
	}
	return sum.stats(), plans
}

// addOps adds what the nodes of p have cost to the figures of their ops.
func (p *profile) addOps(ops map[string]OpStats) {
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.ran.Runs > 0 {
			op := ops[n.spec.Op]
			op.count(n.ran.Runs, n.ran.Time)
			ops[n.spec.Op] = op
		}
	}
}

// opMetrics returns the figures of all ops that ran.
func (e *Async) opMetrics() map[string]OpStats {
	ops := maps.Clone(e.forgottenOps)
	for _, p := range e.profiles {
		p.addOps(ops)
	}
	return ops
}
