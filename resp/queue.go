package resp

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// Bounds of what large calls have in flight, so that other calls never wait long behind them.
const (
	// wholeBytes: a call whose replies may be longer leaves in several parts. Most replies are far shorter
	// than they may be: few lists have the 10,000 entries that a plan reads at most. Redis needs some 1.4 ms
	// for 512 KiB of LRANGE.
	wholeBytes = 512 << 10
	// shortBytes: a call in several parts counts as a small one while its replies, extrapolated from those
	// received, total at most this.
	shortBytes = 64 << 10
	// partBytes is the intended length of the replies to one part of a large call. Redis needs some 0.3 ms for 128
	// KiB of LRANGE, and the loop as much to read them.
	partBytes = 128 << 10
	// bulkBytes limits the outstanding replies of all large calls; one part may exceed it. It has room for two
	// parts that are somewhat longer than they should be, one at the server and one on its way.
	bulkBytes = 320 << 10
	// firstPart is the number of commands in the first part of a large call, if the length of its replies is unknown.
	// No other part leaves before the first has been answered.
	firstPart = 16
	// partGrowth is how many unanswered commands a large call may have for each that was answered: the next
	// replies may be longer than those so far.
	partGrowth = 4
	// pauseFactor is how many times longer a pause lasts than the burst before it.
	pauseFactor = 2
	// lightShare: pauses protect flows without large calls if more than one in so many is such a flow.
	lightShare = 16
	// flowsMin and flowsMax bound how many of the latest flows are counted for that share.
	flowsMin, flowsMax = 64, 1024
)

// A queue is the first stage of a client: it decides which commands leave next, and counts those that are in flight.
// It knows no connection. The flows whose calls wait take turns. Loop only.
//
// A small call leaves whole, a large one in parts. Redis runs one command at a time. If each part left as soon as the one
// before was answered, large calls would keep the server busy, and small calls would wait for it. So the client paces
// calls whose replies are long or many: such a call sends one burst of parts and waits for the replies. The next burst
// leaves as soon as no other call is under way, or else after a pause. Where nearly all requests have large calls, a
// pause would protect nobody, and there is none.
type queue struct {
	opts *Options
	// able reports whether a connection can take commands of the call now.
	able func(*Call) bool
	// joins reports whether the next n commands of the call are reads that other calls have gathered already.
	joins func(call *Call, n int) bool
	// changed is invoked when something that waits may be able to leave.
	changed func()

	whole fairQueue // calls that leave in one part
	large fairQueue // calls that leave in several

	inflight int  // commands gathered or sent, and not answered
	bulk     bulk // of these, those of paced calls

	// Of the paced calls:
	paced      int        // how many are under way
	pausedTill clock.Time // no burst begins before, unless no other call is under way
	accepted   uint64     // calls that the client had accepted when the last part was handed out
	alone      bool       // no other call has come since the burst before

	flows, light int // the latest flows, and those of them without a large call so far
	each         int // bytes of a reply to recent large calls; those with the longest replies decide

	pass pass
}

// A pass is one attempt to hand out all that may leave. A part of a large call and a whole call take turns.
type pass struct {
	accepted uint64     // calls that the client has accepted
	burst    bool       // paced calls may send
	noWhole  bool       // none fits
	noLarge  bool       // none may send
	large    bool       // whose turn it is
	behind   *flowQueue // the flow behind the last part's, whose call may share that part's commands; nil: none
}

// A span is what leaves next: n commands of a call behind those that are gathered, and what they take of the room for
// paced calls.
type span struct {
	call *Call
	n    int
	bulk bulk
}

// waiting returns the number of calls with commands that are not gathered.
func (q *queue) waiting() int { return q.whole.calls + q.large.calls }

// push adds a call to those that wait.
func (q *queue) push(call *Call) {
	if q.isLarge(call) {
		q.large.push(call)
	} else {
		q.whole.push(call)
	}
	q.changed()
}

// remove takes out a call that is given up or has failed. The calls behind it may leave now.
func (q *queue) remove(call *Call) {
	if call.waitsIn != nil {
		call.leaveQueue()
	}
	if call.paced {
		call.paced = false
		q.paced--
	}
	if q.waiting() > 0 {
		q.changed()
	}
}

// countFlow counts the flow of a call that comes. Of a flow with calls to several clients only the first client knows large calls.
func (q *queue) countFlow(call *Call) {
	f := call.Flow
	if f == nil || f.first != q {
		if q.flows, q.light = q.flows+1, q.light+1; q.flows == flowsMax {
			q.flows, q.light = q.flows/2, q.light/2
		}
		if f == nil || f.first != nil {
			return
		}
		f.first = q
	}
	if !f.large && (2*call.Batch.Len() > q.opts.wholeCommands() || q.isLarge(call)) {
		f.large = true
		q.light = max(0, q.light-1)
	}
}

// onlyLarge reports whether nearly all of the latest flows had large calls, or calls half as large.
func (q *queue) onlyLarge() bool { return q.flows >= flowsMin && q.light*lightShare <= q.flows }

// isLarge reports whether the call leaves in several parts.
func (q *queue) isLarge(call *Call) bool {
	n := call.Batch.Len()
	return n > 1 && (n > q.opts.wholeCommands() || n*call.Batch.replyBytes > wholeBytes)
}

// ahead reports whether a new call may leave whole at once: no other call waits, and there is room.
func (q *queue) ahead(call *Call) bool {
	return q.waiting() == 0 && !q.isLarge(call) && q.hasPlaces(call.Batch.Len())
}

// hasPlaces reports whether n more commands may be in flight.
func (q *queue) hasPlaces(n int) bool { return n <= q.opts.MaxInflight-q.inflight }

// begin begins a pass. underWay is the number of calls that the client has now, accepted the number of all it ever had. If
// the next burst has to wait, begin returns the instant at which it may leave; otherwise 0.
func (q *queue) begin(now clock.Time, underWay int, accepted uint64) (till clock.Time) {
	q.pass = pass{accepted: accepted, large: true}
	if q.paced == 0 {
		return 0
	}
	others := underWay - q.paced
	nobodyElse := q.onlyLarge() || others == 0 && q.accepted == accepted
	if q.bulk.commands > 0 { // A burst is in flight. It goes on if no other call is under way.
		q.alone = q.alone && nobodyElse
		q.pass.burst = q.alone
		return 0
	}
	q.alone = nobodyElse
	q.pass.burst = nobodyElse || others == 0 || q.pausedTill <= now
	if q.pass.burst {
		return 0
	}
	return q.pausedTill
}

// next returns what leaves next in this pass, and false if nothing may. A whole call that does not fit blocks those behind
// it, so that they cannot overtake it forever.
func (q *queue) next() (s span, ok bool) {
	for p := &q.pass; ; {
		switch {
		case !p.noLarge && (p.large || p.noWhole):
			p.large = false
			if s, ok = q.nextLarge(); ok {
				return s, true
			}
			p.noLarge = true
		case !p.noWhole:
			p.large = true
			if s, ok = q.nextWhole(); ok {
				return s, true
			}
			p.noWhole = true
		default:
			return span{}, false
		}
	}
}

// nextWhole returns the first whole call of the first flow, if it fits.
func (q *queue) nextWhole() (s span, ok bool) {
	first := q.whole.list.First()
	if first == nil {
		return span{}, false
	}
	call := first.calls.First()
	if n := call.Batch.Len(); q.hasPlaces(n) && q.able(call) {
		return span{call: call, n: n}, true
	}
	return span{}, false
}

// nextLarge returns a part of the first large call that may send one now. A paced call that does not fit blocks the paced
// calls behind it, so that they cannot overtake it forever. Where all calls are large, each call that does not fit blocks
// all behind it. The next flow may share the commands of the part that left last, which costs nothing.
func (q *queue) nextLarge() (s span, ok bool) {
	if fq := q.pass.behind; fq != nil {
		q.pass.behind = fq.place.Next()
		call := fq.calls.First()
		if n, _ := q.nextPart(call); n > 0 && q.joins(call, n) {
			return span{call: call, n: n}, true
		}
	}
	burst := q.pass.burst
	for fq := q.large.list.First(); fq != nil; fq = fq.place.Next() {
		for call := fq.calls.First(); call != nil; call = call.queued.Next() {
			n, b := q.nextPart(call)
			switch {
			case n == 0 || call.paced && !burst:
			case call.paced && !q.hasRoom(b):
				if burst = false; q.onlyLarge() {
					return span{}, false
				}
			case q.hasPlaces(n) && q.able(call):
				q.pass.behind = fq.place.Next()
				return span{call, n, b}, true
			case q.onlyLarge():
				return span{}, false
			}
		}
	}
	return span{}, false
}

// nextPart returns how many commands the next part of a large call has, and what it takes of the room for paced calls.
// n is 0 while the call has to wait: the replies to earlier parts say how long the next ones may be. Only a paced call
// takes room.
func (q *queue) nextPart(call *Call) (n int, b bulk) {
	unsent := call.Batch.Len() - int(call.gathered)
	if call.answered == 0 {
		switch each := call.Batch.replyBytes; {
		case call.gathered > 0:
			return 0, bulk{}
		case each > 0:
			n = max(1, partBytes/each)
		case q.each > 0 && q.onlyLarge():
			n = max(1, partBytes/q.each)
		default:
			n = firstPart
		}
		return min(n, q.partCommands(), unsent), bulk{}
	}
	each, unanswered := call.replyBytes(), int(call.gathered-call.answered)
	n = min(max(1, partBytes/each), q.partCommands(), unsent, partGrowth*int(call.answered)-unanswered)
	switch {
	case n <= 0:
		return 0, bulk{}
	case call.paced:
		return n, bulk{n, n * each}
	}
	return n, bulk{}
}

// partCommands returns how many commands a part may have. Short parts protect small calls, but each costs a write and a
// read. Parts are long where there are no small calls to protect.
func (q *queue) partCommands() int {
	if q.onlyLarge() {
		return q.opts.bulkCommands()
	}
	return q.opts.partCommands()
}

// hasRoom reports whether a part fits beside those of other paced calls. While other calls come, too, there is room for
// one part of long replies, or for two of short ones, which take Redis some 0.1 ms.
func (q *queue) hasRoom(b bulk) bool {
	room := bulk{q.opts.bulkCommands(), bulkBytes}
	if !q.alone {
		room = bulk{max(1, room.commands/4), partBytes}
	}
	return q.bulk.commands == 0 || q.bulk.commands+b.commands <= room.commands && q.bulk.bytes+b.bytes <= room.bytes
}

// took notes that a span was gathered. added is the number of its commands that are new in the outbox: shared commands
// cost nothing. took returns what they take of the room for paced calls. A call whose commands are all gathered leaves the queue.
func (q *queue) took(s span, added int) bulk {
	call := s.call
	call.gathered += int32(s.n)
	q.inflight += added
	if call.waitsIn == nil {
		return bulk{}
	}
	b := bulk{min(s.bulk.commands, added), s.bulk.bytes * added / s.n}
	q.bulk.add(b)
	if call.paced {
		q.accepted = q.pass.accepted
	}
	call.waitsIn.spend(bulk{s.n, s.bulk.bytes})
	if int(call.gathered) == call.Batch.Len() {
		call.leaveQueue()
	}
	return b
}

// learn looks at the replies to a large call. If they are long or many, and commands still wait, the call is paced from now on.
func (q *queue) learn(call *Call) {
	n := call.Batch.Len()
	q.each = max(call.replyBytes(), q.each-q.each/8)
	if call.waitsIn == nil || call.paced || n <= q.opts.wholeCommands() && n*call.replyBytes() <= shortBytes {
		return
	}
	call.paced = true
	q.paced++
}

// answered frees the places of commands that have their replies, or will never get them.
func (q *queue) answered(n int) {
	q.inflight -= n
	if q.waiting() > 0 {
		q.changed()
	}
}

// release frees the room that a flight took for paced calls, and reports whether the flight was the last of a burst.
func (q *queue) release(b bulk) (last bool) {
	q.bulk.sub(b)
	return b.commands > 0 && q.bulk.commands == 0
}

// pause begins the pause behind a burst that took so long.
func (q *queue) pause(now clock.Time, took time.Duration) { q.pausedTill = now.Add(pauseFactor * took) }

// replyBytes returns the average length of the replies to the call so far.
func (c *Call) replyBytes() int { return c.received/int(c.answered) + 1 }
