package blocking

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

var errNoneFree = errors.New("all connections are in use")

// Connections spread calls over several connections to one server: each call has a connection
// to itself. Any goroutine.
type Connections struct {
	clock clock.Clock
	opts  resp.Options
	idle  chan *Client // those that no call uses
	all   []*Client
}

// NewConnections returns o.Connections connections, none made yet. Deadlines are instants on
// clk, which must run at the pace of real time.
func NewConnections(clk clock.Clock, o resp.Options) *Connections {
	o = o.WithDefaults()
	p := &Connections{clock: clk, opts: o, idle: make(chan *Client, o.Connections)}
	for i := range o.Connections {
		c := newClient(clk, o, rand.New(rand.NewPCG(o.Seed, uint64(i))))
		c.number = i
		p.all = append(p.all, c)
		p.idle <- c
	}
	return p
}

// Exchange is Client.Exchange on a free connection. It waits for one as long as the call itself
// may take.
func (p *Connections) Exchange(b *resp.Batch, deadline clock.Time, buf *ReplyBuffer) (resp.Replies, error) {
	now := p.clock.Now()
	by := now.Add(p.opts.RequestTimeout).Earlier(deadline)
	var c *Client
	select {
	case c = <-p.idle:
	default:
		timer := time.NewTimer(max(0, by.Sub(now)))
		defer timer.Stop()
		select {
		case c = <-p.idle:
		case <-timer.C:
			return resp.Replies{}, &resp.OpError{Addr: p.opts.Addr, Kind: resp.ErrTimeout, Cause: errNoneFree}
		}
	}
	defer func() { p.idle <- c }()
	return c.Exchange(b, by, buf)
}

// Close closes all connections. Calls under way fail, later ones return resp.ErrClosed. A
// second call does nothing.
func (p *Connections) Close() {
	for _, c := range p.all {
		c.Close()
	}
}

// Stats returns the sum of the connections' counters as they are now.
func (p *Connections) Stats() resp.Stats {
	var sum resp.Stats
	for _, c := range p.all {
		s := c.Stats()
		sum.Batches += s.Batches
		sum.Commands += s.Commands
		sum.RoundTrips += s.RoundTrips
		sum.BytesSent += s.BytesSent
		sum.BytesReceived += s.BytesReceived
		sum.Failed += s.Failed
		sum.TimedOut += s.TimedOut
		sum.Connects += s.Connects
		sum.Reconnects += s.Reconnects
		sum.Ready += s.Ready
	}
	return sum
}
