package blocking

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
	"github.com/rankd/rankd/resp"
)

// A Client sends batches to one server over one connection and blocks until the server has
// answered. Calls take turns on the connection, whole batches at a time. Any goroutine.
//
// A Client connects in the first call and, after a connection has ended, in the next. A call
// that comes in the pause after a failure (see resp.Options.BackoffMin) waits for its end. A
// Client replaces a connection before it sends anything on it if the server has closed the
// connection while it was idle, or if bytes arrived that nobody asked for. If a connection ends
// later, the call fails: the server may have run its commands, so the Client does not send them
// again.
type Client struct {
	clock clock.Clock
	opts  resp.Options
	hello *resp.Batch

	connectTo func(ctx context.Context, network, addr string) (net.Conn, error) // net.Dialer's

	number int // among the Connections that it belongs to

	token chan struct{} // holds one token; its owner may use the connection
	// life ends with Close.
	life context.Context
	end  context.CancelFunc

	// These belong to the owner of the token.
	pace    resp.Pace // of the attempts to connect
	lastErr error     // why the last connection or attempt ended; nil before the first end

	mu struct { // guards all that goroutines reach without the token
		sync.Mutex
		readers   []*reader // idle ones, at most readersKeep
		conn      *conn     // nil: none
		closed    bool
		connected bool
		stats     resp.Stats
	}
}

// sameLimit decides which timeout a failed attempt to connect reports. The attempt's own limit
// is the reason if it comes at most so long after the call's. Where the two timeouts are equal,
// as they are by default, the call's began to run a moment earlier; but it is the connection
// that the server did not give.
const sameLimit = 10 * time.Millisecond

// NewClient returns a client that has not connected yet. Deadlines are instants on
// clk, which must run at the pace of real time.
func NewClient(clk clock.Clock, o resp.Options) *Client {
	o = o.WithDefaults()
	return newClient(clk, o, rand.New(rand.NewPCG(o.Seed, 0)))
}

// newClient returns a client with its own source of jitter.
func newClient(clk clock.Clock, o resp.Options, jitter *rand.Rand) *Client {
	c := &Client{clock: clk, opts: o, hello: o.Greeting(), pace: resp.NewPace(&o, jitter),
		connectTo: new(net.Dialer).DialContext}
	c.life, c.end = context.WithCancel(context.Background())
	c.token = make(chan struct{}, 1)
	c.token <- struct{}{}
	return c
}

// Do sends the batch in one write (in parts if it exceeds MaxInflight), waits for all
// its replies and calls use with them. The views are valid until use returns; other calls
// may have the connection meanwhile. Do returns use's error, or a *resp.OpError if there were
// no replies; then it does not call use. It never waits past deadline (zero: none), nor past
// RequestTimeout. Both include the wait for the connection.
func (c *Client) Do(b *resp.Batch, deadline clock.Time, use func(resp.Replies) error) error {
	b.MustBeWhole()
	r := c.takeReader()
	defer c.giveBack(r)
	replies, err := c.exchange(b, deadline, r)
	if err != nil {
		return err
	}
	return use(replies)
}

// Close closes the connection. Calls under way fail, later ones return resp.ErrClosed. A
// second call does nothing.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	c.mu.closed = true
	c.end()
	if c.mu.conn != nil {
		_ = c.mu.conn.Close() // An error could only say that it is closed already.
	}
}

// Stats returns the counters as they are now.
func (c *Client) Stats() resp.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.stats
}

// Addr returns the server's address: see resp.Options.
func (c *Client) Addr() string { return c.opts.Addr }

// exchange waits for the connection and runs the batch.
func (c *Client) exchange(b *resp.Batch, deadline clock.Time, r *reader) (resp.Replies, error) {
	now := c.clock.Now()
	by := now.Add(c.opts.RequestTimeout).Earlier(deadline)
	if by.Passed(now) {
		return resp.Replies{}, c.failed(resp.ErrTimeout, resp.ErrDeadline)
	}
	limit := time.Now().Add(by.Sub(now))
	if err := c.takeToken(limit); err != nil {
		return resp.Replies{}, err
	}
	defer func() { c.token <- struct{}{} }()
	conn, err := c.connection(limit, r)
	if err != nil {
		return resp.Replies{}, err
	}
	c.count(func(s *resp.Stats) { s.Batches++ })
	if b.Len() == 0 {
		return resp.Replies{}, nil
	}
	replies, err := c.roundTrips(conn, b, r, limit)
	if err != nil {
		c.drop(conn, err)
		return resp.Replies{}, c.classify(resp.ErrConnectionLost, resp.ErrTimeout, err)
	}
	c.pace.Answered()
	return replies, nil
}

// takeToken waits until no other call has the connection.
func (c *Client) takeToken(limit time.Time) error {
	select {
	case <-c.token:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	select {
	case <-c.token:
		return nil
	case <-c.life.Done():
		return c.failed(resp.ErrClosed, nil)
	case <-timer.C:
		return c.failed(resp.ErrTimeout, errors.New("not sent, other calls have the connection"))
	}
}

// connection returns the connection. It makes one if there is none.
func (c *Client) connection(limit time.Time, r *reader) (*conn, error) {
	c.mu.Lock()
	cn, closed := c.mu.conn, c.mu.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, c.failed(resp.ErrClosed, nil)
	case cn != nil:
		err := cn.checkIdle()
		if err == nil {
			return cn, nil
		}
		c.drop(cn, err)
	}
	reason := resp.ErrTimeout // of the call, unless the attempt's own limit comes first
	by := time.Now().Add(c.opts.ConnectTimeout)
	if by.Before(limit.Add(sameLimit)) {
		reason = resp.ErrConnect
	}
	if by.Before(limit) {
		limit = by
	}
	if err := c.waitOutPause(limit, reason); err != nil {
		return nil, err
	}
	c.count(func(s *resp.Stats) { s.Connects++ })
	nc, err := c.dial(limit)
	if err != nil {
		c.ended(err)
		return nil, c.classify(resp.ErrConnect, reason, err)
	}
	cn = newConn(nc)
	if !c.adopt(cn) {
		_ = cn.Close()
		return nil, c.failed(resp.ErrClosed, nil)
	}
	if err := c.greet(cn, r, limit); err != nil {
		c.drop(cn, err)
		return nil, c.classify(resp.ErrConnect, reason, err)
	}
	c.pace.Ready(c.clock.Now())
	return cn, nil
}

// dial makes a connection by limit. It resolves a host name anew each time.
func (c *Client) dial(limit time.Time) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(c.life, limit)
	defer cancel()
	network, address := transport.SplitAddr(c.opts.Addr)
	return c.connectTo(ctx, network, address)
}

// waitOutPause waits until the pace allows an attempt to connect. A pause that ends after
// limit fails the call at limit, for the given reason.
func (c *Client) waitOutPause(limit time.Time, reason error) error {
	pause := c.pace.RetryAt().Sub(c.clock.Now())
	if pause <= 0 {
		return nil
	}
	left := time.Until(limit)
	timer := time.NewTimer(min(pause, left))
	defer timer.Stop()
	select {
	case <-c.life.Done():
		return c.failed(resp.ErrClosed, nil)
	case <-timer.C:
	}
	if left < pause {
		return c.failed(reason, fmt.Errorf("not connected: %w", c.lastErr))
	}
	return nil
}

// greet sends AUTH, SELECT and the name.
func (c *Client) greet(nc net.Conn, r *reader, limit time.Time) error {
	if c.hello.Len() == 0 {
		return nil
	}
	if err := nc.SetDeadline(limit); err != nil {
		return err
	}
	if _, err := nc.Write(c.hello.Encoded()); err != nil {
		return err
	}
	return r.readEach(nc, c.hello.Len(), c.opts.CheckGreeting)
}

// roundTrips sends the batch and reads its replies.
func (c *Client) roundTrips(nc net.Conn, b *resp.Batch, r *reader, limit time.Time) (resp.Replies, error) {
	if err := nc.SetDeadline(limit); err != nil {
		return resp.Replies{}, err
	}
	for sent, received := 0, 0; sent < b.Len(); {
		n := min(b.Len()-sent, c.opts.MaxInflight)
		part := b.Span(sent, sent+n)
		if _, err := nc.Write(part); err != nil {
			return resp.Replies{}, err
		}
		c.count(func(s *resp.Stats) {
			s.RoundTrips++
			s.Asked += uint64(n)
			s.Commands += uint64(n)
			s.BytesSent += uint64(len(part))
		})
		if r.watch != nil {
			r.watch.Sent(c.number, n, len(part))
		}
		replies, size, err := r.read(nc, n, c.opts.MaxReplyBytes-received)
		if err != nil {
			return resp.Replies{}, err
		}
		if r.watch != nil {
			r.watch.Replied(c.number, n, size)
		}
		c.count(func(s *resp.Stats) { s.BytesReceived += uint64(size) })
		if n == b.Len() {
			return replies, nil
		}
		r.parts.Add(replies)
		sent += n
		received += size
	}
	return r.parts.Replies(), nil
}

// adopt makes cn the client's connection, unless the client was closed.
func (c *Client) adopt(cn *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false
	}
	c.mu.conn = cn
	if c.mu.connected {
		c.mu.stats.Reconnects++
	}
	c.mu.connected = true
	return true
}

// drop closes a connection that no call can use any more.
func (c *Client) drop(cn *conn, reason error) {
	_ = cn.Close() // It failed already.
	c.ended(reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.conn = nil
}

// ended notes the end of a connection, or of an attempt to make one.
func (c *Client) ended(reason error) {
	c.pace.Ended(c.clock.Now())
	c.lastErr = reason
}

func (c *Client) count(change func(*resp.Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.mu.stats)
}

// classify turns an I/O error into the error of a call: late if the time was up, ErrClosed
// after Close, and otherwise kind.
func (c *Client) classify(kind, late, err error) error {
	select {
	case <-c.life.Done():
		return c.failed(resp.ErrClosed, nil)
	default:
	}
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() && late == resp.ErrConnect:
		return c.failed(resp.ErrConnect, transport.ErrConnectTimeout)
	case errors.As(err, &timeout) && timeout.Timeout():
		return c.failed(resp.ErrTimeout, err)
	case errors.Is(err, resp.ErrTooLarge):
		return c.failed(resp.ErrTooLarge, fmt.Errorf("more than %d bytes (max_reply_bytes)", c.opts.MaxReplyBytes))
	default:
		return c.failed(kind, err)
	}
}

// failed returns the error of a call and counts it.
func (c *Client) failed(kind, cause error) error {
	c.count(func(s *resp.Stats) {
		s.Failed++
		switch kind {
		case resp.ErrTimeout:
			s.TimedOut++
		case resp.ErrTooLarge:
			s.TooLarge++
		}
	})
	return &resp.OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}
