package respfront

import (
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/session"
)

// listenTLS serves TLS. dial connects a client.
func (w *world) listenTLS(t testing.TB) (addr net.Addr, dial func() *client) {
	t.Helper()
	cert := servetest.Issue(t, 1, time.Now().Add(time.Hour))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = w.listen(t, tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert.Certificate}}))
	return addr, func() *client {
		nc, err := tls.Dial("tcp", addr.String(), &tls.Config{RootCAs: cert.Roots})
		require.NoError(t, err)
		return newClient(t, nc)
	}
}

func TestTLS(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 4}}, nil)
	_, dialTLS := w.listenTLS(t)
	c := dialTLS()
	c.send("HELLO 3", "RANK three 1", "RANK.MANY gated 1 2 3 4 5 6", "PING", "CLIENT ID")
	assert.Contains(t, c.receive(), "%7 ")
	assert.Equal(t, answerOfThree, c.receive())
	w.gate.passAll()
	assert.Equal(t, 6, strings.Count(c.receive(), `"candidates":[{"id":1}]`))
	assert.Equal(t, "+PONG", c.receive())
	assert.Equal(t, ":1", c.receive())
	c.send("QUIT")
	assert.Equal(t, "+OK", c.receive())
	c.ended()
}

// TestTLSInBulk sends more than a buffer and gets more than a socket takes. Meanwhile the
// client pauses, and is not cut off.
func TestTLSInBulk(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxPipeline: 4, MaxUnsentBytes: 100_000, MaxRequestBytes: 1000, MaxBacklogBytes: 1000}}, nil)
	_, dialTLS := w.listenTLS(t)
	c := dialTLS()
	const n = 20
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte(strings.Repeat("RANK many 1\r\nPING\r\n", n)))
		sent <- err
	}()
	for range n {
		assert.Greater(t, c.receiveLong(), 100_000)
		assert.Equal(t, "+PONG", c.receive())
	}
	assert.NoError(t, <-sent)
}

// TestTLSTheLongestCommand sends the longest command allowed. Its last byte comes in a separate
// record.
func TestTLSTheLongestCommand(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxRequestBytes: 100}}, nil)
	_, dialTLS := w.listenTLS(t)
	c := dialTLS()
	echo := "*2\r\n$4\r\nECHO\r\n$81\r\n" + strings.Repeat("x", 81) + "\r"
	require.Len(t, echo, 101)
	_, err := c.Write([]byte(echo))
	require.NoError(t, err)
	w.await(t, func() bool { return len(w.Sessions()) == 1 && w.Sessions()[0].State().Unread == len(echo) }, "the loop has all but the last byte")
	_, err = c.Write([]byte("\n"))
	require.NoError(t, err)
	assert.Equal(t, 81, strings.Count(c.receive(), "x"))
}

// TestTLSHalfClose has a client close its side.
func TestTLSHalfClose(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	_, dialTLS := w.listenTLS(t)
	c := dialTLS()
	c.send("RANK gated 1", "PING")
	<-w.gate.entered
	require.NoError(t, c.Conn.(*tls.Conn).CloseWrite())
	w.await(t, func() bool { return w.Sessions()[0].State().EOF }, "the end has come")
	w.gate.pass(1)
	assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	assert.Equal(t, "+PONG", c.receive())
	c.ended()
}

// TestTLSClientsThatLeave: such clients cancel their requests, and strangers are cut off as
// over plain connections.
func TestTLSClientsThatLeave(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		send    string
		leave   func(t *testing.T, w *world, c *client)
	}{
		"closed, and taken for gone": {options: Options{Options: session.Options{CancelAtEOF: true}}, send: "RANK gated 1\r\n", leave: func(t *testing.T, w *world, c *client) {
			<-w.gate.entered
			require.NoError(t, c.Conn.(*tls.Conn).NetConn().Close())
		}},
		"cut off by the front": {send: "RANK gated 1\r\n", leave: func(t *testing.T, w *world, c *client) {
			<-w.gate.entered
			require.NoError(t, w.Close())
		}},
		"idle":           {options: Options{Options: session.Options{IdleTimeout: 20 * time.Millisecond}}},
		"half a command": {options: Options{Options: session.Options{ReadTimeout: 3 * time.Second}}, send: "*1\r\n"},
		"reads nothing":  {options: Options{Options: session.Options{WriteTimeout: 20 * time.Millisecond}}, send: strings.Repeat("RANK many 1\r\n", 100)},
		"floods":         {options: Options{Options: session.Options{MaxPipeline: 1, MaxRequestBytes: 10}}, send: "RANK gated 1 " + strings.Repeat("x", 2000) + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everybody(t), test.options, nil)
			_, dialTLS := w.listenTLS(t)
			c := dialTLS()
			_, err := c.Write([]byte(test.send))
			require.NoError(t, err)
			if test.leave != nil {
				test.leave(t, w, c)
			}
			eventually(t, func() bool { return w.Connections() == 0 }, "the connection ends")
			w.gate.passAll()
			eventually(t, func() bool { return w.engine.Metrics().Live == 0 }, "the requests end")
			assert.Zero(t, w.gate.passed.Load())
		})
	}
}

// TestHandshakesAreBounded has clients that speak something other than TLS, and clients that
// are silent.
func TestHandshakesAreBounded(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{ReadTimeout: 50 * time.Millisecond}}, nil)
	addr, _ := w.listenTLS(t)
	silent, wrong := dial(t, addr), dial(t, addr)
	_, err := wrong.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	for _, c := range []*client{silent, wrong} {
		_, err := c.r.ReadByte()
		for err == nil { // an alert
			_, err = c.r.ReadByte()
		}
		assert.Error(t, err)
	}
	eventually(t, func() bool { return w.Connections() == 0 }, "both have ended")
}

// TestTwoGoroutinesPerTLSConnection counts them.
func TestTwoGoroutinesPerTLSConnection(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	_, dialTLS := w.listenTLS(t)
	before := runtime.NumGoroutine()
	const n = 10
	for i := range n {
		c := dialTLS()
		c.send("CLIENT ID")
		assert.Equal(t, fmt.Sprint(":", i+1), c.receive())
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+2*n+1 }, "two for each, and the one that looks")
}
