package respfront

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/outcome"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// A session is one client's connection. Loop only.
type session struct {
	front *Front
	conn  transport.Accepted
	index int // in front.sessions

	context context.Context    // of its requests
	leave   context.CancelFunc // says that nobody waits for the replies any more

	reader      reader
	first, last *slot // replies that are owed
	owed        int   // their number
	texts       int   // bytes of those that are there as text
	waiting     int   // bytes of those that are there as answers, about
	told        int   // of waiting, what outbox counts
	outbox      *serve.Outbox
	asksRoom    bool   // outbox has no room for the first of these answers
	many        many   // the RANK.MANY under way
	farewell    []byte // the last reply, which leaves behind the places of that RANK.MANY; nil: none

	held       bool // the connection has bytes that wait for a slot or for unsent bytes to leave
	unread     int  // bytes that the connection has kept
	eof        bool // the client sends no more
	ending     bool // no further command begins; the connection closes when nothing is owed
	proceeding bool // OnData or proceed is on the stack
	closed     bool // OnClose has been called
	counted    bool // as cut off

	id            int64
	number        uint64         // among all connections of the service
	remote        string         // address of the client
	proto3        bool           // the client has asked for RESP3
	caller        *access.Caller // nil: not logged in
	refusedLogins int
	about         [aboutFields]string // what the client says of itself

	times times
}

// OnConnect implements transport.Handler.
func (s *session) OnConnect(err error) {
	if err != nil {
		s.front.leave(s)
		return
	}
	s.times.active = s.now()
	s.number = s.front.service.ConnOpened(serve.RESP)
	s.proceed() // the front may be draining
}

// OnData implements transport.Handler.
func (s *session) OnData(data []byte) (consumed int) {
	now := s.now()
	s.proceeding = true // The end waits until all that has come is looked at.
	consumed = s.begin(data)
	if s.keepsTooMuch(len(data) - consumed) {
		consumed = len(data)
	}
	s.proceeding = false
	s.times.received(now, consumed > 0, !s.held && consumed < len(data))
	s.proceed()
	return consumed
}

// keepsTooMuch notes how many bytes stay unread. It ends the session if these are too many, for one connection or for all
// together.
func (s *session) keepsTooMuch(unread int) bool {
	f := s.front
	f.unread += unread - s.unread
	s.unread = unread
	o := &f.options
	var refused serve.Reply
	switch {
	case unread > o.MaxCommandBytes+o.MaxBacklogBytes:
		refused = f.service.Refuse(serve.RESP, outcome.TooLarge, "", fmt.Sprintf("%d bytes may wait unread", o.MaxCommandBytes+o.MaxBacklogBytes))
	case unread > strangerBytesMax && f.unread > o.MaxUnreadBytes:
		refused = f.service.Refuse(serve.RESP, outcome.Overloaded, "", "all connections together have too many bytes unread")
	default:
		return false
	}
	f.unread -= unread
	s.unread, s.held = 0, false
	s.endWith(appendFailure(nil, &refused))
	return true
}

// endWith ends the session, which has broken a limit or the protocol, with one more reply. The places of a RANK.MANY under way belong to
// its users, so that the reply waits until all of them have begun.
func (s *session) endWith(reply []byte) {
	s.farewell, s.ending = reply, true
	s.count(serve.CutProtocol)
}

// begin begins the commands in data, as far as the limits allow.
func (s *session) begin(data []byte) (consumed int) {
	s.held = false
	for consumed < len(data) {
		if s.ending {
			return len(data)
		}
		if !s.mayBegin() {
			s.held = true
			return consumed
		}
		s.limit()
		args, size, err := s.reader.next(data[consumed:], s.front.argv)
		if err != nil {
			s.refuseBytes(err)
			return len(data)
		}
		if size == 0 {
			return consumed
		}
		consumed += size
		if len(args) > 0 {
			s.front.argv = args
			s.run(args)
		}
	}
	return consumed
}

// mayBegin reports whether another command may begin.
func (s *session) mayBegin() bool { return s.many.done() && s.mayAsk() }

// A client that has not logged in may send commands with so many arguments and bytes, as in Redis.
const (
	strangerArgsMax  = 10
	strangerBytesMax = 16 << 10
)

// limit sets the limits of the next command.
func (s *session) limit() {
	f := s.front
	s.reader.argsMax, s.reader.bytesMax = f.options.MaxArguments, f.options.MaxCommandBytes
	if s.caller == nil && f.store.Anonymous() == nil {
		s.reader.argsMax, s.reader.bytesMax = min(strangerArgsMax, s.reader.argsMax), min(strangerBytesMax, s.reader.bytesMax)
	}
}

// mayAsk reports whether another request may begin.
func (s *session) mayAsk() bool {
	o := &s.front.options
	return s.owed < o.MaxPipeline && s.texts+s.waiting < o.MaxUnsentBytes && !s.full()
}

// full reports whether too much is unsent. OnDrain is then called when all of it has left.
func (s *session) full() bool {
	if s.conn.Unsent() < s.front.options.MaxUnsentBytes {
		return false
	}
	s.conn.AwaitDrain()
	return true
}

// OnDrain implements transport.AcceptedHandler.
func (s *session) OnDrain() {
	s.deliver()
	s.proceed()
}

// proceed goes on with what had to wait: the rest of a RANK.MANY, commands that are left in the connection, the end. A session that
// was full goes on when half of its slots are free, since each time moves all the bytes that are left.
func (s *session) proceed() {
	if s.closed || s.proceeding {
		return
	}
	s.proceeding = true
	for !s.many.done() && s.mayAsk() {
		s.renew() // The reply says so if the token has been revoked meanwhile.
		s.rank(s.many.plan, s.many.next(), nil)
	}
	if s.many.done() && s.farewell != nil {
		s.reply(s.farewell)
		s.farewell = nil
	}
	s.proceeding = false
	switch {
	case s.held && s.owed <= s.front.options.MaxPipeline/2 && s.mayBegin():
		s.conn.Resume() // OnData finds out what is still held.
	case !s.held && s.first == nil && s.many.done() && (s.ending || s.front.draining || s.eof):
		s.ending = true
		s.conn.Finish()
	}
}

// OnEOF implements transport.AcceptedHandler. A client that stops sending gets its replies.
func (s *session) OnEOF() (stay bool) {
	if s.front.options.CancelAtEOF || s.first == nil && !s.held && s.conn.Unsent() == 0 {
		return false
	}
	s.eof = true
	s.proceed()
	return true
}

// OnClose implements transport.Handler. Nobody waits for the replies any more, so the requests are abandoned. Their slots are free
// when the service has answered.
func (s *session) OnClose(error) {
	s.closed = true
	s.leave()
	if s.first == nil || !s.first.encoding {
		s.outbox.Close()
	}
	for p := s.first; p != nil; {
		next := p.next
		p.next = nil
		if p.ready && !p.encoding {
			s.front.free.put(p)
		}
		p = next
	}
	s.first, s.last, s.many = nil, nil, many{}
	s.front.unread -= s.unread
	s.front.service.ConnClosed(serve.RESP)
	s.front.leave(s)
}

// push gives a slot the next place.
func (s *session) push(p *slot) {
	p.session = s
	if s.last == nil {
		s.first = p
	} else {
		s.last.next = p
	}
	s.last = p
	s.owed++
}

// reply owes the client a reply that is there already.
func (s *session) reply(text []byte) {
	if s.first == nil {
		s.send(text)
		return
	}
	p := s.front.slot()
	p.text, p.ready = append(p.text, text...), true
	s.texts += len(text)
	s.push(p)
}

// deliver sends the replies whose turn it is, until too much is unsent. The others stay as they are: a long answer is encoded when its
// turn has come, and all connections together have room for it.
func (s *session) deliver() {
	for p := s.first; p != nil && p.ready && !s.full(); p = s.first {
		if p.long() {
			if !p.encoding && !s.asksRoom {
				s.settle()
				if s.asksRoom = !s.outbox.Encode(p.bytes); !s.asksRoom {
					p.encode()
				}
			}
			return
		}
		s.first = p.next
		if s.first == nil {
			s.last = nil
		}
		s.owed--
		s.texts -= len(p.text)
		s.waiting -= p.bytes
		s.send(p.reply())
		s.front.free.put(p)
	}
	s.settle()
	s.front.trim()
}

// Room implements serve.Sender.
func (s *session) Room() {
	s.front.loop.Post(func() {
		if s.asksRoom = false; !s.closed {
			s.first.encode()
		}
	})
}

// Cut implements serve.Sender. The client may have taken something that nobody has looked at.
func (s *session) Cut() {
	s.front.loop.Post(func() {
		if s.closed {
			return
		}
		if s.settle(); !s.outbox.Spared() {
			s.cutOff(serve.CutUnsent)
		}
	})
}

// settle has the outbox count what the session holds, unless it differs by little.
func (s *session) settle() {
	change := s.waiting - s.told
	if change >= serve.OutboxStep || change <= -serve.OutboxStep || s.waiting == 0 && s.told > 0 {
		s.outbox.Hold(change)
		s.told = s.waiting
	}
	unsent := s.conn.Unsent()
	s.outbox.Settle(unsent + s.texts)
	if unsent >= serve.OutboxStep {
		s.conn.AwaitDrain()
	}
}

// send writes a reply.
func (s *session) send(reply []byte) {
	if s.conn.Write(reply) == nil {
		s.times.sent(s.now(), len(reply))
	}
}

// refuseBytes answers bytes that are not a command, and ends the session.
func (s *session) refuseBytes(err error) {
	switch {
	case errors.Is(err, errArgsMax):
		s.refuseLength(fmt.Sprintf("a command may have %d arguments, its name among them", s.reader.argsMax))
	case errors.Is(err, errBytesMax):
		s.refuseLength(fmt.Sprintf("a command may have %d bytes", s.reader.bytesMax))
	default:
		const word = "Protocol error: " // redcon's errors have it
		s.endWith(redcon.AppendError(nil, "ERR "+word+strings.TrimPrefix(err.Error(), word)))
	}
}

// refuseLength answers a command that is too long.
func (s *session) refuseLength(limit string) {
	refused := s.front.service.Refuse(serve.RESP, outcome.TooLarge, "", limit)
	s.endWith(appendFailure(nil, &refused))
}

// cutOff closes the connection at once.
func (s *session) cutOff(why serve.Cut) {
	s.count(why)
	s.ending = true
	s.conn.Close(errCutOff)
}

var errCutOff = errors.New("cut off")

// count counts the session among those that were cut off, once.
func (s *session) count(why serve.Cut) {
	if !s.counted {
		s.counted = true
		s.front.service.ConnCut(serve.RESP, why)
	}
}

func (s *session) now() clock.Time { return s.front.loop.Now() }
