package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Another request follows each request. A front that misjudges the end of the first would
// answer the second.
func TestFraming(t *testing.T) {
	const next = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
	s := startFront(t)
	for _, c := range []struct {
		name, request string
		detail        string
	}{
		{"both lengths", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", string(faultBoth)},
		{"both, the other way round", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", string(faultBoth)},
		{"two equal lengths", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", string(faultTwice)},
		{"two lengths in one line", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\n{}", string(faultLength)},
		{"a negative length", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", string(faultLength)},
		{"a signed length", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}", string(faultLength)},
		{"a length in base 16", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 0x2\r\n\r\n{}", string(faultLength)},
		{"a length in base 2", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 0b1\r\n\r\n{", string(faultLength)},
		{"an underscore in a length", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 1_0\r\n\r\n1234567890", string(faultLength)},
		{"two empty lines before it", "\r\n\r\nPOST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", string(faultRequest)},
		{"a huge length", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", string(faultLength)},
		{"two codings", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", string(faultTwice)},
		{"identity", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n", string(faultEncoding)},
		{"a list of codings", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", string(faultEncoding)},
		{"a coding of HTTP/1.0", "POST /v1/rank HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", string(faultOldCoding)},
		{"a space before the colon", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", string(faultName)},
		{"a space before the colon of a length", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length : 40\r\n\r\n", string(faultName)},
		{"a folded line", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Content-Length: 40\r\n\r\n", string(faultName)},
		{"a bare LF", "POST /v1/rank HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n", string(faultLine)},
		{"an end of bare LFs", "POST /v1/rank HTTP/1.1\r\nHost: x\r\n\nContent-Length: 40\r\n\r\n", ""},
		{"a line without a colon", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", string(faultName)},
		{"no name", "POST /v1/rank HTTP/1.1\r\nHost: x\r\n: nonsense\r\n\r\n", string(faultName)},
		{"a NUL", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nX-A: \x00\r\n\r\n", string(faultValue)},
		{"a CR in a value", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nX-A: b\rContent-Length: 40\r\n\r\n", string(faultValue)},
		{"no host", "POST /v1/rank HTTP/1.1\r\nContent-Length: 0\r\n\r\n", string(faultHost)},
		{"two hosts", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 0\r\n\r\n", string(faultTwice)},
		{"an empty host and another", "POST /v1/rank HTTP/1.1\r\nHost:\r\nHost: y\r\nContent-Length: 0\r\n\r\n", string(faultTwice)},
		{"two tokens", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: 0\r\n\r\n", string(faultTwice)},
		{"a chunk of bad size", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", brokenBody.detail},
		{"a chunk without its end", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n", brokenBody.detail},
		{"an extension with a LF", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a\n{}\r\n0\r\n\r\n", brokenBody.detail},
		{"a method that is not a token", "PO(ST /v1/rank HTTP/1.1\r\nHost: x\r\n\r\n", string(faultRequest)},
		{"two spaces", "POST  /v1/rank HTTP/1.1\r\nHost: x\r\n\r\n", string(faultRequest)},
		{"no version", "POST /v1/rank\r\nHost: x\r\n\r\n", string(faultRequest)},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := dial(t, s.addr)
			client.send(c.request + next)
			got := client.receive("POST")
			assert.Equal(t, 400, got.StatusCode)
			assert.Contains(t, got.body, c.detail)
			assert.True(t, got.Close)
			client.ends()
		})
	}
}

// The bytes after a body belong to the next request, whatever the front thought of the first.
func TestABodyIsNotTheNextRequest(t *testing.T) {
	s := startFront(t)
	inner := post("/v1/rank/one", `{"user_id": 66, "request_id": "smuggled"}`)
	for _, c := range []struct {
		name, request string
		status        int
		ends          bool
	}{
		{"a path that does not exist", post("/nowhere", inner), 404, false},
		{"a short body of a GET", message("GET", "/v1/plans", inner), 200, false},
		{"a long body of a GET", message("GET", "/v1/plans", strings.Repeat(" ", 20_000)+inner), 200, true},
		{"a long body of a path that does not exist", post("/nowhere", strings.Repeat(" ", 20_000)+inner), 404, true},
		{"a chunked body of a path that does not exist", strings.Replace(chunkedBatch(inner, 1000), "/v1/batch", "/nowhere", 1), 404, true},
		{"a chunked body", strings.Replace(chunkedBatch(`{"user_id": 1}`, 3), "/v1/batch", "/v1/rank/one", 1) + inner, 200, false},
		{"a trailer", "POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{\"user_id\": 1}\r\n0\r\nX-T: y\r\n\r\n" + inner, 200, false},
		{"a length with a zero before it", "POST /v1/rank/one HTTP/1.1\r\nHost: x\r\nContent-Length: 014\r\n\r\n{\"user_id\": 1}", 200, false},
		{"tabs around values", "POST /v1/rank/one HTTP/1.1\r\nHost:\tx\t\r\nContent-Length:\t14\t\r\n\r\n{\"user_id\": 1}", 200, false},
		{"a broken batch", "POST /v1/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n" + inner, 200, true},
		{"an expectation", post("/nowhere", inner, "Expect: 100-continue"), 404, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := dial(t, s.addr)
			client.send(c.request)
			got := client.receive("POST")
			if got.StatusCode == http.StatusContinue {
				got = client.receive("POST")
			}
			assert.Equal(t, c.status, got.StatusCode)
			assert.Equal(t, c.ends, got.Close)
			assert.NotContains(t, got.body, "smuggled")
			if c.status == 200 && strings.Contains(c.request, "chunked") && !c.ends {
				assert.Contains(t, client.receive("POST").body, "smuggled", "the front knows where the body ends")
			}
			if c.ends {
				client.ends()
			} else {
				client.goesOn()
			}
		})
	}
}

func TestKeepAlive(t *testing.T) {
	s := startFront(t)
	for _, c := range []struct {
		version, connection string
		keeps               bool
	}{
		{"1.1", "", true}, {"1.1", "keep-alive", true}, {"1.1", "close", false}, {"1.1", "Close", false}, {"1.1", "TE, close", false},
		{"1.0", "", false}, {"1.0", "keep-alive", true}, {"1.0", "Keep-Alive", true}, {"1.0", "close", false},
	} {
		client := dial(t, s.addr)
		text := post("/v1/rank/one", `{"user_id": 1}`, "Connection: "+c.connection)
		if c.connection == "" {
			text = post("/v1/rank/one", `{"user_id": 1}`)
		}
		client.send(strings.Replace(text, "HTTP/1.1", "HTTP/"+c.version, 1))
		got := client.receive("POST")
		assert.Equal(t, 200, got.StatusCode)
		assert.Equal(t, !c.keeps, got.Close, "%+v", c)
		assert.Positive(t, got.ContentLength)
		if c.keeps {
			client.goesOn()
		} else {
			client.ends()
		}
	}
}

func TestPipelining(t *testing.T) {
	s := startFront(t)
	c := dial(t, s.addr)
	var text strings.Builder
	for i := 1; i <= 50; i++ {
		text.WriteString([]string{"", "\r\n"}[i%2] + post("/v1/rank/one", fmt.Sprintf(`{"user_id": %d}`, i)))
	}
	c.send(text.String())
	for i := 1; i <= 50; i++ {
		assert.Contains(t, c.receive("POST").body, fmt.Sprintf(`"candidates":[{"id":%d}]`, i))
	}
	c.goesOn()
}

// A client of HTTP/1.0 knows no interim answers. It gets none, whether it waits for one or has stopped sending.
func TestAnOldClientGetsItsAnswerAlone(t *testing.T) {
	s := startFront(t)
	old := func(text string) *client {
		c := dial(t, s.addr)
		c.send(strings.Replace(text, "HTTP/1.1", "HTTP/1.0", 1))
		return c
	}
	alone := func(c *client) {
		text, err := io.ReadAll(c.r)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(text), "HTTP/1.1 "), "%s", text)
		assert.Contains(t, string(text), " 200 OK\r\n")
	}
	text := post("/v1/rank/one", strings.Repeat(" ", 20_000)+`{"user_id": 1}`, "Expect: 100-continue")
	c := old(text[:10_000])
	require.Eventually(t, func() bool { return s.unread(t) > 0 }, patience, time.Millisecond)
	c.send(text[10_000:])
	alone(c)

	c = old(post("/v1/rank/held", `{"user_id": 1}`))
	first := <-s.held
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	later := dial(t, s.addr)
	later.send(post("/v1/rank/held", `{"user_id": 1}`))
	second := <-s.held
	require.NoError(t, later.Conn.(*net.TCPConn).CloseWrite())
	line, err := later.r.ReadString('\n') // The front has seen both ends.
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	first.answer()
	second.answer()
	alone(c)
}

func TestTraceParent(t *testing.T) {
	for _, c := range []struct {
		value string
		sound bool
	}{
		{traceContext, true},
		{"cc" + traceContext[2:], true},
		{"cc" + traceContext[2:] + "-what-later-versions-add", true},
		{traceContext + "-00", false},
		{"cc" + traceContext[2:] + "x", false},
		{"ff" + traceContext[2:], false},
		{strings.ToUpper(traceContext), false},
		{traceContext[:54], false},
		{"00-" + strings.Repeat("0", 32) + traceContext[35:], false},
		{traceContext[:36] + strings.Repeat("0", 16) + "-01", false},
		{"cc" + traceContext[2:] + "-" + strings.Repeat("x", 100), false},
		{"", false},
	} {
		var h head
		require.Empty(t, h.parse([]byte("GET / HTTP/1.1\r\nHost: x\r\ntraceparent: "+c.value+"\r\n\r\n")))
		if c.sound {
			assert.Equal(t, c.value, string(h.trace()))
		} else {
			assert.Nil(t, h.trace(), c.value)
		}
	}
}

func TestTimeoutsAreBounded(t *testing.T) {
	var h head
	require.Empty(t, h.parse([]byte("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Timeout-Ms: 9223372036854775807\r\n\r\n")))
	d, ok := h.timeout()
	assert.True(t, ok)
	assert.Greater(t, d, 290*365*24*time.Hour)
}

// FuzzHead compares with net/http. A request that the front accepts has the same length, coding
// and host there.
func FuzzHead(f *testing.F) {
	for _, headers := range []string{
		"", "Host: x\r\n", "Host: x\r\nContent-Length: 5\r\n", "Host: x\r\nTransfer-Encoding: chunked\r\n", "Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Host: x\r\n Content-Length: 5\r\n", "Host: x\r\nContent-Length : 5\r\n", "Host: x\nContent-Length: 5\r\n", "Host: x\r\nX: y\r\n\tz\r\n",
		"Host:x\r\nTransfer-Encoding: identity\r\n", "Host: x\r\ncontent-length: 05\r\n", "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"Host: x\r\n\r\nContent-Length: 5\r\n", "Host: x\r\n\nContent-Length: 5\r\n", "Host: x\r\nX-\xff: y\r\n", "Host: x\r\nContent-Length: 5 \r\n", "Host: \x0bx\r\n",
	} {
		f.Add(headers)
	}
	f.Fuzz(func(t *testing.T, headers string) {
		text := "POST /v1/rank HTTP/1.1\r\n" + headers + "\r\n"
		c := &codec{}
		n, whole := c.findEnd([]byte(text))
		var h head
		if !whole || h.parse([]byte(text[:n])) != "" {
			return
		}
		rest := bufio.NewReader(strings.NewReader(text))
		theirs, err := http.ReadRequest(rest)
		if err != nil {
			// net/http checks the values of some headers that the front does not read.
			require.True(t, strings.Contains(err.Error(), "malformed MIME header") || strings.Contains(err.Error(), "invalid") || strings.Contains(err.Error(), "bad"), "%v", err)
			return
		}
		assert.Equal(t, h.chunked, len(theirs.TransferEncoding) > 0)
		if !h.chunked {
			assert.Equal(t, h.length, max(theirs.ContentLength, 0))
		}
		assert.Equal(t, theirs.Host, string(h.get(host)))
		left, _ := io.ReadAll(rest)
		assert.Equal(t, string(left), text[n:], "where the head ends")
	})
}
