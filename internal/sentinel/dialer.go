// Package sentinel dials the master that Redis Sentinel names, for the clients of the loop. Sentinels are asked on goroutines, since that is rare and may wait for
// name servers; what they say is posted to the loop.
//
//	Dial ──▶ goroutine: blocking.Sentinels ──post──▶ Dial of the master ──▶ greeting with ROLE: no master ─▶ the connection ends
//	                          │
//	+switch-master ───────────┴──post──▶ connections to the old master end
package sentinel

import (
	"context"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// A Dialer dials the master, whatever the address is that it is given. It is for one resp.Client and its resp.Tracker, whose Options.Master is set. Loop only.
type Dialer struct {
	loop   *loop.Loop
	dialer transport.Dialer
	ask    Ask
	close  func()
	conns  map[*conn]struct{} // not closed yet
	master string             // as the loop has heard last
}

// An Ask asks sentinels for the master, for so long at most. On the loop, and after its own call has returned, it calls
// named. The address is what Switched was told last, unless there is an error. Loop only.
type Ask func(timeout time.Duration, named func(err error))

// NewDialer returns a dialer of the master that o names, by another dialer. Its owner closes it after those that dial.
func NewDialer(l *loop.Loop, d transport.Dialer, o resp.Options) *Dialer {
	s := NewDialerBy(l, d, nil)
	sentinels := blocking.NewSentinels(l.Clock(), o, func(addr string) { l.Post(func() { s.Switched(addr) }) })
	s.close = sentinels.Close
	s.ask = func(timeout time.Duration, named func(err error)) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, err := sentinels.Master(ctx) // The loop has heard of the address before.
			l.Post(func() { named(err) })
		}()
	}
	return s
}

// NewDialerBy returns a dialer that asks sentinels by a function: those of a simulation.
func NewDialerBy(l *loop.Loop, d transport.Dialer, ask Ask) *Dialer {
	return &Dialer{loop: l, dialer: d, ask: ask, close: func() {}, conns: make(map[*conn]struct{})}
}

// Close ends what asks sentinels. Dials under way fail, connections stay. Any goroutine.
func (s *Dialer) Close() { s.close() }

// Switched notes the address of the master, and ends the connections to other servers.
func (s *Dialer) Switched(addr string) {
	s.master = addr
	for c := range s.conns {
		if c.inner != nil && c.addr != addr {
			c.inner.Close(blocking.ErrSwitched)
		}
	}
}

// defaultConnectTimeout bounds a dial whose options bound nothing.
const defaultConnectTimeout = time.Second

// Dial implements transport.Dialer.
func (s *Dialer) Dial(_ string, opts transport.DialOptions, h transport.Handler) transport.Conn {
	if opts.ConnectTimeout <= 0 {
		opts.ConnectTimeout = defaultConnectTimeout
	}
	c := &conn{dialer: s, handler: h}
	s.conns[c] = struct{}{}
	by := s.loop.Now().Add(opts.ConnectTimeout)
	s.ask(opts.ConnectTimeout, func(err error) {
		opts.ConnectTimeout = max(time.Millisecond, by.Sub(s.loop.Now()))
		c.named(err, opts)
	})
	return c
}

// A conn is a connection that first has to know where to. Loop only.
type conn struct {
	dialer  *Dialer
	handler transport.Handler
	addr    string
	inner   transport.Conn // nil: the master is not known yet
	early   []byte         // written before
	ended   bool           // before the master was known
}

// named dials the master.
func (c *conn) named(err error, opts transport.DialOptions) {
	switch {
	case c.ended:
	case err != nil:
		c.end(err)
	default:
		c.addr = c.dialer.master
		c.inner = c.dialer.dialer.Dial(c.addr, opts, c)
		if len(c.early) > 0 {
			_ = c.inner.Write(c.early) // The inner connection closes if it cannot take them.
		}
	}
}

// end ends an attempt before the master was known.
func (c *conn) end(reason error) {
	c.ended = true
	delete(c.dialer.conns, c)
	c.handler.OnConnect(reason)
}

// Write implements transport.Conn.
func (c *conn) Write(p []byte) error {
	switch {
	case c.ended:
		return transport.ErrClosed
	case c.inner == nil:
		c.early = append(c.early, p...)
		return nil
	}
	return c.inner.Write(p)
}

// Unsent implements transport.Conn.
func (c *conn) Unsent() int {
	if c.inner == nil {
		return len(c.early)
	}
	return c.inner.Unsent()
}

// Close implements transport.Conn.
func (c *conn) Close(reason error) {
	switch {
	case c.inner != nil:
		c.inner.Close(reason)
	case !c.ended:
		c.ended = true
		if reason == nil {
			reason = transport.ErrClosed
		}
		c.dialer.loop.Defer(func() { c.end(reason) })
	}
}

// OnConnect implements transport.Handler.
func (c *conn) OnConnect(err error) {
	if err != nil {
		delete(c.dialer.conns, c)
	}
	c.handler.OnConnect(blocking.OfMaster(c.addr, err))
}

// OnData implements transport.Handler.
func (c *conn) OnData(data []byte) (consumed int) { return c.handler.OnData(data) }

// OnClose implements transport.Handler.
func (c *conn) OnClose(reason error) {
	delete(c.dialer.conns, c)
	c.handler.OnClose(blocking.OfMaster(c.addr, reason))
}
