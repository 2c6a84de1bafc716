package httpfront

import (
	"bytes"
	"io"
	"net/http"

	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/serve"
)

// batch is one POST /v1/batch: a stream of lines in, a stream of lines out. Each line is a request of the session,
// and each answer a chunk, in the order of the lines. As many run as Options allow. The session leaves the others
// unread, so that a slow request, or a client that does not read, makes the client wait. Loop only.
type batch struct {
	*codec
	stream  *request.Stream
	lines   int    // that have ended
	long    bool   // the present line is too long, and its rest is dropped
	leaving bool   // the batch ends with the present line
	doc     []byte // the line that is asked for
	locate  func(error) error
}

// lastChunk ends the answer of a batch.
const lastChunk = "0\r\n\r\n"

// beginBatch is POST /v1/batch.
func (c *codec) beginBatch() {
	b := &batch{codec: c, stream: request.NewLineStream(nil, c.front.options.MaxRequestBytes)}
	b.locate = func(err error) error { return b.stream.Locate(err, b.doc) }
	c.batch, c.phase = b, inLines
	c.Within(false)
	c.grant()
	c.Reply(c.front.appendHead(nil, http.StatusOK, typeJSONLines, -1, c.head.appendNote(nil, true), true))
	c.Limit(c.front.options.BatchInflight)
	if c.framing.ended() {
		b.finish()
	}
}

// takeLine takes what has come of a line.
func (c *codec) takeLine(data []byte) (consumed int) {
	framing, content, ok := c.framing.next(data)
	if !ok {
		c.batch.fail(brokenBody)
		return len(data)
	}
	end := bytes.IndexByte(content, '\n') + 1
	if end > 0 {
		content = content[:end]
	}
	c.framing.take(len(content))
	c.batch.add(content, end > 0)
	if c.phase == inLines && c.framing.ended() {
		c.batch.finish()
	}
	return framing + len(content)
}

// add adds a piece to the present line. It may be the last piece.
func (b *batch) add(piece []byte, last bool) {
	switch {
	case len(piece) == 0:
		return
	case last && len(b.content) == 0:
		b.line(piece)
	default:
		if room := b.front.options.MaxRequestBytes + 1 - len(b.content); b.long || len(piece) > room && (!last || len(piece) > room+len("\r\n")) {
			b.long = true
			piece = piece[:max(min(room, len(piece)), 0)]
		}
		b.content = append(b.content, piece...)
		if last {
			b.line(b.content)
			b.content = nil
		}
	}
	if last {
		b.long = false
	}
	if b.phase == inLines {
		b.Within(!last)
		b.Keep(cap(b.content))
	}
}

// line answers a line.
func (b *batch) line(text []byte) {
	b.lines++
	doc, err := b.stream.Line(text, b.lines)
	switch {
	case err == io.EOF:
	case err != nil:
		refused := b.front.service.Fail(serve.HTTP, err)
		b.Reply(appendLine(nil, &refused))
	default:
		b.rank(doc)
	}
	if b.leaving {
		b.end()
	}
}

// rank asks the engine for a line. If the token of the caller has been revoked, the batch ends after it.
func (b *batch) rank(doc []byte) {
	b.doc = doc
	q := b.Request()
	caller, valid := b.front.store.Renew(b.caller)
	if valid {
		q.Caller = caller // Otherwise the answer says so.
	}
	q.Body, q.Timeout, q.TraceParent, q.Locate = doc, b.timeout, b.head.trace(), b.locate
	b.Annotate([]byte{noteLine})
	b.Ask()
	b.doc = nil
	if !valid {
		b.Revoked()
		b.end()
	}
}

// finish ends a batch whose body has ended.
func (b *batch) finish() {
	if len(b.content) > 0 {
		b.line(b.content)
	}
	if err := b.stream.End(); err != nil && b.phase == inLines {
		refused := b.front.service.Fail(serve.HTTP, err)
		b.Reply(appendLine(nil, &refused))
	}
	if b.phase == inLines {
		b.end()
	}
}

// drain ends the batch with the present line, or now if there is none.
func (b *batch) drain() {
	if b.leaving = true; len(b.content) == 0 {
		b.end()
	}
}

// end ends the answer after all lines, and then the connection: the client may have more to send.
func (b *batch) end() {
	b.phase, b.content, b.kept = over, nil, nil
	b.Reply([]byte(lastChunk))
	b.EndUnread()
}

// fail ends the batch with a problem, after the answers of all lines.
func (b *batch) fail(p *problem) {
	refused := b.front.service.Refuse(serve.HTTP, p.class, "", p.detail)
	b.endWith(&refused)
}

func (b *batch) endWith(refused *serve.Reply) {
	b.phase, b.content, b.kept = over, nil, nil
	b.EndWith(append(appendLine(nil, refused), lastChunk...))
}
