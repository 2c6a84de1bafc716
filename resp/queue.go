package resp

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// Bounds of what large calls have in flight, so that others never wait for long behind them.
const (
	// wholeBytes: a call whose replies may be longer leaves in several parts. Most replies are far shorter
	// than they may be: few lists have the 10,000 entries that a plan reads at most. Redis needs some 1.4 ms
	// for 512 KiB of LRANGE.
	wholeBytes = 512 << 10
	// shortBytes: a call in several parts counts as a small one while its replies, extrapolated from those
	// received, total at most this.
	shortBytes = 64 << 10
	// partBytes is how long the replies to one part of a large call shall be. Redis needs some
	// 0.3 ms for 128 KiB of LRANGE, and the loop as much to read them.
	partBytes = 128 << 10
	// bulkBytes limits the outstanding replies of all large calls; one part may exceed it. It has room for two
	// parts that are somewhat longer than they should be, one at the server and one on its way.
	bulkBytes = 320 << 10
	// firstPart is the number of commands in the first part of a large call whose replies are of
	// unknown length. No other part leaves before the first has been answered.
	firstPart = 16
	// partGrowth is how many unanswered commands a large call may have for each that was answered: the next
	// replies may be longer than those so far.
	partGrowth = 4
	// restFactor is how much longer than the burst before a rest lasts.
	restFactor = 2
	// lightShare: rests protect askers without large calls if more than one in so many is such a one.
	lightShare = 16
	// askersMin and askersMax bound how many of the latest askers tell their share.
	askersMin, askersMax = 64, 1024
)

// A queue is the first stage of a client: it decides which commands leave next, and counts those that are in flight.
// It knows no connection. The requests whose calls wait take turns. Loop only.
//
// A small call leaves whole, a large one in parts. Redis runs one command at a time: parts that leave as soon as
// those before are answered would take all the time that small calls do not take, so that these would find a busy
// server. So calls whose replies are long or many rest: they send one burst of parts and wait for the replies. The next
// burst leaves as soon as no other call is under way. If others always are, it leaves after a pause. Where nearly all requests have
// large calls, a pause would protect nobody, and there is none.
type queue struct {
	opts *Options
	// able reports whether a connection can take commands of the call now.
	able func(*Call) bool
	// joins reports whether the next n commands of the call are reads that leave for others anyway.
	joins func(call *Call, n int) bool
	// changed is invoked when something that waits may be able to leave.
	changed func()

	whole turns // calls that leave in one part
	large turns // calls that leave in several

	inflight int  // commands gathered or sent, and not answered
	bulk     bulk // of these, those of calls that rest

	// Of the calls that rest:
	resting  int        // how many are under way
	restTill clock.Time // no burst begins before, unless no other call is under way
	accepted uint64     // calls that the client had accepted when the last part was handed out
	alone    bool       // nobody else has asked since the burst before

	askers, light int // the latest that began to ask, and those of them without a large call so far
	each          int // bytes of a reply to the large calls of late, those with the longest

	pass pass
}

// A pass is one attempt to hand out all that may leave. A part of a large call and a whole call take turns.
type pass struct {
	accepted uint64 // calls that the client has accepted
	burst    bool   // calls that rest may send
	noWhole  bool   // none fits
	noLarge  bool   // none may send
	large    bool   // whose turn it is
	behind   *turn  // whoever asks for the same as the last part can join it; nil: nobody is behind that in the ring
}

// A span is what leaves next: n commands of a call behind those that are gathered, and what they take of the room for
// calls that rest.
type span struct {
	call *Call
	n    int
	bulk bulk
}

// waiting returns the number of calls with commands that are not gathered.
func (q *queue) waiting() int { return q.whole.calls + q.large.calls }

// push has a call wait for its turn.
func (q *queue) push(call *Call) {
	if q.isLarge(call) {
		q.large.push(call)
	} else {
		q.whole.push(call)
	}
	q.changed()
}

// remove takes a call out that is given up or has failed. It may have held up those behind it.
func (q *queue) remove(call *Call) {
	if call.turn != nil {
		call.leaveTurn()
	}
	if call.rests {
		call.rests = false
		q.resting--
	}
	if q.waiting() > 0 {
		q.changed()
	}
}

// know counts the asker of a call that comes. One that asks several clients has no large calls but at its first.
func (q *queue) know(call *Call) {
	a := call.Asker
	if a == nil || a.first != q {
		if q.askers, q.light = q.askers+1, q.light+1; q.askers == askersMax {
			q.askers, q.light = q.askers/2, q.light/2
		}
		if a == nil || a.first != nil {
			return
		}
		a.first = q
	}
	if !a.large && (2*call.Batch.Len() > q.opts.wholeCommands() || q.isLarge(call)) {
		a.large = true
		q.light = max(0, q.light-1)
	}
}

// onlyLarge reports whether nearly all of the latest askers had large calls, or calls half as large.
func (q *queue) onlyLarge() bool { return q.askers >= askersMin && q.light*lightShare <= q.askers }

// isLarge reports whether the call leaves in several parts.
func (q *queue) isLarge(call *Call) bool {
	n := call.Batch.Len()
	return n > 1 && (n > q.opts.wholeCommands() || n*call.Batch.replyBytes > wholeBytes)
}

// ahead reports whether a call that is not in the queue may leave whole at once: nobody waits, and there is room.
func (q *queue) ahead(call *Call) bool {
	return q.waiting() == 0 && !q.isLarge(call) && q.hasPlaces(call.Batch.Len())
}

// hasPlaces reports whether n more commands may be in flight.
func (q *queue) hasPlaces(n int) bool { return n <= q.opts.MaxInflight-q.inflight }

// begin begins a pass. underWay is the number of calls that the client has, accepted that of all it ever had. If a
// burst has to wait, begin returns the instant until which; otherwise 0.
func (q *queue) begin(now clock.Time, underWay int, accepted uint64) (till clock.Time) {
	q.pass = pass{accepted: accepted, large: true}
	if q.resting == 0 {
		return 0
	}
	others := underWay - q.resting
	nobodyElse := q.onlyLarge() || others == 0 && q.accepted == accepted
	if q.bulk.commands > 0 { // A burst is in flight, which goes on if it disturbs nobody.
		q.alone = q.alone && nobodyElse
		q.pass.burst = q.alone
		return 0
	}
	q.alone = nobodyElse
	q.pass.burst = nobodyElse || others == 0 || q.restTill <= now
	if q.pass.burst {
		return 0
	}
	return q.restTill
}

// next returns what leaves next in this pass, and false if nothing may. A whole call that does not fit holds up those
// behind it, so that it is not overtaken for ever.
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

// nextWhole returns the whole call whose turn it is, if it fits.
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

// nextLarge returns a part of the first large call that may send one now. A call that rests and does not fit holds up those
// behind it that rest, so that it is not overtaken for ever. Where all are large, each that does not fit holds up all behind it. The next in the ring may join the part that left last, which costs nothing.
func (q *queue) nextLarge() (s span, ok bool) {
	if t := q.pass.behind; t != nil {
		q.pass.behind = t.place.Next()
		call := t.calls.First()
		if n, _ := q.nextPart(call); n > 0 && q.joins(call, n) {
			return span{call: call, n: n}, true
		}
	}
	burst := q.pass.burst
	for t := q.large.list.First(); t != nil; t = t.place.Next() {
		for call := t.calls.First(); call != nil; call = call.queued.Next() {
			n, b := q.nextPart(call)
			switch {
			case n == 0 || call.rests && !burst:
			case call.rests && !q.hasRoom(b):
				if burst = false; q.onlyLarge() {
					return span{}, false
				}
			case q.hasPlaces(n) && q.able(call):
				q.pass.behind = t.place.Next()
				return span{call, n, b}, true
			case q.onlyLarge():
				return span{}, false
			}
		}
	}
	return span{}, false
}

// nextPart returns how many commands the next part of a large call has, and what it takes of the
// room for calls that rest. None has to wait for replies, which tell how long those to come may be. A call whose
// replies are not known to be long takes no room, as small calls do.
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
	case call.rests:
		return n, bulk{n, n * each}
	}
	return n, bulk{}
}

// partCommands returns how many commands a part may have. Short parts protect small calls, and cost a write and a read each: they are long
// where there is nobody to protect.
func (q *queue) partCommands() int {
	if q.onlyLarge() {
		return q.opts.bulkCommands()
	}
	return q.opts.partCommands()
}

// hasRoom reports whether a part fits beside those of other calls that rest. If others ask, too, there is room for one
// part of long replies, or for two of short ones, which take Redis some 0.1 ms.
func (q *queue) hasRoom(b bulk) bool {
	room := bulk{q.opts.bulkCommands(), bulkBytes}
	if !q.alone {
		room = bulk{max(1, room.commands/4), partBytes}
	}
	return q.bulk.commands == 0 || q.bulk.commands+b.commands <= room.commands && q.bulk.bytes+b.bytes <= room.bytes
}

// took notes that a span was gathered, to which an outbox added so many commands: shared ones cost nothing. It returns
// what these take of the room for calls that rest. It ends the turn of the call, and its wait if all of it is gathered.
func (q *queue) took(s span, added int) bulk {
	call := s.call
	call.gathered += int32(s.n)
	q.inflight += added
	if call.turn == nil {
		return bulk{}
	}
	b := bulk{min(s.bulk.commands, added), s.bulk.bytes * added / s.n}
	q.bulk.add(b)
	if call.rests {
		q.accepted = q.pass.accepted
	}
	call.turn.gave(bulk{s.n, s.bulk.bytes})
	if int(call.gathered) == call.Batch.Len() {
		call.leaveTurn()
	}
	return b
}

// learn looks at the replies to a large call, and has it rest, while it waits, if they are long or many.
func (q *queue) learn(call *Call) {
	n := call.Batch.Len()
	q.each = max(call.replyBytes(), q.each-q.each/8)
	if call.turn == nil || call.rests || n <= q.opts.wholeCommands() && n*call.replyBytes() <= shortBytes {
		return
	}
	call.rests = true
	q.resting++
}

// answered gives back the room of commands that have their replies, or will never have them.
func (q *queue) answered(n int) {
	q.inflight -= n
	if q.waiting() > 0 {
		q.changed()
	}
}

// release gives back the room that a flight had for calls that rest, and reports whether it was the last of a burst.
func (q *queue) release(b bulk) (last bool) {
	q.bulk.sub(b)
	return b.commands > 0 && q.bulk.commands == 0
}

// rest begins the pause behind a burst that took so long.
func (q *queue) rest(now clock.Time, took time.Duration) { q.restTill = now.Add(restFactor * took) }

// replyBytes returns how long a reply to the call is on average, as far as those so far tell.
func (c *Call) replyBytes() int { return c.received/int(c.answered) + 1 }
