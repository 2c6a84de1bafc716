package blocking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// A Cluster is for a Redis Cluster what a Client is for a server. Each master has a Client, with the bounds of the
// options. A call waits for all masters that it needs at once; redirected commands leave when all of them have
// answered. Any goroutine.
type Cluster struct {
	clock clock.Clock
	opts  resp.Options // of each node; Addr lists nodes to begin with
	spare spareBuffers
	life  context.Context // ends with Close
	end   context.CancelFunc

	mu         sync.Mutex // guards what follows
	state      *cluster.State
	nodes      []*node       // by the numbers of state; nil: none yet
	mapped     chan struct{} // closed when the refresh ends that is under way; nil: none is
	refreshing sync.WaitGroup
	stats      resp.Stats // of its own, and of clients that were closed
}

// A node is a server of the cluster. The mutex of its Cluster guards users.
type node struct {
	*Client
	number  int
	users   int // calls that have commands for it
	probing bool
}

// NewCluster returns a client that has not connected yet. o.Addr lists one or more nodes, as "host:port,host:port";
// the others are found. Deadlines are instants on clk, which must run in real time.
func NewCluster(clk clock.Clock, o resp.Options) *Cluster {
	o = o.WithDefaults()
	o.MaxInflight = max(o.MaxInflight, 2) // ASKING and its command leave together.
	c := &Cluster{clock: clk, opts: o, spare: make(spareBuffers, buffersKeep), state: cluster.NewState(strings.Split(o.Addr, ","), o.Seed)}
	c.state.ReadFrom(o.ReadFrom, o.ReplicaMaxLagBytes)
	c.state.OnTurn(o.OnTurn)
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Do is Do of a Client. A master that does not answer has its commands answered with an error that names it.
func (c *Cluster) Do(b *resp.Batch, deadline clock.Time, use func(resp.Replies) error) error {
	return c.spare.do(c.opts.Limits, func(buf *ReplyBuffer) (resp.Replies, error) { return c.Exchange(b, deadline, buf) }, use)
}

// Exchange is Do with the replies left in buf, as Exchange of a Client.
func (c *Cluster) Exchange(b *resp.Batch, deadline clock.Time, buf *ReplyBuffer) (resp.Replies, error) {
	b.MustBeWhole()
	buf.reset(c.opts.Limits)
	buf.gathered.Reset()
	if err := c.await(deadline); err != nil {
		return resp.Replies{}, err
	}
	c.count(func(s *resp.Stats) { s.Batches++ })
	if b.Len() == 0 {
		return resp.Replies{}, nil
	}
	x := &exchange{Cluster: c, batch: b, deadline: deadline, buf: buf, missing: b.Len()}
	x.route()
	for {
		replies, whole := x.send()
		if whole {
			return replies, nil
		}
		if err := x.settle(); err != nil {
			x.leave()
			return resp.Replies{}, err
		}
		if x.missing == 0 {
			return buf.gathered.Replies(), nil
		}
		if err := x.again(); err != nil {
			x.leave()
			return resp.Replies{}, err
		}
	}
}

// Close closes the connections. Calls under way fail, later ones return resp.ErrClosed. A second call does nothing.
func (c *Cluster) Close() {
	c.end()
	c.mu.Lock()
	for _, n := range c.nodes {
		if n != nil {
			n.Close()
		}
	}
	c.mu.Unlock()
	c.refreshing.Wait()
}

// Stats returns the counters of all nodes together as they are now.
func (c *Cluster) Stats() resp.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	for _, n := range c.nodes {
		if n != nil {
			s.Add(n.Stats().OfNode())
			s.Nodes++
		}
	}
	return s
}

// Addr returns the addresses of the nodes to begin with: see resp.Options.
func (c *Cluster) Addr() string { return c.opts.Addr }

func (c *Cluster) count(change func(*resp.Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// failed returns the error of a call and counts it. After Close it is always ErrClosed.
func (c *Cluster) failed(kind, cause error) error {
	if c.life.Err() != nil {
		kind, cause = resp.ErrClosed, nil
	}
	c.count(func(s *resp.Stats) { s.CountFailure(kind) })
	return &resp.OpError{Addr: c.opts.Addr, Kind: kind, Cause: cause}
}

// await requests the map if that is due, and waits for the first one.
func (c *Cluster) await(deadline clock.Time) error {
	began := c.clock.Now()
	limit := began.Add(c.opts.ConnectTimeout)
	for asked := false; ; {
		now := c.clock.Now()
		switch {
		case c.life.Err() != nil:
			return c.failed(resp.ErrClosed, nil)
		case deadline.Passed(now):
			return c.failed(resp.ErrTimeout, resp.ErrDeadline)
		}
		c.mu.Lock()
		c.refresh(now)
		c.probe(now)
		ready, mapped, due, err := c.state.Ready(), c.mapped, c.state.Due(), c.state.Err()
		c.mu.Unlock()
		switch {
		case ready:
			return nil
		case limit.Passed(now), asked && mapped == nil:
			return c.failed(resp.ErrConnect, err)
		}
		asked = mapped != nil
		c.pause(limit.Earlier(deadline).Earlier(due), mapped)
	}
}

// pause waits until an instant, or until something is closed.
func (c *Cluster) pause(until clock.Time, closed <-chan struct{}) {
	timer := time.NewTimer(until.Sub(c.clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-closed:
	case <-c.life.Done():
	}
}

// refresh requests the map if that is due. mu is held.
func (c *Cluster) refresh(now clock.Time) {
	if c.life.Err() != nil {
		return
	}
	addr, ok := c.state.Ask(now)
	if !ok {
		return
	}
	c.stats.Refreshes++
	mapped := make(chan struct{})
	c.mapped = mapped
	c.refreshing.Go(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for ok := true; ok; {
			m, err := c.ask(addr)
			addr, ok = c.state.Answered(m, err, c.clock.Now())
		}
		for number, n := range c.nodes {
			if n != nil && n.users == 0 && c.state.Forget(number) {
				c.stats.Add(n.Stats().OfNode())
				c.nodes[number] = nil
				n.Close()
			}
		}
		c.probe(c.clock.Now())
		c.mapped = nil
		close(mapped)
	})
}

// ask asks a node for the map. mu is held, but not while it waits.
func (c *Cluster) ask(addr string) (m *cluster.Map, err error) {
	number := c.state.Node(addr)
	if number == cluster.None || c.life.Err() != nil {
		return nil, &resp.OpError{Addr: addr, Kind: resp.ErrConnect, Cause: errors.New("too many nodes")}
	}
	n := c.use(number)
	c.mu.Unlock()
	var question resp.Batch
	question.Cmd("CLUSTER", "SLOTS")
	err = n.Do(&question, c.clock.Now().Add(c.opts.ConnectTimeout), func(replies resp.Replies) (err error) {
		if m, err = cluster.ParseSlots(replies.At(0), addr); err != nil {
			err = fmt.Errorf("redis %s: %w", addr, err)
		}
		return err
	})
	c.mu.Lock()
	n.users--
	return m, err
}

// probe has the nodes asked that are due, how far they follow their masters. mu is held. Only a client that reads from replicas asks.
func (c *Cluster) probe(now clock.Time) {
	if c.opts.ReadFrom == resp.ReadMaster || c.life.Err() != nil {
		return
	}
	for _, number := range c.state.Probe(now) {
		n := c.use(number)
		if n.probing {
			n.users--
			continue
		}
		n.probing = true
		c.refreshing.Go(func() { c.probed(n) })
	}
}

// probed asks one node, and measures the round trip.
func (c *Cluster) probed(n *node) {
	var question resp.Batch
	question.Cmd("INFO", "replication")
	var left leftAt
	buf := c.spare.take()
	defer c.spare.give(buf, c.opts.Limits)
	buf.Watch = &left
	var r cluster.Replication
	replies, err := n.Exchange(&question, c.clock.Now().Add(c.opts.ConnectTimeout), buf)
	buf.Watch = nil
	now := c.clock.Now()
	if err == nil {
		r, err = cluster.ParseReplication(replies.At(0))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.probing = false; err != nil {
		if c.state.Unprobed(n.number, err, now) {
			c.opts.OnDenied(n.Addr(), err)
		}
	} else {
		c.state.Probed(n.number, r, clock.Time(left), now)
	}
	n.users--
}

// leftAt is a resp.Watch that notes when a question left.
type leftAt clock.Time

// Sent implements resp.Watch.
func (l *leftAt) Sent(_, _, _ int, at clock.Time) { *l = leftAt(at) }

// Replied implements resp.Watch.
func (l *leftAt) Replied(int, int, int) {}

// use returns a node, which stays until its user says otherwise. mu is held.
func (c *Cluster) use(number int) *node {
	for number >= len(c.nodes) {
		c.nodes = append(c.nodes, nil)
	}
	n := c.nodes[number]
	if n == nil {
		o := c.opts
		o.Addr = c.state.Addr(number)
		o.Seed += uint64(number)
		o.ReadsReplica = c.state.IsReplica(number)
		n = &node{Client: NewClient(c.clock, o), number: number}
		if c.life.Err() != nil {
			n.Close()
		}
		c.nodes[number] = n
	}
	n.users++
	return n
}

// An exchange is a call in progress. It belongs to the goroutine of its caller, except for its legs under way.
type exchange struct {
	*Cluster
	batch    *resp.Batch
	deadline clock.Time
	buf      *ReplyBuffer
	missing  int // commands without a reply
	legs     []*leg
	hops     []uint8 // by command: how often it was sent again; nil: none was
	rest     []hop   // to be sent again
	hurt     bool    // it counts as failed, since a node did not answer
	watching sync.Mutex
}

// A hop is a command that is to be sent again.
type hop struct {
	command int
	to      *node
	cluster.Verdict
}

// A leg is what a call sends to one node at once, and the result.
type leg struct {
	x        *exchange
	to       *node
	batch    *resp.Batch
	own      resp.Batch
	commands []int // of the call: which its commands are; asking: before ASKING
	buf      *ReplyBuffer
	replies  resp.Replies
	err      error
	reached  bool // the node may have got commands, if anybody has looked
}

// asking stands for the command ASKING of a leg.
const asking = -1

// route puts all commands on legs.
func (x *exchange) route() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.clock.Now()
	for i := range x.batch.Len() {
		number, replica := x.state.For(x.batch.Span(i, i+1), now)
		if replica {
			x.stats.ReplicaReads++
		}
		l := x.legTo(number)
		l.commands = append(l.commands, i)
	}
	for _, l := range x.legs {
		if l.batch = x.batch; len(x.legs) > 1 {
			l.batch = &l.own
			for _, i := range l.commands {
				l.own.Copy(x.batch, i)
			}
		}
	}
}

// legTo returns the leg to a node. mu is held.
func (x *exchange) legTo(number int) *leg {
	for _, l := range x.legs {
		if l.to.number == number && l.commands[0] != asking {
			return l
		}
	}
	return x.newLeg(x.use(number))
}

// newLeg returns an empty leg to a node that is in use for it.
func (x *exchange) newLeg(to *node) *leg {
	l := &leg{x: x, to: to, buf: x.buf}
	l.batch = &l.own
	x.legs = append(x.legs, l)
	return l
}

// send sends all legs, and waits for their ends. whole says that one leg had all commands, and that no reply is an
// error, so that its replies are those of the call.
func (x *exchange) send() (replies resp.Replies, whole bool) {
	watch := x.buf.Watch
	var others sync.WaitGroup
	for _, l := range x.legs[1:] {
		l.buf = x.spare.take()
		l.buf.Watch = l.watch(watch)
		others.Go(l.run)
	}
	l := x.legs[0]
	x.buf.Watch = l.watch(watch)
	l.run()
	others.Wait()
	x.buf.Watch = watch
	return l.replies, l.err == nil && l.batch == x.batch && !hasErrors(l.replies) && x.done()
}

func (l *leg) run() { l.replies, l.err = l.to.Exchange(l.batch, l.x.deadline, l.buf) }

// watch returns what sees the commands of a leg: nobody else sees those that are sent again, and it notes whether those to a replica have left.
func (l *leg) watch(w resp.Watch) resp.Watch {
	if l.x.hops != nil {
		w = nil
	}
	if w == nil && !l.to.opts.ReadsReplica {
		return nil
	}
	return &legWatch{l, l.x, w, l.to.number * l.x.opts.Connections}
}

// A legWatch is a resp.Watch of one node's client. Legs have a goroutine each.
type legWatch struct {
	leg   *leg
	x     *exchange
	watch resp.Watch // nil: nobody else looks
	first int        // connection
}

// Sent implements resp.Watch.
func (w *legWatch) Sent(conn, n, bytes int, at clock.Time) {
	if w.leg.reached = true; w.watch == nil {
		return
	}
	w.x.watching.Lock()
	defer w.x.watching.Unlock()
	w.watch.Sent(w.first+conn, n, bytes, at)
}

// Replied implements resp.Watch.
func (w *legWatch) Replied(conn, n, bytes int) {
	if w.watch == nil {
		return
	}
	w.x.watching.Lock()
	defer w.x.watching.Unlock()
	w.watch.Replied(w.first+conn, n, bytes)
}

func hasErrors(replies resp.Replies) bool {
	for _, r := range replies.All() {
		if r.Kind() == resp.Error {
			return true
		}
	}
	return false
}

// done releases the nodes of the legs, and returns true.
func (x *exchange) done() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.legs {
		l.to.users--
	}
	x.legs = nil
	return true
}

// leave releases all nodes, including those of commands that are to be sent again.
func (x *exchange) leave() {
	x.done()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, h := range x.rest {
		h.to.users--
	}
}

// settle keeps the replies of all legs, and notes which commands are to be sent again. The error fails the call.
func (x *exchange) settle() error {
	legs := x.legs
	defer func() {
		x.done()
		for _, l := range legs[1:] {
			x.spare.give(l.buf, x.opts.Limits)
		}
	}()
	for _, l := range legs {
		if l.err != nil {
			if err := x.missed(l); err != nil {
				return err
			}
			continue
		}
		x.keep(l)
	}
	if x.buf.gathered.Size() > x.opts.MaxReplyBytes {
		return x.failed(resp.ErrTooLarge, fmt.Errorf("more than %d bytes (max_reply_bytes)", x.opts.MaxReplyBytes))
	}
	return nil
}

// missed handles the failure of a leg. If it is the node's failure, it fails the leg's commands; otherwise it fails
// the call.
func (x *exchange) missed(l *leg) error {
	now := x.clock.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	timedOut := errors.Is(l.err, resp.ErrTimeout)
	switch {
	case x.life.Err() == nil && (errors.Is(l.err, resp.ErrConnect) || errors.Is(l.err, resp.ErrConnectionLost)):
		x.state.Suspect(now)
	case timedOut && !x.deadline.Passed(now):
		x.state.TimedOut(now)
	default:
		x.stats.CountFailure(l.err)
		return l.err
	}
	replica := x.state.IsReplica(l.to.number)
	if replica {
		x.state.Distrust(l.to.number)
	}
	for _, k := range l.commands {
		if k == asking {
			continue
		}
		if replica {
			if v := x.state.Missed(l.to.number, cluster.Route(x.batch.Span(k, k+1)), l.reached, x.hopsOf(k)); v.Again {
				x.redirect(k, v)
				continue
			}
		}
		if !x.hurt {
			x.hurt = true
			x.stats.CountFailure(l.err)
		}
		x.buf.gathered.Fail(k, x.batch.Len(), l.err)
		x.missing--
	}
	return nil
}

// hopsOf returns how often command k was sent again.
func (x *exchange) hopsOf(k int) int {
	if x.hops == nil {
		x.hops = make([]uint8, x.batch.Len())
	}
	return int(x.hops[k])
}

// redirect notes that command k is to be sent again. mu is held.
func (x *exchange) redirect(k int, v cluster.Verdict) {
	x.hops[k]++
	x.stats.Redirected++
	x.rest = append(x.rest, hop{k, x.use(v.Node), v})
}

// keep keeps the replies of a leg, except for those that say that their commands are to be sent again.
func (x *exchange) keep(l *leg) {
	now := x.clock.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, reply := range l.replies.All() {
		k := l.commands[i]
		if k == asking {
			continue
		}
		if reply.Kind() == resp.Error {
			command := x.batch.Span(k, k+1)
			if v := x.state.Judge(reply.Bytes(), l.to.number, cluster.Route(command), x.hopsOf(k), resp.ReadOnly(command), now); v.Again {
				x.redirect(k, v)
				continue
			}
			if err := x.state.Refusal(l.to.number, reply); err != nil {
				x.buf.gathered.Refuse(k, x.batch.Len(), reply, err)
				x.missing--
				continue
			}
		}
		x.buf.gathered.Set(k, x.batch.Len(), reply)
		x.missing--
	}
}

// again puts commands on legs once more, after the longest of their pauses.
func (x *exchange) again() error {
	pause := time.Duration(0)
	for _, h := range x.rest {
		pause = max(pause, h.Pause)
	}
	if pause > 0 {
		x.pause(x.clock.Now().Add(pause).Earlier(x.deadline), nil)
	}
	switch {
	case x.life.Err() != nil:
		return x.failed(resp.ErrClosed, nil)
	case x.deadline.Passed(x.clock.Now()):
		return x.failed(resp.ErrTimeout, resp.ErrDeadline)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, h := range x.rest {
		var l *leg
		if h.Asking { // It holds for one command: both leave on a leg of their own.
			l = x.newLeg(h.to)
			l.own.Cmd("ASKING")
			l.commands = append(l.commands, asking)
		} else {
			l = x.legTo(h.to.number)
			h.to.users--
		}
		l.own.Copy(x.batch, h.command)
		l.commands = append(l.commands, h.command)
	}
	x.rest = x.rest[:0]
	return nil
}
