package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// Trace assembles the trace of a recording.
func (r *Recording) Trace() *Trace {
	a := &assembly{
		from: r, tracks: map[trackKey]int{}, nodes: make([]replayed, len(r.nodes)), main: trackKey{kind: RequestTrack},
		trace: &Trace{
			Version: Version, TraceID: r.ID(), RequestID: r.RequestID, At: r.At, Plan: r.Graph.Name, PlanVersion: r.PlanVersion, Engine: r.Engine, Scheduling: r.Scheduling,
			Request: Request{Begun: r.instant(r.Begun), QueueDelay: r.QueueDelay, Ended: r.instant(r.Ended)},
			Nodes:   make([]Node, len(r.nodes)), Tracks: []Track{}, Flows: []Flow{}, Timers: []Timer{}, Dropped: r.Dropped,
		},
	}
	if r.Engine == Reactor {
		a.main.kind = LoopTrack
	}
	if r.Err != nil {
		a.trace.Request.Error = r.Err.Error()
	}
	for i := range r.nodes {
		a.node(i)
	}
	for _, note := range r.notes {
		n := &a.trace.Nodes[note.node]
		if note.err == nil {
			n.Cached, n.CachedAge = note.values, note.age
		} else {
			n.Error, n.Dropped, a.trace.Request.Degraded = note.err.Error(), note.dropped, r.Err == nil
		}
	}
	for i := range a.trace.Nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			n.Ready = a.trace.ready(n)
		}
	}
	if r.Detail == Full {
		a.replay()
		a.drawWorkers()
		a.drawCalls()
	}
	a.arrange()
	return a.trace
}

// instant returns the time since the arrival.
func (r *Recording) instant(t clock.Time) time.Duration { return t.Sub(r.Arrived) }

// An assembly is a Trace under construction: nodes come from their records, everything else from a replay of the events. Until
// arrange its tracks are in the order in which they were found. One goroutine at a time.
type assembly struct {
	from    *Recording
	trace   *Trace
	tracks  map[trackKey]int // indices in trace.Tracks
	main    trackKey         // the engine's own thread
	running Slice            // what runs on it, of no kind if nothing does
	nodes   []replayed
	calls   []*call
}

// A trackKey says which thread or connection a track is about.
type trackKey struct {
	kind                   TrackKind
	endpoint, number, lane int
}

// replayed is a node while its events are replayed.
type replayed struct {
	on       trackKey      // where its body runs
	awaiting bool          // it has suspended, and not been resumed since
	asked    time.Duration // the last time that it suspended for something new
	open     []*call       // those that are not answered, in order
	answered []*call       // since it suspended
	job      []Point       // of its offload flow so far
}

// A call is one time that commands were on a connection.
type call struct {
	Slice
	on       trackKey
	asked    time.Duration // -1: nobody waited for it
	resumed  time.Duration // -1: nobody went on with it
	leftOpen time.Duration // the last time that its node went on without it; -1: it has not
}

// node fills in what the plan and the record of a node say.
func (a *assembly) node(i int) {
	from, rec, n := a.from.Graph.Nodes[i], &a.from.nodes[i], &a.trace.Nodes[i]
	*n = Node{SpanID: int64(i) + 1, ID: from.ID, Index: i, Op: from.Op, Label: from.Trace, Output: from.IsOutput, SourceSpan: from.SourceSpan, Status: Skipped, Track: -1, Parent: -1,
		Inputs: a.inputs(from), Because: from.AutoWhy}
	if from.Lenient() {
		n.OnError = from.OnError.String()
	}
	if rec.place == 0 {
		return
	}
	n.Place, n.Start, n.End = placeNames[rec.place], a.from.instant(rec.start), a.from.instant(rec.end)
	n.RowsIn, n.RowsOut, n.Fused = int(rec.rowsIn), int(rec.rowsOut), int(rec.fused)
	n.Parent, n.Depth = int(rec.parent), int(rec.depth)
	if rec.queued != 0 {
		delay := rec.start.Sub(rec.queued)
		n.QueueDelay = &delay
	}
	switch {
	case !rec.failed:
		n.Status = OK
	case rec.timedOut:
		n.Status = Timeout
	case rec.late:
		n.Status = Late
	default:
		n.Status = Failed
	}
	n.StandIn = standIns[rec.instead]
	switch on := &a.nodes[i].on; n.Place {
	case OnPool:
		*on = trackKey{kind: CPUTrack, number: int(rec.worker)}
	case OnIOWorker:
		*on = trackKey{kind: IOTrack, number: int(rec.worker)}
	default:
		*on = a.main
	}
}

// standIns are what the readers of a node see, by what the scheduler says of it.
var standIns = [...]StandIn{
	plan.OnErrorFail: NoStandIn, plan.OnErrorEmpty: EmptyStandIn, plan.OnErrorSkip: SkipStandIn,
	plan.OnErrorPartial: EmptyStandIn, plan.OnErrorNull: NullStandIn, plan.OnErrorFallback: FallbackStandIn,
}

// inputs returns Node.Inputs.
func (a *assembly) inputs(n *plan.Node) []int {
	all := append(append(make([]int, 0, n.Deps), n.Inputs...), n.Refs...)
	if !a.from.Graph.Lenient {
		return all
	}
	ran := func(node *plan.Node) bool { return node != nil && a.from.nodes[node.Index].place != 0 }
	for _, in := range all {
		for fallback := a.from.Graph.Nodes[in].Fallback; ran(fallback); fallback = fallback.Fallback {
			all = append(all, fallback.Index)
		}
	}
	if n.StandsFor != nil && ran(n) {
		all = append(all, n.StandsFor.Index)
	}
	return all
}

// replay goes through the events. The engine's thread runs one thing from each of its events to the next.
func (a *assembly) replay() {
	a.track(a.main)
	for e := range a.from.all() {
		at, node := a.from.instant(e.At), e.Node
		switch e.Kind {
		case EngineEntered:
			a.run(-1, at)
		case EngineLeft:
			a.stop(at)
		case NodeStarted:
			a.run(node, at)
		case NodeEnded:
			a.settle(node, at)
			if a.running.Kind == NodeSlice && a.running.Node == node {
				a.run(-1, at)
			}
		case Suspended:
			a.suspend(&e, at)
		case CoroutineResumed:
			a.resume(node, at)
		case CommandSent:
			a.send(&e, at)
		case ReplyReceived:
			a.reply(&e, at)
		case TimerFired:
			timer := Timer{Kind: DeadlineTimer, Node: node, Due: a.from.instant(e.Due), Fired: at}
			if e.Reason == ForTimer {
				timer.Kind = SleepTimer
			}
			a.trace.Timers = append(a.trace.Timers, timer)
		case OffloadSubmitted:
			a.job(node, Submitted, a.main, at)
		case OffloadStarted:
			a.job(node, Started, a.nodes[node].on, at)
		case OffloadPosted:
			a.job(node, Posted, a.nodes[node].on, at)
		case OffloadReturned:
			a.job(node, Resumed, a.main, at)
		}
	}
	a.stop(max(a.running.Start, a.from.instant(a.from.cut))) // Only a dropped event leaves it running.
	for i := range a.nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			a.settle(i, n.End) // if its end was dropped, or was before a deadline that it did not know
		}
		if job := a.nodes[i].job; len(job) > 1 {
			a.flow(OffloadFlow, i, job...)
		}
	}
}

// run has the engine's thread go over to a node, or to the engine.
func (a *assembly) run(node int, at time.Duration) {
	a.stop(at)
	a.running = Slice{Kind: NodeSlice, Node: node, Start: at}
	if node < 0 {
		a.running.Kind = EngineSlice
	}
}

// stop ends what the engine's thread runs.
func (a *assembly) stop(at time.Duration) {
	if a.running.Kind != "" {
		a.running.End = at
		a.slice(a.main, a.running)
		a.running = Slice{}
	}
}

// job adds a point to the flow of a job. Its first event is there if a later one is.
func (a *assembly) job(node int, step Step, on trackKey, at time.Duration) {
	a.nodes[node].job = append(a.nodes[node].job, a.point(step, on, at))
}

func (a *assembly) suspend(e *Event, at time.Duration) {
	n, state := &a.trace.Nodes[e.Node], &a.nodes[e.Node]
	state.awaiting = true
	if e.Reason != ForRedis || e.Commands > 0 { // It waits for something else than further parts of its call.
		state.asked = at
		state.giveUp()
	}
	state.ask()
	n.Awaits = append(n.Awaits, Await{For: e.Reason, Start: at, End: at, Commands: e.Commands})
	switch {
	case state.on != a.main:
	case a.from.Engine == Reactor:
		a.run(-1, at)
	default:
		a.stop(at) // It blocks.
	}
}

func (a *assembly) resume(node int, at time.Duration) {
	n, state := &a.trace.Nodes[node], &a.nodes[node]
	a.wake(node, at)
	if k := len(n.Awaits) - 1; k >= 0 && n.Awaits[k].For == ForTimer {
		a.flow(TimerFlow, node, a.point(Asked, state.on, n.Awaits[k].Start), a.point(Resumed, state.on, at))
	}
	for _, c := range state.answered {
		c.resumed = at
	}
	state.answered = state.answered[:0]
	if state.on == a.main {
		a.run(node, at)
	}
}

// wake ends the await of a node.
func (a *assembly) wake(node int, at time.Duration) {
	n, state := &a.trace.Nodes[node], &a.nodes[node]
	if state.awaiting {
		state.awaiting = false
		n.Awaits[len(n.Awaits)-1].End = at
	}
	for _, c := range state.open {
		c.leftOpen = at
	}
}

// settle ends all that a node was waiting for.
func (a *assembly) settle(node int, at time.Duration) {
	a.wake(node, at)
	a.nodes[node].giveUp()
}

func (a *assembly) send(e *Event, at time.Duration) {
	c := &call{
		Slice: Slice{Kind: CallSlice, Node: e.Node, Start: at, Commands: e.Commands, Sent: e.Bytes},
		on:    a.connection(e), asked: -1, resumed: -1, leftOpen: -1,
	}
	a.calls = append(a.calls, c)
	state := &a.nodes[e.Node]
	if state.open = append(state.open, c); state.awaiting {
		state.ask()
	}
}

// reply ends the oldest call of a node on that connection.
func (a *assembly) reply(e *Event, at time.Duration) {
	state, on := &a.nodes[e.Node], a.connection(e)
	k := slices.IndexFunc(state.open, func(c *call) bool { return c.on == on })
	if k < 0 {
		return
	}
	c := state.open[k]
	c.End, c.Received = at, e.Bytes
	state.open, state.answered = slices.Delete(state.open, k, k+1), append(state.answered, c)
}

// connection returns the first lane of the connection of a call.
func (a *assembly) connection(e *Event) trackKey {
	on := trackKey{kind: RedisTrack, endpoint: e.Endpoint, number: e.Connection}
	if a.from.Graph.Registry.EndpointAt(e.Endpoint).Kind == registry.HTTP {
		on.kind = HTTPTrack
	}
	return on
}

// ask gives the open calls of a node that waits for them the instant since when it does. A call without one has not been
// waited for, as far as the events go.
func (s *replayed) ask() {
	for _, c := range s.open {
		if c.asked < 0 {
			c.asked = min(s.asked, c.Start)
		}
	}
}

// giveUp ends the calls without which the node went on.
func (s *replayed) giveUp() {
	s.open = slices.DeleteFunc(s.open, func(c *call) bool {
		if c.leftOpen >= 0 {
			c.End, c.GivenUp = max(c.leftOpen, c.Start), true
		}
		return c.GivenUp
	})
}

// drawWorkers draws the bodies that ran on workers, without the times that they waited.
func (a *assembly) drawWorkers() {
	for i := range a.trace.Nodes {
		n, rec, on := &a.trace.Nodes[i], &a.from.nodes[i], a.nodes[i].on
		if !rec.worked || on == a.main {
			continue
		}
		body := Slice{Kind: NodeSlice, Node: i, Start: n.Start}
		for _, await := range n.Awaits {
			body.End = await.Start
			a.slice(on, body)
			body.Start = await.End
		}
		body.End, body.GivenUp = n.End, rec.runsOn
		if rec.workedUntil != 0 {
			body.End = a.from.instant(rec.workedUntil)
		}
		a.slice(on, body)
	}
}

// drawCalls gives each call the first lane of its connection that is free, and draws it there.
func (a *assembly) drawCalls() {
	slices.SortStableFunc(a.calls, func(x, y *call) int { return cmp.Compare(x.Start, y.Start) })
	ends := map[trackKey][]time.Duration{} // of the lanes of each connection
	for _, c := range a.calls {
		lanes := ends[c.on]
		lane := slices.IndexFunc(lanes, func(end time.Duration) bool { return end <= c.Start })
		if lane < 0 {
			lane, lanes = len(lanes), append(lanes, 0)
			ends[c.on] = lanes
		}
		lanes[lane], c.on.lane = c.End, lane
		a.slice(c.on, c.Slice)
		if c.asked < 0 {
			continue
		}
		kind, body := FlowKind(c.on.kind), a.nodes[c.Node].on // The kinds of connections and of their flows have the same names.
		points := []Point{a.point(Asked, body, c.asked), a.point(Sent, c.on, c.Start)}
		if c.resumed >= 0 {
			points = append(points, a.point(Replied, c.on, c.End), a.point(Resumed, body, c.resumed))
		}
		a.flow(kind, c.Node, points...)
	}
}

// track returns the index of a track, which it adds if it is new.
func (a *assembly) track(key trackKey) int {
	if k, ok := a.tracks[key]; ok {
		return k
	}
	t := Track{Kind: key.kind, Number: key.number, Lane: key.lane, Slices: []Slice{}}
	switch key.kind {
	case LoopTrack:
		t.Name = "Loop"
	case RequestTrack:
		t.Name = "Request"
	case CPUTrack:
		t.Name = fmt.Sprintf("CPU %d", key.number)
	case IOTrack:
		t.Name = fmt.Sprintf("I/O %d", key.number)
	case RedisTrack, HTTPTrack:
		t.Endpoint = a.from.Graph.Registry.EndpointAt(key.endpoint).ID
		t.Name = fmt.Sprintf("%s #%d", t.Endpoint, key.number)
		if key.lane > 0 {
			t.Name += fmt.Sprintf(" lane %d", key.lane)
		}
	}
	a.tracks[key] = len(a.trace.Tracks)
	a.trace.Tracks = append(a.trace.Tracks, t)
	return a.tracks[key]
}

// slice adds a slice to a track.
func (a *assembly) slice(on trackKey, s Slice) {
	t := &a.trace.Tracks[a.track(on)]
	t.Slices = append(t.Slices, s)
}

func (a *assembly) point(step Step, on trackKey, at time.Duration) Point {
	return Point{step, a.track(on), at}
}

func (a *assembly) flow(kind FlowKind, node int, points ...Point) {
	a.trace.Flows = append(a.trace.Flows, Flow{kind, node, points})
}

// arrange puts tracks, slices and flows into their order.
func (a *assembly) arrange() {
	keys := slices.SortedFunc(maps.Keys(a.tracks), func(x, y trackKey) int {
		return cmp.Or(cmp.Compare(trackOrder[x.kind], trackOrder[y.kind]), cmp.Compare(x.endpoint, y.endpoint), cmp.Compare(x.number, y.number), cmp.Compare(x.lane, y.lane))
	})
	found, index := a.trace.Tracks, make([]int, len(keys)) // the index of each by the one until now
	a.trace.Tracks = make([]Track, len(keys))
	for k, key := range keys {
		t := found[a.tracks[key]]
		slices.SortStableFunc(t.Slices, func(x, y Slice) int {
			return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
		})
		t.Slices = withoutEmpty(t.Slices)
		index[a.tracks[key]], a.trace.Tracks[k] = k, t
	}
	for i := range a.trace.Nodes {
		if k, drawn := a.tracks[a.nodes[i].on]; drawn {
			a.trace.Nodes[i].Track = index[k]
		}
	}
	for _, f := range a.trace.Flows {
		for i := range f.Points {
			f.Points[i].Track = index[f.Points[i].Track]
		}
	}
	slices.SortStableFunc(a.trace.Flows, func(x, y Flow) int { return cmp.Compare(x.Points[0].At, y.Points[0].At) })
}

// trackOrder is the order of the kinds of tracks.
var trackOrder = map[TrackKind]int{LoopTrack: 0, RequestTrack: 0, CPUTrack: 1, IOTrack: 2, RedisTrack: 3, HTTPTrack: 4}

// withoutEmpty leaves out empty slices of the engine that touch another slice.
func withoutEmpty(all []Slice) []Slice {
	kept := all[:0:0]
	for i, s := range all {
		if s.Kind == EngineSlice && s.Start == s.End &&
			(len(kept) > 0 && kept[len(kept)-1].End == s.Start || i+1 < len(all) && all[i+1].Start == s.End) {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}
