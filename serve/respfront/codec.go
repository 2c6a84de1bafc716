package respfront

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// A codec speaks RESP with one client. Loop only, except for Encode.
type codec struct {
	*session.Session
	front *Front
	*scratch
	reader reader
	many   many // the RANK.MANY under way

	proto3        bool           // the client has asked for RESP3
	caller        *access.Caller // nil: not logged in
	refusedLogins int
	about         [aboutFields]string // what the client says of itself
}

func (f *Front) newCodecs() func(*session.Session) session.Codec {
	shared := new(scratch)
	return func(s *session.Session) session.Codec { return &codec{Session: s, front: f, scratch: shared} }
}

// Begin implements session.Codec.
func (c *codec) Begin(data []byte) (consumed int) {
	c.limit()
	args, size, err := c.reader.next(data, c.argv)
	if err != nil {
		c.refuseBytes(err)
		return len(data)
	}
	if len(args) > 0 {
		c.argv = args
		c.run(args)
	}
	return size
}

// A client that has not logged in may send commands with so many arguments and bytes, as in Redis.
const (
	strangerArgsMax  = 10
	strangerBytesMax = 16 << 10
)

// limit sets the limits of the next command.
func (c *codec) limit() {
	f := c.front
	c.reader.argsMax, c.reader.bytesMax = f.options.MaxArguments, f.options.MaxRequestBytes
	if c.caller == nil && f.store.Anonymous() == nil {
		c.reader.argsMax, c.reader.bytesMax = min(strangerArgsMax, c.reader.argsMax), min(strangerBytesMax, c.reader.bytesMax)
	}
}

// Proceed implements session.Codec. It goes on with a RANK.MANY.
func (c *codec) Proceed() {
	for !c.many.done() && c.MayAsk() {
		c.renew() // The reply says so if the token has been revoked meanwhile.
		c.rank(c.many.plan, c.many.next(), nil)
	}
	c.Pend(!c.many.done())
}

// refuseBytes answers bytes that are not a command, and ends the session.
func (c *codec) refuseBytes(err error) {
	switch {
	case errors.Is(err, errArgsMax):
		c.EndWith(c.Refuse(outcome.TooLarge, fmt.Sprintf("a command may have %d arguments, its name among them", c.reader.argsMax)))
	case errors.Is(err, errBytesMax):
		c.EndWith(c.Refuse(outcome.TooLarge, fmt.Sprintf("a command may have %d bytes", c.reader.bytesMax)))
	default:
		const word = "Protocol error: " // redcon's errors have it
		c.EndWith(redcon.AppendError(nil, "ERR "+word+strings.TrimPrefix(err.Error(), word)))
	}
}

// Stop implements session.Codec. RESP has no word for any of the reasons.
func (c *codec) Stop(session.Stop) {}

// Fail implements session.Codec.
func (c *codec) Fail(refused *serve.Reply) { c.EndWith(appendFailure(nil, refused)) }

// Encode implements session.Codec.
func (c *codec) Encode(buf []byte, r *serve.Reply, _ []byte, _ bool) (reply, memory []byte) {
	if r.Class != outcome.OK {
		buf = appendFailure(buf[:0], r)
		return buf, buf
	}
	// The length of a bulk string comes first, and is known last.
	var room [len("$\r\n") + 20]byte
	buf = r.AppendBody(append(buf[:0], room[:]...))
	length := len(buf) - len(room)
	buf = append(buf, '\r', '\n')
	header := append(strconv.AppendInt(append(room[:0], '$'), int64(length), 10), '\r', '\n')
	reply = buf[len(room)-len(header):]
	copy(reply, header)
	return reply, buf
}

// appendFailure appends the error reply that says how a request ended.
func appendFailure(dst []byte, r *serve.Reply) []byte {
	dst = append(append(append(dst, '-'), r.Class.Code()...), ' ')
	return append(append(dst, r.Message()...), '\r', '\n')
}

// appendMap appends the header of a map: in RESP2 an array of keys and values.
func (c *codec) appendMap(dst []byte, pairs int) []byte {
	if !c.proto3 {
		return redcon.AppendArray(dst, 2*pairs)
	}
	return append(strconv.AppendInt(append(dst, '%'), int64(pairs), 10), '\r', '\n')
}

// appendNull appends the reply for nothing.
func (c *codec) appendNull(dst []byte) []byte {
	if c.proto3 {
		return append(dst, "_\r\n"...)
	}
	return redcon.AppendNull(dst)
}

// appendNullArray appends the reply for no array.
func (c *codec) appendNullArray(dst []byte) []byte {
	if c.proto3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "*-1\r\n"...)
}
