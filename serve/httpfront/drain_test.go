package httpfront

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/access"
)

func TestDrain(t *testing.T) {
	s := startFront(t)
	unused, idle, running, sending := dial(t, s.addr), dial(t, s.addr), dial(t, s.addr), dial(t, s.addr)
	idle.goesOn()
	running.send(post("/v1/rank/held", `{"user_id": 1}`))
	h := <-s.held
	text := post("/v1/rank/one", strings.Repeat(" ", 20_000)+`{"user_id": 2}`)
	sending.send(text[:10_000])
	require.Eventually(t, func() bool { return s.unread(t) > 0 }, patience, time.Millisecond)
	drained := make(chan error, 1)
	go func() { drained <- s.front.Drain(t.Context()) }()
	unused.ends()
	idle.ends()
	_, err := net.Dial("tcp", s.addr)
	require.Error(t, err, "nobody listens any more")
	select {
	case err := <-drained:
		t.Fatalf("drained while requests run: %v", err)
	default:
	}
	sending.send(text[10_000:])
	for _, c := range []*client{sending, running} {
		if c == running {
			h.answer()
		}
		got := c.receive("POST")
		assert.Equal(t, 200, got.StatusCode)
		assert.True(t, got.Close)
		c.ends()
	}
	require.NoError(t, <-drained)
	require.NoError(t, s.front.Drain(t.Context()), "a second time")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	assert.NoError(t, s.front.Serve(other), "it serves no more")
}

// A batch between two lines ends at once, and properly. A line that has begun is answered
// first.
func TestDrainEndsBatches(t *testing.T) {
	s := startFront(t)
	waiting, waitingLines := openBatch(t, s)
	within, withinLines := openBatch(t, s)
	running, runningLines := openBatch(t, s)
	running.chunk("{\"user_id\": 2, \"plan\": \"held\"}\n")
	h := <-s.held
	within.chunk("{\"user_id\": 1, ")
	require.Eventually(t, func() bool { return s.unread(t) > 0 }, patience, time.Millisecond, "the front has read the half of the line")
	drained := make(chan error, 1)
	go func() { drained <- s.front.Drain(t.Context()) }()
	rest, err := io.ReadAll(waitingLines)
	require.NoError(t, err)
	assert.Empty(t, rest)
	waiting.ends()
	within.chunk("\"plan\": \"one\"}\n")
	rest, err = io.ReadAll(withinLines)
	require.NoError(t, err)
	assert.Contains(t, string(rest), `"id":1`)
	assert.Equal(t, 1, strings.Count(string(rest), "\n"))
	within.ends()
	h.answer()
	rest, err = io.ReadAll(runningLines)
	require.NoError(t, err)
	assert.Contains(t, string(rest), `"id":2`)
	running.ends()
	require.NoError(t, <-drained)
}

func TestDrainGivesUp(t *testing.T) {
	s := startFront(t)
	c := dial(t, s.addr)
	c.send(post("/v1/rank/chain", `{"user_id": 1}`))
	h := <-s.held
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, context.Canceled, s.front.Drain(ctx))
	closed := make(chan error, 1)
	go func() { closed <- s.front.Close() }()
	c.ends()
	h.answer()
	require.NoError(t, <-closed)
}

func TestLeave(t *testing.T) {
	s := startFront(t)
	before, lost, curious := dial(t, s.addr), dial(t, s.addr), dial(t, s.addr)
	for _, c := range []*client{before, lost, curious} {
		c.goesOn()
	}
	running := dial(t, s.addr)
	running.send(post("/v1/rank/held", `{"user_id": 1}`))
	h := <-s.held
	s.front.Leave()
	h.answer()
	for _, c := range []struct {
		*client
		request string
		status  int
	}{
		{running, "", 200}, {before, post("/v1/rank/one", `{"user_id": 1}`), 200}, {dial(t, s.addr), post("/v1/rank/one", `{"user_id": 1}`), 200}, // It still accepts.
		{lost, post("/nowhere", "{}"), 404}, {curious, get("/v1/plans"), 200},
	} {
		c.send(c.request)
		got := c.receive("POST")
		assert.Equal(t, c.status, got.StatusCode, c.request)
		require.True(t, got.Close, c.request)
		c.ends()
	}
}

// Requests come while the front drains. Each gets its answer, or its connection ends before a
// byte of an answer.
func TestDrainUnderLoad(t *testing.T) {
	s := startFront(t)
	var clients sync.WaitGroup
	var answered atomic.Int64
	for range 16 {
		clients.Go(func() {
			nc, err := net.Dial("tcp", s.addr)
			if err != nil {
				return
			}
			defer nc.Close()
			c := &client{Conn: nc, t: t}
			for {
				if _, err := io.WriteString(nc, post("/v1/rank/one", `{"user_id": 77}`)); err != nil {
					return
				}
				answer := make([]byte, 4096)
				n, err := nc.Read(answer)
				if err != nil {
					return
				}
				assert.Contains(c.t, string(answer[:n]), `"candidates":[{"id":77}]`)
				answered.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return answered.Load() > 200 }, patience, time.Millisecond)
	require.NoError(t, s.front.Drain(t.Context()))
	clients.Wait()
}

// exhausted is a listener of a process that several times has too few descriptors.
type exhausted struct {
	net.Listener
	left *atomic.Int64
}

func (e exhausted) Accept() (net.Conn, error) {
	if e.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return e.Listener.Accept()
}

func TestAcceptingGoesOn(t *testing.T) {
	left := new(atomic.Int64)
	left.Store(4)
	s := startFront(t, func(o *setup) { o.listen = func(l net.Listener) net.Listener { return exhausted{l, left} } })
	dial(t, s.addr).goesOn()
	assert.Equal(t, 1, strings.Count(s.log.String(), "cannot accept connections"), "one line, however often")
}

// broken is a listener that fails for good.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("no more") }

func TestServeFails(t *testing.T) {
	s := startFront(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	assert.ErrorContains(t, s.front.Serve(broken{l}), "no more")
}

func TestTLS(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	trusted := servetest.WriteCertificate(t, certFile, keyFile, 1)
	certs, err := access.OpenCertificates(certFile, keyFile)
	require.NoError(t, err)
	s := startFront(t, func(o *setup) {
		o.listen = func(l net.Listener) net.Listener {
			config := certs.Config()
			config.NextProtos = []string{"http/1.1"}
			return tls.NewListener(l, config)
		}
	})
	secure := func(trusted servetest.Certificate) *client {
		nc, err := tls.Dial("tcp", s.addr, &tls.Config{RootCAs: trusted.Roots, NextProtos: []string{"h2", "http/1.1"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = nc.Close() })
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		c := &client{Conn: nc, t: t, r: bufio.NewReader(nc)}
		return c
	}
	first := secure(trusted)
	first.goesOn()
	second := servetest.WriteCertificate(t, certFile, keyFile, 2)
	_, err = certs.Reload()
	require.NoError(t, err)
	fresh := secure(second)
	fresh.goesOn()
	first.goesOn()
	first.send(post("/v1/rank/held", `{"user_id": 1}`))
	h := <-s.held
	drained := make(chan error, 1)
	go func() { drained <- s.front.Drain(t.Context()) }()
	fresh.ends()
	h.answer()
	assert.Equal(t, 200, first.receive("POST").StatusCode)
	first.ends()
	require.NoError(t, <-drained)
}

// The server ends connections with bytes that are not TLS, with a handshake that does not
// begin, and with one that does not end. Other clients do not notice.
func TestTLSWithoutAHandshake(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	servetest.WriteCertificate(t, certFile, keyFile, 1)
	certs, err := access.OpenCertificates(certFile, keyFile)
	require.NoError(t, err)
	s := startFront(t, func(o *setup) {
		o.front.ReadTimeout = short
		o.front.MaxConnections = 3
		o.listen = func(l net.Listener) net.Listener { return tls.NewListener(l, certs.Config()) }
	})
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "\x16\x03\x01\x02\x00"} {
		c := dial(t, s.addr)
		c.send(text)
		rest, err := io.ReadAll(c.r)
		if !errors.Is(err, syscall.ECONNRESET) {
			require.NoError(t, err)
		}
		assert.NotContains(t, string(rest), "HTTP/1.1 2", fmt.Sprintf("%q", text))
	}
	require.NoError(t, s.front.Drain(t.Context()))
}

// Connections may run on the front's own loops. Answers, the bounds of all connections and the
// end are the same.
func TestLoopsOfTheFront(t *testing.T) {
	s := startFront(t, func(o *setup) { o.front.Loops, o.front.MaxConnections = 3, 16 })
	clients := make([]*client, 16)
	for i := range clients {
		clients[i] = dial(t, s.addr)
		clients[i].send(post("/v1/rank/held", fmt.Sprintf(`{"user_id": %d}`, i+1)) + post("/v1/rank/one", `{"user_id": 77}`))
	}
	var all []held
	for range 8 { // the engine has as many workers
		all = append(all, <-s.held)
	}
	assert.Equal(t, 503, s.do(t, get("/v1/plans")).StatusCode, "one connection too many")
	go func() {
		for range len(clients) - len(all) {
			(<-s.held).answer()
		}
	}()
	for _, h := range all {
		h.answer()
	}
	for i, c := range clients {
		assert.Contains(t, c.receive("POST").body, fmt.Sprintf(`"candidates":[{"id":%d}]`, i+1))
		assert.Contains(t, c.receive("POST").body, `"candidates":[{"id":77}]`)
	}
	leaving := clients[0]
	leaving.send(post("/v1/rank/held", `{"user_id": 5}`))
	h := <-s.held
	drained := make(chan error, 1)
	go func() { drained <- s.front.Drain(t.Context()) }()
	for _, c := range clients[1:] {
		c.ends()
	}
	h.answer()
	got := leaving.receive("POST")
	assert.Equal(t, 200, got.StatusCode)
	assert.True(t, got.Close)
	leaving.ends()
	require.NoError(t, <-drained)
}

// A connection that was opened just before the front drains may still send its request.
func TestAFreshConnectionMayAskAsTheFrontDrains(t *testing.T) {
	s := startFront(t)
	c := dial(t, s.addr)
	require.Eventually(t, func() bool { return s.front.Entered() == 1 }, patience, time.Millisecond)
	drained := make(chan error, 1)
	go func() { drained <- s.front.Drain(t.Context()) }()
	for draining := false; !draining; { // It has a tenth of a second.
		s.onLoop(t, func() { draining = s.front.Sessions()[0].Draining() })
	}
	c.send(post("/v1/rank/one", `{"user_id": 1}`))
	got := c.receive("POST")
	assert.Equal(t, 200, got.StatusCode)
	assert.True(t, got.Close)
	c.ends()
	require.NoError(t, <-drained)
}
