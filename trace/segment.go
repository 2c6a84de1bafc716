package trace

import (
	"cmp"
	"slices"
	"time"
)

// Reason says what somebody waits for.
type Reason string

// The reasons. ForLoop stands for the request's goroutine in the engines without a loop.
const (
	Running  Reason = ""      // nothing: the body runs
	ForRedis Reason = "redis" // a reply
	ForHTTP  Reason = "http"  // the answer of a service
	ForTimer Reason = "timer" // the end of a sleep
	// ForFunction is a function that runs on a goroutine of its own: task.Ctx.Await. On many rows a worker of the CPU pool runs
	// the Ask and Make of a reader.
	ForFunction Reason = "function"
	ForWorker   Reason = "worker" // a free worker
	ForLoop     Reason = "loop"   // the loop was not at it yet
	ForPlace    Reason = "place"  // a place among the requests that run
	ForPlan     Reason = "plan"   // the plan in whose place this one has answered
)

// Segment is a stretch of the request's time, in which the critical path was at one node and did, or waited for, one
// thing. Immutable.
type Segment struct {
	Node  int           `json:"node_index"` // -1 after the end of the last node
	For   Reason        `json:"for"`
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
}

// Segments returns what the critical path (mode Latency) was doing at each instant. The segments follow each other
// without gap or overlap, from the arrival to the answer. None is empty.
func (t *Trace) Segments() []Segment {
	var s segments
	bodies := t.Bodies()
	for i, step := range t.CriticalPath(Latency).Steps {
		n := &t.Nodes[step.Node]
		if delay := t.Request.QueueDelay; i == 0 && t.PlanVersion.InsteadOf != "" {
			s.until(delay, n.Index, ForPlace)
			s.until(min(t.Request.Begun, n.Start), n.Index, ForPlan)
		} else if i == 0 && delay > 0 {
			s.until(min(t.Request.Begun-delay, n.Start), n.Index, ForLoop)
			s.until(min(t.Request.Begun, n.Start), n.Index, ForPlace)
		}
		if n.QueueDelay != nil {
			s.until(n.Start-*n.QueueDelay, n.Index, ForLoop)
			s.until(n.Start, n.Index, ForWorker)
		}
		s.until(n.Start, n.Index, ForLoop)
		s.inside(n, bodies[n.Index])
	}
	s.until(t.Request.Ended, -1, ForLoop)
	return s.list
}

// Bodies returns the slices of the body of each node, in order.
func (t *Trace) Bodies() [][]Slice {
	runs := make([][]Slice, len(t.Nodes))
	for _, track := range t.Tracks {
		for _, s := range track.Slices {
			if s.Kind == NodeSlice {
				runs[s.Node] = append(runs[s.Node], s)
			}
		}
	}
	for _, r := range runs {
		slices.SortFunc(r, func(a, b Slice) int { return cmp.Compare(a.Start, b.Start) })
	}
	return runs
}

// segments is a list of segments under construction. It reaches from 0 to now. One goroutine at a time.
type segments struct {
	list []Segment
	now  time.Duration
}

// until prolongs the list to an instant, if that is after its end.
func (s *segments) until(end time.Duration, node int, reason Reason) {
	if end <= s.now {
		return
	}
	if k := len(s.list) - 1; k >= 0 && s.list[k].Node == node && s.list[k].For == reason {
		s.list[k].End = end
	} else {
		s.list = append(s.list, Segment{Node: node, For: reason, Start: s.now, End: end})
	}
	s.now = end
}

// inside adds the segments between a node's start and end: its bodies run, its awaits wait, and between these it waits for the loop. A
// node of which neither was recorded counts as running.
func (s *segments) inside(n *Node, bodies []Slice) {
	awaits := n.Awaits
	if len(bodies) == 0 && len(awaits) == 0 {
		s.until(n.End, n.Index, Running)
	}
	for len(bodies) > 0 || len(awaits) > 0 {
		next := Segment{For: Running}
		if len(awaits) == 0 || len(bodies) > 0 && bodies[0].Start <= awaits[0].Start {
			next.Start, next.End, bodies = bodies[0].Start, bodies[0].End, bodies[1:]
		} else {
			next.For, next.Start, next.End, awaits = awaits[0].For, awaits[0].Start, awaits[0].End, awaits[1:]
		}
		s.until(min(next.Start, n.End), n.Index, ForLoop)
		s.until(min(next.End, n.End), n.Index, next.For)
	}
	s.until(n.End, n.Index, ForLoop)
}

// gapShare is the part of the request's time from which on a wait is a gap: a tenth.
const gapShare = 10

// Gaps returns the waits of the critical path that take more than a tenth of the request's time. Waits for the same
// thing that follow each other directly are one gap, at the node of the first.
func (t *Trace) Gaps() []Segment {
	var gaps []Segment
	for _, s := range t.Segments() {
		if k := len(gaps) - 1; k >= 0 && gaps[k].For == s.For {
			gaps[k].End = s.End
		} else {
			gaps = append(gaps, s)
		}
	}
	return slices.DeleteFunc(gaps, func(s Segment) bool {
		return s.For == Running || (s.End-s.Start)*gapShare <= t.Request.Ended
	})
}
