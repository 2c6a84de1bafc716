package httpfront

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// batch is one POST /v1/batch: a stream of lines in, a stream of lines out.
//
//	reader goroutine:       takes a free exchange, reads a line, asks, puts the exchange in line
//	connection's goroutine: waits for the exchange that is first in line, writes its answer, frees it
//
// The number of exchanges bounds the batch: a slow request, or a client that does not read, holds up reading. Answers leave in the
// order of the lines, each as soon as all before it have left.
//
// fasthttp calls Read for more of the answer, and Close in the end, also when the client has gone.
type batch struct {
	front   *Front
	conn    *conn
	body    body
	caller  *access.Caller
	timeout time.Duration
	trace   []byte // of the head, which lasts as long as the batch

	all     []*exchange
	free    chan *exchange // exchanges not in use
	line    chan *exchange // exchanges in use, in input order; has room for all
	reading sync.WaitGroup // the reader goroutine

	partial int   // bytes that have come of a line which has not ended
	held    int64 // what the batch counts of Options.MaxBodyBytes

	first *exchange // taken from line, and not answered yet; nil if none
	out   []byte    // answers on their way to Read
	sent  int       // how much of out has left
}

// batchBytes is what a batch holds whatever it reads: the buffer of its stream.
const batchBytes = 64 << 10

// errManyBodies ends a batch whose line would make all bodies together too long.
var errManyBodies = errors.New(manyBodies.detail)

// batch is POST /v1/batch.
func (x *exchange) batch() {
	timeout, ok := x.head.timeout()
	switch {
	case !ok:
		x.refuse(badTimeout)
		return
	case !x.ctx.Request.Header.IsHTTP11():
		x.refuse(oldVersion)
		return
	case !x.unread:
		x.refuse(noBody)
		return
	}
	n := x.front.options.BatchInflight
	b := &batch{
		front: x.front, conn: x.conn, body: x.incoming, caller: x.caller, timeout: timeout, trace: x.head.trace(),
		all: make([]*exchange, n), free: make(chan *exchange, n), line: make(chan *exchange, n),
	}
	if !b.hold(batchBytes) {
		b.hold(0)
		x.refuse(manyBodies)
		return
	}
	for i := range b.all {
		b.all[i] = b.front.exchanges.Get().(*exchange)
		b.all[i].conn = b.conn
		b.free <- b.all[i]
	}
	x.unread = false
	x.ctx.SetConnectionClose() // The body may turn out to be broken when this head has left.
	b.reading.Go(b.read)

	response := &x.ctx.Response
	x.echo("")
	response.SetStatusCode(http.StatusOK)
	response.Header.SetContentType(typeJSONLines)
	response.ImmediateHeaderFlush = true // A client may wait for the head before it sends a line.
	response.SetBodyStream(b, -1)
}

// hold counts what the batch holds. It reports false if all bodies together become too long.
func (b *batch) hold(n int64) bool {
	more := n - b.held
	b.held = n
	return b.front.bodyBytes.Add(more) <= int64(b.front.options.MaxBodyBytes) || more <= 0
}

// lines reads the body of a batch for its stream.
type lines struct{ *batch }

// Read implements io.Reader. The wait for a line is idle; its arrival has the timeout of a request.
func (l lines) Read(p []byte) (int, error) {
	if l.partial == 0 {
		l.conn.enter(between)
	}
	n, err := l.body.Read(p)
	arriving := l.partial > 0
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		l.partial, arriving = n-end-1, false
	} else {
		l.partial += n
	}
	if l.partial > 0 && !arriving {
		l.conn.enter(busy)
	}
	if !l.hold(batchBytes + 2*int64(max(l.partial-bodyBytesFree, 0))) {
		return n, errManyBodies
	}
	return n, err
}

// read is the reader goroutine.
func (b *batch) read() {
	defer close(b.line)
	stream := request.NewLineStream(lines{b}, b.front.options.MaxRequestBytes)
	for x := range b.free {
		doc, err := stream.Next()
		lost := err != nil && !errors.As(err, new(*request.Error))
		switch {
		case err == io.EOF, b.conn.context.Err() != nil:
			return
		case lost && b.conn.leaves() && b.partial == 0: // The front drains.
			return
		case lost:
			b.fail(x, b.lost(err))
		case err != nil:
			b.fail(x, b.front.service.Fail(serve.HTTP, err))
		default:
			lost = !b.ask(x, doc, func(err error) error { return stream.Locate(err, doc) })
		}
		b.line <- x
		if lost {
			return
		}
	}
}

// lost returns the reply behind the last line that could be read. Nobody needs the others if the client has gone.
func (b *batch) lost(err error) serve.Reply {
	if gone(err) {
		b.conn.abandon()
	}
	p := b.conn.bodyProblem()
	if err == errManyBodies {
		p = manyBodies
	}
	return b.front.service.Refuse(serve.HTTP, p.class, "", p.detail)
}

// fail has x answer a line that is not a request.
func (b *batch) fail(x *exchange, reply serve.Reply) {
	x.refused = &reply
	x.answered <- struct{}{}
}

// ask asks the engine for a line. It reports false if the batch ends behind it: the token of its caller has been revoked.
func (b *batch) ask(x *exchange, doc []byte, locate func(error) error) (goesOn bool) {
	q := x.query
	q.Context, q.Connection, q.Outbox = b.conn.context, b.conn.number, b.conn.outbox
	q.Body, q.Timeout, q.TraceParent, q.Locate = doc, b.timeout, b.trace, locate
	if q.Caller, goesOn = b.front.store.Renew(b.caller); !goesOn {
		q.Caller = nil // The answer says so.
		b.front.service.ConnCut(serve.HTTP, serve.CutRevoked)
	}
	b.front.service.Ask(q)
	return goesOn
}

// Read implements io.Reader for fasthttp, which sends what it gets at once. It waits for the first answer, and takes those
// behind it that are there already.
func (b *batch) Read(p []byte) (int, error) {
	if b.sent == len(b.out) {
		b.out, b.sent = b.out[:0], 0
		for len(b.out) < len(p) {
			x := b.next(len(b.out) == 0)
			if x == nil {
				break
			}
			if x.waiting > 0 {
				b.conn.makeRoom(x.waiting) // A client that has gone may still read.
			}
			b.out = append(x.reply().AppendBody(b.out), '\n')
			b.release(x)
		}
		if len(b.out) == 0 {
			return 0, io.EOF
		}
		b.conn.owe(len(b.out))
	}
	n := copy(p, b.out[b.sent:])
	b.sent += n
	if cap(b.out) > answerBytesKept && b.sent == len(b.out) {
		b.out, b.sent = nil, 0
	}
	return n, nil
}

// next returns the exchange that is first in line once it is answered. Without wait it returns nil if that is not so yet. It returns nil at
// the end.
func (b *batch) next(wait bool) *exchange {
	if b.first == nil {
		select {
		case b.first = <-b.line:
		default:
			if !wait {
				return nil
			}
			b.first = <-b.line
		}
	}
	x := b.first
	if x == nil {
		return nil
	}
	select {
	case <-x.answered:
	default:
		if !wait {
			return nil
		}
		<-x.answered
	}
	b.first = nil
	return x
}

// release gives x back to the reader.
func (b *batch) release(x *exchange) {
	x.refused = nil
	x.release()
	b.free <- x
}

// Close implements io.Closer for fasthttp. It ends the batch wherever it is, and returns when nothing of it runs any more.
func (b *batch) Close() error {
	b.conn.abandon()
	b.conn.stopReading()
	for x := b.next(true); x != nil; x = b.next(true) {
		b.release(x)
	}
	b.reading.Wait()
	b.hold(0)
	b.conn.lingering = true // The client may have more to send.
	for _, x := range b.all {
		x.free()
	}
	return nil
}
