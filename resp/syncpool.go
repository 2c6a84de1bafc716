package resp

import (
	"math/rand/v2"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// A SyncPool spreads blocking calls over several connections to one server:
// each call has a connection to itself. Any goroutine.
type SyncPool struct {
	clock clock.Clock
	opts  Options
	idle  chan *SyncClient // those that no call uses
	all   []*SyncClient
}

// NewSyncPool returns a pool of o.Connections connections, none made yet.
// Deadlines are instants on clk, which must run at the pace of real time.
func NewSyncPool(clk clock.Clock, o Options) *SyncPool {
	o = o.withDefaults()
	p := &SyncPool{clock: clk, opts: o, idle: make(chan *SyncClient, o.Connections)}
	for i := range o.Connections {
		c := newSyncClient(clk, o, rand.New(rand.NewPCG(o.Seed, uint64(i))))
		p.all = append(p.all, c)
		p.idle <- c
	}
	return p
}

// Exchange is SyncClient.Exchange on a connection that is free, for which it
// waits as long as the call itself may take.
func (p *SyncPool) Exchange(b *Batch, deadline clock.Time, buf *ReplyBuffer) (Replies, error) {
	now := p.clock.Now()
	by := now.Add(p.opts.RequestTimeout).Earlier(deadline)
	var c *SyncClient
	select {
	case c = <-p.idle:
	default:
		timer := time.NewTimer(max(0, by.Sub(now)))
		defer timer.Stop()
		select {
		case c = <-p.idle:
		case <-timer.C:
			return Replies{}, &OpError{Addr: p.opts.Addr, Kind: ErrTimeout, Cause: errNoneFree}
		}
	}
	defer func() { p.idle <- c }()
	return c.Exchange(b, by, buf)
}

// Close closes all connections. Calls under way fail, later ones return ErrClosed. A
// second call does nothing.
func (p *SyncPool) Close() {
	for _, c := range p.all {
		c.Close()
	}
}

// Stats returns the sum of the connections' counters as they are now.
func (p *SyncPool) Stats() Stats {
	var sum Stats
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
