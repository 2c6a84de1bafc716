package scheduler

import (
	"maps"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/latency"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// profile is what an engine has learned about one plan. Loop only.
type profile struct {
	nodes    []nodeProfile // as the plan's nodes
	live     int           // requests in flight, and orphans
	requests uint64        // begun
	forgets  bool          // all tasks have Spec.Forgets

	counts     PlacementStats // without the quantiles
	inlineTime latency.Histogram
	queueDelay latency.Histogram
	startDelay latency.Histogram // of those that did not start at once
	atOnce     uint64            // nodes that started when they became ready
	roundTrip  latency.Histogram
	callbacks  loop.CallbackTimes // of the loop, that work for requests of this plan
}

// nodeProfile is what the plan and its tasks say of one node, and what the node has cost so far.
type nodeProfile struct {
	spec      *task.Spec
	there     where // if it does not run inline
	mayInline bool  // the author and the plan permit it
	makes     int   // rows besides those of its inputs: Spec.Cost
	limit     int   // task.Ctx.Limit
	// The chain from this node on: see chain.go.
	next       int32         // the node that follows; -1 if none does
	length     int32         // nodes, this one among them
	timeoutMin time.Duration // the least timeout that the plan sets for a later one; zero: none

	cost costModel
	ran  OpStats
	path time.Duration // from its start to the end of the plan: see path.go
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

// started counts how long a node waited for its start. It costs an inline node that follows another one two comparisons: some 1 ns, and
// no reading of the clock.
func (p *profile) started(delay time.Duration) {
	if delay <= 0 {
		p.atOnce++
	} else {
		p.startDelay.Add(delay)
	}
}

// countLate counts a body whose result is dropped, by the way in which it ended.
func (p *profile) countLate(err error) {
	if stoppedEarly(err) {
		p.counts.Cancelled++
	} else {
		p.counts.LateCompletions++
	}
}

// profilesMax is how many plans an engine remembers. A program that loads plans for ever must not
// keep them all.
const profilesMax = 1024

// profileOf returns the profile of a plan, a new one at its first use.
func (e *Async) profileOf(g *plan.Graph) *profile {
	p := e.profiles[g]
	if p == nil {
		if len(e.profiles) >= profilesMax {
			e.forgetProfiles()
		}
		p = newProfile(g)
		e.profiles[g] = p
	}
	return p
}

// forgetProfiles forgets the plans that no request in flight and no orphan has. The engine's counts stay.
func (e *Async) forgetProfiles() {
	for g, p := range e.profiles {
		if p.live == 0 {
			e.forgotten.add(p)
			p.addOps(e.forgottenOps)
			delete(e.profiles, g)
		}
	}
}

func newProfile(g *plan.Graph) *profile {
	p := &profile{nodes: make([]nodeProfile, len(g.Nodes)), forgets: true}
	for i, node := range g.Nodes {
		spec := tasks.SpecOf(node)
		n := &p.nodes[i]
		n.spec, n.there = spec, place(spec, node)
		p.forgets = p.forgets && spec.Forgets
		n.mayInline = (spec.Inline || spec.Cheap) && (node.Inline == nil || *node.Inline)
		n.limit = tasks.Limit(g, node)
		if spec.Cost != nil {
			n.makes = int(min(spec.Cost(node), task.MaxRowsLimit))
		}
	}
	p.findChains(g)
	return p
}

// limitOf returns the task.Limit of a node of r, and counts a node that has one.
func (r *run) limitOf(node int) int {
	limit := r.profile.nodes[node].limit
	if limit == 0 || !r.policy.topK || r.State.notes.limit(limit) == 0 {
		return 0
	}
	r.profile.counts.TopK++
	return limit
}

// firstRowsMax is how many rows a node may read and make that runs inline before it was measured, without a hint in its plan.
const firstRowsMax = 256

// predict returns how long a node will take for so many rows. False means that nobody knows.
func (n *nodeProfile) predict(node *plan.Node, rows int) (time.Duration, bool) {
	switch {
	case n.cost.knows(rows):
		return n.cost.predict(rows), true
	case n.cost.runs > 0:
		return 0, false
	case node.CostHint > 0:
		return node.CostHint, true
	default:
		return 0, n.spec.Cheap && rows <= firstRowsMax
	}
}

// learn takes in how long the node ran. A failure teaches only what is more than expected: most
// end early.
func (n *nodeProfile) learn(rows int, took time.Duration, err error) {
	if err == nil || took > n.cost.predict(rows) {
		n.cost.learn(rows, took)
	}
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
	sum.add(&e.forgotten)
	byName := map[string]*profile{}
	for g, p := range e.profiles {
		sum.add(p)
		if byName[g.Name] == nil {
			byName[g.Name] = new(profile)
		}
		byName[g.Name].add(p)
	}
	plans = make(map[string]PlacementStats, len(byName))
	for name, p := range byName {
		plans[name] = p.stats()
	}
	return sum.stats(), plans
}
