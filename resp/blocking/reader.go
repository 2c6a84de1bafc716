package blocking

import (
	"net"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/resp"
)

// readBufferBytes is the initial read buffer; Redis writes in pieces of 16 KiB.
const readBufferBytes = 16 << 10

// readBufferKeepBytes is the largest read buffer that an idle reader keeps.
const readBufferKeepBytes = 1 << 20

// readersKeep is how many idle readers a client keeps. Calls take turns, so more are in
// use only while callers look at their replies; a reader keeps up to some 3 MiB.
const readersKeep = 8

// A reader holds the bytes and replies that one call reads. Each call under way has its own, so
// that its views stay valid while the next call uses the connection. One goroutine at a time.
type reader struct {
	decoder *resp.Decoder
	buf     []byte
	parts   resp.Gathered // the replies to a batch sent in parts
	watch   resp.Watch    // of the present call; may be nil
}

func (c *Client) newReader() *reader {
	return &reader{decoder: resp.NewDecoder(c.opts.Limits), buf: make([]byte, readBufferBytes)}
}

// takeReader returns an idle reader or a new one.
func (c *Client) takeReader() *reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.mu.readers) - 1
	if last < 0 {
		return c.newReader()
	}
	r := c.mu.readers[last]
	c.mu.readers = c.mu.readers[:last]
	return r
}

// giveBack makes a reader idle.
func (c *Client) giveBack(r *reader) {
	r.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.readers) < readersKeep {
		c.mu.readers = append(c.mu.readers, r)
	}
}

// reset forgets the replies, and memory that is out of proportion.
func (r *reader) reset() {
	if cap(r.buf) > readBufferKeepBytes {
		r.buf = make([]byte, readBufferBytes)
	}
	r.decoder.Reset(0)
	r.parts.Reset()
}

// read reads exactly n replies, of at most maxBytes in all, and returns how many bytes they have.
func (r *reader) read(nc net.Conn, n, maxBytes int) (replies resp.Replies, size int, err error) {
	r.decoder.Reset(n)
	for filled := 0; ; {
		got, err := nc.Read(r.buf[filled:])
		filled += got
		size, done, decodeErr := r.decoder.Decode(r.buf[:filled])
		switch {
		case decodeErr != nil:
			return resp.Replies{}, 0, decodeErr
		case done && size < filled:
			return resp.Replies{}, 0, resp.ErrUnsolicited
		case done && size > maxBytes, !done && max(filled, r.decoder.Need()) > maxBytes:
			return resp.Replies{}, 0, resp.ErrTooLarge
		case done:
			return r.decoder.Replies(), size, nil
		case err != nil:
			return resp.Replies{}, 0, err
		case filled == len(r.buf):
			buf := make([]byte, min(2*filled, max(filled+1, maxBytes)))
			copy(buf, r.buf)
			r.buf = buf
		}
	}
}

// greetingMaxBytes bounds the replies to a greeting, each a line.
const greetingMaxBytes = 1 << 20

// readEach reads exactly n replies. It calls check with each as soon as it is there, and returns the first
// error.
func (r *reader) readEach(nc net.Conn, n int, check func(i int, reply resp.Reply) error) error {
	filled, used := 0, 0 // r.buf[used:filled] is not decoded
	for i := 0; i < n; {
		r.decoder.Reset(1)
		size, done, err := r.decoder.Decode(r.buf[used:filled])
		switch {
		case err != nil:
			return err
		case done:
			if err := check(i, r.decoder.Replies().At(0)); err != nil {
				return err
			}
			used += size
			i++
			continue
		case filled == len(r.buf) && filled >= greetingMaxBytes:
			return transport.ErrUnreadLimit
		case filled == len(r.buf):
			r.buf = append(r.buf, make([]byte, filled)...)
		}
		got, err := nc.Read(r.buf[filled:])
		filled += got
		if got == 0 && err != nil {
			return err
		}
	}
	if used < filled {
		return resp.ErrUnsolicited
	}
	return nil
}

// A ReplyBuffer holds the replies to one call until the next Exchange into it. The zero value is
// ready; it belongs to the client that used it first, or to any of the Connections. One goroutine
// at a time.
type ReplyBuffer struct {
	// Watch sees the commands of the next Exchange on their way. Nil: nobody looks.
	Watch resp.Watch

	reader *reader
}

// Exchange is Do with the replies left in buf instead of handed to a function:
// they stay valid until the next Exchange into buf.
func (c *Client) Exchange(b *resp.Batch, deadline clock.Time, buf *ReplyBuffer) (resp.Replies, error) {
	b.MustBeWhole()
	if buf.reader == nil {
		buf.reader = c.newReader()
	}
	buf.reader.reset()
	buf.reader.watch = buf.Watch
	return c.exchange(b, deadline, buf.reader)
}
