package resp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

// A SyncClient sends batches to one server over one connection and blocks until they
// are answered: for code that has a goroutine to spare. Calls take turns on the
// connection, whole batches at a time. Any goroutine.
//
// It connects in the first call and, after a connection has ended, in the next. A call
// that comes in the pause after a failure (see Options.BackoffMin) waits for its end. A
// connection that the server has closed while it was idle, or on which bytes arrived
// that nobody asked for, is replaced before anything is sent on it. A connection that
// ends later makes the call fail: the server may have run its commands, so they are not
// sent again.
type SyncClient struct {
	clock clock.Clock
	opts  Options
	hello *Batch

	turn chan struct{} // holds one token; who has it may use the connection
	// life ends with Close.
	life context.Context
	end  context.CancelFunc

	// These belong to the owner of the token.
	pace    pace  // of the attempts to connect
	lastErr error // why the last connection or attempt ended; nil before the first end

	mu struct { // guards what is reached without having the turn
		sync.Mutex
		readers   []*reader // idle ones, at most readersKeep
		conn      *syncConn // nil: none
		closed    bool
		connected bool
		stats     Stats
	}
}

// readBufferBytes is the initial read buffer; Redis writes in pieces of 16 KiB.
const readBufferBytes = 16 << 10

// readersKeep is how many idle readers a client keeps. Calls take turns, so more are in
// use only while callers look at their replies; a reader keeps up to some 3 MiB.
const readersKeep = 8

// sameLimit is how much later than the call's limit that of connecting may come and still
// be the reason given. Where the two timeouts are equal, as they are by default, the call's began
// to run a moment earlier; but what the server did not do is to connect.
const sameLimit = 10 * time.Millisecond

// A reader holds what one call reads. Each call under way has its own, so that its views
// stay valid while the next call uses the connection.
type reader struct {
	decoder *Decoder
	buf     []byte
	kept    tape
}

// NewSyncClient returns a client that has not connected yet. Deadlines are instants on
// clk, which must run at the pace of real time.
func NewSyncClient(clk clock.Clock, o Options) *SyncClient {
	o = o.withDefaults()
	return newSyncClient(clk, o, rand.New(rand.NewPCG(o.Seed, 0)))
}

// newSyncClient returns a client with its own source of jitter.
func newSyncClient(clk clock.Clock, o Options, jitter *rand.Rand) *SyncClient {
	c := &SyncClient{clock: clk, opts: o, hello: o.greeting(), pace: newPace(&o, jitter)}
	c.life, c.end = context.WithCancel(context.Background())
	c.turn = make(chan struct{}, 1)
	c.turn <- struct{}{}
	return c
}

// Do sends the batch in one write (in parts if it exceeds MaxInflight), waits for all
// its replies and calls use with them. The views are valid until use returns; other calls
// may have the connection meanwhile. Do returns use's error, or an *OpError if there were
// no replies, in which case use is not called. It never waits past deadline (zero:
// none), nor past RequestTimeout, its turn and connecting included.
func (c *SyncClient) Do(b *Batch, deadline clock.Time, use func(Replies) error) error {
	b.mustBeWhole()
	r := c.takeReader()
	defer c.giveBack(r)
	replies, err := c.exchange(b, deadline, r)
	if err != nil {
		return err
	}
	return use(replies)
}

// Close closes the connection. Calls under way fail, later ones return ErrClosed. A
// second call does nothing.
func (c *SyncClient) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	c.mu.closed = true
	c.end()
	if c.mu.conn != nil {
		_ = c.mu.conn.Close() // All that an error could say is that it is closed.
	}
}

// Stats returns the counters as they are now.
func (c *SyncClient) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.stats
}

// Addr returns the server's host:port.
func (c *SyncClient) Addr() string { return c.opts.Addr }

func (c *SyncClient) newReader() *reader {
	return &reader{decoder: NewDecoder(c.opts.Limits), buf: make([]byte, readBufferBytes)}
}

// takeReader returns an idle reader or a new one.
func (c *SyncClient) takeReader() *reader {
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
func (c *SyncClient) giveBack(r *reader) {
	r.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.readers) < readersKeep {
		c.mu.readers = append(c.mu.readers, r)
	}
}

// reset forgets the replies, and memory that is out of proportion.
func (r *reader) reset() {
	if cap(r.buf) > tapeKeepBytes {
		r.buf = make([]byte, readBufferBytes)
	}
	r.decoder.Reset(0)
	r.kept.clear()
}

// exchange waits for its turn and runs the batch.
func (c *SyncClient) exchange(b *Batch, deadline clock.Time, r *reader) (Replies, error) {
	now := c.clock.Now()
	by := now.Add(c.opts.RequestTimeout).Earlier(deadline)
	if by.Passed(now) {
		return Replies{}, c.failed(ErrTimeout, errDeadline)
	}
	limit := time.Now().Add(by.Sub(now))
	if err := c.takeTurn(limit); err != nil {
		return Replies{}, err
	}
	defer func() { c.turn <- struct{}{} }()
	conn, err := c.connection(limit, r)
	if err != nil {
		return Replies{}, err
	}
	c.count(func(s *Stats) { s.Batches++ })
	if b.Len() == 0 {
		return Replies{}, nil
	}
	replies, err := c.roundTrips(conn, b, r, limit)
	if err != nil {
		c.drop(conn, err)
		return Replies{}, c.classify(ErrConnectionLost, ErrTimeout, err)
	}
	c.pace.answered = true
	return replies, nil
}

// takeTurn waits for the connection to be free.
func (c *SyncClient) takeTurn(limit time.Time) error {
	select {
	case <-c.turn:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	select {
	case <-c.turn:
		return nil
	case <-c.life.Done():
		return c.failed(ErrClosed, nil)
	case <-timer.C:
		return c.failed(ErrTimeout, errors.New("not sent, other calls have the connection"))
	}
}

// connection returns the connection and makes it first if there is none.
func (c *SyncClient) connection(limit time.Time, r *reader) (*syncConn, error) {
	c.mu.Lock()
	conn, closed := c.mu.conn, c.mu.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, c.failed(ErrClosed, nil)
	case conn != nil:
		err := conn.spoilt()
		if err == nil {
			return conn, nil
		}
		c.drop(conn, err)
	}
	reason := ErrTimeout // of the call, unless the attempt's own limit comes first
	by := time.Now().Add(c.opts.ConnectTimeout)
	if by.Before(limit.Add(sameLimit)) {
		reason = ErrConnect
	}
	if by.Before(limit) {
		limit = by
	}
	if err := c.sitOut(limit, reason); err != nil {
		return nil, err
	}
	c.count(func(s *Stats) { s.Connects++ })
	dialer := net.Dialer{Deadline: limit}
	nc, err := dialer.DialContext(c.life, "tcp", c.opts.Addr)
	if err != nil {
		c.ended(err)
		return nil, c.classify(ErrConnect, reason, err)
	}
	conn = newSyncConn(nc)
	if !c.adopt(conn) {
		_ = conn.Close()
		return nil, c.failed(ErrClosed, nil)
	}
	if err := c.greet(conn, r, limit); err != nil {
		c.drop(conn, err)
		return nil, c.classify(ErrConnect, reason, err)
	}
	c.pace.ready(c.clock.Now())
	return conn, nil
}

// sitOut waits until the pace allows an attempt to connect. A pause that ends after
// limit fails the call at limit, for the given reason.
func (c *SyncClient) sitOut(limit time.Time, reason error) error {
	pause := c.pace.retryAt.Sub(c.clock.Now())
	if pause <= 0 {
		return nil
	}
	left := time.Until(limit)
	timer := time.NewTimer(min(pause, left))
	defer timer.Stop()
	select {
	case <-c.life.Done():
		return c.failed(ErrClosed, nil)
	case <-timer.C:
	}
	if left < pause {
		return c.failed(reason, fmt.Errorf("not connected: %w", c.lastErr))
	}
	return nil
}

// greet sends AUTH and the like.
func (c *SyncClient) greet(conn net.Conn, r *reader, limit time.Time) error {
	if c.hello.Len() == 0 {
		return nil
	}
	if err := conn.SetDeadline(limit); err != nil {
		return err
	}
	if _, err := conn.Write(c.hello.buf); err != nil {
		return err
	}
	replies, err := c.read(conn, r, c.hello.Len())
	if err != nil {
		return err
	}
	return c.opts.checkGreeting(replies)
}

// roundTrips sends the batch and reads its replies.
func (c *SyncClient) roundTrips(conn net.Conn, b *Batch, r *reader, limit time.Time) (Replies, error) {
	if err := conn.SetDeadline(limit); err != nil {
		return Replies{}, err
	}
	for sent := 0; sent < b.Len(); {
		n := min(b.Len()-sent, c.opts.MaxInflight)
		part := b.span(sent, sent+n)
		if _, err := conn.Write(part); err != nil {
			return Replies{}, err
		}
		c.count(func(s *Stats) {
			s.RoundTrips++
			s.Commands += uint64(n)
			s.BytesSent += uint64(len(part))
		})
		replies, err := c.read(conn, r, n)
		if err != nil {
			return Replies{}, err
		}
		c.count(func(s *Stats) { s.BytesReceived += uint64(len(replies.t.data)) })
		if n == b.Len() {
			return replies, nil
		}
		if len(r.kept.data)+len(replies.t.data) > c.opts.UnreadMaxBytes {
			return Replies{}, ErrTooLarge
		}
		r.kept.add(replies.t)
		sent += n
	}
	return Replies{&r.kept}, nil
}

// read reads exactly n replies.
func (c *SyncClient) read(conn net.Conn, r *reader, n int) (Replies, error) {
	r.decoder.Reset(n)
	for filled := 0; ; {
		got, err := conn.Read(r.buf[filled:])
		filled += got
		size, done, decodeErr := r.decoder.Decode(r.buf[:filled])
		switch {
		case decodeErr != nil:
			return Replies{}, decodeErr
		case done && size < filled:
			return Replies{}, errUnsolicited
		case done:
			return r.decoder.Replies(), nil
		case err != nil:
			return Replies{}, err
		case filled == len(r.buf):
			if filled >= c.opts.UnreadMaxBytes {
				return Replies{}, transport.ErrUnreadLimit
			}
			buf := make([]byte, min(2*filled, max(filled+1, c.opts.UnreadMaxBytes)))
			copy(buf, r.buf)
			r.buf = buf
		}
	}
}

// adopt makes conn the client's connection, unless the client was closed.
func (c *SyncClient) adopt(conn *syncConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false
	}
	c.mu.conn = conn
	if c.mu.connected {
		c.mu.stats.Reconnects++
	}
	c.mu.connected = true
	return true
}

// drop closes a connection that cannot be used any more.
func (c *SyncClient) drop(conn net.Conn, reason error) {
	_ = conn.Close() // It failed already.
	c.ended(reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.conn = nil
}

// ended notes the end of a connection, or of an attempt to make one.
func (c *SyncClient) ended(reason error) {
	c.pace.ended(c.clock.Now())
	c.lastErr = reason
}

func (c *SyncClient) count(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.mu.stats)
}

// classify turns an I/O error into that of a call: late if the time was up, ErrClosed
// after Close, and otherwise kind.
func (c *SyncClient) classify(kind, late, err error) error {
	select {
	case <-c.life.Done():
		return c.failed(ErrClosed, nil)
	default:
	}
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() && late == ErrConnect:
		return c.failed(ErrConnect, transport.ErrConnectTimeout)
	case errors.As(err, &timeout) && timeout.Timeout():
		return c.failed(ErrTimeout, err)
	case errors.Is(err, ErrTooLarge):
		return c.failed(ErrTooLarge, nil)
	default:
		return c.failed(kind, err)
	}
}

// failed returns the error of a call and counts it.
func (c *SyncClient) failed(kind, cause error) error {
	c.count(func(s *Stats) {
		s.Failed++
		if kind == ErrTimeout {
			s.TimedOut++
		}
	})
	return &OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}
