package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/latency"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowcache"
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
	for i, table := range e.givenOnLoop.Tables {
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

// StuckFor returns how long one callback, such as a body that never returns, has held up the loop. Zero means that
// the loop runs. The watchdog of OpenAsync notices after one or two seconds; other engines have none. Any goroutine.
func (e *Async) StuckFor() time.Duration { return e.watchdog.StuckFor() }

// PlacementStats say how requests ended, where their computing nodes ran, and what that cost: in an engine, or in one
// plan. Immutable.
type PlacementStats struct {
	Counts
	Inline    uint64 // nodes that ran inline
	Offloaded uint64 // nodes that ran on the pool
	Fused     uint64 // of these, nodes that shared a job with others
	Deferred  uint64 // times that cheap nodes of a request waited for the next iteration's budget
	TopK      uint64 // sorts that selected the first rows only

	InlineTime latency.Quantiles // of one inline node
	// QueueDelay is the time from the hand-over of a job to its start on a worker.
	QueueDelay latency.Quantiles
	// StartDelay is the time from when a node became ready to its start, for all nodes wherever they ran. They wait
	// for a worker, for the budget of inline nodes, or for other work on the loop. If a node starts or becomes ready
	// between two readings of the clock, the loop's time counts, which moves once an iteration.
	StartDelay latency.Quantiles
	// OffloadRoundTrip is the time from the hand-over of a job to its hand-back on the loop, minus the time of the
	// work itself. It is the cost of offloading.
	OffloadRoundTrip latency.Quantiles
	// The same distributions, for programs that subtract one reading from another.
	InlineBuckets, QueueBuckets, StartBuckets latency.Buckets
	// CallbackTime is the time of the loop's callbacks that worked for requests of the plan, and
	// CallbackCPU their processor time: see loop.CallbackTimes. A callback that worked for several
	// plans counts for each of them, and in the sum over all plans as often.
	CallbackTime latency.Quantiles
	CallbackCPU  latency.Quantiles
}

// Counts are what an engine counts of requests, or of those of one plan. A copy; any goroutine.
type Counts struct {
	Requests     uint64 // begun
	Failed       uint64 // of these, ended with an error
	Degraded     uint64 // of these, answered although something is missing: see Result.Completeness
	NodeTimeouts uint64 // nodes whose deadline came while they ran
	GivenUp      uint64 // optional nodes for which their plans did not wait
	// If a node times out or is given up, its body becomes an orphan. It ends later in one of two ways, and its
	// result is dropped:
	LateCompletions uint64 // it ran on to its own end
	Cancelled       uint64 // it noticed, or had not started, and stopped early
}

func (c *Counts) add(other *Counts) {
	c.Requests += other.Requests
	c.Failed += other.Failed
	c.Degraded += other.Degraded
	c.NodeTimeouts += other.NodeTimeouts
	c.GivenUp += other.GivenUp
	c.LateCompletions += other.LateCompletions
	c.Cancelled += other.Cancelled
}

// InlineRate returns the share of the computing nodes that ran inline.
func (s *PlacementStats) InlineRate() float64 { return s.rate(s.Inline) }

// OffloadRate returns the share of the computing nodes that ran on the pool.
func (s *PlacementStats) OffloadRate() float64 { return s.rate(s.Offloaded) }

// FusedRate returns the share of the computing nodes that shared a job with others.
func (s *PlacementStats) FusedRate() float64 { return s.rate(s.Fused) }

// rate returns a number of computing nodes as a share of all; zero of none.
func (s *PlacementStats) rate(nodes uint64) float64 {
	return float64(nodes) / float64(max(s.Inline+s.Offloaded, 1))
}

// OpStats say how often the tasks of one op ran, and for how long. Immutable.
type OpStats struct {
	Runs uint64 // that ended
	// Time is their total time. On a worker and inline it is measured by the clock. For a task that may wait, it
	// includes the waits and is measured by the loop's time, which moves once an iteration.
	Time time.Duration
}

// mean returns the average time of a run, zero if none has ended.
func (s *OpStats) mean() time.Duration { return s.Time / time.Duration(max(s.Runs, 1)) }

func (s *OpStats) count(runs uint64, took time.Duration) {
	s.Runs += runs
	s.Time += took
}

// add adds the counts and times of other.
func (p *profile) add(other *profile) {
	p.counts.add(&other.counts)
	p.inlineTime.Merge(&other.inlineTime)
	p.queueDelay.Merge(&other.queueDelay)
	p.startDelay.Merge(&other.startDelay)
	p.startDelay.AddN(0, other.atOnce)
	p.roundTrip.Merge(&other.roundTrip)
	p.callbacks.Wall.Merge(&other.callbacks.Wall)
	p.callbacks.CPU.Merge(&other.callbacks.CPU)
}

func (s *PlacementStats) add(other *PlacementStats) {
	s.Counts.add(&other.Counts)
	s.Inline += other.Inline
	s.Offloaded += other.Offloaded
	s.Fused += other.Fused
	s.Deferred += other.Deferred
	s.TopK += other.TopK
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

// stats returns the metrics of p.
func (p *profile) stats() PlacementStats {
	s := p.counts
	s.InlineTime = latency.Of(&p.inlineTime)
	s.QueueDelay = latency.Of(&p.queueDelay)
	s.StartDelay = latency.Of(&p.startDelay)
	s.InlineBuckets, s.QueueBuckets, s.StartBuckets = p.inlineTime.Buckets(), p.queueDelay.Buckets(), p.startDelay.Buckets()
	s.OffloadRoundTrip = latency.Of(&p.roundTrip)
	s.CallbackTime, s.CallbackCPU = latency.Of(&p.callbacks.Wall), latency.Of(&p.callbacks.CPU)
	return s
}

// placementMetrics returns the figures of all plans together, and those of each plan by name.
func (e *Async) placementMetrics() (all PlacementStats, plans map[string]PlacementStats) {
	var sum profile
	byName := map[string]*profile{}
	count := func(name string, p *profile) {
		sum.add(p)
		if name == "" {
			return
		}
		if byName[name] == nil {
			byName[name] = new(profile)
		}
		byName[name].add(p)
	}
	for name, p := range e.forgotten {
		count(name, p)
	}
	for g, p := range e.profiles {
		count(g.Name, p)
	}
	plans = make(map[string]PlacementStats, len(byName))
	for name, p := range byName {
		plans[name] = p.stats()
	}
	return sum.stats(), plans
}
