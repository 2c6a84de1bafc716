package trace

import (
	"math/rand/v2"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// A Recorder takes down what happens to one request. It is the one place that makes events. Each call reads the
// clock itself unless the caller has just read it.
//
// What happens to nodes is kept per node and never lost. All else is a list of events, which is bounded: once an event
// does not fit, it and all later ones are dropped and counted, so that what is there has no holes.
//
// One goroutine at a time: the loop, or who holds the lock of the request. A worker that blocks has a Recorder of its
// own for its node, and Merge takes it over.
type Recorder struct {
	clock  clock.Clock
	budget *Budget
	detail Detail

	graph          *plan.Graph
	engine, mode   string
	id             [2]uint64
	arrived, begun clock.Time
	nodes          []nodeRecord
	events         []event
	errors         []nodeError // of the nodes that failed
	finished       Recording   // what Finish has returned
	room           int         // taken from budget
	dropped        int
	cut            clock.Time // the instant of the first dropped event; zero: none, or a worker's
	inside         bool       // the engine, or a body on its thread, works for the request
}

// nodeRecord is how a node ran. It has no pointers, as event has none.
type nodeRecord struct {
	place              placeCode
	worked             bool       // a worker began the body
	runsOn             bool       // the body runs on when the node settles
	failed             bool       // its error is in Recorder.errors
	timedOut           bool       // as Outcome has it
	queued, start, end clock.Time // queued is zero for a node that was in no queue
	workedUntil        clock.Time // the end of the body, if the node settled later; zero: the same
	worker             int32
	fused              int32
	parent, depth      int32
	rowsIn, rowsOut    int32
}

// placeCode is the index of a Place in placeNames.
type placeCode uint8

var placeNames = [...]Place{Nowhere, OnLoop, Inline, OnPool, OnIOWorker, OnGoroutine}

func (p Place) code() placeCode {
	for i, name := range placeNames {
		if p == name {
			return placeCode(i)
		}
	}
	panic("trace: no place " + string(p))
}

// nodeError is the error of a node that failed.
type nodeError struct {
	node int
	err  error
}

// NewRecorder returns a recorder that takes nothing down before Begin.
func NewRecorder(c clock.Clock, b *Budget) *Recorder { return &Recorder{clock: c, budget: b} }

// Begin prepares r for a request, and reuses its memory. engine and mode are Trace.Engine and Trace.Scheduling.
func (r *Recorder) Begin(d Detail, g *plan.Graph, engine, mode string, arrived clock.Time) {
	r.detail, r.graph, r.engine, r.mode, r.arrived = d, g, engine, mode, arrived
	r.id = [2]uint64{rand.Uint64(), rand.Uint64()}
	if cap(r.nodes) < len(g.Nodes) {
		r.nodes = make([]nodeRecord, len(g.Nodes))
	}
	r.nodes = r.nodes[:len(g.Nodes)]
	clear(r.nodes)
	r.begun, r.errors = 0, nil
	r.reset()
}

// BeginBody prepares r for the body of one node on a worker that blocks. Merge ends that.
func (r *Recorder) BeginBody(d Detail) {
	r.detail = d
	r.reset()
}

func (r *Recorder) reset() {
	r.events, r.room, r.dropped, r.cut, r.inside = r.events[:0], 0, 0, 0, false
}

// keepEvents and keepNodes are how many events and nodes an idle Recorder keeps room for: 8 KiB and 16 KiB.
const (
	keepEvents = 256
	keepNodes  = 256
)

// release gives back what the budget gave.
func (r *Recorder) release() {
	r.budget.give(r.room)
	r.room = 0
	if cap(r.events) > keepEvents {
		r.events = nil
	}
	r.events = r.events[:0]
	if cap(r.nodes) > keepNodes {
		r.nodes = nil
	}
}

func (r *Recorder) add(e event) {
	if len(r.events) == r.room && !r.grow(1) {
		if r.dropped == 0 {
			r.cut = e.at
		}
		r.dropped++
		return
	}
	r.events = append(r.events, e)
}

// grow makes room for n more events. False means that there is none, and will not be.
func (r *Recorder) grow(n int) bool {
	for r.room < len(r.events)+n {
		if r.dropped > 0 || r.room >= requestEvents || !r.budget.take() {
			return false
		}
		r.room += budgetChunk
	}
	return true
}

// Enter notes that the engine begins to work for the request. It does nothing if the engine does already.
func (r *Recorder) Enter() {
	if r.inside {
		return
	}
	r.EnterAt(r.clock.Now())
}

// EnterAt is Enter at an instant that was just read.
func (r *Recorder) EnterAt(now clock.Time) {
	if r.begun == 0 {
		r.begun = now
	}
	if !r.inside {
		r.inside = true
		r.detailed(event{kind: EngineEntered, node: -1, at: now})
	}
}

// Leave notes that the engine has done all that it can do for the request now.
func (r *Recorder) Leave() {
	if !r.inside {
		return
	}
	r.inside = false
	if r.detail < Full {
		return
	}
	if e := r.last(); e != nil && (e.kind == Suspended || e.suspends) {
		e.leaves = true // A body that has just suspended leaves nothing to do.
		return
	}
	r.add(event{kind: EngineLeft, node: -1, at: r.clock.Now()})
}

// detailed adds an event of the level Full.
func (r *Recorder) detailed(e event) {
	if r.detail >= Full {
		r.add(e)
	}
}

// last returns the last event, or nil if there is none, or if later ones were dropped.
func (r *Recorder) last() *event {
	if len(r.events) == 0 || r.dropped > 0 {
		return nil
	}
	return &r.events[len(r.events)-1]
}

// Spawn notes that a node will run there, and how many rows it reads.
func (r *Recorder) Spawn(node int, there Place, rows int) {
	r.nodes[node] = nodeRecord{place: there.code(), rowsIn: int32(rows), parent: -1}
}

// Unspawn takes Spawn back: the node does not run at all.
func (r *Recorder) Unspawn(node int) { r.nodes[node] = nodeRecord{} }

// Start notes that the body of a node begins on the engine's thread. The engine that has just begun to work has done
// nothing else yet.
func (r *Recorder) Start(node int) {
	if e := r.last(); e != nil && e.kind == EngineEntered {
		r.StartAt(node, e.at)
		return
	}
	r.StartAt(node, r.clock.Now())
}

// StartAt is Start at an instant that was just read.
func (r *Recorder) StartAt(node int, now clock.Time) {
	r.nodes[node].start = now
	r.inside = true
	r.detailed(event{kind: NodeStarted, node: int32(node), at: now})
}

// Outcome is how a node settled. Immutable.
type Outcome struct {
	Rows     int   // of its result
	Err      error // nil: it has a result
	TimedOut bool  // a deadline settled it
}

// End notes that a node has settled, just now or, if at is not zero, at that instant.
func (r *Recorder) End(node int, at clock.Time, o Outcome) {
	if at == 0 {
		at = r.clock.Now()
	}
	n := &r.nodes[node]
	if n.start == 0 {
		n.start = at
	}
	n.end = at
	if o.Err == nil {
		n.rowsOut = int32(o.Rows)
	} else {
		n.failed, n.timedOut = true, o.TimedOut
		r.errors = append(r.errors, nodeError{node, o.Err})
	}
	r.detailed(event{kind: NodeEnded, node: int32(node), at: at})
}

// Follow notes that a node followed another one directly, as the one of that depth.
func (r *Recorder) Follow(node, parent, depth int) {
	r.nodes[node].parent, r.nodes[node].depth = int32(parent), int32(depth)
}

// Submit notes that a job is handed to a pool. The node is its first of so many.
func (r *Recorder) Submit(node int, at clock.Time, fused int) {
	r.nodes[node].queued = at
	if fused > 1 {
		r.nodes[node].fused = int32(fused)
	}
	r.detailed(event{kind: OffloadSubmitted, node: int32(node), at: at})
}

// Worked notes when a worker began the body of a node.
func (r *Recorder) Worked(node, worker int, start clock.Time) {
	n := &r.nodes[node]
	n.worked, n.worker, n.start = true, int32(worker), start
}

// WorkedUntil notes that the worker was done with a node that is about to settle for another reason.
func (r *Recorder) WorkedUntil(node int, at clock.Time) { r.nodes[node].workedUntil = at }

// RunsOn notes that a worker still has the body of a node that is about to settle.
func (r *Recorder) RunsOn(node int) { r.nodes[node].runsOn = true }

// Fuse notes that a node ran as part of the job of the one before it in its chain, and how many rows it read.
func (r *Recorder) Fuse(node, parent, depth, rows int) {
	before := &r.nodes[parent]
	r.nodes[node] = nodeRecord{place: before.place, worker: before.worker, fused: before.fused, parent: int32(parent), depth: int32(depth), rowsIn: int32(rows)}
}

// Started notes that a worker began the job of which a node is the first.
func (r *Recorder) Started(node, worker int, at clock.Time) {
	r.detailed(event{kind: OffloadStarted, node: int32(node), at: at, a: int32(worker)})
}

// Posted notes that the worker had done the job of which a node is the first.
func (r *Recorder) Posted(node, worker int, at clock.Time) {
	r.detailed(event{kind: OffloadPosted, node: int32(node), at: at, a: int32(worker)})
}

// Returned notes that the engine takes the result of the job of which a node is the first.
func (r *Recorder) Returned(node int) {
	if r.detail < Full {
		return
	}
	at := r.clock.Now()
	r.EnterAt(at)
	r.add(event{kind: OffloadReturned, node: int32(node), at: at})
}

// Await notes that a body waits for the replies to so many commands. A body whose commands have just left has waited
// since then.
func (r *Recorder) Await(node, commands int) {
	if r.detail < Full {
		return
	}
	if e := r.last(); e != nil && e.kind == CommandSent && e.node == int32(node) && int(e.b) == commands {
		e.suspends = true
		return
	}
	r.add(event{kind: Suspended, node: int32(node), at: r.clock.Now(), b: int32(commands)})
}

// AwaitTimer notes that a body waits for a timer that is due then.
func (r *Recorder) AwaitTimer(node int, due clock.Time) {
	if r.detail >= Full {
		r.add(event{kind: Suspended, timer: true, node: int32(node), at: r.clock.Now(), arg: int64(due)})
	}
}

// Resume notes that a body goes on. It goes on with a reply, or because of a timer, as soon as that is there.
func (r *Recorder) Resume(node int) {
	r.inside = true
	if r.detail < Full {
		return
	}
	if e := r.last(); e != nil && (e.kind == ReplyReceived || e.kind == TimerFired) && e.node == int32(node) {
		e.resumes = true
		return
	}
	r.add(event{kind: CoroutineResumed, node: int32(node), at: r.clock.Now()})
}

// Sent notes that commands of a node left on a connection.
func (r *Recorder) Sent(node, endpoint, conn, commands, bytes int) {
	r.call(CommandSent, node, endpoint, conn, commands, bytes)
}

// Replied notes that the replies to them were read.
func (r *Recorder) Replied(node, endpoint, conn, commands, bytes int) {
	r.call(ReplyReceived, node, endpoint, conn, commands, bytes)
}

func (r *Recorder) call(kind EventKind, node, endpoint, conn, commands, bytes int) {
	if r.detail >= Full {
		r.add(event{kind: kind, endpoint: uint16(endpoint), node: int32(node), at: r.clock.Now(), arg: int64(bytes), a: int32(conn), b: int32(commands)})
	}
}

// Fired notes that a timer of a node fired: the end of a sleep, or its deadline.
func (r *Recorder) Fired(node int, sleep bool, due clock.Time) {
	if r.detail >= Full {
		r.add(event{kind: TimerFired, timer: sleep, node: int32(node), at: r.clock.Now(), arg: int64(due)})
	}
}

// Merge takes over what the Recorder of a worker has of its body, all of it or nothing, and ends its use.
func (r *Recorder) Merge(body *Recorder) {
	if body.dropped > 0 || !r.grow(len(body.events)) {
		r.dropped += len(body.events) + body.dropped
	} else {
		r.events = append(r.events, body.events...)
	}
	body.release()
}

// Finish ends the recording of a request that ends now. err is the error of its answer. The Recording is the Recorder's
// own memory, up to Free: only what somebody keeps is copied.
func (r *Recorder) Finish(err error) *Recording {
	now := r.clock.Now()
	if r.inside {
		r.inside = false
		r.detailed(event{kind: EngineLeft, node: -1, at: now})
	}
	r.finished = Recording{
		Graph: r.graph, Engine: r.engine, Scheduling: r.mode, Detail: r.detail, Err: err,
		Arrived: r.arrived, Begun: r.begun, Ended: now, Dropped: r.dropped,
		id: r.id, cut: r.cut, nodes: r.nodes, events: r.events, errors: r.errors,
	}
	return &r.finished
}

// Free ends the use of what Finish has returned. The Recorder is ready for the next Begin.
func (r *Recorder) Free() {
	r.finished, r.graph, r.errors = Recording{}, nil, nil
	r.release()
}
