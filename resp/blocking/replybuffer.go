package blocking

import (
	"net"

	"github.com/rankd/rankd/resp"
)

const (
	readBytes     = 16 << 10 // of a new buffer; Redis writes in pieces of 16 KiB
	readBytesKeep = 1 << 20  // the most that an idle buffer keeps
	// buffersKeep is how many idle buffers a client keeps for Do. More are in use only while callers look at their
	// replies; a buffer keeps up to some 3 MiB.
	buffersKeep = 8
)

// A ReplyBuffer holds the bytes and replies of one call until the next Exchange into it. So they stay valid while other
// calls use the connection. The zero value is ready; it belongs to the client that used it first. One goroutine at a time.
type ReplyBuffer struct {
	// Watch observes the commands of the next Exchange. Nil: nobody does.
	Watch resp.Watch

	decoder      *resp.Decoder
	buf          []byte
	used, filled int           // buf[used:filled] was read and is not decoded
	parts        resp.Gathered // the replies to a batch sent in parts
	gathered     resp.Gathered // the replies of several nodes, which a Cluster resets
}

// spareBuffers are the buffers that no Do uses. Any goroutine.
type spareBuffers chan *ReplyBuffer

// take returns a buffer.
func (s spareBuffers) take() *ReplyBuffer {
	select {
	case buf := <-s:
		return buf
	default:
		return new(ReplyBuffer)
	}
}

// give takes a buffer back.
func (s spareBuffers) give(buf *ReplyBuffer, limits resp.Limits) {
	buf.reset(limits)
	buf.gathered.Reset()
	buf.Watch = nil
	select {
	case s <- buf:
	default:
	}
}

// do is a Client's Do by its Exchange.
func (s spareBuffers) do(limits resp.Limits, exchange func(*ReplyBuffer) (resp.Replies, error), use func(resp.Replies) error) error {
	buf := s.take()
	defer s.give(buf, limits)
	replies, err := exchange(buf)
	if err != nil {
		return err
	}
	return use(replies)
}

// reset forgets the replies of one node, and frees memory that is far too large.
func (r *ReplyBuffer) reset(limits resp.Limits) {
	if r.decoder == nil {
		r.decoder = resp.NewDecoder(limits)
	}
	if r.buf == nil || cap(r.buf) > readBytesKeep {
		r.buf = make([]byte, readBytes)
	}
	r.used, r.filled = 0, 0
	r.decoder.Reset(0)
	r.parts.Reset()
}

// read reads the next n replies, of at most maxBytes in all, and returns how many bytes they have.
func (r *ReplyBuffer) read(nc net.Conn, n, maxBytes int) (replies resp.Replies, size int, err error) {
	r.decoder.Reset(n)
	for {
		size, done, err := r.decoder.Decode(r.buf[r.used:r.filled])
		switch {
		case err != nil:
			return resp.Replies{}, 0, err
		case done && size > maxBytes, !done && max(r.filled-r.used, r.decoder.Need()) > maxBytes:
			return resp.Replies{}, 0, resp.ErrTooLarge
		case done:
			r.used += size
			return r.decoder.Replies(), size, nil
		case r.filled == len(r.buf):
			buf := make([]byte, min(2*r.filled, max(r.filled+1, r.used+maxBytes)))
			copy(buf, r.buf)
			r.buf = buf
		}
		got, err := nc.Read(r.buf[r.filled:])
		r.filled += got
		if got == 0 && err != nil {
			return resp.Replies{}, 0, err
		}
	}
}

// finish makes room for the next replies. The error says that more was read than was asked for.
func (r *ReplyBuffer) finish() error {
	if r.used < r.filled {
		return resp.ErrUnsolicited
	}
	r.used, r.filled = 0, 0
	return nil
}
