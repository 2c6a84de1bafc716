package resp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

// A Client sends batches to one server over pipelined connections and never blocks.
// Loop only.
//
//	Do ──▶ queue, in turns ──gather──▶ outbox ──launch──▶ in flight ──last reply──▶ Done(replies)
//	          │                           │                    │
//	          └─ timeout, connection lost, no connection, replies too large, Cancel, Close ─▶ settled ──deferred──▶ Done(err)
//
// Commands gathered in an iteration leave at its end, or as soon as they fill 2 KiB. Until then equal
// reads are one command.
//
// The client connects when it has calls. Without a connection, calls wait for the next attempt, which is at most
// BackoffMax away. If it fails, so do they. They also fail once they have waited for ConnectTimeout. When a
// connection is lost, the calls that have sent something on it fail with ErrConnectionLost: the server may or may not
// have run their commands. Calls that have sent nothing go out on the next connection.
type Client struct {
	loop   *loop.Loop
	dialer transport.Dialer
	opts   Options

	conns     []*conn
	ready     int        // connections that can take calls
	downSince clock.Time // when the last of them was lost; zero before the first

	// Every call under way is in one of two lists.
	underWay list.List[Call]
	settled  list.List[Call] // failed, or without commands; deliverSettled is to invoke Done
	queue    queue           // those of underWay with commands that are not gathered

	deliverFn       func() // deliverSettled, bound once
	deliverDeferred bool   // deliverSettled is to run
	pumpFn          func() // pump, bound once
	pumpDeferred    bool   // pump is to run, or runs

	// One timer serves all calls and connections. It fires no later than the first instant at which something may be
	// due. A call that is answered in time does not touch it.
	timer     *loop.Timer
	ticked    clock.Time  // when tick last ran: what had arrived by then has been read since
	restTimer *loop.Timer // fires when a burst that waits may begin
	closed    bool
	cancelled error // of every call that was cancelled

	redirectTo int64  // the id of the connection that learns of changes of what is read; 0: none
	forgotten  func() // is invoked when the server no longer reports changes of what was read before; nil: nobody needs it

	shedBytes int // the constant, except in tests

	stats Stats
}

// Stats counts what a client has done since it was built. A copy; any goroutine.
type Stats struct {
	Batches       uint64 // calls accepted by Do
	Asked         uint64 // commands that calls asked for, of those that were sent
	Commands      uint64 // commands sent: fewer, if calls shared some
	RoundTrips    uint64 // iterations in which commands left, counted per connection
	BytesSent     uint64
	BytesReceived uint64
	Dropped       uint64 // replies to calls that had given up
	Failed        uint64 // calls that ended with an error, except for those that their owners cancelled
	TimedOut      uint64 // of these, with ErrTimeout
	TooLarge      uint64 // of these, with ErrTooLarge
	Connects      uint64 // attempts to connect
	Reconnects    uint64 // connections made after the first of their kind
	Redirected    uint64 // commands that left again, to another node of a Redis Cluster or later to the same one
	Refreshes     uint64 // requests for the map of a Redis Cluster
	ReplicaReads  uint64 // commands that were for a replica of a Redis Cluster first
	Strangers     uint64 // connections refused, since another server was at the address of a node of a Redis Cluster
	Nodes         int    // of a Redis Cluster, with a client, now
	Inflight      int    // commands gathered or sent, and not answered, now
	Waiting       int    // calls not sent or sent in part, now
	Ready         int    // connections that can take calls, now
}

// Add adds what another client has counted.
func (s *Stats) Add(o Stats) {
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range to.NumField() {
		if f := to.Field(i); f.CanUint() {
			f.SetUint(f.Uint() + from.Field(i).Uint())
		} else {
			f.SetInt(f.Int() + from.Field(i).Int())
		}
	}
}

// OfNode returns the counters of a node of a Redis Cluster, without its calls: these are parts of other calls, or
// requests for the map.
func (s Stats) OfNode() Stats {
	s.Batches, s.Failed, s.TimedOut, s.TooLarge = 0, 0, 0, 0
	return s
}

// CountFailure counts a call that ended with an error.
func (s *Stats) CountFailure(err error) {
	s.Failed++
	switch {
	case errors.Is(err, ErrTimeout):
		s.TimedOut++
	case errors.Is(err, ErrTooLarge):
		s.TooLarge++
	}
}

// NewClient returns a client that has not connected yet.
func NewClient(l *loop.Loop, d transport.Dialer, o Options) *Client {
	o = o.WithDefaults()
	c := &Client{loop: l, dialer: d, opts: o, shedBytes: shedBytes}
	c.cancelled = c.opError(loop.ErrCancelled, nil)
	c.deliverFn, c.pumpFn = c.deliverSettled, c.pump
	c.queue.opts, c.queue.changed = &c.opts, c.pumpLater
	c.queue.joins = func(call *Call, n int) bool {
		cn, from := c.connFor(call), int(call.gathered)
		return !c.opts.NoCoalesceReads && cn != nil && cn.outbox.len > 0 && cn.outbox.hasAll(call, from, from+n)
	}
	c.queue.large.quantum = bulk{c.opts.bulkCommands(), bulkBytes}
	c.queue.able = func(call *Call) bool { return c.connFor(call) != nil }
	c.timer, c.restTimer = l.NewTimer(c.tick), l.NewTimer(c.pumpLater)
	jitter := rand.New(rand.NewPCG(o.Seed, 0))
	for i := range o.Connections {
		c.conns = append(c.conns, &conn{client: c, number: i, decoder: NewDecoder(o.Limits), backoff: NewBackoff(&o, jitter)})
	}
	return c
}

// Do sends the call's batch and invokes call.Done when all its replies are there or
// the call has failed. If Do returns an error (ErrClosed, ErrQueueFull, or ErrTimeout for a
// deadline that has passed), nothing was sent and Done is not invoked. Done of an empty batch
// is invoked later, too. Do panics if the call is under way already.
func (c *Client) Do(call *Call) error {
	if call.state != callIdle {
		panic("resp: the call is under way already")
	}
	call.Batch.MustBeWhole()
	now := c.loop.Now()
	switch {
	case c.closed:
		return c.opError(ErrClosed, nil)
	case call.Deadline.Passed(now):
		return c.opError(ErrTimeout, ErrDeadline)
	case c.queue.waiting() >= c.opts.MaxWaiting:
		return c.opError(ErrQueueFull, nil)
	}
	call.Replies, call.Err = Replies{}, nil
	call.From, call.answered, call.received = 0, 0, 0
	call.since = now
	c.stats.Batches++
	if call.Batch.Len() == 0 {
		c.settle(call, nil)
		return nil
	}
	call.state = callUnderWay
	c.underWay.Push(call, &call.place)
	c.queue.countFlow(call)
	c.schedule(call.Deadline)
	if c.ready < len(c.conns) {
		c.schedule(c.limit(call))
		c.connect(now)
	}
	if !c.queue.ahead(call) || !c.gather(span{call: call, n: call.Batch.Len()}) {
		c.queue.push(call)
	}
	return nil
}

// Cancel ends the call early, under the contract of loop.ErrCancelled. Its unsent commands are not sent, and replies
// to the sent ones are dropped when they come.
func (c *Client) Cancel(call *Call) error {
	if call.state != callUnderWay {
		return loop.ErrBusy
	}
	c.settle(call, c.cancelled)
	return nil
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
	for call := c.underWay.First(); call != nil; call = c.underWay.First() {
		c.failLater(call, err)
	}
	for _, cn := range c.conns {
		cn.shut(nil)
	}
	c.timer.Close(nil)
	c.restTimer.Close(nil)
}

// Reset gives up all connections for a reason: calls that have sent something on one fail with ErrConnectionLost.
func (c *Client) Reset(reason error) {
	for _, cn := range c.conns {
		cn.shut(reason)
	}
}

// Idle reports whether no call is under way. A call whose reply has come and was not handed out yet is in no counter of
// Stats, and still under way.
func (c *Client) Idle() bool {
	return c.underWay.Len()+c.settled.Len() == 0
}

// Stats returns the counters as they are now.
func (c *Client) Stats() Stats {
	s := c.stats
	s.Inflight, s.Waiting, s.Ready = c.queue.inflight, c.queue.waiting(), c.ready
	return s
}

// Addr returns the server's address: see Options.
func (c *Client) Addr() string { return c.opts.Addr }

// forget takes a call under way out of the client. Replies that come later are dropped, and commands that no other
// call shares are not sent.
func (c *Client) forget(call *Call) {
	call.state = callIdle
	c.underWay.Remove(&call.place)
	c.queue.remove(call)
	if call.gathered > call.launched {
		call.conn.outbox.stale = true
	}
	call.generation++
	if call.pieces != nil {
		call.pieces.kept = nil
	}
	call.conn = nil
	call.gathered, call.launched = 0, 0
}

// settle ends a call without replies. Its Done is invoked by deliverSettled, never within the
// caller's own call to the client.
func (c *Client) settle(call *Call, err error) {
	if call.state == callUnderWay {
		c.forget(call)
	}
	call.Err, call.state = err, callSettled
	c.settled.Push(call, &call.place)
	c.deferDeliver()
}

// failLater settles a call that has failed with err.
func (c *Client) failLater(call *Call, err error) {
	c.settle(call, err)
	c.stats.CountFailure(err)
}

// deferDeliver makes deliverSettled run at the end of this iteration or the next.
func (c *Client) deferDeliver() {
	if !c.deliverDeferred {
		c.deliverDeferred = true
		c.loop.Defer(c.deliverFn)
	}
}

// deliverSettled invokes Done of the calls that were settled when it began. Calls that are settled meanwhile wait for
// the next iteration.
func (c *Client) deliverSettled() {
	c.deliverDeferred = false
	defer func() { // also if a Done panics
		if c.settled.Len() > 0 {
			c.deferDeliver()
		}
	}()
	for range c.settled.Len() {
		call := c.settled.First()
		c.settled.Remove(&call.place)
		call.state = callIdle
		call.Done(call)
	}
}

// leastLoaded returns the ready connection with the fewest parts, or nil.
func (c *Client) leastLoaded() *conn {
	var best *conn
	for _, cn := range c.conns {
		if cn.state == connReady && (best == nil || cn.load() < best.load()) {
			best = cn
		}
	}
	return best
}

// connectsMax is how many connections of a client are being made at once, or rest after an attempt that failed: dialing
// and greeting more would hold up the loop, and the calls that the first of them could serve.
const connectsMax = 16

// connect dials connections that are down, now or when their pause is over. The next ones follow as these are ready.
func (c *Client) connect(now clock.Time) {
	room := connectsMax
	for _, cn := range c.conns {
		if cn.state == connDialing || cn.state == connGreeting || cn.state == connDown && now < cn.backoff.retryAt {
			room--
		}
	}
	for _, cn := range c.conns {
		if cn.state != connDown || now >= cn.backoff.retryAt && room <= 0 {
			continue
		}
		// The attempt ends by then, and so does a wait for it, even in a pause.
		c.schedule(now.Add(c.opts.ConnectTimeout))
		if now < cn.backoff.retryAt {
			c.schedule(cn.backoff.retryAt)
			continue
		}
		room--
		cn.dial(now)
	}
}

// limit returns the instant at which a call under way will fail unless something changes; 0 if nothing bounds it.
// While none of its commands are out, only its deadline and the wait for a connection bound it.
func (c *Client) limit(call *Call) clock.Time {
	return c.silentBy(call).Earlier(c.connectBy(call)).Earlier(call.Deadline)
}

// silentBy returns when the server will have sent no byte for RequestTimeout while commands of the call are out, or while the
// call has no connection; otherwise 0.
func (c *Client) silentBy(call *Call) clock.Time {
	if call.launched == call.answered {
		return c.unconnected(call).Add(c.opts.RequestTimeout)
	}
	return max(call.sentAt, call.conn.heardAt).Add(c.opts.RequestTimeout)
}

// connectBy returns when a call will have waited without a connection for ConnectTimeout, or 0.
func (c *Client) connectBy(call *Call) clock.Time {
	return c.unconnected(call).Add(c.opts.ConnectTimeout)
}

// unconnected returns since when a call has waited while there is no connection, or 0.
func (c *Client) unconnected(call *Call) clock.Time {
	if c.ready > 0 || call.conn != nil {
		return 0
	}
	return max(call.since, c.downSince)
}

// schedule makes tick run at an instant, or before; 0: it need not.
func (c *Client) schedule(at clock.Time) {
	if at != 0 && !c.closed && c.timer.StartBy(at) != nil {
		// The loop is stopping, and nothing would end a call that waits. Close is deferred
		// because callers of schedule walk the lists.
		c.loop.Defer(c.Close)
	}
}

// tick does everything that is due and sets the timer for the next instant. A silence counts only if the loop has
// read its sockets after the limit: on a busy machine, bytes may be there unread. So the next iteration decides. The
// transport decides in the same way whether an attempt to connect took too long.
func (c *Client) tick() {
	now, looked := c.loop.Now(), c.ticked
	c.ticked = now
	for call := c.underWay.First(); call != nil; {
		next := call.place.Next() // failLater moves the call to another list.
		switch {
		case c.connectBy(call).Passed(looked):
			c.failLater(call, c.opError(ErrConnect, c.connectError()))
		case call.Deadline.Passed(now):
			c.failLater(call, c.timeout(call, ErrDeadline))
		case c.silentBy(call).Passed(looked):
			c.failLater(call, c.timeout(call, fmt.Errorf("no byte within %v", c.opts.RequestTimeout)))
		default:
			c.schedule(c.limit(call))
		}
		call = next
	}
	for _, cn := range c.conns {
		cn.tick(looked)
	}
	if c.queue.waiting() > 0 {
		c.connect(now)
	}
}

// timeout returns the error of a call that has waited beyond a limit. The error says for what.
func (c *Client) timeout(call *Call, limit error) error {
	switch {
	case call.launched > 0:
		limit = fmt.Errorf("%w: %d of %d replies missing", limit, call.Batch.Len()-int(call.answered), call.Batch.Len())
	case c.ready > 0:
		limit = fmt.Errorf("%w: not sent, %d commands are in flight", limit, c.queue.inflight)
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
