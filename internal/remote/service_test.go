package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
)

// ample is a bound that no test reaches.
const ample = 30 * time.Second

// serve starts a server, which ends with the test.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func urlOf(t *testing.T, text string) *url.URL {
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// echo returns an exchange that sends a text and reads the answer.
func echo(text string, answer *string) *remote.Exchange {
	return &remote.Exchange{
		Request: func(dst []byte) ([]byte, error) { return append(dst, text...), nil },
		Answer: func(body []byte) error {
			*answer = string(body)
			return nil
		},
	}
}

// asker makes an exchange with one of the clients, and waits.
type asker func(ctx context.Context, x *remote.Exchange) error

// clients opens both clients with these options. They end with the test.
func clients(t *testing.T, o remote.Options) map[string]asker {
	if o.RequestTimeout == 0 {
		o.RequestTimeout = ample
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = ample
	}
	b := remote.NewBlocking(clock.NewReal(), o)
	t.Cleanup(b.Close)
	host := reactor.New(reactor.Config{})
	require.NoError(t, host.Start())
	l := host.Loop()
	var c *remote.Client
	on(l.Post, func() { c = remote.NewClient(l, nil, o) })
	t.Cleanup(func() {
		on(l.Post, c.Close)
		host.Stop()
		<-l.Done()
	})
	return map[string]asker{
		"blocking": func(ctx context.Context, x *remote.Exchange) error { return b.Exchange(ctx, x, 0, nil) },
		"loop": func(ctx context.Context, x *remote.Exchange) error {
			ended := make(chan error, 1)
			call := &remote.Call{Exchange: x, Done: func(c *remote.Call) { ended <- c.Err }}
			on(l.Post, func() {
				if err := c.Do(call); err != nil {
					ended <- err
				}
			})
			defer context.AfterFunc(ctx, func() { on(l.Post, func() { _ = c.Cancel(call) }) })()
			return <-ended
		},
	}
}

// on runs fn on a loop and waits.
func on(post func(func()) bool, fn func()) {
	done := make(chan struct{})
	if post(func() { defer close(done); fn() }) {
		<-done
	}
}

func TestExchange(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, "POST /v1/score?m=2", r.Method+" "+r.URL.String())
		assert.Equal(t, []string{"application/json", "application/json", "Bearer t", ""}, []string{
			r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key")})
		assert.Equal(t, int64(len(body)), r.ContentLength)
		fmt.Fprintf(w, "got %s", body)
	})
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL+"/v1/score?m=2"), Header: http.Header{"Authorization": {"Bearer t"}}}) {
		t.Run(name, func(t *testing.T) {
			var answer string
			require.NoError(t, ask(t.Context(), echo("[1]", &answer)))
			assert.Equal(t, "got [1]", answer)
		})
	}
}

// TestBytesOfAnExchange: only the bodies count.
func TestBytesOfAnExchange(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "an answer") })
	o := remote.Options{URL: urlOf(t, s.URL), RequestTimeout: ample, ConnectTimeout: ample}
	b := remote.NewBlocking(clock.NewReal(), o)
	defer b.Close()
	var answer string
	require.NoError(t, b.Exchange(t.Context(), echo("[1, 2, 3]", &answer), 0, nil))
	assert.EqualValues(t, len("[1, 2, 3]"), b.Stats().BytesSent)
	assert.EqualValues(t, len("an answer"), b.Stats().BytesReceived)
}

// A client keeps its connections, and makes no more than it may, however many callers there
// are.
func TestConnectionsAreUsedAgain(t *testing.T) {
	var open, most, made atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := open.Add(1)
		defer open.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		_, _ = io.Copy(w, r.Body)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL), Connections: 3}) {
		t.Run(name, func(t *testing.T) {
			made.Store(0)
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					var answer string
					assert.NoError(t, ask(t.Context(), echo(fmt.Sprint(i), &answer)))
					assert.Equal(t, fmt.Sprint(i), answer)
				})
			}
			all.Wait()
			assert.LessOrEqual(t, most.Load(), int64(3))
			assert.Less(t, made.Load(), int64(20), "net/http drops a connection now and then on a busy machine")
		})
	}
}

// A call that waits in the queue on the loop has no goroutine.
func TestWaitingCallsHaveNoGoroutine(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	host := reactor.New(reactor.Config{})
	require.NoError(t, host.Start())
	l := host.Loop()
	const calls = 500
	ended := make(chan error, calls)
	var c *remote.Client
	on(l.Post, func() {
		c = remote.NewClient(l, nil, remote.Options{URL: urlOf(t, s.URL), Connections: 2, RequestTimeout: ample})
		for range calls {
			require.NoError(t, c.Do(&remote.Call{Exchange: echo("", new(string)), Done: func(c *remote.Call) { ended <- c.Err }}))
		}
	})
	assert.Less(t, runtime.NumGoroutine(), 60)
	on(l.Post, func() { assert.Equal(t, [2]int{2, calls - 2}, [2]int{c.Stats().Inflight, c.Stats().Waiting}) })
	close(release)
	for range calls {
		require.NoError(t, <-ended)
	}
	on(l.Post, c.Close)
	host.Stop()
	<-l.Done()
}

// Each row is a fault of the service. Both clients report it in the same way, and are well
// again without it.
func TestFaults(t *testing.T) {
	hijack := func(w http.ResponseWriter, text string) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	for _, c := range []struct {
		name  string
		fault http.HandlerFunc
		kind  error
		text  string // of the error, after the address
	}{
		{"500 with a text", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no model\nloaded", 500) }, remote.ErrStatus, `status: 500: no model\nloaded`},
		{"404 without a body", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, remote.ErrStatus, "status: 404"},
		{"a redirection", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, remote.ErrStatus, "status: 302"},
		{"a long error", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 1<<20), http.StatusServiceUnavailable)
		}, remote.ErrStatus, "status: 503: xxx"},
		{"a slow answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, remote.ErrTimeout, "timeout: not done within 60ms"},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
		}, remote.ErrConnectionLost, "connection lost: unexpected EOF"},
		{"half a chunk", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12")
		}, remote.ErrConnectionLost, "connection lost: unexpected EOF"},
		{"a malformed chunk", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n12")
		}, remote.ErrProtocol, "protocol error: invalid byte in chunk length"},
		{"no answer", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "") }, remote.ErrConnectionLost, "connection lost: "},
		{"not HTTP", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "-ERR unknown command\r\n") }, remote.ErrProtocol, "protocol error: "},
		{"huge headers", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("y", 80<<10)) }, remote.ErrProtocol, "protocol error: "},
		{"too large", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 101)) }, remote.ErrTooLarge, "too large: the answer has more than 100 bytes"},
		{"too large, and does not say so", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			fmt.Fprint(w, strings.Repeat("x", 1<<20))
		}, remote.ErrTooLarge, "too large: the answer has more than 100 bytes"},
		{"another document", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "malformed") }, remote.ErrProtocol, "protocol error: not what was asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var faulty atomic.Bool
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err == nil && faulty.Load() {
					c.fault(w, r)
					return
				}
				fmt.Fprint(w, "well")
			})
			o := remote.Options{URL: urlOf(t, s.URL), MaxAnswerBytes: 100}
			if c.kind == remote.ErrTimeout {
				o.RequestTimeout = 60 * time.Millisecond
			}
			for name, ask := range clients(t, o) {
				var answer string
				x := echo("{}", &answer)
				take := x.Answer
				x.Answer = func(body []byte) error {
					if string(body) == "malformed" {
						return remote.Malformedf("not what was asked for")
					}
					return take(body)
				}
				for _, faults := range []bool{true, false, true} {
					faulty.Store(faults)
					err := ask(t.Context(), x)
					if !faults {
						require.NoError(t, err, name)
						assert.Equal(t, "well", answer)
						continue
					}
					require.ErrorIs(t, err, c.kind, name)
					require.ErrorContains(t, err, "http "+s.Listener.Addr().String()+": "+c.text, name)
					assert.NotContains(t, err.Error(), "\n")
					assert.Less(t, len(err.Error()), 400)
				}
			}
		})
	}
}

func TestServiceThatRefusesConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, "http://"+l.Addr().String())}) {
		err := ask(t.Context(), echo("", new(string)))
		require.ErrorIs(t, err, remote.ErrConnect, name)
		assert.EqualError(t, err, "http "+l.Addr().String()+": cannot connect: connect: connection refused")
	}
}

// A service closes the connections that nobody uses. The next request does not notice.
func TestIdleConnectionThatWasClosed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL)}) {
		for i := range 20 {
			var answer string
			require.NoError(t, ask(t.Context(), echo(fmt.Sprint(i), &answer)), name)
			assert.Equal(t, fmt.Sprint(i), answer)
			s.CloseClientConnections()
		}
	}
}

// A call that is cancelled ends its request at the service, and soon ends itself.
func TestCancelEndsTheRequest(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL)}) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- ask(ctx, echo("", new(string))) }()
		<-begun
		cancel()
		<-gone
		assert.ErrorIs(t, <-ended, loop.ErrCancelled, name)
	}
}

// Errors of the functions of an exchange are the call's errors, unchanged. A function that ends
// its goroutine also causes an error.
func TestErrorsOfTheExchange(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "x") })
	own := errors.New("own")
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL), MaxRequestBytes: 3}) {
		x := &remote.Exchange{
			Request: func([]byte) ([]byte, error) { return nil, own },
			Answer:  func([]byte) error { panic("there is none") },
		}
		assert.Equal(t, own, ask(t.Context(), x), name)
		x.Request = func(dst []byte) ([]byte, error) { return append(dst, "four"...), nil }
		err := ask(t.Context(), x)
		require.ErrorIs(t, err, remote.ErrTooLarge)
		assert.ErrorContains(t, err, "the request has 4 bytes, and may have 3")
		x.Request = func(dst []byte) ([]byte, error) { return dst, nil }
		x.Answer = func([]byte) error { return own }
		assert.Equal(t, own, ask(t.Context(), x), name)
		if name == "loop" {
			x.Request = func([]byte) ([]byte, error) { runtime.Goexit(); return nil, nil }
			assert.ErrorContains(t, ask(t.Context(), x), "runtime.Goexit")
		}
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL), TLS: &tls.Config{RootCAs: pool}}) {
		var answer string
		require.NoError(t, ask(t.Context(), echo("secret", &answer)), name)
		assert.Equal(t, "secret", answer)
	}
	for name, ask := range clients(t, remote.Options{URL: urlOf(t, s.URL)}) {
		err := ask(t.Context(), echo("secret", new(string)))
		require.ErrorIs(t, err, remote.ErrConnect, name)
		assert.ErrorContains(t, err, "certificate")
	}
}

// A Blocking has the bounds of a Client.
func TestBlockingBounds(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
	})
	clk := clock.NewReal()
	b := remote.NewBlocking(clk, remote.Options{URL: urlOf(t, s.URL), Connections: 1, MaxWaiting: 1, RequestTimeout: ample})
	require.ErrorIs(t, b.Exchange(t.Context(), echo("", new(string)), clk.Now(), nil), remote.ErrDeadline)
	first := make(chan error)
	go func() { first <- b.Exchange(context.Background(), echo("", new(string)), 0, nil) }()
	<-begun
	err := b.Exchange(t.Context(), echo("", new(string)), clk.Now().Add(20*time.Millisecond), nil)
	require.ErrorIs(t, err, remote.ErrTimeout)
	assert.ErrorContains(t, err, "the deadline of the call has passed: not sent, 1 requests are on their way")
	second := make(chan error)
	go func() { second <- b.Exchange(context.Background(), echo("", new(string)), 0, nil) }()
	for b.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	require.ErrorIs(t, b.Exchange(t.Context(), echo("", new(string)), 0, nil), remote.ErrQueueFull)
	b.Close()
	for _, ended := range []chan error{first, second} {
		assert.ErrorIs(t, <-ended, remote.ErrClosed)
	}
	close(release)
	require.ErrorIs(t, b.Exchange(t.Context(), echo("", new(string)), 0, nil), remote.ErrClosed)
	st := b.Stats()
	assert.Equal(t, [3]int{4, 0, 0}, [3]int{int(st.Calls), st.Inflight, st.Waiting})
}
