package blocking

import (
	"context"
	"sync"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
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
	clients     []client           // by endpoint index; nil where the endpoint is not a Redis
	remotes     []*remote.Blocking // by endpoint index; nil where the endpoint is of another kind than http
	clock       clock.Clock        // at the pace of real time
	nodeTimeout time.Duration
	maxRows     int // of a request
	outside     task.Outside
	awaits      scheduler.Awaits
	mode        scheduler.Mode
	model       string   // its name in a trace
	cpu, io     *workers // nil: each node runs on the goroutine of its request

	mu        sync.Mutex
	admission scheduler.Admission // guarded by mu, where it says so
	closing   bool                // guarded by mu
	live      sync.WaitGroup      // requests that run or wait; Add only under mu while not closing
	// degraded counts the answers in which something is missing, by name of the plan; guarded by mu.
	degraded map[string]uint64

	journals *trace.Journals
	waiters  sync.Pool       // of *waiter that no body has: only their buffers are kept
	stopped  context.Context // done when the grace is over
	giveUp   context.CancelFunc
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
	e.reg, e.clock, e.nodeTimeout, e.maxRows = cfg.Registry, cfg.Clock, cfg.NodeTimeout, cfg.MaxRows
	e.mode, e.journals = cfg.Placement.Mode, trace.NewJournals(cfg.Clock, 0)
	e.admission.Bound(cfg.MaxInflight, cfg.MaxQueue)
	e.degraded = make(map[string]uint64)
	e.stopped, e.giveUp = context.WithCancel(context.Background())
	e.clients = make([]client, len(cfg.Registry.Endpoints()))
	e.remotes = make([]*remote.Blocking, len(cfg.Registry.Endpoints()))
	for i, ep := range cfg.Registry.Endpoints() {
		switch ep.Kind {
		case registry.Redis:
			e.clients[i] = newClient(cfg, ep)
		case registry.HTTP:
			e.remotes[i] = remote.NewBlocking(cfg.Clock, scheduler.RemoteOptions(ep))
		}
	}
}

// Clock returns the clock on which deadlines are instants.
func (e *engine) Clock() clock.Clock { return e.clock }

// Submit implements scheduler.Engine. Each request that runs has a goroutine.
func (e *engine) Submit(x *scheduler.Execution, done func(*scheduler.Result)) error {
	if err := x.Enter(e.reg, &e.admission, e.clock, done); err != nil {
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
		e.live.Add(1)
		go e.run(x)
	case scheduler.Waits:
		e.live.Add(1)
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
	for _, c := range e.clients {
		if c != nil {
			c.Close()
		}
	}
	for _, c := range e.remotes {
		if c != nil {
			c.Close()
		}
	}
}

// Metrics implements scheduler.Engine: the counters of the clients, of the admission and of degraded answers; the rest
// is zero.
func (e *engine) Metrics() scheduler.Metrics {
	m := scheduler.Metrics{Redis: scheduler.StatsOf(e.clients), Remote: scheduler.StatsOf(e.remotes), Malformed: uint64(e.outside.Malformed()), Values: e.outside.ByKey(), Awaits: e.awaits.Stats()}
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
