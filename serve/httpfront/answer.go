package httpfront

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"github.com/valyala/fasthttp"

	"github.com/rankd/rankd/outcome"
	"github.com/rankd/rankd/serve"
)

// The content types of answers.
const (
	typeJSON      = "application/json"
	typeJSONLines = "application/x-ndjson"
)

// problem is a refusal of the front itself: the request does not get as far as the service. Immutable.
type problem struct {
	class  outcome.Class // for the metrics and the log
	status int           // 0: the status of the class
	detail string
	ends   bool // the connection ends, since nobody knows where the next request begins
}

// The problems whose details do not depend on the request.
var (
	tooSlow    = &problem{outcome.BadRequest, http.StatusRequestTimeout, "the request did not arrive in time", true}
	brokenBody = &problem{outcome.BadRequest, 0, "the body ends early, or its chunks are broken", true}
	cutShort   = &problem{outcome.BadRequest, 0, "the request ends early", true}
	manyBodies = &problem{outcome.Overloaded, 0, "too many long bodies are on their way", true}
	longHead   = &problem{outcome.TooLarge, http.StatusRequestHeaderFieldsTooLarge, "request line and headers are too long together", true}
	badHead    = &problem{outcome.BadRequest, 0, "the request line or a header is malformed", true}
	badVersion = &problem{outcome.BadRequest, http.StatusHTTPVersionNotSupported, "the version must be HTTP/1.1 or HTTP/1.0", true}
	oldVersion = &problem{outcome.BadRequest, http.StatusHTTPVersionNotSupported, "a batch needs HTTP/1.1", false}
	noBody     = &problem{outcome.BadRequest, 0, "a batch needs a body", false}
	noPath     = &problem{outcome.BadRequest, http.StatusNotFound, "no such path; GET /openapi.json lists the paths", false}
	noMethod   = &problem{outcome.BadRequest, http.StatusMethodNotAllowed, "the path takes another method", false}
	noToken    = &problem{outcome.Unauthenticated, 0, "the header Authorization must be: Bearer, and a token", false}
	badToken   = &problem{outcome.Unauthenticated, 0, "the token is unknown", false}
	badTimeout = &problem{outcome.BadRequest, 0, "X-Request-Timeout-Ms must be a number of milliseconds, 1 or more", false}
	encoded    = &problem{outcome.BadRequest, http.StatusUnsupportedMediaType, "a body with a Content-Encoding is not understood", false}
)

func tooLarge(most int) *problem {
	return &problem{class: outcome.TooLarge, detail: fmt.Sprintf("the body is longer than %d bytes", most)}
}

func (f fault) problem() *problem {
	return &problem{class: outcome.BadRequest, detail: string(f), ends: true}
}

func (p *problem) statusCode() int {
	if p.status != 0 {
		return p.status
	}
	return p.class.Status()
}

// refuse answers a request with a problem.
func (x *exchange) refuse(p *problem) {
	reply := x.front.service.Refuse(serve.HTTP, p.class, string(x.head.id()), p.detail)
	if p.ends {
		x.ctx.SetConnectionClose()
		x.conn.lingering = true
	}
	x.answer(&reply, p.statusCode())
}

// answer writes the reply with its headers. A long one waits until all connections together have room for it.
func (x *exchange) answer(reply *serve.Reply, status int) {
	if x.waiting > 0 && !x.conn.makeRoom(x.waiting) {
		return // The connection has been cut.
	}
	x.echo(reply.RequestID)
	x.front.write(&x.ctx.Response, reply, status)
	x.conn.owe(len(x.ctx.Response.Body()))
}

// echo repeats the ids of the request in the answer. An id of the front's own, or of the body, stands in for a missing one.
func (x *exchange) echo(replyID string) {
	headers := &x.ctx.Response.Header
	if id := x.head.id(); id != nil {
		headers.SetBytesV(fieldNames[requestID], id)
	} else if isID(replyID) {
		headers.Set(fieldNames[requestID], replyID)
	}
	if trace := x.head.trace(); trace != nil {
		headers.SetBytesV(fieldNames[traceParent], trace)
	}
}

// document answers with a JSON document of the front's own.
func (x *exchange) document(body []byte) {
	x.echo("")
	x.ctx.Response.Header.SetContentType(typeJSON)
	x.ctx.Response.SetBodyRaw(body)
}

// answerBytesKept bounds the buffer that one answer leaves to the next.
const answerBytesKept = 64 << 10

// write writes the body of a reply, its status and the headers that come with them.
func (f *Front) write(response *fasthttp.Response, reply *serve.Reply, status int) {
	response.SetStatusCode(status)
	response.Header.SetContentType(typeJSON)
	if seconds := reply.Class.RetryAfter(); seconds > 0 {
		response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
	}
	if status == http.StatusUnauthorized {
		response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	}
	body := reply.AppendBody(response.SwapBody(nil)[:0])
	if cap(body) > answerBytesKept {
		response.SetBodyRaw(body)
		return
	}
	response.SwapBody(body)
}

// handleError answers a request that fasthttp does not understand, or that does not arrive. fasthttp sends the answer in any case, so
// that a client that has only stopped sending gets one.
func (f *Front) handleError(ctx *fasthttp.RequestCtx, err error) {
	p, c := badHead, ctx.Conn().(*conn)
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		p = longHead
	case c.late:
		p = tooSlow
	case gone(err):
		p = cutShort
	}
	reply := f.service.Refuse(serve.HTTP, p.class, "", p.detail)
	ctx.Response.Reset()
	f.write(&ctx.Response, &reply, p.statusCode())
	c.lingering = !gone(err)
}

// gone reports whether a read failed since the client has closed the connection, or stopped sending.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}
