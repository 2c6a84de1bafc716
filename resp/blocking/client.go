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

// A Client sends batches to one server over resp.Options.Connections connections and blocks until the server has
// answered. Each call has a connection to itself, and waits for one if all are in use. Any goroutine.
//
// A connection is made in the first call that gets it and, after it has ended, in the next. A call
// that comes in the pause after a failure (see resp.Options.BackoffMin) waits for its end. A
// Client replaces a connection before it sends anything on it if the server has closed the
// connection while it was idle, or if bytes arrived that nobody asked for. If a connection ends
// later, the call fails: the server may have run its commands, so the Client does not send them
// again.
type Client struct {
	clock clock.Clock
	opts  resp.Options

	connectTo func(ctx context.Context, network, addr string) (net.Conn, error) // net.Dialer's

	sentinels *Sentinels // nil: opts.Addr is the server

	conns []*conn
	idle  chan *conn // those that no call uses
	spare spareBuffers
	life  context.Context // ends with Close
	end   context.CancelFunc

	mu    sync.Mutex // guards stats
	stats resp.Stats
}

var errNoneFree = errors.New("not sent, other calls have the connections")

// NewClient returns a client that has not connected yet. Deadlines are instants on clk, which must run in real time.
func NewClient(clk clock.Clock, o resp.Options) *Client {
	o = o.WithDefaults()
	c := &Client{
		clock: clk, opts: o, connectTo: new(net.Dialer).DialContext,
		idle: make(chan *conn, o.Connections), spare: make(spareBuffers, buffersKeep),
	}
	c.life, c.end = context.WithCancel(context.Background())
	if o.Master != "" {
		c.sentinels = NewSentinels(clk, o, nil)
	}
	for i := range o.Connections {
		cn := &conn{client: c, number: i, backoff: resp.NewBackoff(&o, rand.New(rand.NewPCG(o.Seed, uint64(i))))}
		cn.lookFn = cn.look
		c.conns = append(c.conns, cn)
		c.idle <- cn
	}
	return c
}

// Do sends the batch in one write (in parts if it exceeds MaxInflight), waits for all
// its replies and calls use with them. The views are valid until use returns; other calls
// may have the connection meanwhile. Do returns use's error, or a *resp.OpError if there were
// no replies; then it does not call use. It never waits past deadline (zero: none), which includes the wait for a
// connection. RequestTimeout bounds the server's silence while commands are out, and the attempt to connect.
func (c *Client) Do(b *resp.Batch, deadline clock.Time, use func(resp.Replies) error) error {
	return c.spare.do(c.opts.Limits, func(buf *ReplyBuffer) (resp.Replies, error) { return c.Exchange(b, deadline, buf) }, use)
}

// Exchange is Do with the replies left in buf instead of handed to a function:
// they stay valid until the next Exchange into buf.
func (c *Client) Exchange(b *resp.Batch, deadline clock.Time, buf *ReplyBuffer) (resp.Replies, error) {
	b.MustBeWhole()
	buf.reset(c.opts.Limits)
	var by time.Time // zero: never
	if deadline != 0 {
		now := c.clock.Now()
		if deadline.Passed(now) {
			return resp.Replies{}, c.failed(resp.ErrTimeout, resp.ErrDeadline)
		}
		by = time.Now().Add(deadline.Sub(now))
	}
	cn := c.take(by)
	if cn == nil {
		return resp.Replies{}, c.failed(resp.ErrTimeout, errNoneFree)
	}
	defer func() { c.idle <- cn }()
	if err := cn.ready(by, buf); err != nil {
		return resp.Replies{}, err
	}
	c.count(func(s *resp.Stats) { s.Batches++ })
	if b.Len() == 0 {
		return resp.Replies{}, nil
	}
	replies, err := cn.roundTrips(b, buf, by)
	if err != nil {
		cn.drop(cn.ofMaster(err))
		kind, cause := c.classify(resp.ErrConnectionLost, resp.ErrTimeout, err)
		return resp.Replies{}, c.failed(kind, cn.ofMaster(cause))
	}
	cn.backoff.Answered()
	return replies, nil
}

// take waits for a connection that no call uses. It returns nil if by (zero: never) or Close comes first.
func (c *Client) take(by time.Time) *conn {
	select {
	case cn := <-c.idle:
		return cn
	default:
	}
	var late <-chan time.Time
	if !by.IsZero() {
		timer := time.NewTimer(time.Until(by))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case cn := <-c.idle:
		return cn
	case <-late:
		return nil
	case <-c.life.Done():
		return nil
	}
}

// Close closes the connections. Calls under way fail, later ones return resp.ErrClosed. A
// second call does nothing.
func (c *Client) Close() {
	c.end()
	if c.sentinels != nil {
		c.sentinels.Close()
	}
}

// Stats returns the counters as they are now.
func (c *Client) Stats() resp.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Addr returns the server's address: see resp.Options.
func (c *Client) Addr() string { return c.opts.Addr }

func (c *Client) count(change func(*resp.Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// classify says what kind of failure of a call an I/O error is, late if the time was up and otherwise kind, and with which cause.
func (c *Client) classify(kind, late, err error) (of, cause error) {
	switch {
	case err == transport.ErrNoHandshake:
		return late, err
	case timedOut(err) && late == resp.ErrConnect:
		return resp.ErrConnect, transport.ErrConnectTimeout
	case timedOut(err):
		return resp.ErrTimeout, err
	case errors.Is(err, resp.ErrTooLarge):
		return resp.ErrTooLarge, fmt.Errorf("more than %d bytes (max_reply_bytes)", c.opts.MaxReplyBytes)
	default:
		return kind, err
	}
}

// failed returns the error of a call and counts it. After Close it is always ErrClosed.
func (c *Client) failed(kind, cause error) error {
	if c.life.Err() != nil {
		kind, cause = resp.ErrClosed, nil
	}
	c.count(func(s *resp.Stats) { s.CountFailure(kind) })
	return &resp.OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}
