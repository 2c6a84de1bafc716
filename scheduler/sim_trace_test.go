package scheduler

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// In virtual time a trace is exact: it says what the bodies of a request saw on the clock.

// simTraces is what a world knows about its traces. It draws its own numbers, so that the
// schedule of a seed does not depend on which requests are recorded.
type simTraces struct {
	rng    *rand.Rand
	events int       // bound for the requests in flight; 0: large enough
	loop   []simBusy // slices of the loop that are not empty, of all requests; of those without a recording, bodies that took time
	seen   map[string]int
}

// simBusy is a stretch of time in which a request had the loop.
type simBusy struct {
	user       int64
	start, end clock.Time
}

// simSpan is one run of a body, as the body saw it.
type simSpan struct {
	start, end clock.Time // end is zero for a body that has not ended
	place      trace.Place
}

func newSimTraces(seed uint64) simTraces {
	t := simTraces{rng: rand.New(rand.NewPCG(seed, 0x7472616365)), seen: map[string]int{}}
	if t.rng.IntN(5) == 0 {
		t.events = 1 + t.rng.IntN(2000)
	}
	return t
}

// detail draws how much of the next request is recorded.
func (t *simTraces) detail() trace.Detail {
	return []trace.Detail{trace.Off, trace.JustNodes, trace.Full, trace.Full}[t.rng.IntN(4)]
}

// began notes that a body begins.
func (w *simWorld) began(c *task.Ctx, place trace.Place) *simSpan {
	s := &simSpan{start: w.sim.Now(), place: place}
	w.requestOf(c).spans[c.Node.Index] = s
	return s
}

// ended notes that a body that computes has ended.
func (w *simWorld) ended(c *task.Ctx, s *simSpan) {
	s.end = w.sim.Now()
	if s.place == trace.Inline {
		w.unrecorded(c, s.start)
	}
}

// unrecorded notes that a body has had the loop since start. Its request does not have a trace
// that says so.
func (w *simWorld) unrecorded(c *task.Ctx, start clock.Time) {
	if now := w.sim.Now(); now > start && w.requestOf(c).req.Record != trace.Full {
		w.traces.loop = append(w.traces.loop, simBusy{c.UserID, start, now})
	}
}

// checkTrace checks the trace of an answer.
func (w *simWorld) checkTrace(q *simRequest, r *Result) {
	asked := q.req.Record != trace.Off
	if r.Recording == nil {
		w.check(!asked || q.refused || len(q.begun) == 0, "request %d has no recording", q.user)
		return
	}
	w.check(asked, "request %d has a recording that nobody asked for", q.user)
	t, now := r.Recording.Trace(), w.sim.Now()
	if err := t.Check(); err != nil {
		for _, e := range r.Recording.Events() {
			w.logf("%v %d %v", e.Kind, e.Node, e.At.Sub(q.arrived))
		}
		w.violate("trace of request %d: %v", q.user, err)
		return
	}
	w.check(t.Request.Ended == now.Sub(q.arrived), "trace of request %d: it took %v, and the trace says %v", q.user, now.Sub(q.arrived), t.Request.Ended)
	w.check((t.Request.Error != "") == (r.Err != nil), "trace of request %d: error %q", q.user, t.Request.Error)
	w.check(t.Dropped == 0 || w.traces.events > 0 && q.req.Record == trace.Full, "trace of request %d: %d events were dropped", q.user, t.Dropped)
	w.checkPaths(q, t)
	w.checkSegments(q, t)
	for i := range t.Nodes {
		w.checkTraceNode(q, t, i)
	}
	for i, out := range q.graph.Outputs {
		for t.Nodes[out].StandIn == trace.FallbackStandIn {
			out = q.graph.Nodes[out].Fallback.Index
		}
		w.check(r.Err != nil || t.Nodes[out].RowsOut == r.Outputs[i].N, "trace of request %d: node %s made %d rows", q.user, t.Nodes[out].ID, t.Nodes[out].RowsOut)
	}
	w.traces.seen["dropped"] += t.Dropped
	w.traces.seen["timers"] += len(t.Timers)
	w.traces.seen["gaps"] += len(t.Gaps())
	for _, f := range t.Flows {
		w.traces.seen["flows of "+string(f.Kind)]++
	}
	if q.req.Record == trace.Full && t.Dropped == 0 {
		w.checkThreads(q, t)
	}
	if w.traces.rng.IntN(100) == 0 {
		w.checkTraceJSON(q, t)
	}
}

// checkPaths compares the critical paths with those of a plain computation.
func (w *simWorld) checkPaths(q *simRequest, t *trace.Trace) {
	for _, mode := range []trace.Mode{trace.Latency, trace.Service} {
		weight := func(i int) time.Duration {
			if mode == trace.Latency {
				return t.Nodes[i].End - t.Nodes[i].Ready
			}
			return t.Nodes[i].End - t.Nodes[i].Start
		}
		longest, sums := time.Duration(0), map[int]time.Duration{}
		var upTo func(i int) time.Duration
		upTo = func(i int) time.Duration {
			if sum, ok := sums[i]; ok {
				return sum
			}
			before := time.Duration(0)
			for _, in := range q.graph.Before(q.graph.Nodes[i]) {
				if t.Nodes[in].Ran() {
					before = max(before, upTo(in))
				}
			}
			sums[i] = before + weight(i)
			return sums[i]
		}
		ran := 0
		for i := range t.Nodes {
			if t.Nodes[i].Ran() {
				ran++
				longest = max(longest, upTo(i))
			}
		}
		path := t.CriticalPath(mode)
		sum := time.Duration(0)
		for k, step := range path.Steps {
			sum += weight(step.Node)
			node := q.graph.Nodes[step.Node]
			if k == 0 {
				w.check(node.Deps == 0, "trace of request %d: the %s path begins with %s, which reads others", q.user, mode, node.ID)
			} else {
				before := path.Steps[k-1].Node
				w.check(slices.Contains(q.graph.Before(node), before), "trace of request %d: the %s path goes to %s, which does not read the node before",
					q.user, mode, node.ID)
			}
		}
		w.check(sum == longest && path.Length() == longest && (len(path.Steps) > 0) == (ran > 0),
			"trace of request %d: the %s path takes %v, and the longest is %v", q.user, mode, sum, longest)
		if mode == trace.Latency {
			waits, runs := time.Duration(0), time.Duration(0)
			for _, step := range path.Steps {
				waits, runs = waits+step.Wait, runs+step.Run
			}
			w.check(waits+runs+path.Tail == t.Request.Ended, "trace of request %d: waits of %v, runs of %v and a tail of %v, of %v", q.user, waits, runs, path.Tail, t.Request.Ended)
		}
	}
}

// checkSegments checks that the segments cover the request's time, and that gaps are long.
func (w *simWorld) checkSegments(q *simRequest, t *trace.Trace) {
	at := time.Duration(0)
	for _, s := range t.Segments() {
		w.check(s.Start == at && s.End > s.Start, "trace of request %d: a segment from %v to %v follows %v", q.user, s.Start, s.End, at)
		at = s.End
	}
	w.check(at == t.Request.Ended, "trace of request %d: segments end at %v", q.user, at)
	for _, g := range t.Gaps() {
		w.check(10*(g.End-g.Start) > t.Request.Ended && g.For != trace.Running, "trace of request %d: a gap from %v to %v", q.user, g.Start, g.End)
	}
}

// checkTraceNode compares a node of a trace with what its body saw.
func (w *simWorld) checkTraceNode(q *simRequest, t *trace.Trace, i int) {
	n, s := &t.Nodes[i], q.spans[i]
	if s == nil {
		w.check(!n.Ran() || n.Status == trace.Timeout || n.Status == trace.Failed || n.Status == trace.Late, "trace of request %d: node %s is %s, and its body never began", q.user, n.ID, n.Status)
		return
	}
	w.check(n.Place == s.place, "trace of request %d: node %s ran at %s, and the trace says %q", q.user, n.ID, s.place, n.Place)
	w.check(n.Start == s.start.Sub(q.arrived), "trace of request %d: node %s began at %v, and the trace says %v", q.user, n.ID, s.start.Sub(q.arrived), n.Start)
	if s.end != 0 && s.end <= w.sim.Now() && n.Status == trace.OK {
		w.check(n.End == s.end.Sub(q.arrived), "trace of request %d: node %s ended at %v, and the trace says %v", q.user, n.ID, s.end.Sub(q.arrived), n.End)
	}
	w.check((n.QueueDelay != nil) == (n.Place == trace.OnPool && n.Depth == 0), "trace of request %d: node %s has a queue delay: %v", q.user, n.ID, n.QueueDelay != nil)
	w.check((n.Parent >= 0) == (n.Depth > 0), "trace of request %d: node %s has the parent %d and the depth %d", q.user, n.ID, n.Parent, n.Depth)
	if n.Parent >= 0 {
		parent := q.graph.Nodes[n.Parent]
		w.check(len(parent.Succs) == 1 && parent.Succs[0] == i && t.Nodes[n.Parent].Depth == n.Depth-1 && t.Nodes[n.Parent].End == n.Start,
			"trace of request %d: node %s does not follow node %s directly", q.user, n.ID, parent.ID)
		w.traces.seen["followers "+string(n.Place)]++
	}
	if n.Status == trace.OK && q.mode != plan.OffloadAll {
		rows := 0
		for _, in := range n.Inputs {
			rows += t.Nodes[in].RowsOut
		}
		w.check(n.RowsIn == rows, "trace of request %d: node %s read %d rows, and the trace says %d", q.user, n.ID, rows, n.RowsIn)
	}
}

// checkThreads checks a complete trace: its threads against what it says of nodes, and the loop
// against other requests.
func (w *simWorld) checkThreads(q *simRequest, t *trace.Trace) {
	commands, awaited, flows := map[int]int{}, map[int]int{}, map[int]int{}
	for _, track := range t.Tracks {
		for _, s := range track.Slices {
			switch {
			case s.Kind == trace.CallSlice:
				w.check(track.Kind == trace.RedisTrack || track.Kind == trace.HTTPTrack, "trace of request %d: a call on %s", q.user, track.Name)
				commands[s.Node] += s.Commands
			case s.Kind == trace.NodeSlice && track.Kind == trace.CPUTrack:
				w.check(track.Number < w.cfg.workers, "trace of request %d: worker %d", q.user, track.Number)
				end := q.spans[s.Node].end
				w.check(s.End == end.Sub(q.arrived) || s.GivenUp && (end == 0 || s.End < end.Sub(q.arrived)),
					"trace of request %d: node %s is drawn from %v to %v", q.user, t.Nodes[s.Node].ID, s.Start, s.End)
			case track.Kind == trace.LoopTrack && s.End > s.Start:
				w.traces.loop = append(w.traces.loop, simBusy{q.user, q.arrived.Add(s.Start), q.arrived.Add(s.End)})
			}
		}
	}
	for _, f := range t.Flows {
		if f.Kind == trace.RedisFlow || f.Kind == trace.HTTPFlow {
			flows[f.Node]++
		}
	}
	own := t.Own()
	for i := range t.Nodes {
		n := &t.Nodes[i]
		for _, a := range n.Awaits {
			awaited[i] += a.Commands
		}
		if n.Op == "sim::popular" {
			continue // It gives calls up without having waited.
		}
		w.check(commands[i] <= awaited[i] && (n.Status != trace.OK || commands[i] == awaited[i] || w.cfg.redisTrouble() || w.cfg.replyBytes > 0),
			"trace of request %d: node %s waited for %d commands, and %d left", q.user, n.ID, awaited[i], commands[i])
		w.check((commands[i] > 0) == (flows[i] > 0), "trace of request %d: node %s has %d commands and %d flows", q.user, n.ID, commands[i], flows[i])
		if n.Ran() && n.Place != trace.OnPool && n.Status == trace.OK {
			awake := n.Run()
			for _, a := range n.Awaits {
				awake -= a.End - a.Start
			}
			w.check(own[i] == awake, "trace of request %d: node %s ran for %v, and its slices take %v", q.user, n.ID, awake, own[i])
		}
	}
}

// checkTraceJSON checks that the JSON form says the same.
func (w *simWorld) checkTraceJSON(q *simRequest, t *trace.Trace) {
	doc, err := t.MarshalJSON()
	w.check(err == nil, "trace of request %d: %v", q.user, err)
	read, err := trace.Decode(doc)
	w.check(err == nil && assert.ObjectsAreEqual(t, read), "trace of request %d reads back differently: %v", q.user, err)
}

// checkLoopShared checks that the loop ran one thing at a time, over all requests.
func (w *simWorld) checkLoopShared() {
	busy := w.traces.loop
	slices.SortFunc(busy, func(a, b simBusy) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(busy); i++ {
		w.check(busy[i-1].end <= busy[i].start, "the loop ran requests %d and %d at the same time", busy[i-1].user, busy[i].user)
	}
	w.traces.seen["stretches on the loop"] += len(busy)
	w.check(w.engine.journals.Unused(), "events of requests that have ended are held")
}
