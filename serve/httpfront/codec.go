package httpfront

import (
	"bytes"
	"net/http"
	"time"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// bodyBytesFree is how long a body may be that the front reads only to discard it.
const bodyBytesFree = 8 << 10

// phase says what the next bytes of a connection are.
type phase uint8

const (
	atHead  phase = iota // a head
	inBody               // of a request to rank
	inRest               // a body that nobody needs
	inLines              // of a batch
	over                 // nothing that anybody looks at
)

// A codec speaks HTTP/1.1 with one client. Loop only, except for Encode.
type codec struct {
	*session.Session
	front *Front
	note  *[]byte // of the request that begins; memory that the codecs of one loop share
	phase phase

	// Of the request at hand.
	head    head
	framing framing
	plan    []byte // of the path
	caller  *access.Caller
	timeout time.Duration
	batch   *batch // nil: it is none

	kept    []byte // the head, while the body arrives
	content []byte // of the body, or of a line of a batch, as far as it has come

	// Of an incomplete head.
	line   int  // where its last line begins
	looked int  // how far the search for its end has come
	blank  bool // an empty line stood before it

	old    bool   // the client has spoken HTTP/1.0
	name   string // the server that the client has asked for
	named  bool   // name is set, and allowed
	closes bool   // the connection ends with the answer
}

func (f *Front) newCodecs() func(*session.Session) session.Codec {
	note := new([]byte)
	return func(s *session.Session) session.Codec { return &codec{Session: s, front: f, note: note} }
}

// Begin implements session.Codec.
func (c *codec) Begin(data []byte) (consumed int) {
	switch c.phase {
	case atHead:
		return c.beginHead(data)
	case inBody:
		return c.takeBody(data)
	case inRest:
		return c.dropRest(data)
	case inLines:
		return c.takeLine(data)
	default:
		return len(data)
	}
}

// Proceed implements session.Codec. Nothing is ever pending.
func (c *codec) Proceed() {}

// probe finds out whether a client that has stopped sending is still there. It sends an interim answer, which all
// clients ignore; a client that has gone replies with a reset.
const probe = "HTTP/1.1 100 Continue\r\n\r\n"

// Stop implements session.Codec.
func (c *codec) Stop(why session.Stop) {
	switch {
	case why == session.Drain:
		if c.phase == inLines {
			c.batch.drain()
		}
	case c.phase == inLines && why == session.Late:
		c.batch.fail(tooSlow)
	case c.phase == inLines:
		c.Abandon()
		c.batch.fail(brokenBody)
	case why == session.Late && c.arriving():
		c.fail(tooSlow)
	case why == session.EOF && c.phase == inBody:
		c.fail(brokenBody)
	case why == session.EOF && c.arriving():
		c.fail(cutShort)
	case why == session.EOF && c.Running() && !c.old && c.batch == nil:
		c.Probe([]byte(probe))
	}
}

// arriving reports whether a request has begun to arrive.
func (c *codec) arriving() bool { return c.phase == inBody || c.phase == atHead && c.looked > 0 }

// beginHead takes a head, if it is complete.
func (c *codec) beginHead(data []byte) (consumed int) {
	if !c.blank && c.line == 0 && bytes.HasPrefix(data, []byte("\r\n")) { // Old clients send one behind a body.
		c.blank, c.looked = true, 0
		c.Within(false)
		return len("\r\n")
	}
	n, whole := c.findEnd(data)
	if n > c.front.options.MaxHeaderBytes {
		c.fail(longHead)
		return len(data)
	}
	if !whole {
		c.Within(true)
		return 0
	}
	c.line, c.looked, c.blank = 0, 0, false
	c.Within(false)
	if fault := c.head.parse(data[:n]); fault != "" {
		c.fail(fault.problem())
		return len(data)
	}
	c.closes, c.old, c.batch = c.head.closes(), !c.head.http11, nil
	c.framing = c.head.frame(c.front.options.MaxHeaderBytes)
	return n + c.begin(data[:n], data[n:])
}

// findEnd returns the length of the request's head at the start of data, or how many bytes of it are there.
func (c *codec) findEnd(data []byte) (n int, whole bool) {
	for {
		end := bytes.IndexByte(data[c.looked:], '\n')
		if end < 0 {
			c.looked = len(data)
			return len(data), false
		}
		line := data[c.line : c.looked+end]
		c.looked += end + 1
		c.line = c.looked
		if len(line) == 0 || len(line) == 1 && line[0] == '\r' {
			return c.looked, true
		}
	}
}

// begin begins the request whose head has been parsed from text. data is what has come of its body; begin takes the
// body if it is complete.
func (c *codec) begin(text, data []byte) (consumed int) {
	r, p := c.judge()
	if p != nil {
		c.refuse(p, r)
		return 0
	}
	if r.reads {
		most := int64(c.front.options.MaxRequestBytes)
		switch {
		case c.head.length > most:
			c.refuse(tooLarge(int(most)), r)
		case !c.head.chunked && int64(len(data)) >= c.head.length:
			c.ask(data[:c.head.length])
			return int(c.head.length)
		default:
			c.keep(text)
			c.phase = inBody
			c.grant()
		}
		return 0
	}
	if r.lines {
		c.keep(text)
		c.beginBatch()
		return 0
	}
	c.endHead(c.head.expects())
	r.handle(c)
	return 0
}

// keep keeps the head while the body arrives.
func (c *codec) keep(text []byte) {
	c.kept = append(c.kept, text...)
	c.head.parse(c.kept) // It has no fault.
	_, c.plan = routeOf(c.head.path)
	c.Within(true)
}

// grant tells a client that waits for 100 Continue to send its body.
func (c *codec) grant() {
	if c.head.expects() {
		c.Reply([]byte(probe))
	}
}

// judge returns the route of the request, and why it is refused. The first step that refuses decides.
func (c *codec) judge() (*route, *problem) {
	if err := c.checkHost(); err != nil {
		return nil, &problem{class: outcome.Forbidden, detail: err.Error()}
	}
	// "/v1//rank" is another path than "/v1/rank", so it is not normalized.
	r, plan := routeOf(c.head.path)
	if r == nil {
		return nil, noPath
	}
	if !r.takes(c.head.method) {
		return r, noMethod(r)
	}
	c.plan = plan
	if !r.open {
		if p := c.authenticate(); p != nil {
			return r, p
		}
	}
	if coding := c.head.get(contentEncoding); r.asks && len(coding) > 0 && string(coding) != "identity" {
		return r, encoded
	}
	ok := true
	if c.timeout, ok = c.head.timeout(); r.asks && !ok {
		return r, badTimeout
	}
	switch {
	case !r.lines:
	case !c.head.http11:
		return r, oldVersion
	case !c.head.hasBody():
		return r, noBody
	}
	return r, nil
}

// checkHost says why the host name in the request is refused.
func (c *codec) checkHost() error {
	host, origin := c.head.server(), c.head.get(origin)
	hosts := c.front.options.Hosts
	if hosts == nil || origin == nil && c.named && string(host) == c.name {
		return nil
	}
	name := string(host)
	err := hosts.Check(name, string(origin))
	c.name, c.named = name, err == nil
	return err
}

// authenticate finds out who asks.
func (c *codec) authenticate() *problem {
	if c.caller = c.front.store.Anonymous(); c.caller != nil {
		return nil
	}
	token := c.head.bearer()
	if len(token) == 0 {
		return noToken
	}
	known := false
	if c.caller, known = c.front.store.Lookup(token); !known {
		return badToken
	}
	return nil
}

// takeBody takes what has come of the body of a request to rank.
func (c *codec) takeBody(data []byte) (consumed int) {
	framing, content, ok := c.framing.next(data)
	if !ok {
		c.fail(brokenBody)
		return len(data)
	}
	if most := c.front.options.MaxRequestBytes; len(c.content)+len(content) > most {
		c.refuse(tooLarge(most), nil)
		return len(data)
	}
	c.content = append(c.content, content...)
	c.framing.take(len(content))
	c.Keep(cap(c.content))
	if c.framing.ended() {
		c.phase = atHead
		c.Within(false)
		c.Keep(0)
		c.ask(c.content)
		c.content, c.kept = nil, nil
	}
	return framing + len(content)
}

// dropRest discards what has come of a body that nobody needs.
func (c *codec) dropRest(data []byte) (consumed int) {
	_, content, _ := c.framing.next(data)
	c.framing.take(len(content))
	if c.framing.ended() {
		c.phase = atHead
		c.Within(false)
	}
	return len(content)
}

// endHead discards the body of a request that has its answer. It drops a short body as it comes. With any other body
// the connection ends, since its rest would be taken for the next request. A client that waits for 100 Continue may
// never send its body.
func (c *codec) endHead(waits bool) {
	switch {
	case c.framing.ended():
		c.phase = atHead
	case c.head.chunked || c.head.length > bodyBytesFree || waits:
		c.phase, c.closes = over, true
		c.EndUnread()
	default:
		c.phase = inRest
		c.Within(true)
	}
	if c.closes {
		c.End()
	}
	c.content, c.kept = nil, nil
	c.Keep(0)
}

// ask lets the service answer the request with that body.
func (c *codec) ask(body []byte) {
	q := c.Request()
	q.Caller, q.Plan, q.Body, q.Timeout = c.caller, c.plan, body, c.timeout
	q.RequestID, q.TraceParent = c.head.id(), c.head.trace()
	*c.note = c.head.appendNote((*c.note)[:0], c.closes)
	c.Annotate(*c.note)
	if c.closes {
		c.phase = over
		c.End()
	}
	c.Ask()
}

// fail ends the connection with a problem.
func (c *codec) fail(p *problem) {
	c.phase = over
	refused := c.front.service.Refuse(serve.HTTP, p.class, string(c.id()), p.detail)
	c.EndWith(c.front.appendReply(nil, &refused, p.statusCode(), "", c.echo(), true))
}

// Fail implements session.Codec.
func (c *codec) Fail(refused *serve.Reply) {
	if c.phase == inLines {
		c.batch.endWith(refused)
		return
	}
	c.phase = over
	c.EndWith(c.front.appendReply(nil, refused, refused.Class.Status(), "", c.echo(), true))
}

// id returns the id of the request whose body arrives, if it has one.
func (c *codec) id() []byte {
	if c.kept == nil {
		return nil
	}
	return c.head.id()
}

// echo returns the note of the request whose body arrives.
func (c *codec) echo() []byte {
	if c.kept == nil {
		return nil
	}
	return c.head.appendNote(nil, true)
}

// refuse answers the request with a problem. r is nil if it has no route.
func (c *codec) refuse(p *problem, r *route) {
	refused := c.front.service.Refuse(serve.HTTP, p.class, string(c.head.id()), p.detail)
	c.endHead(c.head.expects() && c.phase != inBody)
	allow := ""
	if p.statusCode() == http.StatusMethodNotAllowed {
		allow = r.allow()
	}
	closes := c.closes || c.Leaving()
	reply := c.front.appendReply(nil, &refused, p.statusCode(), allow, c.head.appendNote(nil, closes), closes)
	c.send(reply, closes)
}

// send queues an answer of the front's own.
func (c *codec) send(answer []byte, closes bool) {
	if string(c.head.method) == "HEAD" {
		answer = answer[:bytes.Index(answer, []byte("\r\n\r\n"))+4]
	}
	c.Reply(answer)
	if closes {
		c.End()
	}
}

// document answers with a JSON document of the front's own.
func (c *codec) document(body []byte) {
	closes := c.closes || c.Leaving()
	c.send(append(c.front.appendHead(nil, 200, typeJSON, len(body), c.head.appendNote(nil, closes), closes), body...), closes)
}
