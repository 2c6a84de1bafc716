package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
)

// wire is a connection that a test writes and reads itself.
type wire struct {
	net.Conn
	in *bufio.Reader
}

// patience bounds each wait for an answer. It is far longer than any deadline of the server.
const patience = 30 * time.Second

// dialWire connects to a front.
func dialWire(addr string) (*wire, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: conn, in: bufio.NewReaderSize(conn, 512)}, nil
}

// reply is the reply to one request, over either front.
type reply struct {
	code string // RESP: the first word of an error; HTTP: the status. Empty for a success
	text string
}

// readRESP reads one reply that is a string or an error.
func (w *wire) readRESP() (reply, error) {
	_ = w.SetReadDeadline(time.Now().Add(patience)) // fails only on a closed connection, as reading does
	raw, err := servetest.ReadReply(w.in)
	if err != nil {
		return reply{}, err
	}
	text := servetest.Text(raw)
	switch {
	case raw[0] == '-':
		code, _, _ := strings.Cut(text[1:], " ")
		return reply{code: code, text: text}, nil
	case raw[0] != '+' && raw[0] != '$' || strings.HasPrefix(raw, "$-"):
		return reply{}, fmt.Errorf("reply %q", raw)
	}
	return reply{text: text}, nil
}

// post returns a request of HTTP.
func post(path, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// readHTTP reads one response, after any 100 Continue.
func (w *wire) readHTTP() (reply, error) {
	_ = w.SetReadDeadline(time.Now().Add(patience)) // fails only on a closed connection, as reading does
	response, err := http.ReadResponse(w.in, nil)
	for err == nil && response.StatusCode == http.StatusContinue {
		response, err = http.ReadResponse(w.in, nil)
	}
	if err != nil {
		return reply{}, err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{text: string(text)}
	if response.StatusCode != http.StatusOK {
		r.code = strconv.Itoa(response.StatusCode)
	}
	return r, response.Body.Close()
}

// rankMany returns the command that ranks for users 1 to n.
func rankMany(plan string, n int) []byte {
	words := []string{"RANK.MANY", plan}
	for user := range n {
		words = append(words, strconv.Itoa(user+1))
	}
	return servetest.Command(words...)
}

// readArray reads an array of strings and errors.
func (w *wire) readArray() (replies []reply, err error) {
	_ = w.SetReadDeadline(time.Now().Add(patience)) // fails only on a closed connection, as reading does
	line, err := w.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "*")))
	if err != nil || line[0] != '*' {
		return nil, fmt.Errorf("reply %q", line)
	}
	for range n {
		r, err := w.readRESP()
		if err != nil {
			return nil, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// batch returns a batch of requests for users 1 to n.
func batch(plan string, n int) []byte {
	var lines strings.Builder
	for user := range n {
		fmt.Fprintf(&lines, "{\"user_id\": %d, \"plan\": %q}\n", user+1, plan)
	}
	return post("/v1/batch", lines.String())
}

// readBatch reads the lines of a response. Each of them is an answer or an error.
func (w *wire) readBatch() (replies []reply, err error) {
	r, err := w.readHTTP()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(r.text) {
		one := reply{text: line, code: r.code}
		if strings.Contains(line, `"error":`) {
			one.code = "line"
		}
		replies = append(replies, one)
	}
	return replies, nil
}

// front is one way to send a request for a ranking, over a wire.
type front struct {
	name string
	addr string
	ask  func(plan string, user int, id string) []byte
	read func(*wire) (reply, error)
	// askMany sends users 1 to n at once; readMany reads an answer for each.
	askMany  func(plan string, n int) []byte
	readMany func(*wire) ([]reply, error)
}

// fronts returns both fronts of a server.
func frontsOf(resp, http string) []front {
	document := func(plan string, user int, id string) string {
		return fmt.Sprintf(`{"user_id": %d, "plan": %q, "request_id": %q}`, user, plan, id)
	}
	return []front{
		{
			name: "RESP", addr: resp, read: (*wire).readRESP, askMany: rankMany, readMany: (*wire).readArray,
			ask: func(plan string, user int, id string) []byte {
				return servetest.Command("RANK", plan, strconv.Itoa(user), document(plan, user, id))
			},
		},
		{
			name: "HTTP", addr: http, read: (*wire).readHTTP, askMany: batch, readMany: (*wire).readBatch,
			ask: func(plan string, user int, id string) []byte {
				return post("/v1/rank/"+plan, document(plan, user, id))
			},
		},
	}
}

// rank sends one request and returns its answer.
func (f *front) rank(t testing.TB, w *wire, plan string, user int, id string) reply {
	t.Helper()
	_, err := w.Write(f.ask(plan, user, id))
	require.NoError(t, err)
	r, err := f.read(w)
	require.NoError(t, err)
	return r
}
