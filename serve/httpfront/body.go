package httpfront

import (
	"errors"
	"io"
	"os"
	"slices"
)

// bodyBytesFree is what a body may hold without counting for Options.MaxBodyBytes, what one body leaves to the next, and how long
// a body may be that the front reads only to be rid of it. fasthttp has read as much before it calls the front.
const bodyBytesFree = 8 << 10

// chunked is the length of a body of unknown length, as fasthttp has it.
const chunked = -1

// body is the body of a request as it arrives. One goroutine at a time.
type body struct {
	stream io.Reader // of fasthttp; nil if there is no body
	conn   *conn
	length int // or chunked
}

// Read implements io.Reader. fasthttp takes the end of the connection for the end of a body where a chunk may begin: that is an error here.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.stream.Read(p)
	if err == io.EOF && b.length == chunked && b.conn.ended {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readBody reads the body into x.body. It returns nil, or the reason why it could not.
func (x *exchange) readBody() *problem {
	most := x.front.options.MaxRequestBytes
	x.body = x.body[:0]
	if !x.unread {
		return nil
	}
	if x.incoming.length > most {
		return tooLarge(most)
	}
	for {
		if !x.growBody() {
			return manyBodies
		}
		n, err := x.incoming.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		switch {
		case len(x.body) > most:
			return tooLarge(most)
		case err == io.EOF:
			x.bodyEnded()
			return nil
		case err != nil:
			return bodyProblem(err)
		}
	}
}

// growBody makes room for more of the body. It reports false if all bodies together would become too long.
func (x *exchange) growBody() bool {
	if len(x.body) < cap(x.body) {
		return true
	}
	size := max(2*cap(x.body), 1<<10)
	if size > bodyBytesFree {
		more := int64(size) - x.held
		x.held += more
		if x.front.bodyBytes.Add(more) > int64(x.front.options.MaxBodyBytes) {
			return false
		}
	}
	x.body = slices.Grow(x.body, size-len(x.body))
	return true
}

// dropBody gives back what the body holds, except for a small buffer.
func (x *exchange) dropBody() {
	x.front.bodyBytes.Add(-x.held)
	x.held = 0
	if cap(x.body) > bodyBytesFree {
		x.body = nil
	}
}

// bodyEnded notes that the body has been read to its end. A trailer follows a chunked body, and fasthttp does not find the end of
// each: the connection is not used again.
func (x *exchange) bodyEnded() {
	x.unread = false
	if x.incoming.length == chunked {
		x.ctx.SetConnectionClose()
	}
}

// settleBody has the connection end behind an answer whose request has not been read to its end: the rest would be taken for the
// next request. A short body is read instead, since it is there already.
func (x *exchange) settleBody() {
	if !x.unread {
		return
	}
	if length := x.incoming.length; length != chunked && length <= bodyBytesFree {
		if _, err := io.Copy(io.Discard, &x.incoming); err == nil {
			return
		}
	}
	x.ctx.SetConnectionClose()
	x.conn.lingering = true
}

// bodyProblem returns the problem of a body that ended early.
func bodyProblem(err error) *problem {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return tooSlow
	}
	return brokenBody
}
