package simnet

import (
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

// Config says how the network behaves. Probabilities are between 0 and 1. The zero value is
// a perfect network that takes no time. Immutable once given to New.
type Config struct {
	// Latency draws the delay of a connect, a piece of the stream, or a close. Nil
	// means none.
	Latency func() time.Duration
	Refuse  float64 // that a dial is refused
	Ignore  float64 // that a dial has no outcome but the connect timeout
	Split   float64 // that a write is cut in two, anywhere; drawn again for the rest
	Loss    float64 // that a piece is cut short and the connection is lost behind it
}

// errReset is the client's error for a lost connection.
var errReset = fmt.Errorf("read: %w", syscall.ECONNRESET)

// A Net is a simulated network. It implements transport.Dialer. Loop only.
type Net struct {
	sim       *loopsim.Sim
	rand      *rand.Rand
	cfg       Config
	listeners map[string]*listener
	conns     []*conn // those whose handler has not been told of the end; conns[i].index == i
	dirty     []*conn // those with bytes to flush
	draining  bool
	scratch   []byte
}

type listener struct {
	accept func(*Peer)
	down   bool
	full   bool
}

var _ transport.Dialer = (*Net)(nil)

// New returns a network for the loop of sim. It sets sim's OnFlush and OnDrain, and draws
// from rng.
func New(sim *loopsim.Sim, rng *rand.Rand, cfg Config) *Net {
	if cfg.Latency == nil {
		cfg.Latency = func() time.Duration { return 0 }
	}
	n := &Net{sim: sim, rand: rng, cfg: cfg, listeners: make(map[string]*listener)}
	sim.OnFlush, sim.OnDrain = n.flush, n.drain
	return n
}

// Listen has accept called with each connection made to addr, before anything arrives on
// it. The network refuses dials to other addresses.
func (n *Net) Listen(addr string, accept func(*Peer)) { n.listeners[addr] = &listener{accept: accept} }

// SetDown takes the server at addr down or brings it up again. A server that goes down
// loses its connections and refuses dials.
func (n *Net) SetDown(addr string, down bool) {
	n.listeners[addr].down = down
	if !down {
		return
	}
	for _, c := range n.conns {
		if c.addr == addr && c.state == open {
			c.loseAfter(n.cfg.Latency())
		}
	}
}

// SetFull has the server at addr refuse dials, or take them again. Its connections stay.
func (n *Net) SetFull(addr string, full bool) { n.listeners[addr].full = full }

// Open returns the number of connections that have not ended.
func (n *Net) Open() int { return len(n.conns) }

// Dial implements transport.Dialer.
func (n *Net) Dial(addr string, opts transport.DialOptions, h transport.Handler) transport.Conn {
	c := &conn{net: n, addr: addr, opts: withDefaults(opts), handler: h, index: len(n.conns)}
	c.peer.conn = c
	n.sim.Loop.Hold()
	n.conns = append(n.conns, c)
	if n.draining {
		c.end(loop.ErrStopped)
		return c
	}
	if opts.Prepare != nil {
		if err := opts.Prepare(); err != nil {
			n.sim.After(0, func() { c.fail(err) })
			return c
		}
	}
	if latency := n.cfg.Latency(); n.hits(n.cfg.Ignore) || latency >= c.opts.ConnectTimeout {
		n.sim.After(c.opts.ConnectTimeout, func() { c.fail(transport.ErrConnectTimeout) })
	} else {
		n.sim.After(latency, c.arrive)
	}
	return c
}

// hits reports whether an event of probability p happens.
func (n *Net) hits(p float64) bool { return p > 0 && n.rand.Float64() < p }

// flush sends the bytes that the connections have buffered.
func (n *Net) flush() {
	for _, c := range n.dirty {
		c.flush()
	}
	clear(n.dirty)
	n.dirty = n.dirty[:0]
}

// drain ends all connections when the loop does.
func (n *Net) drain() (pending bool) {
	if !n.draining {
		n.draining = true
		for _, c := range n.conns {
			c.end(loop.ErrStopped)
		}
	}
	return len(n.conns) > 0
}

func withDefaults(o transport.DialOptions) transport.DialOptions {
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = time.Second
	}
	if o.UnsentMaxBytes == 0 {
		o.UnsentMaxBytes = 64 << 20
	}
	if o.UnreadMaxBytes == 0 {
		o.UnreadMaxBytes = 64 << 20
	}
	return o
}

type connState uint8

const (
	connecting connState = iota
	open
	ended // the handler has been told or will be
)

// conn is the client's handle to a connection. Loop only.
type conn struct {
	net       *Net
	addr      string
	opts      transport.DialOptions
	handler   transport.Handler
	index     int // in net.conns
	state     connState
	connected bool  // it was open before it ended
	reason    error // why it ended
	out       []byte
	in        []byte // arrived and not consumed

	peer     Peer
	toServer pipe
	toClient pipe
}

// pipe is one direction of a connection, with the pieces in transit, in order. Loop only.
type pipe struct {
	data  []byte     // sent, not yet arrived
	until clock.Time // when the last byte arrives
	cut   bool       // bytes sent from now on never arrive
}

// Write implements transport.Conn.
func (c *conn) Write(p []byte) error {
	if c.state == ended {
		return transport.ErrClosed
	}
	if len(p) > c.opts.UnsentMaxBytes-len(c.out) {
		c.end(transport.ErrUnsentLimit)
		return transport.ErrUnsentLimit
	}
	if len(c.out) == 0 && len(p) > 0 && c.state == open {
		c.net.dirty = append(c.net.dirty, c)
	}
	c.out = append(c.out, p...)
	return nil
}

// Unsent implements transport.Conn.
func (c *conn) Unsent() int { return len(c.out) }

// Close implements transport.Conn.
func (c *conn) Close(reason error) {
	if reason == nil {
		reason = transport.ErrClosed
	}
	c.end(reason)
}

// arrive is called when the dial reaches the server.
func (c *conn) arrive() {
	if c.state != connecting {
		return
	}
	l := c.net.listeners[c.addr]
	if l == nil || l.down || l.full || c.net.hits(c.net.cfg.Refuse) {
		c.fail(syscall.ECONNREFUSED)
		return
	}
	c.state = open
	if len(c.out) > 0 {
		c.net.dirty = append(c.net.dirty, c)
	}
	l.accept(&c.peer)
	c.handler.OnConnect(nil)
}

// fail ends an attempt to connect.
func (c *conn) fail(reason error) {
	if c.state == connecting {
		c.end(fmt.Errorf("dial %s: %w", c.addr, reason))
	}
}

// end is the only way to the state ended. The rest follows in the closing phase.
func (c *conn) end(reason error) {
	if c.state == ended {
		return
	}
	c.connected = c.state == open
	c.state, c.reason = ended, reason
	c.net.sim.Loop.Closing(c.finish)
}

// finish tells both ends, once.
func (c *conn) finish() {
	n := c.net
	last := len(n.conns) - 1
	n.conns[c.index] = n.conns[last]
	n.conns[c.index].index = c.index
	n.conns[last] = nil
	n.conns = n.conns[:last]
	if c.connected {
		c.flush() // bytes written before the close are sent
		c.toServer.cut = true
		n.sim.At(c.toServer.arrival(n), c.peer.hungUp)
	}
	c.out, c.in = nil, nil
	n.sim.Loop.Release()
	if c.connected {
		c.handler.OnClose(c.reason)
	} else {
		c.handler.OnConnect(c.reason)
	}
}

func (c *conn) flush() {
	if c.connected || c.state == open {
		c.send(&c.toServer, c.out, c.peer.received)
	}
	c.out = c.out[:0]
}

// send sends data in pieces, which arrive later and in order.
func (c *conn) send(p *pipe, data []byte, deliver func(n int)) {
	n := c.net
	for len(data) > 0 && !p.cut {
		size := len(data)
		if n.hits(n.cfg.Split) {
			size = 1 + n.rand.IntN(size)
		}
		lost := n.hits(n.cfg.Loss)
		if lost {
			size = n.rand.IntN(size + 1)
		}
		p.data = append(p.data, data[:size]...)
		data = data[size:]
		at := p.arrival(n)
		n.sim.At(at, func() { deliver(size) })
		if lost {
			c.toServer.cut, c.toClient.cut = true, true
			n.sim.At(p.arrival(n), c.lost)
		}
	}
}

// arrival returns when bytes sent now arrive, which is never before earlier bytes.
func (p *pipe) arrival(n *Net) clock.Time {
	p.until = max(p.until, n.sim.Now().Add(n.cfg.Latency()))
	return p.until
}

// loseAfter loses the connection: nothing more is sent, and both ends notice after d.
func (c *conn) loseAfter(d time.Duration) {
	c.toServer.cut, c.toClient.cut = true, true
	c.net.sim.After(d, c.lost)
}

func (c *conn) lost() {
	c.peer.hungUp()
	c.end(errReset)
}

// received hands the next n bytes over to the client.
func (c *conn) received(n int) {
	c.in = append(c.in, c.toClient.take(n)...)
	if c.state != open {
		return
	}
	// The handler gets a copy, which is overwritten afterwards, so that it cannot keep it.
	data := append(c.net.scratch[:0], c.in...)
	c.net.scratch = data
	consumed := c.handler.OnData(data)
	if consumed < 0 || consumed > len(data) {
		panic(fmt.Sprintf("simnet: OnData consumed %d of %d bytes", consumed, len(data)))
	}
	for i := range data {
		data[i] = '!'
	}
	c.in = append(c.in[:0], c.in[consumed:]...)
	if len(c.in) > c.opts.UnreadMaxBytes {
		c.end(transport.ErrUnreadLimit)
	}
}

// take returns the next n bytes to arrive, valid until more is sent.
func (p *pipe) take(n int) []byte {
	head := p.data[:n]
	p.data = p.data[n:]
	return head
}

// A Peer is the server's end of a connection. Loop only.
type Peer struct {
	// OnData receives all unconsumed bytes and returns how many it has consumed. data is
	// valid only during the call.
	OnData func(data []byte) (consumed int)
	// OnClose, if set, is called once when the connection has ended.
	OnClose func()

	conn   *conn
	in     []byte
	closed bool
}

// Write sends bytes to the client. It does nothing after the end of the connection.
func (p *Peer) Write(data []byte) {
	if !p.closed {
		p.conn.send(&p.conn.toClient, data, p.conn.received)
	}
}

// Close ends the connection behind the bytes written. The client gets reason, io.EOF if nil.
func (p *Peer) Close(reason error) {
	c := p.conn
	if p.closed || c.toClient.cut {
		return
	}
	c.toServer.cut, c.toClient.cut = true, true
	if reason == nil {
		reason = io.EOF
	}
	c.net.sim.At(c.toClient.arrival(c.net), func() {
		p.hungUp()
		c.end(reason)
	})
}

func (p *Peer) hungUp() {
	if p.closed {
		return
	}
	p.closed = true
	if p.OnClose != nil {
		p.OnClose()
	}
}

// received hands the next n bytes over to the server.
func (p *Peer) received(n int) {
	head := p.conn.toServer.take(n)
	if p.closed {
		return
	}
	p.in = append(p.in, head...)
	consumed := p.OnData(p.in)
	p.in = append(p.in[:0], p.in[consumed:]...)
}
