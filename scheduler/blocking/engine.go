package blocking

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// TwoPools is the model that scheduler.Async replaces: two pools of workers that block. Each
// request has a goroutine that dispatches ready nodes by their task's Place, and waits for
// completions under a mutex and a condition. Any goroutine.
type TwoPools struct{ engine }

// OpenTwoPools starts a two-pool engine. Close ends it.
func OpenTwoPools(cfg scheduler.Config) *TwoPools {
	cfg = cfg.WithDefaults()
	e := new(TwoPools)
	e.init(&cfg, trace.TwoPools)
	e.cpu, e.io = &workers{Pool: pond.NewPool(cfg.CPUThreads)}, &workers{Pool: pond.NewPool(cfg.IOThreads)}
	return e
}

// Sequential is TwoPools without pools, the simplest engine: each request on a goroutine of its own, one node at a time,
// in the order in which nodes become ready. Requests
// share the endpoint's connections (one, unless its policy says otherwise). A node that runs runs alone, so the engine
// waits for optional nodes, too. Any goroutine.
type Sequential struct{ engine }

// OpenSequential starts a sequential engine. Close ends it.
func OpenSequential(cfg scheduler.Config) *Sequential {
	cfg = cfg.WithDefaults()
	e := new(Sequential)
	e.init(&cfg, trace.Sequential)
	return e
}

// engine is either of them: intake, drain, and what their requests share. Any goroutine.
//
// Deadlines hold as far as blocking calls allow. The engine checks them before it spawns a node,
// at the node's start and at its end. Sleeps and Redis calls end at them, and CPU work is asked to
// stop. A body that neither waits nor looks runs on, and the answer waits for it.
type engine struct {
	reg         *registry.Registry
	cfg         scheduler.Config
	reach       atomic.Pointer[reach]
	given       taskrun.Engine // for bodies: the clock goes at the pace of real time
	nodeTimeout time.Duration
	maxRows     int // of a request
	outside     task.Outside
	awaits      scheduler.Awaits
	mode        scheduler.Mode
	model       string   // its name in a trace
	cpu, io     *workers // nil: each node runs on the goroutine of its request

	mu        sync.Mutex
	admission scheduler.Admission         // guarded by mu, where it says so
	closing   bool                        // guarded by mu
	live      sync.WaitGroup              // requests that run or wait; Add only under mu while not closing
	using     map[*registry.Registry]int  // how many of them, and optional nodes, have a registry; guarded by mu
	kept      map[*registry.Endpoint]bool // see Keep; nil: all; guarded by mu
	// degraded counts the answers in which something is missing, by name of the plan; guarded by mu.
	degraded map[string]uint64

	journals *trace.Journals
	waiters  sync.Pool       // of *waiter that no body has: only their buffers are kept
	stopped  context.Context // done when the grace is over
	giveUp   context.CancelFunc
}

// reach is what an engine has of its endpoints, by their index. Immutable; any goroutine.
type reach struct {
	clients   []client             // nil where the endpoint is not a Redis, or has gone
	remotes   []*remote.Blocking   // nil where the endpoint is of another kind than http, or has gone
	endpoints []*registry.Endpoint // nil: it has gone
}

// with returns a copy that has these endpoints, too.
func (r *reach) with(cfg *scheduler.Config, endpoints []*registry.Endpoint) *reach {
	n := len(r.endpoints)
	for _, ep := range endpoints {
		n = max(n, ep.Index+1)
	}
	next := &reach{make([]client, n), make([]*remote.Blocking, n), make([]*registry.Endpoint, n)}
	copy(next.clients, r.clients)
	copy(next.remotes, r.remotes)
	copy(next.endpoints, r.endpoints)
	for _, ep := range endpoints {
		next.endpoints[ep.Index] = ep
		switch ep.Kind {
		case registry.Redis:
			next.clients[ep.Index] = newClient(cfg, ep)
		case registry.HTTP:
			next.remotes[ep.Index] = remote.NewBlocking(cfg.Clock, scheduler.RemoteOptions(ep))
		}
	}
	return next
}

// close closes the clients of an endpoint.
func (r *reach) close(index int) {
	if c := r.clients[index]; c != nil {
		c.Close()
	}
	if c := r.remotes[index]; c != nil {
		c.Close()
	}
}

// A client sends batches to a Redis: a *respblocking.Client or a *respblocking.Cluster. Any goroutine.
type client interface {
	Exchange(b *resp.Batch, deadline clock.Time, buf *respblocking.ReplyBuffer) (resp.Replies, error)
	Stats() resp.Stats
	Close()
}

// newClient returns the client of an endpoint that is a Redis.
func newClient(cfg *scheduler.Config, ep *registry.Endpoint) client {
	if ep.Cluster {
		return respblocking.NewCluster(cfg.Clock, cfg.RedisOptions(ep))
	}
	return respblocking.NewClient(cfg.Clock, cfg.RedisOptions(ep))
}

// init fills in the fields that both engines have.
func (e *engine) init(cfg *scheduler.Config, model string) {
	e.model = model
	e.reg, e.given.Clock, e.nodeTimeout, e.maxRows = cfg.Registry, cfg.Clock, cfg.NodeTimeout, cfg.MaxRows
	e.mode, e.journals = cfg.Placement.Mode, trace.NewJournals(cfg.Clock, 0)
	e.admission.Bound(cfg.MaxInflight, cfg.MaxQueue)
	e.degraded = make(map[string]uint64)
	e.stopped, e.giveUp = context.WithCancel(context.Background())
	e.cfg, e.using = *cfg, make(map[*registry.Registry]int)
	e.reach.Store(new(reach).with(cfg, cfg.Registry.Endpoints()))
}

// Connect implements scheduler.Engine.
func (e *engine) Connect(endpoints []*registry.Endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reach.Store(e.reach.Load().with(&e.cfg, endpoints))
}

// Keep implements scheduler.Engine. It knows nothing of plans that it could forget.
func (e *engine) Keep(_ map[*plan.Graph]bool, endpoints map[*registry.Endpoint]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = endpoints
	e.disconnect()
}

// disconnect closes the endpoints that are not kept and that no request may use any more. mu is held.
func (e *engine) disconnect() {
	last := e.reach.Load()
	for i, ep := range last.endpoints {
		if ep == nil || e.kept[ep] || e.uses(ep) {
			continue
		}
		next := last.with(&e.cfg, nil)
		next.clients[i], next.remotes[i], next.endpoints[i] = nil, nil, nil
		e.reach.Store(next)
		last.close(i)
		last = next
	}
}

// uses reports whether a request may use an endpoint. mu is held.
func (e *engine) uses(ep *registry.Endpoint) bool {
	for reg := range e.using {
		if reg.Has(ep) {
			return true
		}
	}
	return false
}

// enter counts a request, or an optional node that may outlast its own. mu is held.
func (e *engine) enter(g *plan.Graph) {
	e.live.Add(1)
	e.using[g.Registry]++
}

// leave counts its end.
func (e *engine) leave(g *plan.Graph) {
	defer e.live.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.using[g.Registry]--; e.using[g.Registry] == 0 {
		delete(e.using, g.Registry)
		if e.kept != nil {
			e.disconnect()
		}
	}
}

// Clock returns the clock on which deadlines are instants.
func (e *engine) Clock() clock.Clock { return e.given.Clock }

// Submit implements scheduler.Engine. Each request that runs has a goroutine.
func (e *engine) Submit(x *scheduler.Execution, done func(*scheduler.Result)) error {
	if err := x.Enter(e.reg, &e.admission, e.given.Clock, done); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		e.admission.Retract(x)
		return scheduler.ErrShuttingDown
	}
	verdict, contends := e.admission.TakeUp(x)
	if contends {
		for x := e.admission.Displaced(); x != nil; x = e.admission.Displaced() {
			go e.turnAway(x, scheduler.ErrOverloaded)
		}
	}
	switch verdict {
	case scheduler.Runs:
		e.enter(x.Graph)
		go e.run(x)
	case scheduler.Waits:
		e.enter(x.Graph)
		e.wait(x)
	default:
		return scheduler.ErrOverloaded
	}
	return nil
}

func (e *engine) countDegraded(plan string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.degraded[plan]++
}

// Close implements scheduler.Engine. When the grace is over, sleeps and Redis calls fail, CPU work
// is asked to stop and no node starts any more, and so the requests end.
func (e *engine) Close(grace time.Duration) {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	if grace < scheduler.Forever {
		defer time.AfterFunc(grace, e.endAll).Stop()
	}
	e.live.Wait()
	e.awaits.Wait()
	e.endAll()
}

// endAll ends all sleeps and Redis calls and closes the clients. A second call does nothing.
func (e *engine) endAll() {
	e.giveUp()
	r := e.reach.Load()
	for i := range r.endpoints {
		r.close(i)
	}
}

// Metrics implements scheduler.Engine: the counters of the clients, of the admission and of degraded answers; the rest
// is zero.
func (e *engine) Metrics() scheduler.Metrics {
	r := e.reach.Load()
	m := scheduler.Metrics{Redis: scheduler.StatsOf(r.clients), Remote: scheduler.StatsOf(r.remotes), Malformed: uint64(e.outside.Malformed()), Values: e.outside.ByKey(), Awaits: e.awaits.Stats()}
	e.mu.Lock()
	defer e.mu.Unlock()
	m.Live, m.Admission = e.admission.Running(), e.admission.Stats()
	for name, n := range e.degraded {
		if m.Plans == nil {
			m.Plans = make(map[string]scheduler.PlacementStats)
		}
		m.Placement.Degraded += n
		m.Plans[name] = scheduler.PlacementStats{Degraded: n}
	}
	return m
}
