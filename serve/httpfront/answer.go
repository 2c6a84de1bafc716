package httpfront

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve"
)

// The content types of answers.
const (
	typeJSON      = "application/json"
	typeJSONLines = "application/x-ndjson"
)

// problem is a refusal of the front itself: the request does not reach the service. Immutable.
type problem struct {
	class  outcome.Class // for the metrics and the log
	status int           // 0: the status of the class
	detail string
}

// The problems whose details do not depend on the request. malformed and manyBytes get their details from faults and
// sessions.
var (
	malformed  = &problem{outcome.BadRequest, 0, "the request line, a header or the end of the body is malformed"}
	manyBytes  = &problem{outcome.Overloaded, 0, "all connections together have too many bytes unread"}
	tooSlow    = &problem{outcome.BadRequest, http.StatusRequestTimeout, "the request did not arrive in time"}
	brokenBody = &problem{outcome.BadRequest, 0, "the body ends early, or its chunks are broken"}
	cutShort   = &problem{outcome.BadRequest, 0, "the request ends early"}
	longHead   = &problem{outcome.TooLarge, http.StatusRequestHeaderFieldsTooLarge, "request line and headers are too long together"}
	oldVersion = &problem{outcome.BadRequest, http.StatusHTTPVersionNotSupported, "a batch needs HTTP/1.1"}
	noBody     = &problem{outcome.BadRequest, 0, "a batch needs a body"}
	noPath     = &problem{outcome.BadRequest, http.StatusNotFound, "no such path; GET /openapi.json lists the paths"}
	noToken    = &problem{outcome.Unauthenticated, 0, "the header Authorization must be: Bearer, and a token"}
	badToken   = &problem{outcome.Unauthenticated, 0, "the token is unknown"}
	badTimeout = &problem{outcome.BadRequest, 0, "X-Request-Timeout-Ms must be a number of milliseconds, 1 or more"}
	encoded    = &problem{outcome.BadRequest, http.StatusUnsupportedMediaType, "a body with a Content-Encoding is not understood"}
)

// noMethod returns the problem of a method that a path does not take.
func noMethod(r *route) *problem {
	return &problem{outcome.BadRequest, http.StatusMethodNotAllowed, "the path takes " + r.allow()}
}

func tooLarge(most int) *problem {
	return &problem{class: outcome.TooLarge, detail: fmt.Sprintf("the body is longer than %d bytes", most)}
}

func (f fault) problem() *problem {
	p := &problem{class: outcome.BadRequest, detail: string(f)}
	if f == faultVersion {
		p.status = http.StatusHTTPVersionNotSupported
	}
	return p
}

func (p *problem) statusCode() int {
	if p.status != 0 {
		return p.status
	}
	return p.class.Status()
}

// A note is what an answer needs of its request: a byte of these flags, and then whole header lines that repeat its ids.
const (
	noteID   = 1 << iota // the lines have an id
	noteKeep             // a client of HTTP/1.0 asks to keep the connection
	noteLine             // the answer is a line of a batch
)

// appendNote appends the note of a request. closes says that the connection ends with the answer.
func (h *head) appendNote(dst []byte, closes bool) []byte {
	at := len(dst)
	dst = append(dst, 0)
	if id := h.id(); id != nil {
		dst[at] |= noteID
		dst = appendField(dst, requestID, id)
	}
	if trace := h.trace(); trace != nil {
		dst = appendField(dst, traceParent, trace)
	}
	if !h.http11 && !closes {
		dst[at] |= noteKeep
	}
	return dst
}

func appendField[V []byte | string](dst []byte, f field, value V) []byte {
	dst = append(append(dst, fieldNames[f]...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// headRoom is enough for the head of an answer, apart from the note and a header Allow.
const headRoom = 512

// Encode implements session.Codec.
func (c *codec) Encode(buf []byte, r *serve.Reply, note []byte, last bool) (reply, memory []byte) {
	if len(note) > 0 && note[0]&noteLine != 0 {
		buf = appendLine(buf[:0], r)
		return buf, buf
	}
	// The length of the body precedes the body, but is known last.
	room := headRoom + len(note)
	if cap(buf) < room {
		buf = make([]byte, room, 4*room)
	}
	buf = r.AppendBody(buf[:room])
	var onStack [headRoom]byte
	head := c.front.appendReplyHead(onStack[:0], r, r.Class.Status(), "", len(buf)-room, note, last)
	reply = buf[room-len(head):]
	copy(reply, head)
	return reply, buf
}

// appendLine appends the line of a batch, as a chunk.
func appendLine(dst []byte, r *serve.Reply) []byte {
	const digits = 8
	start := len(dst)
	dst = append(dst, "00000000\r\n"...)
	at := len(dst)
	dst = append(r.AppendBody(dst), '\n')
	length := len(dst) - at
	for i := range digits {
		dst[start+digits-1-i] = "0123456789abcdef"[length>>(4*i)&0xf]
	}
	return append(dst, "\r\n"...)
}

// appendReply appends an answer with its head.
func (f *Front) appendReply(dst []byte, r *serve.Reply, status int, allow string, note []byte, last bool) []byte {
	body := r.AppendBody(nil)
	return append(f.appendReplyHead(dst, r, status, allow, len(body), note, last), body...)
}

// appendReplyHead appends the head of a reply with so many bytes of body. If the request's header has no id, the
// front's own id, or the body's, is used.
func (f *Front) appendReplyHead(dst []byte, r *serve.Reply, status int, allow string, length int, note []byte, last bool) []byte {
	end := len("\r\n")
	dst = f.appendHead(dst, status, typeJSON, length, note, last)
	dst = dst[:len(dst)-end]
	if (len(note) == 0 || note[0]&noteID == 0) && isID(r.RequestID) {
		dst = appendField(dst, requestID, r.RequestID)
	}
	if seconds := r.Class.RetryAfter(); seconds > 0 {
		dst = append(strconv.AppendInt(append(dst, "Retry-After: "...), int64(seconds), 10), "\r\n"...)
	}
	if status == http.StatusUnauthorized {
		dst = append(dst, "WWW-Authenticate: Bearer\r\n"...)
	}
	if allow != "" {
		dst = append(append(append(dst, "Allow: "...), allow...), "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// appendHead appends the head of an answer with its empty line. A negative length says that the body comes in chunks.
func (f *Front) appendHead(dst []byte, status int, contentType string, length int, note []byte, last bool) []byte {
	if status == http.StatusOK {
		dst = append(dst, "HTTP/1.1 200 OK\r\n"...)
	} else {
		dst = append(append(strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(status), 10), ' '), http.StatusText(status)...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, f.dateLine()...)
	dst = append(append(append(dst, "Content-Type: "...), contentType...), "\r\n"...)
	if length < 0 {
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	} else {
		dst = append(strconv.AppendInt(append(dst, "Content-Length: "...), int64(length), 10), "\r\n"...)
	}
	if len(note) > 0 {
		dst = append(dst, note[1:]...)
	}
	switch {
	case last:
		dst = append(dst, "Connection: close\r\n"...)
	case len(note) > 0 && note[0]&noteKeep != 0:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}
