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
//	          └──── timeout, connection lost, no connection, Close ────▶ finished ──deferred──▶ Done(err)
//
// Connections are made when there are calls for them. While there is none, calls wait
// for the next attempt, which is at most BackoffMax away, and fail with it; they
// also fail once they have waited for ConnectTimeout. When a connection is lost, the calls
// of which something was sent on it fail with ErrConnectionLost, since nobody knows
// what the server did with it; those of which nothing was sent go out on the next.
type Client struct {
	loop   *loop.Loop
	dialer transport.Dialer
	opts   Options
	hello  *Batch // opens each connection; may be empty

	conns     []*conn
	ready     int        // connections that can take calls
	downSince clock.Time // when the last of them was lost; zero before the first

	// Every call under way is in one of these. waiting: not all is sent. Only its first
	// may have been sent in part. sent: all is, not all is answered.
	waiting, sent callList
	// finished: failed, Done is to be called in the deferred run.
	finished    callList
	finishFn    func() // runFinished, bound once
	finishAsked bool   // a deferred run is to come

	// One timer serves all calls and connections. It is set for some instant at
	// which something may be due, and no later than the first such; a call that is answered
	// in time does not touch it.
	timer  *loop.Timer
	armed  clock.Time // when the timer fires; Never if it is not set
	closed bool

	inflight int
	stats    Stats
}

// Stats counts what a client has done since it was built.
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
	c := &Client{loop: l, dialer: d, opts: o, hello: o.Greeting(), armed: clock.Never}
	c.finishFn = c.runFinished
	c.timer = l.NewTimer(c.tick)
	jitter := rand.New(rand.NewPCG(o.Seed, 0))
	for range o.Connections {
		c.conns = append(c.conns, &conn{client: c, decoder: NewDecoder(o.Limits), pace: NewPace(&o, jitter)})
	}
	return c
}

// Do sends the call's batch and invokes call.Done when all its replies are there or
// the call has failed. If Do returns an error (ErrClosed, ErrQueueFull, or ErrTimeout for a
// deadline that has passed), nothing was sent and Done is not invoked. An empty batch
// gets its no replies in the same way as any other. A call that is under way must not be
// given to Do again; that panics.
func (c *Client) Do(call *Call) error {
	if call.list != nil {
		panic("resp: the call is under way already")
	}
	call.Batch.MustBeWhole()
	now := c.loop.Now()
	switch {
	case c.closed:
		return c.fail(ErrClosed, nil)
	case call.Deadline.Passed(now):
		return c.fail(ErrTimeout, ErrDeadline)
	case c.waiting.len >= c.opts.MaxWaiting:
		return c.fail(ErrQueueFull, nil)
	}
	call.Replies, call.Err = Replies{}, nil
	call.sent, call.answered, call.conn = 0, 0, nil
	call.since, call.by = now, now.Add(c.opts.RequestTimeout).Earlier(call.Deadline)
	c.stats.Batches++
	if call.Batch.Len() == 0 {
		c.finished.push(call)
		c.askFinish()
		return nil
	}
	c.waiting.push(call)
	c.schedule(call.by)
	if c.ready < len(c.conns) {
		c.connect(now)
	}
	c.pump()
	return nil
}

// Cancel gives the call up and reports whether it was under way. Its Done will not be
// invoked, and it may be used again at once. What was not sent yet is not sent; what
// was is answered into the void.
func (c *Client) Cancel(call *Call) bool {
	if call.list == nil {
		return false
	}
	c.release(call)
	c.pump() // It may have held up those behind it.
	return true
}

// Close fails all calls under way with ErrClosed, later, and closes the connections.
// A second call does nothing. To be called before the loop is stopped: a stopping loop
// drops timers, and with them the end of a call that waits for the next attempt to
// connect.
func (c *Client) Close() {
	if c.closed {
		return
	}
	c.closed = true
	err := c.fail(ErrClosed, nil)
	c.failAll(&c.waiting, err)
	c.failAll(&c.sent, err)
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

// Addr returns the server's host:port.
func (c *Client) Addr() string { return c.opts.Addr }

// pump sends waiting calls in FIFO order as long as they fit. The first that does not
// fit holds up the others, so that a large batch is not overtaken for ever.
func (c *Client) pump() {
	for c.waiting.first != nil {
		call := c.waiting.first
		cn := call.conn
		if cn == nil {
			cn = c.leastLoaded()
		}
		if cn == nil || cn.state != connReady {
			return // A connection that comes or goes pumps again.
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
		// Nothing of the part was sent and the connection is about to end. The call may
		// wait for the next, unless it does not fit into the buffer: then it might not
		// there either.
		cn.shut(err)
		if errors.Is(err, transport.ErrUnsentLimit) {
			c.finish(call, c.fail(ErrConnectionLost, err))
		}
		return
	}
	if turn := c.loop.Iteration(); cn.sentIn != turn {
		cn.sentIn = turn
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
	if s.n < call.Batch.Len() {
		if call.kept == nil {
			call.kept = new(Gathered)
		}
		if call.kept.Size()+cn.decoder.Replies().Size() > c.opts.UnreadMaxBytes {
			c.finish(call, c.fail(ErrTooLarge, nil))
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
	c.release(call)
	call.Done(call)
	call.Replies = Replies{} // An idle call holds no replies.
}

// release ends the call's way through the client.
func (c *Client) release(call *Call) {
	call.leave()
	call.generation++
	call.conn, call.kept = nil, nil
}

// finish makes the call fail with err from the deferred run, never from within the
// caller's own call to the client.
func (c *Client) finish(call *Call, err error) {
	c.release(call)
	call.Err = err
	c.stats.Failed++
	if errors.Is(err, ErrTimeout) {
		c.stats.TimedOut++
	}
	c.finished.push(call)
	c.askFinish()
}

func (c *Client) failAll(l *callList, err error) {
	for l.first != nil {
		c.finish(l.first, err)
	}
}

func (c *Client) askFinish() {
	if !c.finishAsked {
		c.finishAsked = true
		c.loop.Defer(c.finishFn)
	}
}

// runFinished invokes Done of what has finished. It is bounded by what was there when
// it began: calls that finish meanwhile have their own run.
func (c *Client) runFinished() {
	c.finishAsked = false
	n := c.finished.len
	defer func() { // also if a Done panics
		if c.finished.len > 0 {
			c.askFinish()
		}
	}()
	for ; n > 0 && c.finished.first != nil; n-- {
		call := c.finished.first
		c.release(call)
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

// connect starts to connect whatever is down, now or when its pause is over.
func (c *Client) connect(now clock.Time) {
	for _, cn := range c.conns {
		if cn.state != connDown {
			continue
		}
		// The attempt ends by then, and so does a wait for it, pause or not.
		c.schedule(now.Add(c.opts.ConnectTimeout))
		if now < cn.pace.retryAt {
			c.schedule(cn.pace.retryAt)
			continue
		}
		cn.dial(now)
	}
}

// schedule sees to it that tick runs at an instant, or before.
func (c *Client) schedule(at clock.Time) {
	if at >= c.armed || c.closed {
		return
	}
	c.armed = at
	if err := c.timer.StartAt(at); err != nil {
		// The loop is stopping: nothing would end a call that waits. Not from here,
		// where lists are being walked.
		c.loop.Defer(c.Close)
	}
}

// tick does all that is due, and sets the timer for what will be.
func (c *Client) tick() {
	now := c.loop.Now()
	c.armed = clock.Never
	for call := c.waiting.first; call != nil; {
		next := call.next // finish moves the call to another list.
		connectBy := clock.Never
		if c.ready == 0 && call.sent == 0 {
			connectBy = max(call.since, c.downSince).Add(c.opts.ConnectTimeout)
		}
		switch {
		case connectBy.Passed(now):
			c.finish(call, c.fail(ErrConnect, c.connectError()))
		case call.by.Passed(now):
			c.finish(call, c.timeout(call))
		default:
			c.schedule(connectBy.Earlier(call.by))
		}
		call = next
	}
	for call := c.sent.first; call != nil; {
		next := call.next
		if call.by.Passed(now) {
			c.finish(call, c.timeout(call))
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
	c.pump()
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
	return c.fail(ErrTimeout, limit)
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

func (c *Client) fail(kind, cause error) error {
	return &OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}
