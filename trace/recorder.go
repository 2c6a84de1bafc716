package trace

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// A Recorder takes down what happens to one request. It is the one place that makes events. Each call reads the
// clock itself unless the caller has just read it.
//
// Where one thing on the engine's thread ends and the next begins at once, one reading serves both: reading the clock is most
// of the price of recording.
//
// A recorder keeps the facts about nodes per node and never loses them. All else is a list of events, which is bounded: once an event
// does not fit, it and all later ones are dropped and counted, so that what is there has no holes.
//
// One goroutine at a time: the loop, or who holds the lock of the request. A worker that blocks has a Recorder of its
// own for its node, and Merge takes it over.
type Recorder struct {
	clock  clock.Clock
	turn   clock.Time // when the engine took over from the last body on its thread, or began; zero: it has done more since
	inside bool       // the engine, or a body on its thread, works for the request
	room   int        // taken from budget
	taken  Recording  // so far
	budget *Budget
	ids    *rand.PCG // a generator of its own, which costs a fifth of the common one
}

// nodeRecord is how a node ran. It has no pointers, as event has none, and fills one line of the processor's cache.
type nodeRecord struct {
	place              placeCode
	worked             bool // a worker began the body
	runsOn             bool // the body runs on when the node settles
	failed             bool // its error is in Recording.errors
	timedOut, late     bool // as Outcome has them
	instead            plan.OnError
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
	switch p {
	case OnLoop:
		return 1
	case Inline:
		return 2
	case OnPool:
		return 3
	case OnIOWorker:
		return 4
	case OnGoroutine:
		return 5
	default:
		panic("trace: no place " + string(p))
	}
}

// nodeError is the error of a node that failed, or why it lacks something.
type nodeError struct {
	node    int
	err     error
	dropped int
}

// NewRecorder returns a recorder that takes nothing down before Begin.
func NewRecorder(c clock.Clock, b *Budget) *Recorder {
	return &Recorder{clock: c, budget: b, ids: rand.NewPCG(rand.Uint64(), rand.Uint64())}
}

// Begin prepares r for a request, and reuses its memory. engine and mode are Trace.Engine and Trace.Scheduling.
func (r *Recorder) Begin(d Detail, g *plan.Graph, engine, mode string, arrived clock.Time) {
	t := &r.taken
	t.Detail, t.Graph, t.Engine, t.Scheduling, t.Arrived, t.Begun, t.QueueDelay = d, g, engine, mode, arrived, 0, 0
	t.id = [2]uint64{r.ids.Uint64(), r.ids.Uint64()}
	if cap(t.nodes) < len(g.Nodes) {
		t.nodes = make([]nodeRecord, len(g.Nodes))
	}
	t.nodes = t.nodes[:len(g.Nodes)]
	clear(t.nodes)
	r.reset()
}

// LetIn notes how long the request has waited to be let in. It follows Begin.
func (r *Recorder) LetIn(delay time.Duration) { r.taken.QueueDelay = delay }

// BeginBody prepares r for the body of one node on a worker that blocks. Merge ends that.
func (r *Recorder) BeginBody(d Detail) {
	r.taken.Detail = d
	r.reset()
}

func (r *Recorder) reset() {
	r.room, r.inside, r.turn = 0, false, 0
	r.taken.Dropped, r.taken.cut = 0, 0
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
	if cap(r.taken.events) > keepEvents {
		r.taken.events = nil
	}
	r.taken.events = r.taken.events[:0]
	if cap(r.taken.nodes) > keepNodes {
		r.taken.nodes = nil
	}
}

// add stores each field by itself: e travels in registers, and a copy of 16 bytes at once has to wait until the fields that it
// consists of have reached the cache, which took half of add.
func (r *Recorder) add(e event) {
	n := len(r.taken.events)
	if n == r.room && !r.grow(1) {
		if r.taken.Dropped == 0 {
			r.taken.cut = e.at
		}
		r.taken.Dropped++
		return
	}
	r.taken.events = r.taken.events[:n+1]
	to := &r.taken.events[n]
	to.kind, to.also, to.endpoint, to.node = e.kind, e.also, e.endpoint, e.node
	to.at, to.arg, to.a, to.b = e.at, e.arg, e.a, e.b
}

// grow makes room for n more events. False means that there is none, and will not be.
func (r *Recorder) grow(n int) bool {
	for r.room < len(r.taken.events)+n {
		if r.taken.Dropped > 0 || r.room >= requestEvents || !r.budget.take() {
			return false
		}
		r.room += budgetChunk
	}
	r.taken.events = slices.Grow(r.taken.events, r.room-len(r.taken.events))
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
	if r.taken.Begun == 0 {
		r.taken.Begun = now
	}
	r.turn = now
	if !r.inside {
		r.inside = true
		r.detailed(event{kind: EngineEntered, node: -1, at: now})
	}
}

// Turn returns when the engine's thread took over from the last body, if it has done next to nothing since. Otherwise it
// reads the clock.
func (r *Recorder) Turn() clock.Time {
	if r.turn != 0 {
		return r.turn
	}
	return r.clock.Now()
}

// Leave notes that the engine has done all that it can do for the request now. It returns the instant of that; zero: it was
// not recorded.
func (r *Recorder) Leave() clock.Time {
	if !r.inside {
		return 0
	}
	r.inside, r.turn = false, 0
	if r.taken.Detail < Full {
		return 0
	}
	if e := r.last(); e != nil && (e.kind == Suspended || e.is(suspends) || e.kind == NodeEnded) {
		e.also |= leaves // A body that has just suspended leaves nothing to do; one that has ended, next to nothing.
		return e.at
	}
	at := r.clock.Now()
	r.add(event{kind: EngineLeft, node: -1, at: at})
	return at
}

// detailed adds an event of the level Full.
func (r *Recorder) detailed(e event) {
	if r.taken.Detail >= Full {
		r.add(e)
	}
}

// last returns the last event, or nil if there is none, or if later ones were dropped.
func (r *Recorder) last() *event {
	if len(r.taken.events) == 0 || r.taken.Dropped > 0 {
		return nil
	}
	return &r.taken.events[len(r.taken.events)-1]
}

// Spawn notes that a node will run there, and how many rows it reads.
func (r *Recorder) Spawn(node int, there Place, rows int) {
	n := &r.taken.nodes[node] // Begin has cleared it.
	n.place, n.rowsIn, n.parent = there.code(), int32(rows), -1
}

// Unspawn takes Spawn back: the node does not run at all.
func (r *Recorder) Unspawn(node int) { r.taken.nodes[node] = nodeRecord{} }

// Start notes that the body of a node begins on the engine's thread.
func (r *Recorder) Start(node int) { r.StartAt(node, r.Turn()) }

// StartAt is Start at an instant that was just read.
func (r *Recorder) StartAt(node int, now clock.Time) {
	r.taken.nodes[node].start = now
	r.inside, r.turn = true, 0
	r.detailed(event{kind: NodeStarted, node: int32(node), at: now})
}

// Outcome is how a node settled. Immutable.
type Outcome struct {
	Rows     int          // of its result, or of what stands in for it
	Err      error        // nil: it has a result
	TimedOut bool         // a deadline settled it
	Late     bool         // the plan did not wait for it any longer
	Instead  plan.OnError // what the readers of a node that failed see; OnErrorFail: the request fails
	Lack     error        // why the result lacks something; nil: it does not
	Dropped  int          // rows that it lacks
}

// End notes that a node has settled, just now or, if at is not zero, at that instant.
func (r *Recorder) End(node int, at clock.Time, o Outcome) {
	if at == 0 {
		at = r.clock.Now()
	}
	n := &r.taken.nodes[node]
	if n.start == 0 {
		n.start = at
	}
	n.end = at
	n.rowsOut = int32(o.Rows)
	switch {
	case o.Err != nil:
		n.failed, n.timedOut, n.late, n.instead = true, o.TimedOut, o.Late, o.Instead
		r.taken.errors = append(r.taken.errors, nodeError{node: node, err: o.Err})
	case o.Lack != nil:
		r.taken.errors = append(r.taken.errors, nodeError{node, o.Lack, o.Dropped})
	}
	if n.worked { // The engine's thread went on at another instant.
		r.turn = 0
		return
	}
	r.turn = at
	r.detailed(event{kind: NodeEnded, node: int32(node), at: at})
}

// Follow notes that a node followed another one directly, as the one of that depth.
func (r *Recorder) Follow(node, parent, depth int) {
	r.taken.nodes[node].parent, r.taken.nodes[node].depth = int32(parent), int32(depth)
}

// Submit notes that a job was handed to a pool at that instant, which was just read. The node is its first of so many.
func (r *Recorder) Submit(node int, at clock.Time, fused int) {
	r.taken.nodes[node].queued, r.turn = at, at
	if fused > 1 {
		r.taken.nodes[node].fused = int32(fused)
	}
	r.detailed(event{kind: OffloadSubmitted, node: int32(node), at: at})
}

// Worked notes when a worker began the body of a node.
func (r *Recorder) Worked(node, worker int, start clock.Time) {
	n := &r.taken.nodes[node]
	n.worked, n.worker, n.start = true, int32(worker), start
}

// WorkedUntil notes that the worker was done with a node that is about to settle for another reason.
func (r *Recorder) WorkedUntil(node int, at clock.Time) { r.taken.nodes[node].workedUntil = at }

// RunsOn notes that a worker still has the body of a node that is about to settle.
func (r *Recorder) RunsOn(node int) { r.taken.nodes[node].runsOn = true }

// Fuse notes that a node ran as part of the job of the one before it in its chain, and how many rows it read.
func (r *Recorder) Fuse(node, parent, depth, rows int) {
	before := &r.taken.nodes[parent]
	r.taken.nodes[node] = nodeRecord{place: before.place, worker: before.worker, fused: before.fused, parent: int32(parent), depth: int32(depth), rowsIn: int32(rows)}
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
	if r.taken.Detail < Full {
		return
	}
	at := r.clock.Now()
	r.EnterAt(at)
	r.turn = 0
	r.add(event{kind: OffloadReturned, node: int32(node), at: at})
}

// Await notes that a body waits for the replies to so many commands. A body whose commands have just left has waited
// since then.
func (r *Recorder) Await(node, commands int) {
	if r.taken.Detail < Full {
		return
	}
	if e := r.last(); e != nil && e.kind == CommandSent && e.node == int32(node) && int(e.b) == commands {
		e.also |= suspends
		r.turn = e.at
		return
	}
	r.turn = r.clock.Now()
	r.add(event{kind: Suspended, node: int32(node), at: r.turn, b: int32(commands)})
}

// AwaitHTTP notes that a body waits for the answer of a service.
func (r *Recorder) AwaitHTTP(node int) {
	if r.taken.Detail >= Full {
		r.turn = r.clock.Now()
		r.add(event{kind: Suspended, also: ofHTTP, node: int32(node), at: r.turn, b: 1})
	}
}

// AwaitFunction notes that a body waits for a function on a goroutine of its own.
func (r *Recorder) AwaitFunction(node int) {
	if r.taken.Detail >= Full {
		r.turn = r.clock.Now()
		r.add(event{kind: Suspended, also: ofFunction, node: int32(node), at: r.turn})
	}
}

// AwaitTimer notes that a body waits for a timer that is due then.
func (r *Recorder) AwaitTimer(node int, due clock.Time) {
	if r.taken.Detail >= Full {
		r.turn = r.clock.Now()
		r.add(event{kind: Suspended, also: ofTimer, node: int32(node), at: r.turn, arg: int64(due)})
	}
}

// Resume notes that a body goes on. It goes on with a reply, or because of a timer, as soon as that is there.
func (r *Recorder) Resume(node int) {
	r.inside, r.turn = true, 0
	if r.taken.Detail < Full {
		return
	}
	if e := r.last(); e != nil && (e.kind == ReplyReceived || e.kind == TimerFired) && e.node == int32(node) {
		e.also |= resumes
		return
	}
	r.add(event{kind: CoroutineResumed, node: int32(node), at: r.clock.Now()})
}

// Sent notes that commands of a node left on a connection at that instant, or a request to a service.
func (r *Recorder) Sent(node, endpoint, conn, commands, bytes int, at clock.Time) {
	r.detailed(event{kind: CommandSent, endpoint: uint16(endpoint), node: int32(node), at: at, arg: int64(bytes), a: int32(conn), b: int32(commands)})
}

// Replied notes that the replies to them, or the answer, were read. at is zero unless the clock was just read.
func (r *Recorder) Replied(node, endpoint, conn, commands, bytes int, at clock.Time) {
	if r.taken.Detail < Full {
		return
	}
	if at == 0 {
		at = r.clock.Now()
	}
	r.add(event{kind: ReplyReceived, endpoint: uint16(endpoint), node: int32(node), at: at, arg: int64(bytes), a: int32(conn), b: int32(commands)})
}

// Fired notes that a timer of a node fired: the end of a sleep, or its deadline.
func (r *Recorder) Fired(node int, sleep bool, due clock.Time) {
	if r.taken.Detail >= Full {
		also := eventFlags(0)
		if sleep {
			also = ofTimer
		}
		r.add(event{kind: TimerFired, also: also, node: int32(node), at: r.clock.Now(), arg: int64(due)})
	}
}

// Merge takes over what the Recorder of a worker has of its body, all of it or nothing, and ends its use.
func (r *Recorder) Merge(body *Recorder) {
	if body.taken.Dropped > 0 || !r.grow(len(body.taken.events)) {
		r.taken.Dropped += len(body.taken.events) + body.taken.Dropped
	} else {
		r.taken.events = append(r.taken.events, body.taken.events...)
	}
	body.release()
}

// Finish ends the recording of a request that ends now. err is the error of its answer. The Recording is the Recorder's
// own memory, up to Free: only what somebody keeps is copied.
func (r *Recorder) Finish(err error) *Recording {
	now := r.Turn()
	if r.inside {
		r.inside = false
		r.detailed(event{kind: EngineLeft, node: -1, at: now})
	}
	r.taken.Ended, r.taken.Err = now, err
	return &r.taken
}

// Free ends the use of what Finish has returned. The Recorder is ready for the next Begin.
func (r *Recorder) Free() {
	t := &r.taken
	t.RequestID, t.Graph, t.Err, t.errors = "", nil, nil, nil
	r.release()
}
