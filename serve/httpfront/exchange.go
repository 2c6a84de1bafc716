package httpfront

import (
	"github.com/valyala/fasthttp"

	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// exchange is one request of a client and its answer. A pool keeps exchanges, so that a request allocates few things beside its
// answer. The goroutine of the connection owns it, or a batch.
type exchange struct {
	front *Front
	conn  *conn
	ctx   *fasthttp.RequestCtx // of this request; nil in a batch

	head   head
	plan   []byte // of the path
	caller *access.Caller

	incoming body
	unread   bool   // the end of incoming has not been read
	body     []byte // what has been read of it; kept for the next request
	held     int64  // what body counts of Options.MaxBodyBytes

	query    *serve.Query
	waiting  int           // bytes of its answer, about, that the outbox of conn counts; from answered on
	answered chan struct{} // one value a query
	refused  *serve.Reply  // of a line of a batch that is not a request; nil otherwise
}

func newExchange(f *Front) *exchange {
	x := &exchange{front: f, answered: make(chan struct{}, 1)}
	x.query = f.service.NewQuery(serve.HTTP, func(q *serve.Query) {
		x.waiting = q.Held()
		x.answered <- struct{}{}
	})
	return x
}

// release forgets the query and its answer.
func (x *exchange) release() {
	x.query.Release()
	if x.waiting > 0 {
		x.conn.outbox.Hold(-x.waiting)
		x.waiting = 0
	}
}

// free forgets the request and gives the exchange back.
func (x *exchange) free() {
	x.release()
	x.dropBody()
	x.conn, x.ctx, x.head, x.plan, x.caller, x.incoming, x.refused = nil, nil, head{}, nil, nil, body{}, nil
	x.front.exchanges.Put(x)
}

// reply returns what answers the query, or the line that is not a request.
func (x *exchange) reply() *serve.Reply {
	if x.refused != nil {
		return x.refused
	}
	return &x.query.Reply
}

// wait waits for the reply to the query that has been asked.
func (x *exchange) wait() {
	<-x.answered
}
