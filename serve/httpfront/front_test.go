package httpfront

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/task"
)

// setup is what a test may change before the server starts.
type setup struct {
	engine rankd.Options
	unsent int // serve.Options.MaxUnsentBytes
	front  Options
	store  *access.Store
	listen func(net.Listener) net.Listener
}

// server is a front with its own engine. The plan one gives a row with the user as its id. held
// waits for the test, and chain has a node after such a node. slow takes a minute, and wrong
// fails. down reads a Redis that does not exist, and broken does not load.
type server struct {
	engine  *rankd.Engine
	service *serve.Service
	front   *Front
	addr    string
	held    chan held
	pieces  chan<- net.Conn // see startPieces
	metrics *prometheus.Registry
	served  chan error
	log     *servetest.Log
	chained atomic.Int64 // runs of the second node of the plan chain
}

// onLoop runs fn on the loop of the sessions.
func (s *server) onLoop(t testing.TB, fn func()) {
	t.Helper()
	done := make(chan struct{})
	require.True(t, s.front.Loop().Post(func() {
		fn()
		close(done)
	}))
	<-done
}

// unread returns how many bytes the front holds of requests that have not begun.
func (s *server) unread(t testing.TB) (n int) {
	s.onLoop(t, func() { n = s.front.Unread() })
	return n
}

// held is a request that has got to its only node.
type held struct {
	*task.Ctx
	done chan<- struct{}
	over <-chan struct{} // closed when nobody waits for the answer any more
}

// answer lets the request go on.
func (h held) answer() { close(h.done) }

func one(c *task.Ctx) (rowset.RowSet, error) {
	return rowset.Dense(&rowset.Batch{IDs: []int64{c.UserID}}), nil
}

// planFolder has the plans of a server.
type planFolder = fstest.MapFS

// plan returns an artifact with one source node.
func plan(name, op, params string) *fstest.MapFile {
	return servetest.Artifact(name, fmt.Sprintf(`{"node_id": "out", "op": %q, "inputs": [], "params": {%s}}`, op, params))
}

// two returns an artifact with a source node and a node after it.
func two(name, source, op, params string) *fstest.MapFile {
	return servetest.Artifact(name, fmt.Sprintf(`{"node_id": "a", "op": %q, "inputs": []},
		{"node_id": "out", "op": %q, "inputs": ["a"], "params": {%s}}`, source, op, params))
}

// noRedis is an address without a server.
func noRedis(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// everything is a caller that may ask for all.
func everything(t testing.TB) *access.Store {
	c, err := access.NewCaller(access.Rules{
		Name: access.Anonymous, Plans: []string{"*"}, Overrides: []string{"*"}, Grants: []request.Grant{request.GrantScheduling, request.GrantTrace, request.GrantExplain},
	})
	require.NoError(t, err)
	return access.Anyone(c)
}

func startFront(t testing.TB, changes ...func(*setup)) *server {
	s := &server{held: make(chan held, 64), metrics: prometheus.NewRegistry(), served: make(chan error, 1), log: new(servetest.Log)}
	logger := slog.New(slog.NewJSONHandler(s.log, nil))
	o := &setup{
		engine: rankd.Options{
			Env: "test", CPUThreads: 8, Redis: noRedis(t), Logger: logger,
			AllowRequestScheduling: true, AllowRequestTrace: true, AllowRequestExplain: true,
			Plans: planFolder{
				"one.plan.json": plan("one", "test::one", ""), "held.plan.json": plan("held", "test::held", ""),
				"slow.plan.json": two("slow", "test::one", "test::sleep", `"duration_ms": 60000`), "wrong.plan.json": plan("wrong", "test::wrong", ""), "down.plan.json": plan("down", "core::viewer", `"endpoint": "ep_0001"`),
				"broken.plan.json": plan("broken", "test::missing", ""), "chain.plan.json": two("chain", "test::held", "test::next", ""),
			},
			Tasks: []task.Spec{
				{Op: "test::one", Output: task.Source, Run: one, Inline: true, Cheap: true},
				{Op: "test::held", Output: task.Source, Expensive: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
					done := make(chan struct{})
					s.held <- held{c, done, c.Context().Done()}
					select {
					case <-done:
					case <-c.Context().Done():
					}
					return one(c)
				}},
				{Op: "test::next", Inputs: 1, Output: task.Subset, Run: func(c *task.Ctx) (rowset.RowSet, error) {
					s.chained.Add(1)
					return c.Inputs[0], nil
				}},
				{Op: "test::wrong", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) {
					return rowset.RowSet{}, errors.New("as it is meant to be")
				}},
			},
		},
		front:  Options{},
		store:  everything(t),
		listen: func(l net.Listener) net.Listener { return l },
	}
	for _, change := range changes {
		change(o)
	}
	var err error
	s.engine, err = rankd.Open(o.engine)
	require.NoError(t, err)
	s.service, err = serve.New(s.engine, serve.Options{Logger: logger, LogPerSecond: 1000, Registerer: s.metrics, MaxUnsentBytes: o.unsent})
	require.NoError(t, err)
	s.front, err = New(s.service, o.store, s.engine.Intake().Reactor(), o.front)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	go func() { s.served <- s.front.Serve(o.listen(l)) }()
	t.Cleanup(func() {
		assert.NoError(t, s.front.Close())
		assert.NoError(t, <-s.served)
		assert.NoError(t, s.engine.Close())
	})
	return s
}

// client is one connection of a client.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// patience bounds each wait of a test for what must come.
const patience = time.Minute

func dial(t testing.TB, addr string) *client {
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	return &client{Conn: nc, t: t, r: bufio.NewReader(nc)}
}

func (c *client) send(text string) {
	c.t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(c.t, err)
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

// receive reads the response to a request with that method. It skips 100 Continue, as clients
// do.
func (c *client) receive(method string) answer {
	c.t.Helper()
	response, err := http.ReadResponse(c.r, &http.Request{Method: method})
	for err == nil && response.StatusCode == http.StatusContinue {
		response, err = http.ReadResponse(c.r, &http.Request{Method: method})
	}
	require.NoError(c.t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	return answer{response, string(body)}
}

// ends checks that the connection ends and nothing more comes.
func (c *client) ends() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if !errors.Is(err, syscall.ECONNRESET) {
		assert.NoError(c.t, err)
	}
	assert.Empty(c.t, string(rest))
}

// goesOn checks that the connection serves another request.
func (c *client) goesOn() {
	c.t.Helper()
	c.send(post("/v1/rank/one", `{"user_id": 77, "request_id": "next"}`))
	assert.Contains(c.t, c.receive("POST").body, `"candidates":[{"id":77}]`)
}

// do sends one request over a new connection.
func (s *server) do(t testing.TB, request string) answer {
	t.Helper()
	c := dial(t, s.addr)
	defer c.Close()
	c.send(request)
	method, _, _ := strings.Cut(request, " ")
	return c.receive(method)
}

// message returns the text of a request. Each header is a whole line.
func message(method, path, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: rank.example\r\n", method, path)
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" || method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

func post(path, body string, headers ...string) string {
	return message(http.MethodPost, path, body, headers...)
}

func get(path string, headers ...string) string {
	return message(http.MethodGet, path, "", headers...)
}
