package trace

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Check returns all that is wrong with a Trace, or nil. These hold for every one:
//
//   - each index leads somewhere, and the inputs of nodes that ran form no cycle;
//   - Ready <= Start <= End for each node that ran, all within the request's time, and Ready is the end of the last input;
//   - the queue delay of the request ends at Begun or before;
//   - awaits are in order, within the node;
//   - the slices of a track are in order, and no two overlap;
//   - each flow has two points or more, in the order of time, each within a slice of its track;
//   - in the mode Latency the critical path adds up to the request's time.
func (t *Trace) Check() error {
	c := checker{trace: t}
	if c.indices(); len(c.problems) == 0 { // The rest follows them.
		c.nodes()
		c.tracks()
		c.flows()
		c.path()
	}
	return errors.Join(c.problems...)
}

type checker struct {
	trace    *Trace
	problems []error
}

func (c *checker) problem(ok bool, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, fmt.Errorf(format, args...))
	}
}

func (c *checker) indices() {
	t := c.trace
	node := func(i, least int) bool { return least <= i && i < len(t.Nodes) }
	for i := range t.Nodes {
		n := &t.Nodes[i]
		c.problem(node(n.Parent, -1), "node %s: no node %d", n.ID, n.Parent)
		c.problem(n.Track >= -1 && n.Track < len(t.Tracks), "node %s: no track %d", n.ID, n.Track)
		for _, in := range n.Inputs {
			c.problem(node(in, 0), "nodes[%d].inputs: no node %d", i, in)
		}
	}
	for i, track := range t.Tracks {
		for _, s := range track.Slices {
			c.problem(node(s.Node, 0) || s.Node == -1 && s.Kind == EngineSlice, "tracks[%d].slices: no node %d", i, s.Node)
		}
	}
	for i, f := range t.Flows {
		c.problem(node(f.Node, 0), "flows[%d]: no node %d", i, f.Node)
	}
	for i, timer := range t.Timers {
		c.problem(node(timer.Node, 0), "timers[%d]: no node %d", i, timer.Node)
	}
	if len(c.problems) == 0 {
		_, acyclic := t.order()
		c.problem(acyclic, "nodes: inputs form a cycle")
	}
}

func (c *checker) nodes() {
	t := c.trace
	c.problem(0 <= t.Request.QueueDelay && t.Request.QueueDelay <= max(0, t.Request.Begun), "queue delay %v, begun at %v", t.Request.QueueDelay, t.Request.Begun)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		c.problem(n.Index == i, "node %d has the index %d", i, n.Index)
		c.problem(n.SpanID == int64(i)+1, "node %s: span %d", n.ID, n.SpanID)
		if !n.Ran() {
			c.problem(n.Status == Skipped, "node %s ran nowhere, and its status is %q", n.ID, n.Status)
			continue
		}
		c.problem(0 <= n.Ready && n.Ready <= n.Start && n.Start <= n.End && n.End <= t.Request.Ended,
			"node %s: ready %d, start %d, end %d, of %d", n.ID, n.Ready, n.Start, n.End, t.Request.Ended)
		c.problem(n.Ready == t.ready(n), "node %s was ready at %d, and its last input ended at %d", n.ID, n.Ready, t.ready(n))
		c.problem(n.QueueDelay == nil || 0 <= *n.QueueDelay && *n.QueueDelay <= n.Wait(), "node %s: queue delay %v, wait %d", n.ID, n.QueueDelay, n.Wait())
		last := n.Start
		for _, a := range n.Awaits {
			c.problem(last <= a.Start && a.Start <= a.End && a.End <= n.End, "node %s: await from %d to %d", n.ID, a.Start, a.End)
			last = a.End
		}
	}
}

func (c *checker) tracks() {
	for _, track := range c.trace.Tracks {
		last := time.Duration(0)
		for _, s := range track.Slices {
			c.problem(0 <= s.Start && s.Start <= s.End, "track %s: slice from %d to %d", track.Name, s.Start, s.End)
			c.problem(last <= s.Start, "track %s: a slice ends at %d, and the next one starts at %d", track.Name, last, s.Start)
			last = s.End
		}
	}
}

func (c *checker) flows() {
	for i, f := range c.trace.Flows {
		c.problem(len(f.Points) >= 2, "flow %d of %s has %d points", i, f.Kind, len(f.Points))
		for k, p := range f.Points {
			c.problem(k == 0 || f.Points[k-1].At <= p.At, "flow %d of %s goes back in time at its point %d", i, f.Kind, k)
			c.problem(c.trace.within(p), "flow %d of %s: %s at %d lies in no slice of track %d", i, f.Kind, p.Step, p.At, p.Track)
		}
	}
}

// within reports whether a point lies within a slice of its track.
func (t *Trace) within(p Point) bool {
	around := func(s Slice) bool { return s.Start <= p.At && p.At <= s.End }
	return 0 <= p.Track && p.Track < len(t.Tracks) && slices.ContainsFunc(t.Tracks[p.Track].Slices, around)
}

func (c *checker) path() {
	p := c.trace.CriticalPath(Latency)
	sum := p.Length() + p.Tail
	c.problem(p.Tail >= 0 && sum == c.trace.Request.Ended, "the critical path takes %d, with a tail of %d, and the request %d", sum, p.Tail, c.trace.Request.Ended)
}
