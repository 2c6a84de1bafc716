package session

import "github.com/rankd/rankd/serve"

// A slot is one reply in the order in which a session owes them. Loop only.
type slot struct {
	server  *lane
	session *Session
	next    *slot
	query   *serve.Query // of a request; made at the slot's first one
	asked   bool         // query is in use
	state   slotState
	bytes   int    // about the size of query's answer; 0 once it is text
	text    []byte // the reply, if it is written
	note    []byte // of the codec, for the answer of query
}

// A slotState says how far the reply of a slot is. Only a long answer is asking and encoding.
//
//	awaited ─▶ answered ─▶ asking ─▶ encoding ─▶ written     a short answer leaves as it is answered
//	awaited ─▶ written                                       a reply that is there as text
type slotState uint8

const (
	awaited  slotState = iota // the service makes the answer
	answered                  // query has it
	asking                    // it has its turn, and waits until all connections together have room for its text
	encoding                  // a goroutine makes its text
	written                   // its text is there
)

// Bounds of what is kept for the next requests of any session.
const (
	keepSlots     = 1 << 10
	keepTextBytes = 4 << 10
	keepBytes     = 1 << 20 // of a buffer that all sessions share
)

// slots are those that no session uses. Loop only.
type slots struct {
	first *slot
	n     int
}

func (l *slots) take() *slot {
	p := l.first
	if p != nil {
		l.first, p.next = p.next, nil
		l.n--
	}
	return p
}

func (l *slots) put(p *slot) {
	if p.asked {
		p.query.Release()
	}
	if cap(p.text) > keepTextBytes {
		p.text = nil
	}
	p.session, p.asked, p.state, p.bytes, p.text, p.note = nil, false, awaited, 0, p.text[:0], p.note[:0]
	if l.n < keepSlots {
		l.first, p.next = p, l.first
		l.n++
	}
}

// slot returns a free slot.
func (v *lane) slot() *slot {
	if p := v.free.take(); p != nil {
		return p
	}
	return &slot{server: v}
}

// ask has the service answer the query of the slot.
func (p *slot) ask() {
	p.asked = true
	p.server.service.Ask(p.query)
}

// request returns the slot's query, which knows its connection.
func (p *slot) request() *serve.Query {
	if p.query == nil {
		done := func(*serve.Query) { p.answered() }
		if v := p.server; v.own { // The service calls done on the goroutine of whatever has ended.
			answered := p.answered
			done = func(*serve.Query) { v.loop.Post(answered) }
		}
		p.query = p.server.service.NewQuery(p.server.protocol.Front, done)
	}
	s := p.session
	p.query.Context, p.query.Connection, p.query.Outbox = s.context, s.number, s.outbox
	return p.query
}

// answered sends the reply when its turn comes. It is called once the service has the reply, inside ask or later.
func (p *slot) answered() {
	s := p.session
	defer s.contain()
	if s.phase == closed {
		p.server.free.put(p)
		return
	}
	p.state, p.bytes = answered, p.query.Reply.Bytes()
	s.waiting += p.bytes
	s.counted += p.query.Held()
	if s.first == p {
		s.deliver()
		s.proceed()
	} else {
		s.settle()
	}
}

// long reports whether a goroutine must encode the reply before it can leave.
func (p *slot) long() bool { return p.state != written && p.query.Long() }

// encode lets a goroutine encode the answer, whose turn has come and for which there is room.
func (p *slot) encode() {
	p.state = encoding
	last := p.session.ends(p)
	go func() {
		text, _ := p.make(nil, last)
		p.server.loop.Post(func() { p.encoded(text) })
	}()
}

// make encodes the reply. If that panics, the client is told so. Any goroutine, one at a time.
func (p *slot) make(buf []byte, last bool) (text, memory []byte) {
	reply, codec := &p.query.Reply, p.session.codec
	instead, ok := p.server.service.Contain(p.server.protocol.Front, reply.RequestID, func() { text, memory = codec.Encode(buf, reply, p.note, last) })
	if !ok {
		text, memory = codec.Encode(nil, &instead, p.note, last)
	}
	return text, memory
}

// encoded sends the answer, which is text now.
func (p *slot) encoded(text []byte) {
	s := p.session
	defer s.contain()
	p.state = written
	if s.phase == closed { // The answer has taken memory until now.
		s.outbox.Close()
		p.server.free.put(p)
		return
	}
	s.waiting -= p.bytes
	s.texts += len(text)
	p.bytes, p.text = 0, text
	s.deliver()
	s.proceed()
}

// reply returns what the session's client gets. It is valid until the next call.
func (p *slot) reply(last bool) (text []byte) {
	if p.state == written {
		return p.text
	}
	text, p.server.encoded = p.make(p.server.encoded, last)
	return text
}
