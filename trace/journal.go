package trace

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// A Journal takes down what happens to one request. It is the one place that makes events. A nil Journal takes nothing down.
//
// The engine notes a fact with the instant that it has just read, or with none. Reading the clock is most of the price of recording,
// so a fact without an instant shares that of its neighbor: the one before it, or for an end and for Enter the one after it, unless a
// body has run or the engine has left in between. Only then the Journal reads the clock. Nobody gets a reading of the Journal to
// decide by.
//
// A method that notes a fact asks whether there is a Journal, and leaves the rest to a second one where the compiler would not inline both.
//
// A Journal keeps the facts about nodes per node and never loses them. All else is a list of events, which is bounded: once an event
// does not fit, it and all later ones are dropped and counted, so that what is there has no holes.
//
// One goroutine at a time: the loop, or who holds the lock of the request. A worker that blocks has a Journal of its
// own for its node, and Merge takes it over.
type Journal struct {
	clock    clock.Clock
	turn     clock.Time // the last instant of the engine's thread, or zero once a body has run on it since, or the engine has left
	inside   bool       // the engine, or a body on its thread, works for the request
	entering bool       // it has entered at the next instant
	ended    int32      // 1 + the node that has ended at the next instant; 0: none
	worker   int32      // of a body
	room     int        // taken from all
	taken    Recording  // so far
	all      *Journals
	ids      *rand.PCG // a generator of its own, which costs a fifth of the common one
}

// nodeRecord is how a node ran. It has no pointers, as event has none, and fills one line of the processor's cache.
type nodeRecord struct {
	place              placeCode
	worked             bool // a worker began the body
	runsOn             bool // the body runs on when the node settles
	failed             bool // its error is in Recording.notes
	timedOut, late     bool // as Failure has them
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

func (p Place) code() placeCode { return placeCode(codeOf(placeNames[:], p)) }

// codeOf returns the index of a name that is one of all.
func codeOf[T ~string](all []T, name T) int {
	for i := range all {
		if all[i] == name {
			return i
		}
	}
	panic("trace: no code for " + string(name))
}

// nodeNote is what few nodes have: an error, or values from the engine's memory.
type nodeNote struct {
	node    int
	err     error // why the node failed, or lacks so many rows; nil: the note is about values
	dropped int
	values  int
	age     time.Duration // of the oldest
}

// Begin returns a Journal for a request that was admitted after it had waited for delay, or nil if nothing is to be taken down. engine
// and mode are Trace.Engine and Trace.Scheduling. Free ends its use.
func (s *Journals) Begin(d Detail, g *plan.Graph, engine, mode string, arrived clock.Time, delay time.Duration) *Journal {
	if d == Off {
		return nil
	}
	j := s.free.Get().(*Journal)
	t := &j.taken
	t.Detail, t.Graph, t.Engine, t.Scheduling, t.Arrived, t.Begun, t.QueueDelay = d, g, engine, mode, arrived, 0, delay
	t.id = [2]uint64{j.ids.Uint64(), j.ids.Uint64()}
	if cap(t.nodes) < len(g.Nodes) {
		t.nodes = make([]nodeRecord, len(g.Nodes))
	}
	t.nodes = t.nodes[:len(g.Nodes)]
	clear(t.nodes)
	j.reset()
	return j
}

// Body returns a Journal for the body of one node, on a worker that blocks. Merge or Free ends its use. It is nil for a nil Journal.
func (j *Journal) Body() *Journal {
	if j == nil {
		return nil
	}
	body := j.all.free.Get().(*Journal)
	body.taken.Detail = j.taken.Detail
	body.reset()
	return body
}

func (j *Journal) reset() {
	j.inside, j.entering, j.ended, j.turn = false, false, 0, 0
	j.taken.Dropped, j.taken.cut = 0, 0
}

// add adds an event, if the level of detail is Full. It stores each field by itself: e travels in registers, and a copy of 16 bytes
// at once has to wait until the fields that it consists of have reached the cache, which took half of add.
func (j *Journal) add(e event) {
	if j.taken.Detail < Full {
		return
	}
	n := len(j.taken.events)
	if n == j.room && !j.grow(1) {
		if j.taken.Dropped == 0 {
			j.taken.cut = e.at
		}
		j.taken.Dropped++
		return
	}
	j.taken.events = j.taken.events[:n+1]
	to := &j.taken.events[n]
	to.kind, to.also, to.endpoint, to.node = e.kind, e.also, e.endpoint, e.node
	to.at, to.arg, to.a, to.b = e.at, e.arg, e.a, e.b
}

// grow makes room for n more events. False means that there is none, and will not be.
func (j *Journal) grow(n int) bool {
	for j.room < len(j.taken.events)+n {
		if j.taken.Dropped > 0 || j.room >= requestEvents || !j.all.take() {
			return false
		}
		j.room += chunkEvents
	}
	j.taken.events = slices.Grow(j.taken.events, j.room-len(j.taken.events))
	return true
}

// full reports whether events are taken down, and not only how nodes ran.
func (j *Journal) full() bool { return j != nil && j.taken.Detail >= Full }

// last returns the last event, or nil if there is none, or if later ones were dropped.
func (j *Journal) last() *event {
	if len(j.taken.events) == 0 || j.taken.Dropped > 0 {
		return nil
	}
	return &j.taken.events[len(j.taken.events)-1]
}

// instant returns at, or if that is zero the last instant, or the present one. What has waited for the next instant has it.
func (j *Journal) instant(at clock.Time) clock.Time {
	if at == 0 {
		at = j.turn
	}
	if at == 0 {
		at = j.clock.Now()
	}
	if j.entering {
		j.entering = false
		if j.taken.Begun == 0 {
			j.taken.Begun = at
		}
		j.add(event{kind: EngineEntered, node: -1, at: at})
	}
	if j.ended > 0 {
		node := j.ended - 1
		j.ended = 0
		j.end(int(node), at)
	}
	j.turn = at
	return at
}

// present is instant for what comes after a body, or from outside.
func (j *Journal) present() clock.Time { return j.instant(j.clock.Now()) }

// Enter notes that the engine begins to work for the request. It does nothing if the engine does already.
func (j *Journal) Enter() {
	if j != nil && !j.inside {
		j.inside, j.entering, j.turn = true, true, 0
	}
}

// Leave notes that the engine has done all that it can do for the request now. It returns the instant of that; zero: it was
// not recorded.
func (j *Journal) Leave() clock.Time {
	if j == nil {
		return 0
	}
	return j.leave()
}

func (j *Journal) leave() clock.Time {
	if j.entering || j.ended > 0 {
		j.instant(0)
	}
	inside := j.inside
	j.inside, j.turn = false, 0
	if !inside || !j.full() {
		return 0
	}
	if e := j.last(); e != nil && (e.kind == Suspended || e.is(suspends) || e.kind == NodeEnded) {
		e.also |= leaves // A body that has just suspended leaves nothing to do; one that has ended, next to nothing.
		return e.at
	}
	at := j.clock.Now()
	j.add(event{kind: EngineLeft, node: -1, at: at})
	return at
}

// Spawn notes that a node will run there, and how many rows it reads.
func (j *Journal) Spawn(node int, there Place, rows int) {
	if j != nil {
		n := &j.taken.nodes[node] // Begin has cleared it.
		n.place, n.rowsIn, n.parent = there.code(), int32(rows), -1
	}
}

// Unspawn takes Spawn back: the node does not run at all.
func (j *Journal) Unspawn(node int) {
	if j != nil {
		j.taken.nodes[node] = nodeRecord{}
	}
}

// Follow notes that a node followed another one directly, as the one of that depth.
func (j *Journal) Follow(node, parent, depth int) {
	if j != nil {
		j.taken.nodes[node].parent, j.taken.nodes[node].depth = int32(parent), int32(depth)
	}
}

// Fuse notes that a node ran as part of the job of the one before it in its chain, and how many rows it read.
func (j *Journal) Fuse(node, parent, depth, rows int) {
	if j != nil {
		before := &j.taken.nodes[parent]
		j.taken.nodes[node] = nodeRecord{place: before.place, worker: before.worker, fused: before.fused, parent: int32(parent), depth: int32(depth), rowsIn: int32(rows)}
	}
}

// Start notes that the body of a node begins on the engine's thread.
func (j *Journal) Start(node int, at clock.Time) {
	if j != nil {
		j.start(node, at)
	}
}

func (j *Journal) start(node int, at clock.Time) {
	at = j.instant(at)
	j.taken.nodes[node].start = at
	j.inside, j.turn = true, 0
	j.add(event{kind: NodeStarted, node: int32(node), at: at})
}

// End notes that a node has settled with a result, or what stands in for one, of so many rows.
func (j *Journal) End(node int, at clock.Time, rows int) {
	if j != nil {
		j.settle(node, at, rows)
	}
}

func (j *Journal) settle(node int, at clock.Time, rows int) {
	n := &j.taken.nodes[node]
	n.rowsOut = int32(rows)
	if n.end != 0 { // Merge has noted it.
		at = n.end
	}
	switch {
	case n.worked && at != 0: // which is the worker's instant
		j.end(node, at)
	case n.worked:
		j.end(node, j.present())
	case at == 0 && j.turn == 0 && j.ended == 0:
		j.ended = int32(node) + 1
	default:
		j.end(node, j.instant(at))
	}
}

// Shortfall notes why the result of a node lacks something, and how many rows.
func (j *Journal) Shortfall(node int, err error, dropped int) {
	if j != nil {
		j.taken.notes = append(j.taken.notes, nodeNote{node: node, err: err, dropped: dropped})
	}
}

// Cached notes how many values a node took from the engine's memory, and the age of the oldest.
func (j *Journal) Cached(node, values int, age time.Duration) {
	if j != nil {
		j.taken.notes = append(j.taken.notes, nodeNote{node: node, values: values, age: age})
	}
}

// Failure is why a node has no result. Immutable.
type Failure struct {
	Err      error
	TimedOut bool         // a deadline settled it
	Late     bool         // the plan did not wait for it any longer
	Instead  plan.OnError // what the readers of the node see; OnErrorFail: the request fails
	Rows     int          // of that
}

// Fail notes that a node has settled without a result.
func (j *Journal) Fail(node int, at clock.Time, f Failure) {
	if j != nil {
		n := &j.taken.nodes[node]
		n.failed, n.timedOut, n.late, n.instead = true, f.TimedOut, f.Late, f.Instead
		j.Shortfall(node, f.Err, 0)
		j.End(node, at, f.Rows)
	}
}

// end notes when a node has settled.
func (j *Journal) end(node int, at clock.Time) {
	n := &j.taken.nodes[node]
	if n.end = at; n.start == 0 {
		n.start = at
	}
	if !n.worked {
		j.add(event{kind: NodeEnded, node: int32(node), at: at})
	}
}

// Submit notes that a job was handed to a pool. The node is its first of so many.
func (j *Journal) Submit(node int, at clock.Time, fused int) {
	if j == nil {
		return
	}
	n := &j.taken.nodes[node]
	if n.queued = j.instant(at); fused > 1 {
		n.fused = int32(fused)
	}
	j.add(event{kind: OffloadSubmitted, node: int32(node), at: n.queued})
}

// Worked notes when a worker began the body of a node.
func (j *Journal) Worked(node, worker int, start clock.Time) {
	if j != nil {
		n := &j.taken.nodes[node]
		n.worked, n.worker, n.start = true, int32(worker), start
	}
}

// Outlived notes that a node is about to settle that its worker has, or had until then if that is not zero.
func (j *Journal) Outlived(node int, until clock.Time) {
	if j != nil {
		n := &j.taken.nodes[node]
		n.runsOn, n.workedUntil = until == 0, until
	}
}

// Offloaded notes when a worker began the job of which a node is the first, and when it had done it; zero: it had not.
func (j *Journal) Offloaded(node, worker int, began, done clock.Time) {
	if j == nil {
		return
	}
	j.add(event{kind: OffloadStarted, node: int32(node), at: began, a: int32(worker)})
	if done != 0 {
		j.add(event{kind: OffloadPosted, node: int32(node), at: done, a: int32(worker)})
	}
}

// Returned notes that the engine takes the result of the job of which a node is the first.
func (j *Journal) Returned(node int) {
	if j.full() {
		j.Enter()
		j.add(event{kind: OffloadReturned, node: int32(node), at: j.present()})
	}
}

// Wait notes that a body waits: for the replies to so many commands, for a service, for a function, or for a timer that is due then.
// A body whose commands have just left has waited since then.
func (j *Journal) Wait(node int, reason Reason, commands int, due clock.Time) {
	if j.full() {
		j.wait(node, reason, commands, due)
	}
}

func (j *Journal) wait(node int, reason Reason, commands int, due clock.Time) {
	if e := j.last(); reason == ForRedis && e != nil && e.kind == CommandSent && e.node == int32(node) && int(e.b) == commands {
		e.also |= suspends
		j.turn = e.at
		return
	}
	j.add(event{kind: Suspended, node: int32(node), at: j.present(), arg: int64(due), a: reason.code(), b: int32(commands)})
}

// Resume notes that a body goes on. It goes on with a reply, or because of a timer, as soon as that is there.
func (j *Journal) Resume(node int) {
	if j != nil {
		j.resume(node)
	}
}

func (j *Journal) resume(node int) {
	if j.full() {
		if e := j.last(); !j.entering && e != nil && (e.kind == ReplyReceived || e.kind == TimerFired) && e.node == int32(node) {
			e.also |= resumes
		} else {
			j.add(event{kind: CoroutineResumed, node: int32(node), at: j.present()})
		}
	}
	j.inside, j.turn = true, 0
}

// Sent notes that commands of a node left on a connection, or a request to a service.
func (j *Journal) Sent(node, endpoint, conn, commands, bytes int, at clock.Time) {
	if j != nil {
		j.add(event{kind: CommandSent, endpoint: uint16(endpoint), node: int32(node), at: at, arg: int64(bytes), a: int32(conn), b: int32(commands)})
	}
}

// Replied notes that the replies to them, or the answer, were read.
func (j *Journal) Replied(node, endpoint, conn, commands, bytes int, at clock.Time) {
	if !j.full() {
		return
	}
	if at == 0 {
		at = j.clock.Now()
	}
	j.add(event{kind: ReplyReceived, endpoint: uint16(endpoint), node: int32(node), at: at, arg: int64(bytes), a: int32(conn), b: int32(commands)})
}

// Fired notes that a timer of a node fired that was due then: ForTimer is the end of a sleep, Running its deadline.
func (j *Journal) Fired(node int, reason Reason, due clock.Time) {
	if j.full() {
		j.add(event{kind: TimerFired, node: int32(node), at: j.present(), arg: int64(due), a: reason.code()})
	}
}

// Work notes that the worker of that number begins the body of the node that j is for.
func (j *Journal) Work(worker int) {
	if j != nil {
		j.worker, j.taken.Begun = int32(worker), j.clock.Now()
	}
}

// Done notes that the worker is done with it.
func (j *Journal) Done() {
	if j != nil {
		j.taken.Ended = j.clock.Now()
	}
}

// Merge takes over what the Journal of a worker has of the body of a node that is about to settle, and ends its use. Of what the body
// has waited for that is all or nothing. Both may be nil.
func (j *Journal) Merge(node int, body *Journal) {
	if j == nil || body == nil {
		return
	}
	began, done := body.taken.Begun, body.taken.Ended
	j.Worked(node, int(body.worker), began)
	j.taken.nodes[node].end = done
	j.Offloaded(node, int(body.worker), began, done)
	if body.taken.Dropped > 0 || !j.grow(len(body.taken.events)) {
		j.taken.Dropped += len(body.taken.events) + body.taken.Dropped
	} else {
		j.taken.events = append(j.taken.events, body.taken.events...)
	}
	body.Free()
}

// Finish ends the recording of a request that ends now. err is the error of its answer. The Recording is the Journal's
// own memory, up to Free: only what somebody keeps is copied. It is nil for a nil Journal.
func (j *Journal) Finish(err error) *Recording {
	if j == nil {
		return nil
	}
	now := j.instant(0)
	if j.inside {
		j.inside = false
		j.add(event{kind: EngineLeft, node: -1, at: now})
	}
	j.taken.Ended, j.taken.Err = now, err
	return &j.taken
}

// keepEvents and keepNodes are how many events and nodes an idle Journal keeps room for: 8 KiB and 16 KiB.
const (
	keepEvents = 256
	keepNodes  = 256
)

// Free ends the use of j, and of what Finish has returned.
func (j *Journal) Free() {
	if j == nil {
		return
	}
	t := &j.taken
	if cap(t.events) > keepEvents {
		t.events = nil
	}
	if cap(t.nodes) > keepNodes {
		t.nodes = nil
	}
	clear(t.notes)
	t.events, t.notes, t.Context, t.RequestID, t.Graph, t.Err = t.events[:0], t.notes[:0], nil, "", nil, nil
	j.all.give(j.room)
	j.room = 0
	j.all.free.Put(j)
}
