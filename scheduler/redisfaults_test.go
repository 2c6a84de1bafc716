package scheduler_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// Faults that end by a bound are tried on an endpoint with these bounds. The bounds differ,
// which shows by which one a fault ends.
const (
	connectTimeout = 200 * time.Millisecond
	requestTimeout = 300 * time.Millisecond
	shortPolicy    = "connect_timeout_ms = 200\nrequest_timeout_ms = 300\n"
	// longPolicy is for all other faults, which are noticed at once. Even on a busy machine
	// that takes less than slack, which is far less than these bounds.
	longPolicy = "connect_timeout_ms = 30000\nrequest_timeout_ms = 30000\n"
)

// A redisFault is one row of the table in docs/reliability.md. It says what a request gets that
// meets the fault, and how soon.
type redisFault struct {
	name   string
	script resptest.Script // what the server does; nil with down
	down   bool            // the server is not there
	warm   bool            // the engine is connected when the fault begins
	// deadline of the request, from its submission; 0: none.
	deadline time.Duration

	// wantErr are errors that the request's error must match; none: it succeeds. It must also
	// match one of wantAny, if there are any.
	wantErr  []error
	wantAny  []error
	wantText []string // what the error says, apart from the server's address
	code     string   // the class of the server's error reply, if there is one
	// The answer comes notBefore and within these times from the submission; slack is added to
	// within.
	notBefore, within time.Duration

	// keeps says that the connection after the recovery is still the first one.
	keeps bool
	// lingers is how long requests may fail after the fault is lifted; 0: the next one
	// succeeds.
	lingers time.Duration
}

var (
	errRedis     = task.ErrRedis
	greeting     = []string{"CLIENT", "AUTH", "SELECT"}
	serverErrors = []struct{ class, text string }{
		{"LOADING", "LOADING Redis is loading the dataset in memory"},
		{"NOAUTH", "NOAUTH Authentication required."},
		{"ERR", "ERR internal error"},
		{"READONLY", "READONLY You can't write against a read only replica."},
		{"MASTERDOWN", "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."},
		{"TRYAGAIN", "TRYAGAIN Multiple keys request during rehashing of slot"},
		{"CLUSTERDOWN", "CLUSTERDOWN Hash slot not served"},
		{"MOVED", "MOVED 3999 127.0.0.1:6381"},
		{"ASK", "ASK 3999 127.0.0.1:6381"},
		{"NOPERM", "NOPERM this user has no permissions to access one of the keys used as arguments"},
	}
)

func redisFaults() []redisFault {
	// onUser is the fault at the first command of the plan.
	onUser := func(f resptest.Fault) resptest.Script { return resptest.On(f, "HGETALL") }
	onList := func(f resptest.Fault) resptest.Script { return resptest.On(f, "LRANGE") }
	table := []redisFault{
		{name: "none", script: nil, keeps: true},

		// There is no connection.
		{name: "refuses", down: true,
			wantErr: []error{errRedis, resp.ErrConnect, syscall.ECONNREFUSED}},
		// A client that reads all the time knows of the crash; any other finds it out.
		{name: "crashes and refuses", down: true, warm: true,
			wantErr: []error{errRedis}, wantAny: []error{resp.ErrConnect, resp.ErrConnectionLost}},
		{name: "accepts and never answers", script: resptest.Always(resptest.Silence()),
			wantErr:   []error{errRedis, resp.ErrConnect, transport.ErrConnectTimeout},
			notBefore: connectTimeout, within: connectTimeout, lingers: connectTimeout},
		{name: "accepts and never answers, deadline first", script: resptest.Always(resptest.Silence()),
			deadline: connectTimeout / 2, wantErr: []error{scheduler.ErrNodeTimeout},
			notBefore: connectTimeout / 2, within: connectTimeout / 2, lingers: connectTimeout},
		{name: "accepts and closes", script: resptest.OnAccept(resptest.Hangup()),
			wantErr: []error{errRedis, resp.ErrConnect}},
		{name: "accepts and resets", script: resptest.OnAccept(resptest.Reset()),
			wantErr: []error{errRedis, resp.ErrConnect}},
		{name: "is full", script: resptest.OnAccept(resptest.LastWords("-ERR max number of clients reached\r\n")),
			wantErr:  []error{errRedis, resp.ErrConnect},
			wantText: []string{"max number of clients reached"}},
		{name: "wants a password", script: resptest.On(resptest.Instead("-NOAUTH Authentication required.\r\n"), greeting...),
			wantErr:  []error{errRedis, resp.ErrConnect},
			wantText: []string{"NOAUTH Authentication required."}},
		{name: "greets with garbage", script: resptest.On(resptest.Garbage(), greeting...),
			wantErr: []error{errRedis, resp.ErrConnect, resp.ErrProtocol}},

		// It answers late, or in several pieces.
		{name: "answers late, in time", script: onUser(resptest.Late(requestTimeout / 10)), keeps: true,
			notBefore: 2 * requestTimeout / 10},
		{name: "splits every byte", script: resptest.Always(resptest.Drip(0)), keeps: true},
		{name: "drips, in time", script: onList(resptest.Drip(100 * time.Microsecond)), keeps: true},
		{name: "answers too late", script: onUser(resptest.Late(requestTimeout * 3 / 2)), warm: true,
			wantErr:   []error{errRedis, resp.ErrTimeout},
			notBefore: requestTimeout, within: requestTimeout, lingers: requestTimeout},
		{name: "drips too slowly", script: onUser(resptest.Drip(requestTimeout / 10)), deadline: requestTimeout * 3 / 2,
			wantErr: []error{}, wantAny: []error{resp.ErrTimeout, scheduler.ErrNodeTimeout}, // a blocking engine; the reactor
			notBefore: requestTimeout * 3 / 2, within: requestTimeout * 3 / 2, lingers: 10 * requestTimeout},
		{name: "hangs", script: onUser(resptest.Silence()),
			wantErr:   []error{errRedis, resp.ErrTimeout},
			notBefore: requestTimeout, within: requestTimeout, lingers: 2 * requestTimeout},
		{name: "hangs, deadline first", script: onUser(resptest.Silence()),
			deadline: requestTimeout / 2, wantErr: []error{scheduler.ErrNodeTimeout},
			notBefore: requestTimeout / 2, within: requestTimeout / 2, lingers: 2 * requestTimeout},
		{name: "hangs in mid-answer", script: onList(resptest.HalfThen(resptest.Silence())),
			wantErr:   []error{errRedis, resp.ErrTimeout},
			notBefore: requestTimeout, within: 2 * requestTimeout, lingers: 2 * requestTimeout},

		// The connection ends.
		{name: "closes", script: onUser(resptest.Hangup()),
			wantErr: []error{errRedis, resp.ErrConnectionLost, io.EOF}},
		{name: "half-closes", script: onUser(resptest.HalfClose()),
			wantErr: []error{errRedis, resp.ErrConnectionLost, io.EOF}},
		{name: "half-closes in mid-answer", script: onList(resptest.HalfThen(resptest.HalfClose())),
			wantErr: []error{errRedis, resp.ErrConnectionLost, io.EOF}},
		{name: "resets", script: onUser(resptest.Reset()),
			wantErr: []error{errRedis, resp.ErrConnectionLost, syscall.ECONNRESET}},
		{name: "answers half and resets", script: onList(resptest.HalfThen(resptest.Reset())),
			wantErr: []error{errRedis, resp.ErrConnectionLost, syscall.ECONNRESET}},
		{name: "closes after 4 commands", script: resptest.After(4, resptest.Hangup()), // three of them greet
			wantErr: []error{errRedis, resp.ErrConnectionLost}},

		// It answers something else.
		{name: "answers garbage", script: onUser(resptest.Garbage()),
			wantErr: []error{errRedis, resp.ErrConnectionLost, resp.ErrProtocol}},
		{name: "answers with another type", script: onUser(resptest.Instead(":1\r\n")), keeps: true,
			wantErr: []error{errRedis}, wantText: []string{"HGETALL user:7", "integer", "want array"}},
		// The reactor finds the excess after the answer to user:7. It goes on with another
		// connection, since it has sent nothing else on the first. But the requests that follow
		// ask for user:7, too, and there the excess shifts the replies to others.
		{name: "answers too much", script: onUser(resptest.Excess()), wantErr: []error{errRedis}},
		{name: "announces 600 MB", script: onUser(resptest.HugeBulk("629145600")),
			wantErr:  []error{errRedis, resp.ErrConnectionLost, resp.ErrProtocol},
			wantText: []string{"629145600"}},
		{name: "sends 500 MB", script: onUser(resptest.Endless()), lingers: slack,
			wantErr: []error{errRedis, resp.ErrTooLarge}, wantText: []string{"more than 67108864 bytes (max_reply_bytes)"}},
	}
	for _, e := range serverErrors {
		table = append(table, redisFault{name: "answers -" + e.class, script: onUser(resptest.Instead("-" + e.text + "\r\n")),
			keeps: true, wantErr: []error{errRedis}, wantText: []string{"HGETALL user:7", e.text}, code: e.class})
	}
	return table
}

// policy returns the bounds of the endpoint.
func (f *redisFault) policy() string {
	if f.within > 0 {
		return shortPolicy
	}
	return longPolicy
}

// besideOthers lets the test of a fault run in parallel with others, if the fault ends by a
// bound. Such a test waits nearly all of its time.
func (f *redisFault) besideOthers(t *testing.T) {
	if f.within > 0 {
		t.Parallel()
	}
}

// TestRedisFaults is the table of faults, on each engine.
func TestRedisFaults(t *testing.T) {
	for _, f := range redisFaults() {
		t.Run(f.name, func(t *testing.T) {
			f.besideOthers(t)
			for _, en := range engines {
				t.Run(en.name, func(t *testing.T) {
					f.besideOthers(t)
					server, err := resptest.NewServer(resptest.Followers)
					require.NoError(t, err)
					t.Cleanup(server.Close)
					reg := registryAt(t, server.Addr(), f.policy())
					meetFault(t, f, server, en.open(t, scheduler.Config{Registry: reg}), reg, concatRows(user))
				})
			}
		})
	}
}

// TestRedisFaultsBeforeARealServer runs the table with the faults between the reactor and a
// redis-server.
func TestRedisFaultsBeforeARealServer(t *testing.T) {
	redis := testworld.StartRedis(t)
	require.NoError(t, devredis.Load(t.Context(), redis.Addr))
	reg := registryAt(t, redis.Addr, longPolicy)
	direct, _ := run(openAsync(t, scheduler.Config{Registry: reg}), examplePlan(t, reg, "concat_plan"), user, 0)
	want := rows(t, direct)
	require.Len(t, want, 8)
	for _, f := range redisFaults() {
		t.Run(f.name, func(t *testing.T) {
			f.besideOthers(t)
			proxy, err := resptest.NewProxy(redis.Addr)
			require.NoError(t, err)
			t.Cleanup(proxy.Close)
			reg := registryAt(t, proxy.Addr(), f.policy())
			meetFault(t, f, proxy, openAsync(t, scheduler.Config{Registry: reg}), reg, want)
		})
	}
}

const user = 7

// early is how much too early something may seem to happen: a loop reads the clock once per
// iteration.
const early = 10 * time.Millisecond

// allocMax bounds what an engine allocates for one request that meets a fault. The engine must
// not reserve as much memory as a server announces, or store without end what a server sends.
const allocMax = 32 << 20

// meetFault has a request meet the fault, lifts the fault, and checks that all is well again.
func meetFault(t *testing.T, f redisFault, server *resptest.Server, e engine, reg *registry.Registry, want []row) {
	g := examplePlan(t, reg, "concat_plan")
	if f.warm {
		require.Equal(t, want, rows(t, runUntilWell(e, g, slack)))
	}
	server.Set(f.script)
	if f.down {
		server.Down()
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, took := run(e, g, user, f.deadline)
	for range 10 {
		if !errors.Is(result.Err, scheduler.ErrRequestDeadline) && !errors.Is(result.Err, scheduler.ErrDeadlineBeforeStart) {
			break
		}
		result, took = run(e, g, user, f.deadline) // a busy machine has delayed it: it has not met the fault
	}
	runtime.ReadMemStats(&after)

	if f.wantErr == nil {
		assert.Equal(t, want, rows(t, result))
	} else {
		assertFault(t, f, server.Addr(), result.Err)
	}
	assert.GreaterOrEqual(t, took, f.notBefore-early)
	assert.LessOrEqual(t, took, f.within+slack)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(allocMax))

	server.Set(nil)
	require.NoError(t, server.Up())
	accepted := server.Accepted()
	start := time.Now()
	patience := f.lingers
	if f.within > 0 {
		patience += slack // With short bounds, a busy machine alone can fail requests.
	}
	assert.Equal(t, want, rows(t, runUntilWell(e, g, patience)))
	if f.keeps {
		assert.Equal(t, accepted, server.Accepted(), "no new connection")
	}
	t.Logf("fault: %v, after %v; well again within %v",
		result.Err, took.Round(100*time.Microsecond), time.Since(start).Round(100*time.Microsecond))
}

// runUntilWell runs a request, and others after it until one succeeds or the time is up,
// and returns what came of the last.
func runUntilWell(e engine, g *plan.Graph, patience time.Duration) *scheduler.Result {
	start := time.Now()
	r, _ := run(e, g, user, 0)
	for r.Err != nil && time.Since(start) < patience {
		r, _ = run(e, g, user, 0)
	}
	return r
}

func assertFault(t *testing.T, f redisFault, addr string, err error) {
	t.Helper()
	for _, want := range f.wantErr {
		assert.ErrorIs(t, err, want)
	}
	if f.wantAny != nil {
		assert.True(t, slices.ContainsFunc(f.wantAny, func(want error) bool { return errors.Is(err, want) }), "%v", err)
	}
	if errors.Is(err, errRedis) {
		assert.ErrorContains(t, err, addr)
		assert.ErrorContains(t, err, "ep_0001")
	}
	for _, want := range f.wantText {
		assert.ErrorContains(t, err, want)
	}
	if f.code != "" {
		var refused *resp.ServerError
		if assert.ErrorAs(t, err, &refused) {
			assert.Equal(t, f.code, refused.Code())
		}
	}
	var node *scheduler.NodeError
	if assert.ErrorAs(t, err, &node) {
		assert.ErrorContains(t, err, fmt.Sprintf("node %s (%s)", node.Node, node.Op))
	}
}

// TestUnreachable: the server's machine does not answer at all, as if a firewall dropped the
// packets.
func TestUnreachable(t *testing.T) {
	addr := testworld.Unreachable(t)
	reg := registryAt(t, addr, shortPolicy)
	g := examplePlan(t, reg, "concat_plan")
	for _, en := range engines {
		t.Run(en.name, func(t *testing.T) {
			e := en.open(t, scheduler.Config{Registry: reg})
			r, took := run(e, g, user, 0)
			assertFault(t, redisFault{wantErr: []error{errRedis, resp.ErrConnect, transport.ErrConnectTimeout}}, addr, r.Err)
			assert.GreaterOrEqual(t, took, connectTimeout-early)
			assert.LessOrEqual(t, took, connectTimeout+slack)
			t.Logf("fault: %v, after %v", r.Err, took.Round(100*time.Microsecond))
		})
	}
}
