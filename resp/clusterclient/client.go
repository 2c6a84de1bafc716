package clusterclient

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// A Client sends batches to the nodes of a Redis Cluster and never blocks. It does for a cluster what a resp.Client does for a server, and has the
// same contract, except that Part of a call is not invoked: all replies come with Done. Loop only.
type Client struct {
	loop   *loop.Loop
	dialer transport.Dialer
	opts   resp.Options // of each node; Addr lists nodes to begin with
	state  *cluster.State
	nodes  []*resp.Client // by the numbers of state; nil: none yet

	tracker *Tracker // nil: nobody keeps what was read

	calls    map[*resp.Call]*operation
	underWay list.List[operation]
	mapless  int                  // of underWay, those that wait for the first map
	retrying int                  // of underWay, those with commands that wait to be sent again
	settled  list.List[operation] // failed, or without commands; deliverSettled is to invoke Done
	free     *operation
	freeLegs *leg

	question  resp.Call    // CLUSTER SLOTS
	guest     *resp.Client // asks it of another server than the node that the map has; nil: nobody does
	probes    []*probe     // by the numbers of state; nil: none yet
	timer     *loop.Timer
	deliverFn func()
	deferred  bool // deliverSettled is to run
	closed    bool
	stats     resp.Stats // of its own, and of clients that were closed
}

// New returns a client that has not connected yet. o.Addr lists one or more nodes, as "host:port,host:port". The client
// finds the others. The bounds in o apply to each node.
func New(l *loop.Loop, d transport.Dialer, o resp.Options) *Client {
	o = o.WithDefaults()
	o.MaxInflight = max(o.MaxInflight, askingCommands)
	c := &Client{
		loop: l, dialer: d, opts: o, state: cluster.NewState(strings.Split(o.Addr, ","), o.Seed), calls: make(map[*resp.Call]*operation),
	}
	c.deliverFn = c.deliverSettled
	c.timer = l.NewTimer(c.tick)
	c.state.ReadFrom(o.ReadFrom, o.ReplicaMaxLagBytes)
	c.state.OnTurn(o.OnTurn)
	c.question.Done, c.question.MaxReplyBytes = c.answered, mapMaxBytes
	return c
}

// askingCommands is the number of commands that must leave together: ASKING holds for the next one on its connection.
const askingCommands = 2

// Do sends the call's batch, as Do of a resp.Client.
func (c *Client) Do(call *resp.Call) error {
	if c.calls[call] != nil {
		panic("clusterclient: the call is under way already")
	}
	call.Batch.MustBeWhole()
	now := c.loop.Now()
	switch {
	case c.closed:
		return c.opError(resp.ErrClosed, nil)
	case call.Deadline.Passed(now):
		return c.opError(resp.ErrTimeout, resp.ErrDeadline)
	case c.underWay.Len() >= c.opts.MaxWaiting:
		return c.opError(resp.ErrQueueFull, nil)
	}
	call.Replies, call.Err, call.From = resp.Replies{}, nil, 0
	c.stats.Batches++
	o := c.take(call)
	if call.Batch.Len() == 0 {
		c.settle(o, nil)
		return nil
	}
	c.refresh(now)
	c.probe(now)
	if !c.state.Ready() {
		c.mapless++
		o.mapless = true
		c.schedule(o.limit())
		return nil
	}
	o.route()
	return nil
}

// Cancel ends the call early, by the contract of loop.ErrCancelled.
func (c *Client) Cancel(call *resp.Call) error {
	o := c.calls[call]
	if o == nil || o.isSettled {
		return loop.ErrBusy
	}
	c.settle(o, c.opError(loop.ErrCancelled, nil))
	return nil
}

// Close fails all calls under way with resp.ErrClosed, later, and closes the connections. A second Close does nothing.
func (c *Client) Close() {
	if c.closed {
		return
	}
	c.closed = true
	for o := c.underWay.First(); o != nil; o = c.underWay.First() {
		c.fail(o, c.opError(resp.ErrClosed, nil))
	}
	for _, node := range c.nodes {
		if node != nil {
			node.Close()
		}
	}
	if c.guest != nil {
		c.guest.Close()
	}
	c.timer.Close(nil)
}

// Stats returns the counters of all nodes together as they are now.
func (c *Client) Stats() resp.Stats {
	s := c.stats
	for _, node := range c.nodes {
		if node != nil {
			s.Add(node.Stats().OfNode())
			s.Nodes++
		}
	}
	s.Waiting += c.mapless + c.retrying
	return s
}

// mapMaxBytes bounds a reply to CLUSTER SLOTS: 1,000 nodes need some 200 KB.
const mapMaxBytes = 8 << 20

// node returns the client of a node.
func (c *Client) node(number int) *resp.Client {
	for number >= len(c.nodes) {
		c.nodes = append(c.nodes, nil)
	}
	if c.nodes[number] == nil {
		o := c.optionsOf(number)
		o.ReadsReplica = c.state.IsReplica(number)
		c.nodes[number] = resp.NewClient(c.loop, c.dialer, o)
	}
	return c.nodes[number]
}

// optionsOf returns the options of connections to a node.
func (c *Client) optionsOf(number int) resp.Options {
	o := c.opts
	o.Addr = c.state.Addr(number)
	o.Seed += uint64(number)
	o.Identify = func(id string, err error) error {
		refused, unknown := c.state.Identify(o.Addr, id, err, c.loop.Now())
		switch {
		case unknown:
			c.opts.OnDenied(o.Addr, fmt.Errorf("%w: %w", resp.ErrUnidentified, err))
		case refused != nil && c.state.Strange(o.Addr):
			c.stats.Strangers++
			c.schedule(c.state.Due())
		}
		return refused
	}
	return o
}

// asker returns the client that asks a node for the map. Where another server was last, that is one for which any will do.
func (c *Client) asker(number int) *resp.Client {
	if !c.state.Strange(c.state.Addr(number)) {
		return c.node(number)
	}
	c.dismiss() // whose Do has failed
	o := c.optionsOf(number)
	o.Identify, o.Connections = nil, 1
	c.guest = resp.NewClient(c.loop, c.dialer, o)
	return c.guest
}

// dismiss closes the client that asked another server, if there is one.
func (c *Client) dismiss() {
	if c.guest != nil {
		c.retire(c.guest)
		c.guest = nil
	}
}

// retire closes the client of a node that nobody asks any more.
func (c *Client) retire(node *resp.Client) {
	s := node.Stats().OfNode()
	s.Inflight, s.Waiting, s.Ready = 0, 0, 0
	c.stats.Add(s)
	node.Close()
}

// opError returns the failure of a call that concerns no node.
func (c *Client) opError(kind, cause error) error {
	return &resp.OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}

// suspect makes the client ask for the map soon.
func (c *Client) suspect() {
	c.state.Suspect(c.loop.Now())
	c.schedule(c.state.Due())
}

// refresh asks for the map if it is due.
func (c *Client) refresh(now clock.Time) {
	if addr, ok := c.state.Ask(now); ok {
		c.stats.Refreshes++
		c.ask(addr)
	}
}

// ask sends CLUSTER SLOTS to nodes until one takes it.
func (c *Client) ask(addr string) {
	for ok := true; ok; {
		err := c.opError(resp.ErrConnect, errors.New("too many nodes"))
		if number := c.state.Node(addr); number != cluster.None {
			c.question.Batch.Reset()
			c.question.Batch.Cmd("CLUSTER", "SLOTS")
			c.question.Deadline = c.loop.Now().Add(c.opts.ConnectTimeout)
			if err = c.asker(number).Do(&c.question); err == nil {
				return
			}
		}
		addr, ok = c.state.Answered(nil, err, c.loop.Now())
	}
	c.refreshed()
}

// answered takes the reply to CLUSTER SLOTS.
func (c *Client) answered(question *resp.Call) {
	if c.closed {
		return
	}
	m, err := (*cluster.Map)(nil), question.Err
	if err == nil {
		if m, err = cluster.ParseSlots(question.Replies.At(0), c.state.Asked()); err != nil {
			err = fmt.Errorf("redis %s: %w", c.state.Asked(), err)
		}
	}
	c.dismiss() // The map is read: the replies were views into its connection.
	if addr, ok := c.state.Answered(m, err, c.loop.Now()); ok {
		c.ask(addr)
		return
	}
	c.refreshed()
}

// refreshed sends the calls that waited for the first map, and closes the clients of nodes that have left.
func (c *Client) refreshed() {
	c.probe(c.loop.Now())
	for o := c.underWay.First(); o != nil && c.mapless > 0; {
		next := o.place.Next() // fail moves it to another list.
		if o.mapless {
			if c.state.Ready() {
				c.mapless--
				o.mapless = false
				o.route()
			} else {
				c.fail(o, c.opError(resp.ErrConnect, c.state.Err()))
			}
		}
		o = next
	}
	for number, node := range c.nodes {
		if node == nil {
			continue
		}
		if reason := c.state.Ousted(c.state.Addr(number)); reason != nil {
			node.Reset(reason)
			c.tracker.reset(number, reason)
		}
		if c.retrying > 0 { // A command to be sent again has the number of its node.
			continue
		}
		if node.Idle() && node.Stats().Inflight == 0 && c.state.Forget(number) {
			c.nodes[number] = nil
			c.retire(node)
		}
	}
	if c.underWay.Len() > 0 || c.state.Suspects() || c.tracker.wants() {
		c.schedule(c.state.Due())
	}
}

// settle ends a call without replies. Its Done is invoked by deliverSettled.
func (c *Client) settle(o *operation, err error) {
	o.leave()
	o.err, o.isSettled = err, true
	c.underWay.Remove(&o.place)
	c.settled.Push(o, &o.place)
	if !c.deferred {
		c.deferred = true
		c.loop.Defer(c.deliverFn)
	}
}

// fail settles a call that has failed.
func (c *Client) fail(o *operation, err error) {
	c.settle(o, err)
	if o.hurt {
		return
	}
	c.stats.CountFailure(err)
}

// deliverSettled invokes Done of the settled calls that were there when it began.
func (c *Client) deliverSettled() {
	c.deferred = false
	defer func() { // also if a Done panics
		if c.settled.Len() > 0 && !c.deferred {
			c.deferred = true
			c.loop.Defer(c.deliverFn)
		}
	}()
	for range c.settled.Len() {
		o := c.settled.First()
		c.settled.Remove(&o.place)
		call := o.call
		call.Err = o.err
		c.give(o)
		call.Done(call)
	}
}

// schedule makes tick run at an instant, or before. Zero does nothing.
func (c *Client) schedule(at clock.Time) {
	if at != 0 && !c.closed && c.timer.StartBy(at) != nil {
		c.loop.Defer(c.Close) // The loop is stopping, and nothing would end a call that waits.
	}
}

// tick refreshes the map, sends paused commands again, and fails calls that have waited too long.
func (c *Client) tick() {
	now := c.loop.Now()
	if c.underWay.Len() > 0 || c.state.Suspects() || c.tracker.wants() {
		c.refresh(now)
		c.schedule(c.state.Due())
	}
	if c.mapless+c.retrying == 0 {
		return
	}
	for o := c.underWay.First(); o != nil; {
		next := o.place.Next() // It may end.
		if o.mapless || len(o.again) > 0 {
			o.tick(now)
		}
		o = next
	}
}
