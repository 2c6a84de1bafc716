package respfront

import (
	"strconv"

	"github.com/rankd/rankd/serve"
)

// A slot is one reply in the order in which a session owes them. Loop only.
type slot struct {
	front   *Front
	session *session
	next    *slot
	query   *serve.Query // of a request; made at the slot's first one
	asked   bool         // the reply is that of query; otherwise it is text
	ready   bool
	text    []byte
}

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
	p.session, p.asked, p.ready, p.text = nil, false, false, p.text[:0]
	if l.n < keepSlots {
		l.first, p.next = p, l.first
		l.n++
	}
}

// slot returns a free slot.
func (f *Front) slot() *slot {
	if p := f.free.take(); p != nil {
		return p
	}
	return &slot{front: f}
}

// ask has the service answer the query of the slot.
func (p *slot) ask() {
	p.asked = true
	p.front.service.Ask(p.query)
}

// request returns the slot's query, whose fields are to be filled in.
func (p *slot) request() *serve.Query {
	if p.query == nil {
		p.query = p.front.service.NewQuery(serve.RESP, func(*serve.Query) { p.answered() })
	}
	return p.query
}

// answered is called by the service, inside ask or later.
func (p *slot) answered() {
	s := p.session
	if s.closed {
		p.front.free.put(p)
		return
	}
	p.ready = true
	if s.first == p {
		s.deliver()
		s.proceed()
	}
}

// headerRoom has room for the header of a bulk string.
const headerRoom = len("$\r\n") + 20

// reply returns what the session's client gets. It is valid until the next call.
func (p *slot) reply() []byte {
	if !p.asked {
		return p.text
	}
	f, r := p.front, &p.query.Reply
	if r.Class != serve.OK {
		f.encoded = appendFailure(f.encoded[:0], r)
		return f.encoded
	}
	// The length comes first, and is known last.
	var room [headerRoom]byte
	buf := r.AppendBody(append(f.encoded[:0], room[:]...))
	header := strconv.AppendInt(append(room[:0], '$'), int64(len(buf)-headerRoom), 10)
	header = append(header, '\r', '\n')
	start := headerRoom - len(header)
	copy(buf[start:], header)
	buf = append(buf, '\r', '\n')
	f.encoded = buf
	return buf[start:]
}

// appendFailure appends the error reply that says how a request ended.
func appendFailure(dst []byte, r *serve.Reply) []byte {
	dst = append(append(append(dst, '-'), r.Class.Code()...), ' ')
	return append(append(dst, r.Message()...), '\r', '\n')
}
