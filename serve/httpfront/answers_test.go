package httpfront

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/access"
)

// stdin returns the answers of the program to an input, one a line, as the loop of stdin makes
// them.
func stdin(t testing.TB, e *rankd.Engine, stream *request.Stream) (answers []string) {
	for {
		doc, err := stream.Next()
		if err == io.EOF {
			return answers
		}
		var r rankd.Request
		if err == nil {
			r, err = e.ParseRequest(doc)
			err = stream.Locate(err, doc)
		}
		if err != nil {
			err = e.Intake().Refused(err)
		}
		var a *rankd.Answer
		if err == nil {
			a, err = e.Rank(t.Context(), r)
		}
		var failed *rankd.Error
		if errors.As(err, &failed) {
			answers = append(answers, string(failed.AppendJSON(nil)))
		} else {
			answers = append(answers, string(a.AppendJSON(nil, rankd.FormatFlat)))
		}
	}
}

// varying matches generated ids, which no two answers share.
var varying = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func same(body string) string { return varying.ReplaceAllString(body, "UUID") }

// withData has the server run the example plans on demo data.
func withData(t testing.TB) func(*setup) {
	redis, err := devredis.Start()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return func(o *setup) { o.engine.Plans, o.engine.Redis = nil, redis.Addr() }
}

// An answer over HTTP is that of stdin, byte for byte.
func TestAnswersEqualStdin(t *testing.T) {
	s := startFront(t, withData(t))
	for name, body := range map[string]string{
		"an answer":              `{"user_id": 1, "request_id": "r", "plan": "complex_dag"}`,
		"lines":                  "{\"user_id\": 1,\n \"request_id\": \"r\",\n \"plan\": \"diamond\"}\n",
		"a generated id":         `{"user_id": 2, "plan": "diamond"}`,
		"parameters":             `{"user_id": 2, "request_id": "r", "plan": "reels_plan_a", "param_overrides": {"media_age_penalty_weight": 0.5}}`,
		"strange characters":     `{"user_id": 2, "request_id": "ü\u0000\r\n\"<>", "plan": "diamond"}`,
		"not JSON":               "oops",
		"broken on line 2":       "{\"user_id\": 1,\n oops}",
		"cut off":                `{"user_id": 1`,
		"behind a document":      `{"user_id": 1} {}`,
		"empty":                  "",
		"blank":                  " \n",
		"no user":                `{"request_id": "r"}`,
		"user out of range":      `{"user_id": 0, "request_id": "r"}`,
		"wrong type":             `{"user_id": 1, "request_id": "r", "plan": 7}`,
		"no plan":                `{"user_id": 1, "request_id": "r"}`,
		"unknown plan":           `{"user_id": 1, "request_id": "r", "plan": "nowhere"}`,
		"bad name of a plan":     `{"user_id": 1, "request_id": "r", "plan": "../x"}`,
		"unknown parameter":      `{"user_id": 1, "request_id": "r", "plan": "diamond", "param_overrides": {"x": 1}}`,
		"unknown required node":  `{"user_id": 1, "request_id": "r", "plan": "diamond", "require": ["x"]}`,
		"explained":              `{"user_id": 1, "request_id": "r", "plan": "diamond", "explain": [1]}`,
		"a mode that is unknown": `{"user_id": 1, "request_id": "r", "plan": "diamond", "scheduling": "x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			want := stdin(t, s.engine, request.NewStream(strings.NewReader(body), 0))
			got := s.do(t, post("/v1/rank", body))
			assert.Equal(t, same(want[0]), same(got.body)+"\n")
			assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
		})
	}
}

func TestThePlanOfThePath(t *testing.T) {
	s := startFront(t)
	for _, c := range []struct {
		path, body string
		status     int
		contains   string
	}{
		{"/v1/rank/one", `{"user_id": 5}`, 200, `"candidates":[{"id":5}]`},
		{"/v1/rank/one", `{"user_id": 5, "plan": "one"}`, 200, `"candidates":[{"id":5}]`},
		{"/v1/rank/one?plan=held", `{"user_id": 5}`, 200, `"candidates":[{"id":5}]`},
		{"http://other.example/v1/rank/one", `{"user_id": 5}`, 200, `"candidates":[{"id":5}]`},
		{"/v1/rank/one", `{"user_id": 5, "plan": "held"}`, 400, "plan"},
		{"/v1/rank/nowhere", `{"user_id": 5}`, 404, "Unknown plan"},
		{"/v1/rank/broken", `{"user_id": 5}`, 500, "Invalid plan"},
		{"/v1/rank/%6fne", `{"user_id": 5}`, 404, "Unknown plan"},
		{"/v1/rank/one/", `{"user_id": 5}`, 404, "no such path"},
		{"/v1/rank/", `{"user_id": 5}`, 404, "no such path"},
		{"/v1//rank/one", `{"user_id": 5}`, 404, "no such path"},
		{"/v1/plans/../rank/one", `{"user_id": 5}`, 404, "no such path"},
		{"/", "", 404, "no such path"},
	} {
		got := s.do(t, post(c.path, c.body))
		assert.Equal(t, c.status, got.StatusCode, c.path)
		assert.Contains(t, got.body, c.contains, c.path)
	}
}

func TestMethods(t *testing.T) {
	s := startFront(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/v1/rank/one", 405, "POST"},
		{"HEAD", "/v1/rank", 405, "POST"},
		{"PUT", "/v1/batch", 405, "POST"},
		{"POST", "/v1/plans", 405, "GET, HEAD"},
		{"OPTIONS", "/openapi.json", 405, "GET, HEAD"},
		{"GET", "/v1/plans", 200, ""},
		{"HEAD", "/v1/plans", 200, ""},
		{"HEAD", "/openapi.json", 200, ""},
		{"TRACE", "/", 404, ""},
	} {
		client := dial(t, s.addr)
		client.send(message(c.method, c.path, ""))
		got := client.receive(c.method)
		assert.Equal(t, c.status, got.StatusCode, "%s %s", c.method, c.path)
		assert.Equal(t, c.allow, got.Header.Get("Allow"), "%s %s", c.method, c.path)
		if c.method == "HEAD" {
			assert.Empty(t, got.body)
			assert.Positive(t, got.ContentLength)
		}
		client.goesOn()
	}
}

func TestPlans(t *testing.T) {
	few, err := access.NewCaller(access.Rules{Name: "few", Plans: []string{"o*", "b*"}})
	require.NoError(t, err)
	for _, c := range []struct {
		store *access.Store
		want  string
	}{
		{everything(t), `{"plans":[{"name":"chain"},{"name":"down"},{"name":"held"},{"name":"one"},{"name":"slow"},{"name":"wrong"}]}`},
		{access.Anyone(few), `{"plans":[{"name":"one"}]}`},
	} {
		s := startFront(t, func(o *setup) { o.store = c.store })
		assert.Equal(t, c.want, withoutDigests(t, s.do(t, get("/v1/plans")).body))
	}
}

// withoutDigests returns a list of plans without their digests. Each plan must have one.
func withoutDigests(t *testing.T, body string) string {
	digests := regexp.MustCompile(`"generation":"[0-9a-f]{64}",|,"digest":"[0-9a-f]{64}"`)
	require.Len(t, digests.FindAllString(body, -1), 1+strings.Count(body, `"name"`), body)
	return digests.ReplaceAllString(body, "")
}

func tokenFile(t testing.TB, text string) string {
	path := filepath.Join(t.TempDir(), "tokens.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestTokens(t *testing.T) {
	path := tokenFile(t, servetest.Token("first", "first-token", servetest.Plans("one"))+servetest.Token("second", "second-token", servetest.Plans("*")))
	store, err := access.Open(path)
	require.NoError(t, err)
	s := startFront(t, func(o *setup) { o.store = store })
	c := dial(t, s.addr) // one connection: a request's rights say nothing about the next request's
	for _, step := range []struct {
		authorization, path string
		status              int
	}{
		{"", "/v1/rank/one", 401},
		{"Authorization: Bearer first-token", "/v1/rank/one", 200},
		{"Authorization: bearer   first-token", "/v1/rank/one", 200},
		{"Authorization: Bearer first-token", "/v1/rank/wrong", 403},
		{"Authorization: Bearer second-token", "/v1/rank/wrong", 500},
		{"Authorization: Bearer unknown-token", "/v1/rank/one", 401},
		{"Authorization: Bearer", "/v1/rank/one", 401},
		{"Authorization: Bearer ", "/v1/rank/one", 401},
		{"Authorization: Basic first-token", "/v1/rank/one", 401},
		{"Authorization: first-token", "/v1/rank/one", 401},
		{"", "/v1/rank/one", 401},
		{"", "/v1/batch", 401},
	} {
		headers := []string{}
		if step.authorization != "" {
			headers = append(headers, step.authorization)
		}
		c.send(post(step.path, `{"user_id": 1}`, headers...))
		got := c.receive("POST")
		assert.Equal(t, step.status, got.StatusCode, "%s %s", step.authorization, step.path)
		if step.status == 401 {
			assert.Equal(t, "Bearer", got.Header.Get("WWW-Authenticate"))
		}
	}
	c.send(get("/v1/plans", "Authorization: Bearer first-token"))
	assert.Equal(t, `{"plans":[{"name":"one"}]}`, withoutDigests(t, c.receive("GET").body))
	c.send(get("/openapi.json"))
	assert.Equal(t, 200, c.receive("GET").StatusCode)

	require.NoError(t, os.WriteFile(path, []byte(servetest.Token("second", "second-token", servetest.Plans("*"))), 0o600))
	_, err = store.Reload()
	require.NoError(t, err)
	c.send(post("/v1/rank/one", `{"user_id": 1}`, "Authorization: Bearer first-token"))
	assert.Equal(t, 401, c.receive("POST").StatusCode, "revoked")
	for _, token := range []string{"first-token", "second-token", "unknown-token"} {
		assert.NotContains(t, s.log.String(), token)
	}
}

func TestATokenIsRevokedWithinABatch(t *testing.T) {
	path := tokenFile(t, servetest.Token("first", "first-token", servetest.Plans("*")))
	store, err := access.Open(path)
	require.NoError(t, err)
	s := startFront(t, func(o *setup) { o.store = store })
	c := dial(t, s.addr)
	c.send("POST /v1/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer first-token\r\nTransfer-Encoding: chunked\r\n\r\n")
	response, err := http.ReadResponse(c.r, &http.Request{Method: "POST"})
	require.NoError(t, err)
	lines := bufio.NewReader(response.Body)
	c.chunk("{\"user_id\": 1, \"plan\": \"one\"}\n")
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"id":1`)
	require.NoError(t, os.WriteFile(path, []byte(servetest.Token("second", "second-token", servetest.Plans("*"))), 0o600))
	_, err = store.Reload()
	require.NoError(t, err)
	c.chunk("{\"user_id\": 1, \"plan\": \"one\"}\n{\"user_id\": 1, \"plan\": \"one\"}\n")
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(rest), "Not authenticated"))
	c.ends()
	assert.Equal(t, 1.0, s.cuts(t, "revoked"))
}

const traceContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestHeadersAreEchoed(t *testing.T) {
	s := startFront(t)
	for _, c := range []struct {
		name, path, body string
		headers          []string
		id, trace        string
		bodyID           string
	}{
		{"both", "/v1/rank/one", `{"user_id": 1}`, []string{"X-Request-Id: abc", "traceparent: " + traceContext}, "abc", traceContext, "abc"},
		{"any case", "/v1/rank/one", `{"user_id": 1}`, []string{"x-REQUEST-id:abc", "TraceParent:  " + traceContext + " "}, "abc", traceContext, "abc"},
		{"the body's id is the request's", "/v1/rank/one", `{"user_id": 1, "request_id": "body"}`, []string{"X-Request-Id: abc"}, "abc", "", "body"},
		{"the body's alone", "/v1/rank/one", `{"user_id": 1, "request_id": "body"}`, nil, "body", "", "body"},
		{"the body's, and not fit for a header", "/v1/rank/one", `{"user_id": 1, "request_id": "a b"}`, nil, "", "", "a b"},
		{"too long", "/v1/rank/one", `{"user_id": 1, "request_id": "body"}`, []string{"X-Request-Id: " + strings.Repeat("x", 129)}, "body", "", "body"},
		{"a broken trace", "/v1/rank/one", `{"user_id": 1, "request_id": "body"}`, []string{"traceparent: 00-x"}, "body", "", "body"},
		{"a refusal", "/nowhere", "", []string{"X-Request-Id: abc", "traceparent: " + traceContext}, "abc", traceContext, "abc"},
		{"plans", "/v1/rank/wrong", `{"user_id": 1}`, []string{"X-Request-Id: abc", "traceparent: " + traceContext}, "abc", traceContext, "abc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.do(t, post(c.path, c.body, c.headers...))
			assert.Equal(t, c.id, got.Header.Get("X-Request-Id"))
			assert.Equal(t, c.trace, got.Header.Get("traceparent"))
			assert.Contains(t, got.body, fmt.Sprintf(`"request_id":%q`, c.bodyID))
		})
	}
	assert.Eventually(t, func() bool { return strings.Contains(s.log.String(), "4bf92f3577b34da6a3ce929d0e0e4736") }, patience, time.Millisecond, "a failed request shows its trace")
}

func TestNothingOfARequestBecomesAHeader(t *testing.T) {
	s := startFront(t)
	for _, id := range []string{`a\r\nX-Evil: 1`, `a\nX-Evil: 1`, `a\u0000`, `\u0085`, `é`, ""} {
		got := s.do(t, post("/v1/rank/one", `{"user_id": 1, "request_id": "`+id+`"}`))
		assert.Equal(t, 200, got.StatusCode)
		assert.Empty(t, got.Header.Values("X-Request-Id"), id)
		assert.Empty(t, got.Header.Get("X-Evil"), id)
	}
	for _, header := range []string{"X-Request-Id: a\x01b", "X-Request-Id: a\x00b", "X-Request-Id: a\rX-Evil: 1", "traceparent: " + traceContext + "\x7f"} {
		got := s.do(t, post("/v1/rank/one", `{"user_id": 1}`, header))
		assert.Empty(t, got.Header.Get("X-Evil"), "%q", header)
		assert.Equal(t, 400, got.StatusCode, "%q", header)
		assert.Len(t, got.Header.Get("X-Request-Id"), len("00000000-0000-0000-0000-000000000000"), "%q", header)
	}
	// The test sends a path, a method and a header that would break the lines of a log.
	for _, text := range []string{
		post("/v1/rank/x%0d%0aX-Evil:1", `{"user_id": 1}`), post("/v1/rank/"+strings.Repeat("x", 5000), `{"user_id": 1}`),
		post("/v1/rank/one", `{"user_id": 1, "plan": "`+strings.Repeat("y", 5000)+`"}`),
	} {
		got := s.do(t, text)
		assert.Less(t, len(got.body), 1000)
		assert.GreaterOrEqual(t, got.StatusCode, 400)
	}
	for line := range strings.Lines(s.log.String()) {
		assert.Less(t, len(line), 1500)
	}
}

func TestTimeouts(t *testing.T) {
	s := startFront(t)
	for _, c := range []struct {
		value  string
		status int
	}{
		{"100000", 200}, {"99999999999999999999", 200}, {"18446744073709551615", 200}, {" 100000 ", 200},
		{"0", 400}, {"-1", 400}, {"+1", 400}, {"1.5", 400}, {"1e3", 400}, {"", 400}, {"1 2", 400}, {"1_000", 400}, {"0x10", 400}, {"00", 400},
	} {
		got := s.do(t, post("/v1/rank/one", `{"user_id": 1}`, "X-Request-Timeout-Ms: "+c.value))
		assert.Equal(t, c.status, got.StatusCode, "%q", c.value)
	}
	for _, c := range []struct{ header, body string }{
		{"1", `{"user_id": 1}`}, {"1", `{"user_id": 1, "deadline_ms": 100000}`}, {"100000", `{"user_id": 1, "deadline_ms": 1}`},
	} {
		got := s.do(t, post("/v1/rank/slow", c.body, "X-Request-Timeout-Ms: "+c.header))
		assert.Equal(t, 504, got.StatusCode)
	}
}

func TestBatchEqualsStdin(t *testing.T) {
	s := startFront(t)
	var in strings.Builder
	for i := range 200 {
		switch i % 8 {
		case 3:
			fmt.Fprintf(&in, "{\"user_id\": %d, \"plan\": \n", i)
		case 5:
			fmt.Fprintf(&in, "{\"user_id\": %d, \"request_id\": \"r%d\"}\n", i, i)
		case 6:
			in.WriteString("\n")
		case 7:
			fmt.Fprintf(&in, "{\"user_id\": 1, \"user_id\": \"x\", \"request_id\": \"r%d\"}\n", i)
		default:
			fmt.Fprintf(&in, "{\"user_id\": %d, \"request_id\": \"r%d\", \"plan\": \"one\"}\n", i+1, i)
		}
	}
	in.WriteString(`{"user_id": 1, "request_id": "cut off`)
	want := strings.Join(stdin(t, s.engine, request.NewLineStream(strings.NewReader(in.String()), 0)), "")
	got := s.do(t, post("/v1/batch", in.String()))
	assert.Equal(t, same(want), same(got.body))
	assert.Equal(t, "application/x-ndjson", got.Header.Get("Content-Type"))
	assert.Equal(t, same(want), same(s.do(t, chunkedBatch(in.String(), 7)).body))
	assert.Contains(t, s.do(t, post("/v1/batch", "")).body, "empty input")
}

// chunkedBatch returns a batch in chunks of that size.
func chunkedBatch(body string, size int) string {
	var b strings.Builder
	b.WriteString("POST /v1/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// openBatch begins a batch whose lines follow.
func openBatch(t testing.TB, s *server) (*client, *bufio.Reader) {
	c := dial(t, s.addr)
	c.send("POST /v1/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	response, err := http.ReadResponse(c.r, &http.Request{Method: "POST"})
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode, "the head comes before the first line")
	return c, bufio.NewReader(response.Body)
}

func (c *client) chunk(text string) { c.send(fmt.Sprintf("%x\r\n%s\r\n", len(text), text)) }

func TestABatchIsADialogue(t *testing.T) {
	s := startFront(t)
	c, lines := openBatch(t, s)
	for i := 1; i <= 5; i++ {
		c.chunk(fmt.Sprintf("{\"user_id\": %d, \"plan\": \"one\"}\n", i))
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, line, fmt.Sprintf(`"candidates":[{"id":%d}]`, i))
	}
	c.send("0\r\n\r\n")
	_, err := lines.ReadString('\n')
	assert.Equal(t, io.EOF, err)
}

func TestABatchIsInOrderAndBounded(t *testing.T) {
	const bound, n = 4, 12
	s := startFront(t, func(o *setup) { o.front.BatchInflight = bound })
	c := dial(t, s.addr)
	var in strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&in, "{\"user_id\": %d, \"plan\": \"held\"}\n", i)
	}
	c.send(post("/v1/batch", in.String()))
	running := map[int64]held{}
	for range bound {
		h := <-s.held
		running[h.UserID] = h
	}
	for user := int64(bound); user > 1; user-- { // all but the first are answered, and none of the answers leaves
		running[user].answer()
	}
	select {
	case h := <-s.held:
		t.Fatalf("user %d runs beyond the bound", h.UserID)
	default:
	}
	running[1].answer()
	for range n - bound {
		(<-s.held).answer()
	}
	got := c.receive("POST").body
	for i := 1; i <= n; i++ {
		line, rest, _ := strings.Cut(got, "\n")
		assert.Contains(t, line, fmt.Sprintf(`"candidates":[{"id":%d}]`, i))
		got = rest
	}
	assert.Empty(t, got)
}

func TestABatchThatIsCut(t *testing.T) {
	t.Run("the client goes", func(t *testing.T) {
		s := startFront(t)
		c, _ := openBatch(t, s)
		c.chunk("{\"user_id\": 1, \"plan\": \"chain\"}\n")
		h := <-s.held
		require.NoError(t, c.Close())
		<-h.over
		h.answer()
		require.NoError(t, s.front.Close())
		assert.Zero(t, s.chained.Load(), "nodes that started after the client had gone")
	})
	t.Run("a broken chunk", func(t *testing.T) {
		s := startFront(t)
		c, lines := openBatch(t, s)
		c.chunk("{\"user_id\": 1, \"plan\": \"one\"}\n")
		c.send("nonsense\r\n")
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		answers := strings.Split(strings.TrimSuffix(string(rest), "\n"), "\n")
		require.Len(t, answers, 2)
		assert.Contains(t, answers[0], `"id":1`)
		assert.Contains(t, answers[1], brokenBody.detail)
		c.ends()
	})
	t.Run("the server closes", func(t *testing.T) {
		s := startFront(t)
		c, lines := openBatch(t, s)
		c.chunk("{\"user_id\": 1, \"plan\": \"chain\"}\n")
		h := <-s.held
		closed := make(chan error, 1)
		go func() { closed <- s.front.Close() }()
		_, err := io.ReadAll(lines)
		assert.Error(t, err, "the answer is cut, and not ended")
		<-h.over
		h.answer()
		require.NoError(t, <-closed)
		assert.Zero(t, s.chained.Load())
	})
}

// A client leaves while its requests run. That abandons them, whether the client resets its
// connection or closes it silently.
func TestAClientThatLeavesAbandonsItsRequests(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*net.TCPConn) error
		text  string
	}{
		"closed":                    {(*net.TCPConn).Close, post("/v1/rank/chain", `{"user_id": 1}`)},
		"closed, as it said before": {(*net.TCPConn).Close, post("/v1/rank/chain", `{"user_id": 1}`, "Connection: close")},
		"reset": {func(nc *net.TCPConn) error {
			_ = nc.SetLinger(0)
			return nc.Close()
		}, post("/v1/rank/chain", `{"user_id": 1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := startFront(t)
			client := dial(t, s.addr)
			client.send(c.text)
			h := <-s.held
			require.NoError(t, c.leave(client.Conn.(*net.TCPConn)))
			<-h.over
			h.answer()
			require.NoError(t, s.front.Close())
			assert.Zero(t, s.chained.Load(), "nodes that started after the client had gone")
		})
	}
}

// A client may send more of a batch than the server keeps. It waits then, while its answers
// come.
func TestALongBatchHoldsItsClientBack(t *testing.T) {
	const lines = 100_000
	s := startFront(t, func(o *setup) { o.front.BatchInflight = 4 })
	c := dial(t, s.addr)
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "{\"user_id\": %d, \"plan\": \"one\", \"request_id\": \"%0100d\"}\n", i+1, i)
	}
	held := 0
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(post("/v1/batch", text.String()))
	}()
	response, err := http.ReadResponse(c.r, &http.Request{Method: "POST"})
	require.NoError(t, err)
	answers := bufio.NewReader(response.Body)
	for i := range lines {
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, fmt.Sprintf(`"candidates":[{"id":%d}]`, i+1))
		if i%1000 == 0 {
			held = max(held, s.unread(t))
		}
	}
	<-sent
	_, err = answers.ReadByte()
	assert.Equal(t, io.EOF, err)
	assert.Less(t, held, 1<<20, "bytes that the server kept of 14 MB")
}

// TestAnswersThatNobodyTookAreNotDelivered: the client of a batch goes while the first answer is due, and the second one, which is there, waits
// for it. Each leaves a line that says so, and one that the client has taken says that.
func TestAnswersThatNobodyTookAreNotDelivered(t *testing.T) {
	log := new(servetest.Log)
	s := startFront(t, func(o *setup) { o.engine.Served = log })
	s.do(t, post("/v1/rank/one", `{"user_id": 1}`))
	c := dial(t, s.addr)
	c.send(post("/v1/batch", "{\"user_id\": 2, \"plan\": \"held\"}\n{\"user_id\": 3, \"plan\": \"one\"}\n"))
	<-s.held
	require.Eventually(t, func() bool { m := s.engine.Metrics(); return m.Requests == 3 && m.Live == 1 }, patience, time.Millisecond)
	require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0)) // Otherwise it could still read.
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return s.engine.ServedLines().Written == 3 }, patience, time.Millisecond)
	users := map[string]string{}
	for _, line := range regexp.MustCompile(`"user_id":(\d+),.*"delivered":(true|false)`).FindAllStringSubmatch(log.String(), -1) {
		users[line[1]] = line[2]
	}
	assert.Equal(t, map[string]string{"1": "true", "2": "false", "3": "false"}, users)
}
