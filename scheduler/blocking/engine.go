package blocking

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
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
	cfg       scheduler.Config
	endpoints atomic.Pointer[[]endpoint] // by their index
	given     taskrun.Engine             // for bodies: the clock goes at the pace of real time
	outside   task.Outside
	awaits    scheduler.Awaits
	model     string   // its name in a trace
	cpu, io   *workers // nil: each node runs on the goroutine of its request

	mu        sync.Mutex
	admission scheduler.Admission         // Enter and Close under mu, too
	live      sync.WaitGroup              // requests that run or wait; Add only under mu before the end of intake
	using     map[*registry.Registry]int  // how many of them, and optional nodes, have a registry; guarded by mu
	kept      map[*registry.Endpoint]bool // see Keep; nil: all; guarded by mu
	// counts has Degraded and Fallbacks, by name of the plan; guarded by mu.
	counts map[string]scheduler.Counts

	journals *trace.Journals
	waiters  sync.Pool       // of *waiter that no body has: only their buffers are kept
	stopped  context.Context // done when the grace is over
	giveUp   context.CancelFunc
}

// endpoint is what an engine has of one endpoint; the zero value: it has gone. Immutable; any goroutine.
type endpoint struct {
	*registry.Endpoint
	redis   client           // nil: it is not a Redis
	service *remote.Blocking // nil: it is of another kind than http
}

// close ends the calls under way, and closes the connections.
func (to *endpoint) close() {
	if to.redis != nil {
		to.redis.Close()
	}
	if to.service != nil {
		to.service.Close()
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
		return respblocking.NewCluster(cfg.Clock, cfg.RedisOptions(ep), cfg.OnPanic)
	}
	return respblocking.NewClient(cfg.Clock, cfg.RedisOptions(ep))
}

// init fills in the fields that both engines have.
func (e *engine) init(cfg *scheduler.Config, model string) {
	e.cfg, e.model, e.given.Clock = *cfg, model, cfg.Clock
	e.journals = trace.NewJournals(cfg.Clock, 0)
	e.admission.Bound(cfg.MaxInflight, cfg.MaxQueue)
	e.counts = make(map[string]scheduler.Counts)
	e.stopped, e.giveUp = context.WithCancel(context.Background())
	e.using = make(map[*registry.Registry]int)
	e.endpoints.Store(new([]endpoint))
	e.Connect(cfg.Registry.Endpoints())
}

// Connect implements scheduler.Engine.
func (e *engine) Connect(endpoints []*registry.Endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(*e.endpoints.Load())
	for _, ep := range endpoints {
		to := endpoint{Endpoint: ep}
		switch ep.Kind {
		case registry.Redis:
			to.redis = newClient(&e.cfg, ep)
		case registry.HTTP:
			to.service = remote.NewBlocking(e.cfg.Clock, scheduler.RemoteOptions(ep))
		}
		for len(all) <= ep.Index {
			all = append(all, endpoint{})
		}
		all[ep.Index] = to
	}
	e.endpoints.Store(&all)
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
	left, gone := slices.Clone(*e.endpoints.Load()), []endpoint(nil)
	for i, to := range left {
		if to.Endpoint != nil && !e.kept[to.Endpoint] && !e.uses(to.Endpoint) {
			gone = append(gone, to)
			left[i] = endpoint{}
		}
	}
	e.endpoints.Store(&left)
	for i := range gone {
		gone[i].close()
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
	e.mu.Lock()
	defer e.mu.Unlock()
	waits, loser, err := x.Enter(e.cfg.Registry, &e.admission, e.given.Clock, done)
	if err != nil {
		return err
	}
	if loser != nil {
		go e.turnAway(loser, scheduler.ErrOverloaded)
	}
	e.enter(x.Graph)
	if !waits {
		go e.run(x)
	} else if x.Deadline != 0 {
		e.limitWait(x)
	}
	return nil
}

// limitWait has a request wait until its deadline at most. mu is held.
func (e *engine) limitWait(x *scheduler.Execution) {
	waits := new(true) // guarded by mu
	timer := time.AfterFunc(x.Deadline.Sub(e.given.Clock.Now()), func() { e.expire(x, waits) })
	x.WhenLeft(func() {
		timer.Stop()
		*waits = false
	})
}

// expire fails a request whose deadline has passed while it waited. If it waits no more, it is its caller's already.
func (e *engine) expire(x *scheduler.Execution, waits *bool) {
	e.mu.Lock()
	var err error
	if *waits {
		err = e.admission.Expire(x, e.given.Clock.Now())
	}
	e.mu.Unlock()
	if err != nil {
		e.turnAway(x, err)
	}
}

// admitNext counts the end of a request that ran, and starts the next one.
func (e *engine) admitNext() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.admission.End() {
		return
	}
	now := e.given.Clock.Now()
	for x, err := e.admission.Next(now); x != nil; x, err = e.admission.Next(now) {
		if err != nil {
			go e.turnAway(x, err)
			continue
		}
		go e.run(x)
	}
}

// turnAway delivers the error of a request that has left the queue and will not run.
func (e *engine) turnAway(x *scheduler.Execution, err error) {
	defer e.leave(x.Graph)
	e.mu.Lock()
	result := x.TurnedAway(err, e.given.Clock.Now())
	e.mu.Unlock()
	defer e.contain()
	x.Deliver(result)
}

// contain, deferred directly, reports and ends a panic of a request's caller.
func (e *engine) contain() {
	if recovered := recover(); recovered != nil {
		e.panicked(recovered)
	}
}

// panicked reports a panic that was recovered from.
func (e *engine) panicked(recovered any) {
	if e.cfg.OnPanic == nil {
		slog.Error("panic in an engine, contained", "panic", recovered, "stack", string(debug.Stack()))
		return
	}
	e.cfg.OnPanic(recovered, debug.Stack())
}

func (e *engine) count(plan string, more *scheduler.Counts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := e.counts[plan]
	counts.Add(more)
	e.counts[plan] = counts
}

// Close implements scheduler.Engine. When the grace is over, sleeps and Redis calls fail, CPU work
// is asked to stop and no node starts any more, and so the requests end.
func (e *engine) Close(grace time.Duration) {
	e.mu.Lock()
	e.admission.Close()
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
	for _, to := range *e.endpoints.Load() {
		to.close()
	}
}

// Metrics implements scheduler.Engine: the counters of the clients, of the admission, and of answers that are degraded or of a fallback; the rest
// is zero.
func (e *engine) Metrics() scheduler.Metrics {
	endpoints := *e.endpoints.Load()
	m := scheduler.Metrics{Malformed: uint64(e.outside.Malformed()), Values: e.outside.ByKey(), Awaits: e.awaits.Stats()}
	m.Redis, m.Remote = make([]resp.Stats, len(endpoints)), make([]remote.Stats, len(endpoints))
	for i, to := range endpoints {
		if to.redis != nil {
			m.Redis[i] = to.redis.Stats()
		}
		if to.service != nil {
			m.Remote[i] = to.service.Stats()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	m.Admission = e.admission.Stats()
	m.Live, _ = e.admission.Held()
	for name, counts := range e.counts {
		if m.Plans == nil {
			m.Plans = make(map[string]scheduler.PlacementStats)
		}
		m.Counts.Add(&counts)
		m.Plans[name] = scheduler.PlacementStats{Counts: counts}
	}
	m.Placement.Counts = m.Counts
	return m
}
