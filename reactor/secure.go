package reactor

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/stream"
	"github.com/rankd/rankd/reactor/transport"
)

// secureReadBytes is how much a secure connection reads at a time: two records of TLS.
const secureReadBytes = 32 << 10

// secure is a connection with DialOptions.Secure. gnet does not know it: a stream reads and writes it on its own
// goroutines. Loop only, except run.
type secure struct {
	reactor   *Reactor
	addr      string
	opts      transport.DialOptions
	handler   transport.Handler
	stream    *stream.Stream
	cancel    context.CancelFunc // ends the attempt to connect, and the stream
	connected bool               // the handler has heard so
	ended     bool
	reason    error
	told      bool // the handler has heard of the end
}

// dialSecure is Dial for a connection with DialOptions.Secure.
func (r *Reactor) dialSecure(addr string, opts transport.DialOptions, h transport.Handler) transport.Conn {
	s := &secure{reactor: r, addr: addr, opts: opts, handler: h, stream: stream.New(r.loop, stream.Options{
		ReadBytes: secureReadBytes, UnreadMaxBytes: orDefault(opts.UnreadMaxBytes, defaultMaxBytes), UnsentMaxBytes: orDefault(opts.UnsentMaxBytes, defaultMaxBytes),
	})}
	r.loop.Hold()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	r.secures[s] = struct{}{}
	if r.draining || r.poller == nil {
		s.end(loop.ErrStopped)
		return s
	}
	r.dialing++
	go func() {
		defer s.left()
		s.run(ctx)
	}()
	return s
}

// run connects, and serves the connection until its end. It is the goroutine that reads.
func (s *secure) run(ctx context.Context) {
	nc, err := s.connect(ctx)
	if err != nil {
		s.reactor.loop.Post(func() { s.end(err) })
		return
	}
	s.stream.Run(ctx, nc, func() transport.AcceptedHandler { return s })
}

// connect makes the connection and secures it.
func (s *secure) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, orDefault(s.opts.ConnectTimeout, defaultConnectTimeout), transport.ErrConnectTimeout)
	defer cancel()
	nc, err := s.reactor.prepared(ctx, s.addr, s.opts.Prepare)
	if err == nil {
		var safe net.Conn
		if safe, err = s.opts.Secure(ctx, nc, s.addr); err == nil {
			return safe, nil
		}
		_ = nc.Close()
	}
	timeout := net.Error(nil)
	switch {
	case err == transport.ErrNoHandshake: // It says more than the next one.
	case errors.Is(context.Cause(ctx), transport.ErrConnectTimeout), errors.As(err, &timeout) && timeout.Timeout():
		err = transport.ErrConnectTimeout
	}
	if errors.As(err, new(*net.OpError)) {
		return nil, err
	}
	network, address := transport.SplitAddr(s.addr)
	return nil, fmt.Errorf("dial %s %s: %w", network, address, err)
}

// left says that the goroutine has ended. The loop does not end before that.
func (s *secure) left() {
	r := s.reactor
	_ = r.poller.Execute(context.Background(), runnable(func() error {
		if submit, _ := r.loop.Event(func() { r.dialing-- }); submit {
			r.submit()
		}
		return nil
	}))
}

// Write implements transport.Conn.
func (s *secure) Write(p []byte) error {
	if s.ended {
		return transport.ErrClosed
	}
	err := s.stream.Write(p)
	if err != nil {
		s.end(err)
	}
	return err
}

// Unsent implements transport.Conn.
func (s *secure) Unsent() int {
	if s.ended {
		return 0 // Nothing more will be sent.
	}
	return s.stream.Unsent()
}

// Close implements transport.Conn.
func (s *secure) Close(reason error) {
	if reason == nil {
		reason = transport.ErrClosed
	}
	s.end(reason)
}

// end is the only function that ends the connection. The rest follows in the closing phase.
func (s *secure) end(reason error) {
	if s.ended {
		return
	}
	s.ended, s.reason = true, reason
	s.stream.Close(reason)
	s.cancel()
	s.reactor.loop.Closing(s.finish)
}

// finish tells the handler, once.
func (s *secure) finish() {
	if s.told {
		return
	}
	s.told = true
	delete(s.reactor.secures, s)
	s.reactor.loop.Release()
	if s.connected {
		s.handler.OnClose(s.reason)
	} else {
		s.handler.OnConnect(s.reason)
	}
}

// OnConnect implements transport.Handler, for the stream.
func (s *secure) OnConnect(error) {
	if s.ended {
		return
	}
	s.connected = true
	s.guard(func() { s.handler.OnConnect(nil) })
}

// OnData implements transport.Handler, for the stream.
func (s *secure) OnData(data []byte) (consumed int) {
	if s.ended {
		return len(data)
	}
	consumed = len(data) // of a handler that panics
	s.guard(func() {
		n := s.handler.OnData(data)
		_ = data[n:] // A bad count panics here.
		consumed = n
	})
	return consumed
}

// guard calls the handler. A handler that panics cannot go on reading, so its connection closes, and the loop learns
// of the panic.
func (s *secure) guard(call func()) {
	defer func() {
		if recovered := recover(); recovered != nil {
			s.end(panicked(recovered))
			panic(recovered)
		}
	}()
	call()
}

// OnEOF implements transport.AcceptedHandler, for the stream.
func (s *secure) OnEOF() (stay bool) { return false }

// OnDrain implements transport.AcceptedHandler, for the stream.
func (s *secure) OnDrain() {}

// OnClose implements transport.Handler, for the stream.
func (s *secure) OnClose(reason error) { s.end(reason) }
