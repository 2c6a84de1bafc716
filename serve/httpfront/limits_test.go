package httpfront

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
)

// short is a timeout that tests wait for. arrival is one within which a request must arrive,
// even on a busy machine.
const (
	short   = 50 * time.Millisecond
	arrival = 500 * time.Millisecond
)

func TestLimits(t *testing.T) {
	pad := func(n int) string { return `{"user_id": 1, "x": "` + strings.Repeat("x", n) + `"}` }
	chunked := func(body string) string {
		return strings.Replace(chunkedBatch(body, 700), "/v1/batch", "/v1/rank/one", 1)
	}
	for _, c := range []struct {
		name   string
		change func(*setup)
		send   string
		status int
		ends   bool
		detail string
	}{
		{"a long body", func(o *setup) { o.front.MaxRequestBytes = 1000 }, post("/v1/rank/one", pad(1000)), 413, false, "longer than 1000 bytes"},
		{"a body that claims to be long", nil, "POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n" + strings.Repeat("x", 9000), 413, true, "longer"},
		{"a long body in chunks", func(o *setup) { o.front.MaxRequestBytes = 1000 },
			"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + strings.Repeat("x", 0xfff) + "\r\n", 413, true, "longer"},
		{"a body as long as allowed", func(o *setup) { o.front.MaxRequestBytes = len(pad(1000)) }, post("/v1/rank/one", pad(1000)), 200, false, ""},
		{"chunks as long as allowed", func(o *setup) { o.front.MaxRequestBytes = len(pad(1000)) }, chunked(pad(1000)), 200, false, ""},
		{"chunks of a byte more", func(o *setup) { o.front.MaxRequestBytes = len(pad(1000)) - 1 }, chunked(pad(1000)), 413, true, "longer than"},
		{"long headers", func(o *setup) { o.front.MaxHeaderBytes = 1000 }, post("/v1/rank/one", "{}", "X-Long: "+strings.Repeat("x", 1000)), 431, true, "too long"},
		{"a long path", nil, post("/v1/rank/"+strings.Repeat("x", 8<<10), "{}"), 431, true, "too long"},
		{"all bodies together", func(o *setup) { o.front.MaxBodyBytes = 10_000 }, post("/v1/rank/one", pad(200_000))[:150_000], 503, true, "too many bytes"},
		{"headers that do not end", func(o *setup) { o.front.ReadTimeout = arrival }, "POST /v1/rank/one HTTP/1.1\r\nHost: x\r\n", 408, true, "in time"},
		{"a body that does not end", func(o *setup) { o.front.ReadTimeout = arrival }, "POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", 408, true, "in time"},
		{"a chunk that does not end", func(o *setup) { o.front.ReadTimeout = arrival },
			"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", 408, true, "in time"},
		{"the size of a chunk that does not end", func(o *setup) { o.front.ReadTimeout = arrival },
			"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1", 408, true, "in time"},
		{"an encoding", nil, post("/v1/rank/one", "{}", "Content-Encoding: gzip"), 415, false, "Content-Encoding"},
		{"a version", nil, "GET /openapi.json HTTP/2.0\r\nHost: x\r\n\r\n", 505, true, "HTTP/1.1"},
		{"the preface of HTTP/2", nil, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, true, "HTTP/1.1"},
		{"an old batch", nil, "POST /v1/batch HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", 505, true, "HTTP/1.1"},
		{"a batch without a body", nil, "POST /v1/batch HTTP/1.1\r\nHost: x\r\n\r\n", 400, false, "needs a body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change := c.change
			if change == nil {
				change = func(*setup) {}
			}
			s := startFront(t, change)
			client := dial(t, s.addr)
			client.send(c.send)
			got := client.receive("POST")
			assert.Equal(t, c.status, got.StatusCode)
			assert.Contains(t, got.body, c.detail)
			assert.Equal(t, c.ends, got.Close)
			if c.ends {
				client.ends()
			} else {
				client.goesOn()
			}
			assert.Eventually(t, func() bool { return s.unread(t) == 0 }, patience, time.Millisecond)
		})
	}
}

func TestALongLineOfABatch(t *testing.T) {
	s := startFront(t, func(o *setup) { o.front.MaxRequestBytes = 100 })
	got := s.do(t, post("/v1/batch", "{\"user_id\": 1, \"plan\": \"one\"}\n{\"x\": \""+strings.Repeat("x", 200)+"\"}\n{\"user_id\": 2, \"plan\": \"one\"}\n"))
	lines := strings.Split(got.body, "\n")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[0], `"id":1`)
	assert.Contains(t, lines[1], "longer than 100 bytes")
	assert.Contains(t, lines[2], `"id":2`)
}

// A client that stops sending in the middle of a request, and goes on reading, is told so.
func TestRequestsThatEndEarly(t *testing.T) {
	s := startFront(t)
	for _, text := range []string{
		"POST /v1/ra", "POST /v1/rank/one HTTP/1.1\r\nHost: x\r\n", "\x16\x03\x01\x02\x00\x01\x00",
		"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"user_id\":",
		"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat(" ", 20_000),
		"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"use",
		"POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{\"user_id\": 1}\r\n",
	} {
		c := dial(t, s.addr)
		c.send(text)
		require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
		got := c.receive("POST")
		assert.Equal(t, 400, got.StatusCode, "%.100q", text)
		assert.Contains(t, got.body, "ends early", "%.100q", text)
		c.ends()
	}
	c := dial(t, s.addr)
	c.send(post("/v1/rank/held", `{"user_id": 1}`))
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	(<-s.held).answer()
	assert.Equal(t, 200, c.receive("POST").StatusCode, "a whole request before the end")
	c.ends()
}

// The line of a batch that has not ended counts as unread, and nothing else of the batch does.
func TestLinesCountAsBodies(t *testing.T) {
	s := startFront(t, func(o *setup) { o.front.MaxBodyBytes = 50_000 })
	c, lines := openBatch(t, s)
	c.chunk("{\"user_id\": 1, \"plan\": \"one\"}\n")
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"id":1`)
	assert.Zero(t, s.unread(t))
	c.chunk(strings.Repeat(" ", 30_000))
	c.chunk(strings.Repeat(" ", 30_000))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	assert.Contains(t, string(rest), manyBytes.detail)
	c.ends()
	assert.Eventually(t, func() bool { return s.unread(t) == 0 }, patience, time.Millisecond)
}

func TestALineThatDoesNotEnd(t *testing.T) {
	s := startFront(t, func(o *setup) { o.front.ReadTimeout = arrival })
	c, lines := openBatch(t, s)
	c.chunk("{\"user_id\": 1, \"plan\": \"one\"}\n{\"user_id\"")
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	assert.Contains(t, string(rest), `"id":1`)
	assert.Contains(t, string(rest), tooSlow.detail)
	c.ends()
	require.NoError(t, s.front.Close())
	assert.Equal(t, 1.0, s.cuts(t, "slow_read"))
}

func TestIdleConnectionsEnd(t *testing.T) {
	for _, c := range []struct {
		name, send string
		change     func(*setup)
		cut        string
	}{
		{"before the first request", "", func(o *setup) { o.front.ReadTimeout = short }, "idle"},
		{"after a request", post("/v1/rank/one", `{"user_id": 1}`), func(o *setup) { o.front.IdleTimeout = short }, "idle"},
		{"between lines", "POST /v1/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n{\"user_id\": 1, \"plan\": \"one\"}\n\r\n",
			func(o *setup) { o.front.IdleTimeout = short }, "idle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startFront(t, c.change)
			client := dial(t, s.addr)
			client.send(c.send)
			if c.send != "" {
				got := client.receive("POST")
				assert.Contains(t, got.body, `"candidates":[{"id":1}]`)
			}
			client.ends()
			require.NoError(t, s.front.Close())
			assert.Equal(t, 1.0, s.cuts(t, c.cut))
		})
	}
}

// cuts returns how many connections the metrics count as cut for a reason.
func (s *server) cuts(t *testing.T, reason string) (n float64) {
	families, err := s.metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "rankd_connections_cut_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["front"] == "http" && labels["reason"] == reason {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestTooManyConnections(t *testing.T) {
	s := startFront(t, func(o *setup) { o.front.MaxConnections = 2 })
	first, second := dial(t, s.addr), dial(t, s.addr)
	first.goesOn()
	second.goesOn()
	third := dial(t, s.addr)
	got := third.receive("GET")
	assert.Equal(t, 503, got.StatusCode)
	assert.Equal(t, "1", got.Header.Get("Retry-After"))
	assert.Contains(t, got.body, "2 connections are open")
	third.ends()
	require.NoError(t, first.Close())
	assert.Eventually(t, func() bool { // The front notices the end of the first one later.
		c := dial(t, s.addr)
		defer c.Close()
		_, _ = io.WriteString(c, post("/v1/rank/one", `{"user_id": 77}`))
		line, _ := c.r.ReadString('\n')
		return strings.Contains(line, "200")
	}, patience, time.Millisecond)
	second.goesOn()
	assert.GreaterOrEqual(t, s.cuts(t, "limit"), 1.0)
}

// narrow gives connections small buffers, so that the front soon notices a client that does not
// read.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	nc, err := n.Listener.Accept()
	if err == nil {
		err = nc.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return nc, err
}

func TestASlowReaderIsCut(t *testing.T) {
	for _, path := range []string{"/v1/rank/many", "/v1/batch"} {
		s := startFront(t, func(o *setup) {
			o.front.WriteTimeout = short
			o.listen = func(l net.Listener) net.Listener { return narrow{l} }
			o.engine.Plans.(planFolder)["many.plan.json"] = plan("many", "test::fixed_source", `"row_count": 100000`)
		})
		nc, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		require.NoError(t, nc.(*net.TCPConn).SetReadBuffer(4096))
		_, err = io.WriteString(nc, post(path, `{"user_id": 1, "plan": "many"}`))
		require.NoError(t, err)
		assert.Eventually(t, func() bool { return s.cuts(t, "slow_write") == 1 }, patience, time.Millisecond)
		require.NoError(t, nc.Close())
		require.NoError(t, s.front.Close())
	}
}

func TestOverload(t *testing.T) {
	s := startFront(t, func(o *setup) { o.engine.MaxInflight = 1 })
	running := dial(t, s.addr)
	running.send(post("/v1/rank/held", `{"user_id": 1}`))
	h := <-s.held
	got := s.do(t, post("/v1/rank/one", `{"user_id": 2}`))
	assert.Equal(t, 503, got.StatusCode)
	assert.Equal(t, "1", got.Header.Get("Retry-After"))
	h.answer()
	assert.Equal(t, 200, running.receive("POST").StatusCode)
}

func TestOptions(t *testing.T) {
	_, err := New(nil, nil, nil, Options{MaxConnections: -1, MaxHeaderBytes: -1, IdleTimeout: -1})
	require.Error(t, err)
	for _, name := range []string{"MaxConnections", "MaxHeaderBytes", "IdleTimeout"} {
		assert.ErrorContains(t, err, name+" must not be negative")
	}
}

// longAnswers starts a server with a plan of that many rows.
func longAnswers(rows, unsent int) func(*setup) {
	return func(o *setup) {
		o.engine.Plans.(planFolder)["long.plan.json"] = plan("long", "test::fixed_source", fmt.Sprintf(`"row_count": %d`, rows))
		o.unsent, o.front.WriteTimeout = unsent, time.Hour
		o.listen = func(l net.Listener) net.Listener { return servetest.SmallSockets{Listener: l} }
	}
}

// Clients ask for 30 MB or more together and read nothing. Each has one answer at a time, or
// batches. The server keeps within the bound on unsent bytes. The clients that are left get all
// of their answers.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const clients, rows, bound = 24, 100_000, 16 << 20
	for name, request := range map[string]string{
		"answers": post("/v1/rank/long", `{"user_id": 1}`),
		"batches": post("/v1/batch", strings.Repeat("{\"user_id\": 1, \"plan\": \"long\"}\n", 2)),
	} {
		t.Run(name, func(t *testing.T) {
			s := startFront(t, longAnswers(rows, bound))
			before := servetest.LiveHeap()
			all := make([]*client, clients)
			for i := range all {
				all[i] = dial(t, s.addr)
				require.NoError(t, all[i].Conn.(*net.TCPConn).SetReadBuffer(64<<10))
				all[i].send(request)
			}
			require.Eventually(t, func() bool {
				m, unsent := s.engine.Metrics(), s.service.Unsent()
				return m.Requests >= clients && m.Live == 0 && unsent > 0 && unsent <= bound
			}, patience, time.Millisecond)
			assert.Less(t, servetest.LiveHeap()-before, int64(3*bound))
			polite := s.do(t, post("/v1/rank/long", `{"user_id": 1}`))
			assert.Equal(t, 200, polite.StatusCode)
			served := 0
			for _, c := range all {
				response, err := http.ReadResponse(c.r, nil)
				if err != nil {
					continue
				}
				if body, err := io.ReadAll(response.Body); err == nil {
					assert.Greater(t, len(body), rows*10)
					served++
				}
			}
			assert.Positive(t, served)
			assert.Less(t, served, clients)
			require.Eventually(t, func() bool { return s.service.Unsent() == 0 }, patience, time.Millisecond)
		})
	}
}

// A request whose first byte comes when the front begins to drain has its own time to arrive.
func TestARequestThatComesAsTheFrontDrainsHasItsTime(t *testing.T) {
	s := startFront(t)
	c := dial(t, s.addr)
	text := post("/v1/rank/one", `{"user_id": 1}`)
	c.send(text[:1])
	require.Eventually(t, func() bool { return s.unread(t) == 1 }, patience, time.Millisecond)
	drained := make(chan error, 1)
	go func() { drained <- s.front.Drain(t.Context()) }()
	dialUntilRefused(t, s.addr)
	c.send(text[1:])
	got := c.receive("POST")
	assert.Equal(t, 200, got.StatusCode)
	assert.True(t, got.Close)
	c.ends()
	require.NoError(t, <-drained)
}

// dialUntilRefused waits until nobody listens at addr any more.
func dialUntilRefused(t testing.TB, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	}, patience, time.Millisecond)
}

// Each line of a batch has a request's time from its own first byte on, even if that byte comes
// with the end of the line before.
func TestEachLineOfABatchHasItsTime(t *testing.T) {
	s := startFront(t, func(o *setup) { o.front.ReadTimeout = arrival })
	c, lines := openBatch(t, s)
	for i := range 4 { // Together they take longer than one line may.
		c.chunk("{\"user_id\": ")
		time.Sleep(arrival / 3)
		c.chunk(fmt.Sprintf("%d, \"plan\": \"one\"}\n{\"plan\": \"one\", ", i+1))
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, line, fmt.Sprintf(`"id":%d`, i+1))
		time.Sleep(arrival / 3)
		c.chunk("\"user_id\": 9}\n")
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, line, `"id":9`)
	}
	c.send("0\r\n\r\n")
	_, err := lines.ReadString('\n')
	assert.Equal(t, io.EOF, err)
	assert.Zero(t, s.unread(t))
}

// The bytes of a body that were counted are given back once.
func TestABodyCountsOnce(t *testing.T) {
	s := startFront(t)
	c := dial(t, s.addr)
	for range 3 {
		c.send(post("/v1/rank/one", strings.Repeat(" ", 640<<10)+`{"user_id": 2}`))
		got := c.receive("POST")
		assert.Equal(t, 200, got.StatusCode)
		assert.Zero(t, s.unread(t), "the front gives it back before it answers")
	}
}
