package httpfront

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
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

	all       []*exchange
	free      chan *exchange // exchanges not in use
	line      chan *exchange // exchanges in use, in input order; has room for all
	pending   abandoner      // the batch itself, for conn.asked
	abandoned atomic.Bool    // no further line is asked
	reading   sync.WaitGroup // the reader goroutine

	first *exchange // taken from line, and not answered yet; nil if none
	out   []byte    // answers on their way to Read
	sent  int       // how much of out has left
}

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
	b.pending = b
	for i := range b.all {
		b.all[i] = b.front.exchanges.Get().(*exchange)
		b.free <- b.all[i]
	}
	x.unread = false
	x.ctx.SetConnectionClose() // The body may turn out to be broken when this head has left.
	x.conn.enter(between)
	x.conn.asked.Store(&b.pending)
	b.reading.Go(b.read)

	response := &x.ctx.Response
	x.echo("")
	response.SetStatusCode(http.StatusOK)
	response.Header.SetContentType(typeJSONLines)
	response.ImmediateHeaderFlush = true // A client may wait for the head before it sends a line.
	response.SetBodyStream(b, -1)
}

// read is the reader goroutine.
func (b *batch) read() {
	defer close(b.line)
	stream := request.NewLineStream(&b.body, b.front.options.MaxRequestBytes)
	for x := range b.free {
		b.conn.started = false // The deadline of a line counts from here.
		doc, err := stream.Next()
		if err == io.EOF || b.abandoned.Load() {
			return
		}
		lost := err != nil && !errors.As(err, new(*request.Error))
		switch {
		case lost:
			b.fail(x, b.front.service.Refuse(serve.HTTP, serve.BadRequest, "", bodyProblem(err).detail))
		case err != nil:
			b.fail(x, b.front.service.Fail(serve.HTTP, err))
		default:
			b.ask(x, doc, func(err error) error { return stream.Locate(err, doc) })
		}
		b.line <- x
		if lost {
			if gone(err) {
				b.abandon()
			}
			return
		}
	}
}

// fail has x answer a line that is not a request.
func (b *batch) fail(x *exchange, reply serve.Reply) {
	x.refused = &reply
	x.answered <- struct{}{}
}

// ask asks the engine for a line.
func (b *batch) ask(x *exchange, doc []byte, locate func(error) error) {
	q := x.query
	q.Body, q.Timeout, q.TraceParent, q.Locate = doc, b.timeout, b.trace, locate
	if q.Caller, _ = b.front.store.Renew(b.caller); q.Caller == nil {
		b.front.service.ConnCut(serve.HTTP, serve.CutRevoked)
	}
	b.front.service.Ask(q)
	if b.abandoned.Load() || b.front.cutting.Load() {
		q.Abandon()
	}
}

// abandon implements abandoner.
func (b *batch) abandon() {
	b.abandoned.Store(true)
	for _, x := range b.all {
		x.abandon()
	}
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
			b.out = append(x.reply().AppendBody(b.out), '\n')
			b.release(x)
		}
		if len(b.out) == 0 {
			return 0, io.EOF
		}
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
	x.query.Release()
	b.free <- x
}

// Close implements io.Closer for fasthttp. It ends the batch wherever it is, and returns when nothing of it runs any more.
func (b *batch) Close() error {
	b.abandon()
	b.conn.stopReading()
	for x := b.next(true); x != nil; x = b.next(true) {
		b.release(x)
	}
	b.reading.Wait()
	b.conn.asked.Store(nil)
	b.conn.lingering = true // The client may have more to send.
	for _, x := range b.all {
		x.free()
	}
	return nil
}
