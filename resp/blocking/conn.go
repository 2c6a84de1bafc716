package blocking

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/resp"
)

// A conn is one of a client's connections. It belongs to the call that has taken it.
type conn struct {
	client  *Client
	number  int          // in client.conns
	backoff resp.Backoff // of the attempts to connect
	lastErr error        // why the last connection or attempt ended; nil before the first end
	used    bool         // it had a connection before
	at      string       // the address of the server

	net.Conn                    // nil: none
	unhook   func() bool        // keeps Close from closing it
	raw      syscall.RawConn    // of it
	lookFn   func(uintptr) bool // look, bound once
	first    [1]byte            // the byte that look has seen
	found    error              // the result of look
	heardAt  time.Time          // when the last byte came, or the commands left
	by       time.Time          // when the call fails, whatever the server says; zero: never
}

// sameLimit decides which timeout a failed attempt to connect reports. The attempt's own limit is the reason if it
// comes at most so long after the call's. If the two timeouts are equal, as they are by default, the call's began a
// moment earlier, but the missing connection is the real reason.
const sameLimit = 10 * time.Millisecond

// ready makes a connection unless there is one that can take a batch, within RequestTimeout and by an instant (zero: none). The error is
// that of the call.
func (cn *conn) ready(by time.Time, buf *ReplyBuffer) error {
	c := cn.client
	if c.life.Err() != nil {
		return c.failed(resp.ErrClosed, nil)
	}
	if cn.Conn != nil {
		err := cn.checkIdle()
		if err == nil && c.sentinels != nil && !c.sentinels.isMaster(cn.at) {
			err = ErrSwitched
		}
		if err == nil {
			return nil
		}
		cn.drop(err)
	}
	now := time.Now()
	limit := earlier(now.Add(c.opts.RequestTimeout), by)
	late := resp.ErrTimeout // of the call, unless the attempt's own limit comes first
	if now.Add(c.opts.ConnectTimeout).Before(limit.Add(sameLimit)) {
		late = resp.ErrConnect
	}
	limit = earlier(now.Add(c.opts.ConnectTimeout), limit)
	ctx, cancel := context.WithDeadline(c.life, limit)
	defer cancel()
	if !cn.waitOutPause(ctx) {
		return c.failed(late, fmt.Errorf("not connected: %w", cn.lastErr))
	}
	c.count(func(s *resp.Stats) { s.Connects++ })
	err := cn.dial(ctx)
	if err == nil {
		err = cn.greet(buf, limit)
	}
	if err != nil {
		cn.drop(cn.ofMaster(err))
		kind, cause := c.classify(resp.ErrConnect, late, err)
		return c.failed(kind, cn.ofMaster(cause))
	}
	cn.backoff.Ready(c.clock.Now())
	return nil
}

// ofMaster is OfMaster for a connection to a master that sentinels have named. Other errors stay.
func (cn *conn) ofMaster(err error) error {
	if cn.client.sentinels == nil || cn.at == "" {
		return err
	}
	return OfMaster(cn.at, err)
}

// waitOutPause waits until the backoff allows an attempt to connect, and reports whether ctx has lasted.
func (cn *conn) waitOutPause(ctx context.Context) bool {
	pause := cn.backoff.RetryAt().Sub(cn.client.clock.Now())
	if pause <= 0 {
		return true
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// dial makes a connection, which ends with its client. It resolves a host name anew each time.
func (cn *conn) dial(ctx context.Context) error {
	c := cn.client
	cn.at = c.opts.Addr
	if c.sentinels != nil {
		var err error
		if cn.at, err = c.sentinels.Master(ctx); err != nil {
			return err
		}
	}
	network, address := transport.SplitAddr(cn.at)
	nc, err := c.connectTo(ctx, network, address)
	if err != nil {
		return err
	}
	cn.raw, _ = nc.(syscall.Conn).SyscallConn() // A net.Conn of a net.Dialer has one.
	if c.opts.Secure != nil {
		plain := nc
		if nc, err = c.opts.Secure(ctx, plain, cn.at); err != nil {
			_ = plain.Close()
			return err
		}
	}
	cn.Conn = nc
	cn.unhook = context.AfterFunc(c.life, func() { _ = nc.Close() })
	if cn.used {
		c.count(func(s *resp.Stats) { s.Reconnects++ })
	}
	cn.used = true
	return nil
}

// drop notes the end of a connection that no call can use any more, or of an attempt to make one.
func (cn *conn) drop(reason error) {
	if cn.Conn != nil {
		cn.unhook()
		_ = cn.Close() // It failed already.
		cn.Conn = nil
	}
	cn.backoff.Ended(cn.client.clock.Now())
	cn.lastErr = reason
}

// checkIdle returns the reason why the connection cannot take the next batch, or nil. While no command is unanswered,
// there must be nothing to read. The client would take unsolicited bytes as the answer to the next batch, and if the
// connection has ended, that batch would fail.
func (cn *conn) checkIdle() error {
	if err := cn.raw.Read(cn.lookFn); err != nil {
		return err
	}
	if cn.found == nil || cn.client.opts.Secure == nil {
		return cn.found
	}
	return cn.checkRecords()
}

// recordsWait is how long checkRecords waits for the rest of a record.
const recordsWait = time.Millisecond

// checkRecords is checkIdle for a connection with TLS that has bytes to read: records without data, such as tickets,
// may come at any time.
func (cn *conn) checkRecords() error {
	if err := cn.SetReadDeadline(time.Now().Add(recordsWait)); err != nil {
		return err
	}
	switch n, err := cn.Conn.Read(make([]byte, 1)); {
	case n > 0:
		return resp.ErrUnsolicited
	case timedOut(err):
		return cn.SetReadDeadline(time.Time{})
	default:
		return err
	}
}

// greetingMaxBytes bounds the replies to a greeting, each a line.
const greetingMaxBytes = 1 << 20

// greet sends AUTH, SELECT and the names. It looks at each reply as soon as it is there.
func (cn *conn) greet(buf *ReplyBuffer, limit time.Time) error {
	hello, err := cn.client.opts.Hello()
	if err != nil {
		return err
	}
	n := hello.Batch.Len()
	if n == 0 {
		return nil
	}
	if err := cn.expect(limit); err != nil {
		return err
	}
	if _, err := cn.Write(hello.Batch.Encoded()); err != nil {
		return err
	}
	for i := range n {
		reply, _, err := buf.read(cn, 1, greetingMaxBytes)
		switch {
		case err == resp.ErrTooLarge:
			return transport.ErrUnreadLimit
		case err != nil:
			return err
		}
		if err := hello.Check(i, reply.At(0)); err != nil {
			return err
		}
	}
	return buf.finish()
}

// earlier returns the earlier of two instants, of which the second may be zero: never.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// expect begins to wait for the server: commands leave now. by is the instant at which the call ends in any case;
// zero: never.
func (cn *conn) expect(by time.Time) error {
	cn.heardAt, cn.by = time.Now(), by
	return cn.SetDeadline(earlier(cn.silentBy(), by))
}

// silentBy returns when the server will have sent no byte for RequestTimeout.
func (cn *conn) silentBy() time.Time { return cn.heardAt.Add(cn.client.opts.RequestTimeout) }

// Read implements net.Conn for the call that waits. It fails when the call's time is up, or when the server has been
// silent for RequestTimeout. As on the reactor, a silence counts only if the socket is still empty when the limit has
// passed: on a busy machine the bytes may have come in time.
func (cn *conn) Read(p []byte) (int, error) {
	for {
		n, err := cn.Conn.Read(p)
		if n > 0 || !timedOut(err) {
			cn.heardAt = time.Now()
			return n, err
		}
		now := time.Now()
		if !cn.by.IsZero() && !now.Before(cn.by) {
			return 0, err
		}
		if !now.Before(cn.silentBy()) {
			if cn.SetReadDeadline(time.Time{}) != nil || cn.checkIdle() == nil {
				return 0, fmt.Errorf("no byte within %v: %w", cn.client.opts.RequestTimeout, err)
			}
			cn.heardAt = now // the bytes, or the end of the stream, can be read
		}
		if err := cn.SetReadDeadline(earlier(cn.silentBy(), cn.by)); err != nil {
			return 0, err
		}
	}
}

// timedOut reports whether an I/O operation failed because its time was up.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// roundTrips sends the batch and reads its replies, by an instant (zero: none).
func (cn *conn) roundTrips(b *resp.Batch, buf *ReplyBuffer, by time.Time) (resp.Replies, error) {
	c := cn.client
	for sent, received := 0, 0; sent < b.Len(); {
		if err := cn.expect(by); err != nil {
			return resp.Replies{}, err
		}
		n := min(b.Len()-sent, c.opts.MaxInflight)
		part := b.Span(sent, sent+n)
		if _, err := cn.Write(part); err != nil {
			return resp.Replies{}, err
		}
		c.count(func(s *resp.Stats) {
			s.RoundTrips++
			s.Asked += uint64(n)
			s.Commands += uint64(n)
			s.BytesSent += uint64(len(part))
		})
		if buf.Watch != nil {
			buf.Watch.Sent(cn.number, n, len(part), c.clock.Now())
		}
		replies, size, err := buf.read(cn, n, c.opts.MaxReplyBytes-received)
		if err == nil {
			err = buf.finish()
		}
		if err != nil {
			return resp.Replies{}, err
		}
		if buf.Watch != nil {
			buf.Watch.Replied(cn.number, n, size)
		}
		c.count(func(s *resp.Stats) { s.BytesReceived += uint64(size) })
		if n == b.Len() {
			return replies, nil
		}
		buf.parts.Add(replies)
		sent += n
		received += size
	}
	return buf.parts.Replies(), nil
}
