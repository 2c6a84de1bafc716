package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// Trace assembles the trace of a recording.
func (r *Recording) Trace() *Trace {
	a := &assembly{
		from: r, tracks: map[trackKey]*Track{}, nodes: make([]nodeAssembly, len(r.nodes)),
		trace: &Trace{
			Version: Version, TraceID: r.ID(), RequestID: r.RequestID, At: r.At, Plan: r.Graph.Name, Engine: r.Engine, Scheduling: r.Scheduling,
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

// assembly is a Trace under construction. One goroutine at a time.
type assembly struct {
	from   *Recording
	trace  *Trace
	main   thread
	nodes  []nodeAssembly
	tracks map[trackKey]*Track
	calls  []call
	flows  []flow
}

// nodeAssembly is what is known of a node while its events are replayed.
type nodeAssembly struct {
	open      []int         // its calls that are not answered, in order: indices in assembly.calls
	stale     int           // of open, those that were not answered when it was resumed
	wokeAt    time.Duration // the last time that it was resumed
	asked     time.Duration // the last time that it suspended for something new
	awaiting  bool          // it has not been resumed since
	job       []pointAt     // points of its offload flow so far
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
	lane     int
	asked    time.Duration // -1: nobody waited for it
	resumed  time.Duration // -1: nobody went on with it
}

// pointAt is a Point whose track has no index yet.
type pointAt struct {
	step  Step
	track trackKey
	at    time.Duration
}

type flow struct {
	kind   FlowKind
	node   int
	points []pointAt
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
	plan.OnErrorPartial: EmptyStandIn, plan.OnErrorFallback: FallbackStandIn,
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

func (a *assembly) track(key trackKey) *Track {
	t := a.tracks[key]
	if t == nil {
		t = &Track{Kind: key.kind, Number: key.number, Lane: key.lane, Slices: []Slice{}}
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
			t.Endpoint = a.from.Graph.Registry.Endpoints()[key.endpoint].ID
			t.Name = fmt.Sprintf("%s #%d", t.Endpoint, key.number)
			if key.lane > 0 {
				t.Name += fmt.Sprintf(" lane %d", key.lane)
			}
		}
		a.tracks[key] = t
	}
	return t
}

// replay goes through the events. The engine's thread runs one thing from each of its events to the next.
func (a *assembly) replay() {
	a.track(a.mainKey())
	for i := range a.from.events {
		e := &a.from.events[i]
		at, node := a.from.instant(e.at), int(e.node)
		switch e.kind {
		case EngineEntered:
			a.main.run(a, -1, at)
		case EngineLeft:
			a.main.stop(a, at)
		case NodeStarted:
			a.main.run(a, node, at)
		case NodeEnded:
			a.settle(node, at)
			if a.main.on && a.main.node == node {
				a.main.run(a, -1, at)
			}
		case Suspended:
			a.suspend(node, at, e)
		case CoroutineResumed:
			a.resume(node, at)
		case CommandSent:
			a.nodes[node].open = append(a.nodes[node].open, len(a.calls))
			a.calls = append(a.calls, call{
				slice:    Slice{Kind: CallSlice, Node: node, Start: at, Commands: int(e.b), Sent: int(e.arg)},
				endpoint: int(e.endpoint), conn: int(e.a), asked: -1, resumed: -1,
			})
			if a.nodes[node].awaiting {
				a.ask(node)
			}
		case ReplyReceived:
			a.reply(node, at, e)
		case TimerFired:
			timer := Timer{Kind: DeadlineTimer, Node: node, Due: a.from.instant(clock.Time(e.arg)), Fired: at}
			if e.is(ofTimer) {
				timer.Kind = SleepTimer
			}
			a.trace.Timers = append(a.trace.Timers, timer)
		case OffloadSubmitted:
			a.nodes[node].job = []pointAt{{Submitted, a.mainKey(), at}}
		case OffloadStarted:
			a.jobPoint(node, Started, a.key(node), at)
		case OffloadPosted:
			a.jobPoint(node, Posted, a.key(node), at)
		case OffloadReturned:
			a.jobPoint(node, Resumed, a.mainKey(), at)
		}
		if e.is(suspends) {
			a.suspend(node, at, e)
		}
		if e.is(resumes) {
			a.resume(node, at)
		}
		if e.is(leaves) {
			a.main.stop(a, at)
		}
	}
	a.main.stop(a, max(a.main.since, a.from.instant(a.from.cut))) // Only a dropped event leaves it running.
	for i := range a.nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			a.settle(i, n.End) // if its end was dropped, or was before a deadline that it did not know
		}
		if job := a.nodes[i].job; len(job) > 1 {
			a.flows = append(a.flows, flow{OffloadFlow, i, job})
		}
	}
}

// run has the thread go over to something else.
func (t *thread) run(a *assembly, node int, at time.Duration) {
	t.stop(a, at)
	t.on, t.node, t.since = true, node, at
}

// stop ends what the thread runs.
func (t *thread) stop(a *assembly, at time.Duration) {
	if !t.on {
		return
	}
	t.on = false
	s := Slice{Kind: NodeSlice, Node: t.node, Start: t.since, End: at}
	if t.node < 0 {
		s.Kind = EngineSlice
	}
	main := a.track(a.mainKey())
	main.Slices = append(main.Slices, s)
}

func (a *assembly) jobPoint(node int, step Step, track trackKey, at time.Duration) {
	if job := a.nodes[node].job; len(job) > 0 {
		a.nodes[node].job = append(job, pointAt{step, track, at})
	}
}

func (a *assembly) suspend(node int, at time.Duration, e *event) {
	n, state := &a.trace.Nodes[node], &a.nodes[node]
	state.awaiting, state.wasAsleep = true, e.is(ofTimer)
	if more := !e.is(ofTimer|ofFunction) && e.b == 0; !more { // It waits for something else than further parts of its call.
		state.asked = at
		a.giveUp(node, state.stale, state.wokeAt)
	}
	a.ask(node)
	await := Await{For: ForRedis, Start: at, End: at, Commands: int(e.b)}
	switch {
	case e.is(ofTimer):
		await.For = ForTimer
	case e.is(ofHTTP):
		await.For = ForHTTP
	case e.is(ofFunction):
		await.For = ForFunction
	}
	n.Awaits = append(n.Awaits, await)
	switch {
	case !a.onMain(node):
	case a.from.Engine == Reactor:
		a.main.run(a, -1, at)
	default:
		a.main.stop(a, at) // It blocks.
	}
}

func (a *assembly) resume(node int, at time.Duration) {
	state := &a.nodes[node]
	a.wake(node, at)
	if state.wasAsleep {
		key := a.key(node)
		a.flows = append(a.flows, flow{TimerFlow, node, []pointAt{{Asked, key, state.asked}, {Resumed, key, at}}})
	}
	for _, c := range state.replied {
		a.calls[c].resumed = at
	}
	state.replied = state.replied[:0]
	if a.onMain(node) {
		a.main.run(a, node, at)
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
func (a *assembly) reply(node int, at time.Duration, e *event) {
	state := &a.nodes[node]
	for k, c := range state.open {
		if call := &a.calls[c]; call.endpoint == int(e.endpoint) && call.conn == int(e.a) {
			call.slice.End, call.slice.Received = at, int(e.arg)
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
		n := &a.trace.Nodes[i]
		rec := &a.from.nodes[i]
		if !n.Ran() || a.onMain(i) || !rec.worked {
			continue
		}
		t := a.track(a.key(i))
		since, until := n.Start, n.End
		if rec.workedUntil != 0 {
			until = a.from.instant(rec.workedUntil)
		}
		for _, await := range n.Awaits {
			t.Slices = append(t.Slices, Slice{Kind: NodeSlice, Node: i, Start: since, End: await.Start})
			since = await.End
		}
		t.Slices = append(t.Slices, Slice{Kind: NodeSlice, Node: i, Start: since, End: until, GivenUp: rec.runsOn})
	}
}

// lanes gives each call the first lane of its connection that is free, and draws it there.
func (a *assembly) lanes() {
	slices.SortStableFunc(a.calls, func(x, y call) int { return cmp.Compare(x.slice.Start, y.slice.Start) })
	type connection struct{ endpoint, conn int }
	ends := map[connection][]time.Duration{}
	for i := range a.calls {
		c := &a.calls[i]
		key := connection{c.endpoint, c.conn}
		for c.lane = 0; c.lane < len(ends[key]) && ends[key][c.lane] > c.slice.Start; c.lane++ {
		}
		if c.lane == len(ends[key]) {
			ends[key] = append(ends[key], 0)
		}
		ends[key][c.lane] = c.slice.End
		track, flowKind := RedisTrack, RedisFlow
		if a.from.Graph.Registry.Endpoints()[c.endpoint].Kind == registry.HTTP {
			track, flowKind = HTTPTrack, HTTPFlow
		}
		on := trackKey{kind: track, endpoint: c.endpoint, number: c.conn, lane: c.lane}
		t := a.track(on)
		t.Slices = append(t.Slices, c.slice)
		body := a.key(c.slice.Node)
		if c.asked < 0 {
			continue
		}
		f := flow{flowKind, c.slice.Node, []pointAt{{Asked, body, c.asked}, {Sent, on, c.slice.Start}}}
		if c.resumed >= 0 {
			f.points = append(f.points, pointAt{Replied, on, c.slice.End}, pointAt{Resumed, body, c.resumed})
		}
		a.flows = append(a.flows, f)
	}
}

// arrange puts tracks and flows into their order, and gives tracks their indices.
func (a *assembly) arrange() {
	keys := make([]trackKey, 0, len(a.tracks))
	for key := range a.tracks {
		keys = append(keys, key)
	}
	order := map[TrackKind]int{LoopTrack: 0, RequestTrack: 0, CPUTrack: 1, IOTrack: 2, RedisTrack: 3, HTTPTrack: 4}
	slices.SortFunc(keys, func(x, y trackKey) int {
		return cmp.Or(cmp.Compare(order[x.kind], order[y.kind]), cmp.Compare(x.endpoint, y.endpoint), cmp.Compare(x.number, y.number), cmp.Compare(x.lane, y.lane))
	})
	index := map[trackKey]int{}
	for i, key := range keys {
		index[key] = i
		t := a.tracks[key]
		slices.SortStableFunc(t.Slices, func(x, y Slice) int {
			return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
		})
		t.Slices = withoutEmpty(t.Slices)
		a.trace.Tracks = append(a.trace.Tracks, *t)
	}
	for i := range a.trace.Nodes {
		if n := &a.trace.Nodes[i]; n.Ran() {
			if t, ok := index[a.key(i)]; ok {
				n.Track = t
			}
		}
	}
	for _, f := range a.flows {
		points := make([]Point, len(f.points))
		for i, p := range f.points {
			points[i] = Point{Step: p.step, Track: index[p.track], At: p.at}
		}
		a.trace.Flows = append(a.trace.Flows, Flow{Kind: f.kind, Node: f.node, Points: points})
	}
	slices.SortStableFunc(a.trace.Flows, func(x, y Flow) int { return cmp.Compare(x.Points[0].At, y.Points[0].At) })
}

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
