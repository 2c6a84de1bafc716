package reactor

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// BenchmarkPost measures posts from other goroutines, each run on the loop.
func BenchmarkPost(b *testing.B) {
	looptest.BenchmarkPost(b, func(b *testing.B) *loop.Loop { return started(b).Loop() })
}

// BenchmarkPostRoundTrip measures a post to an idle loop and its answer.
func BenchmarkPostRoundTrip(b *testing.B) {
	r := started(b)
	done := make(chan struct{}, 1)
	fn := func() { done <- struct{}{} }
	b.ReportAllocs()
	for b.Loop() {
		r.Loop().Post(fn)
		<-done
	}
}

// echoClient keeps a number of 32-byte messages in flight.
type echoClient struct {
	conn transport.Conn
	left int
	done chan struct{}
}

var message = make([]byte, 32)

func (c *echoClient) OnConnect(err error) {
	if err != nil {
		panic(err)
	}
}

func (c *echoClient) OnData(data []byte) (consumed int) {
	for len(data)-consumed >= len(message) {
		consumed += len(message)
		if c.left--; c.left == 0 {
			close(c.done)
		} else if c.left > 0 {
			if err := c.conn.Write(message); err != nil {
				panic(err)
			}
		}
	}
	return consumed
}

func (c *echoClient) OnClose(error) {}

// BenchmarkEcho measures messages to an echo server on loopback, one connection.
func BenchmarkEcho(b *testing.B) {
	addr := echoServer(b)
	for _, bc := range []struct {
		name     string
		inflight int
	}{{"inflight=1", 1}, {"inflight=64", 64}, {"inflight=1024", 1024}} {
		b.Run(bc.name, func(b *testing.B) {
			r := started(b)
			c := &echoClient{left: b.N, done: make(chan struct{})}
			b.ReportAllocs()
			b.ResetTimer()
			r.Loop().Post(func() {
				c.conn = r.Dial(addr, transport.DialOptions{}, c)
				for range min(bc.inflight, b.N) {
					_ = c.conn.Write(message)
				}
			})
			<-c.done
			b.StopTimer()
			m := r.Loop().Metrics()
			b.ReportMetric(float64(b.N)/float64(m.Iterations), "msgs/iteration")
		})
	}
}

// started returns a started reactor, which ends with the test.
func started(tb testing.TB) *Reactor {
	tb.Helper()
	r := New(Config{OnPanic: func(v any, stack []byte) { tb.Errorf("panic: %v\n%s", v, stack) }})
	require.NoError(tb, r.Start())
	tb.Cleanup(func() { end(r) })
	return r
}

// end stops a started reactor and waits until it has ended.
func end(r *Reactor) {
	r.Stop()
	<-r.Loop().Done()
}

// echoServer returns the address of a server that returns what it is sent.
func echoServer(tb testing.TB) string {
	tb.Helper()
	return server(tb, func(c net.Conn) {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// server returns the address of a listener. serve runs for each of its connections on another
// goroutine, and server closes the connection afterwards. All end with the test.
func server(tb testing.TB, serve func(net.Conn)) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var open atomic.Int64
	idle := make(chan struct{}, 1)
	go func() {
		defer func() { idle <- struct{}{} }()
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				defer open.Add(-1)
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	tb.Cleanup(func() {
		_ = ln.Close()
		<-idle
	})
	return ln.Addr().String()
}
