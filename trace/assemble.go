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
		from: r, tracks: map[trackKey]int{}, nodes: make([]nodeAssembly, len(r.nodes)),
		trace: &Trace{
			Version: Version, TraceID: r.ID(), RequestID: r.RequestID, At: r.At, Plan: r.Graph.Name, PlanVersion: r.PlanVersion, Engine: r.Engine, Scheduling: r.Scheduling,
			Request: Request{Begun: r.instant(r.Begun), QueueDelay: r.QueueDelay, Ended: r.instant(r.Ended)},
			Nodes:   make([]Node, len(r.nodes)), Tracks: []Track{}, Flows: []Flow{}, Timers: []Timer{}, Dropped: r.Dropped,
		},
	}
	if r.Err != nil {
		a.trace.Request.Error = r.Err.Error()
	}
	for i := range r.nodes {
		a.node(i)
	}
	for _, e := range r.errors {
		n := &a.trace.Nodes[e.node]
		n.Error, n.Dropped = e.err.Error(), e.dropped
	}
	for _, c := range r.cached {
		n := &a.trace.Nodes[c.node]
		n.Cached, n.CachedAge = c.values, c.age
	}
	a.trace.Request.Degraded = r.Err == nil && len(r.errors) > 0
	for i := range a.trace.Nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			n.Ready = a.trace.ready(n)
		}
	}
	if r.Detail == Full {
		a.replay()
		a.workers()
		a.lanes()
	}
	a.arrange()
	return a.trace
}

// instant returns the time since the arrival.
func (r *Recording) instant(t clock.Time) time.Duration { return t.Sub(r.Arrived) }

// assembly is a Trace under construction. Until arrange its tracks are in the order in which they were found. One goroutine at a time.
type assembly struct {
	from   *Recording
	trace  *Trace
	main   thread
	nodes  []nodeAssembly
	tracks map[trackKey]int // indices in trace.Tracks
	calls  []call
}

// nodeAssembly is what is known of a node while its events are replayed.
type nodeAssembly struct {
	open      []int         // its calls that are not answered, in order: indices in assembly.calls
	stale     int           // of open, those that were not answered when it was resumed
	wokeAt    time.Duration // the last time that it was resumed
	asked     time.Duration // the last time that it suspended for something new
	awaiting  bool          // it has not been resumed since
	job       []Point       // of its offload flow so far
	replied   []int         // its calls that were answered since it suspended
	wasAsleep bool          // it suspended for a timer
}

type trackKey struct {
	kind         TrackKind
	endpoint     int
	number, lane int
}

// thread is the engine's thread, as far as it was replayed.
type thread struct {
	on    bool // something runs on it
	node  int  // -1: the engine
	since time.Duration
}

// call is one time that commands were on a connection.
type call struct {
	slice    Slice
	endpoint int
	conn     int
	asked    time.Duration // -1: nobody waited for it
	resumed  time.Duration // -1: nobody went on with it
}

// node fills in what the plan and the record of a node say.
func (a *assembly) node(i int) {
	from, rec, n := a.from.Graph.Nodes[i], &a.from.nodes[i], &a.trace.Nodes[i]
	*n = Node{SpanID: int64(i) + 1, ID: from.ID, Index: i, Op: from.Op, Label: from.Trace, Output: from.IsOutput, SourceSpan: from.SourceSpan, Status: Skipped, Track: -1, Parent: -1,
		Inputs: a.inputs(from)}
	if rec.place == 0 {
		return
	}
	at := a.from.instant
	n.Place, n.Start, n.End = placeNames[rec.place], at(rec.start), at(rec.end)
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

// mainKey is the track of the engine's own thread.
func (a *assembly) mainKey() trackKey {
	if a.from.Engine == Reactor {
		return trackKey{kind: LoopTrack}
	}
	return trackKey{kind: RequestTrack}
}

// key returns the track on which the body of a node runs.
func (a *assembly) key(node int) trackKey {
	switch rec := &a.from.nodes[node]; placeNames[rec.place] {
	case OnPool:
		return trackKey{kind: CPUTrack, number: int(rec.worker)}
	case OnIOWorker:
		return trackKey{kind: IOTrack, number: int(rec.worker)}
	default:
		return a.mainKey()
	}
}

// onMain reports whether the body of a node runs on the engine's own thread.
func (a *assembly) onMain(node int) bool { return a.key(node) == a.mainKey() }

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
func (a *assembly) slice(key trackKey, s Slice) {
	t := &a.trace.Tracks[a.track(key)]
	t.Slices = append(t.Slices, s)
}

func (a *assembly) point(step Step, key trackKey, at time.Duration) Point {
	return Point{step, a.track(key), at}
}

func (a *assembly) flow(kind FlowKind, node int, points ...Point) {
	a.trace.Flows = append(a.trace.Flows, Flow{kind, node, points})
}

// replay goes through the events. The engine's thread runs one thing from each of its events to the next.
func (a *assembly) replay() {
	a.track(a.mainKey())
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
			if a.main.on && a.main.node == node {
				a.run(-1, at)
			}
		case Suspended:
			a.suspend(&e, at)
		case CoroutineResumed:
			a.resume(node, at)
		case CommandSent:
			a.nodes[node].open = append(a.nodes[node].open, len(a.calls))
			a.calls = append(a.calls, call{
				slice:    Slice{Kind: CallSlice, Node: node, Start: at, Commands: e.Commands, Sent: e.Bytes},
				endpoint: e.Endpoint, conn: e.Connection, asked: -1, resumed: -1,
			})
			if a.nodes[node].awaiting {
				a.ask(node)
			}
		case ReplyReceived:
			a.reply(&e, at)
		case TimerFired:
			timer := Timer{Kind: DeadlineTimer, Node: node, Due: a.from.instant(e.Due), Fired: at}
			if e.Reason == ForTimer {
				timer.Kind = SleepTimer
			}
			a.trace.Timers = append(a.trace.Timers, timer)
		case OffloadSubmitted:
			a.nodes[node].job = []Point{a.point(Submitted, a.mainKey(), at)}
		case OffloadStarted:
			a.jobPoint(node, Started, a.key(node), at)
		case OffloadPosted:
			a.jobPoint(node, Posted, a.key(node), at)
		case OffloadReturned:
			a.jobPoint(node, Resumed, a.mainKey(), at)
		}
	}
	a.stop(max(a.main.since, a.from.instant(a.from.cut))) // Only a dropped event leaves it running.
	for i := range a.nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			a.settle(i, n.End) // if its end was dropped, or was before a deadline that it did not know
		}
		if job := a.nodes[i].job; len(job) > 1 {
			a.flow(OffloadFlow, i, job...)
		}
	}
}

// run has the engine's thread go over to something else.
func (a *assembly) run(node int, at time.Duration) {
	a.stop(at)
	a.main = thread{true, node, at}
}

// stop ends what the engine's thread runs.
func (a *assembly) stop(at time.Duration) {
	if !a.main.on {
		return
	}
	a.main.on = false
	s := Slice{Kind: NodeSlice, Node: a.main.node, Start: a.main.since, End: at}
	if s.Node < 0 {
		s.Kind = EngineSlice
	}
	a.slice(a.mainKey(), s)
}

func (a *assembly) jobPoint(node int, step Step, track trackKey, at time.Duration) {
	if job := a.nodes[node].job; len(job) > 0 {
		a.nodes[node].job = append(job, a.point(step, track, at))
	}
}

func (a *assembly) suspend(e *Event, at time.Duration) {
	node := e.Node
	n, state := &a.trace.Nodes[node], &a.nodes[node]
	state.awaiting, state.wasAsleep = true, e.Reason == ForTimer
	if e.Reason != ForRedis || e.Commands > 0 { // It waits for something else than further parts of its call.
		state.asked = at
		a.giveUp(node, state.stale, state.wokeAt)
	}
	a.ask(node)
	n.Awaits = append(n.Awaits, Await{For: e.Reason, Start: at, End: at, Commands: e.Commands})
	switch {
	case !a.onMain(node):
	case a.from.Engine == Reactor:
		a.run(-1, at)
	default:
		a.stop(at) // It blocks.
	}
}

func (a *assembly) resume(node int, at time.Duration) {
	state := &a.nodes[node]
	a.wake(node, at)
	if state.wasAsleep {
		key := a.key(node)
		a.flow(TimerFlow, node, a.point(Asked, key, state.asked), a.point(Resumed, key, at))
	}
	for _, c := range state.replied {
		a.calls[c].resumed = at
	}
	state.replied = state.replied[:0]
	if a.onMain(node) {
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
	state.stale, state.wokeAt = len(state.open), at
}

// ask gives the open calls of a node that waits for them the instant since when it does. A call without one has not been
// waited for, as far as the events go.
func (a *assembly) ask(node int) {
	for _, c := range a.nodes[node].open {
		if call := &a.calls[c]; call.asked < 0 {
			call.asked = min(a.nodes[node].asked, call.slice.Start)
		}
	}
}

// giveUp ends the first n calls that a node has asked for and not got.
func (a *assembly) giveUp(node, n int, at time.Duration) {
	state := &a.nodes[node]
	for _, c := range state.open[:n] {
		a.calls[c].slice.End, a.calls[c].slice.GivenUp = max(at, a.calls[c].slice.Start), true
	}
	state.open, state.stale = slices.Delete(state.open, 0, n), 0
}

// settle ends all that a node was waiting for.
func (a *assembly) settle(node int, at time.Duration) {
	a.wake(node, at)
	a.giveUp(node, len(a.nodes[node].open), at)
}

// reply ends the oldest call of a node on that connection.
func (a *assembly) reply(e *Event, at time.Duration) {
	state := &a.nodes[e.Node]
	for k, c := range state.open {
		if call := &a.calls[c]; call.endpoint == e.Endpoint && call.conn == e.Connection {
			call.slice.End, call.slice.Received = at, e.Bytes
			state.open = slices.Delete(state.open, k, k+1)
			if k < state.stale {
				state.stale--
			}
			state.replied = append(state.replied, c)
			return
		}
	}
}

// workers draws the bodies that ran on workers, without the times that they waited.
func (a *assembly) workers() {
	for i := range a.trace.Nodes {
		n, rec := &a.trace.Nodes[i], &a.from.nodes[i]
		if !n.Ran() || a.onMain(i) || !rec.worked {
			continue
		}
		since, until := n.Start, n.End
		if rec.workedUntil != 0 {
			until = a.from.instant(rec.workedUntil)
		}
		for _, await := range n.Awaits {
			a.slice(a.key(i), Slice{Kind: NodeSlice, Node: i, Start: since, End: await.Start})
			since = await.End
		}
		a.slice(a.key(i), Slice{Kind: NodeSlice, Node: i, Start: since, End: until, GivenUp: rec.runsOn})
	}
}

// lanes gives each call the first lane of its connection that is free, and draws it there.
func (a *assembly) lanes() {
	slices.SortStableFunc(a.calls, func(x, y call) int { return cmp.Compare(x.slice.Start, y.slice.Start) })
	ends := map[trackKey][]time.Duration{} // by connection
	for i := range a.calls {
		c := &a.calls[i]
		on, kind := trackKey{kind: RedisTrack, endpoint: c.endpoint, number: c.conn}, RedisFlow
		if a.from.Graph.Registry.EndpointAt(c.endpoint).Kind == registry.HTTP {
			on.kind, kind = HTTPTrack, HTTPFlow
		}
		lanes := ends[on]
		lane := slices.IndexFunc(lanes, func(end time.Duration) bool { return end <= c.slice.Start })
		if lane < 0 {
			lane, lanes = len(lanes), append(lanes, 0)
		}
		lanes[lane] = c.slice.End
		ends[on], on.lane = lanes, lane
		a.slice(on, c.slice)
		if c.asked < 0 {
			continue
		}
		body := a.key(c.slice.Node)
		points := []Point{a.point(Asked, body, c.asked), a.point(Sent, on, c.slice.Start)}
		if c.resumed >= 0 {
			points = append(points, a.point(Replied, on, c.slice.End), a.point(Resumed, body, c.resumed))
		}
		a.flow(kind, c.slice.Node, points...)
	}
}

// arrange puts tracks and flows into their order.
func (a *assembly) arrange() {
	keys := slices.Collect(maps.Keys(a.tracks))
	slices.SortFunc(keys, func(x, y trackKey) int {
		return cmp.Or(cmp.Compare(trackOrder[x.kind], trackOrder[y.kind]), cmp.Compare(x.endpoint, y.endpoint), cmp.Compare(x.number, y.number), cmp.Compare(x.lane, y.lane))
	})
	found := a.trace.Tracks
	a.trace.Tracks = make([]Track, len(keys))
	index := make([]int, len(keys)) // by the index until now
	for k, key := range keys {
		index[a.tracks[key]] = k
		t := found[a.tracks[key]]
		slices.SortStableFunc(t.Slices, func(x, y Slice) int {
			return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
		})
		t.Slices = withoutEmpty(t.Slices)
		a.trace.Tracks[k] = t
	}
	for i := range a.trace.Nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			if k, ok := a.tracks[a.key(i)]; ok {
				n.Track = index[k]
			}
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
