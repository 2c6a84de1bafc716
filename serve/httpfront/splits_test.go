package httpfront

import (
	"io"
	"net"
	"net/http/httputil"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pieces is a connection whose reads end where the test says. Its client sends all of input at
// once, and nothing more.
type pieces struct {
	net.Conn // the client's end of it is a pipe: the front writes to it
	input    []byte
	cuts     []int // ascending places of input
	at       int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.at == len(p.input) {
		return 0, io.EOF
	}
	end := len(p.input)
	for _, cut := range p.cuts {
		if cut > p.at {
			end = min(cut, end)
			break
		}
	}
	n := copy(b, p.input[p.at:end])
	p.at += n
	return n, nil
}

func (p *pieces) SetReadDeadline(time.Time) error { return nil }

var dates = regexp.MustCompile(`Date: [^\r]*\r\n`)

// exchangeOf returns what the front writes to a client that sends input in these pieces. It
// leaves out what differs between two equal conversations. It also leaves out 100 Continue,
// which a client that has stopped sending may get.
func (s *server) exchangeOf(t testing.TB, input string, cuts ...int) string {
	near, far := net.Pipe()
	require.NoError(t, far.SetDeadline(time.Now().Add(patience)))
	s.pieces <- &pieces{Conn: near, input: []byte(input), cuts: cuts}
	output, err := io.ReadAll(far)
	require.NoError(t, err)
	return strings.ReplaceAll(dates.ReplaceAllString(same(joined(t, string(output))), ""), probe, "")
}

// offered is a listener whose connections the tests make.
type offered struct {
	net.Listener
	conns chan net.Conn
	over  chan struct{}
}

func (o offered) Accept() (net.Conn, error) {
	select {
	case nc := <-o.conns:
		return nc, nil
	case <-o.over:
		return nil, net.ErrClosed
	}
}

func (o offered) Close() error {
	close(o.over)
	return o.Listener.Close()
}

// startPieces starts a server of connections in pieces.
func startPieces(t testing.TB) *server {
	conns := make(chan net.Conn)
	s := startFront(t, func(o *setup) {
		o.listen = func(l net.Listener) net.Listener { return offered{l, conns, make(chan struct{})} }
	})
	s.pieces = conns
	return s
}

// conversations have requests of each kind, and what the answers must contain.
var conversations = []struct {
	text  string
	parts []string
}{
	{post("/v1/rank/one", `{"user_id": 1, "request_id": "a"}`, "X-Request-Id: x", "traceparent: "+traceContext) + post("/v1/rank/wrong", `{"user_id": 3}`),
		[]string{`{"id":1}`, "as it is meant to be"}},
	{get("/v1/plans") + message("HEAD", "/v1/plans", "") + post("/nowhere", "body") + post("/v1/rank/one", "oops", "X-Request-Timeout-Ms: 1000"),
		[]string{`"plans":`, "404", "'o'"}},
	{post("/v1/rank", `{"user_id": 2, "request_id": "b", "plan": "one"}`, "Expect: 100-continue") +
		strings.Replace(chunkedBatch(`{"user_id": 6}`, 5), "/v1/batch", "/v1/rank/one", 1), []string{`{"id":2}`, `{"id":6}`}},
	{chunkedBatch("{\"user_id\": 4, \"plan\": \"one\", \"request_id\": \"c\"}\nbroken\n\n{\"user_id\": 5, \"plan\": \"one\"}", 25), []string{`{"id":4}`, "'b'", `{"id":5}`}},
}

// joined returns the output with the chunks of a batch put together, because their ends depend
// on time.
func joined(t testing.TB, output string) string {
	head, chunks, found := strings.Cut(output, "Transfer-Encoding: chunked\r\n")
	if !found {
		return output
	}
	rest, chunks, _ := strings.Cut(chunks, "\r\n\r\n")
	body, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(chunks)))
	require.NoError(t, err, "%s", output)
	return head + rest + string(body)
}

func TestConversationsAtEverySplit(t *testing.T) {
	s := startPieces(t)
	for _, c := range conversations {
		whole := s.exchangeOf(t, c.text)
		for _, part := range c.parts {
			require.Contains(t, whole, part)
		}
		var each []int
		for i := 1; i < len(c.text); i++ {
			require.Equal(t, whole, s.exchangeOf(t, c.text, i), "cut at %d", i)
			each = append(each, i)
		}
		assert.Equal(t, whole, s.exchangeOf(t, c.text, each...), "byte by byte")
	}
}

// FuzzSplits sends any bytes whole and in pieces. The front answers the same, and ends.
func FuzzSplits(f *testing.F) {
	for _, c := range conversations {
		f.Add(c.text, uint16(3), uint16(40))
	}
	for _, seed := range []string{"GET / HTTP/1.1\r\n\r\n", "\r\n\r\n", "POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{}", chunkedBatch("x\ny\n", 1), chunkedBatch("", 1)[:60]} {
		f.Add(seed, uint16(10), uint16(20))
	}
	s := startPieces(f)
	f.Fuzz(func(t *testing.T, input string, a, b uint16) {
		whole := s.exchangeOf(t, input)
		assert.Equal(t, whole, s.exchangeOf(t, input, int(min(a, b)), int(max(a, b))))
	})
}
