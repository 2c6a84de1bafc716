package respfront

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/task"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// A world is an engine with a front. The plan "three" has three rows, "many" has many, "gated"
// waits for the gate, and "broken" does not load.
type world struct {
	*Front
	engine *rankd.Engine
	gate   *gate
}

// A gate holds the requests of the plan "gated". Any goroutine.
type gate struct {
	entered chan int64 // the user of each request that has come
	mu      sync.Mutex
	open    map[int64]chan struct{}
	all     bool
	passed  atomic.Int64 // requests that have passed the gate
}

// of returns a channel that is closed when the user may pass.
func (g *gate) of(user int64) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[user] == nil {
		g.open[user] = make(chan struct{})
		if g.all {
			close(g.open[user])
		}
	}
	return g.open[user]
}

// pass lets a user pass.
func (g *gate) pass(user int64) { close(g.of(user)) }

// passAll lets all users pass, including later ones.
func (g *gate) passAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all {
		return
	}
	g.all = true
	for _, c := range g.open {
		select {
		case <-c:
		default:
			close(c)
		}
	}
}

// tasks returns the gate, and the task after it.
func (g *gate) tasks() []task.Spec {
	return []task.Spec{
		{Op: "test::gate", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			g.entered <- c.UserID
			select {
			case <-g.of(c.UserID):
				return c.Inputs[0], nil
			case <-c.Context().Done():
				return rowset.RowSet{}, task.ErrCancelled
			}
		}},
		{Op: "test::behind", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			g.passed.Add(1)
			return c.Inputs[0], nil
		}},
	}
}

// everybody has the right to all plans but "private".
func everybody(t testing.TB) *access.Store {
	caller, err := access.NewCaller(access.Rules{Name: "anyone", Plans: []string{"three", "many", "gated", "broken"}})
	require.NoError(t, err)
	return access.Anyone(caller)
}

// newWorld starts a world, which ends with the test. tune may change the options of the engine.
func newWorld(t testing.TB, store *access.Store, o Options, tune func(*rankd.Options)) *world {
	t.Helper()
	return newServiceWorld(t, store, o, serve.Options{}, tune)
}

// newServiceWorld is newWorld with options of the service.
func newServiceWorld(t testing.TB, store *access.Store, o Options, so serve.Options, tune func(*rankd.Options)) *world {
	t.Helper()
	g := &gate{entered: make(chan int64, 1000), open: map[int64]chan struct{}{}}
	plans := fstest.MapFS{"broken.plan.json": {Data: []byte("{}")}}
	for name, nodes := range map[string]string{
		"three":   `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}`,
		"private": `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}`,
		"many":    `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 20000}}`,
		"gated": `{"node_id": "rows", "op": "test::fixed_source", "inputs": []},
			{"node_id": "held", "op": "test::gate", "inputs": ["rows"]}, {"node_id": "out", "op": "test::behind", "inputs": ["held"]}`,
	} {
		plans[name+".plan.json"] = servetest.Artifact(name, nodes)
	}
	options := rankd.Options{
		Redis: "127.0.0.1:1" /* not used */, Plans: plans, Tasks: g.tasks(), CPUThreads: 16, AllowRequestTrace: true,
		Logger: slog.New(slog.DiscardHandler),
	}
	if tune != nil {
		tune(&options)
	}
	engine, err := rankd.Open(options)
	require.NoError(t, err)
	so.Logger = options.Logger
	service, err := serve.New(engine, so)
	require.NoError(t, err)
	front, err := New(service, store, engine.Intake().Reactor(), o)
	require.NoError(t, err)
	w := &world{Front: front, engine: engine, gate: g}
	t.Cleanup(func() {
		g.passAll()
		assert.NoError(t, w.Close())
		assert.NoError(t, engine.Close())
		assert.Zero(t, w.Connections())
	})
	return w
}

// onLoop runs fn on the loop and waits for it.
func (w *world) onLoop(fn func()) {
	done := make(chan struct{})
	if !w.Loop().Post(func() { defer close(done); fn() }) {
		panic("the loop has stopped")
	}
	<-done
}

// listen serves a network, and returns the address.
func (w *world) listen(t testing.TB, l net.Listener) net.Addr {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, w.Close())
		assert.NoError(t, <-ended)
	})
	return l.Addr()
}

func (w *world) listenTCP(t testing.TB) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return w.listen(t, l)
}

// A client speaks to a front over a socket. One goroutine at a time.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// dial connects to a front.
func dial(t testing.TB, addr net.Addr) *client {
	t.Helper()
	nc, err := net.Dial(addr.Network(), addr.String())
	require.NoError(t, err)
	return newClient(t, nc)
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	return &client{Conn: nc, t: t, r: bufio.NewReader(nc)}
}

// send sends commands, one per line, with words separated by blanks.
func (c *client) send(lines ...string) {
	c.t.Helper()
	_, err := c.Write(commands(lines...))
	require.NoError(c.t, err)
}

// commands returns commands as a client sends them.
func commands(lines ...string) (all []byte) {
	for _, line := range lines {
		all = append(all, servetest.Command(strings.Fields(line)...)...)
	}
	return all
}

// receive returns the next reply, in the form that readable describes.
func (c *client) receive() string {
	c.t.Helper()
	reply, err := servetest.ReadReply(c.r)
	require.NoError(c.t, err)
	return readable(reply)
}

// receiveLong reads the next reply and returns its length.
func (c *client) receiveLong() int {
	c.t.Helper()
	reply, err := servetest.ReadReply(c.r)
	require.NoError(c.t, err)
	return len(reply)
}

// ended checks that nothing more comes.
func (c *client) ended() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	assert.NoError(c.t, err)
	assert.Empty(c.t, string(rest))
}

var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// readable returns replies with blanks for line ends, and without the ids that differ each
// time.
func readable(replies string) string {
	return strings.ReplaceAll(strings.TrimSuffix(ids.ReplaceAllString(replies, "ID"), "\r\n"), "\r\n", " ")
}

// answerOfThree is the reply to RANK three.
const answerOfThree = `$154 {"request_id":"ID","engine_request_id":"ID","candidates":[{"id":1},{"id":2},{"id":3}]}`
