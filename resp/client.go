package resp

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

// A Client sends batches to one server over pipelined connections and never blocks.
// Loop only.
//
//	Do ──▶ waiting ──send──▶ sent ──last reply──▶ Done(replies)
//	          │                │
//	          └──── timeout, connection lost, no connection, Close ────▶ settled ──deferred──▶ Done(err)
//
// The client connects when it has calls. Calls wait without a connection for the next
// attempt, which is at most BackoffMax away, and fail with it. They also fail once they
// have waited for ConnectTimeout. When a connection is lost, the calls that have sent
// something on it fail with ErrConnectionLost: the server may or may not have run
// it. Calls that have sent nothing go out on the next connection.
type Client struct {
	loop     *loop.Loop
	dialer   transport.Dialer
	opts     Options
	greeting *Batch // opens each connection; may be empty

	conns     []*conn
	ready     int        // connections that can take calls
	downSince clock.Time // when the last of them was lost; zero before the first

	// Every call under way is in one of three lists. waiting: some commands are not sent; only its
	// first call may have been sent in part. sent: all are sent, and some are not answered.
	waiting, sent callList
	// settled: failed, or without commands; deliverSettled is to invoke Done.
	settled         callList
	deliverFn       func() // deliverSettled, bound once
	deliverDeferred bool   // deliverSettled is to run

	// One timer serves all calls and connections. It fires at the first instant at which
	// something may be due, or before; a call that is answered in time does not touch it.
	timer  *loop.Timer
	armed  clock.Time // when the timer fires; Never if it is not set
	closed bool

	inflight int
	stats    Stats
}

// Stats counts what a client has done since it was built. A copy; any goroutine.
type Stats struct {
	Batches       uint64 // calls accepted by Do
	Commands      uint64 // commands sent
	RoundTrips    uint64 // iterations in which commands left, counted per connection
	BytesSent     uint64
	BytesReceived uint64
	Dropped       uint64 // replies to calls that had given up
	Failed        uint64 // calls that ended with an error
	TimedOut      uint64 // of these, with ErrTimeout
	Connects      uint64 // attempts to connect
	Reconnects    uint64 // connections made after the first of their kind
	Inflight      int    // commands sent and not answered, now
	Waiting       int    // calls not sent or sent in part, now
	Ready         int    // connections that can take calls, now
}

// NewClient returns a client that has not connected yet.
func NewClient(l *loop.Loop, d transport.Dialer, o Options) *Client {
	o = o.WithDefaults()
	c := &Client{loop: l, dialer: d, opts: o, greeting: o.Greeting(), armed: clock.Never}
	c.deliverFn = c.deliverSettled
	c.timer = l.NewTimer(c.tick)
	jitter := rand.New(rand.NewPCG(o.Seed, 0))
	for i := range o.Connections {
		c.conns = append(c.conns, &conn{client: c, number: i, decoder: NewDecoder(o.Limits), pace: NewPace(&o, jitter)})
	}
	return c
}

// Do sends the call's batch and invokes call.Done when all its replies are there or
// the call has failed. If Do returns an error (ErrClosed, ErrQueueFull, or ErrTimeout for a
// deadline that has passed), nothing was sent and Done is not invoked. Done of an empty batch
// is invoked later, too. Do panics if the call is under way already.
func (c *Client) Do(call *Call) error {
	if call.list != nil {
		panic("resp: the call is under way already")
	}
	call.Batch.MustBeWhole()
	now := c.loop.Now()
	switch {
	case c.closed:
		return c.opError(ErrClosed, nil)
	case call.Deadline.Passed(now):
		return c.opError(ErrTimeout, ErrDeadline)
	case c.waiting.len >= c.opts.MaxWaiting:
		return c.opError(ErrQueueFull, nil)
	}
	call.Replies, call.Err = Replies{}, nil
	call.sent, call.answered, call.conn = 0, 0, nil
	call.since, call.by = now, now.Add(c.opts.RequestTimeout).Earlier(call.Deadline)
	c.stats.Batches++
	if call.Batch.Len() == 0 {
		c.settled.push(call)
		c.deferDeliver()
		return nil
	}
	c.waiting.push(call)
	c.schedule(call.by)
	if c.ready < len(c.conns) {
		c.connect(now)
	}
	c.sendWaiting()
	return nil
}

// Cancel gives the call up and reports whether it was under way. Its Done will not be
// invoked, and it may be used again at once. Its unsent commands are not sent, and replies
// to the sent ones are dropped.
func (c *Client) Cancel(call *Call) bool {
	if call.list == nil {
		return false
	}
	c.forget(call)
	c.sendWaiting() // It may have held up those behind it.
	return true
}

// Close fails all calls under way with ErrClosed, later, and closes the connections.
// A second Close does nothing. The owner closes the client before it stops the loop: a
// stopping loop drops timers, and a call that waits for the next attempt to connect would not end.
func (c *Client) Close() {
	if c.closed {
		return
	}
	c.closed = true
	err := c.opError(ErrClosed, nil)
	c.failAllLater(&c.waiting, err)
	c.failAllLater(&c.sent, err)
	for _, cn := range c.conns {
		cn.shut(nil)
	}
	c.timer.Close(nil)
}

// Stats returns the counters as they are now.
func (c *Client) Stats() Stats {
	s := c.stats
	s.Inflight, s.Waiting, s.Ready = c.inflight, c.waiting.len, c.ready
	return s
}

// Addr returns the server's address: see Options.
func (c *Client) Addr() string { return c.opts.Addr }

// sendWaiting sends waiting calls in FIFO order as long as they fit. The first that does not
// fit holds up the others, so that a large batch is not overtaken for ever.
func (c *Client) sendWaiting() {
	for c.waiting.first != nil {
		call := c.waiting.first
		cn := call.conn
		if cn == nil {
			cn = c.leastLoaded()
		}
		if cn == nil || cn.state != connReady {
			return // A connection that comes or goes calls sendWaiting again.
		}
		size := call.Batch.Len()
		n := c.opts.partSize(size, size-call.sent)
		if n > c.opts.MaxInflight-c.inflight {
			return
		}
		c.send(cn, call, n)
	}
}

// send hands the next n commands of a call to a connection. It is the one place where
// commands leave.
func (c *Client) send(cn *conn, call *Call, n int) {
	part := call.Batch.Span(call.sent, call.sent+n)
	if err := cn.tr.Write(part); err != nil {
		// The part was not sent, and the connection is about to end. The call waits for
		// the next connection, unless it does not fit into the buffer: it would not fit there either.
		cn.shut(err)
		if errors.Is(err, transport.ErrUnsentLimit) {
			c.failLater(call, c.opError(ErrConnectionLost, err))
		}
		return
	}
	if now := c.loop.Iteration(); cn.sentIn != now {
		cn.sentIn = now
		c.stats.RoundTrips++
	}
	c.stats.Commands += uint64(n)
	c.stats.BytesSent += uint64(len(part))
	now := c.loop.Now()
	if cn.slots.len == 0 {
		c.schedule(now.Add(c.opts.StallTimeout))
	}
	cn.slots.push(slot{call, call.generation, n, now})
	c.inflight += n
	call.conn = cn
	call.sent += n
	if call.Watch != nil {
		call.Watch.Sent(cn.number, n, len(part))
	}
	if call.sent == call.Batch.Len() {
		call.leave()
		c.sent.push(call)
	}
}

// answer hands the replies to one slot to its call.
func (c *Client) answer(s slot, cn *conn) {
	c.inflight -= s.n
	call := s.call
	if !s.wanted() {
		c.stats.Dropped += uint64(s.n)
		return
	}
	if call.Watch != nil {
		call.Watch.Replied(cn.number, s.n, cn.decoder.Replies().Size())
	}
	if s.n < call.Batch.Len() {
		if call.kept == nil {
			call.kept = new(Gathered)
		}
		if call.kept.Size()+cn.decoder.Replies().Size() > c.opts.UnreadMaxBytes {
			c.failLater(call, c.opError(ErrTooLarge, nil))
			return
		}
		call.kept.Add(cn.decoder.Replies())
		call.answered += s.n
		if call.answered < call.Batch.Len() {
			return
		}
		call.Replies = call.kept.Replies()
	} else {
		call.Replies = cn.decoder.Replies()
	}
	c.forget(call)
	call.Done(call)
	call.Replies = Replies{} // An idle call holds no replies.
}

// forget takes the call out of the client: replies to it that are still to come reach nobody.
func (c *Client) forget(call *Call) {
	call.leave()
	call.generation++
	call.conn, call.kept = nil, nil
}

// failLater settles the call with err. Its Done is invoked by deliverSettled, never within the
// caller's own call to the client.
func (c *Client) failLater(call *Call, err error) {
	c.forget(call)
	call.Err = err
	c.stats.Failed++
	if errors.Is(err, ErrTimeout) {
		c.stats.TimedOut++
	}
	c.settled.push(call)
	c.deferDeliver()
}

func (c *Client) failAllLater(l *callList, err error) {
	for l.first != nil {
		c.failLater(l.first, err)
	}
}

// deferDeliver has deliverSettled run at the end of this iteration or the next.
func (c *Client) deferDeliver() {
	if !c.deliverDeferred {
		c.deliverDeferred = true
		c.loop.Defer(c.deliverFn)
	}
}

// deliverSettled invokes Done of the settled calls. It takes those that were there when it
// began: calls that are settled meanwhile wait for the next iteration.
func (c *Client) deliverSettled() {
	c.deliverDeferred = false
	n := c.settled.len
	defer func() { // also if a Done panics
		if c.settled.len > 0 {
			c.deferDeliver()
		}
	}()
	for ; n > 0 && c.settled.first != nil; n-- {
		call := c.settled.first
		c.forget(call)
		call.Done(call)
	}
}

// leastLoaded returns the ready connection with the fewest slots, or nil.
func (c *Client) leastLoaded() *conn {
	var best *conn
	for _, cn := range c.conns {
		if cn.state == connReady && (best == nil || cn.slots.len < best.slots.len) {
			best = cn
		}
	}
	return best
}

// connect dials each connection that is down, now or when its pause is over.
func (c *Client) connect(now clock.Time) {
	for _, cn := range c.conns {
		if cn.state != connDown {
			continue
		}
		// The attempt ends by then, and so does a wait for it, even in a pause.
		c.schedule(now.Add(c.opts.ConnectTimeout))
		if now < cn.pace.retryAt {
			c.schedule(cn.pace.retryAt)
			continue
		}
		cn.dial(now)
	}
}

// schedule has tick run at an instant, or before.
func (c *Client) schedule(at clock.Time) {
	if at >= c.armed || c.closed {
		return
	}
	c.armed = at
	if err := c.timer.StartAt(at); err != nil {
		// The loop is stopping, and nothing would end a call that waits. Close is deferred
		// because callers of schedule walk the lists.
		c.loop.Defer(c.Close)
	}
}

// tick does everything that is due and sets the timer for the next instant.
func (c *Client) tick() {
	now := c.loop.Now()
	c.armed = clock.Never
	for call := c.waiting.first; call != nil; {
		next := call.next // failLater moves the call to another list.
		connectBy := clock.Never
		if c.ready == 0 && call.sent == 0 {
			connectBy = max(call.since, c.downSince).Add(c.opts.ConnectTimeout)
		}
		switch {
		case connectBy.Passed(now):
			c.failLater(call, c.opError(ErrConnect, c.connectError()))
		case call.by.Passed(now):
			c.failLater(call, c.timeout(call))
		default:
			c.schedule(connectBy.Earlier(call.by))
		}
		call = next
	}
	for call := c.sent.first; call != nil; {
		next := call.next
		if call.by.Passed(now) {
			c.failLater(call, c.timeout(call))
		} else {
			c.schedule(call.by)
		}
		call = next
	}
	for _, cn := range c.conns {
		cn.tick(now)
	}
	if c.waiting.len > 0 {
		c.connect(now)
	}
	c.sendWaiting()
}

// timeout returns the error of a call that has waited too long, saying for what.
func (c *Client) timeout(call *Call) error {
	var limit error = ErrDeadline
	if call.Deadline == 0 || call.by < call.Deadline {
		limit = fmt.Errorf("not done within %v", c.opts.RequestTimeout)
	}
	switch {
	case call.sent > 0:
		limit = fmt.Errorf("%w: %d of %d replies missing", limit, call.Batch.Len()-call.answered, call.Batch.Len())
	case c.ready > 0:
		limit = fmt.Errorf("%w: not sent, %d commands are in flight", limit, c.inflight)
	default:
		limit = fmt.Errorf("%w: not connected: %w", limit, c.connectError())
	}
	return c.opError(ErrTimeout, limit)
}

// connectError returns the latest reason why there is no connection.
func (c *Client) connectError() error {
	for _, cn := range c.conns {
		if cn.lastErr != nil {
			return cn.lastErr
		}
	}
	return transport.ErrConnectTimeout
}

// opError returns the failure of a call to this server.
func (c *Client) opError(kind, cause error) error {
	return &OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}
