package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
)

// A Session is one client's connection. Its codec calls the methods that begin requests and end the session; transport calls those that
// begin with On. Loop only.
type Session struct {
	server *lane
	codec  Codec
	conn   transport.Accepted
	index  int // in server.sessions

	context context.Context    // of its requests
	leave   context.CancelFunc // says that nobody waits for the replies any more

	first, last *slot // replies that are owed
	owed        int   // their number
	texts       int   // bytes of those that are there as text
	waiting     int   // bytes of those that are there as answers, about
	counted     int   // of waiting, what outbox counts
	outbox      *serve.Outbox
	farewell    []byte // the last reply, which leaves after those of the pending requests; nil: none
	pipeline    int    // replies that may be owed

	phase   phase
	input   input
	within  bool // the codec has taken the beginning of a request
	partial int  // bytes of it that the codec has
	turns   int  // requests and replies so far
	pending bool // the codec has consumed requests that it has not begun
	backlog bool // the connection has bytes that wait for a slot or for unsent bytes to leave
	unread  int  // bytes that the connection has
	surplus bool // bytes came behind the end
	nested  bool // OnData or proceed is on the stack
	cut     bool // the service has counted the session as cut off

	id     int64
	number uint64 // among all connections of the service
	remote string // address of the client

	times times
}

// A phase says how near its end a session is. It never goes back: enter is the only transition.
//
//	open ─▶ ending      the codec, the server or a limit ends it: no further request begins
//	ending ─▶ finishing nothing is owed and nothing waits to begin (proceed): the connection closes once all is sent
//	any ─▶ closed       OnClose: the connection is gone, also because the client has left; replies have no way out
type phase uint8

const (
	open phase = iota
	ending
	finishing
	closed
)

// enter takes the session to a phase, unless it is further.
func (s *Session) enter(p phase) { s.phase = max(s.phase, p) }

// An input says what the client may still send.
//
//	reading ─▶ ended     OnEOF
//	ended ─▶ exhausted   proceed: all that came before has begun, and the codec knows of the end
type input uint8

const (
	reading input = iota
	ended
	exhausted
)

// ID returns the number of the connection, from 1 on, among those of its server.
func (s *Session) ID() int64 { return s.id }

// Remote returns the address of the client.
func (s *Session) Remote() string { return s.remote }

// State is what a session has to do. Immutable.
type State struct {
	Owed     int  // replies
	Ready    int  // of them, without a gap from the first on
	Texts    int  // bytes of those that are ready as text
	Unread   int  // bytes that the connection has kept
	Unsent   int  // bytes that the socket has not taken
	Pending  bool // the codec has consumed requests that it has not begun
	Held     bool // requests wait in the connection
	EOF      bool // the client sends no more
	Ending   bool // no further request begins
	AsksRoom bool // the answer whose turn it is waits until all connections together have room for it
	Encoding bool // a goroutine encodes that answer
}

// State returns what the session has to do now.
func (s *Session) State() State {
	st := State{
		Owed: s.owed, Texts: s.texts, Unread: s.unread, Unsent: s.conn.Unsent(), Pending: s.pending, Held: s.backlog, EOF: s.input >= ended, Ending: s.phase >= ending,
		AsksRoom: s.first != nil && s.first.state == asking, Encoding: s.first != nil && s.first.state == encoding,
	}
	for p := s.first; p != nil && p.state > awaited; p = p.next {
		st.Ready++
	}
	return st
}

// OnConnect implements transport.Handler.
func (s *Session) OnConnect(err error) {
	if err != nil {
		s.server.leave(s)
		return
	}
	s.times.active = s.now()
	s.number = s.server.service.ConnOpened(s.server.protocol.Front)
	s.proceed() // the server may be draining
}

// OnData implements transport.Handler.
func (s *Session) OnData(data []byte) (consumed int) {
	now, turns := s.now(), s.turns
	s.nested = true // The end waits until all that has come is looked at.
	consumed = s.begin(data)
	if s.keepsTooMuch(len(data) - consumed + s.partial) {
		consumed = len(data)
	}
	s.nested = false
	s.times.received(now, s.turns > turns || consumed > 0 && !s.within, s.phase == open && (s.within || !s.backlog && consumed < len(data)))
	s.proceed()
	return consumed
}

// unreadBytesFree is what each connection may keep unread, whatever all others keep.
const unreadBytesFree = 16 << 10

// keepsTooMuch notes how many bytes stay unread. It ends the session if these are too many, for one connection or for all
// together.
func (s *Session) keepsTooMuch(unread int) bool {
	v := s.server
	total := v.unread.Add(int64(unread - s.unread))
	s.unread = unread
	o := &v.options
	var refused serve.Reply
	switch {
	case unread > o.MaxRequestBytes+o.MaxBacklogBytes && !o.HoldBack:
		refused = s.refuse(outcome.TooLarge, fmt.Sprintf("%d bytes may wait unread", o.MaxRequestBytes+o.MaxBacklogBytes))
	case unread > unreadBytesFree && total > int64(o.MaxUnreadBytes):
		refused = s.refuse(outcome.Overloaded, "all connections together have too many bytes unread")
	default:
		return false
	}
	v.unread.Add(int64(-unread))
	s.unread, s.backlog = 0, false
	s.codec.Fail(&refused)
	return true
}

// Keep says how many bytes of a request the codec holds, which count as unread. Zero releases them.
func (s *Session) Keep(bytes int) { s.partial = bytes }

// Within says whether the codec has taken only the beginning of a request, or of a part of one. ReadTimeout then
// runs, and a session that should end waits for the rest.
func (s *Session) Within(within bool) { s.within = within }

// Refuse counts and logs a request that is refused without a query, and returns the reply to it. detail is one line,
// without unbounded text from the input.
func (s *Session) Refuse(c outcome.Class, detail string) []byte {
	refused := s.refuse(c, detail)
	reply, _ := s.codec.Encode(nil, &refused, nil, true)
	return reply
}

func (s *Session) refuse(c outcome.Class, detail string) serve.Reply {
	return s.server.service.Refuse(s.server.protocol.Front, c, "", detail)
}

// EndWith ends a session that has broken a limit or the protocol, with one more reply. That reply follows those of
// the pending requests.
func (s *Session) EndWith(reply []byte) {
	s.farewell = reply
	s.EndUnread()
	s.times.incomplete = 0
	s.count(serve.CutProtocol)
}

// End ends the session once all replies that are owed have left. No further request begins.
func (s *Session) End() { s.enter(ending) }

// EndUnread is End for a client that may still be sending bytes that nobody will read.
func (s *Session) EndUnread() {
	s.End()
	s.within, s.partial, s.surplus = false, 0, true
}

// Draining reports whether the server lets each session end.
func (s *Session) Draining() bool { return s.server.draining }

// Leaving reports whether the connection ends after the next reply: see Server.Leave.
func (s *Session) Leaving() bool { return s.server.leaving || s.server.draining }

// Running reports whether the reply that is due next is still being made.
func (s *Session) Running() bool { return s.first != nil && s.first.state == awaited }

// Probe writes text at once, ahead of all replies that are owed, to see whether the client is still there. Call it
// only while Running.
func (s *Session) Probe(text []byte) { s.send(text) }

// Abandon says that nobody waits for the replies any more.
func (s *Session) Abandon() { s.leave() }

// Limit bounds how many replies may be owed. Zero means MaxPipeline again.
func (s *Session) Limit(replies int) {
	s.pipeline = s.server.options.MaxPipeline
	if replies > 0 {
		s.pipeline = min(s.pipeline, replies)
	}
}

// Revoked ends the session, since the token of its client was revoked, once all replies that are owed have left.
func (s *Session) Revoked() {
	s.count(serve.CutRevoked)
	s.End()
}

// Pend says whether the codec has consumed requests that it has not begun. Proceed is then called when another one may begin, and
// Begin when none is pending.
func (s *Session) Pend(pending bool) { s.pending = pending }

// begin begins the requests in data, as far as the limits allow.
func (s *Session) begin(data []byte) (consumed int) {
	s.backlog = false
	for consumed < len(data) {
		if s.phase != open {
			s.surplus = true
			return len(data)
		}
		if !s.mayBegin() {
			s.backlog = true
			return consumed
		}
		size := s.codec.Begin(data[consumed:])
		if size == 0 {
			return consumed
		}
		consumed += size
	}
	return consumed
}

// mayBegin reports whether another request may be taken out of the connection.
func (s *Session) mayBegin() bool { return !s.pending && s.MayAsk() }

// MayAsk reports whether another request may begin.
func (s *Session) MayAsk() bool {
	return s.owed < s.pipeline && s.texts+s.waiting < s.server.options.MaxUnsentBytes && !s.full()
}

// full reports whether too much is unsent. OnDrain is then called when all of it has left.
func (s *Session) full() bool {
	if s.conn.Unsent() < s.server.options.MaxUnsentBytes {
		return false
	}
	s.conn.AwaitDrain()
	return true
}

// OnDrain implements transport.AcceptedHandler.
func (s *Session) OnDrain() {
	s.deliver()
	s.proceed()
}

// proceed continues what had to wait, in this order: pending requests, the end of the input, the farewell, then what is left
// in the connection, or the end.
func (s *Session) proceed() {
	if s.phase == closed || s.nested {
		return
	}
	s.nested = true
	if s.pending {
		s.codec.Proceed()
	}
	if s.input == ended && !s.unbegun() && s.farewell == nil {
		s.input = exhausted
		s.codec.Stop(EOF)
	}
	if s.farewell != nil && !s.pending {
		s.Reply(s.farewell)
		s.farewell = nil
	}
	s.nested = false
	if s.mayResume() {
		s.conn.Resume() // OnData finds out what is still left.
	} else if s.mayFinish() {
		s.finish()
	}
}

// unbegun reports whether something that the client has sent waits to begin, and may.
func (s *Session) unbegun() bool { return s.pending || s.backlog && s.phase == open }

// mayResume reports whether the connection may give the bytes that it has. A full session goes on when half of its slots
// are free, because each time moves all remaining bytes.
func (s *Session) mayResume() bool {
	return s.backlog && s.phase == open && s.owed <= s.pipeline/2 && s.mayBegin()
}

// mayFinish reports whether nothing is left to do, and nothing more to come.
func (s *Session) mayFinish() bool {
	if s.first != nil || s.unbegun() {
		return false
	}
	return s.phase != open || s.input >= ended || s.server.draining && !s.within && !s.fresh()
}

// fresh reports whether the client has just connected, so that its first request may be on its way.
func (s *Session) fresh() bool { return s.turns == 0 && s.now().Sub(s.times.active) < freshGrace }

// finish closes the connection once all is sent. A client that may still be sending has lingerTimeout to read its
// replies before it gets a reset.
func (s *Session) finish() {
	if s.phase >= finishing {
		return
	}
	s.enter(finishing)
	if s.input >= ended || !s.surplus && !s.backlog {
		s.conn.Finish()
		return
	}
	s.times.lingers = s.now()
	s.conn.FinishWriting()
	s.conn.Resume() // It drops what is left.
}

// OnEOF implements transport.AcceptedHandler. A client that stops sending gets its replies.
func (s *Session) OnEOF() (stay bool) {
	if s.server.options.CancelAtEOF {
		return false
	}
	if s.phase == finishing {
		if s.conn.Unsent() == 0 {
			return false
		}
		s.conn.Finish()
		return true
	}
	s.input = max(s.input, ended)
	idle := s.first == nil && !s.backlog && s.conn.Unsent() == 0
	s.proceed()
	return !idle || s.first != nil || s.conn.Unsent() > 0
}

// OnClose implements transport.Handler. Nobody waits for the replies any more, so the requests are abandoned. Their slots are free
// when the service has answered.
func (s *Session) OnClose(error) {
	s.enter(closed)
	s.leave()
	if s.first == nil || s.first.state != encoding {
		s.outbox.Close()
	}
	for p := s.first; p != nil; {
		next := p.next
		if p.next = nil; p.state != awaited && p.state != encoding {
			s.server.free.put(p)
		}
		p = next
	}
	s.first, s.last, s.pending = nil, nil, false
	s.server.unread.Add(int64(-s.unread))
	s.server.service.ConnClosed(s.server.protocol.Front)
	s.server.leave(s)
}

// push gives a slot the next place.
func (s *Session) push(p *slot) {
	p.session = s
	if s.last == nil {
		s.first = p
	} else {
		s.last.next = p
	}
	s.last = p
	s.owed++
	s.turns++
}

// Reply owes the client a reply that is there already. It keeps nothing of text.
func (s *Session) Reply(text []byte) {
	if s.first == nil {
		s.turns++
		s.send(text)
		return
	}
	p := s.server.slot()
	p.text, p.state = append(p.text, text...), written
	s.texts += len(text)
	s.push(p)
}

// Request gives a request the next place in the order of the replies. It returns the query, with context, connection
// and outbox. The codec fills in the other fields and calls Ask.
func (s *Session) Request() *serve.Query {
	p := s.server.slot()
	s.push(p)
	return p.request()
}

// Annotate leaves a note with the last Request, which Encode gets.
func (s *Session) Annotate(note []byte) { s.last.note = append(s.last.note[:0], note...) }

// Ask has the service answer the query of the last Request.
func (s *Session) Ask() { s.last.ask() }

// deliver sends the replies whose turn it is, until too much is unsent. The others wait: a long answer is encoded
// only when its turn has come, and when all connections together have room for it.
func (s *Session) deliver() {
	for p := s.first; p != nil && p.state > awaited && !s.full(); p = s.first {
		if p.long() {
			if p.state == answered {
				s.settle()
				if p.state = asking; s.outbox.Encode(p.bytes) {
					p.encode()
				}
			}
			return
		}
		last := s.ends(p)
		s.first = p.next
		if s.first == nil {
			s.last = nil
		}
		s.owed--
		s.texts -= len(p.text)
		s.waiting -= p.bytes
		if s.send(p.reply(last)) && p.asked {
			p.query.Delivered()
		}
		s.server.free.put(p)
	}
	s.settle()
	s.server.trim()
}

// ends reports whether the connection ends behind the reply p, whose turn it is.
func (s *Session) ends(p *slot) bool {
	if p.next != nil || s.farewell != nil || s.unbegun() || s.within && s.phase == open {
		return false
	}
	if s.Leaving() {
		s.End()
	}
	return s.phase != open
}

// Room implements serve.Sender.
func (s *Session) Room() {
	s.server.loop.Post(func() {
		if s.phase != closed {
			s.first.encode()
		}
	})
}

// Cut implements serve.Sender. The client may have taken something since the last check.
func (s *Session) Cut() {
	s.server.loop.Post(func() {
		if s.phase == closed {
			return
		}
		if s.settle(); !s.outbox.Spared() {
			s.CutOff(serve.CutUnsent)
		}
	})
}

// settle makes the outbox count what the session holds, unless it differs by little.
func (s *Session) settle() {
	change := s.waiting - s.counted
	if change >= serve.OutboxStep || change <= -serve.OutboxStep || s.waiting == 0 && s.counted > 0 {
		s.outbox.Hold(change)
		s.counted = s.waiting
	}
	unsent := s.conn.Unsent()
	s.outbox.Settle(unsent + s.texts)
	if unsent >= serve.OutboxStep {
		s.conn.AwaitDrain()
	}
}

// send writes a reply.
func (s *Session) send(reply []byte) (sent bool) {
	if sent = s.conn.Write(reply) == nil; sent {
		s.times.sent(s.now(), len(reply))
	}
	return sent
}

// CutOff closes the connection at once.
func (s *Session) CutOff(why serve.Cut) {
	s.count(why)
	s.End()
	s.conn.Close(ErrCutOff)
}

// ErrCutOff is the reason of a connection that the server has closed at once.
var ErrCutOff = errors.New("cut off")

// contain, deferred directly by what the engine and goroutines call, ends a panic and the connection: its client must not
// wait for a reply that never comes.
func (s *Session) contain() {
	if recovered := recover(); recovered != nil {
		s.server.panicked(recovered, debug.Stack())
		s.CutOff(serve.CutFault)
	}
}

// count counts the session among those that were cut off, once.
func (s *Session) count(why serve.Cut) {
	if !s.cut {
		s.cut = true
		s.server.service.ConnCut(s.server.protocol.Front, why)
	}
}

func (s *Session) now() clock.Time { return s.server.loop.Now() }
