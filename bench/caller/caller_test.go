package caller

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/bench/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answerFor is how the servers of these tests answer users: some fail, some are refused.
func answerFor(user string) (status int, code string) {
	switch {
	case strings.HasSuffix(user, "3"):
		return http.StatusGatewayTimeout, "TIMEOUT"
	case strings.HasSuffix(user, "7"):
		return http.StatusServiceUnavailable, "OVERLOADED"
	default:
		return http.StatusOK, ""
	}
}

// serveRESP starts a server for RANK commands of the expected form.
func serveRESP(t *testing.T, options string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := redcon.NewServer(l.Addr().String(), func(c redcon.Conn, cmd redcon.Command) {
		want := []string{"RANK", "plan"}
		user := string(cmd.Args[2])
		for i, word := range want {
			assert.Equal(t, word, string(cmd.Args[i]))
		}
		if options != "" {
			assert.Equal(t, options, string(cmd.Args[3]))
		} else {
			assert.Len(t, cmd.Args, 3)
		}
		if _, code := answerFor(user); code != "" {
			c.WriteError(code + " no luck")
			return
		}
		c.WriteBulkString(strings.Repeat("x", 3000))
	}, nil, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
}

// serveHTTP starts a server of /v1/rank/plan.
func serveHTTP(t *testing.T, timeout string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		var user int
		_, err = fmt.Sscanf(string(body), `{"user_id":%d}`, &user)
		assert.NoError(t, err)
		assert.Equal(t, "/v1/rank/plan", r.URL.Path)
		assert.Equal(t, timeout, r.Header.Get("X-Request-Timeout-Ms"))
		status, code := answerFor(fmt.Sprint(user))
		text := strings.Repeat("x", 3000)
		if code != "" {
			text = code + strings.Repeat("!", 1000)
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
}

// TestLoad puts loads on servers of both protocols. Each request is answered once, and counted
// in the right class.
func TestLoad(t *testing.T) {
	users := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for name, o := range map[string]Options{
		"RESP":            {Front: RESP, Addr: serveRESP(t, ""), Plan: "plan", Connections: 3},
		"RESPAndDeadline": {Front: RESP, Addr: serveRESP(t, `{"deadline_ms":250}`), Plan: "plan", Connections: 1, Deadline: 250 * time.Millisecond},
		"HTTP":            {Front: HTTP, Addr: serveHTTP(t, ""), Plan: "plan", Connections: 16},
		"HTTPAndDeadline": {Front: HTTP, Addr: serveHTTP(t, "250"), Plan: "plan", Connections: 1, Deadline: 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := Open(o)
			require.NoError(t, err)
			defer target.Close()
			for _, l := range []load.Load{
				{Users: users, Concurrency: 16, Requests: 2000},
				{Users: users, Concurrency: 64, Requests: 2000, Rate: 1e6},
			} {
				r, err := load.Driver{}.Run(context.Background(), target, l)
				require.NoError(t, err)
				sent := 2000 - r.Shed
				assert.Equal(t, sent, r.Answered+r.Refused.Answered)
				assert.Equal(t, r.Answered-r.Errors, r.Latency.TotalCount())
				assert.Equal(t, r.Refused.Answered, r.Refused.Latency.TotalCount())
				assert.Contains(t, r.FirstError, "TIMEOUT")
				if l.Rate == 0 {
					assert.EqualValues(t, 200, r.Errors)
					assert.EqualValues(t, 200, r.Refused.Answered)
				}
			}
		})
	}
}

// A connection that breaks fails the requests that wait, and later ones.
func TestABrokenConnection(t *testing.T) {
	for name, says := range map[string]string{
		"Closed": "", "Half": "$10\r\nxx", "Nonsense": "?\r\n", "Unasked": "$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				first := make([]byte, 1)
				_, _ = c.Read(first)
				_, _ = io.WriteString(c, says)
				_ = c.Close()
			}()
			target, err := Open(Options{Front: RESP, Addr: l.Addr().String(), Plan: "p", Connections: 1})
			require.NoError(t, err)
			defer target.Close()
			answered := make(chan error, 3)
			for range 3 {
				target.NewClient(func(err error) { answered <- err }).Send(1)
			}
			var last error
			for range 3 {
				last = <-answered
			}
			<-target.conns[0].done
			if name != "Unasked" {
				assert.ErrorContains(t, last, "connection to 127.0.0.1")
			}
			target.NewClient(func(err error) { answered <- err }).Send(1)
			assert.ErrorContains(t, <-answered, "connection to 127.0.0.1")
		})
	}
}

func TestOpenErrors(t *testing.T) {
	_, err := Open(Options{Front: "gopher", Connections: 1})
	assert.ErrorContains(t, err, `front is "gopher"`)
	_, err = Open(Options{Front: RESP})
	assert.ErrorContains(t, err, "0 connections")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = Open(Options{Front: HTTP, Addr: l.Addr().String(), Connections: 1})
	assert.Error(t, err)
}

// outcomes reads answers until one is broken.
func outcomes(p protocol, in io.Reader) (all []string) {
	r := bufio.NewReaderSize(in, readBytes)
	for {
		outcome, broken := p.readAnswer(r)
		if broken != nil {
			return append(all, broken.Error())
		}
		all = append(all, fmt.Sprint(outcome))
	}
}

func TestReadAnswers(t *testing.T) {
	for _, tc := range []struct {
		front, in string
		want      []string
	}{
		{RESP, "$2\r\nhi\r\n-TIMEOUT late\r\n-OVERLOADED full\r\n-CLOSING bye\r\n$0\r\n\r\n",
			[]string{"<nil>", "TIMEOUT late", "OVERLOADED full: refused", "CLOSING bye: refused", "<nil>", "EOF"}},
		{RESP, "$-1\r\n", []string{`a bulk string of "-1" bytes`}},
		{RESP, "\r\n", []string{"an empty line where a reply begins"}},
		{RESP, ":1\r\n", []string{"a reply that begins with ':'"}},
		{HTTP, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX: y\r\n\r\nhiHTTP/1.1 504 Gateway Timeout\r\nContent-Length: 4\r\n\r\nlate" +
			"HTTP/1.1 503 Full\r\nContent-Length:4\r\n\r\nfullHTTP/1.1 429 Full\r\nContent-Length: 0\r\n\r\n",
			[]string{"<nil>", "504 late", "503 full: refused", "429 : refused", "EOF"}},
		{HTTP, "HTTP/1.1 200 OK\r\n\r\n", []string{"a response without Content-Length"}},
		{HTTP, "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", []string{`a response with "Content-Length: -1"`}},
		{HTTP, "SSH-2.0\r\n", []string{`a response that begins with "SSH-2.0"`}},
	} {
		p := protocolOf(tc.front)
		assert.Equal(t, tc.want, outcomes(p, strings.NewReader(tc.in)))
		assert.Equal(t, tc.want, outcomes(p, iotest.OneByteReader(strings.NewReader(tc.in))), "byte by byte")
	}
}

func protocolOf(front string) protocol {
	if front == RESP {
		return newRESP(Options{Plan: "p"})
	}
	return newHTTP(Options{Plan: "p"})
}

// FuzzReadAnswers compares reading at once with reading byte by byte.
func FuzzReadAnswers(f *testing.F) {
	f.Add(true, "$2\r\nhi\r\n-TIMEOUT late\r\n")
	f.Add(false, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	f.Fuzz(func(t *testing.T, resp bool, in string) {
		front := HTTP
		if resp {
			front = RESP
		}
		p := protocolOf(front)
		assert.Equal(t, outcomes(p, strings.NewReader(in)), outcomes(p, iotest.OneByteReader(strings.NewReader(in))))
	})
}
