package scheduler

import (
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/latency"
)

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
	Fallbacks    uint64 // of these, those that another plan ran for in the end: see Result.Instead
	NodeTimeouts uint64 // nodes whose deadline came while they ran
	GivenUp      uint64 // optional nodes for which their plans did not wait
	// If a node times out or is given up, its body becomes an orphan. It ends later in one of two ways, and its
	// result is dropped:
	LateCompletions uint64 // it ran on to its own end
	Cancelled       uint64 // it noticed, or had not started, and stopped early
}

// Add adds the counts of other.
func (c *Counts) Add(other *Counts) {
	c.Requests += other.Requests
	c.Failed += other.Failed
	c.Degraded += other.Degraded
	c.Fallbacks += other.Fallbacks
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

// tally counts requests and nodes, of one plan or of several. Loop only.
type tally struct {
	counts     PlacementStats // without the quantiles
	inlineTime latency.Histogram
	queueDelay latency.Histogram
	startDelay latency.Histogram // of those that did not start at once
	atOnce     uint64            // nodes that started when they became ready
	roundTrip  latency.Histogram
	callbacks  loop.CallbackTimes // of the loop, that work for these requests
}

// started counts how long a node waited for its start. For an inline node that follows another one it costs two
// comparisons, and no reading of the clock.
func (t *tally) started(delay time.Duration) {
	if delay <= 0 {
		t.atOnce++
	} else {
		t.startDelay.Add(delay)
	}
}

// countLate counts a body whose result is dropped, by the way in which it ended.
func (t *tally) countLate(err error) {
	if stoppedEarly(err) {
		t.counts.Cancelled++
	} else {
		t.counts.LateCompletions++
	}
}

// add adds the counts and times of other.
func (t *tally) add(other *tally) {
	t.counts.add(&other.counts)
	t.inlineTime.Merge(&other.inlineTime)
	t.queueDelay.Merge(&other.queueDelay)
	t.startDelay.Merge(&other.startDelay)
	t.startDelay.AddN(0, other.atOnce)
	t.roundTrip.Merge(&other.roundTrip)
	t.callbacks.Wall.Merge(&other.callbacks.Wall)
	t.callbacks.CPU.Merge(&other.callbacks.CPU)
}

func (s *PlacementStats) add(other *PlacementStats) {
	s.Counts.Add(&other.Counts)
	s.Inline += other.Inline
	s.Offloaded += other.Offloaded
	s.Fused += other.Fused
	s.Deferred += other.Deferred
	s.TopK += other.TopK
}

// stats returns the metrics of t.
func (t *tally) stats() PlacementStats {
	s := t.counts
	s.InlineTime = latency.Of(&t.inlineTime)
	s.QueueDelay = latency.Of(&t.queueDelay)
	s.StartDelay = latency.Of(&t.startDelay)
	s.InlineBuckets, s.QueueBuckets, s.StartBuckets = t.inlineTime.Buckets(), t.queueDelay.Buckets(), t.startDelay.Buckets()
	s.OffloadRoundTrip = latency.Of(&t.roundTrip)
	s.CallbackTime, s.CallbackCPU = latency.Of(&t.callbacks.Wall), latency.Of(&t.callbacks.CPU)
	return s
}
