package scheduler_test

import (
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task/builtin"
)

// TestManyRedisCallsInFlightOnOneThread: a server keeps its answers until 256 calls have
// reached it, each from another node. All calls leave over one connection from the thread of
// the loop, which runs nothing else. A suspended body costs a coroutine, but not a thread.
func TestManyRedisCallsInFlightOnOneThread(t *testing.T) {
	const calls = 256
	for _, c := range []struct{ requests, nodes int }{{calls, 1}, {16, 16}, {1, calls}} {
		t.Run(fmt.Sprintf("%d requests of %d calls", c.requests, c.nodes), func(t *testing.T) {
			server, err := resptest.NewServer(resptest.Followers)
			require.NoError(t, err)
			t.Cleanup(server.Close)
			var arrived, answered atomic.Int32
			all, release := make(chan struct{}), make(chan struct{})
			held := resptest.Hold(release)
			server.Set(func(e resptest.Event) resptest.Fault {
				if e.Args == nil {
					return nil
				}
				if arrived.Add(1) == calls {
					close(all)
				}
				return func(w *resptest.Wire, reply []byte) {
					held(w, reply)
					answered.Add(1)
				}
			})

			w := openThread(t, registryAt(t, server.Addr(), longPolicy))
			g := viewers(t, w.registry, c.nodes)
			threads := pprof.Lookup("threadcreate").Count
			before := threads()
			results := make([]chan *scheduler.Result, c.requests)
			for i := range results {
				results[i] = make(chan *scheduler.Result, 2)
				w.engine.Submit(&scheduler.Execution{Graph: g, UserID: int64(i) + 1}, func(r *scheduler.Result) {
					assert.Equal(t, w.thread, syscall.Gettid(), "answers come on the loop")
					results[i] <- r
				})
			}
			select {
			case <-all:
			case <-time.After(30 * time.Second):
				require.FailNow(t, "calls are missing", "%d of %d have reached the server", arrived.Load(), calls)
			}

			w.onLoop(func() {
				stats := w.client.Stats()
				assert.Equal(t, calls, stats.Inflight)
				assert.Zero(t, stats.Waiting)
				assert.Equal(t, uint64(calls), stats.Batches)
				assert.Equal(t, uint64(1), stats.Connects)
				assert.Equal(t, uint64(calls), stats.Commands)
				assert.NotEmpty(t, w.writers)
				for _, thread := range w.writers {
					require.Equal(t, w.thread, thread, "a write that did not leave from the loop's thread")
				}
			})
			assert.Less(t, threads()-before, calls/10)
			assert.Zero(t, answered.Load())
			assert.Equal(t, 1, server.Accepted())

			close(release)
			for i, result := range results {
				r := <-result
				require.NoError(t, r.Err)
				viewer := row{int64(i) + 1, resptest.Country(int64(i) + 1)}
				got := plainRows(r)
				require.Len(t, got, c.nodes)
				for _, one := range got {
					require.Equal(t, viewer, one)
				}
			}
			w.onLoop(func() { assert.Zero(t, w.client.Stats().Inflight) })
		})
	}
}

// A threadWorld is an engine whose loop has a thread to itself. The test may touch the
// threadWorld between its calls. The loop alone touches writers and client.
type threadWorld struct {
	t        *testing.T
	host     *reactor.Reactor
	registry *registry.Registry
	engine   *scheduler.Async
	client   *resp.Client
	thread   int   // the loop's
	writers  []int // the thread of each write to Redis, in order
}

func openThread(t *testing.T, reg *registry.Registry) *threadWorld {
	w := &threadWorld{t: t, registry: reg}
	w.host = reactor.New(reactor.Config{OnPanic: func(v any, stack []byte) {
		t.Errorf("a callback panicked: %v\n%s", v, stack)
	}})
	require.NoError(t, w.host.Start())
	pool := cpupool.New(w.host.Loop(), cpupool.Config{Workers: 1})
	w.onLoop(func() {
		// From here on, the thread runs the loop and its coroutines, and nothing else.
		runtime.LockOSThread()
		w.thread = syscall.Gettid()
	})
	ep := reg.Endpoints()[0]
	w.client = resp.NewClient(w.host.Loop(), w, resp.Options{
		Addr: fmt.Sprintf("%s:%d", ep.Host, ep.Port), RequestTimeout: ep.Policy.RequestTimeout,
		NoCoalesceReads: true, // Requests ask for the same users.
	})
	w.engine = scheduler.NewAsync(scheduler.AsyncConfig{
		Loop: w.host.Loop(), CPU: pool, Clients: []scheduler.Caller{w.client}, Config: scheduler.Config{Registry: reg},
	})
	t.Cleanup(func() {
		w.engine.Close(0)
		pool.Close()
		w.host.Stop()
		<-w.host.Loop().Done()
	})
	return w
}

// onLoop runs fn on the loop and waits for it.
func (w *threadWorld) onLoop(fn func()) {
	w.t.Helper()
	done := make(chan struct{})
	require.True(w.t, w.host.Loop().Post(func() {
		defer close(done)
		fn()
	}))
	<-done
}

// Dial implements transport.Dialer.
func (w *threadWorld) Dial(addr string, o transport.DialOptions, h transport.Handler) transport.Conn {
	return threadConn{w.host.Dial(addr, o, h), w}
}

// A threadConn notes which thread writes to it.
type threadConn struct {
	transport.Conn
	world *threadWorld
}

func (c threadConn) Write(p []byte) error {
	c.world.writers = append(c.world.writers, syscall.Gettid())
	return c.Conn.Write(p)
}

// viewers returns a plan with n viewer nodes that read Redis at the same time. A chain of nodes
// puts their rows together.
func viewers(t *testing.T, reg *registry.Registry, n int) *plan.Graph {
	var nodes []string
	output := "v0"
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(
			`{"node_id": "v%d", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}`, i))
	}
	for i := 1; i < n; i++ {
		nodes = append(nodes, fmt.Sprintf(
			`{"node_id": "c%d", "op": "core::concat", "inputs": [%q], "params": {"rhs": "v%d"}}`, i, output, i))
		output = fmt.Sprintf("c%d", i)
	}
	g, err := plan.Load("viewers.plan.json", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "viewers",
		"nodes": [%s], "outputs": [%q], "expr_table": {}, "pred_table": {}}`, strings.Join(nodes, ","), output),
		builtin.Catalog(), reg)
	require.NoError(t, err)
	return g
}
