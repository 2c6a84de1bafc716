package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/loop/latency"
)

// Mode says which computing nodes run inline, that is on the loop, and which on the CPU pool. Empty means the engine's, and
// Adaptive for an engine. All modes give the same answers. Immutable; any goroutine.
type Mode string

// The modes.
const (
	// Adaptive runs a node inline if its predicted time is short. It hands chains of the others to the pool as one job.
	Adaptive Mode = "adaptive"
	// OffloadAll hands every computing node to the pool, one by one, and sorts in full even if a take follows.
	OffloadAll Mode = "offload_all"
	// InlineAll runs every node inline that may run there, whatever it costs. It is for
	// experiments: one heavy node holds up all requests.
	InlineAll Mode = "inline_all"
)

// Check returns an error if m is not one of the modes. It says which there are, and fits behind the name of a setting.
func (m Mode) Check() error {
	switch m {
	case Adaptive, OffloadAll, InlineAll:
		return nil
	}
	return fmt.Errorf("must be adaptive, offload_all or inline_all, not %s", errtext.Quote(string(m)))
}

// TopK reports whether a sort that a take follows selects the first rows. Otherwise it sorts in full.
func (m Mode) TopK() bool { return m != OffloadAll }

// A policy is what a mode means for a run, under the engine's settings. Modes differ here, and nowhere else. Immutable;
// any goroutine.
type policy struct {
	mode   Mode
	inline bool // nodes may run inline
	always bool // those run inline that may, whatever they cost
	chains bool // a node goes straight on to its single successor, on the loop or as part of one job
	topK   bool // a sort that a take follows selects the first rows
	// strict: a body that ends after its deadline has failed, though the timer has not fired yet. Otherwise the timer
	// decides, as in the original engine.
	strict bool
	// skips: a job that finds its request failed does not run. Otherwise it does, as in the original engine.
	skips bool
	// byDeadline: jobs start in the order of path.go. Otherwise first come, first served, as in the original engine.
	byDeadline bool
}

// policy returns what a mode means.
func (p *Placement) policy(m Mode) policy {
	today := m != OffloadAll
	return policy{
		mode: m, inline: today && !p.NoInlineExecution, always: m == InlineAll, chains: today && !p.NoContinuationChaining,
		topK: m.TopK(), strict: today, skips: today, byDeadline: today,
	}
}

// The defaults of Placement.
const (
	DefaultInlineThreshold = 10 * time.Microsecond // about the price of the way to the pool and back
	DefaultMaxInlineDepth  = 3
	DefaultInlineBudget    = 200 * time.Microsecond
)

// Placement says where computing nodes run. The zero value means the defaults. The blocking engines take from it only whether a
// sort that a take follows selects the first rows: not in the mode OffloadAll. Immutable once an engine has it; any goroutine.
type Placement struct {
	// Mode holds for requests without a mode of their own. Empty means Adaptive.
	Mode Mode
	// NoInlineExecution keeps computing nodes off the loop, in every mode. The flag
	// --enable_inline_execution is the opposite.
	NoInlineExecution bool
	// NoContinuationChaining sends each node through the ready queue. Otherwise a node goes
	// straight on to its single successor, on the loop or as part of one job. The flag
	// --enable_continuation_chaining is the opposite.
	NoContinuationChaining bool
	// InlineThreshold is the predicted time from which on a node does not run inline. Zero
	// means DefaultInlineThreshold, 10 µs.
	InlineThreshold time.Duration
	// MaxInlineDepth is how many successors follow an inline node directly. The next one
	// passes through the ready queue. Zero means DefaultMaxInlineDepth, 3.
	MaxInlineDepth int
	// InlineBudget is how long nodes run inline within one iteration of the loop. Those left
	// wait for the next iteration. Zero means DefaultInlineBudget, 200 µs.
	InlineBudget time.Duration
}

func (p Placement) withDefaults() Placement {
	p.Mode = cmp.Or(p.Mode, Adaptive)
	if p.InlineThreshold <= 0 {
		p.InlineThreshold = DefaultInlineThreshold
	}
	if p.MaxInlineDepth <= 0 {
		p.MaxInlineDepth = DefaultMaxInlineDepth
	}
	if p.InlineBudget <= 0 {
		p.InlineBudget = DefaultInlineBudget
	}
	return p
}

// PlacementStats say where computing nodes ran, and what that cost: in an engine, or in one plan.
// Immutable.
type PlacementStats struct {
	Inline    uint64 // nodes that ran inline
	Offloaded uint64 // nodes that ran on the pool
	Fused     uint64 // of these, nodes that shared a job with others
	Deferred  uint64 // times that cheap nodes of a request waited for the next iteration's budget
	TopK      uint64 // sorts that selected the first rows only

	// Degraded counts requests that were answered although something is missing: see Result.Completeness.
	Degraded uint64

	NodeTimeouts    uint64 // as Counts has them
	LateCompletions uint64 // as Counts has them
	Cancelled       uint64 // as Counts has them

	InlineTime latency.Quantiles // of one inline node
	// QueueDelay is the time from the hand-over of a job to its start on a worker.
	QueueDelay latency.Quantiles
	// StartDelay is the time from the instant at which a node became ready to its start, of all nodes wherever they ran: for a worker, for the
	// budget of inline nodes, for others on the loop. Where a node starts or becomes ready between two readings of the clock, the
	// loop's time counts, which moves once an iteration.
	StartDelay latency.Quantiles
	// OffloadRoundTrip is the time from the hand-over of a job to its hand-back on the loop,
	// without the time of the work itself: the price of offloading.
	OffloadRoundTrip latency.Quantiles
	// The same distributions, for programs that subtract one reading from another.
	InlineBuckets, QueueBuckets, StartBuckets latency.Buckets
	// CallbackTime is the time of the loop's callbacks that worked for requests of the plan, and
	// CallbackCPU their processor time: see loop.CallbackTimes. A callback that worked for several
	// plans counts for each of them, and in the sum over all plans as often.
	CallbackTime latency.Quantiles
	CallbackCPU  latency.Quantiles
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
	// Time is what they took together: on a worker and inline by the clock; of a task that may wait, its waits included, by the
	// loop's time, which moves once an iteration.
	Time time.Duration
}

// mean returns what a run takes, zero if none has ended.
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
	s.Inline += other.Inline
	s.Offloaded += other.Offloaded
	s.Fused += other.Fused
	s.Deferred += other.Deferred
	s.TopK += other.TopK
	s.Degraded += other.Degraded
	s.NodeTimeouts += other.NodeTimeouts
	s.LateCompletions += other.LateCompletions
	s.Cancelled += other.Cancelled
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

// stats returns what the metrics tell of p.
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

// placementMetrics returns the figures of all plans together, and of each by its name.
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
