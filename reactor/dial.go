package reactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// Defaults of transport.DialOptions.
const (
	defaultConnectTimeout = time.Second
	defaultMaxBytes       = 64 << 20
)

// errRegister: the kernel connected, but the poller could not take the descriptor.
var errRegister = errors.New("poller refused the connection")

var _ transport.Dialer = (*Reactor)(nil)

// Dial implements transport.Dialer, over TCP and unix sockets. If the loop ends, the reason is
// loop.ErrStopped. Loop only, once the loop has started.
func (r *Reactor) Dial(addr string, opts transport.DialOptions, h transport.Handler) transport.Conn {
	if opts.Secure != nil {
		return r.dialSecure(addr, opts, h)
	}
	c := newConn(r, addr, opts, h)
	if r.draining || r.poller == nil {
		c.end(loop.ErrStopped)
		return c
	}
	r.conns[c], r.servers[c] = struct{}{}, struct{}{}
	r.dialing++
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.timeout = r.loop.NewTimer(func() {
		// If the loop was busy, a connection made in time may still wait for the poller to take it over. It is ahead
		// of this function in the poller's queue.
		_ = r.poller.Execute(ctx, runnable(func() error {
			r.event(c, func() {
				if c.state == connecting {
					c.end(c.dialError(transport.ErrConnectTimeout))
				}
			})
			return nil
		}))
	})
	// Start fails only on a stopping loop, whose drain ends the dial.
	_ = c.timeout.Start(orDefault(opts.ConnectTimeout, defaultConnectTimeout), 0)
	go r.connect(ctx, c)
	return c
}

// connect runs on a goroutine of its own and reports to the loop at its end. The loop does
// not end before that, so Enroll and Execute always find it there.
func (r *Reactor) connect(ctx context.Context, c *conn) {
	nc, err := r.prepared(ctx, c.addr, c.prepare)
	if err != nil {
		r.report(ctx, c, err)
		return
	}
	_ = r.enroll(ctx, nc, c) // reported
}

// prepared connects to addr, after DialOptions.Prepare.
func (r *Reactor) prepared(ctx context.Context, addr string, prepare func() error) (net.Conn, error) {
	if prepare != nil {
		if err := prepare(); err != nil {
			return nil, err
		}
	}
	network, address := transport.SplitAddr(addr)
	return r.connectTo(ctx, network, address)
}

// enroll has gnet poll a connection, waits for OnOpen, and reports to the loop.
func (r *Reactor) enroll(ctx context.Context, nc net.Conn, c *conn) error {
	_, err := r.client.EnrollContext(nc, c)
	r.report(ctx, c, err)
	return err
}

// report tells the loop that an attempt to open a connection has ended.
func (r *Reactor) report(ctx context.Context, c *conn, err error) {
	_ = r.poller.Execute(ctx, runnable(func() error {
		r.event(c, func() {
			r.dialing--
			c.dialed(err)
		})
		return nil
	}))
}

// opened takes the connection over from gnet, unless the attempt was given up.
func (c *conn) opened(gc gnet.Conn) gnet.Action {
	if c.state == open && c.direct != nil && c.direct.polling == joining {
		c.gc = gc
		c.rejoined()
		return gnet.None
	}
	if c.state != connecting {
		return gnet.Close
	}
	c.gc = gc
	c.state = open
	if c.direct != nil {
		c.direct.fd, c.direct.polling = gc.Fd(), polled
	}
	c.stopDial()
	c.markDirty()
	c.handler.OnConnect(nil)
	return gnet.None
}

// dialed is called when the attempt to connect has ended.
func (c *conn) dialed(err error) {
	if err != nil && c.direct != nil && c.direct.polling == joining {
		c.end(err)
		return
	}
	if c.state != connecting {
		return // it is open, or was given up
	}
	switch {
	case err != nil:
	case c.direct != nil:
		err = errRegister
	default:
		err = c.dialError(errRegister)
	}
	c.end(err)
}

// dialError returns cause in the form of package net's errors.
func (c *conn) dialError(cause error) error {
	network, address := transport.SplitAddr(c.addr)
	return fmt.Errorf("dial %s %s: %w", network, address, cause)
}

// stopDial cancels the attempt to connect and its timeout.
func (c *conn) stopDial() {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
		c.timeout.Close(nil)
	}
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
